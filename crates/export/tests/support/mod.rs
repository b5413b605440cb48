//! A status that has everything, and a strict reader of OpenMetrics.

use std::collections::{BTreeMap, BTreeSet};

use rackloom_control::request::{Answer, RackStatus};

/// Answer of a rack of two nodes and a switch, with one end that did not answer, faults, IP and submitted jobs.
const STATUS: &str = r#"{"status": {"protocol": 1, "name": "RACK", "pid": 1, "state": "up", "wire": "shared-memory", "job": "litmus",
"epoch": 7, "config_hash": "ab", "uptime_ns": 12500000000, "links_up": 1, "links_total": 2,
"faults": [{"what": "down n0--s0", "member": "n0", "age_ns": 1000000000}, {"what": "down n0--s0", "member": "n0", "age_ns": 3000000000}],
"members": [
 {"name": "n0", "role": "gpu node", "pid": 2, "server": "SERVER", "tenant": 3, "state": "working", "memory_used_bytes": 4096, "processor_ns": 1500000000, "incarnation": 7, "memory_bytes": 16777216,
  "memory": {"limit_bytes": 16777216, "reserved_bytes": {"current": 8192, "high": 8192}, "used_bytes": {"current": 4096, "high": 6000}, "allocations": 1, "frees": 0},
  "links_up": 1, "links_total": 1, "uptime_ns": 11000000001, "paths": [{"to": "n1", "live": 2, "planes": [0], "links": ["n0->s0"]}, {"to": "n2", "live": 0, "planes": [], "links": []}],
  "carried": {"direct": {"operations": 5, "bytes": 50}, "frames": {"operations": 6, "bytes": 60}},
  "ip": {"frames_sent": 1, "bytes_sent": 2, "frames_received": 3, "bytes_received": 4, "queue_full": 5, "unreached": 6, "refused": 7}},
 {"name": "n1", "role": "gpu node", "pid": null, "server": "s", "tenant": 0, "state": "silent", "memory_used_bytes": null, "memory_bytes": 16777216, "links_up": null, "links_total": 1, "uptime_ns": null},
 {"name": "s0", "role": "switch", "pid": 4, "server": "", "tenant": 0, "state": "up", "memory_used_bytes": null, "memory_bytes": 0, "links_up": 1, "links_down": [1], "links_total": 2, "uptime_ns": 11000000000}],
"links": [
 {"name": "n0->s0", "from": "n0", "to": "s0", "link": 0, "plane": 1, "sent": {"at_ns": 1, "frames": 100, "bytes": 1000, "data_frames": 90, "data_bytes": 950, "retransmitted": 2, "replayed": 3}, "missing": 4, "dropped": {"injected": 5, "hop-check": 6}},
 {"name": "s0->n1", "from": "s0", "to": "n1", "link": 1, "plane": 1, "sent": null, "missing": null, "dropped": null, "unanswered": ["n1"]}],
"submitted": {"jobs": [{"job": 1, "state": "running"}, {"job": 2, "state": "passed"}], "tenants": [{"tenant": 3, "jobs": 2, "node_time_ns": 1500000000, "bytes": 8, "memory_high_bytes": 9}],
 "nodes": [{"name": "n0", "state": "job", "job": 1}, {"name": "n1", "state": "free"}]}}}"#;

/// Returns the status of a rack with this name, whose first server has this name.
pub(crate) fn status(rack: &str, server: &str) -> RackStatus {
    let Answer::Status(mut status) = serde_json::from_str(STATUS).expect("an answer") else {
        panic!("the answer is a status")
    };
    status.name = rack.to_owned();
    status.members[0].server = server.to_owned();
    *status
}

/// Sample that was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
}

#[derive(Default)]
struct FamilyRead {
    name: String,
    kind: Option<String>,
    unit: Option<String>,
    help: Option<String>,
    samples: usize,
}

