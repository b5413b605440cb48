//! The Wireshark dissector and the protocol's own parser agree on every field of every frame.
//!
//! Captures of both engines go through `rackloom decode --json` and through tshark with `scripts/rackloom.lua`. Their output
//! is compared field by field; every field must be known to both. Fields that only the dissector
//! has (the response to a request) are compared with a golden text. Without tshark each test is skipped.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rackloom_capture::Reader;
use rackloom_capture::block::{Packet, interface_description, packet, section_header};
use serde_json::Value;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, IpProtocol, Ipv4Packet, Ipv4Repr,
    UdpPacket, UdpRepr,
};
use support::wires::not_tried;
use support::{rack_file, rackloom, root, run, scratch, sim};

const FAULTS: [&str; 8] = ["--loss", "1%", "--corrupt", "1%", "--duplicate", "1%", "--reorder", "1%"];

/// Fields that only the dissector has: payload and checks as bytes, and relations between frames.
const ONLY_DISSECTED: [&str; 11] = [
    "info",
    "hop_check",
    "end_to_end",
    "op.data",
    "request_in",
    "response_in",
    "response_time",
    "acked_in",
    "ack_time",
    "visible_in",
    "first_sent_in",
];

/// Fields of tshark that the parser has as well.
const OF_TSHARK: [(&str, &str); 8] = [
    ("ether_type", "eth.type"),
    ("number", "frame.number"),
    ("time_ns", "frame.time_epoch"),
    ("interface", "frame.interface_name"),
    ("frame_bytes", "frame.len"),
    ("destination_mac", "eth.dst"),
    ("source_mac", "eth.src"),
    ("comments", "frame.comment"),
];

const CLASSES: &[&str] = &["request", "reply", "bulk", "bulk-reply"];
const OPERATIONS: &[&str] = &[
    "",
    "select",
    "store",
    "load",
    "atomic",
    "signal",
    "put",
    "get",
    "message",
    "offer",
    "pull",
    "void",
    "",
    "",
    "",
    "",
    "load-reply",
    "atomic-reply",
    "get-data",
    "refusal",
    "received",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "ack",
    "grant",
];

/// Names by number, for fields in which the parser prints the name and tshark the number.
const NAMES_BY_NUMBER: [(&str, &[&str]); 9] = [
    (
        "kind",
        &[
            "",
            "data",
            "ack",
            "hello",
            "heartbeat",
            "report",
            "credit",
            "link-ack",
            "link-nack",
            "link-init",
            "link-init-echo",
            "pause",
        ],
    ),
    ("class", CLASSES),
    ("ack.class", CLASSES),
    ("op.of_class", CLASSES),
    ("end_to_end_check", &["absent", "good", "bad"]),
    ("op", OPERATIONS),
    ("op.atomic", &["fetch-add", "compare-swap", "swap", "set"]),
    ("op.signal", &["set", "add"]),
    ("heartbeat.state", &["init", "up", "suspect", "down", "probing", "admin-down"]),
];

/// Fields of one frame, each with its values in order.
type Fields = BTreeMap<String, Vec<String>>;

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// Runs tshark with the dissector. Returns `None` and reports a skip if there is none.
fn tshark(capture: &Path, arguments: &[&str]) -> Option<String> {
    let script = format!("lua_script:{}", text(&root().join("scripts/rackloom.lua")));
    let mut command = Command::new("tshark");
    command.args(["-n", "-2", "-X", &script, "-o", "rackloom.verify_end_to_end:TRUE", "-r", text(capture)]);
    let Ok(done) = command.args(arguments).output() else {
        not_tried("tshark cannot be started; the dissector was not tried (apt-get install tshark)");
        return None;
    };
    let complaints = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && !complaints.contains("Lua"), "{complaints}");
    Some(String::from_utf8(done.stdout).expect("tshark prints UTF-8"))
}

/// Returns the names of the script's fields.
fn dissected_names() -> Vec<String> {
    let script = std::fs::read_to_string(root().join("scripts/rackloom.lua")).expect("the script is there");
    let declared = script.lines().filter_map(|line| line.strip_prefix("field(\""));
    let names = declared.filter_map(|line| Some(line.split('"').nth(2)?.to_owned()));
    names.filter(|name| !ONLY_DISSECTED.contains(&name.as_str())).collect()
}

