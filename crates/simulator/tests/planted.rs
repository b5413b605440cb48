//! Planted bugs are found by drawn fault scripts, and made small. Built only with the feature `planted-bugs`, which
//! `scripts/ci.sh` enables in this crate alone: the bug must reach the protocol, and no crate above the simulator has
//! to be built again.
//!
//! `tests/planted.rs` of the whole project tests the command with planted bugs (files, exit codes).

mod common;

use std::sync::{Mutex, PoisonError};

use common::plan;
use rackloom_jobs::collective::Inputs;
use rackloom_jobs::{build, build_all};
use rackloom_plan::faults::{DrawLimits, FaultScript, draw, shrink};
use rackloom_plan::{Checks, Clock, Plan};
use rackloom_protocol::NodeId;
use rackloom_protocol::planted::{PlantedBug, plant};
use rackloom_simulator::{MemberState, Simulation};

/// Scripts until a bug counts as not found.
const RUNS: u64 = 4_000;

/// A rack that performs every kind of operation and counts each fetch-add.
const LITMUS: &str =
    "{name: planted, shape: {ring: {nodes: 3}}, job: {litmus: {bytes_max: 2KiB, rounds: 1}}}";
/// The litmus on a star, so that a neighbour's death is not one's own loss.
const STAR: &str = "{name: planted, shape: {star: {nodes: 3}}, job: {litmus: {bytes_max: 2KiB, rounds: 1}}}";
/// Several frames for each signal.
const SUMS: &str = "{name: planted, shape: {ring: {nodes: 4}}, \
                    job: {collective: {algorithm: ring, bytes: 64KiB, repetitions: 3, warm_up: 1}}}";

/// The bug is global to the process, so one test at a time has one.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Returns the failure of a run, if any: it stalled, an oracle found something, or bytes are wrong.
fn wrong(plan: &Plan, script: &FaultScript) -> Option<String> {
    let ranks = (0..plan.endpoint_count()).map(|rank| NodeId(rank as u16));
    let mut simulation = Simulation::new(
        plan,
        plan.settings.seed,
        ranks.map(|rank| build(plan, rank, plan.settings.seed)).collect(),
    );
    simulation.limit_events(20_000_000);
    simulation.watch();
    simulation.play(script, plan, plan.settings.seed);
    if let Err(stalled) = simulation.run() {
        return Some(stalled.to_string());
    }
    simulation.heal_and_probe();
    let seen = simulation.verdicts().failures().into_iter().next();
    let is_live = |rank: usize| simulation.state(NodeId(rank as u16)) != MemberState::Killed;
    let living: Vec<_> = (0..plan.endpoint_count()).map(is_live).collect();
    let mut jobs = simulation.take_jobs();
    let results = jobs.iter_mut().zip(living).filter(|(_, is_live)| *is_live).map(|(job, _)| job.result());
    let mismatches: u64 = results.map(|result| result.mismatch_count).sum();
    // Where memory refuses correct accesses, a job reports mismatches, too.
    seen.or_else(|| (mismatches > 0 && !script.refuses()).then(|| format!("{mismatches} wrong bytes")))
}

/// Draws scripts until the bug shows, makes the script small, and checks that the script passes without the bug.
fn is_found_and_small(bug: PlantedBug, rack: &str) {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut plan = plan(rack);
    plan.change(|plan| plan.settings.checks = Checks::Always);
    plant(None);
    let mut baseline = Simulation::new(
        &plan,
        plan.settings.seed,
        (0..plan.endpoint_count())
            .map(|rank| build(&plan, NodeId(rank as u16), plan.settings.seed))
            .collect(),
    );
    let took_ns = baseline.run().expect("it ends").ended_at.0;
    let reach =
        DrawLimits { begin_ns: 2 * took_ns, last_ns: 2 * plan.timers_on(Clock::Virtual).detection_ns() };
    plant(Some(bug));
    let mut scripts = (1..=RUNS).map(|number| draw(&plan, number, reach));
    let found = scripts.find(|script| wrong(&plan, script).is_some());
    let script = found.unwrap_or_else(|| panic!("{} was not found", bug.name()));
    let small = shrink(&script, 400, |candidate| wrong(&plan, candidate).is_some());
    let (text, reason) = (small.to_text(&plan), wrong(&plan, &small));
    assert!(small.events.len() <= 3, "{}: not small:\n{text}", bug.name());
    assert!(reason.is_some(), "{}: the small script passes", bug.name());
    plant(None);
    assert_eq!(wrong(&plan, &small), None, "{}: it fails without the bug:\n{text}", bug.name());
}

#[test]
fn packets_taken_twice_are_found() {
    is_found_and_small(PlantedBug::TakenTwice, LITMUS);
}

#[test]
fn a_signal_that_overtakes_its_data_is_found() {
    is_found_and_small(PlantedBug::SignalOvertakesData, SUMS);
}

#[test]
fn operations_that_are_acknowledged_before_they_are_visible_are_found() {
    is_found_and_small(PlantedBug::AckBeforeVisible, SUMS);
}

/// Drawn scripts rarely lose all reports for longer than a link stays down, which this bug needs: it has its own script.
#[test]
fn used_frames_to_earlier_incarnations_are_found() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let plan = plan(STAR);
    let text = "name: reborn\nevents:\n  \
         - {what: loss, where: s0->n0, rate: 1.0, kinds: [report], at: 5us, for: 5s}\n  \
         - {what: kill, where: n1, at: 10us, for: 20us}\n\
         expect: {ends: right-or-clean-error, happen: any}\n";
    let script = FaultScript::parse(text, "reborn", &plan).unwrap_or_else(|error| panic!("{error}"));
    let sees = |bug| {
        plant(bug);
        wrong(&plan, &script).is_some_and(|reason| reason.contains("oracle incarnations"))
    };
    assert!(sees(Some(PlantedBug::StaleEpochTaken)));
    assert!(!sees(None));
}

#[test]
fn credits_that_leak_are_found() {
    is_found_and_small(PlantedBug::CreditLeak, SUMS);
}

/// The check of the job itself, without the simulator's oracles.
#[test]
fn a_collective_without_payload_finds_packets_that_are_taken_twice_and_data_behind_their_signal() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let link = "link: {rate: 100Gbit/s, duplicate: 5%, loss: 5%}";
    let job = "job: {collective: {algorithm: ring, bytes: 256KiB, repetitions: 2, warm_up: 1}}";
    let plan =
        plan(&format!("{{name: elided, shape: {{ring: {{nodes: 4}}}}, payload: elided, {link}, {job}}}"));
    let failures = |bug| {
        plant(bug);
        let mut simulation = Simulation::new(&plan, 7, build_all(&plan, 7, &Inputs::Pattern));
        simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
        plant(None);
        let mut jobs = simulation.take_jobs();
        let results = jobs.iter_mut().map(|job| job.result());
        results.flat_map(|result| result.failures).map(|failure| format!("{failure:?}")).collect::<Vec<_>>()
    };
    assert_eq!(failures(None), [""; 0]);
    for (bug, reason) in [
        (PlantedBug::TakenTwice, "bytes of all-reduce arrived in the"),
        (PlantedBug::SignalOvertakesData, "arrived before its data"),
    ] {
        let found = failures(Some(bug));
        assert!(found.iter().any(|failure| failure.contains(reason)), "{}: {found:?}", bug.name());
    }
}
