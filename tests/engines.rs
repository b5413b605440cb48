//! Processes and virtual time give a file one meaning: they put equal operations on the links, and judge
//! equal faults alike.
//!
//! Times, packing and acknowledgements differ between the engines. The test compares the operations and
//! payload bytes that each direction of each link carries for the first time, from captures of both; and for
//! fault scripts the exit code, the verdict and its reasons.

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use support::{Ended, Rackloom, rack_file, rackloom, root, run, scratch, sim};

/// Starts a command on a rack file.
type Engine = fn(&Path) -> Rackloom;

/// Both engines by name.
const ENGINES: [(&str, Engine); 2] = [("sim", sim), ("run", run)];

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// First transmissions of one direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Carried {
    /// Operations by kind. An operation that is split counts once.
    operations: BTreeMap<String, u64>,
    payload_bytes: u64,
}

/// Source, destination and class, within which operations are numbered in order.
type Stream = (u64, u64, String);

/// Operation of a stream, or a part of one, at its first transmission on a link.
#[derive(Debug)]
struct Part {
    link: (String, String),
    stream: Stream,
    number: u64,
    kind: String,
    is_first: bool,
    payload_bytes: u64,
}

/// Everything that a run put on its links.
#[derive(Debug, Default)]
struct OnLinks {
    parts: Vec<Part>,
    /// Frames that carry no operations, by kind, and data frames that were sent again.
    others: BTreeMap<String, u64>,
}

impl OnLinks {
    /// Reads the captures of a directory. With `is_spread`, packets take random planes, so all planes are combined.
    fn of(directory: &Path, is_spread: bool) -> Self {
        let mut seen = Self::default();
        for entry in std::fs::read_dir(directory).expect("captures") {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let (a, b) = name.split_once("--").expect("two ends");
            let decoded = rackloom(&["decode", text(&path), "--json"]).finish();
            assert_eq!(decoded.code, Some(0), "{}", decoded.stderr);
            for line in decoded.stdout.lines() {
                let frame: Value = serde_json::from_str(line).expect("a line is JSON");
                let (from, to) = if frame["interface"] == a { (a, b) } else { (b, a) };
                seen.add(&frame, (end(from, is_spread), end(to, is_spread)));
            }
        }
        seen
    }

    fn add(&mut self, frame: &Value, link: (String, String)) {
        let text = |name: &str| frame[name].as_str().expect("a text").to_owned();
        let kind = text("kind");
        if kind != "data" || frame["again"] == true {
            let what = if kind == "data" { "sent again".to_owned() } else { kind };
            *self.others.entry(what).or_default() += 1;
            return;
        }
        let number = |of: &Value, name: &str| of[name].as_u64().expect("a number");
        let stream = (number(frame, "source"), number(frame, "destination"), text("class"));
        for operation in frame["operations"].as_array().expect("operations") {
            let kind = operation["op"].as_str().expect("a kind").to_owned();
            if kind == "select" {
                continue;
            }
            let is_later_part = kind == "put" && operation["offset"] != operation["start"]
                || operation["position"].as_u64() > Some(0);
            let is_data = ["put", "store", "message", "get-data", "load-reply"].contains(&&*kind);
            self.parts.push(Part {
                link: link.clone(),
                stream: stream.clone(),
                number: number(operation, "number"),
                kind,
                is_first: !is_later_part,
                payload_bytes: if is_data { number(operation, "length") } else { 0 },
            });
        }
    }

    /// Returns the first transmissions of the second half of each stream. In real processes a part of the first half takes another path: the
    /// job begins when every node can be reached, and links that come up later take over.
    fn second_halves(&self) -> BTreeMap<(String, String), Carried> {
        let mut ends = BTreeMap::<&Stream, u64>::new();
        for part in &self.parts {
            let end = ends.entry(&part.stream).or_default();
            *end = (*end).max(part.number + 1);
        }
        let mut carried = BTreeMap::<_, Carried>::new();
        for part in self.parts.iter().filter(|part| 2 * part.number >= ends[&part.stream]) {
            let carried = carried.entry(part.link.clone()).or_default();
            carried.payload_bytes += part.payload_bytes;
            *carried.operations.entry(part.kind.clone()).or_default() += u64::from(part.is_first);
        }
        carried
    }

