//! The litmus passes for each shape, each wire, each engine, and under every fault of a link.
//!
//! Owners check every byte in every run. This file checks only verdicts and signs that the faults happened.
//! It does not check speed.

mod support;

use support::wires::{has_packet_wire, wires};
use support::{
    TOPOLOGIES, dropped, injected, over_links, rack_file, retransmitted, run, sim, topology, without_meta,
};

/// Size that allows many runs on real processes, with puts of several frames.
const SMALL_RING: &str =
    "name: small-ring\nshape: {ring: {nodes: 4}}\njob: {litmus: {bytes_max: 64KiB, rounds: 1}}\n";

#[test]
fn every_shape_passes_on_shared_memory() {
    for name in TOPOLOGIES {
        let report = run(&topology(name)).finish().passed();
        assert_eq!(report["clock"], "wall");
        assert!(over_links(&report, |link| link["frames"].as_u64().unwrap()) > 0, "{name}: nothing was sent");
        assert!(report["verified_bytes"].as_u64().unwrap() > 1 << 20, "{name}");
    }
}

#[test]
fn every_shape_passes_in_virtual_time_and_repeats_to_the_bit() {
    for name in TOPOLOGIES {
        let seventh = || without_meta(sim(&topology(name)).with(&["--seed", "7"]).finish().passed());
        let (once, again) = (seventh(), seventh());
        assert_eq!(once, again, "{name}: the whole report, trace hash included");
        assert_eq!((&once["clock"], &once["seed"]), (&"virtual".into(), &7.into()));
        let other = sim(&topology(name)).with(&["--seed", "8"]).finish().passed();
        assert_ne!(once["trace_hash"], other["trace_hash"], "{name}: the seed decides");
    }
}

/// Links with retry leave the transport almost nothing to do, on every wire of this machine.
///
/// A small rest remains: between real processes a frame that is lost twice waits for a timer of 3 ms each
/// time, and on a busy host the transport's own timer, at least 10 ms, may expire first. With four processes
/// for each processor both sent a quarter. A test in virtual time shows that links leave nothing at all.
#[test]
fn links_replay_lost_frames_on_every_wire() {
    for wire in wires("links_replay_lost_frames_on_every_wire") {
        let options = |llr| ["--wire", wire, "--loss", "2%", "--llr", llr];
        let alone = run(&rack_file(SMALL_RING)).with(&options("off")).finish().passed();
        let helped = run(&rack_file(SMALL_RING)).with(&options("on")).finish().passed();
        let replays = over_links(&helped, |link| link["retry"]["replays"].as_u64().unwrap_or(0));
        assert!(replays > 0, "{wire}: no link repeated anything");
        let (without, with) = (retransmitted(&alone), retransmitted(&helped));
        assert!(
            with * 2 < without,
            "{wire}: the transport sent {with} packets again, {without} without help"
        );
    }
}

/// Each way to receive carries the same data; `crates/node` checks that a port receives as the file says.
#[test]
fn the_packet_wire_passes_with_each_kind_of_reception() {
    if !has_packet_wire("the_packet_wire_passes_with_each_kind_of_reception") {
        return;
    }
    for reception in ["ring", "batches", "portable"] {
        let set = format!("reception={reception}");
        let options = ["--wire", "packet", "--loss", "1%", "--set", &set];
        let report = run(&rack_file(SMALL_RING)).with(&options).finish().passed();
        assert!(retransmitted(&report) > 0, "{reception}: nothing was lost");
    }
}

/// Lanes, levels and arbitration change the order of frames and nothing of the data.
#[test]
fn virtual_channels_carry_everything_on_every_wire_and_in_virtual_time() {
    let channels = "channels: {rise: dateline, arbiter: weighted, weights: [4, 4, 1, 1]}\n";
    let file = || rack_file(&format!("{SMALL_RING}\n{channels}"));
    for llr in ["off", "on"] {
        let options = ["--loss", "1%", "--llr", llr];
        sim(&file()).with(&options).finish().passed();
        for wire in wires("virtual_channels_carry_everything_on_every_wire_and_in_virtual_time") {
            run(&file()).with(&options).with(&["--wire", wire]).finish().passed();
        }
    }
}

