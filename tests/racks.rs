//! Every rack that comes with the project does its job, as processes and in virtual time.
//!
//! The folder is listed, so a new file is covered without being named anywhere; its own job is what runs, so a rack that ships
//! with a job too large to try at once does not pass either.

mod support;

use std::path::PathBuf;

use support::{Ended, rackloom, root, run, sim};

fn shipped() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("topologies")).expect("the folder is there");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    assert!(files.len() >= 8, "racks are missing: {files:?}");
    files
}

/// It passed, and something was carried and found right.
fn did_something(ended: &Ended, what: &str) -> usize {
    let report = ended.passed();
    assert!(report["verified_bytes"].as_u64() > Some(0), "{what}: nothing was verified");
    let links = report["links"].as_array().expect("links");
    let idle: Vec<_> = links.iter().filter(|link| link["frames"] == 0).map(|link| &link["name"]).collect();
    assert!(idle.is_empty(), "{what}: {idle:?} carried nothing, not even heartbeats");
    report["nodes"].as_array().expect("nodes").len()
}

#[test]
fn every_shipped_rack_does_its_job_on_both_engines() {
    for file in shipped() {
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        let checked = rackloom(&["check", file.to_str().expect("a plain path")]).finish();
        assert_eq!(checked.code, Some(0), "{name}: {}", checked.stderr);
        let processes = did_something(&run(&file).finish(), &format!("run {name}"));
        let modelled = did_something(&sim(&file).finish(), &format!("sim {name}"));
        assert_eq!(processes, modelled, "{name}: both engines have the same members");
    }
}
