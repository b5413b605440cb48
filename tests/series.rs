//! Time series, traces and cases of runs: what `--series`, `--perfetto` and `--junit` write, in both engines.

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::{rackloom, run, scratch, sim, topology};

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// Returns the sums of a CSV file of series, by name of the direction or node and by quantity.
fn sums(file: &Path) -> BTreeMap<(String, String), u64> {
    let text = std::fs::read_to_string(file).expect("the series are written");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("time_ns,kind,name,quantity,value"));
    let mut sums = BTreeMap::new();
    for line in lines {
        let cells: Vec<_> = line.split(',').collect();
        let [_, _, name, quantity, value] = cells[..] else { panic!("{line}") };
        let value = value.parse::<u64>().expect("a number");
        *sums.entry((name.to_owned(), quantity.to_owned())).or_default() += value;
    }
    sums
}

fn sum_of(sums: &BTreeMap<(String, String), u64>, wanted: &str) -> u64 {
    sums.iter().filter(|((_, quantity), _)| quantity == wanted).map(|(_, sum)| sum).sum()
}

#[test]
fn the_series_of_a_simulation_have_the_sums_of_its_report() {
    let series = scratch("series.csv");
    let options =
        ["--collective", "all-reduce", "--bytes", "256KiB", "--loss", "1%", "--series", text(&series)];
    let report = sim(&topology("ring-4.yaml")).with(&options).finish().passed();
    let sums = sums(&series);
    for link in report["links"].as_array().expect("links") {
        let name = link["name"].as_str().expect("a name").to_owned();
        // The bring-up before the first operation is left out.
        let frames = sums[&(name.clone(), "frames".to_owned())];
        let all = link["frames"].as_u64().expect("a number");
        assert!(frames <= all && frames * 10 >= all * 9, "{name}: {frames} of {all}");
    }
    assert!(sum_of(&sums, "retransmitted") > 0 && sum_of(&sums, "missing") > 0, "1 % of the frames are lost");
    let phases = report["phases"].as_array().expect("phases");
    assert!(phases[0]["name"].as_str().is_some_and(|name| name.starts_with("all-reduce")), "{phases:?}");
    let balance = report["balance"].as_array().expect("a balance");
    assert!(balance.len() >= 2 && balance[1]["imbalance"].as_f64().is_some_and(|value| value >= 1.0));
}

#[test]
fn the_series_of_processes_have_each_operation_once() {
    let series = scratch("series.csv");
    let options = ["--collective", "all-reduce", "--algorithm", "ring", "--bytes", "64KiB", "--force-wire"];
    let report =
        run(&topology("ring-4.yaml")).with(&options).with(&["--series", text(&series)]).finish().passed();
    let sums = sums(&series);
    let successes =
        |kind: &Value| kind["count"].as_u64().expect("a number") - kind["errors"].as_u64().expect("a number");
    let counted: u64 = report["operations"].as_array().expect("operations").iter().map(successes).sum();
    assert_eq!(sum_of(&sums, "operations"), counted);
    assert!(sum_of(&sums, "bytes") > 4 * 64 * 1024, "the ring sends more than each array once");
}

#[test]
fn a_trace_has_operations_phases_and_counters() {
    let file = scratch("trace.json");
    let options = ["--collective", "all-reduce", "--algorithm", "ring", "--bytes", "64KiB"];
    let _ = sim(&topology("star-4.yaml")).with(&options).with(&["--perfetto", text(&file)]).finish().passed();
    let trace = std::fs::read_to_string(&file).expect("the trace is written");
    let trace: Value = serde_json::from_str(&trace).expect("it is JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let count = |phase: &str, category: &str| {
        let fits = |event: &&Value| event["ph"] == phase && (category.is_empty() || event["cat"] == category);
        events.iter().filter(fits).count()
    };
    assert!(count("X", "operations") > 4, "operations of four nodes");
    assert_eq!(count("X", "phases"), 1);
    assert!(count("C", "") > 4 && count("M", "") > 4);
}

fn cases(file: &PathBuf) -> String {
    std::fs::read_to_string(file).expect("the cases are written")
}

#[test]
fn cases_have_the_verdict_and_the_events() {
    let (script, file) = (scratch("cut.yaml"), scratch("cases.xml"));
    let lines = "name: cut\nevents:\n  - {what: down, where: n0--n1, at: 100us}\nexpect: {ends: right}\n";
    std::fs::write(&script, lines).expect("the script can be written");
    let options = ["--collective", "all-reduce", "--bytes", "256KiB", "--faults", text(&script)];
    let ended = sim(&topology("ring-4.yaml")).with(&options).with(&["--junit", text(&file)]).finish();
    let text_of_run = cases(&file);
    assert_eq!(text_of_run.contains("<failure"), ended.code != Some(0), "{text_of_run}");
    assert!(text_of_run.contains("<testsuite ") && text_of_run.contains("down n0--n1"), "{text_of_run}");
    let options = ["campaign", "topologies/ring-4.yaml", "--collective", "all-reduce", "--runs", "5"];
    let ended = rackloom(&options).with(&["--junit", text(&file)]).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let text_of_campaign = cases(&file);
    assert!(text_of_campaign.contains("tests=\"5\" failures=\"0\""), "{text_of_campaign}");
    assert!(text_of_campaign.contains("script 5"), "{text_of_campaign}");
}

#[test]
fn an_interval_is_a_time_above_zero() {
    let ended = rackloom(&["sim", "topologies/ring-4.yaml", "--series-interval", "0s"]).finish();
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("number above 0"), "{}", ended.stderr);
}
