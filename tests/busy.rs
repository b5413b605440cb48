//! A busy host is not a dead node: members without a processor are not reported as dead, and stopped members are.
//!
//! The load is made here: threads that spin, and members of the lowest priority beside them. The kernel reports the time for which a
//! member waited, so a test that starved no member fails instead of passing.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, available_parallelism};
use std::time::Duration;

use rustix::process::{Pid, Signal, setpriority_process};
use support::{Members, monotonic_ns, rack_file, run, send, within};

const INTERVAL_NS: u64 = 50_000_000;
const MISSES: u64 = 4;
const DETECTION_NS: u64 = INTERVAL_NS * MISSES;
const TIMEOUT: Duration = Duration::from_secs(60);
/// Spinning threads for each processor.
const SPINNERS_PER_CPU: usize = 8;
const LOWEST_PRIORITY: i32 = 19;

/// Threads that keep every processor busy until this is dropped.
struct Load {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    fn begin() -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let spin = |_| {
            let ends = Arc::clone(&ends);
            std::thread::spawn(move || {
                while !ends.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let count = SPINNERS_PER_CPU * available_parallelism().map_or(1, usize::from);
        Self { threads: (0..count).map(spin).collect(), ends }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().expect("a spinner does not panic"));
    }
}

fn rack(more: &str) -> String {
    format!(
        "name: starved\nshape: {{ring: {{nodes: 4}}}}\n\
         timers: {{heartbeat_interval: 50ms, heartbeat_miss_max: {MISSES}}}\n{more}"
    )
}

fn starve(member: Pid) {
    setpriority_process(Some(member), LOWEST_PRIORITY).expect("a process may lower its children's priority");
}

/// Returns the time for which the threads of a process have waited for a processor.
fn waited_ns(member: Pid) -> u64 {
    let tasks =
        std::fs::read_dir(format!("/proc/{}/task", member.as_raw_nonzero())).expect("the member runs");
    let waited = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().nth(1)?.parse().ok()
    });
    waited.max().unwrap_or(0)
}

/// Waits until a member has waited on a run queue for this long.
fn has_waited(members: &Members, name: &str, long_ns: u64) {
    let (member, before_ns) = (members.pid(name), waited_ns(members.pid(name)));
    within(TIMEOUT, "a member of the lowest priority waits for a processor", || {
        (waited_ns(member) >= before_ns + long_ns).then_some(())
    });
}

#[test]
fn a_member_without_a_processor_is_not_reported_dead() {
    let job = "job: {collective: {collective: all-reduce, bytes: 64KiB, repetitions: 2000, warm_up: 0}}\n";
    let mut rack = run(&rack_file(&rack(job))).start();
    let members = rack.members();
    let load = Load::begin();
    starve(members.pid("n1"));
    has_waited(&members, "n1", 10 * DETECTION_NS);
    drop(load);
    let report = rack.finish().passed();
    let nodes = report["nodes"].as_array().expect("nodes");
    let seen_ns = nodes.iter().filter_map(|node| node["shortage"]["neighbour_waited_max_ns"].as_u64()).max();
    assert!(seen_ns.unwrap_or(0) > 0, "no neighbour has measured the wait: {report}");
}

#[test]
fn a_rack_without_processors_ends_as_starved_with_a_hint() {
    let job = "watchdog: 400ms\njob: {litmus: {bytes_max: 64KiB, rounds: 100000}}\n";
    let mut rack = run(&rack_file(&rack(job))).start();
    let members = rack.members();
    let load = Load::begin();
    ["n0", "n1", "n2", "n3"].into_iter().for_each(|name| starve(members.pid(name)));
    let ended = rack.finish();
    drop(load);
    assert_eq!(ended.code, Some(8), "{}\n{}", ended.stdout, ended.stderr);
    let report = ended.report();
    assert_eq!(report["verdict"], "starved");
    let mut notes = report["notes"].as_array().expect("notes").iter().filter_map(|note| note.as_str());
    let note = notes.rfind(|note| note.contains("the host had no processor")).expect("a reason");
    assert!(note.contains("hint: use fewer nodes") && note.contains("waited"), "{note}");
}

#[test]
fn a_stopped_member_is_detected_on_a_busy_host() {
    let job = "job: {litmus: {bytes_max: 64KiB, rounds: 100000}}\n";
    let mut rack = run(&rack_file(&rack(job))).start();
    let members = rack.members();
    let load = Load::begin();
    let stopped_at_ns = monotonic_ns();
    send(members.pid("n1"), Signal::STOP);
    let ended = rack.finish();
    drop(load);
    assert_eq!(ended.code, Some(4), "{}\n{}", ended.stdout, ended.stderr);
    let report = ended.report();
    let late_max_ns = report["nodes"].as_array().expect("nodes").iter();
    let late_max_ns = late_max_ns.filter_map(|node| node["timer_late_max_ns"].as_u64()).max().unwrap_or(0);
    let lost = report["events"].as_array().expect("events").iter();
    let mut lost = lost.filter(|event| event["kind"] == "node-lost" && event["fields"]["node"] == "n1");
    let at_ns = lost.next().and_then(|event| event["at_ns"].as_u64()).expect("n1 is lost");
    let took_ns = (members.origin_monotonic_ns + at_ns).saturating_sub(stopped_at_ns);
    // A late member waits longer by its delay, may be late again when it judges, and its report may be late on the path.
    let bound_ns = DETECTION_NS + INTERVAL_NS + 3 * late_max_ns;
    assert!(took_ns <= bound_ns, "took {took_ns} ns, with timers {late_max_ns} ns late");
}
