//! Fault scripts, in both engines: the named scenarios that come with the project, scripts that are refused, and campaigns.
//!
//! Each file in `scripts/faults/` names the run that it is made for in its second comment (`# try:`). That run is tested, and its own
//! expectations must hold. The folder is listed, so a new scenario is covered without an entry anywhere.

mod support;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use support::schema::mistakes;
use support::wires::{has_packet_wire, wires};
use support::{Ended, Rackloom, rack_file, rackloom, root, run, scratch, send, sim, within};

/// Scenario with its command line: the rack, and options.
struct Scenario {
    file: PathBuf,
    rack: PathBuf,
    options: Vec<String>,
}

fn scenarios() -> Vec<Scenario> {
    let entries = std::fs::read_dir(root().join("scripts/faults")).expect("the folder is there");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    files.sort();
    files.into_iter().map(scenario).collect()
}

fn scenario(file: PathBuf) -> Scenario {
    let text = std::fs::read_to_string(&file).expect("it can be read");
    let command = text.lines().find_map(|line| line.strip_prefix("# try: "));
    let command = command.unwrap_or_else(|| panic!("{} names no run with `# try:`", file.display()));
    let mut words = command.split_whitespace();
    let rack = root().join(words.next().expect("a rack"));
    Scenario { rack, options: words.map(str::to_owned).collect(), file }
}

impl Scenario {
    fn on(&self, engine: fn(&Path) -> Rackloom) -> Ended {
        let options: Vec<_> = self.options.iter().map(String::as_str).collect();
        let file = self.file.to_str().expect("a plain path");
        engine(&self.rack).with(&options).with(&["--faults", file]).finish()
    }

    fn on_wire(&self, wire: &str) -> Value {
        let options: Vec<_> = self.options.iter().map(String::as_str).collect();
        let file = self.file.to_str().expect("a plain path");
        self.holds(run(&self.rack).with(&options).with(&["--wire", wire, "--faults", file]).finish())
    }

    fn holds_on(&self, engine: fn(&Path) -> Rackloom) -> Value {
        self.holds(self.on(engine))
    }

    fn holds(&self, ended: Ended) -> Value {
        assert_eq!(ended.code, Some(0), "{}\n{}\n{}", self.file.display(), ended.stdout, ended.stderr);
        let report = ended.report();
        let faults = report["faults"].as_array().expect("what the script did");
        assert!(
            !faults.is_empty() && faults.iter().all(|fault| fault["times"].as_u64() > Some(0)),
            "{faults:?}"
        );
        report
    }
}

#[test]
fn there_are_at_least_twenty_scenarios_and_each_is_named_after_its_file() {
    let scenarios = scenarios();
    assert!(scenarios.len() >= 20, "{}", scenarios.len());
    for scenario in scenarios {
        let name = scenario.file.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&scenario.file).expect("it can be read");
        assert!(text.contains(&format!("\nname: {name}\n")), "{name} has another name inside");
        assert!(text.contains("\nexpect: "), "{name} expects nothing");
    }
}

#[test]
fn a_rank_that_is_lost_for_a_moment_detects_that_the_others_stopped() {
    let (rack, script) = (scratch("rack.yaml"), scratch("script.yaml"));
    let collective = "{algorithm: ring, bytes: 16KiB, repetitions: 2, warm_up: 0}";
    let rack_text = format!(
        "name: notified\nshape: {{ring: {{nodes: 16}}}}\nlink: {{rate: 100Gbit/s, delay: 500ns}}\n\
         job: {{collective: {collective}}}\n"
    );
    let event = "{what: unplug, where: n0->n1, at: 753ns, for: 588629109ns}";
    let script_text = format!(
        "name: notified\nevents: [{event}]\nexpect: {{ends: right-or-clean-error, happen: any, lost: []}}\n"
    );
    std::fs::write(&rack, rack_text).expect("it can be written");
    std::fs::write(&script, script_text).expect("it can be written");
    let ended = sim(&rack).with(&["--faults", script.to_str().expect("a plain path")]).finish();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
}

/// Found by a campaign: frames waited for a lost link, their new path led back over the link on which they had arrived, and two
/// neighbours waited for each other's buffers.
#[test]
fn neighbours_that_would_return_frames_to_each_other_do_not_deadlock() {
    let rack = rack_file(
        "name: sixteen\nshape: {ring: {nodes: 16}}\n\
         job: {collective: {algorithm: ring, bytes: 64KiB, repetitions: 1, warm_up: 0}}\n",
    );
    let file = script(
        "name: back\nevents:\n  \
         - {what: unplug, where: n10->n11, at: 70804ns, for: 736087267ns}\n  \
         - {what: down, where: n10->n9, at: 32497ns, for: 2634369ns}\n  \
         - {what: duplicate, where: n10->n9, rate: 0.6, at: 9145ns, for: 90241049ns}\n\
         expect: {ends: right-or-clean-error, happen: any, lost: []}\n",
    );
    let ended = sim(&rack).with(&["--faults", file.to_str().expect("a plain path")]).finish();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
}

