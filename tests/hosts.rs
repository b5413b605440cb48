//! A rack of two hosts: two supervisors, each in a network namespace of its own, which share only one link.

mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rackloom::hosts::MessageSocket;
use rackloom::namespaces::switch_off;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use support::machines::{
    COULD_NOT_START, Host, Machine, NODE_LOST, STALLED, TIMEOUT, command, in_namespaces,
    joined_across_a_bridge_of, joined_by, machines, network, on, run,
};
use support::{monotonic_ns, scratch, topology, within};

/// Time for a report to cross two processes on a machine whose processors are all busy.
const DETECTION_NS_MAX: u64 = 2_000_000_000;

/// Returns the states of all members, by name.
fn states(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let nodes = report["nodes"].as_array().expect("a list").iter();
    nodes.map(|node| (text(&node["name"]), text(&node["state"]))).collect()
}

/// Checks that both hosts do the file's job. Owners check every byte, on their hosts.
fn both_pass(more: &[&str]) {
    let [a, b] = machines();
    let file = topology("two-hosts.yaml");
    let hosts = [run(&a, &file, "A", more), run(&b, &file, "B", more)];
    for (index, host) in hosts.map(Host::finish).into_iter().enumerate() {
        assert_eq!(host.code, Some(0), "host {index}: {}", host.output);
        let report = host.report();
        assert_eq!(report["verdict"], "pass");
        assert!(report["verified_bytes"].as_u64() > Some(0), "{report}");
        for (member, (name, state)) in states(&report).into_iter().enumerate() {
            let expected = if member / 2 == index { "finished" } else { "elsewhere" };
            assert_eq!(state, expected, "{name} on host {index}");
        }
        assert!(host.output.contains("3 links up"), "two links leave each host: {}", host.output);
        let links = report["links"].as_array().expect("a list");
        let frames = |name: &str| {
            let link = links.iter().find(|link| link["name"] == name).expect("a link of the ring");
            link["frames"].as_u64().expect("a count")
        };
        for crossing in [["n1->n2", "n3->n0"], ["n2->n1", "n0->n3"]].concat() {
            assert!(frames(crossing) > 100, "{crossing} on host {index}: {report}");
        }
    }
}

#[test]
fn the_litmus_passes_across_two_hosts() {
    in_namespaces("the_litmus_passes_across_two_hosts", || both_pass(&[]));
}

#[test]
fn an_all_reduce_passes_across_two_hosts() {
    let job = ["--job", "collective", "--collective", "all-reduce", "--bytes", "256KiB"];
    in_namespaces("an_all_reduce_passes_across_two_hosts", || both_pass(&job));
}

/// Each host's supervisor ends the faults of its own links and checks that its own members come to rest.
/// Links that leave the host have their other end elsewhere.
#[test]
fn after_faults_on_both_hosts_each_host_comes_to_rest() {
    in_namespaces("after_faults_on_both_hosts_each_host_comes_to_rest", || {
        let [a, b] = machines();
        let file = topology("two-hosts.yaml");
        let faults = support::rack_file(
            "name: on-both\nevents:\n\
             - {what: down, where: n0--n1, when: {node: n0, run: 2}}\n\
             - {what: loss, where: n2--n3, rate: 10%, when: {node: n3, run: 2}}\n\
             - {what: loss, where: n1--n2, rate: 10%, when: {node: n1, run: 2}}\n",
        );
        let faults = faults.to_str().expect("a plain path");
        let job = ["--collective", "all-reduce", "--bytes", "64KiB", "--faults", faults];
        let hosts = [run(&a, &file, "A", &job), run(&b, &file, "B", &job)];
        for host in hosts.map(Host::finish) {
            assert_eq!(host.code, Some(0), "{}", host.output);
            let report = host.report();
            let counts = |oracle: &str| {
                let tally = &report["oracles"][oracle];
                (tally["looked"].as_u64().unwrap_or(0), tally["broken"].as_u64().unwrap_or(0))
            };
            assert_eq!(counts("progress"), (2, 0), "both members read from each other: {report}");
            // The cut link may not be up yet. Then it is not examined.
            let (looked, broken) = counts("credits");
            assert!(broken == 0 && looked <= 2, "one link has both ends here: {report}");
        }
    });
}

