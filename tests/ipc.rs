//! GPU nodes of one server map each other's memory, and only the counters show it.
//!
//! Jobs run with and without `--force-wire`, on both wires. They are correct in both cases, and report and links show the path
//! of the data. The death of a node whose memory is mapped is detected like that of a linked one. `crates/node/tests/sharing`
//! tests single accesses, refusals and revocations.

mod support;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use support::wires::wires;
use support::{Members, Running, monotonic_ns, over_links, rack_file, run, scratch, send, topology, within};

const INTERVAL_NS: u64 = 50_000_000;
const MISSES: u64 = 4;
/// Allowance for scheduling on a machine whose processors are all busy.
const SLACK_NS: u64 = 1_000_000_000;

/// Two GPU nodes in one server.
fn duo(more: &str) -> PathBuf {
    rack_file(&format!("name: duo\nshape: {{full-mesh: {{nodes: 2}}}}\nservers: {{box: [n0, n1]}}\n{more}\n"))
}

/// Operations and bytes of one node on one path.
fn path(report: &Value, node: &str, path: &str) -> (u64, u64) {
    let nodes = report["nodes"].as_array().expect("nodes");
    let paths = &nodes.iter().find(|found| found["name"] == node).expect("it is listed")["paths"][path];
    let number = |name: &str| paths[name].as_u64().expect("a number");
    (number("operations"), number("bytes"))
}

fn bytes_on_links(report: &Value) -> u64 {
    over_links(report, |link| link["bytes_on_wire"].as_u64().expect("a number"))
}

#[test]
fn the_links_of_a_server_carry_no_data_unless_they_are_forced_to() {
    const BYTES: u64 = 1 << 20;
    let job = ["--collective", "all-reduce", "--bytes", "1MiB", "--type", "u8"];
    let file = duo("");
    for wire in wires("the_links_of_a_server_carry_no_data_unless_they_are_forced_to") {
        let shared = run(&file).with(&job).with(&["--wire", wire]).finish().passed();
        let forced = run(&file).with(&job).with(&["--wire", wire, "--force-wire"]).finish().passed();
        for node in ["n0", "n1"] {
            let (operations, bytes) = path(&shared, node, "direct");
            assert!(operations > 0 && bytes >= BYTES / 2, "{wire}: {node} did {operations}, {bytes} B");
            assert_eq!(path(&shared, node, "frames"), (0, 0), "{wire}: {node}");
            assert_eq!(path(&forced, node, "direct"), (0, 0), "{wire}: {node}");
            assert!(path(&forced, node, "frames").1 >= BYTES / 2, "{wire}: {node}");
        }
        let (quiet, busy) = (bytes_on_links(&shared), bytes_on_links(&forced));
        assert!(
            busy > 2 * (BYTES / 2) && quiet < busy / 100,
            "{wire}: {quiet} and {busy} bytes on the links"
        );
    }
}

/// The rows of operations on one path, by kind.
fn operations<'r>(report: &'r Value, path: &str) -> Vec<&'r Value> {
    let rows = report["operations"].as_array().expect("operations");
    rows.iter().filter(|row| row["path"] == path).collect()
}

#[test]
fn direct_operations_have_separate_times_and_rows() {
    // Two servers of two: a node reaches one peer directly and two in frames.
    let file =
        rack_file("name: quartet\nshape: {full-mesh: {nodes: 4}}\nservers: {a: [n0, n1], b: [n2, n3]}\n");
    let ended = run(&file).with(&["--job", "litmus"]).finish();
    let report = ended.passed();
    for kind in ["store-acknowledged", "load", "put", "get", "fetch-add-8"] {
        let row = |path| {
            let rows =
                operations(&report, path).into_iter().filter(|row| row["kind"] == kind).collect::<Vec<_>>();
            assert_eq!(rows.len(), 1, "{kind} {path}: {rows:?}");
            rows[0].clone()
        };
        let (direct, framed) = (row("direct"), row("frames"));
        for field in ["p50", "p99", "max"] {
            let time = |row: &Value| row["latency_ns"][field].as_u64().expect("a time");
            assert!(time(&direct) > 0, "{kind} took no time: {direct}");
            // Two copies in one process take less than a round trip over a wire.
            assert!(field != "p50" || time(&direct) < time(&framed), "{kind}: {direct} {framed}");
        }
        assert!(direct["goodput_bytes_per_s"].as_u64() > Some(0), "{kind}: {direct}");
    }
    let sum = |path| {
        operations(&report, path).iter().map(|row| row["count"].as_u64().expect("a count")).sum::<u64>()
    };
    assert!(sum("direct") > 100 && sum("frames") > 100);
    let heading = |line: &str| line.split_whitespace().take(2).eq(["operation", "path"]);
    assert!(ended.stdout.lines().any(heading), "{}", ended.stdout);
    let alone = run(&file).with(&["--job", "litmus", "--force-wire"]).finish();
    assert!(operations(&alone.passed(), "direct").is_empty());
    assert!(!alone.stdout.lines().any(heading), "{}", alone.stdout);
}

