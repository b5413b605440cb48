//! Links and nodes that fail, recover and restart.

mod harness;

use harness::*;
use rackloom_protocol::wire::control::LinkReport;
use rackloom_protocol::wire::layout;
use rackloom_protocol::*;

fn selective() -> Options {
    options(RetransmissionMode::Selective)
}

/// Drops all frames on these edges.
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
fn a_dead_node_is_reported_by_all_nodes_within_the_detection_time() {
    let mut fabric = Fabric::up(ring(4), &selective());
    fabric.run_for(1_234_567);
    fabric.kill(2);
    let killed = fabric.now;
    fabric.run_for(1_000_000);
    let interval = TIMERS.heartbeat_interval_ns;
    let misses = u64::from(TIMERS.heartbeat_miss_max);
    for node in [0, 1, 3] {
        let noticed = lost_at(&fabric, node, 2).expect("every node detects it").since(killed);
        // A heartbeat left at most one interval before the death and arrives a delay later. The report takes
        // at most two hops to node 0.
        assert!(noticed > (misses - 1) * interval, "node {node} after {noticed} ns");
        assert!(noticed <= misses * interval + 3 * DELAY_NS, "node {node} after {noticed} ns");
    }
}

#[test]
fn operations_to_a_dead_node_end_with_correct_errors() {
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

fn flush(id: u64, target: Option<u16>) -> Command<'static> {
    Command::Flush { operation: OperationId(id), target: target.map(NodeId) }
}

#[test]
fn posted_stores_lost_by_a_death_fail_the_next_flush() {
    for target in [None, Some(2)] {
        let mut fabric = Fabric::up(ring(4), &selective());
        fabric.command(1, posted(at(3, 0), &[1])).unwrap();
        fabric.kill(2);
        fabric.command(1, posted(at(2, 0), &[1])).unwrap();
        fabric.run_until("the death is noticed", |fabric| lost_at(fabric, 1, 2).is_some());
        fabric.command(1, flush(1, Some(3))).unwrap();
        assert_eq!(fabric.finish(1), Ok(0), "what went elsewhere is there");
        fabric.command(1, flush(2, target)).unwrap();
        assert_eq!(fabric.finish(2), Err(OperationError::OutcomeUnknown));
        fabric.command(1, flush(3, None)).unwrap();
        assert_eq!(fabric.finish(3), Ok(0), "it is reported once");
    }
}

#[test]
fn posted_stores_that_were_visible_before_the_death_do_not_fail_the_flush() {
    let mut fabric = Fabric::up(ring(4), &selective());
    fabric.command(1, posted(at(2, 0), &[1])).unwrap();
    fabric.run_for(1_000_000);
    fabric.kill(2);
    fabric.run_until("the death is noticed", |fabric| lost_at(fabric, 1, 2).is_some());
    fabric.command(1, flush(1, None)).unwrap();
    assert_eq!(fabric.finish(1), Ok(0));
}

#[test]
fn a_flush_that_a_death_ends_covers_only_earlier_posted_stores() {
    for is_one_behind in [false, true] {
        let mut fabric = Fabric::up(ring(4), &selective());
        fabric.kill(2);
        fabric.command(1, posted(at(2, 0), &[1])).unwrap();
        fabric.command(1, flush(1, None)).unwrap();
        if is_one_behind {
            fabric.command(1, posted(at(2, 8), &[1])).unwrap();
        }
        assert_eq!(fabric.finish(1), Err(OperationError::OutcomeUnknown));
        fabric.command(1, flush(2, None)).unwrap();
        let expected = if is_one_behind { Err(OperationError::OutcomeUnknown) } else { Ok(0) };
        assert_eq!(fabric.finish(2), expected);
    }
}

