//! A node dies or a link is cut, and no process hangs: on every wire, for root and for a user without rights.
//!
//! Processes are killed while the litmus runs, at many times, also while the supervisor is stopped. The
//! others must detect it from their links. Afterwards no process or file may be left. The core's own tests
//! check single operations in virtual time; here processes die. Links are cut by two methods: by a fault of
//! the file, on every wire, and from outside, which needs an interface.

mod support;

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use support::stages::{Stage, stages};
use support::wires::{cut_first_link, skipped};
use support::{Ended, Members, Running, has_stopped, injected, monotonic_ns, rack_file, run, send, within};

const INTERVAL_NS: u64 = 50_000_000;
const MISSES: u64 = 4;
/// Allowance for scheduling on a machine whose processors are all busy.
const SLACK_NS: u64 = 1_000_000_000;

/// Starts a rack whose litmus does not end by itself within any test.
fn busy_rack(shape: &str) -> String {
    format!(
        "name: busy\nshape: {shape}\n\
         timers: {{heartbeat_interval: 50ms, heartbeat_miss_max: {MISSES}}}\n\
         job: {{litmus: {{bytes_max: 64KiB, rounds: 100000}}}}\n"
    )
}

const RING: &str = "{ring: {nodes: 4}}";
const STAR: &str = "{star: {nodes: 4, planes: 2}}";

/// Waits until links are up, then some time into the job.
fn start(shape: &str, stage: Stage, into_the_job: Duration) -> (Running, Members) {
    let mut rack = stage.run(&busy_rack(shape)).start();
    let members = rack.members();
    std::thread::sleep(into_the_job);
    (rack, members)
}

/// Returns the time at which each member detected the loss of `lost`, on the clock of the report.
fn losses<'r>(report: &'r Value, lost: &str) -> Vec<(&'r str, u64)> {
    let events = report["events"].as_array().expect("a list of events").iter();
    events
        .filter(|event| event["kind"] == "node-lost" && event["fields"]["node"] == lost)
        .map(|event| (event["member"].as_str().expect("a name"), event["at_ns"].as_u64().expect("a time")))
        .collect()
}

/// Checks that every surviving GPU node detected the death in time.
fn all_detected(ended: &Ended, members: &Members, dead: &str, killed_at_ns: u64) {
    assert_eq!(ended.code, Some(4), "{}\n{}", ended.stdout, ended.stderr);
    let report = ended.report();
    assert_eq!(report["verdict"], "fail");
    let seen = losses(&report, dead);
    let bound_ns = INTERVAL_NS * MISSES + SLACK_NS;
    for (survivor, _) in members.pids.iter().filter(|(name, _)| name != dead && name.starts_with('n')) {
        let first = seen.iter().filter(|(member, _)| member == survivor).map(|(_, at_ns)| *at_ns).min();
        let at_ns = first.unwrap_or_else(|| panic!("{survivor} never named {dead}\n{}", ended.stdout));
        let took_ns = (members.origin_monotonic_ns + at_ns).saturating_sub(killed_at_ns);
        assert!(took_ns <= bound_ns, "{survivor} took {took_ns} ns to name {dead}");
    }
    let dead_row = report["nodes"].as_array().expect("nodes").iter().find(|node| node["name"] == dead);
    assert_eq!(dead_row.expect("the dead node is listed")["state"], "killed");
    members.all_gone(Duration::ZERO);
}

#[test]
fn a_node_killed_at_any_time_is_reported_by_every_other() {
    for stage in stages("a_node_killed_at_any_time_is_reported_by_every_other") {
        for into_the_job_ms in [0, 1, 3, 10, 30, 100, 300] {
            let (rack, members) = start(RING, stage, Duration::from_millis(into_the_job_ms));
            let killed_at_ns = monotonic_ns();
            send(members.pid("n1"), Signal::KILL);
            all_detected(&rack.finish(), &members, "n1", killed_at_ns);
        }
    }
}

