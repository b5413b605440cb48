//! Trace events, compared with the rules of their published format.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rackloom_control::measure::OperationKind;
use rackloom_control::report::{
    Context, EventRecord, FaultReport, LinkSeries, MemberReport, MemberSeat, MemberState, NodeSeries,
    OperationSpan, PhaseBalance, PhaseSpan, Report, Series,
};
use rackloom_export::perfetto::{EVENTS_MAX, EventCounts, Trace, write};
use serde_json::Value;

fn report() -> Report {
    let seat = |name: &str| MemberSeat { name: name.to_owned(), has_job: true };
    let members = ["n0", "n1"].map(|name| MemberReport::silent(name, None, MemberState::Finished));
    let context = Context {
        members: vec![seat("n0"), seat("n1")],
        clock: "virtual".to_owned(),
        elapsed_ns: 10_000,
        job: "collective".to_owned(),
        ..Context::default()
    };
    Report::assemble(context, &members)
}

fn event(at_ns: u64, member: &str, kind: &str, fields: &[(&str, &str)]) -> EventRecord {
    let fields = fields.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    EventRecord {
        at_ns,
        member: member.to_owned(),
        kind: kind.to_owned(),
        text: "a \"text\"\n".to_owned(),
        fields,
    }
}

/// Writes a trace and checks it against the format. Returns its events.
fn trace(report: &Report, spans: &[OperationSpan], events_max: usize) -> (Vec<Value>, EventCounts) {
    let report = &Report { spans: spans.to_vec(), ..report.clone() };
    let mut text = String::new();
    let counts = write(&Trace { report, events_max }, &mut text).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let events = value["traceEvents"].as_array().expect("a list").clone();
    assert_eq!(value["otherData"]["events left out"], counts.left_out.to_string());
    check(&events);
    let written = events.iter().filter(|event| event["ph"] != "M").count();
    assert_eq!(written, counts.written);
    (events, counts)
}

/// Time in nanoseconds. The trace has microseconds with three decimals.
fn ns(value: &Value) -> u64 {
    let micros = value.as_f64().expect("a number");
    assert!(micros >= 0.0);
    (micros * 1000.0).round() as u64
}

/// Checks the rules of the format: required members by phase, types, names of tracks, and slices of a thread.
fn check(events: &[Value]) {
    let mut named = BTreeMap::<(u64, u64), String>::new();
    let mut slices = BTreeMap::<(u64, u64), Vec<(u64, u64)>>::new();
    for event in events {
        let track = (event["pid"].as_u64().expect("a pid"), event["tid"].as_u64().expect("a tid"));
        let name = event["name"].as_str().expect("a name");
        assert!(event["ts"].is_number() && event["args"].is_object(), "{event}");
        match event["ph"].as_str().expect("a phase") {
            "M" if name.ends_with("_name") => {
                let text = event["args"]["name"].as_str().expect("a name").to_owned();
                let track = if name == "process_name" { (track.0, 0) } else { track };
                assert_eq!(named.insert(track, text), None, "a track has two names: {event}");
            }
            "M" => assert!(name.ends_with("_sort_index") && event["args"]["sort_index"].is_u64(), "{event}"),
            "X" => {
                let begin_ns = ns(&event["ts"]);
                slices.entry(track).or_default().push((begin_ns, begin_ns + ns(&event["dur"])));
            }
            "i" => assert!(["g", "p", "t"].contains(&event["s"].as_str().expect("a scope")), "{event}"),
            "C" => {
                let values = event["args"].as_object().unwrap();
                assert!(!values.is_empty() && values.values().all(Value::is_number), "{event}");
            }
            other => panic!("unexpected phase {other}"),
        }
    }
    for event in events.iter().filter(|event| event["ph"] != "M") {
        let (process, thread) = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        assert!(named.contains_key(&(process, 0)), "a process without a name: {event}");
        assert!(
            event["ph"] == "C" || named.contains_key(&(process, thread)),
            "a thread without a name: {event}"
        );
    }
    for (track, mut intervals) in slices {
        intervals.sort_unstable();
        for pair in intervals.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "slices of {track:?} overlap: {pair:?}");
        }
    }
}

fn of_phase<'a>(events: &'a [Value], phase: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["ph"] == phase).collect()
}

