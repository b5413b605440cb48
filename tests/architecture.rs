//! Dependencies between crates, and paths that documents name.
//!
//! The design of Rackloom rests on absences: the protocol core has no clock and no socket, the simulator has
//! no process, the node has no simulator. One dependency can break that, so this test reads `cargo metadata`
//! and compares every edge with the table below. The second half opens each path that the documents name. The
//! test does not judge the use of allowed dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

/// Allowed direct dependencies. A crate that is missing here fails the test, so a new crate needs an entry first.
const ALLOWED: &[(&str, &[&str])] = &[
    ("rackloom-protocol", &[]),
    ("rackloom-plan", &["rackloom-collectives", "rackloom-protocol"]),
    ("rackloom-collectives", &[]),
    ("rackloom-workloads", &["rackloom-collectives"]),
    ("rackloom-compare", &["rackloom-control"]),
    ("rackloom-control", &["rackloom-plan", "rackloom-protocol"]),
    (
        "rackloom-jobs",
        &[
            "rackloom-collectives",
            "rackloom-control",
            "rackloom-plan",
            "rackloom-protocol",
            "rackloom-workloads",
        ],
    ),
    (
        "rackloom-simulator",
        &[
            "rackloom-collectives",
            "rackloom-jobs",
            "rackloom-plan",
            "rackloom-protocol",
            "rackloom-workloads",
        ],
    ),
    (
        "rackloom-experiments",
        &[
            "rackloom-capture",
            "rackloom-drawing",
            "rackloom-jobs",
            "rackloom-plan",
            "rackloom-protocol",
            "rackloom-simulator",
            "rackloom-workloads",
        ],
    ),
    ("rackloom-capture", &["rackloom-plan", "rackloom-protocol"]),
    ("rackloom-export", &["rackloom-control"]),
    (
        "rackloom",
        &["rackloom-collectives", "rackloom-control", "rackloom-gpu", "rackloom-plan", "rackloom-protocol"],
    ),
    ("rackloom-calibrate", &[]),
    (
        "rackloom-bench",
        &[
            "rackloom",
            "rackloom-calibrate",
            "rackloom-jobs",
            "rackloom-plan",
            "rackloom-protocol",
            "rackloom-runtime",
            "rackloom-simulator",
        ],
    ),
    ("rackloom-drawing", &[]),
    ("rackloom-page", &["rackloom-control", "rackloom-drawing"]),
    ("rackloom-gpu", &[]),
    (
        "rackloom-fuzz",
        &[
            "rackloom-capture",
            "rackloom-collectives",
            "rackloom-jobs",
            "rackloom-plan",
            "rackloom-protocol",
            "rackloom-workloads",
        ],
    ),
    ("rackloom-models", &[]),
    ("rackloom-sweep-parquet", &[]),
    // Tests compare names of environment variables.
    ("rackloom-verbs", &["rackloom", "rackloom-control"]),
    ("rackloom-ibverbs", &["rackloom-verbs"]),
    ("rackloom-device-files", &[]),
    (
        "rackloom-runtime",
        &[
            "rackloom",
            "rackloom-capture",
            "rackloom-collectives",
            "rackloom-control",
            "rackloom-export",
            "rackloom-fuzz",
            "rackloom-jobs",
            "rackloom-plan",
            "rackloom-protocol",
            "rackloom-workloads",
        ],
    ),
    ("rackloom-capi", &["rackloom", "rackloom-plan", "rackloom-runtime"]),
    (
        "rackloom-cli",
        &[
            "rackloom",
            "rackloom-capi",
            "rackloom-capture",
            "rackloom-collectives",
            "rackloom-compare",
            "rackloom-control",
            "rackloom-drawing",
            "rackloom-experiments",
            "rackloom-export",
            "rackloom-gpu",
            "rackloom-jobs",
            "rackloom-page",
            "rackloom-plan",
            "rackloom-protocol",
            "rackloom-runtime",
            "rackloom-simulator",
            "rackloom-workloads",
        ],
    ),
];

