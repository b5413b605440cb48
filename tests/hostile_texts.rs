//! Texts of files and names of files, as the command prints them: none of them controls the terminal, changes the direction of a line, or adds a
//! line of its own.

mod support;

use std::path::{Path, PathBuf};

use serde_json::Value;
use support::{Ended, rack_file, rackloom, scratch, sim};

/// Text with codes of colours, an override of direction, and a code of eight bits that begins a control sequence.
const HOSTILE: &str = "a\u{1b}[31mb\u{202e}c\u{9b}2Jd";
const RACK: &str = "name: plain\nshape: {ring: {nodes: 2}}\n";

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = scratch(name);
    std::fs::write(&path, content).expect("the scratch folder can be written");
    path
}

/// Returns what a command prints, after a check that it has no character of control or direction.
fn printed(arguments: &[&str]) -> Ended {
    let ended = rackloom(arguments).finish();
    for text in [&ended.stdout, &ended.stderr] {
        let is_refused = |one: char| {
            one != '\n'
                && (one.is_control()
                    || matches!(one, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
        };
        let line = text.lines().find(|line| line.contains(is_refused));
        assert_eq!(line, None, "{arguments:?}");
    }
    ended
}

/// Adds a hostile ending to every text below a value, except for those that decide how a report is read.
fn make_hostile(value: &mut Value, name: &str) {
    const KEPT: [&str; 11] =
        ["verdict", "clock", "kind", "version", "versions", "state", "topology", "job", "path", "type", "op"];
    match value {
        _ if KEPT.contains(&name) => {}
        Value::String(text) => *text += &format!("{HOSTILE}\nverdict: pass"),
        Value::Array(values) => values.iter_mut().for_each(|value| make_hostile(value, name)),
        Value::Object(fields) => fields.iter_mut().for_each(|(name, value)| make_hostile(value, name)),
        _ => {}
    }
}

/// Returns the report of a rack, as it is and with hostile texts.
fn reports() -> [PathBuf; 2] {
    let rack = rack_file(RACK);
    let mut report = sim(&rack).with(&["--collective", "all-reduce"]).finish().passed();
    let plain = file("plain.json", report.to_string().as_bytes());
    for list in ["notes", "failures"] {
        report[list].as_array_mut().expect("a list").push("n0 is slow".into());
    }
    report["verdict"] = "fail".into();
    make_hostile(&mut report, "");
    [plain, file("hostile.json", report.to_string().as_bytes())]
}

#[test]
fn names_of_a_workload_are_shown_without_control() {
    let phase = "p\u{202e}q\u{2066}";
    let operations = "rank 0\ncompute 5us\nrank 1\ncompute 5us\n";
    let content = format!("workload w\u{202e}x\nranks 2\nphase {phase}\n{operations}");
    let path = file("names.workload", content.as_bytes());
    let ended = printed(&["workload", "check", text(&path)]);
    assert!(ended.stdout.starts_with("w\u{fffd}x: 2 ranks"), "{}", ended.stdout);
    assert!(ended.stdout.contains("\np\u{fffd}q\u{fffd} "), "{}", ended.stdout);
    let ended = printed(&["sim", text(&rack_file(RACK)), "--workload", text(&path)]);
    assert!(ended.stdout.contains("\np\u{fffd}q\u{fffd} "), "{}", ended.stdout);
    let wrong = file("wrong.workload", format!("ranks 2\n{HOSTILE} 4\nrank {HOSTILE}\n").as_bytes());
    let ended = printed(&["workload", "import", "--format", "rackloom", text(&wrong)]);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("`a\u{fffd}[31mb\u{fffd}c\u{fffd}2Jd` is no operation"),
        "{}",
        ended.stderr
    );
}

#[test]
fn mistakes_in_files_and_names_of_files_are_shown_without_control() {
    let missing = format!("no{HOSTILE}\nerror: forged");
    for arguments in [
        &["check", &missing][..],
        &["workload", "check", &missing],
        &["report", &missing],
        &["decode", &missing],
        &["diff", &missing, &missing],
        &["inject", "script", &missing],
        &["check", "rack.yaml", &format!("--{HOSTILE}")],
        &["status", HOSTILE],
    ] {
        let ended = printed(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}");
        assert!(!ended.stderr.contains("\nerror: forged"), "{}", ended.stderr);
    }
    let rack =
        file(&format!("{HOSTILE}.yaml"), b"name: \"r\\u202e\"\nsh\xe2\x80\xaeape: {ring: {nodes: q}}\n");
    let ended = printed(&["check", text(&rack)]);
    assert!(ended.stderr.contains("sh\u{fffd}ape"), "{}", ended.stderr);
}

#[test]
fn texts_of_a_report_control_nothing_and_add_no_lines() {
    let [plain, hostile] = reports();
    let ended = printed(&["report", text(&hostile)]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let verdicts: Vec<_> = ended.stdout.lines().filter(|line| line.starts_with("verdict")).collect();
    assert_eq!(verdicts, ["verdict: fail"], "{}", ended.stdout);
    for shown in ["\nn0->n1a\u{fffd}[31m", "note: n0 is slowa\u{fffd}", "\n  n0 is slowa\u{fffd}"] {
        assert!(ended.stdout.contains(shown), "{shown} in {}", ended.stdout);
    }
    let ended = printed(&["diff", text(&plain), text(&hostile)]);
    assert!(ended.code < Some(2) && ended.stdout.contains('\u{fffd}'), "{}{}", ended.stdout, ended.stderr);
}

#[test]
fn a_report_of_another_form_is_refused_in_one_line() {
    let [plain, _] = reports();
    let content = std::fs::read_to_string(plain).expect("a report");
    let mut report: Value = serde_json::from_str(&content).expect("JSON");
    report["nodes"][0]["state"] = format!("{HOSTILE}\nerror: forged").into();
    let path = file("form.json", report.to_string().as_bytes());
    let ended = printed(&["report", text(&path)]);
    assert_eq!(ended.code, Some(2));
    assert!(!ended.stderr.contains("\nerror: forged"), "{}", ended.stderr);
}

#[test]
fn names_in_a_capture_are_shown_without_control() {
    let directory = scratch("captures");
    sim(&rack_file(RACK)).with(&["--job", "none", "--capture", text(&directory)]).finish().passed();
    let mut capture = std::fs::read(directory.join("n0-p0--n1-p1.pcapng"))
        .or_else(|_| std::fs::read(directory.join("n0-p0--n1-p0.pcapng")))
        .expect("a capture");
    for index in 1..capture.len() {
        if capture[index - 1..=index] == *b"n0" {
            capture[index - 1] = 0x1b;
        }
    }
    let ended = printed(&["decode", text(&file("hostile.pcapng", &capture))]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("\u{fffd}0-p0 >  hello \u{fffd}0"), "{}", ended.stdout);
}
