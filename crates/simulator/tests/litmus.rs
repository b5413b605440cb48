//! The shipped racks run the litmus in virtual time: clean, and under every kind of fault, in both modes.

use std::path::Path;

use rackloom_jobs::JobResult;
use rackloom_plan::{Clock, LinkProfile, Plan};
use rackloom_protocol::{Instant, NodeId, PortId, RetransmissionMode};
use rackloom_simulator::{Action, MemberState, Outcome, Simulation};

const RACKS: [&str; 3] = ["ring-4.yaml", "star-4.yaml", "full-mesh-4.yaml"];

fn rack(file: &str) -> Plan {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../topologies");
    Plan::read(&folder.join(file)).unwrap_or_else(|error| panic!("{error}"))
}

/// One kind of fault: its name, and how a link gets it.
type Fault = (&'static str, fn(&mut LinkProfile));

/// Runs a rack's own job; returns the outcome, the ranks' results, and the number of retransmitted packets.
fn run(plan: &Plan, seed: u64) -> (Outcome, Vec<JobResult>, u64) {
    let ranks = 0..plan.endpoint_count() as u16;
    let jobs = ranks.clone().map(|rank| rackloom_jobs::build(plan, NodeId(rank), seed)).collect();
    let mut simulation = Simulation::new(plan, seed, jobs);
    let outcome = simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
    let ports = |rank| (0..plan.graph().ports(NodeId(rank)).len() as u16).map(move |port| (rank, port));
    let counters = ranks.flat_map(ports).map(|(rank, port)| simulation.counters(NodeId(rank), PortId(port)));
    let retransmitted = counters.map(|counters| counters.retransmitted).sum();
    let results = simulation.take_jobs().iter_mut().map(|job| job.result()).collect();
    (outcome, results, retransmitted)
}

fn assert_pass(what: &str, results: &[JobResult]) {
    for (rank, result) in results.iter().enumerate() {
        assert!(result.is_pass() && result.verified_bytes > 0, "{what}, rank {rank}: {:?}", result.failures);
    }
}

#[test]
fn every_rack_passes_and_repeats_itself() {
    for file in RACKS {
        let plan = rack(file);
        let (outcome, results, retransmitted) = run(&plan, 7);
        assert_pass(file, &results);
        assert_eq!(retransmitted, 0, "{file}: nothing is lost, nothing is sent again");
        assert_eq!(outcome.trace_hash, run(&plan, 7).0.trace_hash, "{file}");
        assert_ne!(outcome.trace_hash, run(&plan, 8).0.trace_hash, "{file}");
    }
}

#[test]
fn every_rack_passes_under_every_kind_of_fault_in_both_modes() {
    let faults: [Fault; 4] = [
        ("loss", |link| link.loss = 0.05),
        ("corrupt", |link| link.corrupt = 0.05),
        ("duplicate", |link| link.duplicate = 0.05),
        ("reorder", |link| link.reorder = 0.05),
    ];
    for file in RACKS {
        for mode in [RetransmissionMode::GoBackN, RetransmissionMode::Selective] {
            for (name, fault) in &faults {
                let mut plan = rack(file);
                plan.transport.mode = mode;
                plan.override_links(fault);
                let what = format!("{file}, {mode:?}, {name}");
                let (_, results, retransmitted) = run(&plan, 7);
                assert_pass(&what, &results);
                assert!(retransmitted > 0 || matches!(*name, "duplicate" | "reorder"), "{what}");
            }
        }
    }
}

#[test]
fn a_node_killed_at_any_moment_leaves_no_rank_hanging() {
    for file in RACKS {
        let plan = rack(file);
        let ends_at = run(&plan, 7).0.ended_at.0;
        for moment in 1..24 {
            let jobs = (0..4).map(|rank| rackloom_jobs::build(&plan, NodeId(rank), 7)).collect();
            let mut simulation = Simulation::new(&plan, 7, jobs);
            let killed_at = Instant(ends_at * moment / 24);
            simulation.schedule(killed_at, Action::Kill { member: NodeId(2) });
            let outcome = simulation.run().unwrap_or_else(|stalled| panic!("{file} at {moment}: {stalled}"));
            let alive: Vec<_> =
                outcome.members[..4].iter().filter(|state| **state != MemberState::Killed).collect();
            assert_eq!(alive, [&MemberState::Finished; 3], "{file} at {moment}");
            // All phases of the litmus involve every rank, so no rank can end before the death is detected.
            let timers = plan.timers_on(Clock::Virtual);
            let noticed_by = timers.heartbeat_interval_ns * u64::from(timers.heartbeat_miss_max);
            let took = outcome.ended_at.since(killed_at);
            assert!(took <= 2 * noticed_by, "{file} at {moment}: {took} ns");
            let lost: Vec<_> = simulation.take_jobs().iter_mut().map(|job| job.result().lost_nodes).collect();
            for rank in [0, 1, 3] {
                assert_eq!(lost[rank], ["n2"], "{file} at {moment}, rank {rank}");
            }
        }
    }
}
