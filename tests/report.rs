//! JSON report: its statements about its own origin, and its schema.

mod support;

use rustix::system::uname;
use serde_json::Value;
use support::schema::{mistakes, schema, undescribed};
use support::{Ended, rackloom, root, run, sim, topology};

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
fn a_report_names_host_time_and_command() {
    let ring = topology("ring-4.yaml");
    check_meta(&run(&ring).with(&OPTIONS).with(&["--seed", "3"]).finish().passed(), "run");
    check_meta(&sim(&ring).with(&OPTIONS).with(&["--seed", "3"]).finish().passed(), "sim");
}

#[test]
fn every_field_of_every_result_is_described() {
    for (name, title) in [
        ("report", "rackloom report"),
        ("campaign", "rackloom campaign"),
        ("exhaustive", "rackloom campaign --exhaustive"),
        ("recommend", "rackloom recommend"),
    ] {
        let schema = schema(name);
        assert_eq!(schema["title"], title);
        assert_eq!(undescribed(&schema, name), [""; 0]);
    }
}

#[test]
fn real_reports_match_the_schema() {
    let check = |what: &str, ended: &Ended, verdict: &str| {
        let report = ended.report();
        assert_eq!(report["verdict"], verdict, "{what}\n{}\n{}", ended.stdout, ended.stderr);
        assert_eq!(mistakes("report", &report), [""; 0], "{what}");
        report
    };
    let ring = topology("ring-4.yaml");
    let script = |name: &str| root().join("scripts/faults").join(name).display().to_string();
    check("run", &run(&ring).with(&OPTIONS).finish(), "pass");
    check("sim", &sim(&ring).with(&OPTIONS).finish(), "pass");
    check("sim of traffic", &sim(&ring).with(&["--pattern", "incast"]).finish(), "pass");
    let lossy = ["--loss", "5%", "--llr", "on", "--corrupt", "1%", "--duplicate", "1%"];
    check("sim under loss", &sim(&ring).with(&lossy).finish(), "pass");
    let eight = topology("ring-8.yaml");
    let script = script("cable-pulled.yaml");
    let repeated = ["--bytes", "64KiB", "--repetitions", "20", "--faults", &script];
    let pulled = |rackloom: support::Rackloom| rackloom.with(&OPTIONS[2..]).with(&repeated).finish();
    let report = check("sim with faults", &pulled(sim(&eight)), "pass");
    assert_eq!(report["faults"].as_array().map(Vec::len), Some(1), "{}", report["faults"]);
    check("run with faults", &pulled(run(&eight)), "pass");
    let too_slow =
        support::rack_file("name: too-slow\nshape: {ring: {nodes: 4}}\nexpect: {elapsed_max: 1us}\n");
    check("a failing sim", &sim(&too_slow).finish(), "fail");
    check("a failing run", &run(&too_slow).finish(), "fail");
}

/// Runs the command with an address space in which no unbounded file fits.
fn with_bounded_memory(arguments: &[&str]) -> std::process::Output {
    const ADDRESS_SPACE_KIB: u64 = 4 << 20;
    std::process::Command::new("sh")
        .args(["-c", &format!("ulimit -v {ADDRESS_SPACE_KIB}; exec \"$@\""), "sh"])
        .arg(env!("CARGO_BIN_EXE_rackloom"))
        .args(arguments)
        .output()
        .expect("a shell")
}

#[test]
fn a_report_without_an_end_is_refused() {
    let ring = topology("ring-4.yaml");
    let ring = ring.to_str().expect("a plain path");
    let large = support::scratch("large.json");
    std::fs::File::create(&large).and_then(|file| file.set_len(3 << 30)).expect("a file without blocks");
    let large = large.to_str().expect("a plain path");
    for (arguments, size) in [
        (&["report", "/dev/zero"][..], "more than 512 MiB"),
        (&["report", large], "3.00 GiB"),
        (&["diff", large, large], "3.00 GiB"),
        (&["graph", ring, "--report", large], "3.00 GiB"),
    ] {
        let ended = with_bounded_memory(arguments);
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {stderr}");
        let part = format!("the file has {size}, and a report has 512 MiB at most");
        assert!(stderr.contains(&part) && stderr.contains("hint:"), "{arguments:?}: {stderr}");
    }
}