#[test]
fn every_scenario_holds_in_virtual_time() {
    for scenario in scenarios() {
        let report = scenario.holds_on(sim);
        let again = scenario.holds_on(sim);
        assert_eq!(
            report["trace_hash"],
            again["trace_hash"],
            "{}: one seed, one outcome",
            scenario.file.display()
        );
    }
}

#[test]
fn every_scenario_holds_with_real_processes() {
    for scenario in scenarios() {
        let report = scenario.holds_on(run);
        for oracle in ["progress", "credits"] {
            let tally = &report["oracles"][oracle];
            let (looked, broken) = (tally["looked"].as_u64(), tally["broken"].as_u64());
            // With both switches dead no node has a live neighbour.
            let has_links = !scenario.file.ends_with("all-planes-lost.yaml");
            let is_right = (looked > Some(0) || !has_links) && broken.unwrap_or(0) == 0;
            assert!(is_right, "{}: {oracle}: {tally}", scenario.file.display());
        }
        // A bound for heartbeats has the scheduling delay of the host beside it.
        for fault in report["faults"].as_array().expect("faults") {
            let has_bound = fault["detection_bound_ns"].is_u64();
            assert!(!has_bound || fault["scheduling_slack_ns"].as_u64() > Some(0), "{fault}");
        }
        let begins_anew = scenario.file.ends_with("node-restarts.yaml");
        assert!(
            !begins_anew || report["oracles"]["incarnations"]["looked"].as_u64() > Some(0),
            "no oracle watched incarnations"
        );
    }
}

/// Zeros in place of unreadable bytes would be wrong bytes at ranks that received a signal for them.
#[test]
fn unreadable_source_memory_ends_in_an_error_that_names_it() {
    let scenario = scenario(root().join("scripts/faults/unreadable-source.yaml"));
    let of_device = rack_file(
        "name: on-devices\nshape: {full-mesh: {nodes: 4}}\n\
         defaults: {server: one, memory: {bytes: 16MiB, device: 'fake:3'}}\n",
    );
    // Nodes of one server would use each other's memory directly, and send no frame.
    let options = scenario.options.iter().cloned().chain(["--force-wire".to_owned()]).collect();
    let on_device = Scenario { file: scenario.file.clone(), rack: of_device, options };
    let reports = [scenario.holds_on(sim), scenario.holds_on(run), on_device.holds_on(run)];
    for report in reports {
        let events = report["events"].as_array().expect("events");
        let failure =
            events.iter().find(|event| event["kind"] == "source-failed").expect("a frame that left void");
        assert_eq!(failure["member"], "n0");
        let notes = report["notes"].as_array().expect("notes");
        let has_reason = |note: &Value| {
            let note = note.as_str().unwrap_or_default();
            note.contains("a clean error: n0") && note.contains("source-failed")
        };
        assert!(notes.iter().any(has_reason), "{notes:?}");
        assert_eq!(report["wrong"], Value::Null);
    }
}

/// Scenarios that depend on a wire of sockets: its carrier, its queues in the kernel, processes at its ends, and
/// replaced links.
const ON_SOCKETS: [&str; 9] = [
    "cable-pulled",
    "cut-one-way",
    "flipped-bits",
    "node-killed",
    "node-restarts",
    "slow-receiver",
    "split-rack",
    "switch-reboot",
    "taken-for-dead",
];

#[test]
fn a_selection_of_scenarios_holds_on_wires_of_sockets() {
    let chosen: Vec<_> =
        ON_SOCKETS.iter().map(|name| scenario(root().join(format!("scripts/faults/{name}.yaml")))).collect();
    for wire in wires("a_selection_of_scenarios_holds_on_wires_of_sockets") {
        if wire != "shared-memory" {
            chosen.iter().for_each(|scenario| drop(scenario.on_wire(wire)));
        }
    }
}

