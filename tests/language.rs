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

/// Openings of documentation that say nothing alone, in lower case.
const OPENINGS: &[&str] = &["the same", "another", "as above", "how", "what", "whether"];

/// Parts of names for which the glossary has other terms, such as deadline, send, receive, reference, query.
const RETIRED_PARTS: &[&str] = &[
    "patience",
    "told",
    "untold",
    "heard",
    "asked",
    "asker",
    "trouble",
    "troubles",
    "fate",
    "fates",
    "voice",
    "stranger",
    "strangers",
    "lend",
    "lender",
    "lent",
    "loan",
    "loans",
    "loaned",
    "attend",
    "attended",
    "attendant",
    "attendance",
    "babble",
    "befriend",
    "blame",
    "blamed",
    "believe",
    "believed",
    "crew",
    "crews",
    "crooked",
    "deaf",
    "defiant",
    "excuse",
    "excused",
    "excuses",
    "fade",
    "faded",
    "favour",
    "favoured",
    "favourite",
    "felt",
    "friend",
    "furnish",
    "greeted",
    "haste",
    "hasty",
    "hoped",
    "hurried",
    "hurry",
    "impostor",
    "insist",
    "intrude",
    "intruder",
    "liar",
    "newcomer",
    "obey",
    "obstacle",
    "owe",
    "owed",
    "owes",
    "recall",
    "recalled",
    "remind",
    "reminder",
    "roused",
    "scribble",
    "stirred",
    "stirs",
    "testify",
    "trespass",
    "unhold",
    "vain",
    "room",
    "rooms",
    "news",
    "toy",
    "scene",
    "keeper",
    "dice",
    "ask",
    "asks",
    "asking",
    "talk",
    "hear",
    "whom",
    "why",
    "everyone",
    "nonsense",
    "circumstances",
];
/// Words that are retired in texts, comments and documents as well, except in `CHANGELOG.md`, which has old names.
const RETIRED_IN_TEXTS: &[&str] = &["told", "asked", "news", "patience", "excused", "room", "rooms"];
/// Phrases that are retired wherever [`RETIRED_IN_TEXTS`] are.
const RETIRED_PHRASES: &[&str] = &["under way"];

/// Crates whose code has none of [`RETIRED_PARTS`].
const PLAIN_CRATES: &[&str] = &[
    "bench",
    "calibrate",
    "capi",
    "capture",
    "cli",
    "collectives",
    "compare",
    "control",
    "drawing",
    "experiments",
    "export",
    "fuzz",
    "gpu",
    "jobs",
    "models",
    "node",
    "page",
    "plan",
    "protocol",
    "runtime",
    "simulator",
    "sweep-parquet",
    "verbs",
    "workloads",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the lines with a retired word, as `line: word`. Parts of identifiers are words of their own.
fn retired(text: &str) -> Vec<String> {
    lines_with(text, RETIRED)
}

/// Returns the lines with one of these words, as `line: word`.
fn lines_with(text: &str, retired: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let lower = FOREIGN.iter().fold(line.to_lowercase(), |line, text| line.replace(text, ""));
        let words = lower.split(|character: char| !character.is_ascii_alphabetic());
        found.extend(words.filter(|word| retired.contains(word)).map(|word| format!("{number}: {word}")));
    }
    found
}

/// Returns the documentation comments that begin with one of [`OPENINGS`], as `line: opening`.
fn poor_openings(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut before = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let marker = ["///", "//!"].into_iter().find(|marker| line.starts_with(marker));
        if let Some(marker) = marker.filter(|_| marker != before) {
            let words = line[marker.len()..].trim_start().to_lowercase();
            let begins_with = |opening: &&&str| {
                words.strip_prefix(**opening).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
            };
            found.extend(OPENINGS.iter().find(begins_with).map(|opening| format!("{number}: {opening}")));
        }
        before = marker;
    }
    found
}

