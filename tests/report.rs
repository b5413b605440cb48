//! The JSON report: what it says about its own origin.

mod support;

use rustix::system::uname;
use serde_json::Value;
use support::{run, sim, topology};

/// Fields of `meta` that every report has, checked against this machine.
fn check_meta(report: &Value, command: &str) {
    let meta = &report["meta"];
    assert_eq!(meta["rack"], "ring-4");
    let typed = meta["command"].as_str().expect("a command line");
    assert!(typed.starts_with(&format!("rackloom {command} ")), "{typed}");
    assert!(typed.contains(" --loss 1% ") && !typed.contains(env!("CARGO_BIN_EXE_rackloom")), "{typed}");
    assert_eq!((&meta["options"]["loss"], &meta["options"]["job"]), (&"0.01".into(), &"collective".into()));
    assert_eq!(meta["options"]["algorithm"], "ring");
    let date = meta["date"].as_str().expect("a date");
    let shape: String = date.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "0000-00-00T00:00:00Z");
    assert_eq!(meta["host"]["name"], uname().nodename().to_str().expect("UTF-8"));
    assert!(meta["host"]["kernel"].as_str().expect("a kernel").starts_with("Linux "));
    assert!(meta["host"]["processors"].as_u64().expect("a number") > 0);
    assert_eq!(meta["versions"]["rackloom"], env!("CARGO_PKG_VERSION"));
    assert_eq!(meta["versions"]["wire"], 1);
    assert_eq!(meta["commit"], report["manifest"]["commit"]);
}

const OPTIONS: [&str; 6] = ["--loss", "1%", "--collective", "all-reduce", "--algorithm", "ring"];

#[test]
fn a_report_says_where_when_and_by_which_command_it_was_made() {
    let ring = topology("ring-4.yaml");
    check_meta(&run(&ring).with(&OPTIONS).with(&["--seed", "3"]).finish().passed(), "run");
    check_meta(&sim(&ring).with(&OPTIONS).with(&["--seed", "3"]).finish().passed(), "sim");
}
