//! Pausing links: no loss with sufficient headroom, and progress with losses by the watchdog. Questions of
//! rate (sufficient headroom, rings that stop) belong to the experiments.

mod harness;

use std::sync::{Arc, Mutex};

use harness::*;
use rackloom_protocol::link::pause::state::PauseState;
use rackloom_protocol::wire::frame::FrameKind;
use rackloom_protocol::wire::layout::{CHANNEL, FABRIC, VERSION_KIND, u16_at};
use rackloom_protocol::*;

const RESPONSE_NS: u64 = 700;
/// Longer than all other times here, except in the test that loses pause messages.
const PAUSE_NS: u64 = 100_000;

const PAUSE: PauseConfig = PauseConfig {
    xoff_bytes: 40_000,
    xon_bytes: 20_000,
    // Links here have no rate: the whole window of two senders may be in flight.
    headroom_bytes: 300_000,
    quanta: 1_000,
    quantum_ps: PAUSE_NS,
    response_delay_ns: RESPONSE_NS,
    watchdog_ns: 0,
};

fn pausing(pause: PauseConfig) -> Options {
    let mut options = Options { pause: Some(pause), ..options(RetransmissionMode::Selective) };
    // The timeout is far beyond the duration of a pause, so a retransmission means a loss.
    options.transport.timeout_initial_ns = 5_000_000;
    options.transport.timeout_min_ns = 5_000_000;
    options.transport.timeout_max_ns = 20_000_000;
    options
}

fn dropped(fabric: &mut Fabric, reason: DropReason) -> u64 {
    let members = 0..fabric.graph.members.len() as u16;
    let ports = members.flat_map(|node| {
        (0..fabric.graph.ports(NodeId(node)).len() as u16).map(move |port| (usize::from(node), port))
    });
    let ports: Vec<_> = ports.collect();
    ports.into_iter().map(|(node, port)| fabric.counters(node, port).dropped_for(reason)).sum()
}

/// Pause message that the switch receives or sends at its port 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PauseMessage {
    Data,
    Quanta(u16),
    Other,
}

type Log = Arc<Mutex<Vec<(u64, bool, PauseMessage)>>>;

/// Records what passes over edge 0: time, direction, and kind.
fn listen(fabric: &mut Fabric) -> Log {
    let log = Log::default();
    let received = Arc::clone(&log);
    fabric.filter = Box::new(move |now, edge, forward, bytes| {
        if edge == 0 {
            let message = match FrameKind::peek(bytes) {
                Some(FrameKind::Data) => PauseMessage::Data,
                Some(FrameKind::Pause) => PauseMessage::Quanta(u16_at(bytes, FABRIC)),
                _ => PauseMessage::Other,
            };
            received.lock().unwrap().push((now.0, forward, message));
        }
        true
    });
    log
}

/// Nodes 0 and 1 put to node 2, which does not drain for a while.
fn jam(pause: PauseConfig, frames_dropped: bool) -> (Fabric, Log) {
    let mut fabric = Fabric::up(star(3, 1), &pausing(pause));
    let log = listen(&mut fabric);
    fabric.endpoint(2).stop_draining(Class::Bulk, true);
    for node in 0..2u16 {
        fabric.memory(usize::from(node))[..400_000].fill(7 + node as u8);
        let target = at(2, u64::from(node) * 400_000);
        fabric.command(usize::from(node), put(u64::from(node), target, local(0, 400_000))).unwrap();
    }
    fabric.run_for(400_000);
    let hub = fabric.counters(3, 0).pause;
    assert!(hub.tx_pause >= 3, "requested and repeated: {hub:?}");
    fabric.endpoint(2).stop_draining(Class::Bulk, false);
    for id in 0..2 {
        assert_eq!(fabric.finish(id), Ok(0));
    }
    for node in 0..2 {
        let written =
            fabric.memory(2)[node * 400_000..][..400_000].iter().all(|byte| *byte == 7 + node as u8);
        assert!(written, "the bytes of node {node}");
    }
    assert_eq!(dropped(&mut fabric, DropReason::BufferFull) > 0, frames_dropped);
    (fabric, log)
}

