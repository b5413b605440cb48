//! Congestion control in virtual time: 32 nodes send to one through a switch, with windows that follow marks, with grants, and without.

use std::sync::{Arc, Mutex};

use rackloom_jobs::collective::Inputs;
use rackloom_plan::Plan;
use rackloom_plan::impair::Direction;
use rackloom_protocol::wire::frame::FrameKind;
use rackloom_protocol::wire::layout;
use rackloom_protocol::wire::packed::{Operation, Operations};
use rackloom_protocol::{Instant, NodeId, PortId};
use rackloom_simulator::Simulation;

const SENDERS: u16 = 32;
/// Message of 4 KiB with our own headers and its signal.
const FRAME_BYTES: u64 = 4_256;
/// Time of a frame at 100 Gbit/s, with frame check, preamble and gap.
const FRAME_NS: f64 = (FRAME_BYTES + 24) as f64 * 0.08;
/// Limit of marks, in packets.
const LIMIT: u64 = 128;
/// Packets that a round trip without queues holds: four cables of 500 ns at 100 Gbit/s are 6, and two packets are being sent.
const IN_FLIGHT: u64 = 8;
/// Answers of the target that are on the cable to the switch and in it: one for each packet, for 1.2 us.
const ANSWERS: u64 = 4;
/// Time by which windows have converged, and end of the run: no sender has sent all of its messages by then. A window has about five
/// packets, so shares are equal over hundreds of round trips and not over tens.
const CONVERGED_NS: u64 = 1_000_000;
const END_NS: u64 = 21_000_000;

/// Measured properties of an incast.
#[derive(Debug)]
struct Incast {
    /// Most packets between the senders and the switch's output, at any time.
    queue_max: u64,
    /// Fewest packets there after the windows have converged.
    queue_min: u64,
    /// Jain's index of the packets of all senders, after the windows have converged.
    fairness: f64,
    /// Frames dropped and packets retransmitted.
    lost: u64,
    /// Share of the last link's time that has carried frames, after the windows have converged.
    load: f64,
}

impl Incast {
    /// Returns true if congestion control has done all that it promises: senders add one packet each before they learn of a mark.
    fn is_controlled(&self) -> bool {
        let queue_max = LIMIT + u64::from(SENDERS) + IN_FLIGHT;
        self.queue_max <= queue_max && self.queue_min > IN_FLIGHT && self.fairness >= 0.95 && self.lost == 0
    }

    /// Returns true if grants have done all that they promise: no more packets are on their way to the target than the pool and one of each
    /// sender. Answers of the target are beside them.
    fn is_granted(&self, pool: u64) -> bool {
        self.queue_max <= pool + u64::from(SENDERS) + ANSWERS
            && self.fairness >= 0.95
            && self.lost == 0
            && self.load > 0.99
    }
}

/// Runs an incast. `transport` has further settings of that table; queues of more than `mark_above` bytes mark.
fn incast(transport: &str, mark_above: u64) -> Incast {
    run(&format!("ack_every_packets: 1{transport}"), mark_above, END_NS)
}

fn run(transport: &str, mark_above: u64, end_ns: u64) -> Incast {
    let text = format!(
        "{{name: incast, shape: {{star: {{nodes: {}, planes: 1}}}}, frame_bytes_max: 4352B, ring_bytes: 64MiB, link: {{rate: 100Gbit/s, delay: 500ns}}, \
         forwarding: {{mode: cut-through, mark_above: {mark_above}B}}, transport: {{{transport}}}, \
         job: {{traffic: {{pattern: incast, bytes: 4096B, messages: 3000}}}}}}",
        SENDERS + 1
    );
    let plan = Plan::parse(&text, "incast").unwrap_or_else(|error| panic!("{error}"));
    let mut simulation = Simulation::new(&plan, 1, rackloom_jobs::build_all(&plan, 1, &Inputs::Pattern));
    let mut measured = Incast { queue_max: 0, queue_min: u64::MAX, fairness: 0.0, lost: 0, load: 0.0 };
    let (mut before, mut delivered_before) = (Vec::new(), 0);
    for at_ns in (0..=end_ns).step_by(1_000) {
        simulation.step_until(Instant(at_ns)).unwrap_or_else(|stalled| panic!("{stalled}"));
        let sent = sent(&simulation);
        let queue = sent.iter().sum::<u64>() - delivered(&simulation);
        measured.queue_max = measured.queue_max.max(queue);
        if at_ns == CONVERGED_NS {
            before.clone_from(&sent);
            delivered_before = delivered_to_target(&simulation);
        }
        if at_ns >= CONVERGED_NS {
            measured.queue_min = measured.queue_min.min(queue);
        }
    }
    let shares: Vec<_> =
        sent(&simulation).iter().zip(&before).map(|(after, before)| after - before).collect();
    measured.fairness = fairness(&shares[1..]);
    measured.lost = lost(&simulation);
    let frames = delivered_to_target(&simulation) - delivered_before;
    measured.load = frames as f64 * FRAME_NS / (end_ns - CONVERGED_NS) as f64;
    measured
}

