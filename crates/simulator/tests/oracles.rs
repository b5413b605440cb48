//! What is watched after a run: a rack that comes back, and one that does not.

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
fn a_rack_that_was_cut_and_stood_still_comes_back_and_its_credits_come_home() {
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
fn a_rack_that_nobody_watches_tells_nothing() {
    let mut rack = Rack::new(&plan("{name: r, shape: {ring: {nodes: 2}}}"), 3);
    rack.simulation.heal_and_probe();
    assert!(rack.simulation.verdicts().is_empty());
}

#[test]
fn whoever_cannot_be_reached_when_everything_is_healed_breaks_progress_alone() {
    // Worse than any fault that a script brings: every frame is lost, and healing does not touch what the rack file says.
    let text = "{name: r, shape: {ring: {nodes: 2}}, link: {loss: 100%}}";
    let mut simulation = Simulation::new(&plan(text), 3, Vec::new());
    simulation.watch();
    simulation.heal_and_probe();
    assert_eq!(broken(&simulation, Oracle::Progress), Some(2));
    assert_eq!(simulation.verdicts().failures().len(), 1);
}
