//! `rackloom sim --trace`: a trace is played at its times, and an invalid trace is refused.

mod support;

use std::path::PathBuf;

use support::{Ended, rack_file, rackloom, scratch};

const RACK: &str = "name: traced\nshape: {star: {nodes: 4}}\nlink: {rate: 100Gbit/s, delay: 200ns}\n";
const TRACE: &str = "time,source,destination,bytes,kind\n\
                     0ns,n0,n1,4KiB,put\n\
                     20us,n1,n0,64B,store\n\
                     1500,n2,n0,8,fetch-add\n\
                     2us,n3,n0,128,load\n\
                     2us,n3,n1,20000,get\n";

fn played(trace: &str, more: &[&str]) -> (Ended, PathBuf) {
    let (rack, file) = (rack_file(RACK), scratch("trace.csv"));
    std::fs::write(&file, trace).expect("the scratch folder can be written");
    let path = |path: &PathBuf| path.to_str().expect("a plain path").to_owned();
    let (rack, trace) = (path(&rack), path(&file));
    let ended = rackloom(&[&["sim", rack.as_str(), "--trace", trace.as_str(), "--json", "-"], more].concat())
        .finish();
    (ended, file)
}

#[test]
fn a_trace_is_played_at_its_times_and_the_data_is_checked() {
    let (ended, _) = played(TRACE, &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).expect("a report");
    assert_eq!((&report["verdict"], &report["job"]), (&"pass".into(), &"trace".into()));
    assert_eq!((&report["traffic"]["messages"], &report["traffic"]["bytes"]), (&5.into(), &24_296.into()));
    // The put, the store, the load and the get, each compared at its destination.
    assert_eq!(report["verified_bytes"], 4_096 + 64 + 128 + 20_000);
    let completion = report["traffic"]["completion_ns"].as_u64().expect("a time");
    assert!((20_000..22_000).contains(&completion), "the last line is due at 20 us: {completion}");
}

#[test]
fn operations_beyond_the_limit_of_a_node_wait_and_complete() {
    let lines: String = (0..3_000).map(|number| format!("{number},n0,n1,64,store\n")).collect();
    let (ended, _) = played(&format!("time,source,destination,bytes,kind\n{lines}"), &["--loss", "1%"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).expect("a report");
    assert_eq!(report["traffic"]["messages"], 3_000);
}

#[test]
fn bad_lines_are_reported_with_their_positions_and_nothing_runs() {
    let broken = TRACE.replace("n2,n0,8", "n9,n0,8").replace("64B,store", "64KiB,store");
    let (ended, file) = played(&broken, &[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{}", ended.stderr);
    for (position, part) in [("3:12", "1 to 4096 bytes"), ("4:6", "no node `n9`")] {
        assert!(
            ended.stderr.contains(&format!("{}:{position}", file.display())),
            "{position}\n{}",
            ended.stderr
        );
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    }
    assert!(ended.stderr.contains("2 mistakes"), "{}", ended.stderr);
}

#[test]
fn a_missing_or_unsuitable_trace_is_refused() {
    let rack = rack_file(RACK);
    let rack = rack.to_str().expect("a plain path");
    let missing = rackloom(&["sim", rack, "--trace", "/nonexistent/trace.csv"]).finish();
    assert_eq!(missing.code, Some(2), "{}", missing.stderr);
    assert!(missing.stderr.contains("cannot read the trace"), "{}", missing.stderr);
    let (large, _) = played("time,source,destination,bytes,kind\n0ns,n0,n1,16MiB,put\n", &[]);
    assert_eq!(large.code, Some(2), "{}", large.stderr);
    assert!(large.stderr.contains("bytes of memory at each of 4 nodes"), "{}", large.stderr);
    let (two, _) = played(TRACE, &["--job", "litmus"]);
    assert_eq!(two.code, Some(2), "a trace replaces the job: {}", two.stderr);
}
