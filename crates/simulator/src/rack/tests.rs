//! Tests of the engine with members so simple that every frame's time can be calculated.

use std::sync::{Arc, Mutex};

use rackloom_plan::impair::Direction;
use rackloom_plan::{ForwardingPlan, LinkPlan, LinkProfile, PayloadMode};
use rackloom_protocol::{CreditConfig, CreditUpdates, Edge, Instant, NodeId, Plane, PortId};

use super::actions::Action;
use super::stub::{Log, StubMember};
use super::{Simulation, leaving};
use crate::link::is_data;
use crate::memory::payload::PayloadTable;
use crate::outcome::MemberState;
use crate::seat::{Body, Seat};
use crate::seats::Seats;

const A: NodeId = NodeId(0);
const B: NodeId = NodeId(1);
const PORT: PortId = PortId(0);
const CENTRE: u16 = 0;

fn profile(rate_bits_per_s: Option<u64>, delay_ns: u64) -> LinkProfile {
    LinkProfile { rate_bits_per_s, delay_ns, ..LinkProfile::default() }
}

/// Returns a star of toys without a switch: member 0 in the centre, one link to each of the others.
fn star(
    leaves: u16,
    profile: &LinkProfile,
    seed: u64,
    set_up: impl Fn(&mut StubMember),
) -> (Simulation, Log) {
    let log = Log::default();
    let links: Vec<_> = (0..leaves)
        .map(|leaf| LinkPlan {
            name: format!("centre--leaf{leaf}"),
            edge: Edge {
                a: NodeId(CENTRE),
                a_port: PortId(leaf),
                b: NodeId(leaf + 1),
                b_port: PORT,
                plane: Plane(0),
            },
            dimension: 0,
            profile: profile.clone(),
            credits: CreditConfig { unit_bytes: 128, overhead_bytes: 0, limit: 100 },
            updates: CreditUpdates { spacing: 25, resync: true },
        })
        .collect();
    let edges: Vec<_> = links.iter().map(|link| link.edge).collect();
    let seats = (0..=leaves).map(|node| {
        let edges_here: Vec<u16> = if node == CENTRE { (0..leaves).collect() } else { vec![node - 1] };
        let mut stub = StubMember::new(node, edges_here.len(), &log);
        set_up(&mut stub);
        let outgoing = edges_here.iter().map(|edge| leaving(&edges, *edge, NodeId(node))).collect();
        Seat::new(NodeId(node), Body::StubMember(Box::new(stub)), outgoing)
    });
    let seats = Seats::new(usize::from(leaves) + 1, seats.collect());
    let payload_table = Arc::new(PayloadTable::new(PayloadMode::Full, seats.members()));
    (Simulation::assemble(&links, false, ForwardingPlan::default(), seed, seats, 4_096, payload_table), log)
}

/// Returns two toys, of which the first sends `frames` frames of 100 bytes, one per `spacing_ns`, numbered in byte 1.
fn pair(profile: &LinkProfile, seed: u64, frames: u8, spacing_ns: u64) -> (Simulation, Log) {
    star(1, profile, seed, |stub| {
        if stub.node == A {
            stub.script =
                (0..frames).map(|n| (u64::from(n) * spacing_ns, PORT, vec![0, n][..].repeat(50))).collect();
        }
    })
}

fn numbers(log: &Log) -> Vec<u8> {
    log.lock().unwrap().iter().map(|(.., bytes)| bytes[1]).collect()
}

fn times(log: &Log) -> Vec<u64> {
    log.lock().unwrap().iter().map(|(at, ..)| *at).collect()
}

#[test]
fn an_echo_takes_twice_the_delay() {
    let (mut rack, log) = star(1, &profile(None, 2_000), 1, |stub| match stub.node {
        A => stub.script = [(0, PORT, vec![0; 64])].into(),
        _ => stub.echoes = true,
    });
    rack.step_until(Instant(10_000)).unwrap();
    assert_eq!(
        log.lock().unwrap().iter().map(|(at, node, ..)| (*at, *node)).collect::<Vec<_>>(),
        [(2_000, B), (4_000, A)]
    );
    assert_eq!(rack.now(), Instant(10_000));
}

