//! Tests of mistakes in a file: all are reported, each with position, caret and hint.
//!
//! This file tests properties of whole files. Modules test the parts.

mod credits;
mod jobs;
mod links;
mod members;
mod transport;

use rackloom_plan::{Plan, PlanError};

fn wrong(text: &str) -> PlanError {
    match Plan::parse(text, "rack.yaml") {
        Err(error) => error,
        Ok(_) => panic!("accepted:\n{text}"),
    }
}

/// Reads a ring of four with more lines. The mistakes must be exactly these, in the order of the file.
fn expect(lines: &str, messages: &[&str]) {
    let error = wrong(&format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{lines}"));
    let found: Vec<&str> = error.mistakes.iter().map(|mistake| mistake.message.as_str()).collect();
    assert_eq!(found.len(), messages.len(), "{found:#?}");
    for (found, part) in found.iter().zip(messages) {
        assert!(found.contains(part), "{found:?} does not contain {part:?}");
    }
}

#[test]
fn all_mistakes_of_a_file_are_shown_at_once() {
    let error = wrong(
        "\
# A rack with everything wrong.
name: bad rack
shape: {ring: {nodes: 4}}
sede: 7
link:
  rate: 100Gb/s
  dealy: 500ns
  loss: 1.5
  corrupt: 1%
links:
  n0--n1: {delay: 500}
  n0--n2: {loss: 0.1}
  n1--n0: {}
nodes:
  n9: {memory: 1MiB}
  n1: {memory: 65GiB}
checks: never
timers: {heartbeat_interval: 0ns}
transport: {mode: selectiv, window_packets: 100000}
frame_bytes_max: 100B
ether_type: 0x0800
job: {litmus: {bytes_max: [1, 2]}}
",
    );
    insta::assert_snapshot!(error);
}

#[test]
fn broken_yaml_is_shown_with_its_position() {
    insta::assert_snapshot!(wrong("name: r\nshape: {ring: {nodes: 4}\nseed: 1\n"));
}

#[test]
fn an_unreadable_file_is_reported() {
    let error = Plan::read(std::path::Path::new("/nonexistent/rack.yaml")).unwrap_err();
    assert_eq!((error.mistakes.len(), error.mistakes[0].line), (1, 0));
    assert!(error.to_string().starts_with("error: cannot read the rack file"), "{error}");
    assert!(error.to_string().contains("--> /nonexistent/rack.yaml"), "{error}");
}

#[test]
fn an_empty_file_lacks_name_and_shape() {
    let error = wrong("");
    let messages: Vec<&str> = error.mistakes.iter().map(|mistake| mistake.message.as_str()).collect();
    assert_eq!(messages, ["the rack has no `shape`", "the rack has no `name`"]);
}

#[test]
fn absurd_sizes_cost_a_message_and_no_memory() {
    for shape in [
        "ring: {nodes: 4000000000}",
        "ring: {nodes: 1}",
        "ring: {nodes: 257}",
        "star: {nodes: 16384}",
        "star: {nodes: 4, planes: 13}",
        "star: {nodes: 4, planes: 0}",
        "full-mesh: {nodes: 363}",
        "full-mesh: {nodes: 18446744073709551616}",
    ] {
        let error = wrong(&format!("name: r\nshape: {{{shape}}}"));
        assert_eq!(error.mistakes.len(), 1, "{shape}: {error}");
        assert_eq!(error.mistakes[0].line, 2);
    }
    for shape in ["ring: {nodes: 256}", "star: {nodes: 1024, planes: 4}", "full-mesh: {nodes: 362}"] {
        let text = format!("name: r\nshape: {{{shape}}}\nring_bytes: 64KiB");
        assert!(Plan::parse(&text, "rack.yaml").is_ok(), "{shape}");
    }
}

#[test]
fn a_value_that_cannot_be_read_is_reported_once() {
    expect("timers: {heartbeat_interval: 100, hold_down: 10us}", &["has no unit"]);
    expect("link: {corrupt: lots}\nchecks: never", &["`lots` is not a probability"]);
    expect("credits: {limit: many}\nring_bytes: 4KiB", &["`many` is not a whole number"]);
}

#[test]
fn control_characters_of_the_file_are_not_printed() {
    let shown = wrong("name: \"\\e[31mred\"\nshape: {ring: {nodes: 4}}\n\"\\e[2J\": 1\n").to_string();
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}