/// Reads a text as OpenMetrics 1.0 and panics where it breaks a rule.
pub(crate) fn read(text: &str) -> Vec<Sample> {
    let body = text.strip_suffix("# EOF\n").unwrap_or_else(|| panic!("no end: {text}"));
    assert!(body.is_empty() || body.ends_with('\n'), "the last line does not end");
    let mut families: Vec<FamilyRead> = Vec::new();
    let mut samples = Vec::new();
    let mut series = BTreeSet::new();
    for line in body.lines() {
        if let Some(metadata) = line.strip_prefix("# ") {
            read_metadata(metadata, &mut families);
            continue;
        }
        let sample = read_sample(line);
        let family = families.last_mut().unwrap_or_else(|| panic!("a sample before its family: {line}"));
        family.samples += 1;
        let ending = sample
            .name
            .strip_prefix(&family.name)
            .unwrap_or_else(|| panic!("not of {}: {line}", family.name));
        match family.kind.as_deref() {
            Some("counter") => assert!(ending == "_total" && sample.value >= 0.0, "{line}"),
            Some("gauge") => assert_eq!(ending, "", "{line}"),
            Some("info") => assert!(ending == "_info" && sample.value == 1.0, "{line}"),
            other => panic!("type {other:?}: {line}"),
        }
        assert!(series.insert((sample.name.clone(), sample.labels.clone())), "a series occurs twice: {line}");
        samples.push(sample);
    }
    let names: BTreeSet<_> = families.iter().map(|family| family.name.as_str()).collect();
    assert_eq!(names.len(), families.len(), "a family is not contiguous");
    for family in &families {
        assert!(family.samples > 0 && family.help.is_some(), "{}", family.name);
        let unit = family.unit.as_deref().unwrap_or("");
        assert!(unit.is_empty() || family.name.ends_with(&format!("_{unit}")), "{}", family.name);
        assert!(family.kind.as_deref() != Some("info") || unit.is_empty(), "{}", family.name);
        for ending in ["_total", "_info", "_created", "_count", "_sum", "_bucket"] {
            assert!(!family.name.ends_with(ending), "{}", family.name);
        }
    }
    samples
}

fn read_metadata(metadata: &str, families: &mut Vec<FamilyRead>) {
    let mut parts = metadata.splitn(3, ' ');
    let (keyword, name, rest) = (parts.next(), parts.next().expect("a name"), parts.next().expect("a text"));
    check_name(name, true);
    if families.last().is_none_or(|family| family.name != name) {
        families.push(FamilyRead { name: name.to_owned(), ..FamilyRead::default() });
    }
    let family = families.last_mut().expect("a family");
    assert_eq!(family.samples, 0, "metadata after samples: {metadata}");
    let field = match keyword {
        Some("TYPE") => &mut family.kind,
        Some("UNIT") => &mut family.unit,
        Some("HELP") => {
            unescaped(rest);
            &mut family.help
        }
        _ => panic!("no keyword: {metadata}"),
    };
    assert_eq!(field.replace(rest.to_owned()), None, "twice: {metadata}");
}

fn check_name(name: &str, may_have_colon: bool) {
    let is_part = |character: char| {
        character.is_ascii_alphanumeric() || character == '_' || may_have_colon && character == ':'
    };
    let begins = name.chars().next().is_some_and(|first| !first.is_ascii_digit());
    assert!(begins && name.chars().all(is_part), "no name: {name}");
}

fn read_sample(line: &str) -> Sample {
    let (name, rest) = line.split_once('{').unwrap_or_else(|| panic!("no labels: {line}"));
    check_name(name, true);
    let mut labels = BTreeMap::new();
    let mut rest = rest;
    loop {
        let (label, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("no label: {line}"));
        check_name(label, false);
        assert!(!label.starts_with("__"), "a reserved label: {line}");
        let length = closing_quote(after).unwrap_or_else(|| panic!("an open value: {line}"));
        let value = unescaped(&after[..length]);
        assert_eq!(labels.insert(label.to_owned(), value), None, "a label occurs twice: {line}");
        rest = &after[length + 1..];
        match rest.strip_prefix(',') {
            Some(further) => rest = further,
            None => break,
        }
    }
    let value = rest.strip_prefix("} ").unwrap_or_else(|| panic!("no value: {line}"));
    assert!(value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'), "{line}");
    Sample {
        name: name.to_owned(),
        labels,
        value: value.parse().unwrap_or_else(|_| panic!("no number: {line}")),
    }
}

/// Returns the position of the first quote that is not escaped.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(index, character)| {
        let is_end = character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        is_end.then_some(index)
    })
}

/// Returns the text without escapes. Other escapes than the three of the format are mistakes, and so are bare quotes.
fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.push(match characters.next() {
                Some('n') => '\n',
                Some('\\') => '\\',
                Some('"') => '"',
                other => panic!("escape of {other:?} in {text}"),
            }),
            '"' | '\n' => panic!("a bare {character:?} in {text}"),
            other => plain.push(other),
        }
    }
    plain
}
