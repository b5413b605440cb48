//! A member dies or a link is cut at every step of a collective, and no rank hangs or gets a wrong sum.
//!
//! A step lasts microseconds, so it cannot be hit from outside. The seat stops itself there
//! (`RACKLOOM_STOP_AT`, docs/cli.md), and then the seat, a switch or a link is removed. The simulator's own
//! tests check the frames of a step in virtual time.

mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use support::arrays::{arrays, bytes_of, reduced, result, values};
use support::footprint::Footprint;
use support::wires::{cut_first_link, skipped, wires};
use support::{Ended, Members, Rackloom, Running, has_stopped, monotonic_ns, rack_file, run, scratch, send};

const RANKS: usize = 8;
/// Steps of a ring all-reduce: N - 1 to reduce a part and N - 1 to spread it; the last step only receives.
const STEPS: usize = 2 * (RANKS - 1) + 1;
/// Odd number of elements, so that the parts differ in length, with several frames each.
const ELEMENTS: usize = 50_003;
const INTERVAL_MS: u64 = 50;
const MISSES: u64 = 4;
/// Allowance for scheduling on a machine whose processors are all busy.
const SLACK: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(30);

/// All-reduce of the user's own arrays, with the expected results.
struct Sums {
    file: PathBuf,
    input: PathBuf,
    output: PathBuf,
    expected: Vec<u8>,
    ranks: usize,
}

impl Sums {
    fn new(shape: &str, ranks: usize, interval_ms: u64) -> Self {
        let given = values("i32", "sum", ranks, ELEMENTS);
        let file = rack_file(&format!(
            "name: steps\nshape: {shape}\n\
             timers: {{heartbeat_interval: {interval_ms}ms, heartbeat_miss_max: {MISSES}}}\n"
        ));
        let expected = bytes_of("i32", &reduced("i32", "sum", &given));
        Self { file, input: arrays("i32", &given), output: scratch("output"), expected, ranks }
    }

    /// Starts `run`, in which n3 stops when it reaches `step`.
    fn stopping_at(&self, step: &str, wire: &str) -> Rackloom {
        self.on(wire).in_environment("RACKLOOM_STOP_AT", &format!("n3={step}"))
    }

    /// Starts `run` on this wire.
    fn on(&self, wire: &str) -> Rackloom {
        let text = |path: &Path| path.to_str().expect("a plain path").to_owned();
        run(&self.file)
            .with(&["--wire", wire, "--collective", "all-reduce", "--type", "i32", "--algorithm", "ring"])
            .with(&["--repetitions", "1", "--warm-up", "0"])
            .with(&["--input", &text(&self.input), "--output", &text(&self.output)])
            .in_environment("RACKLOOM_TEST_MARK", &text(&self.output))
    }

    /// Returns true if a rank has its sum. The sum must be right then.
    fn has_sum(&self, rank: usize) -> bool {
        let is_there = self.output.join(format!("rank{rank}.npy")).exists();
        assert!(!is_there || result(&self.output, rank).1 == self.expected, "rank {rank} has a wrong sum");
        is_there
    }

    fn all_have_sums(&self) {
        (0..self.ranks).for_each(|rank| assert!(self.has_sum(rank), "rank {rank} has no sum"));
    }
}

impl Drop for Sums {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.input);
        let _ = std::fs::remove_dir_all(&self.output);
    }
}

fn start(rackloom: Rackloom) -> (Running, Members) {
    let mut rack = rackloom.start();
    let members = rack.members();
    has_stopped(members.pid("n3"), TIMEOUT);
    (rack, members)
}

/// Returns the first time at which `observer` detected the loss of n3, in the report's time.
fn detected_the_loss_at_ns(report: &Value, observer: &str) -> Option<u64> {
    let events = report["events"].as_array().expect("a list of events").iter();
    let losses = events.filter(|event| event["kind"] == "node-lost" && event["fields"]["node"] == "n3");
    losses.filter(|event| event["member"] == observer).filter_map(|event| event["at_ns"].as_u64()).min()
}

/// Checks that every rank but n3 has the right sum, or an error that names n3 in time.
fn right_sums_or_errors(sums: &Sums, ended: &Ended, members: &Members, killed_at_ns: u64, what: &str) {
    assert_eq!(ended.code, Some(4), "{what}\n{}\n{}", ended.stdout, ended.stderr);
    let report = ended.report();
    let failures: Vec<_> = report["failures"].as_array().expect("failures").iter().collect();
    let bound_ns = INTERVAL_MS * MISSES * 1_000_000 + SLACK.as_nanos() as u64;
    for rank in (0..RANKS).filter(|rank| *rank != 3) {
        if sums.has_sum(rank) {
            continue;
        }
        let named = format!("n{rank}: lost nodes [n3]");
        assert!(failures.iter().any(|failure| **failure == *named), "{what}: {named}? {failures:?}");
        let at_ns = detected_the_loss_at_ns(&report, &format!("n{rank}"));
        let at_ns = at_ns.unwrap_or_else(|| panic!("{what}: n{rank} has no event\n{}", ended.stdout));
        let took_ns = (members.origin_monotonic_ns + at_ns).saturating_sub(killed_at_ns);
        assert!(took_ns <= bound_ns, "{what}: n{rank} took {took_ns} ns to name n3");
    }
    assert!(!sums.has_sum(3), "{what}: a killed rank has no result");
}