#[test]
fn phases_events_and_faults_are_on_the_tracks_of_their_members() {
    let mut report = report();
    let phase = |name: &str, began_ns, ended_ns| PhaseBalance {
        name: name.to_owned(),
        began_ns,
        ended_ns,
        imbalance: 1.0,
        ..PhaseBalance::default()
    };
    let span = |name: &str, began_ns, ended_ns| PhaseSpan { name: name.to_owned(), began_ns, ended_ns };
    report.phases = vec![span("ring", 1_001, 2_002), span("tree", 2_002, 4_000)];
    report.balance =
        vec![phase("whole run", 0, 10_000), phase("ring", 1_001, 2_002), phase("tree", 2_002, 4_000)];
    report.faults = vec![FaultReport { event: 1, what: "down n0--n1".to_owned(), ..FaultReport::default() }];
    report.events = vec![
        event(100, "n1", "fault", &[("event", "1"), ("begins", "true")]),
        event(150, "n0", "link-changed", &[("port", "port1"), ("text", "x")]),
        event(300, "n1", "fault", &[("event", "1"), ("begins", "false")]),
        event(400, "n1", "fault", &[("event", "1"), ("begins", "true")]),
        event(500, "supervisor", "killed", &[]),
    ];
    let (events, counts) = trace(&report, &[], EVENTS_MAX);
    assert_eq!(counts, EventCounts { written: 6, left_out: 0 });
    let slices: Vec<_> = of_phase(&events, "X")
        .into_iter()
        .map(|slice| {
            (
                slice["name"].as_str().unwrap(),
                slice["pid"].as_u64().unwrap(),
                ns(&slice["ts"]),
                ns(&slice["dur"]),
            )
        })
        .collect();
    assert_eq!(
        slices,
        [
            ("ring", 1, 1_001, 1_001),
            ("tree", 1, 2_002, 1_998),
            ("down n0--n1", 3, 100, 200),
            ("down n0--n1", 3, 400, 9_600),
        ],
        "the whole run is left out, and a fault without an end lasts until the end of the run"
    );
    let instants: Vec<_> = of_phase(&events, "i")
        .into_iter()
        .map(|instant| (instant["name"].as_str().unwrap(), instant["pid"].as_u64().unwrap()))
        .collect();
    assert_eq!(instants, [("link-changed", 2), ("killed", 1)]);
    let changed = of_phase(&events, "i")[0];
    assert_eq!(
        (&changed["args"]["port"], &changed["args"]["text"]),
        (&"port1".into(), &"a \"text\"\n".into())
    );
}

#[test]
fn series_become_rates_that_end_with_the_run() {
    let mut report = report();
    let link = LinkSeries {
        name: "n1->n0".to_owned(),
        bytes: vec![500, 500, 0, 2],
        frames: vec![5, 5, 0, 1],
        dropped: BTreeMap::from([("queue-full".to_owned(), vec![0, 0, 0, 3])]),
        missing: vec![7, 7, 0, 0],
        ..LinkSeries::default()
    };
    let node = NodeSeries {
        name: "n0".to_owned(),
        operations: vec![1, 0, 0, 0],
        latency_p50_ns: vec![40, 0, 0, 0],
        latency_p99_ns: vec![50, 0, 0, 0],
        ..NodeSeries::default()
    };
    report.series =
        Some(Series { from_ns: 1_000, interval_ns: 500, intervals: 4, links: vec![link], nodes: vec![node] });
    let (events, _) = trace(&report, &[], EVENTS_MAX);
    let counters = of_phase(&events, "C");
    let of = |name: &str, key: &str| -> Vec<(u64, u64)> {
        let of_name = counters.iter().filter(|counter| counter["name"] == name);
        of_name.map(|counter| (ns(&counter["ts"]), counter["args"][key].as_u64().expect("a value"))).collect()
    };
    // 500 bytes in 500 ns are 10^9 bytes per second. The second interval equals the first.
    assert_eq!(
        of("n1->n0", "bytes_per_s"),
        [(1_000, 1_000_000_000), (2_000, 0), (2_500, 4_000_000), (3_000, 0)]
    );
    assert_eq!(of("n1->n0", "dropped queue-full"), [(1_000, 0), (2_000, 0), (2_500, 3), (3_000, 0)]);
    assert_eq!(of("n1->n0", "missing"), [(1_000, 7), (2_000, 0), (2_500, 0), (3_000, 0)]);
    assert_eq!(of("n0", "operations_per_s"), [(1_000, 2_000_000), (1_500, 0)]);
    let processes: Vec<_> = counters.iter().map(|counter| counter["pid"].as_u64().unwrap()).collect();
    assert_eq!(processes, [3, 3, 3, 3, 2, 2], "a direction belongs to its sender");
}