/// Returns the code of a file. Comments and texts are blanks, and lines keep their numbers.
fn code(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(hashes) = raw_text(rest) {
            let end = format!("\"{}", "#".repeat(hashes));
            let begin = hashes + 2;
            rest[begin..].find(&end).map_or(rest.len(), |length| begin + length + end.len())
        } else if character == '"' {
            text_length(rest)
        } else {
            // A quote may be the only character of a literal.
            let quote = ["'\"'", "'\\\"'"].into_iter().find(|quote| rest.starts_with(quote));
            if quote.is_none() {
                code.push(character);
            }
            rest = &rest[quote.map_or(character.len_utf8(), str::len)..];
            continue;
        };
        code.extend(rest[..skipped].chars().map(|character| if character == '\n' { '\n' } else { ' ' }));
        rest = &rest[skipped..];
    }
    code
}

/// Returns the number of `#` of a raw text that begins here, or `None`.
fn raw_text(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

/// Returns the length of a text with its quotes.
fn text_length(rest: &str) -> usize {
    let mut is_escaped = false;
    for (index, character) in rest.char_indices().skip(1) {
        match character {
            '"' if !is_escaped => return index + 1,
            _ => is_escaped = character == '\\' && !is_escaped,
        }
    }
    rest.len()
}

/// Returns the names of the code with one of [`RETIRED_PARTS`], as `line: name`.
fn retired_names(text: &str) -> Vec<String> {
    names_with(text, RETIRED_PARTS)
}

/// Returns the names of the code with one of these parts, as `line: name`.
fn names_with(text: &str, retired: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(code(text).lines()) {
        let names = line.split(|character: char| !(character.is_ascii_alphanumeric() || character == '_'));
        let is_retired = |name: &&str| parts(name).iter().any(|part| retired.contains(&part.as_str()));
        found.extend(names.filter(is_retired).map(|name| format!("{number}: {name}")));
    }
    found
}

/// Returns the parts of a name in lower case: `is_told` and `IsTold` have two.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for character in name.chars() {
        if character == '_' || character.is_ascii_uppercase() && was_lower {
            parts.push(String::new());
        }
        was_lower = character.is_ascii_lowercase();
        if let Some(part) = parts.last_mut().filter(|_| character != '_') {
            part.push(character.to_ascii_lowercase());
        }
    }
    parts
}

/// Applies a rule to all sources below these folders. Fails with everything that the rule finds.
fn holds(folders: &[PathBuf], rule: fn(&str) -> Vec<String>, advice: &str) {
    let mut paths = Vec::new();
    folders.iter().for_each(|folder| files(folder, &mut paths));
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "rs"));
    paths.retain(|path| !path.ends_with("tests/language.rs"));
    assert!(paths.len() > 100, "only {} files", paths.len());
    let mut found = Vec::new();
    for path in &paths {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        found.extend(rule(&text).iter().map(|line| format!("{}:{line}", path.display())));
    }
    assert!(found.is_empty(), "{advice}:\n{}", found.join("\n"));
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

/// Returns the files below [`READ`] that are not below one of `left_out`.
fn files_but(left_out: &[&str]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    READ.iter().for_each(|name| files(&root().join(name), &mut paths));
    let left_out: Vec<_> = left_out.iter().map(|name| root().join(name)).collect();
    paths.retain(|path| !left_out.iter().any(|folder| path.starts_with(folder)));
    assert!(paths.len() > 500, "only {} files", paths.len());
    paths
}

/// Fails if one of these files has one of these words.
fn have_none_of(paths: &[PathBuf], retired: &[&str]) {
    let mut found = Vec::new();
    for path in paths {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        found.extend(lines_with(&text, retired).iter().map(|line| format!("{}:{line}", path.display())));
    }
    assert!(found.is_empty(), "retired words; docs/glossary.md has the terms:\n{}", found.join("\n"));
}

#[test]
fn rewritten_texts_have_no_retired_words() {
    have_none_of(&files_but(EXEMPT), RETIRED);
    have_none_of(&files_but(&[EXEMPT, &["CHANGELOG.md"]].concat()), RETIRED_IN_TEXTS);
}

