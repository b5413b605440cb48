//! Tests of reports that are assembled from hand-written members.

use super::super::gpu::{GpuPart, Sampled};
use super::super::{EventLog, JobResult, Mismatch};
use super::*;

fn context() -> Context {
    Context {
        members: ["n0", "n1", "s0"]
            .iter()
            .map(|name| MemberSeat { name: (*name).into(), has_job: name.starts_with('n') })
            .collect(),
        links: vec![(0, 2), (1, 2), (1, 2)],
        clock: "virtual".into(),
        seed: 7,
        trace_hash: Some("00ff".into()),
        elapsed_ns: 1234,
        manifest: Manifest { version: "0.1.0".into(), commit: "abc".into(), config_hash: "def".into() },
        wire: "simulated".into(),
        job: "litmus".into(),
        ..Context::default()
    }
}

fn port(edge: u16, frames_sent: u64, frames_received: u64) -> PortReport {
    PortReport { edge, frames_sent, bytes_sent: frames_sent * 100, frames_received, ..PortReport::default() }
}

fn members() -> Vec<MemberReport> {
    let report = |name: &str, job: Option<JobResult>, ports: Vec<PortReport>| MemberReport {
        ports,
        job,
        ..MemberReport::silent(name, None, MemberState::Finished)
    };
    let job = || Some(JobResult { complete: true, verified_bytes: 10, ..JobResult::default() });
    vec![
        report("n0", job(), vec![port(0, 5, 6)]),
        report("n1", job(), vec![port(1, 7, 8), port(2, 9, 10)]),
        report("s0", None, vec![port(0, 11, 5), port(1, 12, 7), port(2, 13, 9)]),
    ]
}

#[test]
fn every_member_finished_and_no_finding_is_a_pass_with_the_promised_fields() {
    let report = Report::assemble(context(), &members());
    assert_eq!(report.verdict, Verdict::Pass, "{:?}", report.failures);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["verdict"], "pass");
    assert_eq!(json["nodes"][2]["state"], "finished");
    for field in ["clock", "seed", "trace_hash", "nodes", "operations", "links", "events", "elapsed_ns"] {
        assert!(json.get(field).is_some(), "{field}");
    }
    for field in ["version", "commit", "config_hash"] {
        assert!(json["manifest"][field].is_string(), "{field}");
    }
    let again: Report = serde_json::from_value(json).unwrap();
    assert_eq!(again, report);
}

#[test]
fn each_link_direction_takes_frames_from_its_sender_and_drops_from_its_receiver() {
    let mut members = members();
    members[2].ports[0].dropped.insert("hop-check".into(), 3);
    let report = Report::assemble(context(), &members);
    let rows: Vec<_> = report.links.iter().map(|link| (link.name.as_str(), link.frames)).collect();
    assert_eq!(
        rows,
        [("n0->s0", 5), ("s0->n0", 11), ("n1->s0", 7), ("s0->n1", 12), ("n1->s0#1", 9), ("s0->n1#1", 13)]
    );
    assert_eq!(report.links[0].dropped["hop-check"], 3);
    assert!(report.links[1].dropped.is_empty());
}

#[test]
fn a_dead_senders_frames_are_those_that_the_other_end_took() {
    let mut members = members();
    members[0] = MemberReport::silent("n0", Some(42), MemberState::Killed);
    let report = Report::assemble(context(), &members);
    assert_eq!(report.links[0].frames, 5);
    assert_eq!(report.verdict, Verdict::Fail);
    assert_eq!(report.failures, ["n0: killed"]);
    assert_eq!(report.nodes[0].pid, Some(42));
}

#[test]
fn a_sender_with_a_lost_process_has_at_least_the_frames_that_the_other_end_took() {
    for (frames_sent, expected) in [(3, 5), (6, 6)] {
        let mut members = members();
        members[0].ports[0] = PortReport { is_partial: true, ..port(0, frames_sent, 6) };
        let report = Report::assemble(context(), &members);
        assert_eq!(report.links[0].frames, expected);
    }
}

#[test]
fn every_kind_of_finding_turns_the_verdict() {
    type Spoil = fn(&mut Vec<MemberReport>);
    fn job(members: &mut [MemberReport]) -> &mut JobResult {
        members[1].job.as_mut().unwrap()
    }
    let spoils: [(Spoil, &str); 8] = [
        (|members| members.truncate(2), "s0: no report came"),
        (|members| members[0].job = None, "n0: no result"),
        (|members| members[0].state = MemberState::Lost, "n0: lost"),
        (|members| job(members).complete = false, "n1: its job did not"),
        (|members| job(members).lost_nodes.push("n0".into()), "n1: lost nodes [n0]"),
        (|members| job(members).failures.push("put failed".into()), "n1: put failed"),
        (|members| job(members).mismatch_count = 4, "n1: 4 more mismatches"),
        (
            |members| {
                let mismatch =
                    Mismatch { region: 2, offset: 77, expected: 1, found: 0, location: "guard".into() };
                job(members).mismatches.push(mismatch);
            },
            "n1: region2 offset 77: expected 0x01, found 0x00 (guard)",
        ),
    ];
    for (spoil, expected) in spoils {
        let mut members = members();
        spoil(&mut members);
        let report = Report::assemble(context(), &members);
        assert_eq!(report.verdict, Verdict::Fail, "{expected}");
        assert!(report.failures.iter().any(|failure| failure.starts_with(expected)), "{:?}", report.failures);
    }
}