#[test]
fn the_file_can_force_the_wire_as_well() {
    let report = run(&duo("force_wire: true\njob: {litmus: {bytes_max: 4KiB, rounds: 1}}")).finish().passed();
    for node in ["n0", "n1"] {
        assert_eq!(path(&report, node, "direct"), (0, 0));
        assert!(path(&report, node, "frames").0 > 0);
    }
}

#[test]
fn a_barrier_within_a_server_sends_no_frame_and_one_between_servers_does() {
    let barrier = ["--job", "collective", "--collective", "barrier", "--algorithm", "two-level"];
    let inner = run(&duo("")).with(&barrier).finish().passed();
    for node in ["n0", "n1"] {
        assert!(path(&inner, node, "direct").0 > 0, "{node} met the other one in memory");
        assert_eq!(path(&inner, node, "frames"), (0, 0), "{node}");
    }
    // Cost of a hundred more barriers. A rank also meets all others before each, by three signals at distances 1, 2
    // and 4; that of an even rank at distance 1 stays within its server.
    let report = |repetitions: &str| {
        let file = topology("four-servers-of-two.yaml");
        let how_often = ["--warm-up", "0", "--repetitions", repetitions];
        run(&file).with(&barrier).with(&how_often).finish().passed()
    };
    let (few, many) = (report("10"), report("110"));
    for rank in 0..8 {
        let name = format!("n{rank}");
        let more = |kind| path(&many, &name, kind).0 - path(&few, &name, kind).0;
        // The first of a server releases the second in memory and meets two other firsts; the second signals the first.
        let expected = if rank % 2 == 0 { (100 * (1 + 1), 100 * (2 + 2)) } else { (100, 100 * 3) };
        assert_eq!((more("direct"), more("frames")), expected, "{name}");
    }
}

#[test]
fn every_job_is_right_on_both_paths_and_both_wires() {
    let collectives = [
        "all-reduce",
        "reduce-scatter",
        "all-gather",
        "broadcast",
        "reduce",
        "all-to-all",
        "gather",
        "scatter",
        "barrier",
        "scan",
        "exclusive-scan",
    ];
    let file = topology("four-servers-of-two.yaml");
    for wire in wires("every_job_is_right_on_both_paths_and_both_wires") {
        for force in [&["--force-wire"][..], &[]] {
            let base = || run(&file).with(&["--wire", wire]).with(force);
            let litmus = base().finish().passed();
            assert_eq!(path(&litmus, "n3", "direct").0 > 0, force.is_empty(), "{wire}");
            for collective in collectives {
                let mut arguments = vec!["--job", "collective", "--collective", collective];
                if collective != "barrier" {
                    arguments.extend(["--bytes", "7001", "--type", "u8"]);
                }
                base().with(&arguments).finish().passed();
            }
        }
    }
}

/// Starts a rack whose litmus does not end by itself, two nodes to a server.
fn start_busy(wire: &str, into_the_job: Duration) -> (Running, Members) {
    let file = rack_file(&format!(
        "name: busy\nshape: {{ring: {{nodes: 4}}}}\nservers: {{left: [n0, n1], right: [n2, n3]}}\n\
         timers: {{heartbeat_interval: 50ms, heartbeat_miss_max: {MISSES}}}\n\
         job: {{litmus: {{bytes_max: 64KiB, rounds: 100000}}}}\n"
    ));
    let mut rack = run(&file).with(&["--wire", wire]).start();
    let members = rack.members();
    std::thread::sleep(into_the_job);
    (rack, members)
}

