//! Links and nodes that die, return, and are restarted.

mod harness;

use harness::*;
use rackloom_protocol::wire::layout;
use rackloom_protocol::*;

fn selective() -> Options {
    options(RetransmissionMode::Selective)
}

/// Drop everything on these edges.
fn cut(edges: &'static [u16]) -> Filter {
    Box::new(move |_, edge, _, _| !edges.contains(&edge))
}

fn lost_at(fabric: &Fabric, node: usize, dead: u16) -> Option<Instant> {
    fabric.events.iter().find_map(|(time, at, event)| {
        (*at == node && *event == Event::NodeLost { node: NodeId(dead) }).then_some(*time)
    })
}

// W-17
#[test]
fn a_dead_node_is_named_by_everybody_within_the_bound() {
    let mut fabric = Fabric::up(ring(4), &selective());
    fabric.run_for(1_234_567);
    fabric.kill(2);
    let killed = fabric.now;
    fabric.run_for(1_000_000);
    let interval = TIMERS.heartbeat_interval_ns;
    let misses = u64::from(TIMERS.heartbeat_miss_max);
    for node in [0, 1, 3] {
        let noticed = lost_at(&fabric, node, 2).expect("everybody notices").since(killed);
        // A heartbeat left at most one interval before the death and arrives a delay later; the news takes two hops at
        // most to node 0.
        assert!(noticed > (misses - 1) * interval, "node {node} after {noticed} ns");
        assert!(noticed <= misses * interval + 3 * DELAY_NS, "node {node} after {noticed} ns");
    }
}

#[test]
fn operations_to_a_dead_node_end_as_errors_and_say_the_truth() {
    let mut fabric = Fabric::up(ring(4), &selective());
    fabric.kill(2);
    fabric.command(1, store(1, at(2, 0), &[1])).unwrap();
    fabric.command(1, fetch_add(2, at(2, 8), 1)).unwrap();
    fabric.command(1, load(3, at(2, 0), local(0, 8))).unwrap();
    fabric.command(1, put(4, at(2, 0), local(0, 1_000_000))).unwrap();
    fabric.command(1, put(5, at(2, 0), local(0, 100))).unwrap();
    fabric.command(1, Command::Flush { operation: OperationId(6), target: None }).unwrap();
    assert_eq!(fabric.finish(1), Err(OperationError::OutcomeUnknown), "it was sent");
    assert_eq!(fabric.finish(2), Err(OperationError::OutcomeUnknown));
    assert_eq!(fabric.finish(3), Err(OperationError::Unreachable), "a load changes nothing");
    assert_eq!(fabric.finish(4), Err(OperationError::OutcomeUnknown));
    assert_eq!(fabric.finish(5), Err(OperationError::Unreachable), "it was still behind the window");
    assert_eq!(fabric.finish(6), Err(OperationError::OutcomeUnknown));
    let refused = fabric.command(1, store(7, at(2, 0), &[1]));
    assert_eq!(refused, Err(CommandRefused::Unreachable(NodeId(2))));
}

#[test]
fn a_wait_for_a_dead_node_ends() {
    let mut fabric = Fabric::up(star(3, 1), &selective());
    let wait = Command::WaitUntil {
        operation: OperationId(1),
        region: REGION,
        offset: 0,
        condition: Condition::Equal,
        value: 1,
        depends_on: Some(NodeId(1)),
    };
    fabric.command(0, wait).unwrap();
    fabric.kill(1);
    assert_eq!(fabric.finish(1), Err(OperationError::Unreachable));
}

#[test]
fn a_cut_ring_goes_the_other_way_round() {
    let mut fabric = Fabric::up(ring(4), &selective());
    fabric.filter = cut(&[0]);
    fabric.command(0, put(1, at(1, 0), local(0, 500_000))).unwrap();
    fabric.command(1, fetch_add(2, at(0, 900_000), 1)).unwrap();
    assert_eq!(fabric.finish(1), Ok(0));
    assert_eq!(fabric.finish(2), Ok(0));
    assert_eq!(fabric.memory(0)[900_000], 1, "exactly once");
    let moved = fabric.events.iter().any(|(_, node, event)| {
        *node == 0 && matches!(event, Event::PathChanged { destination: NodeId(1), to: Some(PortId(1)), .. })
    });
    assert!(moved);
    assert_eq!(lost_at(&fabric, 0, 1), None, "nobody is lost");
}

