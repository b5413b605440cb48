//! One seed, one history.

mod common;

use std::sync::{Arc, Mutex};

use common::{Counting, plan};
use rackloom_plan::impair::{Direction, Verdict};
use rackloom_protocol::{DropReason, Instant};
use rackloom_simulator::{FrameObserver, MemberState, Outcome, Simulation};

const LOSSY: &str = "{name: lossy, shape: {ring: {nodes: 4}}, checks: always, \
    link: {delay: 1us, rate: 100Gbit/s, loss: 0.05, corrupt: 0.02, duplicate: 0.02, reorder: 0.02}}";
const CLEAN: &str = "{name: clean, shape: {ring: {nodes: 4}}, link: {delay: 1us, rate: 100Gbit/s}}";

fn outcome(text: &str, seed: u64) -> Outcome {
    let mut simulation = Simulation::new(&plan(text), seed, Counting::jobs(4, 50));
    simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"))
}

#[test]
fn the_same_seed_repeats_the_whole_run() {
    let first = outcome(LOSSY, 7);
    assert_eq!(first, outcome(LOSSY, 7));
    assert_eq!(first.members, [MemberState::Finished; 4]);
    assert!(first.statistics.frames_dropped > 0);
    assert_eq!(first.trace_hash_text().len(), 16);
}

#[test]
fn a_different_seed_changes_the_run() {
    assert_ne!(outcome(LOSSY, 7).trace_hash, outcome(LOSSY, 8).trace_hash);
}

#[test]
fn a_different_plan_changes_the_run() {
    assert_ne!(outcome(LOSSY, 7).trace_hash, outcome(CLEAN, 7).trace_hash);
}

#[test]
fn nodes_of_one_server_repeat_the_whole_run_and_send_fewer_frames() {
    let run = |force_wire: bool| {
        let text = format!(
            "{{name: box, shape: {{ring: {{nodes: 4}}}}, servers: {{a: [n0, n1, n2]}}, force_wire: {force_wire}, \
             link: {{rate: 100Gbit/s, delay: 1us}}, job: {{litmus: {{bytes_max: 4KiB, rounds: 2}}}}}}"
        );
        let plan = plan(&text);
        let jobs =
            (0..4).map(|rank| rackloom_jobs::build(&plan, rackloom_protocol::NodeId(rank), 7)).collect();
        Simulation::new(&plan, 7, jobs).run().unwrap_or_else(|stalled| panic!("{stalled}"))
    };
    let local = run(false);
    assert_eq!(local, run(false));
    assert!(local.statistics.frames_sent < run(true).statistics.frames_sent);
}

#[test]
fn every_fetch_add_counts_once_under_every_fault() {
    let mut simulation = Simulation::new(&plan(LOSSY), 3, Counting::jobs(4, 50));
    simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
    for node in 0..4_u16 {
        let bytes = simulation.memory(rackloom_protocol::NodeId(node)).bytes(common::REGION);
        let words: Vec<u64> =
            bytes[..32].chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
        let expected: Vec<u64> = (0..4).map(|rank| if rank == node { 0 } else { 50 }).collect();
        assert_eq!(words, expected, "at node {node}");
    }
}

#[test]
fn the_hook_sees_every_frame_that_a_member_sends() {
    let mut simulation = Simulation::new(&plan(LOSSY), 7, Counting::jobs(4, 50));
    let seen = Arc::new(Mutex::new(0_u64));
    let count = Arc::clone(&seen);
    simulation.on_frame(move |_, _, _, _| *count.lock().unwrap() += 1);
    simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
    assert_eq!(*seen.lock().unwrap(), simulation.statistics().frames_sent);
}

/// Faults of each frame of the first link, by direction; without the index of the flipped bit, which depends on the frame's length.
type Verdicts = [Vec<(bool, bool, bool, u8)>; 2];

struct VerdictRecorder(Arc<Mutex<Verdicts>>);

impl FrameObserver for VerdictRecorder {
    fn sent(&mut self, _: Instant, edge: u16, direction: Direction, _: &[u8], verdict: &Verdict) {
        let Verdict { drop, corrupt_bit, duplicate, reorder_by } = *verdict;
        if edge == 0 {
            let mut verdicts = self.0.lock().unwrap();
            let link_direction = usize::from(direction == Direction::Backward);
            verdicts[link_direction].push((drop, corrupt_bit.is_some(), duplicate, reorder_by));
        }
    }
    fn not_used(&mut self, _: Instant, _: u16, _: Direction, _: &[u8], _: DropReason) {}
    fn lost(&mut self, _: Instant, _: u16, _: Direction, _: &[u8], _: &str) {}
}

fn verdicts_of_the_first_link(shape: &str, nodes: u16) -> Verdicts {
    let text = format!(
        "{{name: grows, shape: {{custom: {shape}}}, checks: always, \
         links: {{a--b: {{loss: 5%, corrupt: 2%, duplicate: 3%, reorder: 3%, burst: {{enter: 1%, leave: 30%}}}}}}}}"
    );
    let mut simulation = Simulation::new(&plan(&text), 11, Counting::jobs(nodes, 6_000));
    let verdicts = Arc::new(Mutex::new(Verdicts::default()));
    simulation.observe_frames(VerdictRecorder(Arc::clone(&verdicts)));
    simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
    let mut verdicts = verdicts.lock().unwrap();
    std::mem::take(&mut *verdicts)
}

#[test]
fn an_added_link_changes_no_fault_of_the_others() {
    let small = verdicts_of_the_first_link("{nodes: [a, b], links: [{a: a, b: b}]}", 2);
    let large = verdicts_of_the_first_link(
        "{nodes: [a, b, c], links: [{a: a, b: b}, {a: b, b: c}, {a: c, b: a, parallel: 2}]}",
        3,
    );
    for (small, large) in small.iter().zip(&large) {
        let common = small.len().min(large.len());
        let dropped = small[..common].iter().filter(|(drop, ..)| *drop).count();
        assert!(dropped > 10, "{dropped} of {common} frames were lost");
        assert_eq!(small[..common], large[..common]);
    }
}