/// Converts a value to a common form: numbers decimal, names as numbers, truth as 1 and 0.
fn normal(field: &str, value: &str) -> String {
    if let Some((_, words)) = NAMES_BY_NUMBER.iter().find(|(name, _)| *name == field)
        && let Some(number) = words.iter().position(|word| *word == value && !word.is_empty())
    {
        return number.to_string();
    }
    if let Some(digits) = value.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).expect("a hexadecimal number").to_string();
    }
    match value {
        "True" | "true" => "1".to_owned(),
        "False" | "false" => "0".to_owned(),
        _ => value.to_owned(),
    }
}

fn by_tshark(capture: &Path) -> Option<Vec<Fields>> {
    let ours = dissected_names();
    let mut columns: Vec<_> = ours.iter().map(|name| (name.clone(), format!("rackloom.{name}"))).collect();
    columns.extend(OF_TSHARK.iter().map(|(name, column)| ((*name).to_owned(), (*column).to_owned())));
    let mut arguments =
        vec!["-T", "fields", "-E", "occurrence=a", "-E", "aggregator=|", "-E", "separator=/t"];
    columns.iter().for_each(|(_, column)| arguments.extend(["-e", column]));
    let printed = tshark(capture, &arguments)?;
    let frame = |line: &str| {
        let values = line.split('\t').zip(&columns).filter(|(values, _)| !values.is_empty());
        let named = values.map(|(values, (name, _))| {
            let values = values.split('|').map(|value| match name.as_str() {
                "time_ns" => nanoseconds(value),
                _ => normal(name, value),
            });
            (name.clone(), values.collect())
        });
        named.collect()
    };
    Some(printed.lines().map(frame).collect())
}

fn nanoseconds(seconds: &str) -> String {
    let (seconds, rest) = seconds.split_once('.').expect("a fraction of a second");
    let seconds: u64 = seconds.parse().expect("seconds");
    (seconds * 1_000_000_000 + format!("{rest:0<9}")[..9].parse::<u64>().expect("a fraction")).to_string()
}

fn by_parser(capture: &Path) -> Vec<Fields> {
    let ended = rackloom(&["decode", text(capture), "--json"]).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let frames = ended.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    frames
        .map(|frame: Value| {
            let mut fields = Fields::new();
            flatten(&mut fields, "", &frame);
            fields
        })
        .collect()
}

/// Flattens JSON: `{"ack": {"psn": 3}}` is `ack.psn`. Operations are called `op`, and so is their first field.
fn flatten(fields: &mut Fields, prefix: &str, value: &Value) {
    // The direction is a flag of the file, and a reason is the code as a name.
    const LEFT_OUT: [&str; 2] = ["direction", "op.reason"];
    let named = |key: &str| match (prefix, key) {
        ("", "operations") => "op".to_owned(),
        ("op", "op") => "op".to_owned(),
        ("report", "reports" | "edges") => "report".to_owned(),
        ("", key) => key.to_owned(),
        (prefix, key) => format!("{prefix}.{key}"),
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| flatten(fields, &named(key), value)),
        Value::Array(values) => values.iter().for_each(|value| flatten(fields, prefix, value)),
        _ if LEFT_OUT.contains(&prefix) => {}
        Value::String(word) => fields.entry(prefix.to_owned()).or_default().push(normal(prefix, word)),
        other => fields.entry(prefix.to_owned()).or_default().push(normal(prefix, &other.to_string())),
    }
}

/// Returns whether a flipped bit in EtherType or magic makes the frame a foreign one.
fn is_foreign(frame: &Fields) -> bool {
    let is = |field: &str, value: &str| frame.get(field).is_some_and(|values| *values == [value]);
    !is("ether_type", &0x88b5.to_string()) || is("problem", "foreign-ether-type")
}

