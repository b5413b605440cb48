//! Grants: packets on their way to a node are bounded, and no share of its pool is lost.

mod harness;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use harness::*;
use rackloom_protocol::wire::frame::{Frame, FrameKind};
use rackloom_protocol::wire::layout;
use rackloom_protocol::wire::packed::{Operation, Operations};
use rackloom_protocol::*;

const MODES: [RetransmissionMode; 2] = [RetransmissionMode::GoBackN, RetransmissionMode::Selective];
const SENDERS: usize = 8;
const POOL: u32 = 16;
/// Long enough never to pass in a test.
const NEVER_NS: u64 = 10_000_000_000;

/// Every sent frame: time, edge, from the node's end, and bytes.
type Trace = Rc<RefCell<Vec<(u64, u16, bool, Vec<u8>)>>>;

fn with_grants(mode: RetransmissionMode, pool: u32) -> Options {
    let mut options = options(mode);
    options.transport.congestion = CongestionControl::Grants;
    options.transport.grant_packets = Some(pool);
    options
}

fn kind(bytes: &[u8]) -> FrameKind {
    FrameKind::peek(bytes).expect("a kind")
}

fn trace(fabric: &mut Fabric) -> Trace {
    let trace = Trace::default();
    let copy = Rc::clone(&trace);
    fabric.filter = Box::new(move |now, edge, forward, bytes| {
        copy.borrow_mut().push((now.0, edge, forward, bytes.clone()));
        true
    });
    trace
}

/// Lets nodes 1 to `SENDERS` of a star put 400,000 bytes to node 0.
fn incast(options: &Options) -> (Fabric, Trace) {
    let mut fabric = Fabric::up(star(SENDERS as u16 + 1, 1), options);
    let trace = trace(&mut fabric);
    for node in 1..=SENDERS {
        fabric.submit(node, put(node as u64, at(0, 100_000 * node as u64), local(0, 100_000)));
    }
    (1..=SENDERS as u64).for_each(|id| assert_eq!(fabric.finish(id), Ok(0)));
    (fabric, trace)
}

/// Returns the largest number of packets that were on their way to node 0 of a star.
fn on_their_way_max(trace: &Trace) -> usize {
    let mut changes = Vec::new();
    for (time, edge, forward, bytes) in
        trace.borrow().iter().filter(|frame| kind(&frame.3) == FrameKind::Data)
    {
        match (edge, forward) {
            (1.., true) => changes.push((*time, 1)),
            (0, false) => changes.push((*time + DELAY_NS, -1)),
            _ => {}
        }
        assert!(bytes.len() > layout::OPERATIONS);
    }
    // What arrives at a time makes space for what leaves then.
    changes.sort();
    let (mut now, mut most) = (0_i64, 0_i64);
    for (_, change) in changes {
        now += change;
        most = most.max(now);
    }
    most as usize
}

#[test]
fn packets_on_their_way_are_the_pool_and_one_of_each_sender_at_most() {
    let (mut fabric, trace) = incast(&with_grants(RetransmissionMode::Selective, POOL));
    let most = on_their_way_max(&trace);
    assert!((POOL as usize..=POOL as usize + SENDERS).contains(&most), "{most}");
    assert_eq!(fabric.endpoint(0).granted_packets(), Some(0));
    // The bound is no property of the load: without grants, and with a pool twice as large, it is exceeded.
    let (_, trace) = incast(&with_grants(RetransmissionMode::Selective, 2 * POOL));
    assert!(on_their_way_max(&trace) > POOL as usize + SENDERS);
    let (_, trace) = incast(&options(RetransmissionMode::Selective));
    assert!(on_their_way_max(&trace) > 4 * POOL as usize);
}

/// Grants and packets of all streams to node 0, as the frames at its link show them.
#[derive(Debug, Default)]
struct Seen {
    /// By source: packets that have arrived, and the last grant that has left.
    streams: BTreeMap<u16, (u32, u32)>,
}