#[test]
fn the_death_of_a_node_with_mapped_memory_is_detected_as_any_other() {
    for wire in wires("the_death_of_a_node_with_mapped_memory_is_detected_as_any_other") {
        for into_the_job_ms in [0, 3, 30, 200] {
            let (rack, members) = start_busy(wire, Duration::from_millis(into_the_job_ms));
            let killed_at_ns = monotonic_ns();
            send(members.pid("n1"), Signal::KILL);
            let ended = rack.finish();
            assert_eq!(ended.code, Some(4), "{}\n{}", ended.stdout, ended.stderr);
            let report = ended.report();
            let bound_ns = killed_at_ns + INTERVAL_NS * MISSES + SLACK_NS - members.origin_monotonic_ns;
            for survivor in ["n0", "n2", "n3"] {
                let mut events = report["events"].as_array().expect("events").iter();
                let named = events.any(|event| {
                    event["kind"] == "node-lost"
                        && event["member"] == survivor
                        && event["fields"]["node"] == "n1"
                        && event["at_ns"].as_u64().expect("a time") <= bound_ns
                });
                assert!(named, "{survivor} did not name n1 in time\n{}", ended.stdout);
            }
            let text = report["failures"].to_string();
            assert!(!text.contains("expected 0x"), "no byte was wrong before the end: {text}");
            members.all_gone(Duration::ZERO);
        }
    }
}

/// Returns the directories of racks under a session's run directory.
fn racks_in(session: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(session.join("rackloom")) else { return Vec::new() };
    let folders = entries.flatten().filter(|entry| entry.path().is_dir());
    folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn no_name_is_left_during_a_run_or_after_its_supervisor_was_killed() {
    let session = scratch("session");
    std::fs::create_dir(&session).expect("the scratch folder can be written");
    let file = duo("job: {litmus: {bytes_max: 64KiB, rounds: 100000}}");
    let mut rack = run(&file).in_run_directory(&session).start();
    let members = rack.members();
    let timeout = Duration::from_secs(20);
    within(timeout, "the release of the run directory", || racks_in(&session).is_empty().then_some(()));
    for (name, pid) in &members.pids {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", pid.as_raw_nonzero()))
            .expect("the process runs");
        let regions = maps.lines().filter(|line| line.contains("memfd:rackloom-control")).count();
        assert!(regions >= 2, "{name} shares control pages with its peer:\n{maps}");
    }
    send(rack.supervisor(), Signal::KILL);
    members.all_gone(Duration::from_secs(5));
    assert_eq!(racks_in(&session), Vec::<String>::new());
}

#[test]
fn a_run_that_ends_by_itself_leaves_no_name() {
    let session = scratch("session");
    std::fs::create_dir(&session).expect("the scratch folder can be written");
    run(&duo("")).in_run_directory(&session).with(&["--job", "none"]).finish().passed();
    assert_eq!(racks_in(&session), Vec::<String>::new());
}

/// Fault of memory that strikes `n1` in the second run of a sum, in which both nodes access each other's memory directly.
fn struck(fault: &str, expect: &str) -> PathBuf {
    let path = scratch("struck.yaml");
    let when = "when: {node: n1, run: 2, step: 1}";
    let text = format!("name: struck\nevents: [{{what: {fault}, where: n1, {when}}}]\nexpect: {expect}\n");
    std::fs::write(&path, text).expect("it can be written");
    path
}

fn sums_under(script: &Path, repetitions: &str) -> Value {
    let job = ["--collective", "all-reduce", "--algorithm", "ring", "--bytes", "4KiB", "--warm-up", "0"];
    let faults = script.to_str().expect("a plain path");
    run(&duo("")).with(&job).with(&["--repetitions", repetitions, "--faults", faults]).finish().passed()
}

#[test]
fn failing_or_revoked_memory_refuses_direct_accesses_as_well() {
    // Only some accesses fail: a rank that stops must be able to report it.
    for fault in ["fail-memory, rate: 80%", "revoke"] {
        let report = sums_under(&struck(fault, "{ends: clean-error}"), "50");
        assert!(path(&report, "n0", "direct").0 > 0, "{fault}: until then n0 reached n1 directly");
        let refusal = if fault == "revoke" { "revoked" } else { "memory-failed" };
        let notes = report["notes"].to_string();
        assert!(notes.contains("a clean error") && notes.contains(refusal), "{fault}: {notes}");
    }
}

#[test]
fn slow_memory_is_slow_for_direct_accesses_as_well() {
    // Forty answers, each of them five milliseconds late.
    let report = sums_under(&struck("slow-memory, by: 5ms", "{ends: right}"), "41");
    assert!(report["elapsed_ns"].as_u64() > Some(200_000_000), "{}", report["elapsed_ns"]);
    let notes = report["notes"].to_string();
    assert!(path(&report, "n0", "frames").0 >= 40, "{notes}");
    assert!(notes.contains("memory of n1 is reached in frames since a fault"), "{notes}");
}