/// `/dev/full` behaves as a file on a full disk.
#[test]
fn a_log_that_cannot_be_written_is_reported_once_and_the_run_continues() {
    let logs = support::scratch("full");
    std::fs::create_dir(&logs).expect("the scratch folder can be written");
    for name in ["n1", "n2"] {
        std::os::unix::fs::symlink("/dev/full", logs.join(format!("{name}.log"))).expect("a link");
    }
    let options = ["--collective", "barrier", "-v", "--log-dir", logs.to_str().expect("a plain path")];
    let ended = run(&topology("ring-4.yaml")).with(&options).finish();
    let report = ended.passed();
    let notes: Vec<_> = report["notes"].as_array().expect("notes").iter().filter_map(Value::as_str).collect();
    let of_logs: Vec<_> = notes.iter().filter(|note| note.starts_with("cannot write the log of")).collect();
    assert_eq!(of_logs.len(), 1, "{notes:?}");
    assert!(of_logs[0].starts_with("cannot write the log of n1, n2: No space left on device"), "{notes:?}");
    assert_eq!(ended.stderr.matches("cannot write the log of").count(), 1, "{}", ended.stderr);
    let whole = std::fs::read_to_string(logs.join("n0.log")).expect("a log");
    assert!(whole.contains("init -> up"), "{whole}");
}

const COULD_NOT_START: Option<i32> = Some(3);

/// Checks that nothing is started if the files that the user requests cannot be made.
#[test]
fn a_log_that_cannot_be_made_is_an_error_with_its_path() {
    let session = support::scratch("session");
    let blocked = support::scratch("blocked");
    std::fs::create_dir_all(&session).expect("the scratch folder can be written");
    std::fs::create_dir_all(blocked.join("n1.log")).expect("the scratch folder can be written");
    let blocked = blocked.to_str().expect("a plain path");
    let cases = [
        ("/dev/full/logs", "cannot make the directory of logs: Not a directory", "/dev/full/logs"),
        (blocked, "cannot make the log of n1: Is a directory", "n1.log"),
    ];
    let file = topology("ring-4.yaml");
    let file = file.to_str().expect("a plain path");
    for (directory, what, part) in cases {
        for command in ["run", "up"] {
            let started = support::rackloom(&[command, file, "--log-dir", directory]);
            let ended = started.in_run_directory(&session).finish();
            let stderr = &ended.stderr;
            assert_eq!(ended.code, COULD_NOT_START, "{command} {directory}: {}\n{stderr}", ended.stdout);
            assert!(
                stderr.contains(what) && stderr.contains(part) && stderr.contains("hint:"),
                "{command}: {stderr}"
            );
        }
    }
    let status = support::rackloom(&["status"]).in_run_directory(&session).finish();
    assert_eq!(status.stdout, "no rack is up\n");
    std::fs::remove_dir_all(&session).expect("it was made above");
}

#[test]
fn logs_in_a_directory_without_permission_are_an_error() {
    use std::os::unix::fs::PermissionsExt;
    let closed = std::env::temp_dir().join(format!("rackloom-closed-{}", std::process::id()));
    std::fs::create_dir_all(&closed).expect("temporary files can be written");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).expect("the folder exists");
    let rack = "name: closed\nshape: {ring: {nodes: 2}}\njob: none\n";
    let within = closed.join("logs");
    for (directory, what) in
        [(&closed, "cannot make the log of n0"), (&within, "cannot make the directory of logs")]
    {
        let options = ["--log-dir", directory.to_str().expect("a plain path")];
        let ended = support::stages::run_without_rights(rack).with(&options).finish();
        assert_eq!(ended.code, COULD_NOT_START, "{}", ended.stderr);
        assert!(ended.stderr.contains(&format!("{what}: Permission denied")), "{}", ended.stderr);
    }
    std::fs::remove_dir(&closed).expect("nothing was made in it");
}

#[test]
fn a_full_device_is_named_with_a_remedy() {
    let ring = topology("ring-4.yaml");
    let ring = ring.to_str().expect("a plain path");
    for arguments in [
        &["sim", ring, "--json", "/dev/full"][..],
        &["sim", ring, "--html", "/dev/full"],
        &["sim", ring, "--series", "/dev/full"],
        &["sim", ring, "--perfetto", "/dev/full"],
        &["sim", ring, "--junit", "/dev/full"],
        &["graph", ring, "-o", "/dev/full"],
        &["workload", "generate", "training", "-o", "/dev/full"],
    ] {
        let ended = rackloom(arguments).finish();
        assert_eq!(ended.code, Some(3), "{arguments:?}: {}", ended.stderr);
        for part in
            ["error: cannot write", "\n  where: /dev/full\n", "\n  hint:  the device is full: free space"]
        {
            assert!(ended.stderr.contains(part), "{arguments:?}: no {part} in {}", ended.stderr);
        }
    }
    let printed = std::process::Command::new(env!("CARGO_BIN_EXE_rackloom"))
        .args(["check", ring])
        .stdout(std::fs::File::create("/dev/full").expect("a full device"))
        .output()
        .expect("the binary starts");
    let stderr = String::from_utf8_lossy(&printed.stderr);
    assert_eq!(printed.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("cannot print") && stderr.contains("hint:  the device is full"), "{stderr}");
}