#[test]
fn a_node_killed_behind_switches_is_reported_by_every_other() {
    for stage in stages("a_node_killed_behind_switches_is_reported_by_every_other") {
        let (rack, members) = start(STAR, stage, Duration::from_millis(20));
        let killed_at_ns = monotonic_ns();
        send(members.pid("n2"), Signal::KILL);
        all_detected(&rack.finish(), &members, "n2", killed_at_ns);
    }
}

#[test]
fn members_detect_a_death_without_the_supervisor() {
    for stage in stages("members_detect_a_death_without_the_supervisor") {
        for into_the_job_ms in [0, 10, 100] {
            let (rack, members) = start(RING, stage, Duration::from_millis(into_the_job_ms));
            send(rack.supervisor(), Signal::STOP);
            let killed_at_ns = monotonic_ns();
            send(members.pid("n1"), Signal::KILL);
            // The events must precede the resumption of the supervisor, so the whole bound passes while it is
            // stopped.
            std::thread::sleep(Duration::from_nanos(INTERVAL_NS * MISSES + SLACK_NS));
            send(rack.supervisor(), Signal::CONT);
            all_detected(&rack.finish(), &members, "n1", killed_at_ns);
        }
    }
}

#[test]
fn members_end_when_their_supervisor_is_killed() {
    for stage in stages("members_end_when_their_supervisor_is_killed") {
        let (rack, members) = start(RING, stage, Duration::from_millis(20));
        send(rack.supervisor(), Signal::KILL);
        members.all_gone(Duration::from_secs(5));
    }
}

#[test]
fn a_killed_switch_of_one_plane_costs_no_operation() {
    let shape = "name: two-planes\nshape: {star: {nodes: 4, planes: 2}}\n\
                 timers: {heartbeat_interval: 500ms, heartbeat_miss_max: 4}\n\
                 job: {litmus: {bytes_max: 1MiB, rounds: 12}}\n";
    for stage in stages("a_killed_switch_of_one_plane_costs_no_operation") {
        // Links are up before every node has received that report from all others. A plane without traffic cannot be left.
        let moments_ms = [100, 500, 2500];
        let had_to_move = |moment_ms: &u64| {
            let report = with_a_switch_killed(stage, shape, Duration::from_millis(*moment_ms));
            has_moved(&report)
        };
        assert!(
            moments_ms.iter().any(had_to_move),
            "{stage}: traffic had to leave the dead plane while the job ran"
        );
    }
}

/// Returns the report of a run whose only loss is s0, at this time after links were up.
fn with_a_switch_killed(stage: Stage, shape: &str, into_the_job: Duration) -> Value {
    let mut rack = stage.run(shape).start();
    let members = rack.members();
    std::thread::sleep(into_the_job);
    send(members.pid("s0"), Signal::KILL);
    let ended = rack.finish();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    let report = ended.report();
    let switch = report["nodes"].as_array().unwrap().iter().find(|node| node["name"] == "s0").unwrap();
    assert_eq!(switch["state"], "killed");
    members.all_gone(Duration::ZERO);
    report
}

#[test]
fn a_node_that_hangs_is_lost_and_not_waited_for() {
    for stage in stages("a_node_that_hangs_is_lost_and_not_waited_for") {
        let (rack, members) = start(RING, stage, Duration::from_millis(20));
        send(members.pid("n2"), Signal::STOP);
        let begun = std::time::Instant::now();
        let ended = rack.finish();
        assert_eq!(ended.code, Some(4), "{}\n{}", ended.stdout, ended.stderr);
        assert!(begun.elapsed() < Duration::from_secs(15), "it took {:?}", begun.elapsed());
        members.all_gone(Duration::ZERO);
    }
}

/// Returns a rack with a link that fails permanently soon after the rack has come up, by the file: on every
/// wire, and in virtual time.
fn with_a_cut(shape: &str, link: &str) -> String {
    format!(
        "name: cut\nshape: {shape}\nlinks: {{{link}: {{burst: {{enter: 5%, leave: 0}}}}}}\n\
         timers: {{heartbeat_interval: 200ms, heartbeat_miss_max: {MISSES}}}\n\
         job: {{litmus: {{bytes_max: 64KiB, rounds: 10}}}}\n"
    )
}

