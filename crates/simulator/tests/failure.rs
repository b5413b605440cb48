//! Members that die and cables that are cut.

mod common;

use common::{Counting, Rack, fetch_add, plan};
use rackloom_plan::impair::Direction;
use rackloom_protocol::{Event, Instant, NodeId, PortId};
use rackloom_simulator::{Action, MemberState, Simulation};

const INTERVAL_NS: u64 = 100_000;
const MISS_MAX: u64 = 4;
const DELAY_NS: u64 = 1_000;

fn rack_text(shape: &str) -> String {
    format!(
        "{{name: rack, shape: {{{shape}}}, link: {{delay: {DELAY_NS}ns}}, \
         timers: {{heartbeat_interval: {INTERVAL_NS}ns, heartbeat_miss_max: {MISS_MAX}, hello_interval: 50us}}, \
         transport: {{timeout_initial: 1ms, timeout_min: 100us, timeout_max: 10ms, ack_delay: 2us}}, watchdog: 1s}}"
    )
}

/// Returns when each living node reported the dead one lost: nanoseconds after the kill.
fn detections(rack: &Rack, dead: u16, killed_at: Instant) -> Vec<Option<u64>> {
    let lost = |node: u16| {
        let events = rack.simulation.events().iter();
        let mut found = events.filter(|recorded| {
            recorded.node == NodeId(node) && recorded.event == Event::NodeLost { node: NodeId(dead) }
        });
        found.next().map(|recorded| recorded.at.since(killed_at))
    };
    (0..rack.nodes).filter(|node| *node != dead).map(lost).collect()
}

#[test]
fn a_neighbour_detects_a_death_within_the_bound_at_any_phase() {
    for phase in 0..40 {
        let mut rack = Rack::up(&plan(&rack_text("ring: {nodes: 2}")), 1);
        rack.pass(1_000_000 + phase * INTERVAL_NS / 40 + phase);
        let killed_at = rack.simulation.now() + 1;
        rack.simulation.schedule(killed_at, Action::Kill { member: NodeId(1) });
        rack.pass(2 * MISS_MAX * INTERVAL_NS);
        let took = detections(&rack, 1, killed_at)[0].expect("the death is detected");
        let bound = (MISS_MAX - 1) * INTERVAL_NS + DELAY_NS..=MISS_MAX * INTERVAL_NS + DELAY_NS;
        assert!(took > *bound.start() && bound.contains(&took), "{took} ns at phase {phase}");
    }
}

#[test]
fn all_nodes_learn_of_a_death_at_most_one_flood_later() {
    for (shape, hops) in
        [("ring: {nodes: 6}", 6), ("full-mesh: {nodes: 4}", 2), ("star: {nodes: 4, planes: 2}", 2)]
    {
        let mut rack = Rack::up(&plan(&rack_text(shape)), 1);
        rack.pass(1_234_567);
        let killed_at = rack.simulation.now() + 1;
        rack.simulation.schedule(killed_at, Action::Kill { member: NodeId(2) });
        rack.pass(3 * MISS_MAX * INTERVAL_NS);
        for took in detections(&rack, 2, killed_at) {
            let took = took.expect("all nodes detect the death");
            assert!(took > (MISS_MAX - 1) * INTERVAL_NS + DELAY_NS, "{shape}: {took} ns");
            assert!(took <= MISS_MAX * INTERVAL_NS + DELAY_NS + hops * DELAY_NS, "{shape}: {took} ns");
        }
    }
}

/// Counters of fetch-adds at every node: [node][rank].
fn counters(simulation: &Simulation, nodes: u16) -> Vec<Vec<u64>> {
    let words = |node| {
        let bytes = simulation.memory(NodeId(node)).bytes(common::REGION);
        bytes.chunks(8).take(nodes.into()).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
    };
    (0..nodes).map(words).collect()
}

fn assert_all_counted(simulation: &Simulation, nodes: u16, rounds: u64) {
    for (node, words) in counters(simulation, nodes).iter().enumerate() {
        for (rank, count) in words.iter().enumerate() {
            assert_eq!(*count, if node == rank { 0 } else { rounds }, "rank {rank} at node {node}");
        }
    }
}