/// Packages that a crate must not reach over any number of edges, because they would break its guarantees.
const OUT_OF_REACH: &[(&str, &[&str])] = &[
    ("rackloom-protocol", &["serde", "tokio", "rustix", "libc", "nix", "socket2", "mio", "rand", "memmap2"]),
    ("rackloom-plan", &["tokio", "rustix", "memmap2", "socket2"]),
    ("rackloom-collectives", &["serde", "tokio", "rustix", "libc", "memmap2", "socket2"]),
    ("rackloom-compare", &["tokio", "rustix", "memmap2", "socket2", "clap"]),
    ("rackloom-control", &["tokio", "rustix", "memmap2", "socket2"]),
    ("rackloom-jobs", &["tokio", "rustix", "memmap2", "socket2"]),
    ("rackloom-simulator", &["tokio", "rustix", "memmap2", "socket2", "rackloom"]),
    ("rackloom-experiments", &["tokio", "rustix", "memmap2", "socket2", "rackloom"]),
    ("rackloom-export", &["tokio", "rustix", "memmap2", "socket2", "clap"]),
    ("rackloom-capture", &["tokio", "rustix", "memmap2", "socket2", "rackloom"]),
    ("rackloom", &["rackloom-simulator", "rackloom-jobs"]),
    ("rackloom-calibrate", &["serde", "tokio", "tracing", "clap"]),
    ("rackloom-drawing", &["serde", "tokio", "tracing", "clap"]),
    ("rackloom-page", &["tokio", "rustix", "memmap2", "socket2", "clap", "rackloom"]),
    ("rackloom-gpu", &["serde", "tokio", "tracing", "clap"]),
    ("rackloom-capi", &["clap", "comfy-table", "indicatif", "rackloom-simulator"]),
    ("rackloom-cli", &["rackloom-bench", "rackloom-calibrate", "rackloom-capi"]),
    ("rackloom-runtime", &["clap", "comfy-table", "indicatif", "rackloom-simulator"]),
    ("rackloom-verbs", &["clap", "comfy-table", "indicatif", "rackloom-runtime", "rackloom-simulator"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace is there")
}

fn metadata() -> Metadata {
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .other_options(["--locked".into(), "--filter-platform".into(), host])
        .exec()
        .expect("cargo metadata answers")
}

/// Returns the edges between our own crates that the table does not allow.
fn forbidden_edges(metadata: &Metadata, allowed: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let ours: BTreeSet<_> =
        metadata.workspace_packages().iter().map(|package| package.name.to_string()).collect();
    let mut found = Vec::new();
    for package in metadata.workspace_packages() {
        let Some(may_use) = allowed.get(package.name.as_str()) else {
            found.push(format!("{} is not in the table", package.name));
            continue;
        };
        for dependency in &package.dependencies {
            if ours.contains(&dependency.name) && !may_use.contains(dependency.name.as_str()) {
                found.push(format!("{} -> {}", package.name, dependency.name));
            }
        }
    }
    found
}

/// Returns every package that `from` is built with. Dependencies of its tests do not count.
fn reachable(metadata: &Metadata, from: &str) -> BTreeSet<String> {
    let resolve = metadata.resolve.as_ref().expect("metadata carries the resolved graph");
    let nodes: BTreeMap<&PackageId, _> = resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    let mut open: Vec<&PackageId> =
        metadata.packages.iter().filter(|package| package.name == from).map(|package| &package.id).collect();
    let mut seen: BTreeSet<&PackageId> = BTreeSet::new();
    while let Some(id) = open.pop() {
        for dependency in &nodes[id].deps {
            let built_with = dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal);
            if built_with && seen.insert(&dependency.pkg) {
                open.push(&dependency.pkg);
            }
        }
    }
    seen.iter().map(|id| metadata[id].name.to_string()).collect()
}

fn table() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    ALLOWED.iter().map(|(from, to)| (*from, to.iter().copied().collect())).collect()
}