/// Carriers on the packet wire are the kernel's: the script takes one end's interface down, and the neighbour's device reports it.
#[test]
fn an_unplugged_link_of_the_packet_wire_loses_its_carrier_at_both_ends() {
    const TEST: &str = "an_unplugged_link_of_the_packet_wire_loses_its_carrier_at_both_ends";
    if !has_packet_wire(TEST) {
        return;
    }
    let file = script(
        "name: pulled\nevents: [{what: unplug, where: n0->n1, when: {node: n0, run: 2}, for: 20ms}]\n\
         expect: {ends: right}\n",
    );
    let rack = rack_file(
        "name: slow-hearts\nshape: {ring: {nodes: 4}}\ntimers: {heartbeat_interval: 20s}\n\
         job: {collective: {algorithm: ring, bytes: 64KiB, repetitions: 20}}\n",
    );
    let faults = ["--wire", "packet", "--faults", file.to_str().expect("a plain path")];
    let report = run(&rack).with(&faults).finish().passed();
    let events = report["events"].as_array().expect("events");
    for (member, port) in [("n0", "port0"), ("n1", "port1")] {
        let is_detected = events.iter().any(|event| {
            let fields = &event["fields"];
            event["member"] == member && fields["port"] == port && fields["cause"] == "carrier"
        });
        assert!(is_detected, "{member} did not detect it at {port}: {events:?}");
    }
}

fn script(text: &str) -> PathBuf {
    let file = scratch("faults.yaml");
    std::fs::write(&file, text).expect("the scratch folder is there");
    file
}

fn ring_under(text: &str, engine: fn(&Path) -> Rackloom) -> Ended {
    let file = script(text);
    let options =
        ["--collective", "all-reduce", "--algorithm", "ring", "--bytes", "16KiB", "--repetitions", "3"];
    let faults = ["--faults", file.to_str().expect("a plain path")];
    let ended = engine(&root().join("topologies/ring-4.yaml")).with(&options).with(&faults).finish();
    let _ = std::fs::remove_file(file);
    ended
}

#[test]
fn a_script_with_mistakes_starts_nothing_and_lists_them_all() {
    let text = "name: bad\nevents:\n  - {what: down, where: n0--n9}\n  - {what: kill, where: n1, at: -5ms}\n\
                expect: {ends: right, detected_within: 1}\n";
    for engine in [sim, run] {
        let ended = ring_under(text, engine);
        assert_eq!(ended.code, Some(2), "{}\n{}", ended.stdout, ended.stderr);
        assert_eq!(ended.stdout, "");
        for part in
            ["faults.yaml:3:", "no link `n0--n9`", ":4:", "in the past", ":5:", "has no unit", "hint:"]
        {
            assert!(ended.stderr.contains(part), "{part} in\n{}", ended.stderr);
        }
    }
}

/// Runs sums that continue with the remaining ranks, under a script. Returns the report's groups.
fn groups_after(shape: &str, script_text: &str, engine: fn(&Path) -> Rackloom) -> Value {
    let job = "{algorithm: ring, bytes: 16KiB, repetitions: 5, on_loss: shrink}";
    let rack = rack_file(&format!("name: shrinks\nshape: {{{shape}}}\njob: {{collective: {job}}}\n"));
    let file = script(script_text);
    let report = engine(&rack).with(&["--faults", file.to_str().expect("a plain path")]).finish().passed();
    assert_eq!(report["wrong"].as_array().map_or(0, Vec::len), 0, "{}", report["wrong"]);
    report["groups"].clone()
}

#[test]
fn both_parts_of_a_ring_that_is_cut_twice_repeat_their_sums() {
    let cuts = "name: cut-twice\nevents: [{what: down, where: [n1--n2, n3--n0], when: {node: n0, run: 3}}]\n\
                expect: {ends: right}\n";
    for engine in [sim, run] {
        let groups = groups_after("ring: {nodes: 4}", cuts, engine);
        assert_eq!(groups, serde_json::json!([["n0", "n1"], ["n2", "n3"]]));
    }
}

#[test]
fn the_survivors_of_a_dead_node_repeat_their_sums() {
    let kill = "name: killed\nevents: [{what: kill, where: n3, when: {node: n3, run: 2, step: 2}}]\n";
    for engine in [sim, run] {
        let groups = groups_after("ring: {nodes: 4}", kill, engine);
        assert_eq!(groups, serde_json::json!([["n0", "n1", "n2"]]));
    }
}