    /// Returns the operations that entered the links at all sources, on any path.
    fn of_sources(&self) -> BTreeMap<Stream, Carried> {
        let mut seen = std::collections::BTreeSet::new();
        let mut carried = BTreeMap::<_, Carried>::new();
        for part in self.parts.iter().filter(|part| seen.insert((&part.stream, part.number))) {
            let carried = carried.entry(part.stream.clone()).or_default();
            carried.payload_bytes += part.payload_bytes;
            *carried.operations.entry(part.kind.clone()).or_default() += u64::from(part.is_first);
        }
        carried
    }
}

/// Returns the end of a link, such as `n0-p1`; without its port, and without a switch's number, if all planes are combined.
fn end(name: &str, is_spread: bool) -> String {
    let (member, _) = name.rsplit_once("-p").expect("a port");
    let is_switch = member.strip_prefix('s').is_some_and(|plane| plane.parse::<u8>().is_ok());
    match (is_spread, is_switch) {
        (false, _) => name.to_owned(),
        (true, true) => "s".to_owned(),
        (true, false) => member.to_owned(),
    }
}

/// Returns the text of a shipped rack for both engines: without faults of its own, on a device that every machine has, and with heartbeats so
/// rare that a busy machine moves no traffic to another path.
fn shipped(text: &str) -> String {
    let is_kept = |line: &&str| !line.starts_with("timers:") && !line.starts_with("wire:");
    let lines: Vec<_> = text.lines().filter(is_kept).collect();
    let text = lines.join("\n").replace("cuda:0", "fake:7").replace(", reorder: 1%", "");
    format!("{text}\ntimers: {{heartbeat_interval: 5s, heartbeat_miss_max: 5}}\n")
}

/// Fixed algorithm, because a choice depends on measurements.
const JOB: [&str; 8] =
    ["--collective", "all-reduce", "--algorithm", "ring", "--bytes", "64KiB", "--warm-up", "0"];

/// Runs a rack in an engine. Returns its transmissions and the paths of its ranks' operations.
fn carried(engine: &str, file: &Path, name: &str, is_spread: bool) -> (OnLinks, Vec<Value>) {
    let (_, start) = ENGINES.into_iter().find(|(known, _)| *known == engine).expect("an engine");
    let directory = scratch(&format!("{engine}-{name}"));
    // Enough runs to last until the last link is up.
    let repetitions = if name == "ring-64" { "2" } else { "12" };
    let rack = start(file).with(&JOB).with(&["--repetitions", repetitions]);
    let report = rack.with(&["--capture", text(&directory)]).finish().passed();
    assert!(!report["notes"].to_string().contains("capture"), "{engine} {name}: {}", report["notes"]);
    let paths = nodes(&report).iter().map(|node| node["paths"].clone()).collect();
    (OnLinks::of(&directory, is_spread), paths)
}

#[test]
fn every_shipped_rack_carries_the_same_on_every_link_in_both_engines() {
    let mut compared = 0;
    for entry in std::fs::read_dir(root().join("topologies")).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let rack = std::fs::read_to_string(&path).expect("it can be read");
        if rack.contains("switch: bridge") {
            // Virtual time has no model of the kernel's bridge and refuses the rack.
            continue;
        }
        let file = rack_file(&shipped(&rack));
        let [simulated, ran] =
            ["sim", "run"].map(|engine| carried(engine, &file, &name, rack.contains("policy: spray")));
        eprintln!("{name}: other frames: sim {:?}, run {:?}", simulated.0.others, ran.0.others);
        assert_eq!(simulated.1, ran.1, "{name}: paths");
        assert_eq!(simulated.0.of_sources(), ran.0.of_sources(), "{name}: streams");
        let (expected, found) = (simulated.0.second_halves(), ran.0.second_halves());
        assert_eq!(expected.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>(), "{name}: links");
        for (link, expected) in &expected {
            assert_eq!(Some(expected), found.get(link), "{name}: {link:?}");
        }
        let payload_bytes: u64 = expected.values().map(|carried| carried.payload_bytes).sum();
        assert!(payload_bytes > 0 || name == "gpu-2", "{name} carried nothing");
        compared += 1;
    }
    assert!(compared >= 14, "{compared} racks");
}

