//! Workloads on real endpoints: every byte is there, counts are checked, and a loss ends the job cleanly.

#![allow(dead_code, unreachable_pub, reason = "the rig is a module of this test alone")]

mod rig;

use rackloom_jobs::workload::ComputeMode;
use rackloom_plan::{AlgorithmList, Plan};
use rackloom_protocol::NodeId;
use rackloom_workloads::text;
use rig::Rig;

/// Region of a rank's counts of messages.
const COUNTS: u32 = 4;

/// Every rank sends to its neighbour, reduces with all, and has a long computation behind that.
const STEPS: &str = "workload steps\nranks 4\nphase only\ngroup 0..3\n\
    rank 0\nsend 1 5000B\nreceive 3 5000B\nall-reduce group 0 64KiB after 0 1\ncompute 1ms after -1\nbarrier group 0 after -1\n\
    rank 1\nsend 2 5000B\nreceive 0 5000B\nall-reduce group 0 64KiB after 0 1\ncompute 1ms after -1\nbarrier group 0 after -1\n\
    rank 2\nsend 3 5000B\nreceive 1 5000B\nall-reduce group 0 64KiB after 0 1\ncompute 1ms after -1\nbarrier group 0 after -1\n\
    rank 3\nsend 0 5000B\nreceive 2 5000B\nall-reduce group 0 64KiB after 0 1\ncompute 1ms after -1\nbarrier group 0 after -1\n";

fn rig(shape: &str, workload: &str) -> Rig {
    Rig::with(&format!("name: t\nshape: {{{shape}}}\n"), |plan: &Plan, rank: NodeId| {
        let workload = text::read(workload, "w").unwrap_or_else(|errors| panic!("{errors}"));
        let prepared = rackloom_jobs::prepare_workload(plan, workload, &AlgorithmList::AUTO);
        let prepared = prepared.unwrap_or_else(|error| panic!("{error}"));
        rackloom_jobs::perform_workload(plan, rank, 9, &prepared, ComputeMode::Sleep)
    })
}

#[test]
fn every_rank_performs_its_operations_in_their_order() {
    let mut rig = rig("ring: {nodes: 5}", STEPS);
    rig.run();
    for rank in 0..4 {
        let result = rig.result(rank);
        assert!(result.is_pass(), "{result:#?}");
        let part = result.workload.expect("a part");
        assert_eq!((part.operations, part.operations_over, part.compute_ns), (5, 5, 1_000_000));
        let took_ns = part.ended_ns.expect("an end") - part.began_ns.expect("a begin");
        // The computation, and before and after it at least one hop each for message, all-reduce and barrier.
        assert!((1_001_500..1_100_000).contains(&took_ns), "{took_ns} ns");
        assert!(result.verified_bytes >= 5_000, "{}", result.verified_bytes);
    }
    let idle = rig.result(4);
    assert!(idle.is_pass() && idle.workload.is_some_and(|part| part.began_ns.is_none()));
}

#[test]
fn a_count_that_is_wrong_fails_the_rank() {
    let mut rig = rig("ring: {nodes: 4}", STEPS);
    rig.run_until(|rig| rig.waiting_for(2).contains("computing"));
    // The only channel of rank 2 is that of rank 1. A message that is counted twice does no harm until the check.
    rig.memory(2, COUNTS)[0] += 1;
    rig.run();
    let failures = rig.result(2).failures;
    assert!(
        failures.iter().any(|line| line.contains("2 messages of n1 with tag 0 have arrived, it sent 1")),
        "{failures:?}"
    );
}

#[test]
fn bytes_that_are_wrong_fail_the_rank() {
    let mut rig = rig("ring: {nodes: 4}", STEPS);
    rig.run_until(|rig| rig.waiting_for(2).contains("computing"));
    rig.memory(2, 3)[17] ^= 1;
    rig.run();
    let result = rig.result(2);
    assert_eq!((result.mismatch_count, result.mismatches[0].offset), (1, 17), "{result:#?}");
}

#[test]
fn a_lost_rank_ends_the_workload_with_its_name_and_the_operation() {
    let mut rig = rig("ring: {nodes: 4}", STEPS);
    rig.run_until(|rig| rig.waiting_for(0).contains("computing"));
    rig.kill(2);
    rig.run();
    for rank in [0, 1, 3] {
        let result = rig.result(rank);
        assert_eq!(result.lost_nodes, ["n2"], "{result:#?}");
        assert!(!result.complete && result.failures.is_empty(), "{result:#?}");
        let errors = result.clean_errors.join("\n");
        assert!(
            errors.contains("workload steps, ") && errors.contains("of 5 operations over, at operation"),
            "{errors}"
        );
        assert!(errors.contains("in phase only"), "{errors}");
    }
}
