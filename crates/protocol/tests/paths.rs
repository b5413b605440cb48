//! Several paths to a node at a time: the choice of each policy, and the recovery of a stream when one fails.

mod harness;

use harness::*;
use rackloom_protocol::wire::frame::FrameKind;
use rackloom_protocol::*;

const PLANES: u16 = 4;
const BLOCK: u64 = 4096;
const BLOCKS: u64 = 200;
/// More packets than those of the observed stream and the first one: acknowledgements do not count as data.
const PACKETS: u64 = BLOCKS;

fn of(policy: PathPolicy) -> Options {
    let mut options = options(RetransmissionMode::Selective);
    options.paths.policy = policy;
    options
}

/// Data frames of node 0 by plane, after one put of many packets to node 1.
fn by_plane(fabric: &mut Fabric) -> Vec<u64> {
    fabric.memory(0)[..(BLOCKS * BLOCK) as usize].fill(7);
    fabric.submit(0, put(1, at(1, 0), local(0, BLOCKS * BLOCK)));
    fabric.finish(1).expect("the put ends well");
    assert!(fabric.memory(1)[..(BLOCKS * BLOCK) as usize].iter().all(|byte| *byte == 7));
    (0..PLANES).map(|plane| fabric.counters(0, plane).data_frames_sent).collect()
}

#[test]
fn a_hash_uses_one_plane_per_stream_and_round_robin_uses_all_planes_equally() {
    for policy in [PathPolicy::Address, PathPolicy::Flow] {
        let mut planes = by_plane(&mut Fabric::up(star(2, 4), &of(policy)));
        planes.sort_unstable();
        assert_eq!(planes, [0, 0, 0, PACKETS], "{policy:?}");
    }
    let planes = by_plane(&mut Fabric::up(star(2, 4), &of(PathPolicy::RoundRobin)));
    assert_eq!(planes, [PACKETS / 4; 4]);
}

#[test]
fn an_address_hash_uses_one_path_for_all_classes_and_a_flow_hash_may_use_several() {
    let planes_in_use = |policy| {
        let mut fabric = Fabric::up(star(16, 4), &of(policy));
        let used = (1..16u16).map(|target| {
            let planes = |fabric: &mut Fabric| -> Vec<u64> {
                (0..PLANES).map(|plane| fabric.counters(0, plane).data_frames_sent).collect()
            };
            let before = planes(&mut fabric);
            let id = u64::from(target) * 2;
            fabric.submit(0, put(id, at(target, 0), local(0, 64)));
            fabric.submit(0, fetch_add(id + 1, at(target, 900_000), 1));
            fabric.finish(id).expect("the put ends well");
            fabric.finish(id + 1).expect("the fetch-add ends well");
            let after = planes(&mut fabric);
            before.iter().zip(&after).filter(|(before, after)| after > before).count()
        });
        used.max().expect("15 targets")
    };
    assert_eq!(planes_in_use(PathPolicy::Address), 1);
    assert_eq!(planes_in_use(PathPolicy::Flow), 2);
}

#[test]
fn a_spray_uses_all_planes_about_equally() {
    let planes = by_plane(&mut Fabric::up(star(2, 4), &of(PathPolicy::Spray)));
    assert_eq!(planes.iter().sum::<u64>(), PACKETS);
    // Four standard deviations of a binomial share of a quarter.
    assert!(planes.iter().all(|count| (25..=75).contains(count)), "{planes:?}");
    assert_ne!(planes, [PACKETS / 4; 4], "a random choice is never so even");
}

#[test]
fn the_least_queue_policy_avoids_a_plane_without_credits() {
    let mut options = of(PathPolicy::LeastQueue);
    options.credits.limit = 200;
    let mut fabric = Fabric::up(star(2, 4), &options);
    // Neither credits nor acknowledgements return over plane 0. Heartbeats do.
    fabric.filter = Box::new(|_, edge, forward, bytes| {
        edge != 0
            || forward
            || matches!(FrameKind::peek(bytes), Some(FrameKind::Heartbeat | FrameKind::Hello))
    });
    let planes = by_plane(&mut fabric);
    let [slow, fast @ ..] = planes.as_slice() else { panic!("four planes") };
    assert!(fast.iter().all(|count| *count > 2 * slow), "{planes:?}");
}