/// Returns the places of a retired phrase, as `line: phrase`. A phrase may continue on the next line, also of a comment.
fn retired_phrases(text: &str) -> Vec<String> {
    let words = |line: &str| -> Vec<String> {
        let words = line.split(|character: char| !character.is_ascii_alphabetic());
        words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
    };
    let words: Vec<_> = (1..)
        .zip(text.lines())
        .flat_map(|(number, line)| words(line).into_iter().map(move |word| (number, word)))
        .collect();
    let mut found = Vec::new();
    for phrase in RETIRED_PHRASES {
        let parts: Vec<_> = phrase.split(' ').collect();
        let places = words.windows(parts.len()).filter(|place| place.iter().map(|(_, word)| word).eq(&parts));
        found.extend(places.map(|place| format!("{}: {phrase}", place[0].0)));
    }
    found
}

#[test]
fn texts_have_no_retired_phrases() {
    let mut found = Vec::new();
    for path in files_but(&[EXEMPT, &["CHANGELOG.md"]].concat()) {
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        found.extend(retired_phrases(&text).iter().map(|line| format!("{}:{line}", path.display())));
    }
    assert!(found.is_empty(), "retired phrases; docs/glossary.md has the terms:\n{}", found.join("\n"));
}

#[test]
fn a_planted_phrase_is_found_on_one_line_and_across_two() {
    let text =
        "// Frames under way.\n/// What is under\n/// way ends.\n// A way under the bridge, underway.\n";
    assert_eq!(retired_phrases(text), ["1: under way", "2: under way"]);
}

/// Returns true if a part of a file's name is retired. Parts are separated by `-`, `_` and `.`.
fn is_retired_file(name: &str) -> bool {
    let mut parts = name.split(['-', '_', '.']);
    parts.any(|part| RETIRED.contains(&part) || RETIRED_PARTS.contains(&part))
}

#[test]
fn names_of_files_have_no_retired_parts() {
    let name_of = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    let mut paths = files_but(&[]);
    paths.retain(|path| is_retired_file(&name_of(path)));
    assert_eq!(paths, Vec::<PathBuf>::new(), "retired names; docs/glossary.md has the terms");
    assert!(is_retired_file("buffer-that-nobody-shares.yaml") && is_retired_file("group_room.rs"));
    assert!(!is_retired_file("mushroom.rs"));
}

#[test]
fn retired_words_are_found_in_comments_and_names_and_not_inside_other_words() {
    assert_eq!(
        retired("fn x() {}\n/// Nobody waits.\nlet bid_farewell = indeed;"),
        ["2: nobody", "3: farewell"]
    );
}

#[test]
fn documentation_begins_with_a_statement() {
    let folders = ["crates", "tests"].map(|folder| root().join(folder));
    holds(&folders, poor_openings, "documentation must make sense alone; say what the item is or does");
}

/// Returns the folders of these crates, and that of the tests of the whole.
fn sources(crates: &[&str]) -> Vec<PathBuf> {
    let folders = crates.iter().map(|name| root().join("crates").join(name));
    folders.chain([root().join("tests")]).collect()
}

#[test]
fn names_have_no_retired_parts() {
    holds(&sources(PLAIN_CRATES), retired_names, "retired names; docs/glossary.md has the terms");
}

#[test]
fn every_crate_is_checked() {
    let entries = std::fs::read_dir(root().join("crates")).expect("the folder of the crates");
    let mut crates: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
    crates.sort();
    assert_eq!(crates, PLAIN_CRATES, "a crate is missing in the list");
}

#[test]
fn a_planted_opening_is_found_at_the_beginning_of_a_comment_only() {
    let text = "//! The same as above.\n//! What follows.\n\n/// Whether it waits.\n///\n/// How long.\nfn x() {\n    \
                /// Another field.\n    // What a comment.\n    /// Whatsoever, and however.\n";
    assert_eq!(poor_openings(text), ["1: the same", "4: whether", "8: another"]);
}

#[test]
fn a_planted_name_is_found_in_code_and_not_in_texts_or_comments() {
    let text = "let is_told = 1; // told\nlet text = \"heard\\\" asked\"; struct LastAsker;\nlet raw = r#\"told \" told\"#;\n\
                let quote = '\"'; fn patience() {}\nlet unfolded = task;\n/* nothing */ const HEARD_MAX: u8 = 1;\n";
    assert_eq!(retired_names(text), ["1: is_told", "2: LastAsker", "4: patience", "6: HEARD_MAX"]);
}
