//! Throughput of a switch with a queue per egress, and with one queue per ingress: slot by slot, with inputs
//! that are always full, and every frame to a random output.
//!
//! Reference: Karol, Hluchyj and Morgan, "Input versus output queueing on a space-division packet switch"
//! (1987), table I.

use std::collections::BTreeMap;

use rackloom_protocol::memory::vector::VectorMemory;
use rackloom_protocol::wire::address::mac;
use rackloom_protocol::wire::control::{Hello, IncarnationMark, LinkReport};
use rackloom_protocol::wire::demand::Demand;
use rackloom_protocol::wire::frame::{FabricHeader, FrameKind, HopCheck, LinkHeader};
use rackloom_protocol::wire::layout::{
    CONSUMED, DESTINATION, FABRIC, FLAG_MARKED, FLAGS, OPERATIONS, SOURCE, u16_at, u32_at,
};
use rackloom_protocol::*;

mod harness;

const SLOT_NS: u64 = 1_000;
const ETHER_TYPE: u16 = 0x88b5;
const FRAME_BYTES: usize = 256;
/// Number of frames of each input that the switch always holds.
const DEPTH: usize = 48;

/// Wires with one data frame per port and slot. Control frames take no slot.
#[derive(Default)]
struct Slots {
    frame_buffer: Vec<u8>,
    leases: BTreeMap<u32, Vec<u8>>,
    is_taken: Vec<bool>,
    left: Vec<(usize, Vec<u8>)>,
}

impl Wires for Slots {
    fn slot(&mut self, port: PortId) -> Option<&mut [u8]> {
        (!self.is_taken[port.index()]).then_some(&mut self.frame_buffer)
    }
    fn copy_lease(&mut self, _port: PortId, lease: LeaseId, at: usize, length: usize) {
        self.frame_buffer[at..at + length].copy_from_slice(&self.leases[&lease.0][at..at + length]);
    }
    fn commit(&mut self, port: PortId, length: usize, _doorbell: bool) {
        let frame = self.frame_buffer[..length].to_vec();
        self.is_taken[port.index()] |= FrameKind::peek(&frame) == Some(FrameKind::Data);
        self.left.push((port.index(), frame));
    }
    fn leased(&self, lease: LeaseId) -> &[u8] {
        &self.leases[&lease.0]
    }
    fn release(&mut self, lease: LeaseId) {
        self.leases.remove(&lease.0).expect("a lease is released once");
    }
}

impl BatchedWires for Slots {}

impl KeptFrames for Slots {}

impl PinnedFrames for Slots {}

/// Sequence state of a node at a port.
#[derive(Clone, Copy, Default)]
struct Neighbour {
    sent: u32,
    /// Credits that the switch has consumed. All of them are free again at once.
    consumed: u32,
    held: usize,
}

struct Bench {
    switch: Switch,
    slots: Slots,
    neighbours: Vec<Neighbour>,
    now: Instant,
    next_lease: u32,
    random: u64,
}

const fn incarnation(member: u16) -> Incarnation {
    Incarnation(1_000 + member as u64)
}

impl Bench {
    fn new(ports: u16, queues: TransitQueues) -> Self {
        let graph = harness::star(ports, 1);
        let hub = NodeId(ports);
        let mut options = harness::options(RetransmissionMode::Selective);
        options.forwarding.queues = queues;
        options.end_to_end_check = false;
        options.credits = CreditConfig { unit_bytes: 512, overhead_bytes: 0, limit: 1 << 20 };
        options.timers.heartbeat_interval_ns = 10_000_000_000;
        let config = harness::member_config(&graph, hub, &options, incarnation(ports));
        let mut bench = Self {
            switch: Switch::new(config),
            slots: Slots {
                frame_buffer: vec![0; 5_000],
                is_taken: vec![false; usize::from(ports)],
                ..Slots::default()
            },
            neighbours: vec![Neighbour::default(); usize::from(ports)],
            now: Instant::ZERO,
            next_lease: 0,
            random: 0x2545_f491_4f6c_dd1d,
        };
        (0..ports).for_each(|node| bench.bring_up(node));
        bench.drain();
        (0..ports).for_each(|node| bench.report(node));
        bench.drain();
        bench
    }

    fn link_header(&self, node: u16, kind: FrameKind, body: usize) -> LinkHeader {
        let neighbour = self.neighbours[usize::from(node)];
        LinkHeader {
            kind,
            epoch: 7,
            length: body as u16,
            hop_limit: 64,
            channel: Channel(0),
            session: incarnation(node).tag() as u16,
            sequence: neighbour.sent,
            link_ack: 0,
            consumed: neighbour.sent,
            freed: neighbour.consumed,
            has_end_to_end_check: false,
            hop_check: if kind.is_routed() { HopCheck::NoneOfHeader } else { HopCheck::Frame },
            is_unprotected: false,
            is_marked: false,
        }
    }