/// Returns the data frames that each node has sent. Link `n` is that of node `n`.
fn sent(simulation: &Simulation) -> Vec<u64> {
    let links = 0..=SENDERS;
    links.map(|link| simulation.link_statistics(link, Direction::Forward).data_frames_sent).collect()
}

/// Returns the data frames that the switch has sent.
fn delivered(simulation: &Simulation) -> u64 {
    let links = 0..=SENDERS;
    links.map(|link| simulation.link_statistics(link, Direction::Backward).data_frames_sent).sum()
}

/// Returns the data frames that the switch has sent to the target.
fn delivered_to_target(simulation: &Simulation) -> u64 {
    simulation.link_statistics(0, Direction::Backward).data_frames_sent
}

fn lost(simulation: &Simulation) -> u64 {
    let nodes = (0..=SENDERS).map(|node| simulation.counters(NodeId(node), PortId(0)));
    let ports = (0..=SENDERS).map(|port| simulation.counters(NodeId(SENDERS + 1), PortId(port)));
    nodes.chain(ports).map(|port| port.retransmitted + port.dropped.iter().sum::<u64>()).sum()
}

/// Jain's index: 1 if all shares are equal.
fn fairness(shares: &[u64]) -> f64 {
    let sum: u64 = shares.iter().sum();
    let squares: u64 = shares.iter().map(|share| share * share).sum();
    (sum * sum) as f64 / (shares.len() as u64 * squares) as f64
}

#[test]
fn an_incast_with_congestion_control_keeps_a_short_queue_and_equal_shares() {
    let measured = incast(", congestion: dctcp", LIMIT * FRAME_BYTES);
    assert!(measured.is_controlled(), "{measured:?}");
}

#[test]
fn an_incast_without_congestion_control_queues_all_that_its_senders_have() {
    let measured = incast("", LIMIT * FRAME_BYTES);
    assert!(!measured.is_controlled(), "{measured:?}");
    // A sender has at most 64 messages outstanding. The queue has nearly all of them.
    assert!((32 * 60..=32 * 64).contains(&measured.queue_max), "{measured:?}");
}

#[test]
fn without_marks_or_with_marks_that_begin_too_late_nothing_is_controlled() {
    for mark_above in [1 << 30, 2 * LIMIT * FRAME_BYTES] {
        let measured = incast(", congestion: dctcp", mark_above);
        assert!(!measured.is_controlled(), "{mark_above}: {measured:?}");
    }
}

/// Time of a run with grants. They need no time to converge.
const GRANTS_END_NS: u64 = 4_000_000;
const NO_MARKS: u64 = 1 << 30;

#[test]
fn an_incast_with_grants_has_a_queue_of_the_pool_and_one_packet_of_each_sender() {
    for pool in [16, 48, 96] {
        let transport = format!("congestion: grants, grant_packets: {pool}");
        let measured = run(&transport, NO_MARKS, GRANTS_END_NS);
        assert!(measured.is_granted(pool), "{pool}: {measured:?}");
        // With as many packets as senders and more, the queue shows the pool.
        assert!(pool < 96 || !measured.is_granted(pool / 2), "{pool}, against half of it: {measured:?}");
    }
}