// W-25
#[test]
fn an_acknowledgement_that_died_with_its_path_is_repeated_on_the_new_one() {
    let mut patient = selective();
    patient.transport.timeout_initial_ns = 1_000_000_000;
    patient.transport.timeout_max_ns = 1_000_000_000;
    let noticed_ns = TIMERS.heartbeat_interval_ns * u64::from(TIMERS.heartbeat_miss_max);
    for (from, to) in [(0, 2), (2, 0), (1, 3), (3, 1)] {
        for relay in (0..4).filter(|node| *node != from && *node != to) {
            let mut fabric = Fabric::up(ring(4), &patient);
            fabric.command(from, store(1, at(to as u16, 0), &[7])).unwrap();
            // The store is there, and its acknowledgement on the way.
            fabric.run_for(2 * DELAY_NS + DELAY_NS / 2);
            fabric.kill(relay);
            let killed = fabric.now;
            assert_eq!(fabric.finish(1), Ok(0));
            let took_ns = fabric.now.since(killed);
            assert!(took_ns <= noticed_ns + 10 * DELAY_NS, "{from} to {to} past {relay}: {took_ns} ns");
        }
    }
}

#[test]
fn a_one_way_cut_is_noticed_at_both_ends() {
    let mut fabric = Fabric::up(ring(4), &selective());
    fabric.filter = Box::new(|_, edge, forward, _| !(edge == 0 && forward));
    fabric.command(0, put(1, at(1, 0), local(0, 100_000))).unwrap();
    fabric.command(1, put(2, at(0, 500_000), local(0, 100_000))).unwrap();
    assert_eq!(fabric.finish(1), Ok(0));
    assert_eq!(fabric.finish(2), Ok(0));
    fabric.run_for(1_000_000);
    assert!(!fabric.endpoint(0).link_state(PortId(0)).carries_data());
    assert!(!fabric.endpoint(1).link_state(PortId(1)).carries_data());
}

#[test]
fn a_mesh_uses_a_relay() {
    let mut fabric = Fabric::up(mesh(4), &selective());
    fabric.filter = cut(&[0]);
    fabric.command(0, put(1, at(1, 0), local(0, 100_000))).unwrap();
    assert_eq!(fabric.finish(1), Ok(0));
    let passed: u64 = [2usize, 3]
        .into_iter()
        .flat_map(|node| [(node, 0), (node, 1), (node, 2)])
        .map(|(node, port)| fabric.counters(node, port).forwarded)
        .sum();
    assert!(passed > 0);
}

#[test]
fn a_star_that_loses_a_plane_uses_the_other_and_with_no_plane_left_says_so() {
    let mut fabric = Fabric::up(star(4, 2), &selective());
    fabric.kill(4);
    for node in 0..4u16 {
        fabric
            .command(usize::from(node), put(u64::from(node), at((node + 1) % 4, 0), local(0, 100_000)))
            .unwrap();
    }
    for id in 0..4 {
        assert_eq!(fabric.finish(id), Ok(0));
    }
    fabric.kill(5);
    fabric.run_for(1_000_000);
    assert!(lost_at(&fabric, 0, 3).is_some());
}

#[test]
fn return_is_slower_than_departure() {
    let mut fabric = Fabric::up(ring(2), &selective());
    fabric.filter = cut(&[0]);
    fabric.run_until("departure", |fabric| lost_at(fabric, 0, 1).is_some());
    let departed = fabric.now;
    fabric.filter = Box::new(|_, _, _, _| true);
    fabric.run_until("return", Fabric::everyone_reaches_everyone);
    let took = fabric.now.since(departed);
    assert!(took >= TIMERS.hold_down_ns, "{took} ns");
    fabric.command(0, store(1, at(1, 0), &[9])).unwrap();
    assert_eq!(fabric.finish(1), Ok(0), "the streams go on where they were");
}

// W-23
#[test]
fn what_was_given_up_during_a_partition_is_not_written_later() {
    let mut fabric = Fabric::up(ring(2), &selective());
    fabric.filter = Box::new(|_, _, forward, _| !forward);
    fabric.command(0, store(1, at(1, 0), &[66; 64])).unwrap();
    fabric.command(0, put(2, at(1, 1000), local(0, 50_000))).unwrap();
    assert_eq!(fabric.finish(1), Err(OperationError::OutcomeUnknown));
    assert_eq!(fabric.finish(2), Err(OperationError::OutcomeUnknown));
    fabric.filter = Box::new(|_, _, _, _| true);
    fabric.run_until("return", Fabric::everyone_reaches_everyone);
    fabric.memory(0)[..50_000].fill(13);
    fabric.command(0, store(3, at(1, 500), &[5])).unwrap();
    fabric.command(0, put(4, at(1, 200_000), local(0, 10))).unwrap();
    assert_eq!(fabric.finish(3), Ok(0));
    assert_eq!(fabric.finish(4), Ok(0));
    assert!(fabric.memory(1)[..500].iter().all(|byte| *byte == 0));
    assert!(fabric.memory(1)[1000..51_000].iter().all(|byte| *byte == 0));
}

