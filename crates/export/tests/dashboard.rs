//! The dashboard for Grafana uses metrics and labels that exist.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use rackloom_export::openmetrics::{Format, exposition};
use serde_json::Value;
use support::{read, status};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/grafana/rackloom.json");

/// Functions, operators and words of the queries' language that the dashboard uses.
const LANGUAGE: [&str; 6] = ["by", "on", "rate", "sum", "topk", "label_values"];

fn dashboard() -> Value {
    let text = std::fs::read_to_string(FILE).unwrap_or_else(|error| panic!("{FILE}: {error}"));
    serde_json::from_str(&text).expect("the dashboard is JSON")
}

/// Returns the labels of each metric of a rack that has everything.
fn metrics() -> BTreeMap<String, BTreeSet<String>> {
    let mut metrics = BTreeMap::<_, BTreeSet<_>>::new();
    for sample in read(&exposition(&status("r", "s"), Format::OpenMetrics)) {
        metrics.entry(sample.name).or_default().extend(sample.labels.into_keys());
    }
    metrics
}

/// Returns the names of a query, without texts, variables and durations.
fn names(query: &str) -> Vec<String> {
    let without_texts: String = query.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let words = without_texts
        .split(|character: char| !(character.is_ascii_alphanumeric() || "_$".contains(character)));
    words
        .filter(|word| word.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_'))
        .map(str::to_owned)
        .collect()
}

/// Returns the mistakes of a query: names that are neither metrics nor labels of its metrics.
fn mistakes(query: &str, legend: &str, metrics: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let names = names(query);
    let used: Vec<_> = names.iter().filter_map(|name| metrics.get(name)).collect();
    let labels: BTreeSet<&str> = used.iter().flat_map(|labels| labels.iter().map(String::as_str)).collect();
    let is_known =
        |name: &str| metrics.contains_key(name) || labels.contains(name) || LANGUAGE.contains(&name);
    let mut wrong: Vec<_> = names.iter().filter(|name| !is_known(name)).cloned().collect();
    let shown = legend.split("{{").skip(1).filter_map(|part| part.split("}}").next());
    wrong.extend(shown.filter(|label| !labels.contains(label)).map(|label| format!("{{{{{label}}}}}")));
    if used.is_empty() {
        wrong.push("no metric".to_owned());
    }
    wrong
}

#[test]
fn every_query_has_metrics_and_labels_that_exist() {
    let (dashboard, metrics) = (dashboard(), metrics());
    let mut queries = 0;
    let mut used = BTreeSet::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().expect("queries") {
            let (query, legend) = (
                target["expr"].as_str().expect("a query"),
                target["legendFormat"].as_str().expect("a legend"),
            );
            assert_eq!(mistakes(query, legend, &metrics), [""; 0], "{}: {query}", panel["title"]);
            used.extend(names(query).into_iter().filter(|name| metrics.contains_key(name)));
            queries += 1;
        }
    }
    assert!(queries >= 16 && used.len() >= 16, "only {queries} queries with {} metrics", used.len());
    for variable in dashboard["templating"]["list"].as_array().expect("variables") {
        if let Some(query) = variable["definition"].as_str() {
            assert_eq!(mistakes(query, "", &metrics), [""; 0], "{query}");
        }
    }
}

#[test]
fn mistakes_of_queries_are_found() {
    let metrics = metrics();
    let of = |query: &str, legend: &str| mistakes(query, legend, &metrics);
    assert_eq!(
        of("sum by (rack) (rate(rackloom_links_up{rack=~\"$rack\"}[$__rate_interval]))", "{{rack}}"),
        [""; 0]
    );
    assert_eq!(of("rackloom_no_such_metric", ""), ["rackloom_no_such_metric", "no metric"]);
    assert_eq!(of("sum by (server) (rackloom_links_up)", "{{link}}"), ["server", "{{link}}"]);
    assert_eq!(
        of("rackloom_member_operations", ""),
        ["rackloom_member_operations", "no metric"],
        "samples end with _total"
    );
}

#[test]
fn panels_have_numbers_of_their_own_and_cover_no_other() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut ids = BTreeSet::new();
    let mut cells = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().expect("a number")), "{}", panel["title"]);
        let of = |name: &str| panel["gridPos"][name].as_u64().expect("a position");
        assert!(of("x") + of("w") <= 24, "{}", panel["title"]);
        for x in of("x")..of("x") + of("w") {
            for y in of("y")..of("y") + of("h") {
                assert!(cells.insert((x, y)), "{} covers another panel", panel["title"]);
            }
        }
    }
}
