//! The page about metrics lists every metric with its type, its labels and its description, and no other.

mod support;

use std::collections::BTreeMap;

use rackloom_export::openmetrics::{FAMILIES, FamilyKind, Format, exposition};
use support::{read, status};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to/metrics.md");

#[test]
fn the_page_lists_the_metrics() {
    let page = std::fs::read_to_string(PAGE).unwrap_or_else(|error| panic!("{PAGE}: {error}"));
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `rackloom_")).collect();
    let mut labels = BTreeMap::new();
    for sample in read(&exposition(&status("r", "s"), Format::OpenMetrics)) {
        labels.entry(sample.name).or_insert_with(|| {
            let mut names: Vec<_> = sample.labels.into_keys().map(|name| format!("`{name}`")).collect();
            names.sort();
            names
        });
    }
    let expected: Vec<_> = FAMILIES
        .iter()
        .map(|family| {
            let kind = match family.kind {
                FamilyKind::Counter => "counter",
                FamilyKind::Gauge => "gauge",
                FamilyKind::Info => "info",
            };
            (
                family.sample_name(),
                kind.to_owned(),
                labels[&family.sample_name()].clone(),
                family.help.to_owned(),
            )
        })
        .collect();
    let listed: Vec<_> = rows
        .iter()
        .map(|row| {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            let [name, kind, labels, help] = cells[..] else { panic!("four columns: {row}") };
            let mut labels: Vec<_> = labels.split(", ").map(str::to_owned).collect();
            labels.sort();
            (name.trim_matches('`').to_owned(), kind.to_owned(), labels, help.to_owned())
        })
        .collect();
    assert_eq!(listed, expected);
}

#[test]
fn queries_of_the_page_have_metrics_that_exist() {
    let page = std::fs::read_to_string(PAGE).unwrap_or_else(|error| panic!("{PAGE}: {error}"));
    let names: Vec<_> = FAMILIES.iter().map(|family| family.sample_name()).collect();
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let used = page.split(|character| !is_part(character)).filter(|word| word.starts_with("rackloom_"));
    for word in used {
        assert!(names.iter().any(|name| name == word), "no metric has the name {word}");
    }
}
