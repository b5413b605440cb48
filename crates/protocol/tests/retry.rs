//! Link-level retry between members: lost frames are replayed on the link, without a retransmission of the
//! transport.

mod harness;

use std::cell::RefCell;
use std::rc::Rc;

use harness::*;
use rackloom_protocol::wire::frame::FrameKind;
use rackloom_protocol::wire::{layout, seal_hop};
use rackloom_protocol::*;

/// Retry on every link, and a transport whose timeout is too long to help.
fn repeating() -> Options {
    let mut options = options(RetransmissionMode::Selective);
    options.retry = Some(RETRY);
    options.transport.timeout_initial_ns = 5_000_000;
    options.transport.timeout_min_ns = 5_000_000;
    options.transport.timeout_max_ns = 5_000_000;
    options
}

fn kind(bytes: &[u8]) -> u8 {
    bytes[layout::VERSION_KIND] & 15
}

fn is_data(bytes: &[u8]) -> bool {
    kind(bytes) == FrameKind::Data as u8
}

/// Returns true for Hellos, heartbeats and reports, which keep a link up.
fn keeps_link_up(bytes: &[u8]) -> bool {
    (FrameKind::Hello as u8..=FrameKind::Report as u8).contains(&kind(bytes))
}

fn sequence(bytes: &[u8]) -> u32 {
    layout::u32_at(bytes, layout::SEQUENCE)
}

fn retry_sum(fabric: &mut Fabric, count: impl Fn(&link::counters::RetryCounters) -> u64) -> u64 {
    ports(fabric).into_iter().map(|(node, port)| count(&fabric.counters(node, port).retry)).sum()
}

fn retransmitted(fabric: &mut Fabric) -> u64 {
    ports(fabric).into_iter().map(|(node, port)| fabric.counters(node, port).retransmitted).sum()
}

fn dropped(fabric: &mut Fabric, reason: DropReason) -> u64 {
    ports(fabric).into_iter().map(|(node, port)| fabric.counters(node, port).dropped_for(reason)).sum()
}

fn ports(fabric: &Fabric) -> Vec<(usize, u16)> {
    let members = 0..fabric.graph.members.len() as u16;
    members
        .flat_map(|node| {
            let count = fabric.graph.ports(NodeId(node)).len() as u16;
            (0..count).map(move |port| (usize::from(node), port))
        })
        .collect()
}

/// Puts, gets and counters between three nodes of a ring, with a check of every byte.
fn work(fabric: &mut Fabric) {
    let mut id = 0;
    for round in 0..20u8 {
        for source in 0..3usize {
            let target = (source as u16 + 1 + u16::from(round % 2)) % 3;
            fabric.memory(source)[..9000].fill(round ^ source as u8);
            let slot = 100_000 + 10_000 * source as u64;
            id += 3;
            fabric.submit(source, fetch_add(id, at(target, 900_000), 1));
            fabric.submit(source, put(id + 1, at(target, slot), local(0, 9000)));
            assert_eq!(fabric.finish(id + 1), Ok(0));
            fabric.submit(source, get(id + 2, at(target, slot), local(200_000, 9000)));
            assert_eq!(fabric.finish(id + 2), Ok(0));
            let came_back = &fabric.memory(source)[200_000..209_000];
            assert!(came_back.iter().all(|byte| *byte == round ^ source as u8), "round {round}");
            fabric.finish(id).unwrap();
        }
    }
    let counted: u64 = (0..3)
        .map(|node| u64::from_le_bytes(fabric.memory(node)[900_000..900_008].try_into().unwrap()))
        .sum();
    assert_eq!(counted, 60, "each fetch-add happened exactly once");
}

/// A put of 1000 frames whose frame 901 is lost once.
///
/// The oracle: one NACK that names frame 900, one replay, 1000 accepted frames, and no retransmission.
// W-26
#[test]
fn one_lost_frame_of_a_thousand_costs_one_nack_and_one_replay() {
    let mut options = repeating();
    options.frame_bytes_max = 400;
    let mut fabric = Fabric::up(ring(2), &options);
    let refusals = Rc::new(RefCell::new(Vec::new()));
    let (received, mut lost) = (Rc::clone(&refusals), false);
    fabric.filter = Box::new(move |_, _, forward, bytes| {
        if !forward && kind(bytes) == FrameKind::LinkNack as u8 {
            received.borrow_mut().push(layout::u32_at(bytes, layout::LINK_ACK));
        }
        let is_victim = forward && is_data(bytes) && sequence(bytes) == 901 && !lost;
        lost |= is_victim;
        !is_victim
    });
    fabric.command(0, put(1, at(1, 0), local(0, 256_000))).unwrap();
    assert_eq!(fabric.finish(1), Ok(0));
    assert_eq!(*refusals.borrow(), [900]);
    let (sender, receiver) = (fabric.counters(0, 0), fabric.counters(1, 0));
    assert_eq!((sender.retry.tx_ok, receiver.retry.rx_ok), (1000, 1000));
    assert_eq!((sender.retry.rx_nack, sender.retry.replays), (1, 1));
    assert_eq!(receiver.retry.rx_missing_seq, 1);
    assert_eq!(sender.retransmitted, 0);
    assert_eq!(sender.data_frames_sent, 1000 + sender.retry.tx_replay);
}

