//! Link-level retry on links of every rate and length: without a loss no frame is sent twice.
//!
//! A replay is needless if the neighbour had the frame already. The neighbour then counts a duplicate. In
//! virtual time there must be none on any link. Real processes are measured on all wires. A neighbour without
//! a processor for longer than the replay timer causes a needless replay, and a busy host can do that in
//! every run. So each rate has several attempts, and one of them must stay below the bound. If the members of
//! every attempt were served late, the host was busy all the time: the bound is not judged and the test
//! prints that. No attempt may lose a node or repeat more than it sends.

mod support;

use serde_json::Value;
use support::wires::{not_tried, wires};
use support::{over_links, rack_file, run, sim};

/// Needless replays per thousand frames that real processes on an undisturbed host may send.
const NEEDLESS_PER_MILLE_MAX: u64 = 1;
/// Runs of which one must be undisturbed.
const ATTEMPTS: usize = 6;
/// Lateness of a member's timers above which the host counts as busy, in nanoseconds: the least replay timer between real processes. A
/// neighbour that gets no processor for longer answers after the timer has expired, and the replay is right.
const BUSY_NS: u64 = 3_000_000;
/// Load of a rack of the sweep in virtual time.
const SHORT: &str = "bytes: 64KiB, repetitions: 1, warm_up: 0";
/// Load of real processes: enough frames that one in a thousand is visible.
const LONG: &str = "bytes: 512KiB, repetitions: 5, warm_up: 0";

fn rack(rate: &str, length: &str, frame: &str, carried: &str) -> String {
    format!(
        "name: slow\nshape: {{ring: {{nodes: 4}}}}\nframe_bytes_max: {frame}\n\
         link: {{rate: {rate}, length: {length}, llr: on}}\n\
         job: {{collective: {{collective: all-reduce, algorithm: ring, {carried}}}}}\n"
    )
}

fn retry(report: &Value, counter: &str) -> u64 {
    over_links(report, |link| link["retry"][counter].as_u64().unwrap_or(0))
}

#[test]
fn in_virtual_time_no_link_replays_a_frame_that_has_arrived() {
    for rate in ["10Mbit/s", "100Mbit/s", "1Gbit/s", "10Gbit/s", "100Gbit/s", "400Gbit/s", "800Gbit/s"] {
        for length in ["1m", "30m", "1000m", "10000m"] {
            for frame in ["1500B", "4240B", "9000B"] {
                let report = sim(&rack_file(&rack(rate, length, frame, SHORT))).finish().passed();
                let found = [retry(&report, "replays"), retry(&report, "rx_duplicate_seq")];
                assert_eq!(found, [0, 0], "{rate}, {length}, frames of {frame}");
                assert!(retry(&report, "tx_ok") > 0, "the links do repeat: {report}");
            }
        }
    }
}

/// Number of random racks and links.
const DRAWN: u64 = 80;

/// Returns a number from `least` on and below `end`, of a sequence that follows from its start (splitmix64).
fn drawn(state: &mut u64, least: u64, end: u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    least + (mixed ^ (mixed >> 31)) % (end - least)
}

/// Checks the property over random plans: shape, rate, length, largest frame, replay buffer, acknowledgement spacing and message size.
#[test]
fn in_virtual_time_no_random_plan_replays_a_frame_that_has_arrived() {
    for number in 0..DRAWN {
        let state = &mut (number << 32);
        let nodes = drawn(state, 3, 7);
        let shape = match drawn(state, 0, 3) {
            0 => format!("{{ring: {{nodes: {nodes}}}}}"),
            1 => format!("{{star: {{nodes: {nodes}, planes: {}}}}}", drawn(state, 1, 3)),
            _ => format!("{{full-mesh: {{nodes: {nodes}}}}}"),
        };
        // Evenly over the decades from 10 Mbit/s to 800 Gbit/s.
        let rate = (drawn(state, 10, 80) * 10_u64.pow(drawn(state, 0, 5) as u32)).min(800_000);
        let (length, frame) = (drawn(state, 1, 10_001), drawn(state, 354, 9_015));
        let buffer = frame + drawn(state, 0, 512 << 10);
        let spacing = drawn(state, 1, buffer.min(64 << 10) + 1);
        let text = format!(
            "name: drawn\nshape: {shape}\nframe_bytes_max: {frame}B\n\
             link: {{rate: {rate}Mbit/s, length: {length}m, llr: {{outstanding_bytes: {buffer}B, ack_spacing: {spacing}B}}}}\n\
             job: {{collective: {{collective: all-reduce, bytes: {}KiB, repetitions: 1, warm_up: 0}}}}\n",
            4 * drawn(state, 1, 33)
        );
        let report = sim(&rack_file(&text)).finish().passed();
        let found = [retry(&report, "replays"), retry(&report, "rx_duplicate_seq")];
        assert_eq!(found, [0, 0], "{text}");
        assert!(retry(&report, "tx_ok") > 0, "{text}");
    }
}

/// Needless replays of one run.
struct Attempt {
    sent: u64,
    needless: u64,
    /// Largest lateness of any member's timers, in nanoseconds.
    late_ns: u64,
}

impl Attempt {
    const fn meets_the_bound(&self) -> bool {
        self.needless * 1_000 <= self.sent * NEEDLESS_PER_MILLE_MAX
    }
}

fn attempt(wire: &str, rate: &str) -> Attempt {
    let report = run(&rack_file(&rack(rate, "3m", "4240B", LONG))).with(&["--wire", wire]).finish().passed();
    let (sent, needless) = (retry(&report, "tx_ok"), retry(&report, "rx_duplicate_seq"));
    assert!(sent > 1_000, "{wire}, {rate}: {report}");
    assert!(needless < sent, "{wire}, {rate}: {needless} of {sent} frames were repeated needlessly");
    let nodes = report["nodes"].as_array().expect("nodes");
    let late_ns = nodes.iter().filter_map(|node| node["timer_late_max_ns"].as_u64()).max().unwrap_or(0);
    let late_ms = late_ns / 1_000_000;
    println!(
        "{wire}, {rate}: {needless} of {sent} frames were repeated needlessly, timers {late_ms} ms late"
    );
    Attempt { sent, needless, late_ns }
}

#[test]
fn real_processes_on_slow_links_replay_little_and_lose_no_node() {
    for wire in wires("real_processes_on_slow_links_replay_little_and_lose_no_node") {
        for rate in ["20Mbit/s", "100Mbit/s", "1Gbit/s"] {
            let mut late_min_ns = u64::MAX;
            let is_met = (0..ATTEMPTS).map(|_| attempt(wire, rate)).any(|attempt| {
                late_min_ns = late_min_ns.min(attempt.late_ns);
                attempt.meets_the_bound()
            });
            if !is_met && late_min_ns > BUSY_NS {
                not_tried(&format!("the bound of needless replays on {wire} at {rate}: the host is busy"));
                continue;
            }
            assert!(is_met, "{wire}, {rate}: every one of {ATTEMPTS} runs repeated frames needlessly");
        }
    }
}