#[test]
fn the_loss_of_a_plane_loses_no_data() {
    for policy in [PathPolicy::RoundRobin, PathPolicy::Spray, PathPolicy::LeastQueue] {
        let mut fabric = Fabric::up(star(2, 4), &of(policy));
        fabric.memory(0)[..(BLOCKS * BLOCK) as usize].fill(9);
        let cut_at = fabric.now + 3 * DELAY_NS;
        fabric.filter = Box::new(move |now, edge, _, _| now < cut_at || edge > 1);
        fabric.submit(0, put(1, at(1, 0), local(0, BLOCKS * BLOCK)));
        fabric.submit(0, fetch_add(2, at(1, 900_000), 5));
        fabric.finish(1).unwrap_or_else(|error| panic!("{policy:?}: {error}"));
        fabric.finish(2).unwrap_or_else(|error| panic!("{policy:?}: {error}"));
        let memory = fabric.memory(1);
        assert!(memory[..(BLOCKS * BLOCK) as usize].iter().all(|byte| *byte == 9), "{policy:?}");
        assert_eq!(memory[900_000], 5, "{policy:?}: once");
    }
}

#[test]
fn a_reorder_window_below_the_sending_window_drops_early_packets() {
    let beyond = |reorder_packets| {
        let mut options = of(PathPolicy::RoundRobin);
        options.transport.window_packets = 64;
        options.transport.reorder_packets = reorder_packets;
        let mut fabric = Fabric::up(star(2, 4), &options);
        // The first data frame over plane 0 is lost. All others wait behind it.
        let mut is_first = true;
        fabric.filter = Box::new(move |_, edge, _, bytes| {
            let is_it = edge == 0 && is_first && FrameKind::peek(bytes) == Some(FrameKind::Data);
            is_first &= !is_it;
            !is_it
        });
        by_plane(&mut fabric);
        let dropped = |plane| fabric.counters(1, plane).dropped[DropReason::BeyondWindow as usize];
        (0..PLANES).map(dropped).sum::<u64>()
    };
    assert_eq!(beyond(64), 0);
    assert!(beyond(16) > 0);
}

/// Returns a graph of two nodes, a switch at each, and three switches between those.
fn diamond() -> Graph {
    let edge = |(a, a_port), (b, b_port)| Edge {
        a: NodeId(a),
        a_port: PortId(a_port),
        b: NodeId(b),
        b_port: PortId(b_port),
        plane: Plane(0),
    };
    let mut edges = vec![edge((0, 0), (2, 0)), edge((1, 0), (3, 0))];
    for middle in 0..3 {
        edges.push(edge((2, 1 + middle), (4 + middle, 0)));
        edges.push(edge((4 + middle, 1), (3, 1 + middle)));
    }
    let members = [vec![MemberRole::Endpoint; 2], vec![MemberRole::Switch; 5]].concat();
    Graph { members, edges }
}

/// Returns the data frames of one put of many packets per middle path, and the number of retransmissions.
fn through_the_middle(policy: PathPolicy, relays_choose: bool) -> (Vec<u64>, u64) {
    let mut options = of(policy);
    options.paths.relays_choose = relays_choose;
    let mut fabric = Fabric::up(diamond(), &options);
    fabric.memory(0)[..(BLOCKS * BLOCK) as usize].fill(7);
    fabric.submit(0, put(1, at(1, 0), local(0, BLOCKS * BLOCK)));
    fabric.finish(1).expect("the put ends well");
    assert!(fabric.memory(1)[..(BLOCKS * BLOCK) as usize].iter().all(|byte| *byte == 7));
    let paths = (1..4).map(|port| fabric.counters(2, port).data_frames_sent).collect();
    (paths, fabric.counters(0, 0).retransmitted)
}

#[test]
fn relays_choose_a_path_per_packet_if_configured() {
    let (mut paths, _) = through_the_middle(PathPolicy::Spray, false);
    paths.sort_unstable();
    assert_eq!(paths, [0, 0, PACKETS], "a flow has one path under any policy of its source");
    let (paths, repeated) = through_the_middle(PathPolicy::RoundRobin, true);
    assert!(paths.iter().max().unwrap() - paths.iter().min().unwrap() <= 1, "{paths:?}");
    assert_eq!((paths.iter().sum::<u64>(), repeated), (PACKETS, 0));
    let (paths, _) = through_the_middle(PathPolicy::Spray, true);
    // 200 random choices among three: a third is 67, with a deviation below 7.
    assert!(paths.iter().all(|path| (45..90).contains(path)), "{paths:?}");
    let (paths, _) = through_the_middle(PathPolicy::LeastQueue, true);
    assert!(paths.iter().all(|path| *path > 50), "no queue has frames, so it is round-robin: {paths:?}");
}