// W-96, W-97
#[test]
fn no_packet_leaves_without_a_grant_and_no_more_is_granted_than_the_pool() {
    let (_, trace) = incast(&with_grants(RetransmissionMode::Selective, POOL));
    let mut frames: Vec<_> = trace.borrow().clone();
    // In the order in which node 0 and the senders act: what arrives comes before what leaves.
    let acts_at = |(time, edge, forward, _): &(u64, u16, bool, Vec<u8>)| match (edge, forward) {
        (_, false) => (*time + DELAY_NS, 0),
        _ => (*time, 1),
    };
    frames.sort_by_key(acts_at);
    let mut seen = Seen::default();
    // By sender: first packet without a grant, first packet that is not acknowledged, packets sent.
    let mut senders = BTreeMap::<u16, (u32, u32, u32)>::new();
    let (mut alone, mut most) = (0, 0);
    for (_, edge, forward, bytes) in &frames {
        let frame = match Frame::parse(
            bytes,
            0x88b5,
            bytes[..6].try_into().unwrap(),
            bytes[6..12].try_into().unwrap(),
            7,
        ) {
            Ok(frame) if matches!(frame.link.kind, FrameKind::Data | FrameKind::Ack) => frame,
            _ => continue,
        };
        let header = frame.fabric().expect("a header");
        let is_data = frame.link.kind == FrameKind::Data;
        match (edge, forward) {
            // A sender sends.
            (1.., true) if is_data && header.destination == NodeId(0) => {
                let (granted, base, sent) = senders.entry(*edge).or_default();
                assert_eq!(header.psn, *sent, "nothing is lost here");
                assert!(
                    header.psn < *granted || base == sent,
                    "packet {} of node {edge} without a grant",
                    header.psn
                );
                alone += usize::from(header.psn >= *granted);
                *sent += 1;
                let (waiting, total) =
                    (header.demand.packets() as u32, *sent + header.demand.packets() as u32);
                assert!(
                    waiting == 0 || total == 25,
                    "{waiting} packets of 4096 bytes wait of 100000 bytes: {total}"
                );
            }
            // An acknowledgement arrives at a sender.
            (1.., false) if !is_data => {
                let (granted, base, _) = senders.entry(*edge).or_default();
                for operation in Operations::new(frame.operations()) {
                    match operation.expect("whole") {
                        Operation::Ack { psn, .. } => *base = psn,
                        Operation::Grant { psn, .. } => *granted = psn.max(*granted),
                        other => panic!("{other:?}"),
                    }
                }
            }
            // A packet arrives at node 0.
            (0, false) if is_data => seen.streams.entry(header.source.0).or_default().0 += 1,
            // Node 0 grants.
            (0, true) if !is_data => {
                for operation in Operations::new(frame.operations()) {
                    if let Operation::Grant { class, psn } = operation.expect("whole") {
                        assert_eq!(class, Class::Bulk);
                        seen.streams.entry(header.destination.0).or_default().1 = psn;
                    }
                }
                let outstanding: u32 =
                    seen.streams.values().map(|(arrived, granted)| granted.saturating_sub(*arrived)).sum();
                assert!(outstanding <= POOL, "{outstanding} packets are granted: {seen:?}");
                most = most.max(outstanding);
            }
            _ => {}
        }
    }
    assert_eq!(most, POOL, "the pool is used");
    assert!(alone >= SENDERS, "the first packet of a stream has no grant");
}

// W-96
#[test]
fn frames_of_a_rack_without_grants_have_no_demand_and_no_grant() {
    let (_, trace) = incast(&options(RetransmissionMode::Selective));
    for (.., bytes) in trace.borrow().iter() {
        match kind(bytes) {
            FrameKind::Data => assert_eq!(bytes[layout::TRAFFIC] & 0xfc, 0),
            FrameKind::Ack => assert_eq!(bytes[layout::OPERATIONS], 32),
            _ => {}
        }
    }
}

/// Puts and gets of all nodes with all others, with a check of every byte.
fn exchange(fabric: &mut Fabric, first: u64) {
    let nodes = fabric.graph.endpoint_count();
    for node in 0..nodes {
        fabric.memory(node)[..30_000].fill(node as u8 + 1);
    }
    let mut id = first;
    for node in 0..nodes {
        for other in (0..nodes).filter(|other| *other != node) {
            fabric.submit(node, put(id, at(other as u16, 100_000 + 30_000 * node as u64), local(0, 30_000)));
            let into = local(500_000 + 30_000 * other as u64, 30_000);
            fabric.submit(node, get(id + 1, at(other as u16, 0), into));
            id += 2;
        }
    }
    (first..id).for_each(|id| assert_eq!(fabric.finish(id), Ok(0), "operation {id}"));
    for node in 0..nodes {
        for other in (0..nodes).filter(|other| *other != node) {
            for start in [100_000, 500_000].map(|start| start + 30_000 * other) {
                let bytes = &fabric.memory(node)[start..start + 30_000];
                assert!(bytes.iter().all(|byte| *byte == other as u8 + 1), "bytes of {other} at {node}");
            }
        }
    }
}

