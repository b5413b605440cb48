//! The exact cost of one lost frame.

mod common;

use common::{Rack, at, local, plan, put};

const OPERATIONS: u64 = 1_000;
const WINDOW: u64 = 16;

/// 1000 puts of one packet each over a link whose round trip is longer than the window, with data frame `drop` lost, or
/// none if it is empty.
fn retransmitted(mode: &str, drop: &str, ack_every: u64) -> u64 {
    let text = format!(
        "{{name: pair, shape: {{ring: {{nodes: 2}}}}, \
         link: {{delay: 10us, rate: 400Gbit/s}}, links: {{n0--n1: {{drop_frames: {{n0->n1: [{drop}]}}}}}}, \
         packing: {{mode: off}}, timers: {{heartbeat_interval: 1ms}}, \
         transport: {{mode: {mode}, window_packets: {WINDOW}, ack_every_packets: {ack_every}, timeout_initial: 20ms, timeout_min: 20ms}}}}"
    );
    let mut rack = Rack::up(&plan(&text), 1);
    for operation in 0..OPERATIONS {
        rack.command(0, put(operation, at(1, operation % 64 * 256), local(0, 256)));
    }
    let done = rack.completions(0, OPERATIONS as usize);
    assert!(done.iter().all(|done| done.result.is_ok()));
    rack.retransmitted(0, 1)
}

#[test]
fn nothing_is_sent_again_when_nothing_is_lost() {
    assert_eq!(retransmitted("selective", "", 1), 0);
    assert_eq!(retransmitted("go-back-n", "", 1), 0);
}

#[test]
fn selective_retransmits_only_the_lost_frame() {
    assert_eq!(retransmitted("selective", "901", 1), 1);
}

#[test]
fn go_back_n_retransmits_all_packets_in_flight() {
    // With an acknowledgement per packet, 900 is acknowledged and a whole window from 901 on is in flight.
    assert_eq!(retransmitted("go-back-n", "901", 1), WINDOW);
    // With one per 8 packets the last acknowledges 896: the window ends at 912, and 901 to 912 are sent again.
    assert_eq!(retransmitted("go-back-n", "901", 8), WINDOW - 4);
}