// W-28
/// Ten frames may be unacknowledged, and no acknowledgement of any kind returns.
///
/// The oracle, for a replay count of 3: 40 received frames, of which 30 had been received before, 3 replays,
/// 1 flush.
#[test]
fn without_acknowledgements_the_link_is_flushed_and_blocked_until_it_recovers() {
    let mut options = repeating();
    options.retry = Some(RetryConfig { outstanding_frames: 10, replay_count_max: 3, ..RETRY });
    let mut fabric = Fabric::up(ring(2), &options);
    fabric.filter = Box::new(|_, _, forward, bytes| forward || keeps_link_up(bytes));
    fabric.command(0, put(1, at(1, 0), local(0, 100_000))).unwrap();
    fabric.run_for(400_000);
    let (sender, receiver) = (fabric.counters(0, 0), fabric.counters(1, 0));
    assert_eq!(sender.data_frames_sent, 40);
    assert_eq!(receiver.retry.rx_ok + receiver.retry.rx_duplicate_seq, 40);
    assert_eq!(receiver.retry.rx_duplicate_seq, 30);
    assert_eq!(receiver.dropped_for(DropReason::LinkDuplicate), 30);
    assert_eq!((sender.retry.replays, sender.retry.flushes, sender.retry.tx_flushed), (3, 1, 10));
    let flushed = Event::LinkFlushed { port: PortId(0), frames: 10 };
    assert!(fabric.events.iter().any(|(_, node, event)| *node == 0 && *event == flushed));

    fabric.filter = Box::new(|_, _, _, _| true);
    assert_eq!(fabric.finish(1), Ok(0), "both ends agree on numbers again and continue");
    assert_eq!(fabric.counters(0, 0).retry.flushes, 1);
}

#[test]
fn links_replay_lost_frames_and_the_transport_retransmits_none() {
    let mut fabric = Fabric::up(ring(3), &repeating());
    let mut any = lossy(50, 5);
    fabric.filter =
        Box::new(move |now, edge, forward, bytes| keeps_link_up(bytes) || any(now, edge, forward, bytes));
    work(&mut fabric);
    assert_eq!(retransmitted(&mut fabric), 0);
    let repeated = retry_sum(&mut fabric, |retry| retry.tx_replay);
    assert!(repeated > 100, "{repeated} frames were repeated");
    assert_eq!(dropped(&mut fabric, DropReason::Duplicate), 0, "nor does it see anything twice");
}

