//! Forged reports of a neighbour with a valid identity: the rack recovers the correct state.

mod harness;

use std::cell::RefCell;
use std::rc::Rc;

use harness::*;
use rackloom_protocol::link::state::LinkState;
use rackloom_protocol::wire::control::{HELLO_BYTES, Hello, LinkReport};
use rackloom_protocol::wire::layout;
use rackloom_protocol::*;

const HEARTBEAT: u8 = 4;
const REPORT: u8 = 5;
const HELLO: u8 = 3;

/// Incarnation that the harness gives a member.
const fn incarnation(node: u64) -> Incarnation {
    Incarnation(1000 + node)
}

/// A ring of four, and a heartbeat that node 0 has sent to node 1.
fn ring_of_four() -> (Fabric, Vec<u8>) {
    let mut fabric = Fabric::up(ring(4), &options(RetransmissionMode::Selective));
    let caught = Rc::new(RefCell::new(Vec::new()));
    let sink = caught.clone();
    fabric.filter = Box::new(move |_, edge, forward, bytes| {
        if edge == 0 && forward && bytes[layout::VERSION_KIND] & 15 == HEARTBEAT {
            *sink.borrow_mut() = bytes.clone();
        }
        true
    });
    fabric.run_for(300_000);
    let heartbeat = caught.borrow().clone();
    fabric.events.clear();
    (fabric, heartbeat)
}

fn sealed(mut frame: Vec<u8>, kind: u8) -> Vec<u8> {
    frame[layout::VERSION_KIND] = layout::VERSION << 4 | kind;
    let length = frame.len() - layout::FABRIC;
    layout::put_u16(&mut frame, layout::LENGTH, length as u16);
    let check = wire::hop_check(&frame, true);
    layout::put_u32(&mut frame, layout::HOP_CHECK, check);
    frame
}

/// Delivers a report from node 0 to node 1 that no link of a member carries data.
fn give_report(fabric: &mut Fabric, heartbeat: &[u8], origin: u16, incarnation: Incarnation, number: u32) {
    let edges = fabric.graph.ports(NodeId(origin)).into_iter().map(|port| (port.edge, None)).collect();
    let report = LinkReport { origin: NodeId(origin), incarnation, number, edges, is_departure: false };
    let mut frame = heartbeat[..layout::FABRIC].to_vec();
    frame.resize(layout::FABRIC + report.encoded_bytes(), 0);
    report.write(&mut frame[layout::FABRIC..]);
    fabric.deliver(1, PortId(port_towards(fabric, 1, 0)), sealed(frame, REPORT));
}

fn give_hello(
    fabric: &mut Fabric,
    heartbeat: &[u8],
    incarnation: Incarnation,
    received_incarnation: Incarnation,
) {
    let hello = Hello {
        node: NodeId(0),
        port: PortId(0),
        plane: Plane(0),
        requests_answer: true,
        frame_bytes_max: 4352,
        incarnation,
        received_incarnation,
        options: 1,
    };
    let mut frame = heartbeat[..layout::FABRIC].to_vec();
    frame.resize(layout::FABRIC + HELLO_BYTES, 0);
    hello.write(&mut frame[layout::FABRIC..]);
    fabric.deliver(1, PortId(port_towards(fabric, 1, 0)), sealed(frame, HELLO));
}

fn port_towards(fabric: &Fabric, node: u16, neighbour: u16) -> u16 {
    let ports = fabric.graph.ports(NodeId(node));
    ports.iter().position(|port| port.neighbour == NodeId(neighbour)).expect("a neighbour") as u16
}

fn implausible(fabric: &mut Fabric) -> u64 {
    let port = port_towards(fabric, 1, 0);
    fabric.counters(1, port).dropped[DropReason::ImplausibleIncarnation as usize]
}

fn restarts(fabric: &Fabric) -> usize {
    fabric.events.iter().filter(|(.., event)| matches!(event, Event::NodeRestarted { .. })).count()
}

fn assert_whole(fabric: &mut Fabric) {
    fabric.run_until("the truth", Fabric::all_nodes_reach_each_other);
    for node in 0..4_u16 {
        let target = (node + 2) % 4;
        fabric
            .command(usize::from(node), put(100 + u64::from(node), at(target, 0), local(0, 9_000)))
            .unwrap();
    }
    for node in 0..4 {
        assert_eq!(fabric.finish(100 + node), Ok(0));
    }
    assert_eq!(restarts(fabric), 0);
}

