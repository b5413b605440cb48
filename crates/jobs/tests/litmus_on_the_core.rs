//! The litmus on real endpoints and switches: it passes on every shape, finds corrupted bytes, and ends when a member
//! is lost.

#![allow(dead_code, unreachable_pub, reason = "the rig is a module of this test alone")]

mod rig;

use rackloom_jobs::OperationKind;
use rackloom_jobs::report::{MemberState, Verdict};
use rig::Rig;

const SHAPES: [&str; 4] = [
    "name: t\nshape: {ring: {nodes: 2}}\n",
    "name: t\nshape: {ring: {nodes: 4}}\n",
    "name: t\nshape: {star: {nodes: 3, planes: 2}}\n",
    "name: t\nshape: {full-mesh: {nodes: 4}}\n",
];
const SMALL: &str = "job: {litmus: {bytes_max: 5000B, rounds: 2}}\n";

fn ring(count: u16) -> Rig {
    Rig::new(&format!("name: t\nshape: {{ring: {{nodes: {count}}}}}\n{SMALL}"), 7)
}

#[test]
fn it_passes_on_every_shape_and_every_kind_of_operation_has_happened() {
    for (number, shape) in SHAPES.iter().enumerate() {
        for mode in ["selective", "go-back-n"] {
            let mut rig = Rig::new(&format!("{shape}{SMALL}transport: {{mode: {mode}}}\n"), number as u64);
            rig.run();
            let report = rig.report();
            assert_eq!(report.verdict, Verdict::Pass, "{shape} {mode}: {:#?}", report.failures);
            let kinds: Vec<_> = report.operations.iter().map(|operation| operation.kind).collect();
            assert_eq!(kinds, OperationKind::ALL);
            for operation in &report.operations {
                assert!(operation.count > 0 && operation.errors == 0, "{operation:?}");
            }
            assert!(
                report.links.iter().all(|link| link.frames > 0 && link.bytes_on_wire > 64 * link.frames / 2)
            );
            assert!(report.verified_bytes > 1 << 20);
        }
    }
}

#[test]
fn a_mebibyte_goes_between_every_pair() {
    let mut rig = Rig::new(
        "name: t\nshape: {ring: {nodes: 4}}\ndefaults: {memory: 16MiB}\njob: {litmus: {bytes_max: 1MiB, rounds: 1}}\n",
        1,
    );
    rig.run();
    let report = rig.report();
    assert_eq!(report.verdict, Verdict::Pass, "{:#?}", report.failures);
    for kind in [OperationKind::Put, OperationKind::Get, OperationKind::PutWithSignal] {
        let bytes = rig.result(0).operations.get(kind).unwrap().bytes;
        assert!(bytes > 3 << 20, "{kind:?} {bytes}");
    }
    assert!(report.notes.is_empty(), "{:?}", report.notes);
}

#[test]
fn it_passes_where_few_loads_may_be_outstanding() {
    for outstanding in [1, 2, 3] {
        for bytes_max in ["1B", "4KiB"] {
            let rack = format!(
                "name: t\nshape: {{ring: {{nodes: 3}}}}\noutstanding_loads_max: {outstanding}\n\
                 job: {{litmus: {{bytes_max: {bytes_max}, rounds: 2}}}}\n"
            );
            let mut rig = Rig::new(&rack, 5);
            rig.run();
            let report = rig.report();
            assert_eq!(report.verdict, Verdict::Pass, "{outstanding} {bytes_max}: {:#?}", report.failures);
            let tried = report.operations.iter().find(|of| of.kind == OperationKind::ForbiddenAccess);
            // Every rank attempts sixteen accesses at two others, in two rounds.
            assert_eq!(tried.map(|operation| operation.count), Some(3 * 2 * 16 * 2));
        }
    }
}

#[test]
fn tenants_of_one_rack_are_kept_apart() {
    let rack = format!(
        "name: t\nshape: {{ring: {{nodes: 4}}}}\nnodes: {{n1: {{tenant: 2}}, n3: {{tenant: 2}}}}\n{SMALL}"
    );
    let mut rig = Rig::new(&rack, 3);
    rig.run();
    let report = rig.report();
    assert_eq!(report.verdict, Verdict::Pass, "{:#?}", report.failures);
    assert!(report.events.iter().any(|event| event.text.contains("tenant")));
}

