//! Nothing is allocated per frame once a rack is warm.

mod common;

use common::counted::{Counted, allocated};
use common::{Counting, plan};
use rackloom_simulator::Simulation;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

#[test]
fn a_warm_rack_carries_frames_without_allocating() {
    let text =
        "{name: ring, shape: {ring: {nodes: 4}}, packing: {mode: off}, link: {delay: 1us, rate: 100Gbit/s}}";
    let mut simulation = Simulation::new(&plan(text), 1, Counting::jobs(4, 1_000_000));
    // Warm: links up, buffers allocated, and the bounded recording of completions full.
    let mut until = rackloom_protocol::Instant::ZERO;
    let mut advance = |simulation: &mut Simulation, frames: u64| {
        let target = simulation.statistics().frames_delivered + frames;
        while simulation.statistics().frames_delivered < target {
            until = until + 100_000;
            simulation.step_until(until).unwrap();
        }
    };
    advance(&mut simulation, 200_000);
    let before = allocated();
    let frames_before = simulation.statistics().frames_delivered;
    advance(&mut simulation, 100_000);
    let (allocations, frames) =
        (allocated().count - before.count, simulation.statistics().frames_delivered - frames_before);
    assert!(frames >= 100_000);
    assert!(allocations <= frames / 10_000, "{allocations} allocations for {frames} frames");
}
