//! Fuzz-like tests: reading any text yields a plan that passes its own checks, or mistakes with positions, and never a panic.

use proptest::prelude::*;
use rackloom_plan::Plan;

const EVERY_KEY: &str = include_str!("every-key.yaml");

fn survives(text: &str) {
    match Plan::parse(text, "hostile.yaml") {
        Ok(plan) => assert!(plan.check().is_ok(), "accepted and then refused:\n{text}"),
        Err(error) => {
            assert!(!error.mistakes.is_empty());
            let lines = text.lines().count() as u32;
            // The end of the text is one line beyond its last line.
            assert!(error.mistakes.iter().all(|mistake| mistake.line <= lines + 1), "{error}");
            assert!(!error.to_string().is_empty());
        }
    }
}

/// Generates values that are valid for some key and absurd for others.
fn value() -> impl Strategy<Value = String> {
    let words = [
        "0",
        "1",
        "-1",
        "0x10000",
        "18446744073709551615",
        "1e300",
        "nan",
        "0ns",
        "1ns",
        "99999s",
        "0B",
        "1B",
        "4096B",
        "17GiB",
        "18446744073709551615B",
        "1bit/s",
        "999999Tbit/s",
        "100%",
        "off",
        "~",
        "[]",
        "{}",
        "[1, [2]]",
        "{a: b}",
        "none",
        "packet",
        "true",
        "collective",
        "[left, hub]",
        "{left: [hub]}",
        "{from: 8B, to: 64MiB, factor: 2}",
        "*x",
        "&x y",
        "!!int 7",
        "\"\\0\"",
        "é",
    ];
    prop_oneof![proptest::sample::select(words.to_vec()).prop_map(str::to_owned), "\\PC{0,12}"]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        survives(&text);
        survives(&format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{text}"));
    }

    #[test]
    fn any_value_at_any_position(changes in prop::collection::vec((0_usize..160, value()), 1..4)) {
        let mut lines: Vec<String> = EVERY_KEY.lines().map(str::to_owned).collect();
        for (line, value) in changes {
            let line = line % lines.len();
            if let Some((key, _)) = lines[line].split_once(": ") {
                lines[line] = format!("{key}: {value}");
            }
        }
        survives(&lines.join("\n"));
    }

    #[test]
    fn any_lines_in_any_order(order in prop::collection::vec(0_usize..160, 0..160)) {
        let lines: Vec<&str> = EVERY_KEY.lines().collect();
        let text: Vec<&str> = order.iter().map(|line| lines[line % lines.len()]).collect();
        survives(&text.join("\n"));
    }
}

#[test]
fn a_server_whose_name_is_none_is_a_mistake_also_with_a_local_path() {
    for server in ["[n0, n1]", "{nodes: [n0, n1], local: {latency: 1us}}"] {
        let text =
            format!("name: r\nshape: {{ring: {{nodes: 4}}}}\nservers: {{\"<img src=x>\": {server}}}\n");
        let error = Plan::parse(&text, "rack").expect_err("the name has characters of markup");
        assert!(error.to_string().contains("is not a name of a server"), "{error}");
    }
}
