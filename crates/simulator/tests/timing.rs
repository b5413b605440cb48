//! Virtual time against what can be computed by hand.

mod common;

use common::{Rack, at, load, local, plan, put, store};
use rackloom_protocol::{NodeId, OperationId};

const IDLE_PAIR: &str = "{name: pair, shape: {ring: {nodes: 2}}, link: {delay: 2us}}";

#[test]
fn a_load_over_an_idle_link_takes_one_round_trip_to_the_nanosecond() {
    let mut rack = Rack::up(&plan(IDLE_PAIR), 1);
    rack.simulation.memory_mut(NodeId(1)).bytes_mut(common::REGION)[64..68].copy_from_slice(b"here");
    let start = rack.simulation.now();
    rack.command(0, load(1, at(1, 64), local(128, 4)));
    let done = rack.completions(0, 1);
    assert_eq!(done[0].result, Ok(0));
    assert_eq!(done[0].at.since(start), 4_000);
    assert_eq!(&rack.simulation.memory(NodeId(0)).bytes(common::REGION)[128..132], b"here");
}

#[test]
fn a_load_at_a_finite_rate_adds_both_frames_serialisation() {
    let text = "{name: pair, shape: {ring: {nodes: 2}}, link: {delay: 2us, rate: 100Gbit/s}}";
    let mut rack = Rack::up(&plan(text), 1);
    let start = rack.simulation.now();
    let sent = sent_wire_bytes(&rack);
    rack.command(0, load(1, at(1, 0), local(0, 256)));
    let took = rack.completions(0, 1)[0].at.since(start);
    let bytes = sent_wire_bytes(&rack) - sent;
    // 80 ps per byte; each of the two frames may round up to a whole nanosecond. Control frames that go out later are
    // part of `bytes`, so the load can take less, but not less than its own 256 bytes and two headers.
    assert!(took <= 4_000 + (bytes * 80).div_ceil(1_000) + 2, "{took} ns for {bytes} wire bytes");
    assert!(took >= 4_000 + (256 + 2 * 84) * 80 / 1_000, "{took} ns");
}

fn sent_wire_bytes(rack: &Rack) -> u64 {
    rack.simulation.statistics().wire_bytes
}

#[test]
fn stores_and_puts_arrive_byte_by_byte() {
    let mut rack = Rack::up(&plan(IDLE_PAIR), 1);
    let pattern: Vec<u8> = (0..20_000_u32).map(|n| (n * 7 + n / 256) as u8).collect();
    rack.simulation.memory_mut(NodeId(0)).bytes_mut(common::REGION)[..20_000].copy_from_slice(&pattern);
    rack.command(0, put(1, at(1, 30_001), local(0, 20_000)));
    rack.command(0, store(2, at(1, 5), b"hello"));
    let mut done = rack.completions(0, 2);
    done.sort_by_key(|done| done.operation);
    assert_eq!(done.iter().map(|done| done.operation).collect::<Vec<_>>(), [OperationId(1), OperationId(2)]);
    assert!(done.iter().all(|done| done.result.is_ok()), "{done:?}");
    let there = rack.simulation.memory(NodeId(1)).bytes(common::REGION);
    assert_eq!(&there[30_001..50_001], pattern);
    assert_eq!(&there[..12], b"\0\0\0\0\0hello\0\0");
    assert!(there[50_001..].iter().chain(&there[10..30_001]).all(|byte| *byte == 0));
}