#[test]
fn a_link_that_is_cut_by_the_file_costs_no_operation() {
    let mut moved = 0;
    for stage in stages("a_link_that_is_cut_by_the_file_costs_no_operation") {
        for (shape, link) in [(RING, "n0--n1"), (STAR, "n1--s0"), ("{full-mesh: {nodes: 4}}", "n2--n3")] {
            let what = format!("{stage}: {link} of {shape}");
            let report = stage.run(&with_a_cut(shape, link)).finish().passed();
            assert!(injected(&report, "dropped") > 0, "{what}: nothing was cut");
            // Losses are drawn per frame, also for the frames that bring the link up. In that case the job never uses it.
            assert!(
                has_moved(&report) || is_unused(&report, link),
                "{what}: traffic had to use another path"
            );
            moved += usize::from(has_moved(&report));
        }
    }
    assert!(moved > 0, "no link was cut while the job used it");
}

/// Returns whether neither direction of a link carried a data frame.
fn is_unused(report: &Value, link: &str) -> bool {
    let (a, b) = link.split_once("--").expect("two ends");
    let directions = [format!("{a}->{b}"), format!("{b}->{a}")];
    let links = report["links"].as_array().expect("links");
    let of_link = links.iter().filter(|row| directions.iter().any(|name| row["name"] == name.as_str()));
    let data_frames: Vec<_> = of_link.map(|row| row["data_frames"].as_u64().expect("a count")).collect();
    assert_eq!(data_frames.len(), 2, "{link}: both directions are in the report");
    data_frames.iter().all(|&count| count == 0)
}

/// Returns whether traffic took another path while the job ran.
fn has_moved(report: &Value) -> bool {
    report["events"].as_array().expect("events").iter().any(|event| event["kind"] == "path-changed")
}

/// Returns the stages whose links are interfaces that the available tools can cut from outside.
fn with_interfaces(test: &str) -> impl Iterator<Item = Stage> {
    stages(test).into_iter().filter(|stage| stage.wire == "packet")
}

#[test]
fn a_cut_ring_link_costs_no_operation() {
    const TEST: &str = "a_cut_ring_link_costs_no_operation";
    let rack = "name: cut\nshape: {ring: {nodes: 4}}\n\
                timers: {heartbeat_interval: 500ms, heartbeat_miss_max: 4}\n\
                job: {litmus: {bytes_max: 64KiB, rounds: 40}}\n";
    for stage in with_interfaces(TEST) {
        let mut rack = stage.run(rack).start();
        let members = rack.members();
        let cut = cut_first_link(members.pid("n0"));
        let report = rack.finish().passed();
        match cut {
            Err(reason) => skipped(&format!("{TEST}: the link could not be cut from outside: {reason}")),
            Ok(()) => assert!(has_moved(&report), "{stage}: {}", report["events"]),
        }
        members.all_gone(Duration::ZERO);
    }
}

/// Heartbeats are too slow here to detect anything: the bound is half of one heartbeat interval.
#[test]
fn a_lost_carrier_is_detected_before_a_heartbeat() {
    const TEST: &str = "a_lost_carrier_is_detected_before_a_heartbeat";
    const BOUND_NS: u64 = 10_000_000_000;
    let rack = "name: carrier\nshape: {ring: {nodes: 4}}\ntimers: {heartbeat_interval: 20s}\n\
                job: {litmus: {bytes_max: 64KiB, rounds: 40}}\n";
    for stage in with_interfaces(TEST) {
        let mut rack = stage.run(rack).start();
        let members = rack.members();
        let cut_at_ns = monotonic_ns();
        let cut = cut_first_link(members.pid("n0"));
        let cut_after_ns = monotonic_ns();
        let report = rack.finish().passed();
        if let Err(reason) = cut {
            return skipped(&format!("{TEST}: the link could not be cut from outside: {reason}"));
        }
        for (member, port) in [("n0", "port0"), ("n1", "port1")] {
            let cut_at_ns = cut_at_ns - members.origin_monotonic_ns;
            let at_ns = members.origin_monotonic_ns + detected_at_ns(&report, member, port, cut_at_ns);
            assert!(at_ns <= cut_after_ns + BOUND_NS, "{stage}: {member} took {} ns", at_ns - cut_after_ns);
        }
    }
}

