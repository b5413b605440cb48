use std::collections::BTreeMap;

use rackloom_protocol::Instant;

use super::heartbeats::BY_HEARTBEATS;
use super::*;
use crate::report::assemble::NodeReport;
use crate::report::fault_lines::FaultLines;
use crate::report::member::{HostShortage, MemberState};

fn plan() -> Plan {
    Plan::parse("{name: r, shape: {ring: {nodes: 4}}}", "r").expect("a rack")
}

fn record(at_ns: u64, member: &str, kind: &str, fields: &[(&str, &str)]) -> EventRecord {
    let fields: BTreeMap<_, _> =
        fields.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    EventRecord { at_ns, member: member.into(), kind: kind.into(), text: String::new(), fields }
}

/// Report of a run in which n0--n1 was down from 100 on, detected at 150, with paths changed until 170.
fn after_a_cut(script: &FaultScript) -> Report {
    let mut report = crate::report::Report::assemble(crate::report::Context::default(), &[]);
    report.events = vec![
        EventRecord::of_fault(Instant(100), "n0", 0, 1, &script.events[0], true),
        EventRecord::of_fault(Instant(101), "n1", 0, 1, &script.events[0], true),
        record(120, "n2", "link-changed", &[("port", "port0"), ("to", "down")]),
        record(150, "n1", "link-changed", &[("port", "port1"), ("to", "down")]),
        record(160, "n0", "path-changed", &[]),
        record(170, "n1", "path-changed", &[]),
        EventRecord::of_fault(Instant(200), "n0", 0, 1, &script.events[0], false),
        record(290, "n0", "link-changed", &[("port", "port0"), ("to", "up")]),
        record(300, "n0", "path-changed", &[]),
        record(310, "n1", "link-changed", &[("port", "port1"), ("to", "up")]),
        record(320, "n2", "link-changed", &[("port", "port0"), ("to", "up")]),
    ];
    report
}