#[test]
fn the_sender_packs_when_the_link_grants() {
    // 100 bytes + 24 last 9.92 ns at 100 Gb/s.
    let (mut rack, log) = pair(&profile(Some(100_000_000_000), 0), 1, 5, 0);
    rack.step_until(Instant(100)).unwrap();
    assert_eq!(times(&log), [10, 20, 30, 40, 50]);
    let queued_at_grant: Vec<u8> = log.lock().unwrap().iter().map(|(.., bytes)| bytes[0]).collect();
    assert_eq!(queued_at_grant, [5, 4, 3, 2, 1]);

    let (mut rack, log) = pair(&profile(Some(100_000_000_000), 0), 1, 5, 4);
    rack.step_until(Instant(100)).unwrap();
    let queued_at_grant: Vec<u8> = log.lock().unwrap().iter().map(|(.., bytes)| bytes[0]).collect();
    // At 0, 9, 19, 29, 39 the link is free; frames were ready at 0, 4, 8, 12, 16.
    assert_eq!(queued_at_grant, [1, 2, 3, 2, 1]);
}

#[test]
fn a_ping_pong_uses_two_buffers_for_any_number_of_rounds() {
    let (mut rack, log) = star(1, &profile(None, 10), 1, |stub| {
        stub.echoes = true;
        if stub.node == A {
            stub.script = [(0, PORT, vec![0; 64])].into();
        }
    });
    rack.step_until(Instant(100_000)).unwrap();
    assert_eq!(log.lock().unwrap().len(), 10_000);
    // One in flight, and one being written.
    assert_eq!(rack.statistics().frames_alive_max, 2);
}

#[test]
fn frames_of_one_moment_come_port_by_port_and_member_by_member() {
    let (mut rack, log) = star(3, &profile(None, 50), 1, |stub| {
        if stub.node != NodeId(CENTRE) {
            let sender = stub.node.0 as u8;
            stub.script = [(0, PORT, vec![0, sender]), (0, PORT, vec![0, sender + 10])].into();
        } else {
            stub.script = (0..3).rev().map(|port| (0, PortId(port), vec![0, 20 + port as u8])).collect();
        }
    });
    rack.step_until(Instant(50)).unwrap();
    assert_eq!(numbers(&log), [1, 11, 2, 12, 3, 13, 20, 21, 22]);
}

#[test]
fn the_same_seed_gives_the_same_hash_and_another_seed_another() {
    let lossy = LinkProfile { loss: 0.2, corrupt: 0.1, duplicate: 0.1, reorder: 0.1, ..profile(None, 100) };
    let hash = |seed| {
        let (mut rack, _log) = pair(&lossy, seed, 200, 10);
        rack.step_until(Instant(1_000_000)).unwrap();
        rack.trace_hash()
    };
    assert_eq!(hash(7), hash(7));
    assert_ne!(hash(7), hash(8));
}

#[test]
fn lost_frames_do_not_arrive_and_doubled_ones_do_twice() {
    let (mut rack, log) = pair(&LinkProfile { loss: 1.0, ..profile(None, 100) }, 1, 20, 10);
    rack.step_until(Instant(1_000_000)).unwrap();
    assert!(numbers(&log).is_empty());
    assert_eq!(rack.link_statistics(0, Direction::Forward).frames_dropped, 20);

    let (mut rack, log) = pair(&LinkProfile { duplicate: 1.0, ..profile(None, 100) }, 1, 3, 10);
    rack.step_until(Instant(1_000_000)).unwrap();
    assert_eq!(numbers(&log), [0, 0, 1, 1, 2, 2]);
    assert_eq!(rack.link_statistics(0, Direction::Forward).frames_delivered, 6);
}

#[test]
fn a_corrupted_frame_differs_in_one_bit() {
    let (mut rack, log) = pair(&LinkProfile { corrupt: 1.0, ..profile(None, 100) }, 1, 1, 10);
    let sent = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&sent);
    rack.on_frame(move |_, _, _, bytes| seen.lock().unwrap().extend_from_slice(bytes));
    rack.step_until(Instant(1_000_000)).unwrap();
    let log = log.lock().unwrap();
    let differing: u32 =
        sent.lock().unwrap().iter().zip(&log[0].3).map(|(sent, got)| (sent ^ got).count_ones()).sum();
    assert_eq!((differing, log[0].3.len()), (1, 100));
}

