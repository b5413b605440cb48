//! Plain language: words that earlier versions used do not come back.
//!
//! `docs/glossary.md` has the terms.

use std::path::{Path, PathBuf};

/// Folders and files that the test reads, relative to the repository's root.
const READ: &[&str] = &[
    "crates",
    "docs",
    "scripts",
    "tests",
    "topologies",
    ".ci",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
];
/// Endings of the files that are read.
const ENDINGS: &[&str] = &["c", "lua", "md", "py", "rs", "sh", "yaml"];

/// Files that are not read, because they list the retired words.
const EXEMPT: &[&str] = &["docs/glossary.md", "tests/language.rs"];
/// Texts of other programs' interfaces that contain a retired word.
const FOREIGN: &[&str] = &["occurrence=a"];
/// Words without a technical meaning here. They are searched in code, comments and texts, in any case.
const RETIRED: &[&str] = &[
    "nobody",
    "somebody",
    "whoever",
    "whatever",
    "everybody",
    "anybody",
    "befall",
    "befalls",
    "befallen",
    "befell",
    "lest",
    "whence",
    "whosoever",
    "commonplace",
    "farewell",
    "farewells",
    "scribe",
    "diary",
    "deed",
    "deeds",
    "occurrence",
    "occurrences",
    "spoilt",
    "doorman",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the lines with a retired word, as `line: word`. Parts of identifiers are words of their own.
fn retired(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let lower = FOREIGN.iter().fold(line.to_lowercase(), |line, text| line.replace(text, ""));
        let words = lower.split(|character: char| !character.is_ascii_alphabetic());
        found.extend(words.filter(|word| RETIRED.contains(word)).map(|word| format!("{number}: {word}")));
    }
    found
}

/// Adds the files of a folder, or the file itself.
fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_file() {
        found.push(path.to_owned());
        return;
    }
    for entry in std::fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir()
            || path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known))
        {
            files(&path, found);
        }
    }
}

#[test]
fn rewritten_texts_have_no_retired_words() {
    let mut paths = Vec::new();
    READ.iter().for_each(|name| files(&root().join(name), &mut paths));
    let left_out: Vec<_> = EXEMPT.iter().map(|name| root().join(name)).collect();
    paths.retain(|path| !left_out.iter().any(|folder| path.starts_with(folder)));
    assert!(paths.len() > 500, "only {} files", paths.len());
    let mut found = Vec::new();
    for path in &paths {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        found.extend(retired(&text).iter().map(|line| format!("{}:{line}", path.display())));
    }
    assert!(found.is_empty(), "retired words; docs/glossary.md has the terms:\n{}", found.join("\n"));
}

#[test]
fn retired_words_are_found_in_comments_and_names_and_not_inside_other_words() {
    assert_eq!(
        retired("fn x() {}\n/// Nobody waits.\nlet bid_farewell = indeed;"),
        ["2: nobody", "3: farewell"]
    );
}