#[test]
fn a_dead_switch_that_the_job_survived_is_no_failure() {
    let mut members = members();
    members[2].state = MemberState::Killed;
    let report = Report::assemble(context(), &members);
    assert_eq!((report.verdict, report.nodes[2].state), (Verdict::Pass, MemberState::Killed));
}

#[test]
fn an_engines_own_failure_turns_the_verdict() {
    let mut context = context();
    context.failures.push("no progress for 10 s".into());
    assert_eq!(Report::assemble(context, &members()).verdict, Verdict::Fail);
}

#[test]
fn events_of_all_members_are_sorted_by_time() {
    let record = |at_ns, member: &str| EventRecord {
        at_ns,
        member: member.into(),
        kind: "node-lost".into(),
        text: String::new(),
        fields: BTreeMap::new(),
    };
    let mut members = members();
    for (member, at_ns) in [(0, 30), (1, 10), (2, 20)] {
        let mut log = EventLog::default();
        log.push(record(at_ns, "x"));
        members[member].events = log;
    }
    let times: Vec<_> =
        Report::assemble(context(), &members).events.iter().map(|event| event.at_ns).collect();
    assert_eq!(times, [10, 20, 30]);
}

#[test]
fn operations_of_all_ranks_are_counted_together() {
    let mut members = members();
    for member in members.iter_mut().take(2) {
        let operations = &mut member.job.as_mut().unwrap().operations;
        operations.begin(OperationKind::Put, rackloom_protocol::Instant(0));
        operations.end(OperationKind::Put, rackloom_protocol::Instant(1_000));
        operations.count(OperationKind::Put, 1_000, Ok(500));
        operations.count(OperationKind::Put, 1_000, Err("unreachable"));
    }
    let report = Report::assemble(context(), &members);
    let [put] = report.operations.as_slice() else { panic!("{:?}", report.operations) };
    assert_eq!((put.count, put.errors, put.latency_ns.max), (4, 2, 1_000));
    assert_eq!(put.goodput_bytes_per_s, 1_000_000_000);
    assert_eq!(put.errors_by_name["unreachable"], 2);
    assert_eq!(report.verified_bytes, 20);
}

#[test]
fn what_all_members_note_is_noted_once_and_is_no_failure() {
    let mut members = members();
    for member in members.iter_mut().take(2) {
        member.job.as_mut().unwrap().notes = vec!["smaller than requested".into()];
    }
    let report = Report::assemble(context(), &members);
    assert_eq!(
        (report.verdict, report.notes.as_slice()),
        (Verdict::Pass, ["smaller than requested".to_owned()].as_slice())
    );
}

#[test]
fn a_wish_for_memory_that_was_not_granted_names_the_nodes() {
    let with_memory = |name: String, ungranted: &[&str]| {
        let ungranted = ungranted.iter().map(|reason| (*reason).to_owned()).collect();
        let memory = Some(MemoryReport { ungranted, ..MemoryReport::default() });
        let job = Some(JobResult { complete: true, memory, ..JobResult::default() });
        MemberReport { job, ..MemberReport::silent(name, None, MemberState::Finished) }
    };
    let whys: [&[&str]; 3] = [&["no huge pages"], &[], &["no huge pages", "no advice"]];
    let few: Vec<_> =
        whys.iter().zip(0..).map(|(whys, index)| with_memory(format!("n{index}"), whys)).collect();
    let report = Report::assemble(context(), &few);
    assert_eq!(report.notes, ["memory of n2: no advice", "memory of n0, n2: no huge pages"]);
    let many: Vec<_> = (0..10).map(|index| with_memory(format!("n{index}"), &["no huge pages"])).collect();
    let report = Report::assemble(context(), &many);
    assert_eq!(report.notes, ["memory of n0, n1, n2, n3, n4, n5, n6, n7 and 2 more: no huge pages"]);
}

#[test]
fn the_use_of_a_real_gpu_is_a_field_of_the_report_only_if_a_node_sampled_one() {
    let without = serde_json::to_value(Report::assemble(context(), &members())).unwrap();
    assert_eq!(without.get("gpu_use"), None);
    let mut members = members();
    let busy = Sampled { count: 4, sum: 100, max: 60 };
    let part = GpuPart { uuid: "GPU-1".into(), samples: 4, busy_percent: busy, ..GpuPart::default() };
    members[1].job.as_mut().unwrap().gpu = Some(part);
    let report = Report::assemble(context(), &members);
    let json = serde_json::to_value(&report).unwrap();
    let used = &json["gpu_use"][0];
    assert_eq!((&used["nodes"], &used["uuid"]), (&serde_json::json!(["n1"]), &"GPU-1".into()));
    assert_eq!(used["busy_share"], serde_json::json!({"mean": 0.25, "max": 0.6}));
    let again: Report = serde_json::from_value(json).unwrap();
    assert_eq!(again, report);
}