fn granted(fabric: &mut Fabric) -> Vec<Option<u32>> {
    (0..fabric.graph.endpoint_count()).map(|node| fabric.endpoint(node).granted_packets()).collect()
}

#[test]
fn loss_of_packets_and_grants_leaks_nothing() {
    for mode in MODES {
        for (permille, pool) in [(20, 4), (200, 4), (100, 1), (100, 64)] {
            let mut options = with_grants(mode, pool);
            options.transport.timeout_max_ns = NEVER_NS;
            let mut fabric = Fabric::up(star(4, 1), &options);
            fabric.filter = lossy_data_and_acks(permille, 7);
            exchange(&mut fabric, 1);
            // Nothing has waited for the check of idle shares: it is never due.
            assert_eq!(granted(&mut fabric), [Some(0); 4], "{mode:?} {permille} {pool}");
        }
    }
}

#[test]
fn packets_of_a_stream_over_several_planes_share_the_pool_of_the_node_also_when_a_plane_is_lost() {
    for policy in [PathPolicy::RoundRobin, PathPolicy::Spray, PathPolicy::LeastQueue, PathPolicy::Flow] {
        let mut options = with_grants(RetransmissionMode::Selective, 8);
        options.paths.policy = policy;
        let mut fabric = Fabric::up(star(4, 2), &options);
        fabric.shuffle = Some(3);
        exchange(&mut fabric, 1);
        // The links of plane 1 are those from 4 on.
        fabric.filter = Box::new(|_, edge, _, _| edge < 4);
        exchange(&mut fabric, 1_000);
        fabric.run_for(4 * options.transport.timeout_max_ns);
        assert_eq!(granted(&mut fabric), [Some(0); 4], "{policy:?}");
    }
}

// W-98
#[test]
fn the_share_of_a_node_that_dies_returns_to_the_others() {
    let mut options = with_grants(RetransmissionMode::Selective, POOL);
    options.transport.timeout_max_ns = NEVER_NS;
    let mut fabric = Fabric::up(star(4, 1), &options);
    for node in 1..4 {
        fabric.submit(node, put(node as u64, at(0, 250_000 * node as u64), local(0, 250_000)));
    }
    fabric.run_for(8 * DELAY_NS);
    fabric.kill(2);
    assert_eq!((fabric.finish(1), fabric.finish(3)), (Ok(0), Ok(0)));
    let is_lost = |fabric: &Fabric| {
        fabric.events.iter().any(|(_, at, event)| *at == 0 && *event == Event::NodeLost { node: NodeId(2) })
    };
    if !is_lost(&fabric) {
        assert!(fabric.endpoint(0).granted_packets() > Some(0), "the dead node has a share");
        fabric.run_until("the loss", is_lost);
    }
    assert_eq!(fabric.endpoint(0).granted_packets(), Some(0));
    // A new incarnation begins with new numbers and a new share.
    fabric.restart(2, &options);
    fabric.run_until("return", Fabric::all_nodes_reach_each_other);
    fabric.submit(2, put(4, at(0, 500_000), local(0, 250_000)));
    assert_eq!(fabric.finish(4), Ok(0));
    assert_eq!(fabric.endpoint(0).granted_packets(), Some(0));
}

// W-98
#[test]
fn the_share_of_a_sender_that_gives_its_packets_up_returns_after_an_interval() {
    let options = with_grants(RetransmissionMode::Selective, POOL);
    let mut fabric = Fabric::up(star(3, 1), &options);
    fabric.add_region(1, RegionId(2), 500_000);
    let source = LocalRange { region: RegionId(2), offset: 0, length: 500_000 };
    fabric.submit(1, put(1, at(0, 0), source));
    fabric.run_for(4 * DELAY_NS);
    fabric.endpoint(1).revoke(RegionId(2));
    assert_eq!(fabric.finish(1), Err(OperationError::MemoryFailed));
    fabric.run_for(10 * DELAY_NS);
    let left = fabric.endpoint(0).granted_packets().unwrap();
    assert!(left > 0, "the sender had announced more than it sends");
    fabric.run_for(2 * options.transport.timeout_max_ns);
    assert_eq!(fabric.endpoint(0).granted_packets(), Some(0));
    // All of the pool serves the next sender.
    let trace = trace(&mut fabric);
    fabric.submit(2, put(2, at(0, 0), local(0, 250_000)));
    assert_eq!(fabric.finish(2), Ok(0));
    assert_eq!(on_their_way_max(&trace), POOL as usize);
}