// W-70, W-71
#[test]
fn a_paused_sender_is_silent_from_its_response_until_the_resume_and_nothing_is_lost() {
    let (mut fabric, log) = jam(PAUSE, false);
    let log = log.lock().unwrap();
    let first = |wanted: fn(u16) -> bool| {
        let is_it = |(_, forward, message): &&(u64, bool, PauseMessage)| {
            !forward && matches!(message, PauseMessage::Quanta(quanta) if wanted(*quanta))
        };
        log.iter().find(is_it).expect("a message").0
    };
    let (paused, resumed) = (first(|quanta| quanta > 0), first(|quanta| quanta == 0));
    let silent = (paused + DELAY_NS + RESPONSE_NS, resumed + DELAY_NS);
    assert!(silent.1 > silent.0 + PAUSE_NS, "longer than one pause lasts: {silent:?}");
    let during = |wanted: PauseMessage| {
        log.iter()
            .any(|(at, forward, message)| *forward && *message == wanted && (silent.0..silent.1).contains(at))
    };
    assert!(!during(PauseMessage::Data), "no data in the pause");
    assert!(during(PauseMessage::Other), "heartbeats and acknowledgements leave");
    let words: Vec<u64> = log
        .iter()
        .filter(|(at, forward, message)| {
            !forward && *message == PauseMessage::Quanta(1_000) && *at < silent.1
        })
        .map(|(at, ..)| *at)
        .collect();
    let gaps: Vec<u64> = words.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(!gaps.is_empty() && gaps.iter().all(|gap| *gap == PAUSE_NS / 2), "repeated in time: {gaps:?}");
    assert_eq!(fabric.counters(0, 0).retransmitted, 0);
    assert!(fabric.counters(0, 0).pause.paused_ns >= silent.1 - silent.0);
}

// W-72
#[test]
fn without_headroom_frames_are_lost_and_the_transport_retransmits_them() {
    let (mut fabric, _) = jam(PauseConfig { headroom_bytes: 4_352, ..PAUSE }, true);
    assert!(fabric.counters(0, 0).retransmitted > 0);
    // Link-level retry is not involved.
    let lost = |fabric: &mut Fabric| dropped(fabric, DropReason::BufferFull);
    assert!(lost(&mut fabric) > 0);
}

/// Nodes put to partners that do not drain, so that many ingress links compete for space. Returns the bytes
/// that each holds.
fn share(buffer: SharedBufferConfig, pairs: u16) -> Vec<u64> {
    let mut options = pausing(PauseConfig { headroom_bytes: 0, ..PAUSE });
    options.forwarding.shared_buffer = Some(buffer);
    options.transport.window_packets = 64;
    let mut fabric = Fabric::up(star(2 * pairs, 1), &options);
    for node in 0..pairs {
        fabric.endpoint(usize::from(node + pairs)).stop_draining(Class::Bulk, true);
    }
    for node in 0..pairs {
        let target = at(node + pairs, 0);
        fabric.command(usize::from(node), put(u64::from(node), target, local(0, 900_000))).unwrap();
    }
    fabric.run_for(900_000);
    (0..pairs).map(|node| fabric.counters(usize::from(2 * pairs), node).pause.held_bytes_max).collect()
}

// W-76
#[test]
fn a_later_ingress_gets_its_share_of_the_free_space() {
    let buffer = SharedBufferConfig { bytes: 200_000, alpha_thousandths: 1_000, private_bytes: 5_000 };
    // Links here have no rate, so they fill one after the other: each takes half of the free space.
    for (held, share) in share(buffer, 4).into_iter().zip([100_000, 50_000, 25_000, 12_500]) {
        let most = share + u64::from(buffer.private_bytes);
        assert!(held.abs_diff(most) <= 4_352, "{held}, not {most}");
    }
}

// W-76
#[test]
fn a_larger_alpha_gives_a_single_ingress_more_space() {
    let alone = |alpha_thousandths| {
        share(SharedBufferConfig { bytes: 200_000, alpha_thousandths, private_bytes: 0 }, 1)[0]
    };
    let held = [125, 1_000, 8_000].map(alone);
    for (held, expected) in held.into_iter().zip([22_222, 100_000, 177_778]) {
        assert!(held.abs_diff(expected) <= 4_352, "{held}, not {expected}");
    }
}

