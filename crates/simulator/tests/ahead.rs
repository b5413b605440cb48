//! Members that run ahead of each other have the same outcome as members that run in step.

mod common;

use common::{Counting, REGION, REGION_BYTES, Rack, at, local, plan, put, store};
use rackloom_plan::impair::Direction;
use rackloom_protocol::{Instant, NodeId, PortId};
use rackloom_simulator::{Action, Outcome, RecordedEvent, Simulation};

const STAR: &str =
    "{name: star, shape: {star: {nodes: 5, planes: 2}}, link: {delay: 700ns, rate: 100Gbit/s}}";
const RETRY: &str = "{name: retry, shape: {star: {nodes: 5}}, link: {delay: 300ns, rate: 100Gbit/s, loss: 2%, duplicate: 1%, llr: on}}";
const LOSSY: &str = "{name: lossy, shape: {ring: {nodes: 5}}, checks: always, \
    link: {delay: 1us, rate: 100Gbit/s, loss: 3%, corrupt: 1%, duplicate: 2%}}";
const THROUGH: &str = "{name: through, shape: {star: {nodes: 5}}, forwarding: {mode: cut-through, latency: 90ns}, \
    link: {length: 30m, rate: 400Gbit/s}}";
const FAR: &str = "{name: far, shape: {ring: {nodes: 5}}, link: {delay: 90us, rate: 10Gbit/s}}";
const RACKS: [&str; 5] = [STAR, RETRY, LOSSY, THROUGH, FAR];

/// Results of a run.
#[derive(Debug, PartialEq)]
struct Seen {
    outcome: Outcome,
    events: Vec<RecordedEvent>,
    /// Trace hash of a time after the end.
    trace_hash: u64,
}

/// Returns the results of a run of five ranks.
fn outcome(text: &str, rounds: u64, in_step: bool, prepare: &impl Fn(&mut Simulation)) -> Seen {
    let mut simulation = Simulation::new(&plan(text), 5, Counting::jobs(5, rounds));
    if in_step {
        simulation.run_in_step();
    }
    prepare(&mut simulation);
    let mut outcome = simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
    // The number of frames that exist at once depends on the order in which members are polled.
    outcome.statistics.frames_alive_max = 0;
    let events = simulation.events().to_vec();
    simulation.step_until(outcome.ended_at + 300_000).unwrap_or_else(|stalled| panic!("{stalled}"));
    Seen { outcome, events, trace_hash: simulation.trace_hash() }
}

fn compare(text: &str, rounds: u64, prepare: impl Fn(&mut Simulation)) {
    let [ahead, in_step] = [false, true].map(|in_step| outcome(text, rounds, in_step, &prepare));
    assert_eq!(ahead.outcome, in_step.outcome, "{text}");
    assert_eq!(ahead.events, in_step.events, "{text}");
    assert_eq!(ahead.trace_hash, in_step.trace_hash, "after the end of {text}");
}

#[test]
fn a_run_ends_as_it_does_in_step() {
    for text in RACKS {
        (1..12).for_each(|rounds| compare(text, rounds, |_| {}));
    }
}

#[test]
fn actions_on_a_rack_happen_at_their_time() {
    let member = NodeId(2);
    for text in [STAR, RETRY, LOSSY] {
        compare(text, 200, |simulation| {
            for (at, action) in [
                (90_100, Action::Cut { edge: 1, direction: Some(Direction::Forward) }),
                (90_777, Action::Restore { edge: 1, direction: None }),
                (120_001, Action::Pause { member }),
                (150_003, Action::Resume { member }),
                (170_000, Action::Carrier { member, port: PortId(0), up: false }),
                (170_900, Action::Carrier { member, port: PortId(0), up: true }),
                (171_000, Action::DropDataFrame { edge: 0, direction: Direction::Backward, number: 2 }),
            ] {
                simulation.schedule(Instant(at), action);
            }
        });
    }
}

#[test]
fn a_stall_is_found_at_the_same_time() {
    let stalled = |in_step: bool| {
        let text = "{name: stalls, shape: {ring: {nodes: 5}}, watchdog: 3ms, link: {delay: 1us}}";
        let mut simulation = Simulation::new(&plan(text), 5, Counting::jobs(5, 1_000));
        if in_step {
            simulation.run_in_step();
        }
        simulation.schedule(Instant(60_000), Action::Pause { member: NodeId(1) });
        simulation.run().expect_err("a member stalls for ever")
    };
    assert_eq!(stalled(false), stalled(true));
}

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Returns the memories after transfers from, to and across the same bytes, and the hash of the run.
fn memories(text: &str, seed: u64, in_step: bool) -> (Vec<Vec<u8>>, u64) {
    let mut rack = Rack::up(&plan(text), 3);
    if in_step {
        rack.simulation.run_in_step();
    }
    let mut numbers = Numbers(seed);
    for node in 0..rack.nodes {
        let bytes = rack.simulation.memory_mut(NodeId(node)).bytes_mut(REGION);
        bytes.iter_mut().for_each(|byte| *byte = numbers.below(256) as u8);
    }
    for operation in 0..150 {
        let node = numbers.below(5) as u16;
        let other = (node + 1 + numbers.below(4) as u16) % 5;
        let length = [700, 4_096, 12_000, 16_384][numbers.below(4) as usize];
        let positions = (REGION_BYTES - length) / 4_096;
        let (here, there) = (numbers.below(positions) * 4_096, numbers.below(positions) * 4_096);
        match numbers.below(3) {
            0 => rack.command(node, store(operation, at(other, there), &[operation as u8; 200])),
            _ => rack.command(node, put(operation, at(other, there), local(here, length))),
        }
        rack.pass(numbers.below(3_000));
    }
    rack.pass(3_000_000);
    let memory = |node| rack.simulation.memory(NodeId(node)).bytes(REGION).to_vec();
    ((0..5).map(memory).collect(), rack.simulation.trace_hash())
}

#[test]
fn memories_are_equal_to_those_in_step() {
    for text in RACKS {
        for seed in 1..5 {
            let [ahead, in_step] = [false, true].map(|in_step| memories(text, seed, in_step));
            assert!(ahead.0 == in_step.0, "memories of {text}");
            assert_eq!(ahead.1, in_step.1, "{text}");
        }
    }
}