// W-86
#[test]
fn a_member_contests_a_forged_report_about_itself() {
    for number in [2, 5_000, (1 << 31) - 1] {
        let (mut fabric, heartbeat) = ring_of_four();
        for origin in [3, 2, 1] {
            give_report(&mut fabric, &heartbeat, origin, incarnation(origin.into()), number);
        }
        fabric.run_for(400_000);
        assert_whole(&mut fabric);
    }
}

// W-86
#[test]
fn a_forged_report_with_the_largest_number_is_contested() {
    let (mut fabric, heartbeat) = ring_of_four();
    // Two steps around the circle of numbers, each as long as a member accepts.
    for number in [(1 << 31) - 1, u32::MAX - 1, u32::MAX] {
        give_report(&mut fabric, &heartbeat, 3, incarnation(3), number);
        give_report(&mut fabric, &heartbeat, 1, incarnation(1), number);
        fabric.run_for(400_000);
    }
    assert_whole(&mut fabric);
}

// W-87
#[test]
fn an_incarnation_from_the_future_is_refused() {
    let (mut fabric, heartbeat) = ring_of_four();
    for later in [u64::MAX, 1 << 60] {
        give_report(&mut fabric, &heartbeat, 3, Incarnation(later), 1);
        give_report(&mut fabric, &heartbeat, 2, Incarnation(later), 1);
        give_hello(&mut fabric, &heartbeat, Incarnation(later), incarnation(1));
    }
    assert_eq!(implausible(&mut fabric), 6);
    fabric.run_for(400_000);
    assert_whole(&mut fabric);
}

// W-88
#[test]
fn a_report_does_not_end_the_session_of_a_neighbour_whose_link_is_up() {
    let (mut fabric, heartbeat) = ring_of_four();
    fabric.command(1, put(1, at(2, 0), local(0, 200_000))).unwrap();
    give_report(&mut fabric, &heartbeat, 2, Incarnation(1_500), 1);
    assert_eq!(implausible(&mut fabric), 1);
    assert_eq!(fabric.finish(1), Ok(0));
    assert_whole(&mut fabric);
}

// W-89
#[test]
fn a_hello_without_the_receivers_incarnation_ends_no_session() {
    let (mut fabric, heartbeat) = ring_of_four();
    fabric.command(1, put(1, at(0, 0), local(0, 200_000))).unwrap();
    for later in [1_500, 2_000, 1_001] {
        give_hello(&mut fabric, &heartbeat, Incarnation(later), Incarnation(0));
    }
    let port = PortId(port_towards(&fabric, 1, 0));
    assert_eq!(fabric.link(1, port).state(), LinkState::Up);
    assert_eq!(fabric.finish(1), Ok(0));
    fabric.run_for(1_000_000);
    assert_eq!(fabric.link(1, port).neighbour_incarnation(), Some(incarnation(0)));
    assert_whole(&mut fabric);
}

// W-89
#[test]
fn a_forged_first_hello_does_not_block_the_neighbour() {
    let (_, heartbeat) = ring_of_four();
    let mut fabric = Fabric::new(ring(4), &options(RetransmissionMode::Selective));
    give_hello(&mut fabric, &heartbeat, Incarnation(1_500), Incarnation(0));
    assert_whole(&mut fabric);
}

// W-89
#[test]
fn a_restarted_neighbour_is_reached_although_hellos_are_lost() {
    let settings = options(RetransmissionMode::Selective);
    let (mut fabric, _) = ring_of_four();
    let mut hellos = 0;
    fabric.filter = Box::new(move |_, edge, _, bytes| {
        let is_hello = edge == 0 && bytes[layout::VERSION_KIND] & 15 == HELLO;
        hellos += u32::from(is_hello);
        // Every second one of the first hellos is lost.
        !is_hello || hellos > 6 || hellos % 2 == 0
    });
    fabric.kill(0);
    fabric.restart(0, &settings);
    fabric.run_for(3_000_000);
    fabric.run_until("the return", Fabric::all_nodes_reach_each_other);
    fabric.command(1, put(1, at(0, 0), local(0, 9_000))).unwrap();
    assert_eq!(fabric.finish(1), Ok(0));
}
