//! The README keeps its word: its commands run, and the output it shows is the output there is.
//!
//! Numbers differ from run to run, so of a line that holds any only the first word counts; headings and the verdict count
//! in full.

mod support;

use support::{rackloom, root};

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).expect("README.md is there")
}

/// What of printed output is the same in each run.
fn constant_part(output: &str) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines = output.lines().map(words).filter(|words| !words.is_empty());
    lines
        .map(|words| {
            let varies = words.iter().any(|word| word.contains(|character: char| character.is_ascii_digit()));
            if varies { words[0].clone() } else { words.join(" ") }
        })
        .collect()
}

/// The first block of shown output.
fn shown_output(readme: &str) -> &str {
    let (_, after) = readme.split_once("```text\n").expect("README.md shows output");
    after.split_once("```").expect("the block ends").0
}

/// Arguments of the commands that an indented line shows, without the comment behind them.
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