fn script(more: &str) -> FaultScript {
    let text = format!("name: t\nevents: [{{what: down, where: n0--n1, for: 100ns}}]\nexpect: {{{more}}}");
    FaultScript::parse(&text, "t", &plan()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_notice_of_the_neighbour_and_the_last_path_are_reported() {
    let script = script("");
    let mut report = after_a_cut(&script);
    judge(&script, &plan(), &mut report);
    let fault = &report.faults[0];
    assert_eq!((fault.times, fault.at_ns, fault.unnoticed), (1, Some(100), 0));
    assert_eq!((fault.detected_after_ns, fault.switched_after_ns), (Some(50), Some(70)));
    assert_eq!(fault.recovered_after_ns, Some(110), "the last of both ends, and no other link's");
    let bound_ns = plan().timers.detection_ns() + plan().links[0].profile.latency_ns();
    assert_eq!(fault.detection_bound_ns, Some(bound_ns));
    assert_eq!(report.failures, Vec::<String>::new());
}

#[test]
fn the_slack_of_a_host_is_that_of_members_which_the_script_lets_run() {
    let detected = |events: &str| {
        let script = format!("name: t\nevents: [{{what: down, where: n0--n1, for: 100ns}}{events}]");
        let script = FaultScript::parse(&script, "t", &plan()).unwrap_or_else(|error| panic!("{error}"));
        let late = |(name, timer_late_max_ns): (&str, _)| NodeReport {
            name: name.into(),
            pid: None,
            state: MemberState::Finished,
            paths: None,
            memory: None,
            waiting: Vec::new(),
            timer_late_max_ns,
            shortage: HostShortage::default(),
        };
        let nodes = [("n0", Some(7)), ("n1", Some(9)), ("n2", None), ("n3", Some(900))];
        let mut report = after_a_cut(&script);
        report.nodes = nodes.into_iter().map(late).collect();
        judge(&script, &plan(), &mut report);
        report.faults.iter().map(|fault| fault.scheduling_slack_ns).collect::<Vec<_>>()
    };
    assert_eq!(detected(""), [Some(900)]);
    let paused = ", {what: pause, where: n3, for: 1s}";
    assert_eq!(detected(paused), [Some(9), None], "n3 was stopped, and a pause has no bound");
}

#[test]
fn in_virtual_time_heartbeats_find_a_cut_and_a_death_neither_too_soon_nor_too_late() {
    let rack = |link: &str| {
        let text = format!(
            "{{name: r, shape: {{ring: {{nodes: 4}}}}, link: {{delay: 500ns{link}}}, \
             timers: {{heartbeat_interval: 10ms, heartbeat_miss_max: 5}}}}"
        );
        Plan::parse(&text, "r").expect("a rack")
    };
    let failures =
        |link: &str, event: &str, bounds_ns: (u64, u64), clock: &str, took_ns: u64, cause: &str| {
            let plan = rack(link);
            let script = FaultScript::parse(&format!("name: t\nevents: [{{{event}}}]"), "t", &plan)
                .unwrap_or_else(|error| panic!("{error}"));
            let mut report = crate::report::Report::assemble(crate::report::Context::default(), &[]);
            let fields = [("port", "port0"), ("to", "down"), ("cause", cause)];
            report.events = vec![
                EventRecord::of_fault(Instant(100), "n0", 0, 1, &script.events[0], true),
                record(100 + took_ns, "n0", "link-changed", &fields),
            ];
            report.clock = clock.to_owned();
            judge(&script, &plan, &mut report);
            let fault = &report.faults[0];
            assert_eq!(
                (fault.detection_least_ns, fault.detection_bound_ns),
                (Some(bounds_ns.0), Some(bounds_ns.1))
            );
            report.failures.len()
        };
    // Frames on a cable that is cut are lost: (4 T, 5 T + d]. Frames that a killed member has sent arrive: (4 T + d, 5
    // T + d].
    let cases = [("what: down, where: n0--n1", 40_000_000), ("what: kill, where: n0, for: 1s", 40_000_500)];
    for (event, least_ns) in cases {
        let most_ns = 50_000_500;
        let failures =
            |clock, took_ns, cause| failures("", event, (least_ns, most_ns), clock, took_ns, cause);
        assert_eq!(failures("virtual", least_ns, BY_HEARTBEATS), 1, "{event}: too soon");
        assert_eq!(failures("virtual", least_ns + 1, BY_HEARTBEATS), 0, "{event}");
        assert_eq!(failures("virtual", most_ns, BY_HEARTBEATS), 0, "{event}");
        assert_eq!(failures("virtual", most_ns + 1, BY_HEARTBEATS), 1, "{event}: too late");
        assert_eq!(failures("virtual", 5, "carrier"), 0, "{event}: something else has detected it");
        assert_eq!(failures("wall", most_ns + 1, BY_HEARTBEATS), 0, "{event}: a busy host is later");
    }
    let (cut, _) = cases[0];
    let of_a_link_that_loses =
        failures(", loss: 20%", cut, (40_000_000, 50_000_500), "virtual", 5, BY_HEARTBEATS);
    assert_eq!(of_a_link_that_loses, 0, "heartbeats before the cut may have been lost");
    // At 8 Gbit/s a byte takes a nanosecond: 84 of the heartbeat, and 24 beside those of the longest frame before it.
    let frame_ns = u64::from(rack("").settings.frame_bytes_max) + 24;
    let bounds_ns = (40_000_584 - frame_ns, 50_000_584 + frame_ns);
    let behind_a_frame =
        failures(", rate: 8Gbit/s", cases[1].0, bounds_ns, "virtual", bounds_ns.1, BY_HEARTBEATS);
    assert_eq!(behind_a_frame, 0);
}

#[test]
fn each_bound_can_be_missed() {
    for (more, detected) in [
        ("detected_within: 49ns", "detected after 50 ns"),
        ("detected_within: 60ns, switched_within: 69ns", "switched after 70 ns"),
        ("recovered_within: 109ns", "recovered after 110 ns"),
        ("retransmitted_min: 1", "at least 1 retransmissions"),
        ("goodput_min: 1bit/s", "goodput of 1 bit/s"),
        ("ends: clean-error", "expected a clean error"),
    ] {
        let script = script(more);
        let mut report = after_a_cut(&script);
        judge(&script, &plan(), &mut report);
        assert_eq!(report.verdict, Verdict::Fail, "{more}");
        assert!(report.failures.iter().any(|line| line.contains(detected)), "{more}: {:?}", report.failures);
    }
}

#[test]
fn a_fault_that_did_not_happen_proves_nothing() {
    for (more, failures) in [("", 1), ("happen: any", 0)] {
        let script = script(more);
        let mut report = after_a_cut(&script);
        report.events.clear();
        judge(&script, &plan(), &mut report);
        assert_eq!(report.failures.len(), failures, "{:?}", report.failures);
    }
}

/// Each of several hosts judges only the events that its own members apply and see.
#[test]
fn what_happens_on_another_host_need_not_have_happened_here() {
    let text = "name: t\nevents:\n\
                - {what: down, where: n0--n1}\n\
                - {what: down, where: n2--n3}\n\
                - {what: down, where: n1--n2, when: {node: n2}}\n";
    let script = FaultScript::parse(text, "t", &plan()).unwrap_or_else(|error| panic!("{error}"));
    let member = |(name, state): (&str, _)| NodeReport {
        name: name.into(),
        pid: None,
        state,
        paths: None,
        memory: None,
        waiting: Vec::new(),
        timer_late_max_ns: None,
        shortage: HostShortage::default(),
    };
    let (here, away) = (MemberState::Finished, MemberState::Elsewhere);
    let failures = |states: [MemberState; 4]| {
        let mut report = crate::report::Report::assemble(crate::report::Context::default(), &[]);
        report.nodes = ["n0", "n1", "n2", "n3"].into_iter().zip(states).map(member).collect();
        judge(&script, &plan(), &mut report);
        report.failures.iter().filter(|line| line.contains("did not happen")).count()
    };
    assert_eq!(failures([here; 4]), 3);
    assert_eq!(failures([here, here, away, away]), 1, "n0--n1 alone");
    assert_eq!(failures([away, away, here, here]), 2, "n2--n3, and n2 sees the third one");
}

#[test]
fn missing_memory_of_a_new_incarnation_is_a_clean_error_and_of_another_member_is_not() {
    let text = |name: &str| format!("n0: broke off: fetch-add-8 to {name} ended with: no-such-region");
    let ended = |events: &str, line: String| {
        let script = format!("name: t\nevents: [{events}]\nexpect: {{ends: right-or-clean-error}}");
        let script = FaultScript::parse(&script, "t", &plan()).unwrap_or_else(|error| panic!("{error}"));
        let mut report = after_a_cut(&script);
        report.verdict = Verdict::Fail;
        (report.failures, report.refused, report.wrong) =
            (vec![line.clone()], vec![line.clone()], vec![line]);
        judge(&script, &plan(), &mut report);
        report.failures.iter().any(|failure| failure.contains("no-such-region"))
    };
    let restart = "{what: kill, where: n1, for: 20ms}";
    assert!(!ended(restart, text("n1")));
    assert!(ended(restart, text("n2")), "n2 has its memory");
    assert!(ended("{what: fail-memory, where: n1, rate: 1%}", text("n1")), "memory that fails is there");
}

#[test]
fn beginnings_that_are_kept_as_a_number_count() {
    let script = script("ends: right");
    let mut lines = FaultLines::default();
    for number in 0..1_000 {
        lines.push(EventRecord::of_fault(
            Instant(number),
            "n0",
            0,
            number / 2 + 1,
            &script.events[0],
            number % 2 == 0,
        ));
    }
    let report = fault_report(&script, &plan(), Clock::Wall, &lines.into_records(), 0);
    assert_eq!((report.times, report.at_ns), (500, Some(0)));
}

/// Judges a run of a script whose one event must happen twice. Each line of the run has a time, the number of the
/// begin, and whether it begins.
fn judged_twice(said: &[(u64, u64, bool)]) -> (u64, Vec<String>) {
    let text = "name: twice\nevents: [{what: down, where: n0--n1, for: 1us, every: 1ms, times: 2}]\n";
    let script = FaultScript::parse(text, "twice", &plan()).expect("a script");
    let line = |(at_ns, time, begins): &(u64, u64, bool)| {
        EventRecord::of_fault(Instant(*at_ns), "n0", 0, *time, &script.events[0], *begins)
    };
    let mut report = after_a_cut(&script);
    (report.events, report.failures) = (said.iter().map(line).collect(), Vec::new());
    report.verdict = Verdict::Pass;
    judge(&script, &plan(), &mut report);
    (report.faults[0].missed, report.failures)
}

#[test]
fn an_event_that_is_to_happen_twice_has_not_happened_when_it_began_once() {
    let (missed, failures) = judged_twice(&[(1, 1, true), (2, 1, false)]);
    assert_eq!(missed, 0);
    assert_eq!(
        failures,
        [
            "event 1 (down n0--n1, line 2) happened 1 of 2 times: the run was over first, and shows nothing about the others"
        ]
    );
    assert_eq!(judged_twice(&[(1, 1, true), (2, 1, false), (3, 2, true), (4, 2, false)]), (0, vec![]));
    assert_eq!(
        judged_twice(&[(3, 2, true), (4, 2, false)]),
        (1, vec![]),
        "the first was over before it was seen"
    );
}

#[test]
fn a_clean_error_is_none_if_anything_was_wrong() {
    let script = script("ends: right-or-clean-error");
    let judged = |wrong: &[&str]| {
        let mut report = after_a_cut(&script);
        report.verdict = Verdict::Fail;
        report.failures = vec!["n1: lost nodes [n3]".into(), "n2: 1 mismatches".into()];
        report.wrong = wrong.iter().map(|line| (*line).to_owned()).collect();
        judge(&script, &plan(), &mut report);
        report.verdict
    };
    assert_eq!(judged(&[]), Verdict::Pass);
    assert_eq!(judged(&["n2: 1 mismatches"]), Verdict::Fail);
}
