//! Memory settings of a rack file have an effect that the kernel confirms, or end the start with a reason.
//!
//! Preferences fall back with a note, requirements end the start. The grant is in the report and in `status`,
//! and memory that a job does not free is named. Missing features of the machine are printed as skipped, with
//! the reason.

mod support;

use std::path::{Path, PathBuf};

use serde_json::Value;
use support::wires::not_tried;
use support::{Ended, rack_file, rackloom, run, scratch, topology};

/// Returns a rack of two GPU nodes with these memory settings.
fn duo(memory: &str) -> PathBuf {
    rack_file(&format!(
        "name: duo\nshape: {{full-mesh: {{nodes: 2}}}}\ndefaults: {{memory: {{{memory}}}}}\njob: {{litmus: {{bytes_max: 64KiB}}}}\n"
    ))
}

fn memory<'a>(report: &'a Value, node: &str) -> &'a Value {
    let nodes = report["nodes"].as_array().expect("nodes");
    &nodes.iter().find(|found| found["name"] == node).expect("it is listed")["memory"]
}

fn number(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path} of {value}"))
}

fn skipped(test: &str, reason: &str) {
    not_tried(&format!("{test}: {reason}"));
}

/// Checks that the start ended with code 3 and a message with all these parts.
fn refused(ended: &Ended, parts: &[&str]) {
    assert_eq!(ended.code, Some(3), "{}\n{}", ended.stdout, ended.stderr);
    for part in parts {
        assert!(ended.stderr.contains(part), "{part} is not in\n{}", ended.stderr);
    }
}

/// Standing rack whose job has ended, in its own run directory. It is taken down on drop.
struct Standing {
    session: PathBuf,
    status: Value,
    table: String,
}

impl Standing {
    fn up(file: &Path, lockable_bytes: Option<u64>) -> Result<Self, Ended> {
        let session = scratch("session");
        std::fs::create_dir(&session).expect("the scratch folder can be written");
        let mut command = rackloom(&["up", file.to_str().expect("a plain path"), "--job", "litmus"])
            .in_run_directory(&session);
        if let Some(bytes) = lockable_bytes {
            command = command.with_lockable_memory(bytes);
        }
        let mut standing = Self { session, status: Value::Null, table: String::new() };
        let ended = command.finish();
        if ended.code != Some(0) {
            return Err(ended);
        }
        standing.table = ended.stdout;
        let status = rackloom(&["status", "--json"]).in_run_directory(&standing.session).finish();
        standing.status = serde_json::from_str(&status.stdout).expect("JSON");
        Ok(standing)
    }

    fn member(&self) -> &Value {
        &self.status["racks"][0]["members"][0]
    }

    /// Returns a file of the kernel about the process of the first node.
    fn kernel(&self, file: &str) -> String {
        let pid = number(self.member(), "/pid");
        std::fs::read_to_string(format!("/proc/{pid}/{file}")).expect("a process of this user")
    }

    /// Returns the flags of every region of the first node.
    fn region_flags(&self) -> Vec<String> {
        let text = self.kernel("smaps");
        let regions = text.split("/memfd:rackloom-region").skip(1);
        let flags =
            regions.filter_map(|region| region.lines().find_map(|line| line.strip_prefix("VmFlags:")));
        flags.map(|flags| format!("{flags} ")).collect()
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        let _ = rackloom(&["down"]).in_run_directory(&self.session).finish();
        let _ = std::fs::remove_dir_all(&self.session);
    }
}

fn number_in(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().parse().ok()
}

