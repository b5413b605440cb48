//! Re-choice of a collective's algorithm in the course of its runs: what causes it, what the report states, and what is refused.

mod support;

use std::path::PathBuf;

use serde_json::Value;
use support::{Ended, rack_file, root, run, scratch, sim, topology};

/// Returns the options of a run on the leaves.
fn collective() -> [&'static str; 4] {
    ["--collective", "all-reduce", "--bytes", "512KiB"]
}

fn script(name: &str) -> String {
    root().join("scripts/faults").join(name).to_str().expect("a plain path").to_owned()
}

fn row(report: &Value) -> &Value {
    let rows = report["sweep"].as_array().expect("rows");
    assert_eq!(rows.len(), 1, "{rows:?}");
    &rows[0]
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Returns the number of notes about a re-choice.
fn notes(report: &Value) -> usize {
    let notes = report["notes"].as_array().expect("notes");
    notes.iter().filter(|note| note.as_str().is_some_and(|note| note.contains("from run "))).count()
}

fn on_leaves(adapt: &str, more: &[&str]) -> Value {
    let rack = sim(&topology("two-leaves.yaml")).with(&collective());
    rack.with(&["--repetitions", "100", "--adapt", adapt]).with(more).finish().passed()
}

#[test]
fn a_collective_leaves_the_algorithm_that_lost_trunks_made_slow() {
    let faults = ["--faults", &script("trunks-lost.yaml")];
    let [kept, rechosen] = ["off", "on"].map(|adapt| on_leaves(adapt, &faults));
    assert_eq!((row(&kept)["algorithm"].as_str(), notes(&kept)), (Some("two-shot"), 0));
    assert_eq!(row(&kept)["rechoices"], Value::Null);
    let (row, kept) = (row(&rechosen), row(&kept));
    let [rechoice] = &row["rechoices"].as_array().expect("a list")[..] else { panic!("{row}") };
    assert_eq!(rechoice["cause"], "deviated");
    assert_eq!((&rechoice["from"], &rechoice["to"]), (&Value::from("two-shot"), &row["algorithm"]));
    assert_ne!(row["algorithm"], "two-shot");
    assert!(number(&rechoice["now_us"]) > 1.3 * number(&rechoice["reference_us"]), "{rechoice}");
    let tried = rechoice["tried"].as_array().expect("the candidates");
    assert!(tried.len() > 1 && tried[0]["algorithm"] == rechoice["to"], "{rechoice}");
    assert!(number(&tried[0]["time_us"]) <= 0.9 * number(&rechoice["now_us"]), "{rechoice}");
    // The fault begins in run 20 of 105. Two epochs and the trial follow.
    let run = rechoice["run"].as_u64().expect("a run");
    assert!((20 + 16..20 + 8 + 16 + 4 * 3 + 1).contains(&run), "{rechoice}");
    assert!(number(&kept["time_p50_us"]) > 1.5 * number(&row["time_p50_us"]), "{kept} {row}");
    assert_eq!(notes(&rechosen), 1, "{}", rechosen["notes"]);
}

#[test]
fn a_rack_without_a_fault_keeps_its_algorithm_and_its_times() {
    let [kept, adapting] = ["off", "on"].map(|adapt| on_leaves(adapt, &[]));
    assert_eq!(row(&adapting)["rechoices"], Value::Null);
    assert_eq!(row(&kept)["algorithm"], row(&adapting)["algorithm"]);
    let [kept, adapting] = [kept, adapting].map(|report| number(&row(&report)["time_p50_us"]));
    assert!((kept - adapting).abs() < 0.01 * kept, "{kept} {adapting}");
}

#[test]
fn links_that_alternate_cause_few_trials() {
    let file = scratch("alternating.yaml");
    let faults = "name: alternating\nevents:\n\
        - {what: slow, where: [left--right, left--right#1, left--right#2], share: 20%, at: 1ms, for: 2ms, every: 4ms}\n";
    std::fs::write(&file, faults).expect("it can be written");
    let faults = ["--faults", file.to_str().expect("a plain path")];
    let rack = sim(&topology("two-leaves.yaml")).with(&["--collective", "all-reduce", "--bytes", "64KiB"]);
    let report = rack.with(&["--repetitions", "500", "--adapt", "on"]).with(&faults).finish().passed();
    let trials = row(&report)["rechoices"].as_array().map_or(0, Vec::len);
    // 63 epochs; the distances of trials are 1, 2, 4 ... epochs at least.
    assert!((1..=7).contains(&trials), "{trials} trials: {}", row(&report)["rechoices"]);
}

/// The delay is far above the time of a run.
#[test]
fn processes_try_their_algorithms_after_a_delay_and_every_result_is_right() {
    let file = scratch("delayed.yaml");
    let faults = "name: delayed\nevents:\n- {what: delay, where: all, by: 8ms, when: {node: n0, run: 30}}\n";
    std::fs::write(&file, faults).expect("it can be written");
    let rack = run(&topology("full-mesh-4.yaml")).with(&["--collective", "all-reduce", "--bytes", "64KiB"]);
    let rack = rack.with(&["--force-wire", "--repetitions", "70", "--warm-up", "0", "--adapt", "on"]);
    let report = rack.with(&["--faults", file.to_str().expect("a plain path")]).finish().passed();
    let row = row(&report);
    let rechoices = row["rechoices"].as_array().unwrap_or_else(|| panic!("no trial: {row}"));
    // Noise may have begun a trial before the delay, so the times of the candidates count.
    let is_delayed = |rechoice: &Value| {
        let tried = rechoice["tried"].as_array().expect("the candidates");
        tried.len() > 1 && tried.iter().all(|one| number(&one["time_us"]) > 8_000.0)
    };
    assert!(rechoices.iter().any(is_delayed), "{rechoices:?}");
    assert_eq!(row["wrong"], 0);
}

#[test]
fn a_named_algorithm_and_a_barrier_cannot_be_chosen_again() {
    let refused = |ended: Ended, message: &str| {
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains(message) && ended.stderr.contains("hint: "), "{}", ended.stderr);
    };
    let file: PathBuf = topology("two-leaves.yaml");
    refused(
        sim(&file).with(&["--collective", "all-reduce", "--algorithm", "ring", "--adapt", "on"]).finish(),
        "the algorithm is named, so it cannot be chosen again",
    );
    refused(
        sim(&file).with(&["--collective", "barrier", "--adapt", "on"]).finish(),
        "--adapt means nothing to barrier",
    );
    refused(
        sim(&file).with(&["--job", "latency", "--adapt", "on"]).finish(),
        "--adapt means nothing to job latency",
    );
    let barrier =
        "name: two\nshape: {ring: {nodes: 2}}\njob: {collective: {collective: barrier, adapt: true}}\n";
    refused(sim(&rack_file(barrier)).finish(), "`job.collective.adapt` means nothing to barrier");
}
