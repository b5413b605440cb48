//! Time series, traces and cases of runs: what `--series`, `--perfetto` and `--junit` write, in both engines.

mod support;

use std::collections::{BTreeMap, BTreeSet};
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

/// Returns the sum of a counter of all links of a report, which may have names as `dropped` has.
fn total(report: &Value, counter: &str, name: &str) -> u64 {
    let links = report["links"].as_array().expect("links").iter();
    links.filter_map(|link| link[counter][name].as_u64()).sum()
}

/// Reasons of drops by the devices of processes.
const OF_DEVICES: [&str; 3] = ["receive-buffer-full", "too-long", "vlan-tag"];

/// Intervals as long as the run: the bring-up is part of the series.
const ONE_INTERVAL: [&str; 2] = ["--series-interval", "1s"];

#[test]
fn the_drops_of_a_series_are_those_of_its_report() {
    let file = topology("ring-4.yaml");
    for engine in [sim(&file), run(&file).with(&["--force-wire"])] {
        let series = scratch("series.csv");
        let options = ["--pattern", "permutation", "--messages", "300", "--loss", "5%", "--corrupt", "2%"];
        let options = [&options[..], &["--series", text(&series)], &ONE_INTERVAL].concat();
        let report = engine.with(&options).finish().passed();
        let sums = sums(&series);
        let mut reasons = BTreeSet::new();
        for link in report["links"].as_array().expect("links") {
            let name = link["name"].as_str().expect("a name");
            let dropped = link["dropped"].as_object().expect("reasons");
            // The device of a port counts some drops that no series has.
            for (reason, count) in dropped.iter().filter(|(reason, _)| !OF_DEVICES.contains(&reason.as_str()))
            {
                let sum = sums.get(&(name.to_owned(), format!("dropped:{reason}")));
                assert_eq!(sum, count.as_u64().as_ref(), "{name}: {reason}");
                reasons.insert(reason.clone());
            }
        }
        let dropped: u64 = sums
            .iter()
            .filter(|((_, quantity), _)| quantity.starts_with("dropped:"))
            .map(|(_, sum)| sum)
            .sum();
        let injected = total(&report, "injected", "dropped");
        assert_eq!(sum_of(&sums, "dropped:injected"), injected);
        assert!(injected > 0 && dropped > injected && reasons.len() > 2, "{reasons:?}: {dropped}");
    }
}

/// Operations of reduction units in switches are rows of their own, and no operations of the report.
#[test]
fn the_operations_of_switches_are_rows_of_switches() {
    let series = scratch("series.csv");
    let options = ["--collective", "all-reduce", "--algorithm", "in-switch", "--bytes", "64KiB"];
    let report =
        sim(&topology("star-4.yaml")).with(&options).with(&["--series", text(&series)]).finish().passed();
    let of_kind = |kind: &str| -> u64 {
        let text = std::fs::read_to_string(&series).expect("the series are written");
        let rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let rows = rows.filter(|row| row[1] == kind && row[3] == "operations");
        rows.map(|row| row[4].parse::<u64>().expect("a number")).sum()
    };
    let operations = report["operations"].as_array().expect("operations").iter();
    let counted: u64 = operations.filter_map(|kind| kind["count"].as_u64()).sum();
    assert_eq!(of_kind("node"), counted);
    assert!(of_kind("switch") > 0);
}

#[test]
fn the_series_of_processes_have_each_operation_once() {
    let series = scratch("series.csv");
    let options = ["--collective", "all-reduce", "--algorithm", "ring", "--bytes", "64KiB", "--force-wire"];
    let report =
        run(&topology("ring-4.yaml")).with(&options).with(&["--series", text(&series)]).finish().passed();
    let sums = sums(&series);
    assert_eq!(sum_of(&sums, "operations"), operations(&report, "count"));
    assert!(sum_of(&sums, "bytes") > 4 * 64 * 1024, "the ring sends more than each array once");
}