#[test]
fn crates_use_only_the_crates_below_them() {
    assert_eq!(forbidden_edges(&metadata(), &table()), Vec::<String>::new());
}

#[test]
fn an_edge_missing_in_the_table_is_found() {
    let mut allowed = table();
    allowed.get_mut("rackloom-cli").expect("cli is in the table").remove("rackloom-simulator");
    assert_eq!(forbidden_edges(&metadata(), &allowed), ["rackloom-cli -> rackloom-simulator"]);
}

#[test]
fn crates_do_not_reach_packages_that_break_their_guarantees() {
    let metadata = metadata();
    for (crate_name, forbidden) in OUT_OF_REACH {
        let reached = reachable(&metadata, crate_name);
        let broken: Vec<_> = forbidden.iter().filter(|name| reached.contains(**name)).collect();
        assert!(broken.is_empty(), "{crate_name} is built with {broken:?}");
    }
}

#[test]
fn the_core_is_no_std_and_forbids_unsafe_code() {
    let source =
        std::fs::read_to_string(root().join("crates/protocol/src/lib.rs")).expect("the core is there");
    for line in ["#![no_std]", "#![forbid(unsafe_code)]"] {
        assert!(source.lines().any(|found| found == line), "crates/protocol/src/lib.rs lacks {line}");
    }
}

/// Returns the spans between single backticks, outside of fenced blocks.
fn code_spans(markdown: &str) -> Vec<String> {
    let mut spans = Vec::new();
    let mut fenced = false;
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            spans.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    spans
}

/// Returns whether a span names a file or folder of this repository. Globs, placeholders, absolute paths, addresses,
/// units (`bit/s`) and queue pairs (`n0/3`) do not.
fn names_a_path(span: &str) -> bool {
    let shaped = span.contains('/') || [".rs", ".yaml", ".sh", ".md"].iter().any(|end| span.ends_with(end));
    let literal =
        !span.contains([' ', '<', '*', '{', '|', '$']) && !span.contains("..") && !span.contains("://");
    let ends_with_number =
        span.rsplit_once('/').is_some_and(|(_, end)| end.chars().all(|digit| digit.is_ascii_digit()));
    let literal = literal && !span.ends_with("/s") && (!ends_with_number || span.ends_with('/'));
    shaped && literal && !span.starts_with(['/', '-'])
}