fn nodes(report: &Value) -> &[Value] {
    report["nodes"].as_array().expect("nodes")
}

/// Three nodes, two of them in one server, and a fourth of another tenant there.
const SERVER: &str = "name: box\nshape: {star: {nodes: 4}}\nservers: {box0: [n0, n1, n3]}\nnodes: {n3: {tenant: 1}}\n\
                      link: {rate: 100Gbit/s, delay: 500ns}\n";

/// Returns the number of a node's operations on the path `direct` or `frames`.
fn operations(report: &Value, node: usize, path: &str) -> u64 {
    nodes(report)[node]["paths"][path]["operations"].as_u64().unwrap_or(0)
}

#[test]
fn the_litmus_takes_the_same_paths_in_both_engines() {
    for more in ["", "force_wire: true\n"] {
        let file = rack_file(&format!("{SERVER}{more}job: {{litmus: {{bytes_max: 16KiB, rounds: 2}}}}\n"));
        let [simulated, ran] = ENGINES.map(|(_, start)| start(&file).finish().passed());
        for (node, is_direct) in [(0, more.is_empty()), (1, more.is_empty()), (2, false), (3, false)] {
            for (engine, report) in [("sim", &simulated), ("run", &ran)] {
                let direct = operations(report, node, "direct");
                assert_eq!(direct > 0, is_direct, "{engine} n{node} {more}: {direct}");
            }
        }
    }
}

#[test]
fn a_slower_local_path_takes_longer_and_changes_nothing_else() {
    let elapsed = |local: &str| {
        let file = rack_file(&format!(
            "name: box\nshape: {{ring: {{nodes: 2}}}}\nservers: {{box0: {{nodes: [n0, n1], local: {{{local}}}}}}}\n\
             job: {{bandwidth: {{bytes: 64KiB, repetitions: 10, warm_up: 0}}}}\n"
        ));
        let report = sim(&file).finish().passed();
        assert!(operations(&report, 0, "direct") > 0);
        let put =
            report["operations"].as_array().expect("operations").iter().find(|kind| kind["kind"] == "put");
        put.expect("puts were measured")["latency_ns"]["max"].as_u64().expect("a time")
    };
    // One transfer of 64 KiB at 8 bits per nanosecond, and the latency behind it; several at once wait for each other.
    let (slow, late) = (elapsed("rate: 8Gbit/s, latency: 0ns"), elapsed("rate: unlimited, latency: 50us"));
    assert!(slow >= 65_536 && slow % 65_536 == 0, "{slow}");
    assert_eq!(late, 50_000);
}

/// Returns the exit code of a run under a script, the verdict and the reasons for it.
fn judged(ended: &Ended) -> (Option<i32>, String, Vec<String>) {
    let report = ended.report();
    let verdict = report["verdict"].as_str().expect("a verdict").to_owned();
    let lines = report["failures"].as_array().expect("failures").iter();
    (ended.code, verdict, lines.map(|line| line.as_str().expect("a line").to_owned()).collect())
}

/// Checks that both engines judge a script of one or more events alike, and returns the judgement.
fn judged_alike(rack: &str, events: &str, expect: &str) -> (Option<i32>, String, Vec<String>) {
    let script = rack_file(&format!("name: script\nevents:\n{events}expect: {{{expect}}}\n"));
    let file = rack_file(rack);
    let [simulated, ran] = ENGINES.map(|(_, start)| {
        let job =
            ["--collective", "all-reduce", "--bytes", "16KiB", "--repetitions", "300", "--warm-up", "0"];
        start(&file).with(&job).with(&["--algorithm", "ring", "--faults", text(&script)]).finish()
    });
    let (expected, found) = (judged(&simulated), judged(&ran));
    assert_eq!(expected, found, "{events}\nsim:\n{}\nrun:\n{}", simulated.stdout, ran.stdout);
    expected
}