#[test]
fn a_refused_posted_store_is_reported_even_if_its_target_dies_or_restarts() {
    for restarts in [false, true] {
        let options = selective();
        let mut fabric = Fabric::up(ring(4), &options);
        let wrong = RemoteAddress { key: Key(1), ..at(2, 0) };
        fabric.command(1, posted(wrong, &[1])).unwrap();
        fabric.run_for(1_000_000);
        fabric.kill(2);
        if restarts {
            fabric.restart(2, &options);
            fabric.run_for(20_000_000);
            assert!(fabric.endpoint(1).is_reachable(NodeId(2)));
        } else {
            fabric.run_until("the death is noticed", |fabric| lost_at(fabric, 1, 2).is_some());
        }
        fabric.command(1, flush(1, Some(2))).unwrap();
        assert_eq!(fabric.finish(1), Err(OperationError::EarlierFailure));
    }
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
fn a_command_to_an_unknown_or_lost_node_is_refused() {
    let mut fabric = Fabric::up(star(3, 1), &selective());
    let naming = |node: u16| {
        let peer = Some(NodeId(node));
        let wait = Command::WaitUntil {
            operation: OperationId(1),
            region: REGION,
            offset: 0,
            condition: Condition::Equal,
            value: 1,
            depends_on: peer,
        };
        let receive = Command::Receive {
            operation: OperationId(1),
            source: peer,
            tag: 0,
            ignore: 0,
            into: local(0, 8),
        };
        let store = store(1, at(node, 0), &[1]);
        (vec![Command::Fence { target: peer }, flush(1, Some(node)), receive, store], wait)
    };
    let (own, switch, unknown) = (0, 3, 99);
    for node in [own, switch, unknown] {
        let (commands, wait) = naming(node);
        for command in commands.into_iter().chain([wait]) {
            let refused = fabric.command(0, command);
            assert_eq!(refused, Err(CommandRefused::NoSuchNode(NodeId(node))), "{command:?}");
        }
    }
    fabric.kill(1);
    fabric.run_until("the death is noticed", |fabric| lost_at(fabric, 0, 1).is_some());
    for command in naming(1).0 {
        let refused = fabric.command(0, command);
        assert_eq!(refused, Err(CommandRefused::Unreachable(NodeId(1))), "{command:?}");
    }
}

#[test]
fn a_failed_flush_names_the_node() {
    let mut fabric = Fabric::up(ring(4), &selective());
    let wrong = RemoteAddress { key: Key(1), ..at(0, 0) };
    fabric.command(1, posted(wrong, &[1])).unwrap();
    fabric.run_for(1_000_000);
    fabric.kill(2);
    fabric.command(1, posted(at(2, 0), &[1])).unwrap();
    fabric.run_until("the death is noticed", |fabric| lost_at(fabric, 1, 2).is_some());
    for operation in 1..=3 {
        fabric.command(1, flush(operation, None)).unwrap();
    }
    let ends: Vec<_> = (1..=3).map(|operation| fabric.finish(operation)).collect();
    let mut reported = fabric.events.iter().filter_map(|(_, _, event)| match event {
        Event::FlushFailed { operation, node } => Some((operation.0, *node)),
        _ => None,
    });
    let mut pairs: Vec<_> =
        reported.by_ref().map(|(operation, node)| (node, ends[operation as usize - 1])).collect();
    pairs.sort_unstable();
    let (refused, lost) = (OperationError::EarlierFailure, OperationError::OutcomeUnknown);
    assert_eq!(pairs, [(NodeId(0), Err(refused)), (NodeId(2), Err(lost))]);
    assert_eq!(ends[2], Ok(0));
}

fn wait_for_seven(id: u64) -> Command<'static> {
    let (operation, condition, depends_on) = (OperationId(id), Condition::Equal, Some(NodeId(1)));
    Command::WaitUntil { operation, region: REGION, offset: 0, condition, value: 7, depends_on }
}

