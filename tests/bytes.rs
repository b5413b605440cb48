//! Links carry the bytes of the schedule and of the stated headers, and nothing where no route leads.
//!
//! The closed forms are those of the literature, implemented again here. Frame sizes come from docs/wire-format.md.
//! Bytes are the report's, of whole frames. A frame's bytes beside its payload are between those of the link header alone and
//! those of a put with its signal, so the number of frames bounds the overhead from both sides.

mod support;

use std::path::Path;

use serde_json::Value;
use support::{Rackloom, rack_file, retransmitted, run, sim};

/// Ethernet and link header: the smallest frame.
const FRAME_BYTES_MIN: u64 = 46;
/// Link and fabric header, select, put, and a signal with a select of its own.
const OVERHEAD_BYTES_MAX: u64 = 86 + 16 + (12 + 16) + 16 + (12 + 8);
/// Length of a put's data in one frame, by default.
const DATA_BYTES_MAX: u64 = 4096;

const RANKS: u64 = 8;
/// Whole frames in every part of every algorithm.
const SIZE_BYTES: u64 = RANKS * 12 * DATA_BYTES_MAX;

/// Starts both engines on one file. Heartbeats are rare: on a busy machine a late heartbeat moves traffic to
/// another path for a while, which this test does not want.
fn engines(text: &str) -> [(&'static str, Rackloom); 2] {
    let file = rack_file(&format!("{text}timers: {{heartbeat_interval: 5s, heartbeat_miss_max: 5}}\n"));
    let on = |start: fn(&Path) -> Rackloom| start(&file);
    [("run", on(run)), ("sim", on(sim))]
}

/// Checks one direction of one link against the bytes that it must carry.
fn carries(link: &Value, payload_bytes: u64, what: &str) {
    let number = |name: &str| link[name].as_u64().expect("a number");
    let (frames, bytes, repeated) = (number("frames"), number("bytes_on_wire"), number("retransmitted"));
    let least = payload_bytes + frames * FRAME_BYTES_MIN;
    // A timer may expire on a busy machine although nothing is lost.
    let most = payload_bytes + frames * OVERHEAD_BYTES_MAX + repeated * DATA_BYTES_MAX;
    let name = &link["name"];
    assert!((least..=most).contains(&bytes), "{what}, {name}: {bytes} bytes, not in {least}..={most}");
    let frames_least = payload_bytes / DATA_BYTES_MAX;
    assert!(frames >= frames_least, "{what}, {name}: {frames} frames, at least {frames_least}");
}

/// Runs one all-reduce and compares every link direction, named `from->to`, with `payload(from, to)`.
fn all_reduce(shape: &str, algorithm: &str, payload: impl Fn(u64, u64) -> u64) {
    for (engine, rack) in engines(&format!("name: bytes\nshape: {{{shape}: {{nodes: {RANKS}}}}}\n")) {
        let size = format!("{SIZE_BYTES}B");
        let options =
            ["--collective", "all-reduce", "--algorithm", algorithm, "--bytes", &size, "--repetitions", "1"];
        let report = rack.with(&options).with(&["--warm-up", "0"]).finish().passed();
        let what = format!("{engine}, {algorithm}");
        if engine == "sim" {
            assert_eq!(retransmitted(&report), 0, "{what}");
        }
        let mut total = 0;
        for link in report["links"].as_array().expect("links") {
            let (from, to) = link["name"].as_str().expect("a name").split_once("->").expect("two ends");
            let rank = |name: &str| name.trim_start_matches('n').parse::<u64>().expect("a rank");
            let bytes = payload(rank(from), rank(to));
            carries(link, bytes, &what);
            total += bytes;
        }
        assert!(total >= RANKS * 2 * (RANKS - 1) * SIZE_BYTES / RANKS, "{what}: a form is too small");
    }
}

#[test]
fn a_ring_carries_twice_all_but_one_part_in_one_direction() {
    let all = 2 * (RANKS - 1) * SIZE_BYTES / RANKS;
    all_reduce("ring", "ring", |from, to| if to == (from + 1) % RANKS { all } else { 0 });
    all_reduce("ring", "bidirectional-ring", |_, _| all / 2);
}

#[test]
fn a_mesh_carries_one_part_in_each_direction_or_everything_at_once() {
    all_reduce("full-mesh", "two-shot", |_, _| 2 * SIZE_BYTES / RANKS);
    all_reduce("full-mesh", "one-shot", |_, _| SIZE_BYTES);
}

#[test]
fn halving_and_doubling_carries_half_a_quarter_an_eighth_twice() {
    // Halves are exchanged first, with the rank that differs in the lowest bit: the closest rank gets the most bytes.
    all_reduce("full-mesh", "halving-doubling", |from, to| match from ^ to {
        1 => SIZE_BYTES,
        2 => SIZE_BYTES / 2,
        4 => SIZE_BYTES / 4,
        _ => 0,
    });
}

/// Three hops in one direction, four in the other.
const TWO_PATHS: &str = "name: two-ways
shape:
  custom:
    nodes: [n0, n1]
    switches: [a, b, c, d, e]
    links:
      - {a: n0, b: a}
      - {a: a, b: b}
      - {a: b, b: n1}
      - {a: n0, b: c}
      - {a: c, b: d}
      - {a: d, b: e}
      - {a: e, b: n1}
job: {bandwidth: {bytes: 64KiB, repetitions: 20, warm_up: 0}}
";

#[test]
fn puts_and_gets_over_several_hops_are_on_the_links_of_their_route_only() {
    for (engine, rack) in engines(TWO_PATHS) {
        let report = rack.finish().passed();
        let operations = report["operations"].as_array().expect("operations");
        let payload = |what: &str| {
            let kind = operations.iter().find(|kind| kind["kind"] == what).expect("it was measured");
            kind["count"].as_u64().expect("a number") * (64 << 10)
        };
        let (put, got) = (payload("put"), payload("get"));
        assert!(put >= 20 * (64 << 10) && got >= 20 * (64 << 10), "{engine}: {put}, {got}");
        // Retransmissions pass the other links of the route as well.
        let repeated = retransmitted(&report);
        for link in report["links"].as_array().expect("links") {
            let bytes = match link["name"].as_str().expect("a name") {
                "n0->a" | "a->b" | "b->n1" => put,
                "n1->b" | "b->a" | "a->n0" => got,
                _ => 0,
            };
            let mut link = link.clone();
            link["retransmitted"] = repeated.into();
            carries(&link, bytes, engine);
        }
    }
}