#[test]
fn the_default_pool_keeps_the_link_full() {
    let measured = run("congestion: grants", NO_MARKS, GRANTS_END_NS);
    // Eight hops of a cable and a frame, twice what a round trip of this star has, are 20 frames.
    assert!(measured.is_granted(20), "{measured:?}");
}

/// Each packet that a timeout retransmits here is a duplicate: no packet is lost.
#[test]
fn timeouts_are_longer_than_the_queue_that_congestion_control_permits() {
    let small = "window_packets: 64, congestion: dctcp";
    let measured = run(small, LIMIT * FRAME_BYTES, END_NS);
    assert!(measured.is_controlled(), "{measured:?}");
    // The time of a round trip and of one window of 64 frames is shorter than the queue of 128 packets.
    let early = format!("{small}, ack_delay: 7us, timeout_min: 36us");
    let measured = run(&early, LIMIT * FRAME_BYTES, END_NS);
    assert!(measured.lost > 0, "{measured:?}");
}

/// Frames that nodes send in two-way traffic.
#[derive(Debug, Default)]
struct TwoWay {
    data: u64,
    /// Acknowledgements in frames of their own.
    acks: u64,
    /// Those of them that carry a grant.
    grants: u64,
    bytes: u64,
    ack_bytes: u64,
    ended_at_ns: u64,
}

impl TwoWay {
    fn frame_share(&self) -> f64 {
        self.grants as f64 / (self.data + self.acks) as f64
    }

    fn byte_share(&self) -> f64 {
        self.ack_bytes as f64 / self.bytes as f64
    }
}

/// Runs an exchange of all with all among eight nodes, and counts the frames that they send.
fn two_way(transport: &str) -> TwoWay {
    let text = format!(
        "{{name: exchange, shape: {{star: {{nodes: 8}}}}, frame_bytes_max: 4352B, link: {{rate: 100Gbit/s, delay: 500ns}}, transport: {{{transport}}}, \
         job: {{traffic: {{pattern: all-to-all, bytes: 64KiB, messages: 56}}}}}}"
    );
    let plan = Plan::parse(&text, "exchange").unwrap_or_else(|error| panic!("{error}"));
    let mut simulation = Simulation::new(&plan, 1, rackloom_jobs::build_all(&plan, 1, &Inputs::Pattern));
    let counted = Arc::new(Mutex::new(TwoWay::default()));
    let seen = Arc::clone(&counted);
    simulation.on_frame(move |_, _, direction, bytes| {
        let kind = FrameKind::peek(bytes);
        if direction == Direction::Backward || !matches!(kind, Some(FrameKind::Data | FrameKind::Ack)) {
            return;
        }
        let mut seen = seen.lock().unwrap();
        // With frame check, preamble and gap.
        let on_wire = bytes.len() as u64 + 24;
        seen.bytes += on_wire;
        if kind == Some(FrameKind::Data) {
            seen.data += 1;
            return;
        }
        seen.acks += 1;
        seen.ack_bytes += on_wire;
        let operations = Operations::new(&bytes[layout::OPERATIONS..]);
        seen.grants += u64::from(operations.flatten().any(|one| matches!(one, Operation::Grant { .. })));
    });
    let ended = simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
    let mut counted = std::mem::take(&mut *counted.lock().unwrap());
    counted.ended_at_ns = ended.ended_at.0;
    counted
}

/// The figures of docs/decisions/congestion.md about acknowledgements that cannot ride on data.
#[test]
fn in_two_way_traffic_grants_cost_frames_but_few_bytes() {
    let (off, granted) = (two_way(""), two_way("congestion: grants"));
    // Acknowledgements ride on data. With grants nearly each packet is answered by a frame of its own.
    assert!(off.grants == 0 && off.acks * 100 < off.data, "{off:?}");
    assert!((0.45..=0.51).contains(&granted.frame_share()), "{granted:?}");
    assert!((0.025..=0.035).contains(&granted.byte_share()), "{granted:?}");
    assert_eq!(off.data, granted.data);
    let slower = granted.ended_at_ns as f64 / off.ended_at_ns as f64;
    assert!((1.0..1.05).contains(&slower), "{slower}");
}