#[test]
fn a_restarted_node_gets_nothing_of_its_former_life() {
    let options = selective();
    let mut fabric = Fabric::up(ring(4), &options);
    fabric.command(1, store(1, at(2, 0), &[1])).unwrap();
    fabric.finish(1).unwrap();
    fabric.filter = Box::new(|_, edge, _, bytes| {
        // Nothing for node 2 arrives any more, though its neighbours do not know it yet.
        let data = bytes[layout::VERSION_KIND] & 15 == 1;
        !(data && (edge == 1 || edge == 2))
    });
    fabric.command(1, store(2, at(2, 8), &[2])).unwrap();
    fabric.run_for(20_000);
    fabric.kill(2);
    fabric.restart(2, &options);
    fabric.filter = Box::new(|_, _, _, _| true);
    assert_eq!(fabric.finish(2), Err(OperationError::OutcomeUnknown));
    fabric.run_until("rejoin", Fabric::everyone_reaches_everyone);
    fabric.run_for(1_000_000);
    assert_eq!(fabric.memory(2)[8], 0, "never replayed into the new life");
    fabric.command(1, store(3, at(2, 16), &[3])).unwrap();
    assert_eq!(fabric.finish(3), Ok(0));
    assert_eq!(fabric.memory(2)[16], 3);
    assert!(
        fabric
            .events
            .iter()
            .any(|(_, node, event)| { *node == 1 && *event == Event::NodeRestarted { node: NodeId(2) } })
    );
}

#[test]
fn a_link_switched_off_by_the_user_moves_traffic_and_comes_back() {
    let mut fabric = Fabric::up(ring(4), &selective());
    let now = fabric.now;
    fabric.endpoint(0).administer_link(now, PortId(0), false);
    fabric.run_for(500_000);
    fabric.command(0, store(1, at(1, 0), &[1])).unwrap();
    assert_eq!(fabric.finish(1), Ok(0));
    assert_eq!(fabric.endpoint(0).link_state(PortId(0)), LinkState::AdminDown);
    let now = fabric.now;
    fabric.endpoint(0).administer_link(now, PortId(0), true);
    fabric.run_for(3_000_000);
    assert_eq!(fabric.endpoint(0).link_state(PortId(0)), LinkState::Up);
}

// W-5
#[test]
fn a_forwarder_lowers_the_hop_limit_and_drops_a_frame_at_its_end() {
    let mut fabric = Fabric::up(ring(4), &selective());
    let seen = std::rc::Rc::new(std::cell::RefCell::new(std::collections::BTreeSet::new()));
    let sink = seen.clone();
    fabric.filter = Box::new(move |_, _, _, bytes| {
        if bytes[layout::VERSION_KIND] & 15 == 1 {
            sink.borrow_mut().insert(bytes[layout::HOP_LIMIT]);
        }
        true
    });
    fabric.command(0, store(1, at(2, 0), &[1])).unwrap();
    fabric.finish(1).unwrap();
    assert_eq!(seen.borrow().iter().copied().collect::<Vec<_>>(), [254, 255]);
    fabric.filter = Box::new(|_, _, _, bytes| {
        if bytes[layout::VERSION_KIND] & 15 == 1 {
            bytes[layout::HOP_LIMIT] = 1;
            let check = rackloom_protocol::wire::hop_check(bytes, false);
            layout::put_u32(bytes, layout::HOP_CHECK, check);
        }
        true
    });
    fabric.command(0, store(2, at(2, 8), &[1])).unwrap();
    fabric.run_for(20_000);
    assert_eq!(fabric.memory(2)[8], 0);
    let dropped = [1usize, 3]
        .into_iter()
        .flat_map(|node| [(node, 0), (node, 1)])
        .map(|(node, port)| fabric.counters(node, port).dropped_for(DropReason::HopLimit));
    assert!(dropped.sum::<u64>() > 0);
}

// W-18
#[test]
fn a_lost_report_is_told_again() {
    let mut fabric = Fabric::up(ring(4), &selective());
    // Edge 0 dies, and for a while nobody hears a report about anything.
    fabric.filter = Box::new(|_, edge, _, bytes| edge != 0 && bytes[layout::VERSION_KIND] & 15 != 5);
    fabric.run_for(600_000);
    fabric.command(3, store(1, at(1, 0), &[1])).unwrap();
    fabric.filter = cut(&[0]);
    fabric.run_for(600_000);
    fabric.command(3, store(2, at(0, 0), &[2])).unwrap();
    assert_eq!(fabric.finish(1), Ok(0));
    assert_eq!(fabric.finish(2), Ok(0));
    fabric.command(2, put(3, at(0, 0), local(0, 100_000))).unwrap();
    fabric.command(2, put(4, at(1, 0), local(0, 100_000))).unwrap();
    assert_eq!(fabric.finish(3), Ok(0));
    assert_eq!(fabric.finish(4), Ok(0));
}