#[test]
fn the_link_replays_a_frame_with_a_flipped_bit_at_any_position() {
    let mut fabric = Fabric::up(ring(3), &repeating());
    let mut spare = lossy(50, 11);
    let mut bit = 0;
    fabric.filter = Box::new(move |now, edge, forward, bytes| {
        if is_data(bytes) && !spare(now, edge, forward, bytes) {
            bit = (bit * 31 + 977) % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        true
    });
    work(&mut fabric);
    assert!(dropped(&mut fabric, DropReason::HopCheck) > 20);
    assert_eq!(dropped(&mut fabric, DropReason::EndToEndCheck), 0);
    assert_eq!(retransmitted(&mut fabric), 0);
}

/// A frame that a switch corrupts has a valid hop check. A replay would not repair it.
#[test]
fn corruption_inside_a_switch_is_detected_end_to_end() {
    let mut options = repeating();
    options.transport.timeout_initial_ns = 100_000;
    options.transport.timeout_min_ns = 50_000;
    let mut fabric = Fabric::up(star(2, 1), &options);
    let mut count = 0;
    fabric.filter = Box::new(move |_, edge, forward, bytes| {
        // From the hub to node 1.
        if edge == 1 && !forward && is_data(bytes) {
            count += 1;
            if count % 10 == 5 {
                bytes[200] ^= 8;
                seal_hop(bytes);
            }
        }
        true
    });
    fabric.memory(0)[..200_000].fill(7);
    fabric.command(0, put(1, at(1, 0), local(0, 200_000))).unwrap();
    assert_eq!(fabric.finish(1), Ok(0));
    assert!(fabric.memory(1)[..200_000].iter().all(|byte| *byte == 7));
    assert!(dropped(&mut fabric, DropReason::EndToEndCheck) > 2);
    assert_eq!(retry_sum(&mut fabric, |retry| retry.replays), 0);
}

#[test]
fn the_link_reorders_and_removes_duplicates() {
    let mut fabric = Fabric::up(ring(3), &repeating());
    fabric.shuffle = Some(17);
    work(&mut fabric);
    assert!(retry_sum(&mut fabric, |retry| retry.rx_duplicate_seq) > 0);
    assert_eq!(dropped(&mut fabric, DropReason::Duplicate), 0);
}

// W-27
#[test]
fn a_recovered_link_and_a_restarted_neighbour_begin_with_new_numbers() {
    let options = repeating();
    let mut fabric = Fabric::up(ring(2), &options);
    fabric.command(0, put(1, at(1, 0), local(0, 100_000))).unwrap();
    fabric.finish(1).unwrap();
    // The wire is cut during a transfer.
    fabric.command(0, put(2, at(1, 0), local(0, 800_000))).unwrap();
    fabric.filter = Box::new(|_, _, _, _| false);
    fabric.run_until("departure", |fabric| {
        let is_down = |(_, node, event): &(Instant, usize, Event)| {
            *node == 0 && matches!(event, Event::LinkChanged { to: LinkState::Down, .. })
        };
        fabric.events.iter().any(is_down)
    });
    assert!(fabric.counters(0, 0).retry.tx_flushed > 0, "what was unacknowledged went with the link");
    fabric.filter = Box::new(|_, _, _, _| true);
    fabric.run_until("return", Fabric::all_nodes_reach_each_other);
    fabric.command(0, fetch_add(3, at(1, 0), 1)).unwrap();
    assert_eq!(fabric.finish(3), Ok(0));

    fabric.kill(1);
    fabric.restart(1, &options);
    fabric.run_until("rejoin", |fabric| {
        fabric.events.iter().any(|event| matches!(event.2, Event::NodeRestarted { .. }))
            && fabric.all_nodes_reach_each_other()
    });
    fabric.command(0, fetch_add(4, at(1, 0), 1)).unwrap();
    assert_eq!(fabric.finish(4), Ok(0));
    assert_eq!(
        fabric.counters(1, 0).retry.rx_missing_seq,
        0,
        "no frames of the earlier incarnation are requested"
    );
}

// W-16
#[test]
fn neighbours_with_different_retry_settings_do_not_connect() {
    let mut fabric = Fabric::new(ring(2), &repeating());
    fabric.restart(1, &options(RetransmissionMode::Selective));
    fabric.run_for(1_000_000);
    assert!(fabric.counters(0, 0).dropped_for(DropReason::UnknownSender) > 0);
    assert_eq!(fabric.endpoint(0).link_state(PortId(0)), LinkState::Init);
}

/// Replayed frames take no credits twice, and lost frames lose none.
// W-29
#[test]
fn replayed_frames_take_their_credits_once() {
    let mut options = repeating();
    options.credits.limit = 80;
    let mut fabric = Fabric::up(ring(4), &options);
    let mut any = lossy(30, 23);
    fabric.filter =
        Box::new(move |now, edge, forward, bytes| keeps_link_up(bytes) || any(now, edge, forward, bytes));
    for node in 0..4u16 {
        let target = at((node + 2) % 4, 500_000);
        fabric.command(usize::from(node), put(u64::from(node), target, local(0, 200_000))).unwrap();
    }
    for id in 0..4 {
        assert_eq!(fabric.finish(id), Ok(0));
    }
    let stalls: u64 =
        ports(&fabric).into_iter().map(|(node, port)| fabric.counters(node, port).credit_stalls).sum();
    assert!(stalls > 0, "the credits are few enough to matter");
    assert!(retry_sum(&mut fabric, |retry| retry.replays) > 10);
    assert_eq!(retransmitted(&mut fabric), 0);
}

/// A load whose frames are acknowledged at once: the answer leaves as it comes, and a separate
/// acknowledgement leaves where no frame does.
// W-45
#[test]
fn an_acknowledgement_is_piggybacked_or_sent_at_once() {
    let mut options = repeating();
    options.retry = Some(RetryConfig { ack_spacing_bytes: 1, ..RETRY });
    let mut fabric = Fabric::up(ring(2), &options);
    fabric.run_for(1_000_000);
    let alone = |fabric: &mut Fabric| [0, 1].map(|node| fabric.counters(node, 0).retry.tx_ack);
    let before = alone(&mut fabric);
    fabric.command(0, load(1, at(1, 0), local(0, 64))).unwrap();
    fabric.finish(1).unwrap();
    let after = alone(&mut fabric);
    assert_eq!([0, 1].map(|node| after[node] - before[node]), [1, 0]);
    assert_eq!(retry_sum(&mut fabric, |retry| retry.replays), 0, "no wait is too long");
}
