//! The litmus passes everywhere: each shape, each wire, each engine, and under every fault that a link can have.
//!
//! Every run here checks every byte by its owner; this file only looks at verdicts and at signs that the faults were
//! really there. How fast anything is, is not its business.

mod support;

use support::wires::wires;
use support::{
    TOPOLOGIES, dropped, injected, over_links, rack_file, retransmitted, run, sim, topology, without_meta,
};

/// Small enough to be repeated many times on real processes, large enough for puts of several frames.
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

/// Links that repeat what they lose leave the transport next to nothing to do, on every wire that this machine has.
///
/// Not quite nothing: between real processes a frame that is lost twice waits for a timer of 3 ms each time, and on a busy
/// host the transport's own timer, 10 ms at least, may be first: with four processes for each processor a quarter was sent by both.
/// That links leave it nothing at all is shown in virtual time.
#[test]
fn links_repeat_what_they_lose_on_every_wire() {
    for wire in wires("links_repeat_what_they_lose_on_every_wire") {
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

/// Lanes, levels and turns change how frames travel and nothing of what arrives.
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

/// One link undivided, one divided otherwise, credits that come back otherwise: both ends of each agree, whatever carries it.
#[test]
fn links_with_channels_and_credits_of_their_own_carry_everything_on_every_wire() {
    let own = "channels: {rise: hop}\nlinks: {n0--n1: {channels: off}, n1--n2: {credits: {update_spacing: 8KiB}}}\n";
    let file = || rack_file(&format!("{SMALL_RING}\n{own}"));
    for llr in ["off", "on"] {
        let options = ["--loss", "1%", "--llr", llr];
        sim(&file()).with(&options).finish().passed();
        for wire in wires("links_with_channels_and_credits_of_their_own_carry_everything_on_every_wire") {
            run(&file()).with(&options).with(&["--wire", wire]).finish().passed();
        }
    }
}

#[test]
fn in_virtual_time_links_repeat_everything_and_the_transport_nothing() {
    let options = ["--loss", "1%", "--llr", "on", "--seed", "3"];
    let report = sim(&rack_file(SMALL_RING)).with(&options).finish().passed();
    assert!(over_links(&report, |link| link["retry"]["tx_replay"].as_u64().unwrap_or(0)) > 0);
    assert_eq!(retransmitted(&report), 0);
    let lost = injected(&report, "dropped");
    let gaps = over_links(&report, |link| link["retry"]["rx_missing_seq"].as_u64().unwrap_or(0));
    assert!(0 < gaps && gaps <= lost, "{gaps} gaps for {lost} lost frames");
}

/// Both rates, one fault, one transport, on real processes.
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
            // A copy or a late frame need not be sent again; whether it is, is the transport's choice.
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
