//! Foreign sender on a link of a running rack: replayed, corrupted, forged and foreign frames, and a flood.
//! The job completes, no byte is wrong, and the report counts the dropped frames, by reason.
//!
//! The sender is this test again, in the network namespace of a member, with its own packet
//! device on the member's interface: it receives the frames that arrive there, and sends to the neighbour.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rackloom::wires::Device;
use rackloom::wires::packet::{self, PacketDevice, Settings};
use rackloom_protocol::CreditConfig;
use rustix::process::Pid;
use serde_json::Value;
use support::wires::{has_packet_wire, in_network_of, skipped};
use support::{Running, rack_file, run, scratch};

const PART: &str = "RACKLOOM_TEST_ATTACKER";
const FILE: &str = "RACKLOOM_TEST_FRAMES";
const TEST: &str = "an_unknown_sender_on_a_link_has_no_effect";
const ETHER_TYPE: u16 = 0x88b5;
const FRAME_BYTES_MAX: u16 = 4240;
const RECORDED: usize = 400;
const FLOOD: usize = 20_000;
const TIMEOUT: Duration = Duration::from_secs(30);
const ETHERNET_HEADER_BYTES: usize = 14;

const RACK: &str = "name: besieged\nshape: {ring: {nodes: 4}}\nframe_bytes_max: 4240B\n\
                    job: {litmus: {bytes_max: 64KiB, rounds: 30}}\n";

#[test]
fn an_unknown_sender_on_a_link_has_no_effect() {
    match std::env::var(PART).as_deref() {
        Ok("listener") => return listen(),
        Ok("attacker") => return attack(),
        _ if !has_packet_wire(TEST) => return,
        _ => {}
    }
    let (file, frames) = (rack_file(RACK), scratch("frames"));
    let start = || run(&file).with(&["--wire", "packet"]).start();
    // During the first run of the rack the attacker only receives.
    let mut rack = start();
    let members = rack.members();
    if let Err(reason) = attacker("listener", members.pid("n1"), &frames) {
        return skipped(&format!("{TEST}: no attacker can enter the namespace: {reason}"));
    }
    rack.finish().passed();

    let mut rack = start();
    let members = rack.members();
    attacker("attacker", members.pid("n0"), &frames).expect("it could enter before");
    let report = finish(rack);
    let dropped = &links(&report)["n0->n1"]["dropped"];
    for reason in ["wrong-address", "vlan-tag", "hop-check", "truncated", "stale-link"] {
        assert!(dropped[reason].as_u64() > Some(0), "{reason}: {dropped}");
    }
    let all: u64 = dropped.as_object().expect("a table").values().filter_map(Value::as_u64).sum();
    assert!(all >= FLOOD as u64 / 2, "most of the flood is in the counts: {dropped}");
    assert!(links(&report)["n2->n3"]["dropped"]["wrong-address"].is_null(), "only there");
}

fn finish(rack: Running) -> Value {
    rack.finish().passed()
}

fn links(report: &Value) -> std::collections::BTreeMap<&str, &Value> {
    let links = report["links"].as_array().expect("links").iter();
    links.map(|link| (link["name"].as_str().expect("a name"), link)).collect()
}

/// Runs this test as an attacker in a member's network namespace. Returns an error if it cannot enter.
fn attacker(part: &str, member: Pid, frames: &Path) -> Result<(), String> {
    let exe = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = in_network_of(member, exe)
        .args(["--exact", TEST, "--nocapture"])
        .env(PART, part)
        .env(FILE, frames)
        .output()
        .map_err(|error| error.to_string())?;
    let output_text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the {part}: {output_text}");
    Ok(())
}

fn device(interface: &str) -> PacketDevice {
    let credits = CreditConfig { unit_bytes: 256, overhead_bytes: 1024, limit: 640 };
    packet::open(
        interface,
        &Settings {
            ether_type: ETHER_TYPE,
            frame_bytes_max: FRAME_BYTES_MAX,
            credits,
            reception: Default::default(),
        },
    )
    .expect("an interface of the member")
}

fn frames_file() -> PathBuf {
    PathBuf::from(std::env::var_os(FILE).expect("the variable names the file"))
}

