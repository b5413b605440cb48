//! `rackloom-bench` in scripts: structure, arithmetic, verdicts, exit codes.
//!
//! No test here asserts a speed: the machine is busy with other tests. Its own tests check that a disturbed loop is
//! refused, because they can provoke a disturbance.

use std::io::Write;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Rows with loops of two sides that take milliseconds each.
const ROWS: &str = "store-single,put-4096,round-trip,direct-load-4096";

fn number(value: &Value, field: &str) -> f64 {
    value[field].as_f64().unwrap_or_else(|| panic!("{field} is no number in {value}"))
}

fn takes(side: &Value) -> Vec<f64> {
    let takes = side["takes"].as_array().unwrap_or_else(|| panic!("no takes in {side}"));
    takes.iter().map(|take| take.as_f64().expect("a take is a number")).collect()
}

/// Returns whether two numbers agree to nine digits.
fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() <= other.abs() * 1e-9
}

fn median(mut takes: Vec<f64>) -> f64 {
    takes.sort_by(f64::total_cmp);
    (takes[(takes.len() - 1) / 2] + takes[takes.len() / 2]) / 2.0
}

/// A run of the tool. One at a time: they share few processors.
struct Running {
    child: Child,
    _alone: MutexGuard<'static, ()>,
}

/// Result of a run.
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn start(arguments: &[&str]) -> Running {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new(env!("CARGO_BIN_EXE_rackloom-bench"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running { child: command.spawn().expect("the tool starts"), _alone: alone }
}

impl Running {
    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32).expect("a process")
    }

    fn finish(self) -> Ended {
        let Output { status, stdout, stderr } = self.child.wait_with_output().expect("the tool ends");
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        Ended { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }
}

/// Polls `condition` until it holds.
fn within(timeout: Duration, what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + timeout;
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not happen within {timeout:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Counts a test, or a part of one, as skipped.
fn not_tried(what: &str) {
    let line = format!("SKIPPED (1): {}\n", what.replace('\n', "; "));
    std::io::stderr().write_all(line.as_bytes()).expect("standard error is there");
}

fn calibrated(arguments: &[&str]) -> (Option<i32>, Value) {
    let ended = start(arguments).finish();
    let report = serde_json::from_str(&ended.stdout);
    (ended.code, report.unwrap_or_else(|error| panic!("{error}: {}\n{}", ended.stdout, ended.stderr)))
}

/// Checks the figures of a row that was measured.
fn check_figures(row: &Value, rounds: usize) {
    let (raw, ours) = (takes(&row["raw"]), takes(&row["ours"]));
    assert_eq!((raw.len(), ours.len()), (rounds, rounds), "{row}");
    for (side, taken) in [("raw", &raw), ("ours", &ours)] {
        assert!(taken.iter().all(|take| take.is_finite() && *take > 0.0), "{row}");
        assert!(is_same(number(&row[side], "median"), median(taken.clone())), "{row}");
    }
    let ratio = &row["ratio"];
    assert!(is_same(number(ratio, "median"), median(ours.clone()) / median(raw.clone())), "{row}");
    let each: Vec<f64> = ours.iter().zip(&raw).map(|(ours, raw)| ours / raw).collect();
    assert!(is_same(number(ratio, "min"), each.iter().copied().fold(f64::INFINITY, f64::min)), "{row}");
    assert!(is_same(number(ratio, "max"), each.iter().copied().fold(0.0, f64::max)), "{row}");
}

/// Returns the verdict that follows from the figures of a row, by the rules of `docs/measuring.md`.
fn verdict_of(row: &Value) -> &'static str {
    let (raw, at_least) = (&row["raw"], row["goal"] == "at-least");
    let spread = (number(raw, "max") - number(raw, "min")) / number(raw, "median");
    let share = raw["expected"].as_f64().map(|expected| {
        let share = number(raw, "median") / expected;
        if at_least { share } else { 1.0 / share }
    });
    if spread > 0.25 || share.is_some_and(|share| share < 0.7) || takes(raw).len() < 3 {
        return "noisy";
    }
    let (ours, ratio) = (&row["ours"], &row["ratio"]);
    let varies = (number(ours, "max") - number(ours, "min")) / number(ours, "median") > 0.25;
    if varies && grade(row, number(ratio, "min")) != grade(row, number(ratio, "max")) {
        return "noisy";
    }
    grade(row, number(ratio, "median"))
}

/// Returns the grade of a ratio, or of a figure that stands alone.
fn grade(row: &Value, value: f64) -> &'static str {
    let reaches = |goal: &str| {
        let goal = number(row, goal);
        if row["goal"] == "at-least" { value >= goal } else { value <= goal }
    };
    match (reaches("good"), reaches("floor")) {
        (true, _) => "good",
        (false, true) => "floor",
        (false, false) => "below",
    }
}

#[test]
fn every_ratio_and_every_verdict_follows_from_the_figures() {
    let (code, report) = calibrated(&["--quick", "--rounds", "3", "--json", "--only", ROWS]);
    assert_eq!((&report["quick"], &report["rounds"]), (&Value::Bool(true), &Value::from(3)));
    let machine = &report["machine"];
    let processors = machine["processors"].as_u64().expect("a machine has processors");
    assert!(machine["kernel"].as_str().is_some_and(|kernel| !kernel.is_empty()), "{machine}");
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!(rows.iter().map(|row| row["name"].as_str().unwrap()).collect::<Vec<_>>().join(","), ROWS);
    for row in rows {
        if row["verdict"] == "not measured" {
            assert!(processors < 2, "{row}");
            not_tried(&format!("row {}: {}", row["name"], row["reason"]));
            continue;
        }
        // Alternations in which the host moved the processors are left out. A busy host may leave too few.
        if row["distance"]["left_out"].as_u64().is_some_and(|left_out| left_out > 0)
            && takes(&row["raw"]).len() < 3
        {
            assert_eq!(row["verdict"], "noisy", "{row}");
            assert!(
                row["reason"].as_str().is_some_and(|reason| reason.contains("moved the two processors")),
                "{row}"
            );
            not_tried(&format!("figures of row {}: {}", row["name"], row["reason"]));
            continue;
        }
        check_figures(row, 3);
        assert_eq!(row["verdict"], verdict_of(row), "{row}");
        assert_eq!(row["verdict"] == "noisy", row["reason"].is_string(), "{row}");
    }
    assert_eq!(
        (report["verdict"].as_str(), code),
        (Some("no-verdict"), Some(7)),
        "such short takes have no meaning"
    );
}

#[test]
fn rows_that_start_racks_have_figures_or_a_reason() {
    let only = "packet-round-trip,packet-64,packet-packed,packet-star,udp-packed,udp-frames,all-reduce";
    let (_, report) = calibrated(&["--quick", "--rounds", "1", "--json", "--only", only]);
    let processors = report["machine"]["processors"].as_u64().expect("a machine has processors");
    for row in report["rows"].as_array().expect("rows") {
        let is_packet = row["name"].as_str().unwrap().starts_with("packet");
        if row["verdict"] == "not measured" {
            // `cargo test --workspace` builds the command, which the tests of this package alone do not.
            let has_program = !row["reason"].as_str().is_some_and(|reason| reason.contains("no program"));
            assert!(processors < 2 || is_packet || !has_program, "only namespaces may be forbidden: {row}");
            not_tried(&format!("row {}: {}", row["name"], row["reason"]));
            continue;
        }
        check_figures(row, 1);
        assert_eq!(row["verdict"], verdict_of(row), "{row}");
    }
}

#[test]
fn the_simulator_is_measured_without_a_raw_loop_and_judged_by_itself() {
    let only = "simulator-frames";
    let (_, report) = calibrated(&["--quick", "--rounds", "3", "--json", "--only", only]);
    let row = &report["rows"][0];
    assert!(row["raw"].is_null() && row["ratio"].is_null(), "{row}");
    let ours = &row["ours"];
    assert_eq!(takes(ours).len(), 3, "{row}");
    if row["verdict"] != "noisy" {
        return assert_eq!(row["verdict"], grade(row, number(ours, "median")), "{row}");
    }
    assert_ne!(grade(row, number(ours, "min")), grade(row, number(ours, "max")), "{row}");
}

#[test]
fn the_table_has_the_same_rows_and_a_note_on_short_takes() {
    let ended = start(&["--quick", "--only", "direct-load-4096"]).finish();
    assert!(matches!(ended.code, Some(0 | 1 | 7)), "{}", ended.stderr);
    for part in ["direct-load-4096", "raw loop", "ratio", "floor", "verdict: ", "processors", "mean nothing"]
    {
        assert!(ended.stdout.contains(part), "{part} is missing:\n{}", ended.stdout);
    }
}

#[test]
fn the_markdown_table_has_the_median_and_the_spread_of_each_row() {
    let ended = start(&["--quick", "--rounds", "1", "--markdown", "--only", "direct-load-4096"]).finish();
    assert!(matches!(ended.code, Some(0 | 1 | 7)), "{}", ended.stderr);
    let lines: Vec<_> = ended.stdout.lines().collect();
    let heading = "| row | raw loop | rackloom | ratio | spread | verdict |";
    assert_eq!((lines[2], lines.len()), (heading, 5), "{}", ended.stdout);
    let cells: Vec<_> = lines[4].split('|').map(str::trim).collect();
    let [_, "`direct-load-4096`", raw, ours, ratio, spread, _, _] = cells[..] else { panic!("{cells:?}") };
    assert!(raw.ends_with("/s") && ours.ends_with("/s"), "{cells:?}");
    // One alternation has no spread.
    assert_eq!(spread, format!("{ratio} to {ratio}"));
}

#[test]
fn an_unknown_row_is_bad_input_with_the_known_names() {
    let ended = start(&["--only", "warp"]).finish();
    assert_eq!(ended.code, Some(2));
    for part in ["error: ", "warp", "--only", "hint:", "round-trip"] {
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    }
    assert_eq!(start(&["--rounds", "0"]).finish().code, Some(2));
}

#[test]
fn an_interrupt_prints_the_finished_rows() {
    let arguments = ["--json", "--rounds", "1000", "--only", "direct-load-4096,packet-round-trip"];
    let running = start(&arguments);
    let begun = std::env::temp_dir().join(format!("rackloom-calibrate-{}-0", running.pid().as_raw_nonzero()));
    within(Duration::from_secs(60), "the first take", || begun.exists());
    kill_process(running.pid(), Signal::TERM).expect("it runs");
    let ended = running.finish();
    assert_eq!(ended.code, Some(6), "{}", ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).expect("the report is whole");
    assert_eq!(
        (&report["interrupted"], &report["verdict"]),
        (&Value::Bool(true), &Value::from("no-verdict"))
    );
    for row in report["rows"].as_array().expect("rows") {
        assert_eq!(
            (&row["verdict"], &row["reason"]),
            (&Value::from("not measured"), &Value::from("interrupted"))
        );
    }
    assert!(!begun.exists(), "its files are gone");
}