/// Scripts under which a rank once waited for others that had continued without it: their messages could not reach it, because its memory
/// refused them or because it was paused while they continued.
#[test]
fn an_unreachable_rank_detects_that_the_others_have_continued() {
    let options = [
        "--collective",
        "all-reduce",
        "--bytes",
        "32KiB",
        "--repetitions",
        "3",
        "--warm-up",
        "0",
        "--seed",
        "1",
    ];
    let star = [
        "[{what: fail-memory, where: [n0], rate: 0.03, at: 148621ns, for: 321959ns}, {what: revoke, where: [n3], at: 218020ns}]",
        "[{what: revoke, where: [n5], after: {frames: 28, direction: n6->s1}}, {what: revoke, where: [n0], at: 24161ns}]",
        "[{what: down, where: [s1->n1], at: 171639ns, for: 1567465349ns}, {what: pause, where: [n1], at: 252024ns, for: 1055225239ns}]",
        "[{what: revoke, where: [n5], after: {frames: 99, direction: s0->n0}}, {what: revoke, where: [n7], when: {node: n2, run: 2, step: 8}}]",
    ];
    let ring = [
        "[{what: revoke, where: [n7], at: 168783ns}, {what: revoke, where: [n2], at: 45203ns}]",
        "[{what: unplug, where: [n3->n2], at: 0ns, for: 73474507ns}, {what: revoke, where: [n6], at: 308776ns}, \
          {what: revoke, where: [n3], when: {node: n4, run: 1, step: 7}}]",
    ];
    let of = |rack: &'static str| move |events| (rack, events);
    for (rack, events) in star.map(of("star-8.yaml")).into_iter().chain(ring.map(of("ring-8.yaml"))) {
        let text = format!(
            "name: found\nevents: {events}\nexpect: {{ends: right-or-clean-error, happen: any, lost: []}}\n"
        );
        let file = script(&text);
        let played = ["--on-loss", "shrink", "--faults", file.to_str().expect("a plain path")];
        sim(&support::topology(rack)).with(&options).with(&played).finish().passed();
    }
}

