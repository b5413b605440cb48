//! Virtual time against values computed by hand.

mod common;

use common::{Rack, at, load, local, plan, put, store};
use rackloom_protocol::{NodeId, OperationId};
use rackloom_simulator::wire_bytes;

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

#[test]
fn a_store_over_an_idle_link_is_acknowledged_after_one_round_trip_to_the_nanosecond() {
    let mut rack = Rack::up(&plan(IDLE_PAIR), 1);
    let start = rack.simulation.now();
    rack.command(0, store(1, at(1, 64), b"here"));
    assert_eq!(rack.completions(0, 1)[0].at.since(start), 4_000);
}

/// Returns the time of a store from one node of a star to the other, with its acknowledgement.
fn star_round_trip(link: &str, forwarding: &str) -> u64 {
    let text = format!(
        "{{name: star, shape: {{star: {{nodes: 2}}}}, link: {{{link}}}, forwarding: {{{forwarding}}}}}"
    );
    let mut rack = Rack::up(&plan(&text), 1);
    let start = rack.simulation.now();
    rack.command(0, store(1, at(1, 0), b"here"));
    rack.completions(0, 1)[0].at.since(start)
}

#[test]
fn a_star_takes_450_ns_and_two_cables_each_way_as_sue_publishes() {
    // 50 ns at each of four sides and 250 ns in the switch; 4.6 ns per metre of copper.
    let budget = |length: &str| {
        let link = format!("length: {length}, mac_latency: 10ns, phy_latency: 15ns, fec_latency: 25ns");
        star_round_trip(&link, "mode: cut-through, latency: 250ns")
    };
    assert_eq!(budget("30m"), 2 * (450 + 2 * 138));
    // 477.6 ns each way; each of the four links rounds up to a whole nanosecond.
    let took = budget("3m");
    assert!((956..=959).contains(&took), "{took} ns");
}

#[test]
fn a_switch_that_stores_before_it_forwards_serialises_every_frame_twice() {
    let took = |mode| star_round_trip("delay: 1us, rate: 1Gbit/s", &format!("mode: {mode}"));
    let (stored, cut_through) = (took("store-and-forward"), took("cut-through"));
    // The store's 4 bytes follow its address and its header, the acknowledgement is one header.
    let bytes = wire_bytes(86 + 16 + 12 + 4) + wire_bytes(86 + 12);
    assert_eq!(stored, 4_000 + 2 * 8 * bytes as u64);
    assert_eq!(cut_through, 4_000 + 8 * bytes as u64);
}

#[test]
fn headers_of_a_profile_decide_what_a_saturated_link_carries() {
    let text = |headers| {
        format!(
            "{{name: pair, shape: {{ring: {{nodes: 2}}}}, packing: {{mode: off}}, \
             link: {{delay: 1us, rate: 1Gbit/s, headers: {headers}}}}}"
        )
    };
    let took = |headers| {
        let mut rack = Rack::up(&plan(&text(headers)), 1);
        let start = rack.simulation.now();
        (0..100).for_each(|operation| rack.command(0, store(operation, at(1, 0), &[1; 64])));
        rack.completions(0, 100)[99].at.since(start)
    };
    // 58 bytes of headers and 64 of payload against 138 and 64, a hundred times; the rest is alike.
    let (sue, own) = (took("sue-like"), took("own"));
    assert!(sue.abs_diff(100 * 8 * 122) < 4_000, "{sue} ns");
    assert!(own.abs_diff(100 * 8 * 202) < 5_000, "{own} ns");
}