#[test]
fn reordered_frames_are_overtaken_by_few_and_never_lost() {
    let (mut rack, log) = pair(&LinkProfile { reorder: 0.3, ..profile(None, 100) }, 1, 200, 10);
    rack.step_until(Instant(1_000_000)).unwrap();
    let mut got = numbers(&log);
    assert!(!got.is_sorted());
    assert!(rack.link_statistics(0, Direction::Forward).frames_reordered > 20);
    got.sort_unstable();
    assert_eq!(got, (0..200).collect::<Vec<u8>>());
}

#[test]
fn frames_in_flight_to_a_dead_member_are_lost_and_a_dead_member_sends_nothing() {
    let (mut rack, log) = pair(&profile(None, 100), 1, 10, 10);
    rack.schedule(Instant(125), Action::Kill { member: B });
    rack.step_until(Instant(1_000)).unwrap();
    assert_eq!(numbers(&log), [0, 1, 2]);
    assert_eq!(rack.state(B), MemberState::Killed);

    let (mut rack, log) = pair(&profile(None, 100), 1, 10, 10);
    rack.schedule(Instant(25), Action::Kill { member: A });
    rack.step_until(Instant(1_000)).unwrap();
    assert_eq!(numbers(&log), [0, 1, 2], "frames that have left arrive");
}

#[test]
fn a_paused_member_receives_its_frames_when_it_continues() {
    let (mut rack, log) = pair(&profile(None, 100), 1, 5, 10);
    rack.schedule(Instant(115), Action::Pause { member: B });
    rack.schedule(Instant(500), Action::Resume { member: B });
    rack.step_until(Instant(499)).unwrap();
    assert_eq!(rack.state(B), MemberState::Paused);
    assert_eq!(numbers(&log), [0, 1]);
    rack.step_until(Instant(500)).unwrap();
    assert_eq!(numbers(&log), [0, 1, 2, 3, 4]);
    assert_eq!(times(&log)[2..], [500, 500, 500]);
}

#[test]
fn a_paused_sender_sends_due_frames_when_it_continues() {
    let (mut rack, log) = pair(&profile(None, 100), 1, 3, 10);
    rack.schedule(Instant(5), Action::Pause { member: A });
    rack.schedule(Instant(700), Action::Resume { member: A });
    rack.step_until(Instant(1_000)).unwrap();
    assert_eq!(times(&log), [100, 800, 800]);
}

#[test]
fn a_cut_loses_frames_in_flight_and_a_restored_link_carries_again() {
    let (mut rack, log) = pair(&profile(None, 100), 1, 30, 10);
    rack.schedule(Instant(120), Action::Cut { edge: 0, direction: None });
    rack.schedule(Instant(195), Action::Restore { edge: 0, direction: None });
    rack.step_until(Instant(1_000)).unwrap();
    // 0 and 1 arrived before the moment of the cut; 2 would have arrived in it; 20 is the first sent after the repair.
    assert_eq!(numbers(&log)[..3], [0, 1, 20]);
}

#[test]
fn a_grey_link_loses_one_direction_and_frames_in_flight_arrive() {
    let (mut rack, log) = star(1, &profile(None, 100), 1, |stub| match stub.node {
        A => stub.script = (0..10).map(|n| (n * 10, PORT, vec![0, n as u8])).collect(),
        _ => stub.echoes = true,
    });
    rack.schedule(Instant(25), Action::DropAll { edge: 0, direction: Some(Direction::Forward) });
    rack.step_until(Instant(1_000)).unwrap();
    let at = |node| log.lock().unwrap().iter().filter(|(_, here, ..)| *here == node).count();
    assert_eq!((at(B), at(A)), (3, 3));
}

#[test]
fn one_data_frame_can_be_picked() {
    let (mut rack, log) = star(1, &profile(None, 100), 1, |stub| {
        if stub.node == A {
            let kinds = [1, 2, 1, 2, 1];
            stub.script = (0..5)
                .map(|n| (n * 10, PORT, [vec![0, n as u8], vec![kinds[n as usize]; 20]].concat()))
                .collect();
        }
    });
    rack.schedule(Instant(0), Action::DropDataFrame { edge: 0, direction: Direction::Forward, number: 2 });
    rack.step_until(Instant(1_000)).unwrap();
    assert_eq!(numbers(&log), [0, 1, 3, 4]);
    assert!(is_data(&log.lock().unwrap()[0].3));
}