/// ForeignSender on the segment with a neighbour's address: sends as a supervisor, and repeats recorded messages of supervisors
/// with a flipped bit, until this is dropped.
struct ForeignSender {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ForeignSender {
    fn on(machine: &Machine) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, network) = (Arc::clone(&is_over), network(machine));
        let send_foreign_frames = move || {
            use std::os::fd::AsFd;
            const N1: [u8; 6] = [0x02, 0x52, 0x4c, 0, 0, 1];
            const N2: [u8; 6] = [0x02, 0x52, 0x4c, 0, 0, 2];
            const SUPERVISORS: [u8; 6] = [0x03, 0x52, 0x4c, 0xff, 0xff, 0xff];
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
                .expect("the link exists");
            let socket = MessageSocket::open("eth1", 0x88b5, SUPERVISORS).expect("eth1 is there");
            let frame = |target: [u8; 6], body: u8| [&target[..], &N2, &[0x88, 0xb5], &[body; 100]].concat();
            let (mut buffer, mut round) = ([0; 9014], 0);
            while !over.load(Ordering::Relaxed) {
                if let Some(message) = socket.receive(&mut buffer) {
                    altered(message, round).for_each(|altered| drop(socket.send(&altered)));
                    round += 1;
                }
                for frame in
                    [frame(N1, 0xff), frame(SUPERVISORS, 0), frame(SUPERVISORS, b'R'), frame([0xff; 6], 1)]
                {
                    // Frames that the segment cannot take are lost, which does not matter for a foreign sender.
                    let _ = socket.send(&frame);
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        };
        Self { is_over, thread: Some(std::thread::spawn(send_foreign_frames)) }
    }
}

/// Returns a supervisor's message with a flipped bit in the incarnation of host B's members, each bit of a byte in rotation. A host that
/// accepted a later incarnation would refuse all further messages of B.
fn altered(message: &[u8], round: usize) -> impl Iterator<Item = Vec<u8>> {
    const INCARNATION_OF_B: std::ops::Range<usize> = 46..54;
    let byte = INCARNATION_OF_B.start + round % INCARNATION_OF_B.len();
    (0..8).map(move |bit| {
        let mut copy = message.to_vec();
        copy[byte] ^= 1 << bit;
        copy
    })
}

impl Drop for ForeignSender {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[test]
fn an_unknown_sender_on_the_segment_is_counted_and_has_no_effect() {
    in_namespaces("an_unknown_sender_on_the_segment_is_counted_and_has_no_effect", || {
        let [a, b] = machines();
        let file = topology("two-hosts.yaml");
        let foreign_sender = ForeignSender::on(&b);
        let hosts = [run(&a, &file, "A", &[]), run(&b, &file, "B", &[])].map(Host::finish);
        drop(foreign_sender);
        for host in &hosts {
            assert_eq!(host.code, Some(0), "{}", host.output);
        }
        let report = hosts[0].report();
        let links = report["links"].as_array().expect("a list");
        let dropped = |name: &str| {
            let link = links.iter().find(|link| link["name"] == name).expect("a link of the ring");
            link["dropped"]["bad-magic"].as_u64().unwrap_or(0)
        };
        assert!(
            dropped("n2->n1") > 0,
            "frames with n2's address count at n2's link and are refused: {report}"
        );
        assert_eq!(dropped("n3->n0"), 0, "no other link gets those frames");
    });
}

#[test]
fn a_host_with_another_file_gets_an_error() {
    in_namespaces("a_host_with_another_file_gets_an_error", || {
        let [a, b] = machines();
        let file = topology("two-hosts.yaml");
        let other = scratch("other.yaml");
        let text = std::fs::read_to_string(&file).expect("it ships");
        std::fs::write(&other, text + "ring_bytes: 2MiB\n").expect("the scratch folder is writable");
        let hosts = [run(&a, &file, "A", &[]), run(&b, &other, "B", &[])].map(Host::finish);
        // The message depends on the other host's action.
        let both = hosts
            .iter()
            .map(|host| host.output.as_str())
            .collect::<Vec<_>>()
            .join("\n---- the other host:\n");
        for host in &hosts {
            assert_eq!(host.code, Some(COULD_NOT_START), "{both}");
            assert!(host.output.contains("runs a rack of this name with another configuration"), "{both}");
            assert!(host.output.contains("hint: "), "{both}");
        }
    });
}

/// Writes a workload in which each of four ranks computes for this time before an all-reduce.
fn workload(name: &str, compute: &str) -> String {
    let path = scratch(name);
    let text = format!(
        "workload steps\nranks 4\nphase step\ngroup 0..3\nrank 0..3\nin step\ncompute {compute}\nall-reduce group 0 64KiB after -1\n"
    );
    std::fs::write(&path, text).expect("the scratch folder is writable");
    path.to_str().expect("a path in UTF-8").to_owned()
}

#[test]
fn a_workload_passes_across_two_hosts() {
    in_namespaces("a_workload_passes_across_two_hosts", || {
        let [a, b] = machines();
        let file = topology("two-hosts.yaml");
        let options = ["--workload", &workload("equal.workload", "1us")];
        for host in [run(&a, &file, "A", &options), run(&b, &file, "B", &options)].map(Host::finish) {
            assert_eq!(host.code, Some(0), "{}", host.output);
            assert_eq!(host.report()["verdict"], "pass");
        }
    });
}

#[test]
fn hosts_with_other_workloads_or_algorithms_get_errors() {
    in_namespaces("hosts_with_other_workloads_or_algorithms_get_errors", || {
        let [a, b] = machines();
        let file = topology("two-hosts.yaml");
        let (first, second) = (workload("first.workload", "1us"), workload("second.workload", "2us"));
        let of_a = ["--workload", &first, "--algorithm", "ring"];
        for of_b in [
            ["--workload", &second, "--algorithm", "ring"],
            ["--workload", &first, "--algorithm", "two-shot"],
        ] {
            for host in [run(&a, &file, "A", &of_a), run(&b, &file, "B", &of_b)].map(Host::finish) {
                assert_eq!(host.code, Some(COULD_NOT_START), "{}", host.output);
                assert!(host.output.contains("with another configuration"), "{}", host.output);
            }
        }
    });
}

/// Both interfaces carry the rack's frames, and the segment between them loses the long ones. Links come up
/// in this case as well.
#[test]
fn a_segment_that_loses_long_frames_is_reported() {
    in_namespaces("a_segment_that_loses_long_frames_is_reported", || {
        let [a, b] = joined_across_a_bridge_of(1500);
        let file = topology("two-hosts.yaml");
        for host in [run(&a, &file, "A", &[]), run(&b, &file, "B", &[])].map(Host::finish) {
            assert_eq!(host.code, Some(COULD_NOT_START), "{}", host.output);
            assert!(host.output.contains("arrive, and those of 4240 bytes"), "{}", host.output);
            assert!(host.output.contains("raise the MTU of all switches"), "{}", host.output);
        }
        let [a, b] = joined_across_a_bridge_of(4226);
        for host in [run(&a, &file, "A", &[]), run(&b, &file, "B", &[])].map(Host::finish) {
            assert_eq!(host.code, Some(0), "{}", host.output);
        }
    });
}

#[test]
fn the_death_of_a_host_is_detected_by_the_other() {
    in_namespaces("the_death_of_a_host_is_detected_by_the_other", || {
        let [a, b] = machines();
        let file = topology("two-hosts.yaml");
        let job = [
            "--job",
            "collective",
            "--collective",
            "all-reduce",
            "--bytes",
            "1MiB",
            "--repetitions",
            "100000",
        ];
        let (first, second) = (run(&a, &file, "A", &job), run(&b, &file, "B", &job));
        first.is_up();
        second.is_up();
        second.kill();
        let ended = first.finish();
        assert_eq!(ended.code, Some(NODE_LOST), "{}", ended.output);
        let failures = ended.report()["failures"].to_string();
        // The supervisor of the second host may have ended before its first message.
        let host = ["host B on eth1 sends no messages any more", "host B on eth1 has sent no message"];
        assert!(host.iter().any(|part| failures.contains(part)), "{failures}");
        for part in ["n0: lost nodes [n2, n3]", "n1: lost nodes [n2, n3]"] {
            assert!(failures.contains(part), "no {part:?} in {failures}");
        }
    });
}

/// Heartbeats are too slow here to detect anything.
#[test]
fn a_cut_link_between_hosts_is_detected_by_its_carrier() {
    in_namespaces("a_cut_link_between_hosts_is_detected_by_its_carrier", || {
        let [a, b] = joined_by(&["eth1", "eth2"]);
        let file = scratch("rack.yaml");
        let text = "name: two-cables\nshape: {ring: {nodes: 4}}\nwire: packet\n\
                    timers: {heartbeat_interval: 20s}\n\
                    hosts:\n  A: {nodes: [n0, n1], interface: eth1, interfaces: {n3--n0: eth2}}\n  \
                    B: {nodes: [n2, n3], interface: eth1, interfaces: {n3--n0: eth2}}\n\
                    job: {litmus: {bytes_max: 64KiB, rounds: 40}}\n";
        std::fs::write(&file, text).expect("the scratch folder is writable");
        let hosts = [run(&a, &file, "A", &[]), run(&b, &file, "B", &[])];
        hosts.iter().for_each(Host::is_up);
        let pids = std::fs::read_to_string(&hosts[0].pids).expect("it is up");
        let pids: Value = serde_json::from_str(&pids).expect("JSON");
        let origin_ns = pids["origin_monotonic_ns"].as_u64().expect("an origin");
        let cut_at_ns = monotonic_ns();
        // The peer's end: this host's interface stays switched on, and loses its carrier.
        on(&b, || switch_off("eth1").expect("it is there"));
        let cut_after_ns = monotonic_ns();
        let ended = hosts.map(Host::finish);
        for host in &ended {
            assert_eq!(host.code, Some(0), "the ring's other direction is used: {}", host.output);
        }
        let report = ended[0].report();
        let events = report["events"].as_array().expect("events");
        let detects = events.iter().find(|event| {
            let fields = &event["fields"];
            event["member"] == "n1" && fields["port"] == "port0" && fields["cause"] == "carrier"
        });
        let detects = detects.unwrap_or_else(|| panic!("n1 felt nothing: {events:?}"));
        let at_ns = origin_ns + detects["at_ns"].as_u64().expect("a time");
        assert!(at_ns >= cut_at_ns, "it was felt before it was done");
        assert!(at_ns <= cut_after_ns + DETECTION_NS_MAX, "it took {} ns", at_ns - cut_after_ns);
    });
}

#[test]
fn a_host_that_waits_for_another_names_it() {
    in_namespaces("a_host_that_waits_for_another_names_it", || {
        let [a, _b] = machines();
        let file = scratch("rack.yaml");
        let text = std::fs::read_to_string(topology("two-hosts.yaml")).expect("it ships");
        std::fs::write(&file, text + "watchdog: 1s\n").expect("the scratch folder is writable");
        let ended = run(&a, &file, "A", &[]).finish();
        assert_eq!(ended.code, Some(STALLED), "{}", ended.output);
        let lines = [
            "host B on eth1 has sent no message",
            "n1 waits: host B's n2 has sent no frame on eth1",
            "n0 waits: host B's n3 has sent no frame on eth1",
        ];
        for line in lines {
            assert!(ended.output.contains(line), "no {line:?} in {}", ended.output);
        }
    });
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    in_namespaces("an_interface_that_is_not_there_is_named", || {
        let [a, _b] = machines();
        let file = scratch("rack.yaml");
        let text = std::fs::read_to_string(topology("two-hosts.yaml")).expect("it ships");
        std::fs::write(&file, text.replace("eth1", "eth9")).expect("the scratch folder is writable");
        let ended = run(&a, &file, "A", &[]).finish();
        assert_eq!(ended.code, Some(COULD_NOT_START), "{}", ended.output);
        assert!(ended.output.contains("this machine has no interface eth9"), "{}", ended.output);
        assert!(ended.output.contains("hint: "), "{}", ended.output);
    });
}

/// Runs one command on a machine to its end and returns its output.
fn command_output(machine: &Machine, session: &Path, arguments: &[&str]) -> String {
    let printed = scratch("printed.txt");
    let mut command = command(machine, &printed);
    let mut child = command.env("XDG_RUNTIME_DIR", session).args(arguments).spawn().expect("it starts");
    let status = within(TIMEOUT, arguments[0], || child.try_wait().expect("a child"));
    let output = std::fs::read_to_string(&printed).expect("it was written");
    assert_eq!(status.code(), Some(0), "{arguments:?}: {output}");
    output
}

#[test]
fn a_rack_of_two_hosts_stays_until_each_is_taken_down() {
    in_namespaces("a_rack_of_two_hosts_stays_until_each_is_taken_down", || {
        let machines = machines();
        let file = topology("two-hosts.yaml");
        let file = file.to_str().expect("a plain path");
        let sessions = ["A", "B"].map(|host| {
            use std::os::unix::fs::PermissionsExt;
            let session = scratch(host);
            std::fs::create_dir_all(&session).expect("the scratch folder is writable");
            std::fs::set_permissions(&session, PermissionsExt::from_mode(0o700)).expect("it exists");
            session
        });
        // `up` returns once all links are up, for which both hosts must be present.
        std::thread::scope(|scope| {
            for (host, (machine, session)) in ["A", "B"].iter().zip(machines.iter().zip(&sessions)) {
                scope.spawn(move || command_output(machine, session, &["up", file, "--host", host]));
            }
        });
        let status = command_output(&machines[0], &sessions[0], &["status"]);
        assert!(status.contains("3 of 3 links up"), "{status}");
        for (member, state) in [("n0", " up "), ("n1", " up "), ("n2", "elsewhere"), ("n3", "elsewhere")] {
            let line = status.lines().find(|line| line.starts_with(member)).expect("a line per member");
            assert!(line.contains(state), "{line}");
        }
        for (machine, session) in machines.iter().zip(&sessions) {
            assert!(command_output(machine, session, &["down"]).contains("rack two-hosts is down"));
        }
    });
}