    fn give(&mut self, node: u16, kind: FrameKind, mut frame: Vec<u8>) {
        let hub = NodeId(self.neighbours.len() as u16);
        let header = self.link_header(node, kind, frame.len() - FABRIC);
        header.write(&mut frame, ETHER_TYPE, mac(NodeId(node), Plane(0)), mac(hub, Plane(0)));
        let lease = LeaseId(self.next_lease);
        self.next_lease += 1;
        self.slots.leases.insert(lease.0, frame.clone());
        self.switch.handle_frame(self.now, PortId(node), lease, &frame);
    }

    fn bring_up(&mut self, node: u16) {
        let hub = self.neighbours.len() as u16;
        let mut frame = vec![0; FABRIC + 28];
        let hello = Hello {
            node: NodeId(node),
            port: PortId(0),
            plane: Plane(0),
            requests_answer: false,
            frame_bytes_max: 4_352,
            incarnation: incarnation(node),
            received_incarnation: incarnation(hub),
            options: 0,
        };
        hello.write(&mut frame[FABRIC..]);
        self.give(node, FrameKind::Hello, frame);
    }

    fn report(&mut self, node: u16) {
        let hub = self.neighbours.len() as u16;
        let report = LinkReport {
            origin: NodeId(node),
            incarnation: incarnation(node),
            number: 1,
            is_departure: false,
            edges: vec![(node, Some(IncarnationMark::of(incarnation(hub))))],
        };
        let mut frame = vec![0; FABRIC + report.encoded_bytes()];
        report.write(&mut frame[FABRIC..]);
        self.give(node, FrameKind::Report, frame);
    }

    fn send(&mut self, from: u16, to: u16) {
        let header = FabricHeader {
            destination: NodeId(to),
            source: NodeId(from),
            class: Class::Bulk,
            operation_count: 0,
            tenant: Tenant(0),
            entropy: 0,
            ack_now: false,
            again: false,
            demand: Demand::NONE,
            ack: None,
            source_incarnation: 0,
            destination_incarnation: 0,
            psn: 0,
            first_operation: 0,
        };
        let mut frame = vec![0; FRAME_BYTES];
        header.write(&mut frame);
        let neighbour = &mut self.neighbours[usize::from(from)];
        neighbour.sent += 1;
        neighbour.held += 1;
        self.give(from, FrameKind::Data, frame);
    }

    /// Returns the number of data frames that leave.
    fn drain(&mut self) -> usize {
        self.slots.is_taken.fill(false);
        let mut memory = VectorMemory::default();
        while drain(&mut self.switch, self.now, &mut self.slots, &mut memory, &mut |_| {}) {}
        let mut data = 0;
        for (port, frame) in std::mem::take(&mut self.slots.left) {
            if FrameKind::peek(&frame) == Some(FrameKind::Data) {
                assert!(frame.len() > OPERATIONS - 1 && usize::from(u16_at(&frame, DESTINATION)) == port);
                self.neighbours[port].consumed = u32_at(&frame, CONSUMED);
                self.neighbours[usize::from(u16_at(&frame, SOURCE))].held -= 1;
                data += 1;
            }
        }
        data
    }

    /// Runs one slot. The first half of the ports are inputs and the others outputs, because no frame returns
    /// to its ingress.
    fn slot(&mut self) -> usize {
        let ports = self.width() as u16;
        for node in 0..ports {
            while self.neighbours[usize::from(node)].held < DEPTH {
                self.random = self
                    .random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                self.send(node, ports + ((self.random >> 33) % u64::from(ports)) as u16);
            }
        }
        self.now = self.now + SLOT_NS;
        self.drain()
    }

    /// Returns the number of inputs, and of outputs.
    fn width(&self) -> usize {
        self.neighbours.len() / 2
    }

    /// Measures the frames per output and slot.
    fn throughput(&mut self, slots: usize) -> f64 {
        for _ in 0..500 {
            self.slot();
        }
        let frames: usize = (0..slots).map(|_| self.slot()).sum();
        frames as f64 / (slots * self.width()) as f64
    }
}

/// The choice among inputs that need one output has no effect: the next frame of either goes to a random
/// output.
#[test]
fn one_queue_per_ingress_has_the_throughput_of_the_theory() {
    for (ports, theory) in [(2, 0.75), (4, 0.6553), (8, 0.6184)] {
        let measured = Bench::new(2 * ports, TransitQueues::ByInput).throughput(20_000);
        assert!((measured - theory).abs() < 0.005, "{ports} ports: {measured}, not {theory}");
    }
}

#[test]
fn a_queue_per_egress_has_full_throughput() {
    let measured = Bench::new(2 * 8, TransitQueues::ByOutput).throughput(4_000);
    assert!(measured > 0.97, "{measured}");
}