#[test]
fn plain_memory_is_counted_and_freed_completely() {
    for name in ["ring-4.yaml", "star-4.yaml", "four-servers-of-two.yaml"] {
        let ended = run(&topology(name)).with(&["--job", "litmus"]).finish();
        let report = ended.passed();
        let nodes = report["nodes"].as_array().expect("nodes").iter();
        for memory in nodes.map(|node| &node["memory"]).filter(|memory| !memory.is_null()) {
            let (given, back) = (number(memory, "/allocations"), number(memory, "/frees"));
            assert!(given > 0 && given == back, "{name}: {memory}");
            assert_eq!(number(memory, "/used_bytes/current"), 0, "{name}: {memory}");
            let (used, reserved) =
                (number(memory, "/used_bytes/high"), number(memory, "/reserved_bytes/high"));
            assert!(0 < used && used <= reserved, "{name}: {memory}");
            assert!(used <= number(memory, "/limit_bytes"), "{name}: {memory}");
            assert_eq!(memory.get("leaks"), None, "{name}: {memory}");
        }
        for part in ["leak:", "held in or as", "note: memory"] {
            assert!(!ended.stdout.contains(part), "plain memory is not worth a line\n{}", ended.stdout);
        }
    }
}

#[test]
fn refused_huge_pages_fall_back_with_a_note() {
    let file = duo("huge_pages: true");
    let ended = run(&file).finish();
    let report = ended.passed();
    let memory = memory(&report, "n0");
    let reserved = number(memory, "/reserved_bytes/high");
    let held = number(memory, "/huge_bytes") + number(memory, "/advised_bytes");
    if number_in("/proc/meminfo", "HugePages_Total:").is_some_and(|total| total > 0) {
        skipped("a machine without reserved huge pages", "this one has some");
    } else {
        assert_eq!(number(memory, "/huge_bytes"), 0);
        assert!(memory["ungranted"].to_string().contains("0 of 0 reserved huge pages are free"), "{memory}");
        assert!(ended.stdout.contains("note: memory of n0, n1: huge pages: "), "{}", ended.stdout);
    }
    assert_eq!(held, reserved, "all of it is huge, or advised to be: {memory}");
    assert!(ended.stdout.contains("huge pages"), "{}", ended.stdout);

    let standing = Standing::up(&file, None).unwrap_or_else(|ended| panic!("{}", ended.stderr));
    let flags = standing.region_flags();
    assert!(!flags.is_empty());
    assert!(flags.iter().all(|flags| flags.contains(" hg ") || flags.contains(" ht ")), "{flags:?}");
    assert!(standing.table.contains("memory is"), "{}", standing.table);
    let plain = Standing::up(&duo("bytes: 16MiB"), None).unwrap_or_else(|ended| panic!("{}", ended.stderr));
    let flags = plain.region_flags();
    assert!(flags.iter().all(|flags| !flags.contains(" hg ") && !flags.contains(" lo ")), "{flags:?}");
    assert!(!plain.table.contains("memory is"), "{}", plain.table);
}

#[test]
fn locked_memory_is_locked_or_the_rack_does_not_start() {
    let file = duo("locked: true");
    let limit = ["RLIMIT_MEMLOCK of this process: 65536 bytes", "cannot lock", "hint:", "ulimit -l"];
    refused(&run(&file).with_lockable_memory(65_536).finish(), &limit);
    match Standing::up(&file, Some(65_536)) {
        Err(ended) => refused(&ended, &limit),
        Ok(standing) => panic!("came up\n{}", standing.table),
    }
    // The request of the rack decides, not the limit of the machine.
    let small = ["--job", "latency", "--bytes", "8", "--repetitions", "3", "--warm-up", "0"];
    let ended = run(&file).with(&small).with_lockable_memory(65_536).finish();
    let report = ended.passed();
    for node in ["n0", "n1"] {
        let memory = memory(&report, node);
        assert_eq!(number(memory, "/locked_bytes"), number(memory, "/reserved_bytes/high"), "{memory}");
    }
    assert!(ended.stdout.contains("locked"), "{}", ended.stdout);
    // Without memory to lock, one page is tried.
    refused(&run(&file).with(&["--job", "none"]).with_lockable_memory(0).finish(), &["cannot lock", "hint:"]);
}

#[test]
fn the_kernel_reports_locked_memory_as_locked() {
    match Standing::up(&duo("locked: true"), None) {
        Ok(standing) => {
            let flags = standing.region_flags();
            assert!(!flags.is_empty() && flags.iter().all(|flags| flags.contains(" lo ")), "{flags:?}");
            assert!(standing.table.contains("locked"), "{}", standing.table);
            assert!(number(standing.member(), "/memory/locked_bytes") > 0);
        }
        Err(ended) => {
            refused(&ended, &["RLIMIT_MEMLOCK"]);
            skipped("locking what a litmus needs", ended.stderr.trim());
        }
    }
}