/// Returns the sum of a number of all kinds of operations of a report.
fn operations(report: &Value, number: &str) -> u64 {
    let kinds = report["operations"].as_array().expect("operations").iter();
    kinds.map(|kind| kind[number].as_u64().expect("a number")).sum()
}

#[test]
fn operations_that_end_with_an_error_have_ended() {
    let script = scratch("revoke.yaml");
    let text_of_script = "name: revoke\nevents:\n  - {what: revoke, where: n1, at: 20us}\nexpect: {ends: right-or-clean-error}\n";
    std::fs::write(&script, text_of_script).expect("a script");
    let series = scratch("series.csv");
    let options = ["--pattern", "uniform", "--bytes", "4096", "--messages", "400", "--faults", text(&script)];
    let report =
        sim(&topology("star-4.yaml")).with(&options).with(&["--series", text(&series)]).finish().passed();
    assert!(operations(&report, "errors") > 0, "n1 refuses operations");
    assert_eq!(sum_of(&sums(&series), "operations"), operations(&report, "count"));
}

/// A rack of processes under a fault script reads from all neighbours after the job. Neither counters nor series have these frames.
#[test]
fn the_series_of_processes_under_faults_end_with_the_counters_of_the_report() {
    let script = scratch("cut.yaml");
    let events = "  - {what: down, where: n0--s0, when: {node: n0, run: 2}, for: 50ms}\n  - {what: loss, where: n1--s0, rate: 2%, when: {node: n1, run: 2}, for: 80ms}\n";
    std::fs::write(&script, format!("name: cut\nevents:\n{events}expect: {{ends: right}}\n"))
        .expect("a script");
    let series = scratch("series.csv");
    let options = ["--collective", "all-reduce", "--bytes", "64KiB", "--repetitions", "200", "--force-wire"];
    let options =
        [&options[..], &["--faults", text(&script), "--series", text(&series)], &ONE_INTERVAL].concat();
    let report = run(&topology("star-4.yaml")).with(&options).finish().passed();
    let sums = sums(&series);
    for link in report["links"].as_array().expect("links") {
        let name = link["name"].as_str().expect("a name").to_owned();
        for (quantity, counter) in [("frames", "frames"), ("bytes", "bytes_on_wire")] {
            let sum = sums[&(name.clone(), quantity.to_owned())];
            assert_eq!(Some(sum), link[counter].as_u64(), "{name}: {quantity}");
        }
    }
}

/// With the headers of another fabric, frames count less against the rate than they have bytes on the wire.
#[test]
fn shares_count_the_bytes_that_the_rate_was_charged_for() {
    let series = scratch("series.csv");
    let options = ["--pattern", "incast", "--bytes", "64", "--messages", "3000"];
    let rack = ["--set", "link.headers=sue-lite-like", "--set", "link.rate=5Gbit/s"];
    let options = [&options[..], &rack, &["--series", text(&series)], &ONE_INTERVAL].concat();
    let report = sim(&topology("star-4.yaml")).with(&options).finish().passed();
    let sums = sums(&series);
    let mut accounted = Vec::new();
    for link in report["links"].as_array().expect("links") {
        let name = link["name"].as_str().expect("a name").to_owned();
        let bytes = link["accounted_bytes"].as_u64().expect("virtual time accounts");
        assert_eq!(sums[&(name, "accounted".to_owned())], bytes);
        accounted.push(bytes);
    }
    let sums_of_report = &report["wire_bytes"];
    assert_eq!(sums_of_report["accounted"].as_u64(), Some(accounted.iter().sum()));
    assert!(sums_of_report["sent"].as_u64() > Some(2 * accounted.iter().sum::<u64>()), "{sums_of_report}");
    // 5 Gbit/s are 0.625 bytes per nanosecond. The link to the target is never idle for long.
    let most = accounted.iter().copied().max().expect("links") as f64;
    let expected = most / (0.625 * report["elapsed_ns"].as_f64().expect("a number"));
    let share = report["balance"][0]["share_max"].as_f64().expect("all links have a rate");
    assert!((share - expected).abs() < 1e-9 && (0.9..=1.0).contains(&share), "{share} {expected}");
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