/// Members of both kinds that lose frames and links.
#[test]
fn every_queued_frame_is_sent() {
    let mut options = harness::options(RetransmissionMode::Selective);
    options.forwarding = ForwardingConfig { queues: TransitQueues::ByInput, ..ForwardingConfig::default() };
    options.credits.limit = 90;
    let mut fabric = harness::Fabric::up(harness::ring(6), &options);
    let mut count = 0;
    fabric.filter = Box::new(move |now, edge, _, _| {
        count += 1;
        // A link that is cut for a while, and loss on all links.
        !(edge == 1 && (2_000_000..2_600_000).contains(&now.0)) && count % 23 != 0
    });
    for node in 0..6u16 {
        let target = harness::at((node + 2) % 6, 0);
        fabric
            .command(usize::from(node), harness::put(u64::from(node), target, harness::local(0, 300_000)))
            .unwrap();
    }
    for id in 0..6 {
        assert_eq!(fabric.finish(id), Ok(0));
    }
}

/// Nodes 0 and 1 put to node 2 through a switch that holds the frames that node 2 does not drain.
fn congested_fabric(mark_above_bytes: Option<u32>) -> harness::Fabric {
    let mut options = harness::options(RetransmissionMode::Selective);
    options.forwarding.mark_above_bytes = mark_above_bytes;
    options.credits.limit = 900;
    let mut fabric = harness::Fabric::up(harness::star(3, 1), &options);
    fabric.endpoint(2).stop_draining(Class::Bulk, true);
    for node in 0..2u16 {
        let target = harness::at(2, u64::from(node) * 400_000);
        fabric
            .command(usize::from(node), harness::put(u64::from(node), target, harness::local(0, 300_000)))
            .unwrap();
    }
    fabric.run_for(200_000);
    fabric.endpoint(2).stop_draining(Class::Bulk, false);
    for id in 0..2 {
        assert_eq!(fabric.finish(id), Ok(0));
    }
    fabric
}

// W-74, W-75
#[test]
fn a_frame_that_joins_a_long_queue_is_marked_and_its_sender_is_notified() {
    let mut fabric = congested_fabric(Some(20_000));
    let marked = fabric.counters(3, 2).marks.marked;
    assert!(marked > 3, "{marked} at the port where both meet");
    assert_eq!((fabric.counters(3, 0).marks.marked, fabric.counters(3, 1).marks.marked), (0, 0));
    assert_eq!(fabric.counters(2, 0).marks.rx_marked, marked, "every mark arrives");
    let echoes =
        |fabric: &mut harness::Fabric| (0..2).map(|node| fabric.counters(node, 0).marks.rx_echo).sum::<u64>();
    let echoed = echoes(&mut fabric);
    assert!((2..=marked).contains(&echoed), "{echoed} of {marked}");
    // Echoes are not repeated.
    fabric.command(0, harness::store(7, harness::at(2, 900_000), &[1; 64])).unwrap();
    assert_eq!(fabric.finish(7), Ok(0));
    fabric.command(0, harness::put(8, harness::at(2, 0), harness::local(0, 64))).unwrap();
    assert_eq!(fabric.finish(8), Ok(0));
    assert_eq!((echoes(&mut fabric), fabric.counters(3, 2).marks.marked), (echoed, marked));
}

// W-74
#[test]
fn without_a_limit_nothing_is_marked() {
    let mut fabric = congested_fabric(None);
    for (node, port) in [(3, 2), (2, 0), (0, 0)] {
        assert_eq!(fabric.counters(node, port).marks, link::counters::MarkCounters::default());
    }
}

// W-74
#[test]
fn a_mark_is_forwarded_and_only_data_frames_have_one() {
    let mut options = harness::options(RetransmissionMode::Selective);
    options.forwarding.mark_above_bytes = Some(0);
    let mut fabric = harness::Fabric::up(harness::ring(6), &options);
    let flags = std::sync::Arc::new(std::sync::Mutex::new((0, 0, 0)));
    let seen = std::sync::Arc::clone(&flags);
    fabric.filter = Box::new(move |_, edge, _, bytes| {
        let mut seen = seen.lock().unwrap();
        if bytes[FLAGS] & FLAG_MARKED != 0 {
            assert_eq!(FrameKind::peek(bytes), Some(FrameKind::Data));
            // The first hop precedes the queues. The last two forward the mark of the second.
            match edge {
                0 => seen.0 += 1,
                1 => seen.1 += 1,
                2 => seen.2 += 1,
                _ => {}
            }
        }
        true
    });
    fabric.command(0, harness::put(0, harness::at(3, 0), harness::local(0, 200_000))).unwrap();
    assert_eq!(fabric.finish(0), Ok(0));
    let flags = *flags.lock().unwrap();
    let marked = |node| fabric.counters(node, 0).marks.marked + fabric.counters(node, 1).marks.marked;
    let mut marked = marked;
    let (first, second) = (marked(1), marked(2));
    assert!(flags.0 == 0 && flags.1 == first && flags.2 >= flags.1.max(second), "{flags:?} {first} {second}");
}