/// `--on-loss` for a barrier; options that depend on the number of ranks are refused, with the reason.
#[test]
fn on_loss_shrink_continues_a_barrier_with_the_remaining_ranks() {
    let kill = script("name: killed\nevents: [{what: kill, where: n1, when: {node: n1, run: 2, step: 2}}]\n");
    let kill = ["--faults", kill.to_str().expect("a plain path"), "--on-loss", "shrink"];
    let rack = support::topology("ring-4.yaml");
    for engine in [sim, run] {
        let ended = engine(&rack).with(&["--collective", "barrier"]).with(&kill).finish();
        assert_eq!(ended.passed()["groups"], serde_json::json!([["n0", "n2", "n3"]]));
        let ended = engine(&rack).with(&["--collective", "all-gather"]).with(&kill).finish();
        assert_eq!(ended.code, Some(2), "{}", ended.stdout);
        assert!(
            ended.stderr.contains("all-gather of 4 ranks cannot go on with those who are left"),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn a_rank_without_planes_is_alone_and_the_others_continue() {
    let planes = "name: planes\nevents: [{what: unplug, where: n2, when: {node: n2, run: 2}}]\nexpect: {ends: right}\n";
    for engine in [sim, run] {
        let groups = groups_after("star: {nodes: 4, planes: 2}", planes, engine);
        assert_eq!(groups, serde_json::json!([["n0", "n1", "n3"], ["n2"]]));
    }
}

#[test]
fn a_second_loss_forms_a_second_group() {
    let twice = "name: twice\nevents:\n  - {what: kill, where: n4, when: {node: n4, run: 2, step: 1}}\n  \
                 - {what: kill, where: n1, when: {node: n1, run: 4, step: 1}}\n\
                 expect: {ends: right-or-clean-error, happen: any}\n";
    let groups = groups_after("full-mesh: {nodes: 5}", twice, sim);
    assert_eq!(groups, serde_json::json!([["n0", "n2", "n3"]]));
}

#[test]
fn a_missing_script_is_an_error() {
    let rack = root().join("topologies/ring-4.yaml");
    let ended = sim(&rack).with(&["--faults", "/nonexistent.yaml"]).finish();
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("fault script") && ended.stderr.contains("scripts/faults/"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_fault_that_did_not_happen_fails_the_run_unless_allowed() {
    let late = |happen| {
        format!(
            "name: late\nevents: [{{what: down, where: n0--n1, at: 1000s}}]\nexpect: {{happen: {happen}}}\n"
        )
    };
    for engine in [sim, run] {
        let ended = ring_under(&late("all"), engine);
        assert_eq!(ended.code, Some(1), "{}\n{}", ended.stdout, ended.stderr);
        assert!(ended.stdout.contains("did not happen"), "{}", ended.stdout);
        assert_eq!(ring_under(&late("any"), engine).code, Some(0));
    }
}

#[test]
fn an_expectation_that_does_not_hold_fails_the_run() {
    let cut = "name: cut\nevents: [{what: down, where: n0--n1, when: {node: n0, run: 1}}]\n";
    let ended = ring_under(&format!("{cut}expect: {{detected_within: 10us}}\n"), sim);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(ended.stdout.contains("detected after"), "{}", ended.stdout);
}

#[test]
fn faults_wait_for_positions_of_every_job() {
    let jobs = [
        ("{litmus: {bytes_max: 2KiB, rounds: 2}}", "run: 2, step: 3"),
        ("{latency: {bytes: 4KiB, repetitions: 20}}", "run: 2, step: 5"),
        ("{bandwidth: {bytes: 4KiB, repetitions: 20}}", "run: 1, step: 10"),
        ("{traffic: {messages: 20}}", "step: 7"),
    ];
    for (job, position) in jobs {
        let rack = rack_file(&format!(
            "name: positions\nshape: {{ring: {{nodes: 4}}}}\nlink: {{rate: 100Gbit/s, delay: 500ns}}\njob: {job}\n"
        ));
        let file = script(&format!(
            "name: position\nevents: [{{what: duplicate, where: n0->n1, rate: 50%, when: {{node: n0, {position}}}}}]\n"
        ));
        for engine in [sim, run] {
            let report =
                engine(&rack).with(&["--faults", file.to_str().expect("a plain path")]).finish().passed();
            let fault = &report["faults"][0];
            assert!(fault["at_ns"].as_u64() > Some(0), "{job} {position}: {fault}");
        }
    }
}

/// Heartbeats every 10 ms, five may be missing, and links of 500 ns at 100 Gbit/s. A cut, which also loses the frames in flight, is detected
/// within (4 T, 5 T + d]. A death, after which these arrive, is detected within (4 T + d, 5 T + d], in every phase of the interval.
#[test]
fn in_virtual_time_a_cut_and_a_death_are_detected_within_the_bounds_of_the_heartbeat() {
    let rack = support::rack_file(
        "name: bounds\nshape: {ring: {nodes: 4}}\nlink: {rate: 100Gbit/s, delay: 500ns}\n\
         timers: {heartbeat_interval: 10ms, heartbeat_miss_max: 5}\n\
         job: {collective: {algorithm: ring, bytes: 1MiB, repetitions: 200, warm_up: 0}}\n",
    );
    for (event, least_ns) in
        [("what: down, where: n0->n1", 40_000_000), ("what: kill, where: n1", 40_000_000 + 506)]
    {
        let (mut soonest_ns, mut latest_ns) = (u64::MAX, 0);
        for phase in 0..12 {
            // Every member has sent a heartbeat by then.
            let at_ns = 10_000_000 + phase * 833_000;
            let text = format!("name: phase\nevents: [{{{event}, at: {at_ns}ns}}]\n");
            let file = script(&text);
            let ended = sim(&rack).with(&["--faults", file.to_str().expect("a plain path")]).finish();
            let _ = std::fs::remove_file(file);
            let report = ended.passed();
            let fault = &report["faults"][0];
            let took_ns = fault["detected_after_ns"].as_u64().expect("it was noticed");
            assert!((least_ns + 1..=50_000_848).contains(&took_ns), "{event} in phase {phase}: {took_ns} ns");
            assert!(fault["detection_least_ns"].as_u64() <= Some(least_ns), "{fault}");
            (soonest_ns, latest_ns) = (soonest_ns.min(took_ns), latest_ns.max(took_ns));
        }
        // Both ends of the interval are reached within a phase or two.
        assert!(soonest_ns < 42_000_000 && latest_ns > 48_000_000, "{event}: {soonest_ns} to {latest_ns} ns");
    }
}

/// Memory that refuses every request permanently, at one node or at all of them, in any job: a clean error,
/// long before the watchdog. A rank that waits for such memory gets the error with the first request that it
/// refuses.
#[test]
fn memory_that_refuses_every_request_ends_every_job_in_a_clean_error() {
    let jobs: [&[&str]; 6] = [
        &["--collective", "all-reduce", "--bytes", "256KiB"],
        &["--collective", "broadcast", "--root", "n0", "--bytes", "256KiB"],
        &["--collective", "barrier", "--repetitions", "50"],
        &["--job", "bandwidth"],
        &["--pattern", "incast"],
        &["--job", "litmus"],
    ];
    let rack = support::topology("ring-4.yaml");
    for job in jobs {
        for struck in ["n0", "n1", "[n0, n1, n2, n3]"] {
            for at in ["0ns", "30us", "200us"] {
                let text = format!(
                    "name: refuses\nevents: [{{what: fail-memory, where: {struck}, rate: 100%, at: {at}}}]\n\
                     expect: {{ends: right-or-clean-error, happen: any, elapsed_max: 1s}}\n"
                );
                let file = script(&text);
                let ended =
                    sim(&rack).with(job).with(&["--faults", file.to_str().expect("a plain path")]).finish();
                let _ = std::fs::remove_file(file);
                assert_eq!(
                    ended.code,
                    Some(0),
                    "{job:?} {struck} at {at}\n{}\n{}",
                    ended.stdout,
                    ended.stderr
                );
            }
        }
    }
    let text = "name: refuses\nevents: [{what: fail-memory, where: n1, rate: 100%, when: {node: n1, run: 2}}]\n\
                expect: {ends: clean-error}\n";
    let ended = ring_under(text, run);
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
}

#[test]
fn a_member_that_is_killed_for_a_time_returns_as_a_new_incarnation() {
    let text = "name: restart\nevents: [{what: kill, where: n2, when: {node: n2, run: 2}, for: 20ms}]\n\
                expect: {ends: clean-error}\n";
    for engine in [sim, run] {
        let ended = ring_under(text, engine);
        assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
        let report = ended.report();
        let events = || report["events"].as_array().expect("events").iter();
        let restarts =
            events().filter(|event| event["kind"] == "node-restarted" && event["fields"]["node"] == "n2");
        assert!(restarts.count() > 0, "no member reported the new incarnation of n2\n{}", ended.stdout);
        let says =
            |begins| move |event: &&Value| event["kind"] == "fault" && event["fields"]["begins"] == begins;
        let at_ns = |event: &Value| event["at_ns"].as_u64().expect("a time");
        let died = events().find(says("true")).map(at_ns).expect("it died");
        let followed = events().find(says("false")).map(at_ns).expect("it was replaced");
        assert!(followed >= died + 20_000_000, "{followed} after {died}");
        let node = report["nodes"].as_array().expect("nodes").iter().find(|node| node["name"] == "n2");
        assert_eq!(
            node.expect("n2 is listed")["state"],
            "finished",
            "the successor reports\n{}",
            ended.stdout
        );
    }
}

/// Both neighbours on both sides of a ring die at once, and both are replaced. The links between the two are replaced as well.
#[test]
fn neighbours_that_die_together_both_get_successors() {
    let text = "name: pair\nevents: [{what: kill, where: [n1, n2], when: {node: n2, run: 2}, for: 20ms}]\n\
                expect: {ends: clean-error, lost: []}\n";
    for engine in [sim, run] {
        let ended = ring_under(text, engine);
        assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    }
}

fn campaign(more: &[&str]) -> Ended {
    let rack = ["campaign", "topologies/ring-4.yaml", "--collective", "all-reduce", "--algorithm", "ring"];
    let job = ["--bytes", "4KiB", "--repetitions", "3", "--warm-up", "1"];
    rackloom(&rack).with(&job).with(more).finish()
}

#[test]
fn a_campaign_runs_each_script_once_and_resumes() {
    let results = scratch("campaign.txt");
    let resume = ["--resume", results.to_str().expect("a plain path")];
    let first = campaign(&[&resume[..], &["--runs", "20"]].concat());
    assert_eq!(first.code, Some(0), "{}\n{}", first.stdout, first.stderr);
    assert!(first.stdout.contains("20 fault scripts"), "{}", first.stdout);
    let mut numbers: Vec<u64> = std::fs::read_to_string(&results)
        .expect("the results")
        .lines()
        .skip(1)
        .map(|line| line.strip_suffix(" pass").expect("it passed").parse().expect("a number"))
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
    let second = campaign(&[&resume[..], &["--runs", "30"]].concat());
    assert!(second.stdout.contains("10 fault scripts"), "{}", second.stdout);
    assert!(second.stdout.contains("20 left out"), "{}", second.stdout);
    for other in [&["--set", "link.delay=2us"][..], &["--seed", "77"], &["--payload", "elided"]] {
        let refused = campaign(&[&resume[..], &["--runs", "30"], other].concat());
        assert_eq!(refused.code, Some(2), "{other:?}: {}", refused.stdout);
        assert!(refused.stderr.contains("runs of another campaign"), "{}", refused.stderr);
    }
    let _ = std::fs::remove_file(results);
}

/// Returns the JSON result of a campaign, after it was checked against the schema that the command prints.
fn campaign_result(text: &str) -> serde_json::Value {
    let result = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(mistakes("campaign", &result), [""; 0]);
    result
}

#[test]
fn a_campaign_writes_its_result_as_json() {
    let ended = campaign(&["--runs", "20", "--json", "-"]);
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("20 fault scripts"), "text goes to standard error: {}", ended.stderr);
    let result = campaign_result(&ended.stdout);
    let expected = serde_json::json!({"ran": 20, "runs": 20, "first": 1, "starved": 0, "left_out": 0, "engine": "sim", "verdict": "pass", "failures": []});
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(result[name], *value, "{name}");
    }
    let refused = campaign(&["--runs", "20", "--json", "/dev/full/result"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert_eq!(refused.stdout, "", "the file is checked before the work");
}

/// An operation that waits on the device for its begin reads own memory that has been revoked since its request.
#[test]
fn memory_that_is_revoked_while_operations_wait_on_the_device_is_a_clean_error() {
    let rack = rack_file(
        "name: devices\nshape: {star: {nodes: 4}}\nlink: {rate: 400Gbit/s, delay: 250ns}\n\
         device: {bulk_engines: 1, bulk_in_flight: 4, bulk_latency: 2us}\n\
         job: {collective: {bytes: 64KiB, algorithm: ring, repetitions: 4, warm_up: 0}}\n",
    );
    let mut clean_errors = 0;
    for begin_us in (2..122).step_by(3) {
        let file = script(&format!(
            "name: late\nevents: [{{what: revoke, where: [n2], at: {begin_us}us}}]\n\
             expect: {{ends: right-or-clean-error, happen: any, lost: []}}\n"
        ));
        let ended = sim(&rack).with(&["--faults", file.to_str().expect("a plain path")]).finish();
        assert_eq!(ended.code, Some(0), "at {begin_us} us: {}\n{}", ended.stdout, ended.stderr);
        clean_errors += u32::from(ended.stdout.contains("revoked"));
    }
    assert!(clean_errors > 20, "most of the times are within the job: {clean_errors}");
}

/// A heartbeat that ended a suspicion was also the first one that reported the neighbour as carrying data
/// again. The end of the link did not report it, so the other end declared the link down permanently.
#[test]
fn a_link_whose_first_good_heartbeat_ends_a_suspicion_is_reported() {
    let rack = rack_file(
        "name: tree\nseed: 40001\nlink: {rate: 100Gbit/s, delay: 500ns}\nshape:\n  custom:\n    nodes: [n0, n1, n2, n3, n4, n5, n6, n7]\n    links:\n\
         \x20     - {a: n0, b: n1}\n      - {a: n1, b: n2}\n      - {a: n2, b: n3}\n      - {a: n3, b: n4}\n\
         \x20     - {a: n0, b: n5}\n      - {a: n2, b: n6}\n      - {a: n5, b: n7}\n\
         timers: {heartbeat_interval: 50us, heartbeat_rest: 1, hello_interval: 20us}\n\
         job: {collective: {bytes: 8KiB, repetitions: 2, warm_up: 0}}\n",
    );
    let file = script(
        "name: found\nevents:\n  - {what: loss, where: all, rate: 0.6, at: 585152ns, for: 428929ns, every: 857858ns, times: 9}\n\
         expect: {ends: right-or-clean-error, happen: any, lost: []}\n",
    );
    for seed in 1..=40 {
        let options = ["--seed", &seed.to_string(), "--faults", file.to_str().expect("a plain path")];
        sim(&rack).with(&options).finish().passed();
    }
}

/// The table of events has the death of a link, with its reason, and says how many ends were only late.
#[test]
fn the_printed_events_have_the_death_of_each_link() {
    let cut = script(
        "name: cut\nevents: [{what: down, where: n0--s0, at: 20us, for: 1ms}]\nexpect: {ends: right}\n",
    );
    let options = ["--collective", "all-reduce", "--bytes", "256KiB", "--repetitions", "60", "--faults"];
    let ended = sim(&root().join("topologies/star-4.yaml"))
        .with(&options)
        .with(&[cut.to_str().expect("a plain path")])
        .finish();
    let report = ended.passed();
    let changes = |from: &str, to: &str| {
        let events = report["events"].as_array().expect("events").iter();
        let of_links = events.filter(|event| event["kind"] == "link-changed");
        of_links.filter(|event| event["fields"]["from"] == from && event["fields"]["to"] == to).count()
    };
    let lines = |text: &str| ended.stdout.lines().filter(|line| line.contains(text)).count();
    assert_eq!(changes("suspect", "down"), 2, "both ends of the link");
    assert_eq!(lines("port0 suspect -> down (heartbeat-dead)"), 2, "{}", ended.stdout);
    assert_eq!((changes("suspect", "up"), lines("suspect for a while")), (0, 0), "{}", ended.stdout);

    // The link is down for less than the time after which it is dead.
    let late = script(
        "name: late\nevents: [{what: down, where: n0--s0, at: 20us, for: 150us}]\nexpect: {ends: right}\n",
    );
    let ended = sim(&root().join("topologies/star-4.yaml"))
        .with(&options)
        .with(&[late.to_str().expect("a plain path")])
        .finish();
    ended.passed();
    let counted = "2 times a port was suspect for a while and came up again without going down";
    assert!(ended.stdout.contains(counted) && !ended.stdout.contains("suspect ->"), "{}", ended.stdout);
}

#[test]
fn a_campaign_of_processes_plays_the_same_scripts_with_later_beginnings() {
    let export = scratch("processes");
    let list = scratch("processes.txt");
    let files = [
        "--export",
        export.to_str().expect("a plain path"),
        "--resume",
        list.to_str().expect("a plain path"),
    ];
    let ended =
        campaign(&[&files[..], &["--engine", "processes", "--runs", "2", "--time-scale", "50"]].concat());
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("begin 50 times later than in virtual time"), "{}", ended.stdout);
    assert!(ended.stdout.contains("2 fault scripts"), "{}", ended.stdout);
    assert_eq!(std::fs::read_to_string(&list).expect("the list").lines().count(), 1 + 2);
    let ended = campaign(&["--time-scale", "50", "--runs", "2"]);
    assert_eq!(ended.code, Some(2), "{}\n{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("add `--engine processes`"), "{}", ended.stderr);
    let _ = (std::fs::remove_dir_all(export), std::fs::remove_file(list));
}

/// Checks both engines. With processes, the running rack is taken down.
#[test]
fn a_campaign_that_is_interrupted_prints_what_it_has() {
    for engine in ["sim", "processes"] {
        let list = scratch(&format!("interrupted-{engine}.txt"));
        let rack = ["campaign", "topologies/ring-4.yaml", "--collective", "all-reduce", "--bytes", "4KiB"];
        let options =
            ["--runs", "1000000", "--engine", engine, "--resume", list.to_str().expect("a plain path")];
        let running = rackloom(&rack).with(&options).start();
        let ran = || std::fs::read_to_string(&list).unwrap_or_default().lines().skip(1).count();
        within(Duration::from_secs(120), "the first script", || (ran() > 0).then_some(()));
        send(running.supervisor(), Signal::INT);
        let ended = running.finish();
        assert_eq!(ended.code, Some(6), "{}\n{}", ended.stdout, ended.stderr);
        let line = format!("{} fault scripts in", ran());
        assert!(ended.stdout.contains(&line), "{line} in\n{}", ended.stdout);
        assert!(ended.stdout.contains(", interrupted before the other 999"), "{}", ended.stdout);
        let _ = std::fs::remove_file(list);
    }
}

/// Rack whose link settings make every fault fatal: a run stalls when something is lost for longer than its watchdog.
#[test]
fn a_failing_script_is_minimised_and_written_with_its_command() {
    let rack = support::rack_file(
        "name: impatient\nshape: {ring: {nodes: 4}}\nwatchdog: 1ms\njob: {collective: {algorithm: ring, bytes: 4KiB, \
         repetitions: 3, warm_up: 1}}\n",
    );
    let export = scratch("found");
    let rack = rack.to_str().expect("a plain path");
    let export = export.to_str().expect("a plain path");
    let ended =
        rackloom(&["campaign", rack, "--runs", "40", "--failures-max", "1", "--export", export]).finish();
    assert_eq!(ended.code, Some(1), "{}\n{}", ended.stdout, ended.stderr);
    let command = ended.stdout.lines().find_map(|line| line.trim().strip_prefix("repeat it:     rackloom "));
    let command = command.unwrap_or_else(|| panic!("no command in\n{}", ended.stdout));
    let again = rackloom(&command.split_whitespace().collect::<Vec<_>>()).finish();
    assert_ne!(again.code, Some(0), "{command} passes\n{}", again.stdout);
    let file = command.rsplit(' ').next().expect("the script");
    let text = std::fs::read_to_string(file).expect("it was written");
    assert!(text.matches("what:").count() <= 3, "it is not small:\n{text}");
    let _ = std::fs::remove_dir_all(export);
}
