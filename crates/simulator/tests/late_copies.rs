//! The engine may delay copies from one memory to another, and the delay is not observable.

mod common;

use common::{REGION, REGION_BYTES, Rack, at, fetch_add, load, local, plan, put, store};
use rackloom_protocol::{Command, NodeId, OperationId};

const NODES: u16 = 3;
const RACK: &str = "{name: late, shape: {ring: {nodes: 3}}, link: {rate: 100Gbit/s, delay: 500ns}}";

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Gives commands that read and write the same bytes from all sides, and often pass on bytes that have just arrived.
fn give_some_commands(rack: &mut Rack, numbers: &mut Numbers, operation: &mut u64) {
    for _ in 0..12 {
        let node = numbers.below(NODES.into()) as u16;
        let other = (node + 1 + numbers.below(u64::from(NODES) - 1) as u16) % NODES;
        let length = [700, 4_096, 12_000, 16_384][numbers.below(4) as usize];
        let positions = (REGION_BYTES - length) / 4_096;
        let (here, there) = (numbers.below(positions) * 4_096, numbers.below(positions) * 4_096);
        *operation += 1;
        let target = at(other, there);
        match numbers.below(6) {
            0 => rack.command(node, store(*operation, target, &[*operation as u8; 200])),
            1 => rack.command(node, fetch_add(*operation, target)),
            2 => rack.command(node, load(*operation, target, local(here, 256))),
            3 => {
                let (operation, into) = (OperationId(*operation), local(here, length));
                rack.command(node, Command::Get { operation, target, into });
            }
            _ => rack.command(node, put(*operation, target, local(here, length))),
        }
    }
}

/// Returns the final memories, and the hash of the run, if the engine stops every `slice_ns`.
fn history(seed: u64, slice_ns: u64) -> (Vec<Vec<u8>>, u64) {
    let mut rack = Rack::up(&plan(RACK), 3);
    let (mut numbers, mut operation) = (Numbers(seed), 0);
    for node in 0..NODES {
        let bytes = rack.simulation.memory_mut(NodeId(node)).bytes_mut(REGION);
        bytes.iter_mut().for_each(|byte| *byte = numbers.below(256) as u8);
    }
    for _ in 0..8 {
        give_some_commands(&mut rack, &mut numbers, &mut operation);
        // Some operations are still outstanding when the next ones are given.
        (0..12_000 / slice_ns).for_each(|_| rack.pass(slice_ns));
    }
    (0..200_000 / slice_ns).for_each(|_| rack.pass(slice_ns));
    let memory = |node| rack.simulation.memory(NodeId(node)).bytes(REGION).to_vec();
    ((0..NODES).map(memory).collect(), rack.simulation.trace_hash())
}

#[test]
fn late_copies_change_nothing() {
    for seed in 0..20 {
        let at_once = history(seed, 40);
        for slice_ns in [1_000, 4_000] {
            let late = history(seed, slice_ns);
            for (node, (late, at_once)) in late.0.iter().zip(&at_once.0).enumerate() {
                let differs = late.iter().zip(at_once).position(|(one, other)| one != other);
                assert_eq!(differs, None, "seed {seed}, node {node}, slices of {slice_ns} ns");
            }
            assert_eq!(late.1, at_once.1, "seed {seed}: the hash");
        }
    }
}

#[test]
fn a_byte_of_payload_changes_the_hash() {
    let hash = |byte: u8| {
        let mut rack = Rack::up(&plan(RACK), 3);
        rack.simulation.memory_mut(NodeId(0)).bytes_mut(REGION)[9_999] = byte;
        rack.command(0, put(1, at(1, 0), local(0, 12_000)));
        rack.pass(100_000);
        assert_eq!(rack.simulation.memory(NodeId(1)).bytes(REGION)[9_999], byte);
        rack.simulation.trace_hash()
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}