const RING: &str =
    "name: ring\nshape: {ring: {nodes: 4}}\nlink: {rate: 100Gbit/s, delay: 500ns}\nwatchdog: 8s\n";

#[test]
fn scripts_have_equal_outcomes_in_both_engines() {
    let right_or_error = "ends: right-or-clean-error";
    for (events, expect, code) in [
        // Before a neighbour has seen it.
        ("  - {what: kill, where: n1, at: 0ns}\n", right_or_error, 0),
        ("  - {what: kill, where: n1, when: {node: n1, run: 3}}\n", right_or_error, 0),
        // The second one is never reached.
        (
            "  - {what: kill, where: n1, when: {node: n1, run: 3}}\n  - {what: kill, where: n2, at: 1000s}\n",
            right_or_error,
            1,
        ),
        // With all repetitions, with more than the run has time for, and with none.
        ("  - {what: loss, where: n0->n1, rate: 1%, at: 0ns, for: 1us, every: 2us, times: 3}\n", "", 0),
        ("  - {what: loss, where: n0->n1, rate: 1%, at: 0ns, for: 1us, every: 1000s, times: 2}\n", "", 1),
        (
            "  - {what: loss, where: n0->n1, rate: 1%, at: 0ns, for: 1us, every: 1000s, times: 2}\n",
            "happen: any",
            0,
        ),
        ("  - {what: loss, where: n0->n1, rate: 1%, at: 0ns, for: 1us, every: 1000s}\n", "", 0),
        ("  - {what: down, where: n0->n1, at: 1000s}\n", "", 1),
    ] {
        let judged = judged_alike(RING, events, expect);
        assert_eq!(judged.0, Some(code), "{events} {expect}: {judged:?}");
    }
}

/// Three nodes, two of them in one server.
const PAIR: &str = "name: pair\nshape: {star: {nodes: 3}}\nservers: {box0: [n0, n1]}\n\
                    link: {rate: 100Gbit/s, delay: 500ns}\ntimers: {heartbeat_interval: 100ms}\nwatchdog: 8s\n";

#[test]
fn faults_of_memory_in_one_server_have_equal_outcomes_in_both_engines() {
    let at = "when: {node: n1, run: 3}";
    for (events, expect, code) in [
        (format!("  - {{what: slow-memory, where: n1, by: 20us, {at}, for: 1ms}}\n"), "ends: right", 0),
        (format!("  - {{what: fail-memory, where: n1, rate: 100%, {at}}}\n"), "ends: clean-error", 0),
        (format!("  - {{what: revoke, where: n1, {at}}}\n"), "ends: clean-error", 0),
        (format!("  - {{what: kill, where: n1, {at}}}\n"), "ends: clean-error", 0),
        (format!("  - {{what: kill, where: n1, {at}, for: 5ms}}\n"), "ends: clean-error", 0),
        (format!("  - {{what: pause, where: n1, {at}, for: 5ms}}\n"), "ends: right", 0),
    ] {
        let judged = judged_alike(PAIR, &events, expect);
        assert_eq!(judged.0, Some(code), "{events} {expect}: {judged:?}");
    }
}

#[test]
fn a_fault_of_memory_sends_peers_of_the_server_to_frames_in_both_engines() {
    let file = rack_file(PAIR);
    let script = rack_file(
        "name: slow\nevents: [{what: slow-memory, where: n1, by: 20us, when: {node: n1, run: 3}}]\n",
    );
    for (engine, start) in ENGINES {
        let job = ["--collective", "all-reduce", "--bytes", "16KiB", "--repetitions", "300"];
        let rack = start(&file).with(&job).with(&["--algorithm", "ring", "--faults", text(&script)]);
        let report = rack.finish().passed();
        let notes = report["notes"].to_string();
        assert!(notes.contains("memory of n1 is reached in frames since a fault"), "{engine}: {notes}");
    }
}