#[test]
fn a_store_of_a_node_that_died_later_ends_a_wait() {
    let mut fabric = Fabric::up(star(3, 1), &selective());
    fabric.command(1, store(1, at(0, 0), &[7])).unwrap();
    fabric.finish(1).unwrap();
    fabric.kill(1);
    fabric.run_until("the death is noticed", |fabric| lost_at(fabric, 0, 1).is_some());
    fabric.command(0, wait_for_seven(2)).unwrap();
    assert_eq!(fabric.finish(2), Ok(7));
    fabric.memory(0)[0] = 6;
    fabric.command(0, wait_for_seven(3)).unwrap();
    assert_eq!(fabric.finish(3), Err(OperationError::Unreachable));
}

#[test]
fn a_wait_that_the_owners_write_satisfies_does_not_end_as_a_loss() {
    let mut fabric = Fabric::up(star(3, 1), &selective());
    fabric.command(0, wait_for_seven(1)).unwrap();
    // The owner's own write wakes no wait, so the word is not read before the loss.
    fabric.memory(0)[0] = 7;
    fabric.kill(1);
    assert_eq!(fabric.finish(1), Ok(7));
}

#[test]
fn a_cut_ring_uses_the_other_direction() {
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
    assert_eq!(lost_at(&fabric, 0, 1), None, "no node is lost");
}