/// Records the frames from n0 to n1: length and bytes of each.
fn listen() {
    let mut port = device("port1");
    let deadline = Instant::now() + TIMEOUT;
    let (mut text, mut count) = (Vec::new(), 0);
    while count < RECORDED {
        assert!(Instant::now() < deadline, "only {count} frames have come");
        if let Some(lease) = port.receive() {
            let bytes = port.leased(lease);
            text.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            text.extend_from_slice(bytes);
            port.release(lease);
            count += 1;
        } else {
            std::thread::yield_now();
        }
        port.flush(rackloom_protocol::Instant::ZERO);
    }
    fs::write(frames_file(), text).expect("the scratch folder can be written");
}

fn recorded() -> Vec<Vec<u8>> {
    let text = fs::read(frames_file()).expect("frames were recorded");
    let (mut rest, mut frames) = (&text[..], Vec::new());
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let (frame, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
        frames.push(frame.to_vec());
        rest = behind;
    }
    frames
}

/// Sends from n0's interface to n1.
fn attack() {
    let mut port = device("port0");
    let frames = recorded();
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut chance = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    for frame in &frames {
        for altered in altered(frame, &mut chance) {
            send(&mut port, &altered);
        }
        // A frame that arrives here goes back with exchanged addresses, as if the neighbour had sent it to itself.
        while let Some(lease) = port.receive() {
            let mut echo = port.leased(lease).to_vec();
            port.release(lease);
            let (to, from) = echo[..12].split_at_mut(6);
            to.swap_with_slice(from);
            send(&mut port, &echo);
        }
    }
    let flood = frames.iter().cycle().take(FLOOD);
    flood.for_each(|frame| send(&mut port, frame));
}

/// Returns a recorded frame unchanged, altered versions of it, and foreign Ethernet frames.
fn altered(frame: &[u8], chance: &mut impl FnMut(usize) -> usize) -> Vec<Vec<u8>> {
    let with = |at: usize, bytes: &[u8]| {
        let mut frame = frame.to_vec();
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        frame
    };
    let other_type = |ether_type: [u8; 2], rest: &[u8]| {
        let mut frame = frame[..12].to_vec();
        frame.extend(ether_type);
        frame.extend_from_slice(rest);
        frame.resize(60, 0);
        frame
    };
    let mut flipped = frame.to_vec();
    let bit = chance((frame.len() - ETHERNET_HEADER_BYTES) * 8);
    flipped[ETHERNET_HEADER_BYTES + bit / 8] ^= 1 << (bit % 8);
    let mut tagged = frame[..12].to_vec();
    tagged.extend([0x81, 0x00, 0x00, 0x05]);
    tagged.extend_from_slice(&frame[12..]);
    tagged.truncate(usize::from(FRAME_BYTES_MAX));
    let mut longer = frame.to_vec();
    longer.resize((frame.len() + chance(500)).min(usize::from(FRAME_BYTES_MAX)), 0xa5);
    vec![
        frame.to_vec(),
        with(0, &[0x02, 0x52, 0x4c, 7, 7, 7]),
        with(0, &[0xff; 6]),
        with(6, &[0x02, 0x52, 0x4c, 0, 0, 3]),
        flipped,
        tagged,
        longer,
        frame[..ETHERNET_HEADER_BYTES + chance(frame.len() - ETHERNET_HEADER_BYTES)].to_vec(),
        frame[..ETHERNET_HEADER_BYTES].to_vec(),
        other_type([0x08, 0x06], &[0, 1, 8, 0, 6, 4, 0, 1]),
        other_type([0x86, 0xdd], &[0x60, 0, 0, 0, 0, 32, 58, 255]),
        other_type([0x08, 0x00], &[0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6]),
        other_type([0x88, 0xb6], &frame[14..30]),
    ]
}

fn send(port: &mut PacketDevice, frame: &[u8]) {
    if let Some(slot) = port.slot() {
        slot[..frame.len()].copy_from_slice(frame);
        port.commit(frame.len(), true);
    }
    port.flush(rackloom_protocol::Instant::ZERO);
}
