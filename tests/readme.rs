//! The README is true: its commands run, and the shown output equals the real one.
//!
//! Values that differ from run to run are masked before the comparison: times, rates, process ids, and the number of frames for
//! a number of operations. Counts of operations, sizes of memory and names must be equal.

mod support;

use support::{rackloom, root};

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).expect("README.md is there")
}

/// Columns that differ from run to run, by the first column of a table's heading.
fn varying_columns(heading: &str) -> &'static [&'static str] {
    match heading {
        "member" => &["process"],
        // Compare-swap loops retry as often as they must; flushes and waits may find nothing left to do.
        "operation" => &["p50", "p99", "max"],
        "link" => &["frames", "on the wire", "retransmitted", "dropped"],
        _ => &[],
    }
}

/// Returns the reproducible part of printed output. Columns are split at two blanks, as the tables are set. The table of
/// events is left out: a busy machine makes a heartbeat late, and the report contains that.
fn constant_part(output: &str) -> Vec<String> {
    let mut headings: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    let tables = output.split("\n\n").filter(|table| !table.trim_start().starts_with("at  "));
    for line in tables.flat_map(str::lines) {
        let cells: Vec<String> =
            line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect();
        if cells.first().is_some_and(|cell| matches!(cell.as_str(), "member" | "operation" | "link")) {
            headings = cells.clone();
        }
        let Some(first) = cells.first().cloned() else { continue };
        let varies = headings.first().map_or(&[][..], |heading| varying_columns(heading));
        let is_row = cells != headings && !headings.is_empty() && cells.len() > 1;
        if is_row {
            let kept = headings.iter().zip(&cells).filter(|(heading, _)| !varies.contains(&heading.as_str()));
            let retried = first.starts_with("compare-swap");
            let kept: Vec<_> = kept.map(|(_, cell)| cell.clone()).collect();
            lines.push(if retried { first } else { kept.join(" | ") });
        } else {
            let is_number = |word: &str| word.contains(|character: char| character.is_ascii_digit());
            let units = ["ns", "us", "ms", "s"];
            let words = line.split_whitespace().filter(|word| !is_number(word) && !units.contains(word));
            lines.push(words.collect::<Vec<_>>().join(" "));
        }
    }
    lines
}

/// The first block of shown output.
fn shown_output(readme: &str) -> &str {
    let (_, after) = readme.split_once("```text\n").expect("README.md shows output");
    after.split_once("```").expect("the block ends").0
}

/// Returns the arguments of the commands that an indented line shows, without a comment behind them.
fn commands(readme: &str) -> Vec<Vec<String>> {
    let shown = readme.lines().filter_map(|line| {
        let line = line.strip_prefix("    ")?.split('#').next()?.trim();
        line.strip_prefix("cargo run --release -- ").or_else(|| line.strip_prefix("rackloom "))
    });
    shown.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

#[test]
fn the_output_shown_is_the_output_there_is() {
    let readme = readme();
    let first = commands(&readme).into_iter().next().expect("README.md shows a command");
    let ended = rackloom(&first.iter().map(String::as_str).collect::<Vec<_>>()).finish();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!(constant_part(shown_output(&readme)), constant_part(&ended.stdout));
}

#[test]
fn every_command_shown_succeeds() {
    let commands = commands(&readme());
    assert!(commands.len() >= 4, "only {} commands were found", commands.len());
    for arguments in &commands[1..] {
        let ended = rackloom(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).finish();
        assert_eq!(ended.code, Some(0), "{arguments:?}\n{}\n{}", ended.stdout, ended.stderr);
    }
}
