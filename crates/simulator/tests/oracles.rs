//! Oracles after a run: a rack that recovers, and one that does not.

mod common;

use common::{REGION_BYTES, Rack, at, local, plan, put};
use rackloom_jobs::Oracle;
use rackloom_plan::impair::Direction;
use rackloom_protocol::{Instant, NodeId};
use rackloom_simulator::{Action, Simulation};

fn broken(simulation: &Simulation, oracle: Oracle) -> Option<u64> {
    simulation.verdicts().of(oracle).map(|tally| tally.broken)
}

#[test]
fn a_rack_recovers_after_cuts_and_pauses_and_its_credits_return() {
    let mut rack = Rack::up(&plan("{name: r, shape: {ring: {nodes: 4}}}"), 3);
    rack.simulation.watch();
    let from = rack.simulation.now();
    let cut = Action::Cut { edge: 0, direction: Some(Direction::Forward) };
    rack.simulation.schedule(from, cut);
    rack.simulation.schedule(from, Action::Pause { member: NodeId(2) });
    rack.simulation.command(NodeId(0), put(1, at(1, 0), local(0, REGION_BYTES / 2))).expect("it is taken");
    rack.simulation.step_until(Instant(from.0 + 2_000_000_000)).expect("no limit");
    rack.simulation.heal_and_probe();
    let tally = rack.simulation.verdicts();
    assert_eq!(tally.failures(), [""; 0]);
    assert!(tally.of(Oracle::Credits).is_some_and(|credits| credits.looked > 0));
}

#[test]
fn a_rack_without_a_ledger_has_no_findings() {
    let mut rack = Rack::new(&plan("{name: r, shape: {ring: {nodes: 2}}}"), 3);
    rack.simulation.heal_and_probe();
    assert!(rack.simulation.verdicts().is_empty());
}

#[test]
fn a_node_unreachable_after_healing_violates_only_the_progress_oracle() {
    // Worse than any fault of a script: every frame is lost, and healing does not change the rack file's loss.
    let text = "{name: r, shape: {ring: {nodes: 2}}, link: {loss: 100%}}";
    let mut simulation = Simulation::new(&plan(text), 3, Vec::new());
    simulation.watch();
    simulation.heal_and_probe();
    assert_eq!(broken(&simulation, Oracle::Progress), Some(2));
    assert_eq!(simulation.verdicts().failures().len(), 1);
}