#[test]
fn a_lost_path_of_a_relay_loses_no_data() {
    let mut options = of(PathPolicy::LeastQueue);
    options.paths.relays_choose = true;
    let mut fabric = Fabric::up(diamond(), &options);
    fabric.memory(0)[..400_000].fill(9);
    // The first switch in the middle fails.
    let from = fabric.now.0 + 3_000;
    fabric.filter = Box::new(move |now, edge, _, _| now.0 < from || !matches!(edge, 2 | 3));
    fabric.submit(0, put(1, at(1, 0), local(0, 400_000)));
    fabric.finish(1).expect("the put ends well");
    assert!(fabric.memory(1)[..400_000].iter().all(|byte| *byte == 9));
}

/// Data frames that the leaf of nodes 0 and 1 has sent to each spine, in each plane, after puts of node 0 to all nodes of other leaves.
fn by_spine(policy: PathPolicy, spines: u16, planes: u8) -> Vec<u64> {
    const LEAVES: u16 = 5;
    let mut fabric = Fabric::up(leaf_spine(LEAVES, spines, planes), &of(policy));
    for target in 2..LEAVES * 2 {
        fabric.submit(0, put(target.into(), at(target, 0), local(0, 10 * BLOCK)));
    }
    for target in 2..LEAVES * 2 {
        fabric.finish(target.into()).expect("the put ends well");
    }
    let leaf = |plane: u8| usize::from(LEAVES * 2 + u16::from(plane) * (LEAVES + spines));
    let port = |plane: u8| (2..2 + spines).map(move |port| (leaf(plane), port));
    (0..planes).flat_map(port).map(|(leaf, port)| fabric.counters(leaf, port).data_frames_sent).collect()
}

#[test]
fn by_destination_uniform_traffic_uses_all_spines_equally_and_each_pair_one_path() {
    // Eight destinations with ten frames each.
    assert_eq!(by_spine(PathPolicy::Destination, 2, 1), [40; 2]);
    assert_eq!(by_spine(PathPolicy::Destination, 4, 1), [20; 4]);
    // Planes take every second destination, and the spines of a plane share them.
    assert_eq!(by_spine(PathPolicy::Destination, 2, 2), [20; 4]);
    let by_hash = by_spine(PathPolicy::Flow, 4, 1);
    assert!(by_hash.iter().sum::<u64>() == 80 && by_hash != [20; 4], "{by_hash:?}");
}

#[test]
fn by_destination_the_loss_of_a_spine_loses_no_data() {
    let mut fabric = Fabric::up(leaf_spine(2, 2, 1), &of(PathPolicy::Destination));
    fabric.memory(0)[..400_000].fill(9);
    // Edge 4 joins the first leaf with the first spine, to which even destinations belong.
    let from = fabric.now.0 + 3_000;
    fabric.filter = Box::new(move |now, edge, _, _| now.0 < from || edge != 4);
    fabric.submit(0, put(1, at(2, 0), local(0, 400_000)));
    fabric.finish(1).expect("the put ends well");
    assert!(fabric.memory(2)[..400_000].iter().all(|byte| *byte == 9));
}

/// Data frames by port of each node of a torus of four by four, after a put of ten frames from each node to the node that is one
/// column and two rows further.
fn across_a_torus(has_dimensions: bool) -> Vec<[u64; 4]> {
    let (graph, dimensions) = torus(4);
    let dimensions = if has_dimensions { dimensions } else { Vec::new() };
    let mut fabric = Fabric::up(graph, &Options { dimensions, ..of(PathPolicy::Flow) });
    for node in 0..16u16 {
        let (x, y) = ((node % 4 + 1) % 4, (node / 4 + 2) % 4);
        fabric.submit(usize::from(node), put(node.into(), at(x + 4 * y, 0), local(0, 10 * BLOCK)));
    }
    (0..16).for_each(|id| assert_eq!(fabric.finish(id), Ok(0)));
    let ports = |node: usize| [0, 1, 2, 3].map(|port| fabric.counters(node, port).data_frames_sent);
    (0..16).map(ports).collect()
}

#[test]
fn in_a_torus_frames_cross_the_row_before_the_column() {
    let ports = across_a_torus(true);
    // Each node's own frames take one step in the row. Columns are crossed in either direction, in two steps.
    assert!(ports.iter().all(|[next, previous, ..]| (*next, *previous) == (10, 0)), "{ports:?}");
    assert_eq!(ports.iter().map(|[_, _, down, up]| down + up).sum::<u64>(), 16 * 2 * 10, "{ports:?}");
    // Without dimensions, some frames cross the column first.
    assert!(across_a_torus(false).iter().any(|[next, ..]| *next != 10));
}