/// Kills n3 at `step`, and checks the others.
fn killed_at(step: &str, wire: &str) {
    let sums = Sums::new("{ring: {nodes: 8}}", RANKS, INTERVAL_MS);
    let (rack, members) = start(sums.stopping_at(step, wire));
    let killed_at_ns = monotonic_ns();
    let killed = Instant::now();
    send(members.pid("n3"), Signal::KILL);
    let ended = rack.finish();
    let took = killed.elapsed();
    let what = format!("{step}, {wire}");
    // Twice the slack: for the nodes, and for the supervisor that collects their reports.
    let bound = Duration::from_millis(INTERVAL_MS * MISSES) + 2 * SLACK + SLACK;
    assert!(took <= bound, "{what}: the end took {took:?}");
    right_sums_or_errors(&sums, &ended, &members, killed_at_ns, &what);
    members.all_gone(Duration::ZERO);
    assert_eq!(Footprint::of(&sums.output).process_count(), 0, "{what}");
}

#[test]
fn a_node_killed_at_every_step_leaves_right_sums_or_errors_that_name_it() {
    killed_at("starting", "shared-memory");
    for step in 2..=STEPS {
        killed_at(&format!("step {step} of {STEPS},"), "shared-memory");
    }
}

#[test]
fn a_node_killed_at_a_step_on_any_wire_leaves_right_sums_or_errors_that_name_it() {
    for wire in wires("a_node_killed_at_a_step_on_any_wire_leaves_right_sums_or_errors_that_name_it") {
        let steps = if wire == "packet" { (2..=STEPS).collect() } else { vec![2, RANKS, STEPS] };
        for step in steps {
            killed_at(&format!("step {step} of {STEPS},"), wire);
        }
    }
}

/// A cut ring has no path around a slow member, so none may be declared dead. A cut is still detected within a second.
const CUT_INTERVAL_MS: u64 = 200;

/// Cuts both directions of n3--n4 while n3 is at `step`, and checks that the sums are correct over the other
/// direction.
fn cut_at(step: usize, what: &str, wire: &str) {
    let sums = Sums::new("{ring: {nodes: 8}}", RANKS, CUT_INTERVAL_MS);
    let script = scratch("cut.yaml");
    let event = format!("{{what: {what}, where: n3--n4, when: {{node: n3, run: 1, step: {step}}}}}");
    std::fs::write(&script, format!("name: cut\nevents: [{event}]\nexpect: {{ends: right}}\n"))
        .expect("the scratch folder is there");
    let faults = ["--faults", script.to_str().expect("a plain path")];
    let ended = sums.on(wire).with(&faults).finish();
    let _ = std::fs::remove_file(script);
    let fault = &ended.report()["faults"][0];
    assert_eq!(ended.code, Some(0), "{what} at step {step}, {wire}: {fault}\n{}", ended.stdout);
    sums.all_have_sums();
}

/// The second kind of failure at a step. A pulled link is reported at once; a cut one is detected by its missing heartbeats only.
#[test]
fn a_link_lost_at_every_step_leaves_right_sums() {
    for wire in wires("a_link_lost_at_every_step_leaves_right_sums") {
        (1..=STEPS).for_each(|step| cut_at(step, "unplug", wire));
        [2, RANKS, STEPS].into_iter().for_each(|step| cut_at(step, "down", wire));
    }
}

/// Timers with which the stopped member is not declared dead.
const SLOW_INTERVAL_MS: u64 = 500;

#[test]
fn a_plane_killed_in_the_middle_leaves_right_sums() {
    for plane in ["s0", "s1"] {
        let sums = Sums::new("{star: {nodes: 8, planes: 2}}", RANKS, SLOW_INTERVAL_MS);
        let (rack, members) = start(sums.stopping_at(&format!("step 7 of {STEPS},"), "shared-memory"));
        send(members.pid(plane), Signal::KILL);
        send(members.pid("n3"), Signal::CONT);
        let ended = rack.finish();
        let report = ended.passed();
        let nodes = report["nodes"].as_array().expect("nodes").iter();
        let killed: Vec<_> =
            nodes.filter(|node| node["state"] == "killed").map(|node| &node["name"]).collect();
        assert_eq!(killed, [plane], "and no other member");
        sums.all_have_sums();
        members.all_gone(Duration::ZERO);
    }
}

#[test]
fn a_ring_cut_in_the_middle_leaves_right_sums() {
    let sums = Sums::new("{ring: {nodes: 8}}", RANKS, SLOW_INTERVAL_MS);
    let (rack, members) = start(sums.stopping_at(&format!("step 7 of {STEPS},"), "packet"));
    let cut = cut_first_link(members.pid("n0"));
    send(members.pid("n3"), Signal::CONT);
    let ended = rack.finish();
    let report = ended.passed();
    sums.all_have_sums();
    members.all_gone(Duration::ZERO);
    match cut {
        Ok(()) => {
            let events = report["events"].as_array().expect("events");
            assert!(events.iter().any(|event| event["kind"] == "path-changed"), "the cut was not felt");
        }
        Err(reason) => {
            skipped(&format!("a_ring_cut_in_the_middle_leaves_right_sums: no cut from outside: {reason}"))
        }
    }
}
