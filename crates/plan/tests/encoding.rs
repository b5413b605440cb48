//! Tests that the canonical encoding is the one that `docs/decisions/canonical-encoding.md` defines.

use rackloom_plan::Plan;

fn document() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/decisions/canonical-encoding.md");
    std::fs::read_to_string(path).expect("the page of the encoding")
}

fn plan(text: &str) -> Plan {
    Plan::parse(text, "rack").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_documented_example_has_the_documented_encoding() {
    let document = document();
    let (_, example) = document.split_once("## Example\n").expect("a section with an example");
    let file: String = example
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .map(|line| format!("{line}\n"))
        .collect();
    let (_, encoding) = example.split_once("```text\n").expect("the encoding");
    let (encoding, _) = encoding.split_once("```").expect("its end");
    assert_eq!(plan(&file).canonical_encoding(), encoding);
}

/// The whole chain from text to epoch. Other implementations can compare their own with these numbers.
#[test]
fn hash_and_epoch_of_version_1_do_not_change() {
    let plan = plan("name: ring-4\nshape: {ring: {nodes: 4}}\n");
    assert_eq!((format!("{:016x}", plan.config_hash), plan.epoch), ("e9f0d02ab0a1f56f".to_owned(), 57_447));
}

#[test]
fn a_value_that_equals_its_default_is_left_out() {
    let base = "name: r\nshape: {ring: {nodes: 3}}\n";
    for default in [
        "timers: {heartbeat_interval: 100ms}",
        "timers: {hold_down: 1s}",
        "transport: {reorder_packets: 256}",
        "link: {headers: own}",
    ] {
        let text = plan(&format!("{base}{default}\n")).canonical_encoding();
        let key = default.split([':', '{']).nth(2).expect("a key").trim();
        assert!(!text.contains(&format!("{key}=")), "{default}: {text}");
    }
}