/// Compares every frame of a capture. Returns the fields and operations that it contains.
fn compare(capture: &Path) -> Option<(BTreeSet<String>, BTreeSet<String>)> {
    let theirs = by_tshark(capture)?;
    let ours = by_parser(capture);
    assert_eq!(ours.len(), theirs.len(), "{}", capture.display());
    let (mut fields, mut operations) = (BTreeSet::new(), BTreeSet::new());
    for (number, (ours, theirs)) in (1..).zip(ours.iter().zip(&theirs)) {
        if is_foreign(ours) {
            assert!(
                !theirs.contains_key("kind") && !theirs.contains_key("problem"),
                "frame {number}: {theirs:?}"
            );
            continue;
        }
        assert_eq!(ours, theirs, "frame {number} of {}", capture.display());
        fields.extend(ours.keys().cloned());
        operations.extend(ours.get("op").into_iter().flatten().cloned());
    }
    Some((fields, operations))
}

fn captures(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("the directory is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort_unstable();
    paths
}

/// Compares all captures of a rack. Returns the fields and operations that they contain.
fn compare_all(directory: &Path) -> Option<(BTreeSet<String>, BTreeSet<String>)> {
    let (mut fields, mut operations) = (BTreeSet::new(), BTreeSet::new());
    for capture in captures(directory) {
        let (some_fields, some_operations) = compare(&capture)?;
        fields.extend(some_fields);
        operations.extend(some_operations);
    }
    Some((fields, operations))
}

/// Checks that no part of the format was left out of a comparison.
fn is_complete(fields: &BTreeSet<String>, operations: &BTreeSet<String>) {
    let missing: Vec<_> = dissected_names().into_iter().filter(|name| !fields.contains(name)).collect();
    // A credit frame is sent only where no other frame carries the credits in time.
    let expected = |name: &String| name != "credit.requests_answer";
    assert!(!missing.iter().any(expected), "never compared: {missing:?}");
    let all = OPERATIONS.iter().enumerate().filter(|(_, name)| !name.is_empty());
    let missing: Vec<_> = all.filter(|(number, _)| !operations.contains(&number.to_string())).collect();
    assert!(missing.is_empty(), "never compared: {missing:?}");
}

/// Transfers are short, because Lua computes the check over every byte.
const RING: &str = "name: r3\nshape: {ring: {nodes: 3}}\njob: {litmus: {bytes_max: 8KiB}}\n";
const PAUSING: &str = "name: p3\nshape: {star: {nodes: 3}}\njob: {litmus: {bytes_max: 8KiB}}\n\
                       link: {rate: 10Gbit/s, pfc: {xoff: 1B, xon: 0B}}\nforwarding: {mark_above: 0B}\n\
                       transport: {congestion: grants, grant_packets: 4}\n";
const BROADCAST: &str = "name: b3\nshape: {ring: {nodes: 3}}\n\
                         job: {collective: {collective: broadcast, bytes: 16KiB, repetitions: 5, warm_up: 0}}\n";
const UNREADABLE: &str = "name: unreadable\nevents: [{what: fail-memory, where: n0, rate: 20%, when: {node: n0, run: 2}}]\n\
                          expect: {ends: clean-error}\n";

#[test]
fn both_agree_on_every_simulated_frame() {
    // Links that repeat lost frames leave no holes to acknowledge, so both kinds of links are compared.
    let (mut fields, mut operations) = (BTreeSet::new(), BTreeSet::new());
    for llr in ["on", "off"] {
        let directory = scratch("captures");
        let options = ["--capture", text(&directory), "--transport", "selective", "--llr", llr];
        sim(&rack_file(RING)).with(&options).with(&FAULTS).finish().passed();
        let Some((some_fields, some_operations)) = compare_all(&directory) else { return };
        fields.extend(some_fields);
        operations.extend(some_operations);
    }
    // Pause frames need links that pause and members that forward and mark frames. Receivers grant packets there, too.
    let directory = scratch("captures");
    sim(&rack_file(PAUSING)).with(&["--capture", text(&directory)]).finish().passed();
    let Some((some_fields, some_operations)) = compare_all(&directory) else { return };
    fields.extend(some_fields);
    operations.extend(some_operations);
    // Only memory that fails leaves voids.
    let directory = scratch("captures");
    let script = rack_file(UNREADABLE);
    let options = ["--capture", text(&directory), "--faults", text(&script)];
    sim(&rack_file(BROADCAST)).with(&options).finish().passed();
    let Some((_, some_operations)) = compare_all(&directory) else { return };
    operations.extend(some_operations);
    is_complete(&fields, &operations);
}

#[test]
fn both_agree_on_every_frame_between_processes() {
    let directory = scratch("captures");
    run(&rack_file(RING)).with(&["--capture", text(&directory)]).with(&FAULTS).finish().passed();
    compare_all(&directory);
}

/// Returns the capture of a few operations on a lossy link, in virtual time: the same text on every machine.
fn small_capture() -> PathBuf {
    let directory = scratch("captures");
    let job = "job: {latency: {bytes: 64B, repetitions: 2, warm_up: 0}}\n";
    let file = rack_file(&format!("name: small\nshape: {{full-mesh: {{nodes: 2}}}}\n{job}"));
    sim(&file).with(&["--capture", text(&directory), "--loss", "5%", "--corrupt", "5%"]).finish().passed();
    captures(&directory).remove(0)
}

#[test]
fn the_listing_of_an_exchange_is_unchanged() {
    let capture = small_capture();
    let columns = ["frame.number", "frame.interface_name", "rackloom.info", "frame.comment"];
    let mut arguments = vec!["-c", "60", "-T", "fields", "-E", "separator=/s"];
    columns.iter().for_each(|column| arguments.extend(["-e", column]));
    if let Some(printed) = tshark(&capture, &arguments) {
        insta::assert_snapshot!("conversation", printed);
    }
}

#[test]
fn a_request_and_its_response_refer_to_each_other() {
    let capture = small_capture();
    let one = |filter: &str, columns: &[&str]| {
        let mut arguments = vec!["-Y", filter, "-T", "fields", "-E", "separator=/s", "-c", "400"];
        columns.iter().for_each(|column| arguments.extend(["-e", column]));
        Some(tshark(&capture, &arguments)?.lines().next().expect("there is such a frame").to_owned())
    };
    let request = "rackloom.op == 4 && rackloom.response_in && rackloom.acked_in";
    let queried = ["frame.number", "rackloom.response_in", "rackloom.response_time"];
    let Some(line) = one(request, &queried) else { return };
    let words: Vec<_> = line.split_whitespace().collect();
    let [number, response, time] = words[..] else { panic!("{line}") };
    let answered = ["frame.number", "rackloom.request_in", "rackloom.response_time", "rackloom.op"];
    let line = one(&format!("frame.number == {response}"), &answered).expect("tshark was there before");
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(words, [response, number, time, "17"], "the reply points back");
    let seconds: f64 = time.parse().expect("a duration");
    assert!((1e-7..1e-2).contains(&seconds), "{time}");
}

#[test]
fn the_details_of_a_frame_are_unchanged() {
    let capture = small_capture();
    let details = |filter: &str| {
        let printed = tshark(&capture, &["-V", "-O", "rackloom", "-Y", filter])?;
        // Wireshark's own description of a frame differs from version to version.
        let (_, ours) = printed.split_once("\nRackloom").expect("the dissector's part");
        let ours = ours.split_once("\n\n").map_or(ours, |(ours, _)| ours);
        Some(format!("Rackloom{ours}"))
    };
    let filters = [
        ("atomic", "rackloom.op == 4 && rackloom.response_in"),
        ("atomic-reply", "rackloom.op == 17 && rackloom.request_in"),
        ("heartbeat", "rackloom.kind == 4"),
        ("hello", "rackloom.kind == 3"),
        ("not-used", "rackloom.problem == \"hop-check\""),
    ];
    for (name, filter) in filters {
        let Some(printed) = details(filter) else { return };
        insta::assert_snapshot!(format!("details-{name}"), printed);
    }
}

/// Returns frames as a datagram carries them after a router, or before the kernel splits it.
fn in_datagram(frames: &[Vec<u8>]) -> Vec<u8> {
    let payload = frames.concat();
    let (source, destination) = (Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 2, 0, 1));
    let udp = UdpRepr { src_port: 26001, dst_port: 26001 };
    let ip = Ipv4Repr {
        src_addr: source,
        dst_addr: destination,
        next_header: IpProtocol::Udp,
        payload_len: udp.header_len() + payload.len(),
        hop_limit: 64,
    };
    let ethernet = EthernetRepr {
        src_addr: EthernetAddress([2, 0, 0, 0, 0, 1]),
        dst_addr: EthernetAddress([2, 0, 0, 0, 0, 2]),
        ethertype: EthernetProtocol::Ipv4,
    };
    let mut bytes = vec![0; ethernet.buffer_len() + ip.buffer_len() + ip.payload_len];
    let mut frame = EthernetFrame::new_unchecked(&mut bytes);
    ethernet.emit(&mut frame);
    let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
    ip.emit(&mut packet, &ChecksumCapabilities::default());
    udp.emit(
        &mut UdpPacket::new_unchecked(packet.payload_mut()),
        &source.into(),
        &destination.into(),
        payload.len(),
        |buffer| buffer.copy_from_slice(&payload),
        &ChecksumCapabilities::default(),
    );
    bytes
}