// W-25
#[test]
fn an_acknowledgement_lost_with_its_path_is_repeated_on_the_new_path() {
    let mut patient = selective();
    patient.transport.timeout_initial_ns = 1_000_000_000;
    patient.transport.timeout_max_ns = 1_000_000_000;
    let noticed_ns = TIMERS.heartbeat_interval_ns * u64::from(TIMERS.heartbeat_miss_max);
    for (from, to) in [(0, 2), (2, 0), (1, 3), (3, 1)] {
        for relay in (0..4).filter(|node| *node != from && *node != to) {
            let mut fabric = Fabric::up(ring(4), &patient);
            fabric.command(from, store(1, at(to as u16, 0), &[7])).unwrap();
            // The store is visible, and its acknowledgement is in flight.
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
fn a_cut_of_one_direction_is_detected_at_both_ends() {
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
fn a_star_uses_the_other_plane_and_reports_the_loss_of_the_last_one() {
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

/// Three nodes and two planes. Node 0 has lost one plane before the other one was up.
fn half_up() -> Fabric {
    let mut fabric = Fabric::new(star(3, 2), &selective());
    fabric.filter = cut(&[0]);
    fabric.run_until("bring-up over one plane", Fabric::all_nodes_reach_each_other);
    let now = fabric.now;
    assert!(now.0 < TIMERS.detection_ns() / 2, "time is left");
    fabric.command(0, store(1, at(1, 0), &[7])).unwrap();
    fabric.endpoint(0).handle_carrier(now, PortId(1), false);
    fabric
}

#[test]
fn losing_one_path_before_the_second_is_up_is_no_death() {
    let mut fabric = half_up();
    fabric.run_for(20_000);
    fabric.command(2, store(2, at(0, 0), &[8])).unwrap();
    fabric.command(0, store(3, at(2, 0), &[9])).unwrap();
    fabric.filter = Box::new(|_, _, _, _| true);
    for operation in 1..=3 {
        assert_eq!(fabric.finish(operation), Ok(0), "over the plane that came second");
    }
    let is_loss = |event: &Event| matches!(event, Event::NodeLost { .. });
    assert!(!fabric.events.iter().any(|(_, _, event)| is_loss(event)), "{:?}", fabric.events);
}

#[test]
fn a_missing_path_is_awaited_for_the_detection_time() {
    let mut fabric = half_up();
    assert_eq!(fabric.finish(1), Err(OperationError::OutcomeUnknown));
    let lost = lost_at(&fabric, 0, 1).expect("it has been given up");
    assert_eq!(lost, Instant(TIMERS.detection_ns()), "counted from the beginning of node 0");
}

#[test]
fn recovery_is_slower_than_loss() {
    let mut fabric = Fabric::up(ring(2), &selective());
    fabric.filter = cut(&[0]);
    fabric.run_until("departure", |fabric| lost_at(fabric, 0, 1).is_some());
    let departed = fabric.now;
    fabric.filter = Box::new(|_, _, _, _| true);
    fabric.run_until("return", Fabric::all_nodes_reach_each_other);
    let took = fabric.now.since(departed);
    assert!(took >= TIMERS.hold_down_ns, "{took} ns");
    fabric.command(0, store(1, at(1, 0), &[9])).unwrap();
    assert_eq!(fabric.finish(1), Ok(0), "the streams continue");
}

// W-23
#[test]
fn operations_given_up_during_a_partition_are_not_written_later() {
    let mut fabric = Fabric::up(ring(2), &selective());
    fabric.filter = Box::new(|_, _, forward, _| !forward);
    fabric.command(0, store(1, at(1, 0), &[66; 64])).unwrap();
    fabric.command(0, put(2, at(1, 1000), local(0, 50_000))).unwrap();
    assert_eq!(fabric.finish(1), Err(OperationError::OutcomeUnknown));
    assert_eq!(fabric.finish(2), Err(OperationError::OutcomeUnknown));
    fabric.filter = Box::new(|_, _, _, _| true);
    fabric.run_until("return", Fabric::all_nodes_reach_each_other);
    fabric.memory(0)[..50_000].fill(13);
    fabric.command(0, store(3, at(1, 500), &[5])).unwrap();
    fabric.command(0, put(4, at(1, 200_000), local(0, 10))).unwrap();
    assert_eq!(fabric.finish(3), Ok(0));
    assert_eq!(fabric.finish(4), Ok(0));
    assert!(fabric.memory(1)[..500].iter().all(|byte| *byte == 0));
    assert!(fabric.memory(1)[1000..51_000].iter().all(|byte| *byte == 0));
}

#[test]
fn a_restarted_node_gets_no_frame_for_its_earlier_incarnation() {
    let options = selective();
    let mut fabric = Fabric::up(ring(4), &options);
    fabric.command(1, store(1, at(2, 0), &[1])).unwrap();
    fabric.finish(1).unwrap();
    fabric.filter = Box::new(|_, edge, _, bytes| {
        // No frame for node 2 arrives any more. Its neighbours have not detected it yet.
        let data = bytes[layout::VERSION_KIND] & 15 == 1;
        !(data && (edge == 1 || edge == 2))
    });
    fabric.command(1, store(2, at(2, 8), &[2])).unwrap();
    fabric.run_for(20_000);
    fabric.kill(2);
    fabric.restart(2, &options);
    fabric.filter = Box::new(|_, _, _, _| true);
    assert_eq!(fabric.finish(2), Err(OperationError::OutcomeUnknown));
    fabric.run_until("rejoin", Fabric::all_nodes_reach_each_other);
    fabric.run_for(1_000_000);
    assert_eq!(fabric.memory(2)[8], 0, "never replayed to the new incarnation");
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

/// Drops the frames with a report of member `origin`, from all members.
fn without_reports_of(origin: u16) -> Filter {
    Box::new(move |_, _, _, bytes| {
        let is_report = bytes[layout::VERSION_KIND] & 15 == wire::frame::FrameKind::Report as u8;
        let body = || &bytes[layout::FABRIC..][..usize::from(layout::u16_at(bytes, layout::LENGTH))];
        let is_meant =
            |reports: Vec<LinkReport>| reports.iter().any(|report| report.origin == NodeId(origin));
        !(is_report && LinkReport::read_all(body()).is_some_and(is_meant))
    })
}

// W-63
#[test]
fn reports_of_an_earlier_incarnation_make_no_node_reachable() {
    let mut fabric = Fabric::up(ring(4), &selective());
    fabric.kill(2);
    fabric.run_until("the death is noticed", |fabric| {
        (0..4).all(|node| node == 2 || lost_at(fabric, node, 2).is_some())
    });
    fabric.restart(2, &selective());
    fabric.filter = without_reports_of(2);
    fabric.run_for(5_000_000);
    assert_eq!(fabric.endpoint(1).link_state(PortId(0)), LinkState::Up, "the links are up");
    assert_eq!(fabric.endpoint(3).link_state(PortId(1)), LinkState::Up);
    for node in [0, 1, 3] {
        assert!(
            !fabric.endpoint(node).is_reachable(NodeId(2)),
            "node {node} uses a report of the earlier incarnation"
        );
    }
    fabric.filter = Box::new(|_, _, _, _| true);
    fabric.run_until("the new incarnation is reported", Fabric::all_nodes_reach_each_other);
    for node in [0, 1, 3] {
        fabric.command(node, store(node as u64, at(2, 0), &[1])).unwrap();
        assert_eq!(fabric.finish(node as u64), Ok(0), "from node {node}");
    }
}

// W-64
#[test]
fn a_restarted_node_is_reached_by_reports_of_its_new_incarnation_only() {
    for (what, graph, victim, lossy_seed) in [
        ("ring of 2", ring(2), 1, None),
        ("ring of 4", ring(4), 2, None),
        ("ring of 5, lossy", ring(5), 2, Some(3)),
        ("star of 2 planes", star(3, 2), 1, None),
        ("star of 2 planes, lossy", star(4, 2), 1, Some(5)),
        ("mesh of 4", mesh(4), 3, None),
        ("mesh of 4, lossy", mesh(4), 3, Some(0)),
    ] {
        let options = selective();
        let nodes = graph.endpoint_count();
        let others: Vec<usize> = (0..nodes).filter(|node| *node != victim).collect();
        let mut fabric = Fabric::up(graph, &options);
        if let Some(seed) = lossy_seed {
            fabric.filter = lossy(100, seed);
        }
        fabric.kill(victim);
        fabric.run_until("the death is noticed by all", |fabric| {
            others.iter().all(|other| lost_at(fabric, *other, victim as u16).is_some())
        });
        fabric.restart(victim, &options);
        // A member that reaches the node uses it at once.
        let mut reached: Vec<usize> = Vec::new();
        for _ in 0..1_000_000 {
            for other in &others {
                if !reached.contains(other) && fabric.endpoint(*other).is_reachable(NodeId(victim as u16)) {
                    reached.push(*other);
                    let offset = 8 * *other as u64;
                    fabric.command(*other, store(*other as u64, at(victim as u16, offset), &[9])).unwrap();
                }
            }
            if reached.len() == others.len() {
                break;
            }
            fabric.step();
        }
        for other in &others {
            assert_eq!(fabric.finish(*other as u64), Ok(0), "{what}: member {other}");
        }
    }
}

#[test]
fn a_link_switched_off_by_the_user_moves_its_traffic_and_recovers() {
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
fn a_forwarder_decrements_the_hop_limit_and_drops_a_frame_at_zero() {
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
fn a_lost_report_is_repeated() {
    let mut fabric = Fabric::up(ring(4), &selective());
    // Edge 0 fails, and for a while all reports are lost.
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

/// A process that takes the seat of a dead one gets new cables. It was not they that failed.
#[test]
fn a_new_cable_carries_data_without_a_hold_down() {
    let time_to_return_ns = |has_new_cables: bool| {
        let mut fabric = Fabric::up(ring(3), &selective());
        fabric.kill(1);
        fabric.run_for(2 * TIMERS.detection_ns());
        fabric.restart(1, &selective());
        let now = fabric.now;
        for node in [0, 2].into_iter().filter(|_| has_new_cables) {
            let ports = (0..2).map(PortId);
            let led = |port: &PortId| fabric.link(node, *port).config.neighbour == NodeId(1);
            let ports: Vec<_> = ports.filter(led).collect();
            assert_eq!(ports.len(), 1);
            ports.into_iter().for_each(|port| fabric.endpoint(node).handle_new_cable(now, port));
        }
        fabric.run_until("the successor is reached", Fabric::all_nodes_reach_each_other);
        fabric.now.since(now)
    };
    assert!(time_to_return_ns(false) > TIMERS.hold_down_ns / 2);
    assert!(time_to_return_ns(true) < TIMERS.hold_down_ns / 10);
}