#[test]
fn the_limit_takes_the_last_events_and_says_how_many() {
    let span = |begin_ns| OperationSpan {
        node: "n0".into(),
        kind: OperationKind::Put,
        begin_ns,
        end_ns: begin_ns + 5,
        peer: Some("n1".into()),
        bytes: 8,
        error: None,
    };
    let spans: Vec<_> = (0..10).map(span).collect();
    let mut report = report();
    report.events = vec![event(1, "n0", "node-lost", &[])];
    let (events, counts) = trace(&report, &spans, 4);
    assert_eq!(counts, EventCounts { written: 4, left_out: 7 });
    assert_eq!((of_phase(&events, "i").len(), of_phase(&events, "X").len()), (1, 3));
    let put = of_phase(&events, "X")[0];
    assert_eq!(
        (&put["args"]["peer"], &put["args"]["bytes"], &put["name"]),
        (&"n1".into(), &8.into(), &"put".into())
    );
    assert_eq!(trace(&report, &spans, 0).1, EventCounts { written: 0, left_out: 11 });
}

proptest! {
    #[test]
    fn operations_of_a_node_overlap_on_no_lane(
        times in proptest::collection::vec((0_u16..2, 0_u64..60, 0_u64..30), 0..80),
    ) {
        let spans: Vec<_> = times
            .iter()
            .map(|(node, begin_ns, length_ns)| OperationSpan {
                node: format!("n{node}"),
                error: None,
                kind: OperationKind::Load,
                begin_ns: *begin_ns,
                end_ns: begin_ns + length_ns,
                peer: None,
                bytes: 0,
            })
            .collect();
        let (events, _) = trace(&report(), &spans, EVENTS_MAX);
        let slices = of_phase(&events, "X");
        prop_assert_eq!(slices.len(), spans.len());
        // As many lanes as operations are in flight at one time, and no more.
        for node in 0..2_u16 {
            let of_node = || spans.iter().filter(|span| span.node == format!("n{node}"));
            let in_flight = |at_ns: u64| of_node().filter(|span| span.begin_ns <= at_ns && at_ns < span.end_ns).count();
            let most = (0..90).map(in_flight).max().unwrap_or(0);
            let mut threads: Vec<_> = slices.iter().filter(|slice| slice["pid"] == node + 2).map(|slice| slice["tid"].as_u64()).collect();
            threads.sort_unstable();
            threads.dedup();
            prop_assert!(threads.len() <= most.max(1) + 1, "{} lanes for {most} in flight", threads.len());
        }
    }

    #[test]
    fn any_numbers_and_names_give_a_trace(
        name in any::<String>(),
        values in proptest::collection::vec(any::<u64>(), 9),
        imbalance in proptest::num::f64::ANY,
    ) {
        let mut report = report();
        let phase = PhaseBalance { name: name.clone(), began_ns: values[0], ended_ns: values[1], imbalance, ..PhaseBalance::default() };
        report.balance = vec![PhaseBalance::default(), phase];
        let link = LinkSeries { name: name.clone(), bytes: values[2..4].to_vec(), missing: values[4..5].to_vec(), ..LinkSeries::default() };
        let series = Series { from_ns: values[5], interval_ns: values[6], links: vec![link], ..Series::default() };
        report.series = Some(series);
        let mut text = String::new();
        let spans = [OperationSpan { node: name.clone(), kind: OperationKind::Get, begin_ns: values[7], end_ns: values[8], peer: Some(name.clone()), bytes: 1, error: None }];
        report.spans = spans.to_vec();
        write(&Trace { report: &report, events_max: EVENTS_MAX }, &mut text).unwrap();
        let value: Value = serde_json::from_str(&text).map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
        let slice = value["traceEvents"].as_array().unwrap().iter().find(|event| event["cat"] == "operations").unwrap();
        prop_assert_eq!(slice["args"]["peer"].as_str(), Some(name.as_str()));
    }
}