/// Rewrites a capture with its frames in datagrams of one, two and three, as a capture of the udp wire has them.
fn as_on_the_udp_wire(capture: &Path) -> PathBuf {
    let file = std::fs::File::open(capture).expect("it has been written");
    let (mut reader, mut frames) = (Reader::new(std::io::BufReader::new(file)), Vec::new());
    while let Some(record) = reader.next_record().expect("a capture of this test") {
        frames.push(record.frame.to_vec());
    }
    let mut out = Vec::new();
    section_header(&mut out, "a test", &[]);
    interface_description(&mut out, "eth1", "", None);
    let mut rest = &frames[..];
    for count in [1, 2, 3].into_iter().cycle() {
        let (these, behind) = rest.split_at(count.min(rest.len()));
        let frame = in_datagram(these);
        let record = Packet { interface: 0, timestamp_ns: 0, flags: 0, frame: &frame };
        packet(&mut out, record, &[""; 0]);
        rest = behind;
        if rest.is_empty() {
            break;
        }
    }
    let path = scratch("datagrams.pcapng");
    std::fs::write(&path, out).expect("the scratch folder is writable");
    path
}

/// Returns the fields that both know of the frames in each record.
fn by_record(frames: Vec<Fields>) -> BTreeMap<String, Fields> {
    let names = dissected_names();
    let mut records = BTreeMap::<String, Fields>::new();
    for frame in frames {
        let record = records.entry(frame["number"][0].clone()).or_default();
        for (name, values) in frame.into_iter().filter(|(name, _)| names.contains(name)) {
            record.entry(name).or_default().extend(values);
        }
    }
    records
}

#[test]
fn both_find_the_frames_in_datagrams() {
    let directory = scratch("captures");
    let job = "job: {latency: {bytes: 64B, repetitions: 2, warm_up: 0}}\n";
    let file = rack_file(&format!("name: routed\nshape: {{full-mesh: {{nodes: 2}}}}\n{job}"));
    sim(&file).with(&["--capture", text(&directory)]).finish().passed();
    let capture = captures(&directory).remove(0);
    let datagrams = as_on_the_udp_wire(&capture);
    let (plain, inside) = (by_parser(&capture), by_parser(&datagrams));
    assert_eq!(inside.len(), plain.len(), "every frame is shown");
    for (plain, inside) in plain.iter().zip(&inside) {
        for name in dissected_names() {
            assert_eq!(plain.get(&name), inside.get(&name), "{name}");
        }
        assert_eq!(inside["udp_destination"], ["10.2.0.1:26001"]);
    }
    if let Some(dissected) = by_tshark(&datagrams) {
        assert!(dissected.len() < plain.len() && dissected.len() > plain.len() / 3);
        assert_eq!(by_record(inside), by_record(dissected));
    }
}
