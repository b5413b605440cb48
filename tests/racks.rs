//! Every shipped rack does its job, with processes and in virtual time.
//!
//! The folder is listed, so a new file is covered without an entry anywhere. Its own job runs, so a rack with a
//! job that is too large does not pass.

mod support;

use std::path::PathBuf;

use support::stages::stages;
use support::wires::{has_gpu, has_packet_wire, wires};
use support::{Ended, rack_file, rackloom, root, run, sim};

fn shipped() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("topologies")).expect("the folder is there");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    assert!(files.len() >= 8, "racks are missing: {files:?}");
    files
}

/// Checks that a run passed and verified some bytes.
fn verified_bytes(ended: &Ended, what: &str) -> usize {
    let report = ended.passed();
    assert!(report["verified_bytes"].as_u64() > Some(0), "{what}: nothing was verified");
    let links = report["links"].as_array().expect("links");
    let idle: Vec<_> = links.iter().filter(|link| link["frames"] == 0).map(|link| &link["name"]).collect();
    assert!(idle.is_empty(), "{what}: {idle:?} carried nothing, not even heartbeats");
    report["nodes"].as_array().expect("nodes").len()
}

/// Returns the links of a printed plan: the first columns of its table of links.
fn links_of_plan(plan: &str) -> Vec<&str> {
    let table = plan.lines().skip_while(|line| !line.starts_with("link ")).skip(1);
    let rows = table.take_while(|line| !line.is_empty());
    rows.filter_map(|line| line.split_whitespace().next()).collect()
}

/// Returns the links of a report. Every other row is the direction that the file names.
fn links_of_report(ended: &Ended) -> Vec<String> {
    let report = ended.passed();
    let links = report["links"].as_array().expect("links").iter().step_by(2);
    links.map(|link| link["name"].as_str().expect("a name").replace("->", "--")).collect()
}

#[test]
fn every_shipped_rack_does_its_job_on_both_engines() {
    for file in shipped() {
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).expect("it can be read");
        if text.contains("\nwire: packet") && !has_packet_wire(&format!("every_shipped_rack: {name}")) {
            continue;
        }
        if text.contains("device: 'cuda:") && !has_gpu(&format!("every_shipped_rack: {name}")) {
            verified_bytes(&sim(&file).finish(), &format!("sim {name}"));
            continue;
        }
        let checked = rackloom(&["check", file.to_str().expect("a plain path")]).finish();
        assert_eq!(checked.code, Some(0), "{name}: {}", checked.stderr);
        let ran = run(&file).finish();
        let processes = verified_bytes(&ran, &format!("run {name}"));
        if has_bridges(&text) {
            // Virtual time has no model of it; `tests/bridge.rs` checks the refusal.
            continue;
        }
        let simulated = sim(&file).finish();
        let modelled = verified_bytes(&simulated, &format!("sim {name}"));
        assert_eq!(processes, modelled, "{name}: both engines have the same members");
        let links = links_of_plan(&checked.stdout);
        assert!(!links.is_empty(), "{name}: no table of links in\n{}", checked.stdout);
        assert_eq!(links_of_report(&ran), links, "{name}: a link has one name");
        assert_eq!(links_of_report(&simulated), links, "{name}: a link has one name");
    }
}

/// Returns whether a rack's hub is a bridge of the kernel, which needs real interfaces.
fn has_bridges(text: &str) -> bool {
    text.contains("switch: bridge")
}

#[test]
fn every_shipped_rack_does_its_job_on_every_wire() {
    for stage in stages("every_shipped_rack_does_its_job_on_every_wire") {
        for file in shipped() {
            let text = std::fs::read_to_string(&file).expect("it can be read");
            if stage.wire != "packet" && has_bridges(&text) {
                continue;
            }
            let what = format!("{} on {stage}", file.display());
            if text.contains("device: 'cuda:") && !has_gpu(&what) {
                continue;
            }
            let ran = stage.run(&text).finish();
            verified_bytes(&ran, &what);
            assert_eq!(ran.report()["wire"], stage.wire, "{what}");
        }
    }
}

/// The goal is 1.5 s (row `bring-up-packet` of `rackloom-bench`). The bound here is ten times that, for machines
/// with other work at the same time: it detects links that are made one after another by one program each,
/// and tolerates a slow minute.
#[test]
fn sixty_four_namespaces_come_up_with_their_links() {
    if !has_packet_wire("sixty_four_namespaces_come_up_with_their_links") {
        return;
    }
    let file = rack_file(
        "name: many\nshape: {ring: {nodes: 64}}\nwire: packet\n\
                          job: {litmus: {bytes_max: 4KiB, rounds: 100000}}\n",
    );
    let begun = std::time::Instant::now();
    let mut rack = run(&file).start();
    let members = rack.members();
    let took = begun.elapsed();
    assert_eq!(members.pids.len(), 64);
    drop(rack);
    members.all_gone(std::time::Duration::from_secs(10));
    assert!(took < std::time::Duration::from_secs(15), "it took {took:?}");
}

#[test]
fn every_job_runs_on_every_wire() {
    const SMALL: &[&str] = &["--bytes", "64KiB", "--repetitions", "3", "--warm-up", "1"];
    let file = rack_file("name: jobs\nshape: {star: {nodes: 4, planes: 2}}\n");
    let sweeps = ["latency", "bandwidth"].map(|job| [&["--job", job], SMALL].concat());
    let moving =
        "all-reduce reduce-scatter all-gather broadcast reduce all-to-all gather scatter scan exclusive-scan"
            .split(' ');
    let mut jobs: Vec<_> = moving.map(|name| [&["--collective", name], SMALL].concat()).collect();
    jobs.extend(sweeps);
    jobs.push(vec!["--collective", "barrier"]);
    for wire in wires("every_job_runs_on_every_wire") {
        for job in &jobs {
            let ended = run(&file).with(&["--wire", wire]).with(job).finish();
            let rows = ended.passed()["sweep"].as_array().map_or(0, Vec::len);
            assert!(rows > 0, "{wire} {job:?}: nothing was measured");
        }
    }
}