// W-70
#[test]
fn a_lost_pause_message_costs_time_and_not_the_link() {
    let mut fabric = Fabric::up(star(3, 1), &pausing(PAUSE));
    // Every resume toward node 0 is lost.
    fabric.filter = Box::new(|_, edge, forward, bytes| {
        let is_resume = FrameKind::peek(bytes) == Some(FrameKind::Pause) && u16_at(bytes, FABRIC) == 0;
        !(edge == 0 && !forward && is_resume)
    });
    fabric.endpoint(2).stop_draining(Class::Bulk, true);
    fabric.command(0, put(0, at(2, 0), local(0, 900_000))).unwrap();
    fabric.run_for(200_000);
    let port = PortId(0);
    let link = |fabric: &mut Fabric| fabric.link(0, port).pause.as_ref().unwrap().state(Channel(0));
    assert_eq!(link(&mut fabric), PauseState::Paused);
    fabric.endpoint(2).stop_draining(Class::Bulk, false);
    assert_eq!(fabric.finish(0), Ok(0));
    assert_eq!((fabric.counters(0, 0).pause.rx_resume, dropped(&mut fabric, DropReason::BufferFull)), (0, 0));
}

// W-70
#[test]
fn a_pause_stops_one_channel_and_no_other() {
    let mut options = pausing(PAUSE);
    options.channels = ChannelConfig::by_class();
    let mut fabric = Fabric::up(star(3, 1), &options);
    let paused = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&paused);
    fabric.filter = Box::new(move |_, _, _, bytes| {
        if FrameKind::peek(bytes) == Some(FrameKind::Pause) {
            seen.lock().unwrap().push(bytes[CHANNEL]);
        }
        true
    });
    fabric.endpoint(2).stop_draining(Class::Bulk, true);
    fabric.command(0, put(0, at(2, 0), local(0, 400_000))).unwrap();
    fabric.run_for(200_000);
    fabric.command(0, store(1, at(2, 500_000), &[1; 64])).unwrap();
    assert_eq!(fabric.finish(1), Ok(0), "a request passes by bulk that stands still");
    assert_eq!(fabric.outcome(0), None);
    let paused = paused.lock().unwrap();
    assert!(!paused.is_empty() && paused.iter().all(|channel| *channel == Class::Bulk as u8), "{paused:?}");
}

// W-73
#[test]
fn a_watchdog_resumes_sending_despite_pauses_for_a_while() {
    let (mut fabric, _) = jam(PauseConfig { watchdog_ns: 150_000, ..PAUSE }, false);
    let is_defied = |event: &Event| matches!(event, Event::PauseDefied { channel: Channel(0), .. });
    let defied =
        fabric.events.iter().filter(|(_, node, event)| *node == 3 && is_defied(event)).count() as u64;
    assert!(defied > 0, "the switch toward its full neighbour");
    assert_eq!(defied, fabric.counters(3, 2).pause.watchdog);
    assert!(
        fabric.counters(2, 0).pause.held_bytes_max > 40_000 + 150_000,
        "much more than a pause would have let in"
    );
    let by_node_2 = fabric.events.iter().any(|(_, node, event)| *node == 2 && is_defied(event));
    assert!(!by_node_2, "a node that sends nothing has no waiting frames");
}

#[test]
fn both_ends_must_agree_on_pausing() {
    let mut fabric = Fabric::new(star(2, 1), &pausing(PAUSE));
    fabric.restart(0, &options(RetransmissionMode::Selective));
    fabric.run_for(1_000_000);
    assert!(!fabric.all_nodes_reach_each_other());
    assert!(dropped(&mut fabric, DropReason::UnknownSender) > 0);
}

#[test]
fn a_pause_has_no_effect_on_a_link_with_credits() {
    let mut pausing = Fabric::up(star(3, 1), &pausing(PAUSE));
    let words = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&words);
    pausing.filter = Box::new(move |_, edge, forward, bytes| {
        if edge == 0 && !forward && FrameKind::peek(bytes) == Some(FrameKind::Pause) {
            seen.lock().unwrap().push(bytes.clone());
        }
        true
    });
    pausing.endpoint(2).stop_draining(Class::Bulk, true);
    pausing.command(0, put(0, at(2, 0), local(0, 400_000))).unwrap();
    pausing.run_for(200_000);
    let message = words.lock().unwrap().first().expect("a pause").clone();
    assert_eq!(message[VERSION_KIND] & 15, FrameKind::Pause as u8);
    // The members with credits have these addresses and incarnations as well.
    let mut plain = Fabric::up(star(3, 1), &options(RetransmissionMode::Selective));
    plain.deliver(0, PortId(0), message);
    assert_eq!(plain.counters(0, 0).dropped_for(DropReason::Malformed), 1);
    plain.command(0, store(1, at(2, 0), &[1; 64])).unwrap();
    assert_eq!(plain.finish(1), Ok(0));
}