/// Returns the first time after `from` at which a member's port lost its carrier, on the clock of the report. It may have had none before.
fn detected_at_ns(report: &Value, member: &str, port: &str, from_ns: u64) -> u64 {
    let events = report["events"].as_array().expect("events");
    let lost = events.iter().filter(|event| {
        let fields = &event["fields"];
        event["member"] == member && fields["port"] == port && fields["cause"] == "carrier"
    });
    let mut times = lost.map(|event| event["at_ns"].as_u64().expect("a time"));
    let detects = times.find(|at_ns| *at_ns >= from_ns);
    detects.unwrap_or_else(|| panic!("{member} felt nothing at {port} from {from_ns} ns on: {events:?}"))
}

/// A node does not read for a while and is not declared dead: frames within the credits wait in the kernel, and none is lost.
#[test]
fn a_node_that_is_stopped_for_a_while_loses_no_frame() {
    for stage in stages("a_node_that_is_stopped_for_a_while_loses_no_frame") {
        let shape = "name: slow\nshape: {ring: {nodes: 2}}\ntimers: {heartbeat_interval: 20s}\n\
                     frame_bytes_max: 9014B\n\
                     job: {bandwidth: {sizes: {from: 64B, to: 256KiB, factor: 16}, repetitions: 1500}}\n";
        let mut rack = stage.run(shape).start();
        let members = rack.members();
        for _ in 0..5 {
            send(members.pid("n1"), Signal::STOP);
            has_stopped(members.pid("n1"), Duration::from_secs(5));
            // Long enough for all allowed frames, with a few timeouts of the transport.
            std::thread::sleep(Duration::from_millis(60));
            send(members.pid("n1"), Signal::CONT);
            std::thread::sleep(Duration::from_millis(5));
        }
        let report = rack.finish().passed();
        for link in report["links"].as_array().expect("links") {
            assert!(link["dropped"]["receive-buffer-full"].is_null(), "{stage}: {link}");
        }
    }
}

#[test]
fn an_interrupt_takes_the_rack_down() {
    for stage in stages("an_interrupt_takes_the_rack_down") {
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            let (rack, members) = start(RING, stage, Duration::from_millis(20));
            send(rack.supervisor(), signal);
            let ended = rack.finish();
            assert_eq!(ended.code, Some(6), "{stage}: {}\n{}", ended.stdout, ended.stderr);
            members.all_gone(Duration::ZERO);
        }
    }
}

#[test]
fn a_rack_that_does_not_come_up_reports_each_wait() {
    let file = rack_file(
        "name: stuck\nshape: {ring: {nodes: 4}}\nwatchdog: 500ms\n\
         timers: {heartbeat_interval: 1s, heartbeat_miss_max: 100}\n\
         job: {litmus: {bytes_max: 64KiB, rounds: 100000}}\n",
    );
    let mut rack = run(&file).start();
    let members = rack.members();
    // Stopped and not dead: missing heartbeats are tolerated for a long time, and the others wait.
    send(members.pid("n1"), Signal::STOP);
    let ended = rack.finish();
    assert_eq!(ended.code, Some(5), "{}\n{}", ended.stdout, ended.stderr);
    let lines: Vec<_> = ended.stdout.lines().map(str::trim).collect();
    assert!(!lines.iter().any(|line| line.ends_with(": running")), "{}", ended.stdout);
    assert!(lines.contains(&"n0: the supervisor ended the run before its job had ended"), "{}", ended.stdout);
    let count = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
    assert_eq!(count("n0 waits: no progress of the job since "), 1, "{}", ended.stdout);
    assert_eq!(count("n0 waits: job: "), 1, "{}", ended.stdout);
    within(Duration::from_secs(5), "the end of the stopped one", || {
        members.all_gone(Duration::from_secs(5));
        Some(())
    });
}
