//! Tests of transfers of several pieces: lists, blocks at equal distances, and puts with an immediate value.

#[path = "fabric/rig.rs"]
mod rig;

use rackloom::fabric::*;
use rig::local;

const RACKS: [&str; 3] = [
    "name: pair\nshape: {ring: {nodes: 2}}\n",
    // All pieces in frames, some of which are lost.
    "name: wire\nshape: {ring: {nodes: 2}}\nforce_wire: true\nlink: {loss: 1%}\n",
    "name: far\nshape: {ring: {nodes: 2}}\nservers: {a: [n0], b: [n1]}\nlink: {loss: 1%, reorder: 1%}\n",
];

fn bytes(length: u64) -> Vec<u8> {
    (0..length).map(|position| (position * 7 % 251 + 1) as u8).collect()
}

/// A region of each node of a pair, the first one with content.
struct Pair {
    nodes: Vec<Node>,
    near: Region,
    far: Region,
}

impl Pair {
    fn new(plan: &str, length: u64) -> Self {
        let nodes = local(plan).into_nodes();
        let near = nodes[0].register(RegionOptions::new(1, 1), bytes(length)).unwrap();
        let far = nodes[1].allocate(RegionOptions::new(2, 2), length).unwrap();
        Self { nodes, near, far }
    }

    fn content(region: &Region) -> Vec<u8> {
        let mut content = vec![0; region.len() as usize];
        region.read(0, &mut content).unwrap();
        content
    }
}

#[test]
fn blocks_at_equal_distances_reach_their_places_and_nothing_else_changes() {
    for plan in RACKS {
        let layouts = [
            // More blocks than may be in flight.
            Strided { blocks: 300, block_bytes: 8, local_stride: 32, remote_stride: 40 },
            Strided { blocks: 3, block_bytes: 3000, local_stride: 3000, remote_stride: 3500 },
            Strided { blocks: 1, block_bytes: 5, local_stride: 0, remote_stride: 0 },
            Strided { blocks: 0, block_bytes: 5, local_stride: 1, remote_stride: 1 },
        ];
        for layout in layouts {
            let Strided { blocks, block_bytes, local_stride, remote_stride } = layout;
            let pair = Pair::new(plan, 16 << 10);
            let [first, _] = &pair.nodes[..] else { unreachable!() };
            first.put_strided(&pair.near.slice(64..), pair.far.address(128), layout).wait().unwrap();
            let mut expected = vec![0; 16 << 10];
            for block in 0..blocks {
                let from = (64 + block * local_stride) as usize;
                let to = (128 + block * remote_stride) as usize;
                let length = block_bytes as usize;
                expected[to..to + length].copy_from_slice(&bytes(16 << 10)[from..from + length]);
            }
            assert_eq!(Pair::content(&pair.far), expected, "{layout:?}");

            // Back to another place: the distances change sides.
            let back = Strided { local_stride: remote_stride, remote_stride: local_stride, ..layout };
            let copy = first.allocate(RegionOptions::new(3, 3), 16 << 10).unwrap();
            pair.far.write(0, &bytes(16 << 10)).unwrap();
            first.get_strided(pair.far.address(64), &copy.slice(128..), back).wait().unwrap();
            assert_eq!(Pair::content(&copy), expected, "{layout:?}");
        }
    }
}

#[test]
fn a_list_of_pieces_has_one_completion() {
    for plan in RACKS {
        let pair = Pair::new(plan, 8192);
        let [first, _] = &pair.nodes[..] else { unreachable!() };
        // Start, length and distant start of each piece. Pieces do not overlap.
        let spans: Vec<_> =
            (0..200_u64).map(|piece| (piece * 40, piece % 40 + 1, piece * 7 % 200 * 40)).collect();
        let at = |region: &Region, (start, length, _): &(u64, u64, u64)| region.slice(*start..start + length);
        let far = |span: &(u64, u64, u64)| pair.far.address(span.2);
        let pieces: Vec<_> = spans.iter().map(|span| (at(&pair.near, span), far(span))).collect();
        let queue = Queue::with_capacity(4);
        first.put_vector(&pieces).submit(&queue, 9).unwrap();
        let completion = loop {
            if let Some(completion) = first.poll(&queue) {
                break completion;
            }
        };
        completion.result.unwrap();
        assert_eq!(completion.context, 9);
        assert!(first.poll(&queue).is_none(), "one completion");
        let copy = first.allocate(RegionOptions::new(3, 3), 8192).unwrap();
        let back: Vec<_> = spans.iter().map(|span| (at(&copy, span), far(span))).collect();
        first.get_vector(&back).wait().unwrap();
        let (copied, given) = (Pair::content(&copy), bytes(8192));
        for (start, length, _) in &spans {
            let range = *start as usize..(start + length) as usize;
            assert_eq!(copied[range.clone()], given[range]);
        }
    }
}

#[test]
fn the_message_of_a_put_with_an_immediate_value_arrives_behind_its_data() {
    for plan in RACKS {
        let pair = Pair::new(plan, 1 << 16);
        let [first, second] = &pair.nodes[..] else { unreachable!() };
        let own = second.allocate(RegionOptions::new(4, 4), 8).unwrap();
        for round in 1..=20_u8 {
            pair.near.write(0, &vec![round; 1 << 16]).unwrap();
            let pending =
                first.put_with_immediate(&pair.near.slice(..), pair.far.address(0), 1000 + u64::from(round));
            let pending = pending.start().unwrap();
            let received = second.receive(Some(first.id()), 0, u64::MAX, &own.slice(0..0)).wait().unwrap();
            assert_eq!((received.tag, received.length), (1000 + u64::from(round), 0));
            assert!(Pair::content(&pair.far).iter().all(|byte| *byte == round), "round {round}");
            pending.wait().unwrap();
        }
    }
}

#[test]
fn a_failed_piece_fails_the_whole_and_sends_no_message() {
    for plan in RACKS {
        let pair = Pair::new(plan, 4096);
        let [first, second] = &pair.nodes[..] else { unreachable!() };
        let beyond = Strided { blocks: 100, block_bytes: 8, local_stride: 8, remote_stride: 64 };
        let result = first.put_strided(&pair.near.slice(..), pair.far.address(0), beyond).wait();
        assert!(matches!(result, Err(Error::Refused { .. })), "{result:?}");
        let outside = Strided { local_stride: 64, ..beyond };
        let result = first.put_strided(&pair.near.slice(..), pair.far.address(0), outside).wait();
        assert!(matches!(result, Err(Error::Invalid(Invalid::OutsideRegion))), "{result:?}");
        let endless = Strided { blocks: u64::MAX, block_bytes: 8, local_stride: 0, remote_stride: u64::MAX };
        let result = first.put_strided(&pair.near.slice(..), pair.far.address(0), endless).wait();
        assert!(matches!(result, Err(Error::Invalid(Invalid::OutsideRegion))), "{result:?}");
        let result = first.put_vector(&[(pair.far.slice(..), pair.far.address(0))]).wait();
        assert!(matches!(result, Err(Error::Invalid(Invalid::OtherNode))), "{result:?}");

        let own = second.allocate(RegionOptions::new(4, 4), 8).unwrap();
        let refused = first.put_with_immediate(&pair.near.slice(..), pair.far.address(1), 7).wait();
        assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
        // The next message is the first one that arrives.
        first.put_with_immediate(&pair.near.slice(..), pair.far.address(0), 8).wait().unwrap();
        let received = second.receive(None, 0, u64::MAX, &own.slice(0..0)).wait().unwrap();
        assert_eq!(received.tag, 8);
    }
}
