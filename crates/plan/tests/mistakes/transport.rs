//! Tests of mistakes in frames, windows, paths and timers.

use rackloom_plan::Plan;

use crate::{expect, wrong};

#[test]
fn frames_hold_headers_and_stay_within_a_jumbo() {
    expect("frame_bytes_max: 353B", &["`frame_bytes_max` is 353B, below 354B"]);
    expect("frame_bytes_max: 9015B", &["`frame_bytes_max` is 9015B"]);
    expect("frame_bytes_max: 70000B", &["70000 bytes is too large"]);
    for fine in ["frame_bytes_max: 354B", "frame_bytes_max: 9014B"] {
        assert!(Plan::parse(&format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{fine}"), "rack.yaml").is_ok());
    }
}

#[test]
fn a_window_fits_its_acknowledgement() {
    expect("transport: {window_packets: 4097}", &["half the sequence space"]);
    expect("transport: {window_packets: 0}", &["outside 1 to 4096"]);
    expect("transport: {window_packets: 4}", &["more than the window of 4 packets"]);
    expect(
        "transport: {window_packets: 4096}\nframe_bytes_max: 600B",
        &["needs 512 bytes in an acknowledgement"],
    );
}

#[test]
fn packets_of_one_sequence_take_several_paths_only_if_reordering_is_repaired() {
    for policy in ["round-robin", "spray", "least-queue"] {
        let lines = format!("transport: {{mode: go-back-n}}\npaths: {{policy: {policy}}}");
        let error = wrong(&format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{lines}\n"));
        let [mistake] = error.mistakes.as_slice() else { panic!("{error}") };
        assert_eq!((mistake.line, mistake.column), (4, 17), "{error}");
        assert!(mistake.message.contains("go-back-n throws away"), "{error}");
    }
    for policy in ["address", "flow"] {
        let lines = format!("transport: {{mode: go-back-n}}\npaths: {{policy: {policy}}}");
        Plan::parse(&format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{lines}\n"), "rack").unwrap();
    }
    expect("transport: {reorder_packets: 127}", &["outside 128 to 4096"]);
    expect("transport: {reorder_packets: 4097}", &["outside 128 to 4096"]);
    expect("paths: {policy: sprayed}", &["sprayed"]);
    expect("paths: {order: packet}", &["packet"]);
}

#[test]
fn times_that_contradict_each_other_are_refused() {
    expect("timers: {hold_down: 100ms}", &["a link would return after 400ms"]);
    expect("transport: {timeout_min: 30ms}", &["`transport.timeout_min` is 30ms, not below"]);
    expect("transport: {ack_delay: 10ms}", &["`transport.ack_delay` is 10ms, not below"]);
    expect("timers: {heartbeat_interval: 0ns}", &["`timers.heartbeat_interval` is 0ns"]);
    expect("watchdog: 0s", &["`watchdog` is 0ns"]);
}

#[test]
fn relays_without_a_choice_are_refused() {
    expect("paths: {relays: policy}", &["`policy: flow` gives each sequence one way"]);
    let fine = "name: r\nshape: {ring: {nodes: 4}}\npaths: {relays: policy, policy: spray}\n";
    assert!(Plan::parse(fine, "rack").is_ok());
}

#[test]
fn congestion_control_needs_queues_that_mark() {
    expect(
        "transport: {congestion: dctcp}",
        &["`transport.congestion` means nothing: no queue marks packets"],
    );
    expect("transport: {congestion: cubic}", &["is not a choice"]);
    let text = "name: r\nshape: {ring: {nodes: 4}}\ntransport: {congestion: dctcp}\nforwarding: {mark_above: 64KiB}\n";
    let plan = Plan::parse(text, "rack.yaml").unwrap_or_else(|error| panic!("{error}"));
    assert!(plan.canonical_encoding().contains("\ntransport.congestion=dctcp\n"));
}

#[test]
fn a_pool_of_grants_needs_receivers_that_grant() {
    expect("transport: {grant_packets: 8}", &["`transport.grant_packets` means nothing"]);
    expect("transport: {congestion: grants, grant_packets: 0}", &["`transport.grant_packets` is 0"]);
    let text = "name: r\nshape: {ring: {nodes: 4}}\ntransport: {congestion: grants, grant_packets: 8}\n";
    let plan = Plan::parse(text, "rack.yaml").unwrap_or_else(|error| panic!("{error}"));
    let encoding = plan.canonical_encoding();
    assert!(encoding.contains("\ntransport.congestion=grants\ntransport.grant_packets=8\n"), "{encoding}");
}