/// One link is undivided, one is divided otherwise, and credits return otherwise: both ends of each agree on every wire.
#[test]
fn links_with_own_channels_and_credits_carry_everything_on_every_wire() {
    let own = "channels: {rise: hop}\nlinks: {n0--n1: {channels: off}, n1--n2: {credits: {update_spacing: 8KiB}}}\n";
    let file = || rack_file(&format!("{SMALL_RING}\n{own}"));
    for llr in ["off", "on"] {
        let options = ["--loss", "1%", "--llr", llr];
        sim(&file()).with(&options).finish().passed();
        for wire in wires("links_with_own_channels_and_credits_carry_everything_on_every_wire") {
            run(&file()).with(&options).with(&["--wire", wire]).finish().passed();
        }
    }
}

#[test]
fn in_virtual_time_links_replay_all_lost_frames_and_the_transport_none() {
    let options = ["--loss", "1%", "--llr", "on", "--seed", "3"];
    let report = sim(&rack_file(SMALL_RING)).with(&options).finish().passed();
    assert!(over_links(&report, |link| link["retry"]["tx_replay"].as_u64().unwrap_or(0)) > 0);
    assert_eq!(retransmitted(&report), 0);
    let lost = injected(&report, "dropped");
    let gaps = over_links(&report, |link| link["retry"]["rx_missing_seq"].as_u64().unwrap_or(0));
    assert!(0 < gaps && gaps <= lost, "{gaps} gaps for {lost} lost frames");
}

/// Runs both loss rates with one fault and one transport, on real processes.
fn survives(fault: &str, transport: &str) {
    let happened = match fault {
        "--loss" => "dropped",
        "--corrupt" => "corrupted",
        "--duplicate" => "duplicated",
        _ => "reordered",
    };
    for rate in ["1%", "5%"] {
        let file = rack_file(SMALL_RING);
        let report = run(&file).with(&[fault, rate, "--transport", transport]).finish().passed();
        assert!(injected(&report, happened) > 0, "{fault} {rate} was not there");
        match fault {
            // A duplicated or late frame needs no retransmission. The transport may retransmit it.
            "--duplicate" => {
                assert!(dropped(&report) > 0, "{fault} {rate} {transport}: no copy was turned away")
            }
            "--reorder" if transport == "selective" => {}
            _ => assert!(retransmitted(&report) > 0, "{fault} {rate} {transport}: nothing was sent again"),
        }
    }
}

#[test]
fn go_back_n_survives_loss() {
    survives("--loss", "go-back-n");
}

#[test]
fn go_back_n_survives_corruption() {
    survives("--corrupt", "go-back-n");
}

#[test]
fn go_back_n_survives_duplication() {
    survives("--duplicate", "go-back-n");
}

#[test]
fn go_back_n_survives_reordering() {
    survives("--reorder", "go-back-n");
}

#[test]
fn selective_survives_loss() {
    survives("--loss", "selective");
}

#[test]
fn selective_survives_corruption() {
    survives("--corrupt", "selective");
}

#[test]
fn selective_survives_duplication() {
    survives("--duplicate", "selective");
}

#[test]
fn selective_survives_reordering() {
    survives("--reorder", "selective");
}

#[test]
fn every_wire_survives_every_fault() {
    for wire in wires("every_wire_survives_every_fault") {
        let faults = [
            ("--loss", "dropped"),
            ("--corrupt", "corrupted"),
            ("--duplicate", "duplicated"),
            ("--reorder", "reordered"),
        ];
        for (fault, happened) in faults {
            let report = run(&rack_file(SMALL_RING)).with(&["--wire", wire, fault, "5%"]).finish().passed();
            assert!(injected(&report, happened) > 0, "{wire} {fault}");
        }
    }
}