fn documents() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    let mut open = vec![root().join("docs")];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("docs is there") {
            let path = entry.expect("docs can be listed").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn each_path_that_the_documents_name_exists() {
    let mut named = 0;
    let mut missing = Vec::new();
    for document in documents() {
        let text = std::fs::read_to_string(&document).expect("the document can be read");
        let folder = document.parent().expect("a document lies in a folder");
        for span in code_spans(&text).into_iter().filter(|span| names_a_path(span)) {
            named += 1;
            if !root().join(&span).exists() && !folder.join(&span).exists() {
                missing.push(format!("{} names `{span}`", document.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(named > 20, "only {named} paths were found: has the search gone blind?");
}

/// Returns the pages of `docs/decisions`, as paths relative to `docs`, to which these texts have no reference.
fn unlisted_decisions(texts: &[&str]) -> Vec<String> {
    let pages = std::fs::read_dir(root().join("docs/decisions")).expect("the decisions are there");
    let names = pages.map(|page| page.expect("a page").file_name().to_string_lossy().into_owned());
    let paths = names.map(|name| format!("decisions/{name}"));
    paths.filter(|path| !texts.iter().all(|text| text.contains(path.as_str()))).collect()
}

#[test]
fn each_decision_is_in_the_index_and_in_the_navigation_of_the_book() {
    let read = |name| std::fs::read_to_string(root().join(name)).expect("the file can be read");
    let (index, book) = (read("docs/index.md"), read("mkdocs.yml"));
    assert_eq!(unlisted_decisions(&[&index, &book]), Vec::<String>::new(), "in docs/index.md and mkdocs.yml");
    // A page that only one of the files has is found.
    let without = index.replace("decisions/settings.md", "");
    assert_eq!(unlisted_decisions(&[&without, &book]), ["decisions/settings.md"]);
}

/// Returns counts of items that are added over time: `ten crates`, `16 experiments`, `the sixteen`.
fn counts(text: &str) -> Vec<String> {
    const COUNTED: [&str; 3] = ["crates", "experiments", "commands"];
    const NUMBERS: [&str; 19] = [
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
    ];
    let words: Vec<_> =
        text.split_whitespace().map(|word| word.trim_end_matches(['.', ',', ';', ':'])).collect();
    let is_number = |word: &str| {
        let is_word = NUMBERS.contains(&word.to_lowercase().as_str());
        is_word || word.parse::<u32>().is_ok_and(|number| number > 1)
    };
    let pairs = words.windows(2).filter(|pair| is_number(pair[0]) && COUNTED.contains(&pair[1]));
    pairs.map(|pair| pair.join(" ")).collect()
}

#[test]
fn documents_state_no_counts_of_items_that_are_added_over_time() {
    assert_eq!(
        counts("It has ten crates, and 16 experiments of one crate."),
        ["ten crates", "16 experiments"]
    );
    for document in documents() {
        let text = std::fs::read_to_string(&document).expect("a document");
        assert_eq!(counts(&text), [""; 0], "{}", document.display());
        assert!(!text.contains("the sixteen."), "{}", document.display());
    }
}

#[test]
fn spans_are_separated_from_prose() {
    let spans =
        code_spans("see `crates/cli` and `a b/c`\n```\n`not/this`\n```\n`docs/<name>.md` `tests/kill.rs`");
    let paths: Vec<_> = spans.into_iter().filter(|span| names_a_path(span)).collect();
    assert_eq!(paths, ["crates/cli", "tests/kill.rs"]);
}

/// Adds the Rust files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the repository").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the lines that report a skip with a macro whose output the runner of passing tests captures.
fn swallowed(text: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    // The macros for standard error end in the same names.
    for macro_name in ["println!(", "print!("] {
        for (at, _) in text.match_indices(macro_name) {
            let argument = text[at + macro_name.len()..].trim_start().to_lowercase();
            if argument.starts_with("\"skipped") {
                lines.push(text[..at].matches('\n').count() + 1);
            }
        }
    }
    lines
}

/// Output to standard error itself reaches the log of continuous integration, where skips are counted.
#[test]
fn skips_are_reported_where_the_test_runner_does_not_capture_them() {
    let example = format!("println{}(\n    \"SKIPPED (1): nothing\"\n)", '!');
    assert_eq!(swallowed(&example), [1], "the search finds what it is for");
    let mut files = Vec::new();
    ["crates", "tests"].into_iter().for_each(|folder| sources(&root().join(folder), &mut files));
    assert!(files.len() > 300, "sources are missing: {}", files.len());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source can be read");
        assert_eq!(swallowed(&text), [0; 0], "{}: write to `std::io::stderr()`", file.display());
    }
}

/// Planted bugs are only for tests that enable them by name.
#[test]
fn no_build_has_planted_bugs_by_default() {
    const FEATURE: &str = "planted-bugs";
    let metadata = metadata();
    let mut declared = 0;
    for package in metadata.workspace_packages() {
        declared += usize::from(package.features.contains_key(FEATURE));
        let usual = package.features.get("default").into_iter().flatten();
        assert!(usual.clone().all(|feature| !feature.contains(FEATURE)), "{} has them", package.name);
        let requested = package.dependencies.iter().flat_map(|dependency| &dependency.features);
        assert!(
            requested.clone().all(|feature| !feature.contains(FEATURE)),
            "{} requests them",
            package.name
        );
    }
    assert!(declared >= 2, "the feature has another name now, and this test checks nothing");
}
