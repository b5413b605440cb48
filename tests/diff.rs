//! `rackloom diff`: differences between reports of real runs, thresholds and exit codes.

mod support;

use std::path::{Path, PathBuf};

use serde_json::Value;
use support::{Ended, rackloom, scratch, topology};

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// Simulates an all-reduce with these options and returns the file of its report.
fn report(options: &[&str]) -> PathBuf {
    let (file, rack) = (scratch("report.json"), topology("ring-4.yaml"));
    let arguments =
        ["sim", text(&rack), "--collective", "all-reduce", "--bytes", "64KiB", "--json", text(&file)];
    let ended = rackloom(&arguments).with(options).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    file
}

fn diff(before: &Path, after: &Path, options: &[&str]) -> Ended {
    rackloom(&["diff", text(before), text(after)]).with(options).finish()
}

#[test]
fn equal_runs_have_no_difference() {
    let (one, other) = (report(&[]), report(&[]));
    let ended = diff(&one, &other, &["--fail-over", "0%"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    assert!(ended.stdout.contains("nothing has changed"), "{}", ended.stdout);
}

#[test]
fn a_slower_link_is_over_a_threshold_and_within_a_larger_one() {
    let (fast, slow) = (report(&[]), report(&["--set", "link.delay=2us"]));
    let ended = diff(&fast, &slow, &["--fail-over", "5%"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(ended.stdout.contains("worse, over the threshold"), "{}", ended.stdout);
    assert_eq!(diff(&fast, &slow, &[]).code, Some(0), "without a threshold it only shows");
    assert_eq!(diff(&slow, &fast, &["--fail-over", "5%"]).code, Some(0), "faster is better");
    let large = diff(&fast, &slow, &["--fail-over", "100000%"]);
    assert_eq!(large.code, Some(0), "{}", large.stdout);
}

/// The slow run loses no frame.
#[test]
fn sections_that_are_named_are_the_only_ones_that_fail() {
    let (fast, slow) = (report(&[]), report(&["--set", "link.delay=2us"]));
    let losses = diff(&fast, &slow, &["--fail-over", "losses=0"]);
    assert_eq!(losses.code, Some(0), "{}", losses.stdout);
    let note = "note: only these sections are compared with a threshold: losses";
    assert!(losses.stdout.contains(note), "{}", losses.stdout);
    assert!(losses.stdout.contains("worse") && !losses.stdout.contains("over the threshold"));
    let all = diff(&fast, &slow, &["--fail-over", "losses=0", "--fail-over", "5%"]);
    assert_eq!(all.code, Some(1), "{}", all.stdout);
    assert_eq!(diff(&fast, &slow, &["--fail-over", "time=5%"]).code, Some(1));
}

#[test]
fn links_over_time_differ_the_most_at_a_time() {
    let (series, file) = (scratch("series.csv"), scratch("diff.json"));
    let recorded = |more: &[&str]| report(&[&["--series", text(&series)], more].concat());
    let (fast, slow) = (recorded(&[]), recorded(&["--set", "link.delay=2us"]));
    let ended = diff(&fast, &slow, &["--rows", "200", "--json", text(&file)]);
    assert!(ended.stdout.contains("largest difference of a rate"), "{}", ended.stdout);
    let result = std::fs::read_to_string(&file).expect("the result is written");
    let result: Value = serde_json::from_str(&result).expect("JSON");
    let rates = &result["over_time"];
    let links = rates["links"].as_array().expect("a list");
    assert!(
        rates["interval_ns"].as_u64() > Some(0) && links.len() == 8,
        "both directions of a ring: {rates}"
    );
    let size = |link: &Value| {
        let [before, after] = ["before", "after"].map(|side| link[side].as_f64().expect("a rate"));
        (after - before).abs()
    };
    assert!(links.is_sorted_by(|one, next| size(one) >= size(next)) && size(&links[7]) > 0.0, "{links:?}");
    let rows = result["rows"].as_array().expect("rows");
    for name in ["n0->n1: greatest rate", "n0->n1: mean rate"] {
        assert!(rows.iter().any(|row| row["name"] == name && row["unit"] == "B/s"), "no row {name}");
    }
    let equal = diff(&fast, &recorded(&[]), &[]);
    assert!(equal.stdout.contains("nothing has changed"), "{}", equal.stdout);
    assert!(!equal.stdout.contains("largest difference"), "{}", equal.stdout);
}

#[test]
fn several_seeds_are_pairs_and_the_result_is_json_of_its_schema() {
    let seeds = |more: &[&str]| {
        ["1", "2"].map(|seed| report(&[&["--seed", seed, "--loss", "0.1%"][..], more].concat()))
    };
    let (before, after) = (seeds(&[]), seeds(&["--set", "link.delay=2us"]));
    let file = scratch("diff.json");
    let sides = ["--before", text(&before[0]), "--before", text(&before[1]), "--after", text(&after[0])];
    let ended = rackloom(&["diff"])
        .with(&sides)
        .with(&["--after", text(&after[1]), "--fail-over", "5%", "--json", text(&file)])
        .finish();
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    let result = std::fs::read_to_string(&file).expect("the result is written");
    let result: Value = serde_json::from_str(&result).expect("JSON");
    assert_eq!((&result["outcome"], &result["basis"]["has_equal_seeds"]), (&"over".into(), &true.into()));
    let schema = rackloom(&["schema", "diff"]).finish().stdout;
    let schema: Value = serde_json::from_str(&schema).expect("the schema is JSON");
    let valid = jsonschema::validator_for(&schema).expect("a schema");
    assert!(
        valid.is_valid(&result),
        "{:?}",
        valid.iter_errors(&result).next().map(|error| error.to_string())
    );
}

#[test]
fn copies_of_a_report_are_no_independent_runs() {
    let file = scratch("diff.json");
    let counted = |before: [&Path; 3], after: [&Path; 3]| {
        let mut arguments = vec!["diff", "--fail-over", "5%", "--json", text(&file)];
        arguments.extend(before.iter().flat_map(|path| ["--before", text(path)]));
        arguments.extend(after.iter().flat_map(|path| ["--after", text(path)]));
        let ended = rackloom(&arguments).finish();
        let result = std::fs::read_to_string(&file).expect("the result is written");
        let result: Value = serde_json::from_str(&result).expect("JSON");
        let basis = &result["basis"];
        let runs = ["runs_before", "runs_after"].map(|field| basis[field].as_u64().expect("a number"));
        (ended.code, runs, ended.stdout)
    };
    let lossy = |seed: &str, delay: &str| {
        report(&["--seed", seed, "--loss", "0.1%", "--set", &format!("link.delay={delay}")])
    };
    let (fast, slow) = (lossy("1", "500ns"), lossy("2", "2us"));
    let (again, copy) = (lossy("1", "500ns"), scratch("copy.json"));
    std::fs::copy(&fast, &copy).expect("it can be copied");
    let (code, runs, stdout) = counted([&fast; 3], [&slow; 3]);
    assert_eq!((code, runs), (Some(7), [1, 1]), "{stdout}");
    for side in ["before", "after"] {
        assert!(stdout.contains(&format!("note: {side}: 2 of 3 reports repeat another one")), "{stdout}");
    }
    let (_, runs, stdout) = counted([&fast, &copy, &again], [&slow, &lossy("3", "2us"), &lossy("4", "2us")]);
    assert_eq!(runs, [1, 3], "a copy and a repeated run count once, and other seeds count\n{stdout}");
}

#[test]
fn files_that_are_no_reports_and_bad_thresholds_are_refused() {
    let (good, bad) = (report(&[]), scratch("bad.json"));
    let whole = std::fs::read_to_string(&good).expect("it was written");
    std::fs::write(&bad, &whole[..whole.len() / 2]).expect("it can be written");
    let refused = |before: &Path, options: &[&str], text: &str| {
        let ended = diff(before, &good, options);
        assert_eq!(ended.code, Some(2), "{}", ended.stdout);
        assert!(ended.stderr.contains(text), "{}", ended.stderr);
    };
    refused(&bad, &[], "truncated");
    std::fs::write(&bad, whole.replace("\"version\": \"0.2", "\"version\": \"0.1"))
        .expect("it can be written");
    refused(&bad, &[], "0.1");
    refused(&good, &["--fail-over", "much"], "much");
    refused(&good, &["--fail-over", "tempo=5%"], "tempo");
}