fn run_to(rig: &mut Rig, rank: usize, activity: &str) {
    rig.run_until(|rig| rig.waiting_for(rank).contains(activity));
    assert!(rig.waiting_for(rank).contains(activity), "the run never came to {activity:?}");
}

#[test]
fn a_byte_planted_in_an_owners_slot_guard_or_read_only_region_turns_the_verdict() {
    // Region 2 begins with a guard. All of region 4 is read-only.
    for (region, offset) in [(1, 3), (2, 0), (2, 63), (4, 100)] {
        let mut rig = ring(3);
        run_to(&mut rig, 1, "round 2 of 2, barrier after the work");
        rig.memory(1, region)[offset] ^= 1;
        rig.run();
        let report = rig.report();
        assert_eq!(report.verdict, Verdict::Fail);
        assert_eq!(report.failures.len(), 1);
        let activity = format!("n1: region{region} offset {offset}:");
        assert!(report.failures[0].starts_with(&activity), "{:?}", report.failures);
    }
}

#[test]
fn any_byte_of_the_shared_regions_is_watched() {
    // Words of the barrier may change between the corruption and the check. The check of their count covers them.
    let length = ring(3).memory(1, 2).len();
    for offset in (0..length).step_by(length / 23) {
        let mut rig = ring(3);
        run_to(&mut rig, 1, "round 2 of 2, barrier after the work");
        rig.memory(1, 2)[offset] ^= 0x80;
        rig.run();
        assert_eq!(rig.result(1).mismatch_count, 1, "offset {offset}");
    }
}

#[test]
fn a_killed_rank_is_named_by_every_other_and_the_run_ends() {
    for activity in [
        "before the work",
        "writes",
        "reads",
        "order",
        "atomics",
        "forbidden",
        "after the work",
        "round 2 of 2",
    ] {
        let mut rig = ring(4);
        run_to(&mut rig, 0, activity);
        rig.kill(2);
        rig.run();
        for rank in [0, 1, 3] {
            let result = rig.result(rank);
            assert!(!result.complete, "{activity}");
            assert_eq!(result.lost_nodes, ["n2"], "{activity}: {:?}", result.failures);
            assert_eq!(result.mismatch_count, 0, "{activity}: {:?}", result.mismatches);
            assert!(
                !result.failures.iter().any(|failure| failure.contains("did not end")),
                "{:?}",
                result.failures
            );
        }
        let report = rig.report();
        assert_eq!(report.verdict, Verdict::Fail);
        assert!(report.failures.contains(&"n0: lost nodes [n2]".to_owned()), "{:?}", report.failures);
    }
}

#[test]
fn a_killed_plane_is_survived_and_seen_as_a_change_of_path() {
    let mut rig = Rig::new(&format!("name: t\nshape: {{star: {{nodes: 3, planes: 2}}}}\n{SMALL}"), 5);
    run_to(&mut rig, 0, "order");
    rig.kill(3);
    rig.run();
    for rank in 0..3 {
        assert!(rig.result(rank).is_pass(), "{:?}", rig.result(rank).failures);
    }
    let report = rig.report();
    assert_eq!(report.verdict, Verdict::Pass, "the other plane carried everything: {:?}", report.failures);
    assert!(
        report
            .nodes
            .iter()
            .any(|node| node.name == rig.plan.members[3].name && node.state == MemberState::Killed)
    );
    assert!(report.events.iter().any(|event| event.kind == "path-changed" && event.at_ns > 0));
}

#[test]
fn memory_smaller_than_requested_is_noted() {
    let mut rig = Rig::new(
        "name: t\nshape: {ring: {nodes: 3}}\ndefaults: {memory: 2MiB}\njob: {litmus: {bytes_max: 1MiB, rounds: 1}}\n",
        1,
    );
    rig.run();
    let report = rig.report();
    assert_eq!(report.verdict, Verdict::Pass, "{:#?}", report.failures);
    assert!(
        report.notes.len() == 1 && report.notes[0].contains("memory is 2097152 bytes"),
        "{:?}",
        report.notes
    );
}