/// Runs the counting job with actions in the middle of it, and checks that they do come in the middle.
fn run_with(shape: &str, nodes: u16, rounds: u64, actions: &[(u64, Action)]) -> Simulation {
    let mut simulation = Simulation::new(&plan(&rack_text(shape)), 1, Counting::jobs(nodes, rounds));
    for (at, action) in actions {
        simulation.schedule(Instant(*at), *action);
    }
    simulation.step_until(Instant(actions[0].0 - 1)).unwrap();
    let counted: u64 = counters(&simulation, nodes).iter().flatten().sum();
    let total = u64::from(nodes) * u64::from(nodes - 1) * rounds;
    assert!(counted > total / 10 && counted < total * 9 / 10, "{counted} of {total} at the first action");
    simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
    simulation
}

#[test]
fn a_cut_ring_link_reroutes_the_job_around_the_ring() {
    let cut = Action::Cut { edge: 1, direction: None };
    let simulation = run_with("ring: {nodes: 4}", 4, 2_000, &[(500_000, cut)]);
    assert_all_counted(&simulation, 4, 2_000);
    let rerouted = simulation.events().iter().any(|recorded| {
        recorded.node == NodeId(1)
            && matches!(
                recorded.event,
                Event::PathChanged { destination: NodeId(2), to: Some(PortId(1)), .. }
            )
    });
    assert!(rerouted, "n1 reaches n2 through n0");
}

#[test]
fn a_ring_link_cut_in_one_direction_counts_as_cut() {
    let cut = Action::Cut { edge: 1, direction: Some(Direction::Forward) };
    let simulation = run_with("ring: {nodes: 4}", 4, 2_000, &[(500_000, cut)]);
    assert_all_counted(&simulation, 4, 2_000);
}

#[test]
fn a_killed_switch_leaves_the_job_to_the_other_plane() {
    for switch in [4, 5] {
        let kill = Action::Kill { member: NodeId(switch) };
        let simulation = run_with("star: {nodes: 4, planes: 2}", 4, 2_000, &[(500_000, kill)]);
        assert_all_counted(&simulation, 4, 2_000);
        assert_eq!(simulation.state(NodeId(switch)), MemberState::Killed);
    }
}

#[test]
fn a_killed_node_ends_the_job_of_all_others() {
    let simulation =
        run_with("full-mesh: {nodes: 4}", 4, 2_000, &[(500_000, Action::Kill { member: NodeId(3) })]);
    let states: Vec<_> = (0..4).map(|node| simulation.state(NodeId(node))).collect();
    assert_eq!(states[..3], [MemberState::Finished; 3]);
    assert_eq!(states[3], MemberState::Killed);
    for (node, words) in counters(&simulation, 4).iter().enumerate().take(3) {
        for (rank, count) in words.iter().enumerate().take(3).filter(|(rank, _)| *rank != node) {
            assert_eq!(*count, 2_000, "rank {rank} at node {node}: living nodes are not disturbed");
        }
    }
}

#[test]
fn a_node_paused_briefly_is_slow_and_not_lost() {
    let pause = Action::Pause { member: NodeId(2) };
    let resume = Action::Resume { member: NodeId(2) };
    let simulation =
        run_with("ring: {nodes: 4}", 4, 2_000, &[(500_000, pause), (500_000 + INTERVAL_NS, resume)]);
    assert_all_counted(&simulation, 4, 2_000);
    assert!(!simulation.events().iter().any(|recorded| matches!(recorded.event, Event::NodeLost { .. })));
}

#[test]
fn an_operation_to_a_dead_node_ends_as_an_error() {
    let mut rack = Rack::up(&plan(&rack_text("ring: {nodes: 2}")), 1);
    rack.simulation.schedule(rack.simulation.now() + 1, Action::Kill { member: NodeId(1) });
    rack.pass(10);
    rack.command(0, fetch_add(9, common::at(1, 0)));
    let done = rack.completions(0, 1);
    assert!(done[0].result.is_err(), "{done:?}");
}
