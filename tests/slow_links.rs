//! Link-level retry on links of every rate and length: without a loss nothing is sent again.
//!
//! A replay is needless if the neighbour had the frame already; it then counts a duplicate. In virtual time there must be none on any link.
//! Real processes are measured on all wires on links slow enough to be felt. There a neighbour that has no processor for longer than the replay
//! timer causes a needless replay, so the strict bound holds where the report shows that no timer was that late.

mod support;

use serde_json::Value;
use support::wires::wires;
use support::{over_links, rack_file, run, sim};

/// The replay timer between real processes.
const REPLAY_TIMER_NS: u64 = 3_000_000;
/// Frames in a thousand that real processes may repeat needlessly on a quiet host.
const NEEDLESS_PER_MILLE_MAX: u64 = 1;

fn rack(rate: &str, length: &str, frame: &str) -> String {
    format!(
        "name: slow\nshape: {{ring: {{nodes: 4}}}}\nframe_bytes_max: {frame}\n\
         link: {{rate: {rate}, length: {length}, llr: on}}\n\
         job: {{collective: {{collective: all-reduce, algorithm: ring, bytes: 64KiB, repetitions: 1, warm_up: 0}}}}\n"
    )
}

fn retry(report: &Value, counter: &str) -> u64 {
    over_links(report, |link| link["retry"][counter].as_u64().unwrap_or(0))
}

#[test]
fn in_virtual_time_no_link_repeats_a_frame_that_has_arrived() {
    for rate in ["10Mbit/s", "100Mbit/s", "1Gbit/s", "10Gbit/s", "100Gbit/s", "400Gbit/s", "800Gbit/s"] {
        for length in ["1m", "30m", "1000m", "10000m"] {
            for frame in ["1500B", "4240B", "9000B"] {
                let report = sim(&rack_file(&rack(rate, length, frame))).finish().passed();
                let found = [retry(&report, "replays"), retry(&report, "rx_duplicate_seq")];
                assert_eq!(found, [0, 0], "{rate}, {length}, frames of {frame}");
                assert!(retry(&report, "tx_ok") > 0, "the links do repeat: {report}");
            }
        }
    }
}

#[test]
fn real_processes_on_slow_links_repeat_hardly_anything_and_lose_nobody() {
    for wire in wires("real_processes_on_slow_links_repeat_hardly_anything_and_lose_nobody") {
        for rate in ["20Mbit/s", "100Mbit/s", "1Gbit/s"] {
            let report =
                run(&rack_file(&rack(rate, "3m", "4240B"))).with(&["--wire", wire]).finish().passed();
            let (sent, needless) = (retry(&report, "tx_ok"), retry(&report, "rx_duplicate_seq"));
            assert!(sent > 100, "{wire}, {rate}: {report}");
            println!("{wire}, {rate}: {needless} of {sent} frames were repeated needlessly");
            let nodes = report["nodes"].as_array().expect("nodes").iter();
            let late_ns = nodes.filter_map(|node| node["timer_late_max_ns"].as_u64()).max().unwrap_or(0);
            let is_quiet = late_ns < REPLAY_TIMER_NS;
            let most = if is_quiet { sent * NEEDLESS_PER_MILLE_MAX / 1000 } else { sent };
            assert!(needless <= most, "{wire}, {rate}: {needless} of {sent}, timers {late_ns} ns late");
        }
    }
}