#[test]
fn memory_is_bound_to_an_existing_numa_node_only() {
    if !Path::new("/sys/devices/system/node/node0").exists() {
        return skipped("binding to NUMA node 0", "this machine has none");
    }
    let standing = match Standing::up(&duo("numa_node: 0"), None) {
        Ok(standing) => standing,
        Err(ended) => {
            refused(&ended, &["cannot bind memory to NUMA node 0"]);
            return skipped("binding to NUMA node 0", ended.stderr.trim());
        }
    };
    assert_eq!(standing.member().pointer("/memory/numa_node"), Some(&Value::from(0)));
    assert!(standing.table.contains("NUMA node 0"), "{}", standing.table);
    let maps = standing.kernel("numa_maps");
    let regions: Vec<_> = maps.lines().filter(|line| line.contains("memfd:rackloom-region")).collect();
    assert!(!regions.is_empty() && regions.iter().all(|line| line.contains("bind:0")), "{regions:?}");

    let report = run(&duo("numa_node: 0")).finish().passed();
    assert_eq!(number(memory(&report, "n1"), "/numa_node"), 0);
    let parts = ["cannot bind memory to NUMA node 1000", "NUMA nodes of this machine: 0", "hint:"];
    refused(&run(&duo("numa_node: 1000")).finish(), &parts);
    refused(&run(&duo("numa_node: 1000")).with(&["--job", "none"]).finish(), &parts);
}

/// A peer that is stopped with another node's memory mapped cannot unmap it, and the owner cannot free it.
#[test]
fn memory_that_a_hung_peer_holds_is_named_at_the_end() {
    for device in
        ["16MiB", "{bytes: 16MiB, device: 'fake:5'}", "{bytes: 16MiB, device: 'fake:5', share: pool}"]
    {
        held_memory_is_named_at_the_end(device);
    }
    if support::wires::has_gpu("memory_that_a_hung_peer_holds_is_named_at_the_end") {
        held_memory_is_named_at_the_end("{bytes: 16MiB, device: 'cuda:0', share: pool}");
    }
}

fn held_memory_is_named_at_the_end(device: &str) {
    let file = rack_file(&format!(
        "name: held\nshape: {{full-mesh: {{nodes: 2}}}}\ndefaults: {{server: box, memory: {device}}}\n\
         timers: {{heartbeat_interval: 200ms}}\n"
    ));
    let job = ["--collective", "all-reduce", "--bytes", "64KiB", "--type", "i32", "--algorithm", "ring"];
    let clean = run(&file).with(&job).finish().passed();
    assert_eq!(memory(&clean, "n0").get("leaks"), None);

    let ended = run(&file).with(&job).in_environment("RACKLOOM_STOP_AT", "n1=step").finish();
    assert_eq!(ended.code, Some(4), "{}\n{}", ended.stdout, ended.stderr);
    let report = ended.report();
    let held = memory(&report, "n0");
    let leaks = held["leaks"].as_array().unwrap_or_else(|| panic!("{held}"));
    assert!(!leaks.is_empty());
    for leak in leaks {
        assert_eq!(leak["why"], "still mapped by n1");
        assert!(number(leak, "/bytes") > 0, "{leak}");
        let line = format!("leak: region{} of n0 (", leak["region"]);
        assert!(ended.stdout.contains(&line), "{line}\n{}", ended.stdout);
    }
    let left: u64 = leaks.iter().map(|leak| number(leak, "/bytes")).sum();
    assert_eq!(number(held, "/used_bytes/current"), left, "nothing else is left");
    assert_eq!(number(held, "/allocations") - number(held, "/frees"), leaks.len() as u64);
    if device.contains("pool") {
        assert!(number(held, "/pool/used_bytes/current") >= left, "its pool counts the same: {held}");
    }
}
