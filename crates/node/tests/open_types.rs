//! Tests that every public enum may get another variant without breaking programs: each is `non_exhaustive`, unless a reason is given here.
//!
//! The test reads the sources: the crate's own enums, and those of other crates that [`rackloom::fabric`] re-exports.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Enums that stay closed, with the reason.
const CLOSED: &[(&str, &str)] = &[
    (
        "Collective",
        "a program that carries collectives out must know what it does with each; another one is a new release",
    ),
    ("ElementType", "as collectives: code that stores or reduces elements must know all of them"),
    ("Grant", "code that watches a seat's wires must know every wire, or it would report none of them"),
    ("SignalKind", "the wire law has these two; a third is another wire format"),
    ("Width", "the wire law has words of 4 and 8 bytes and no others"),
];

/// Collects every `pub enum` below a directory, and whether it is `non_exhaustive`.
fn enums(directory: &Path, found: &mut BTreeMap<String, bool>) {
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path: PathBuf = entry.path();
        if path.is_dir() {
            enums(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            enums_of(&std::fs::read_to_string(&path).unwrap(), found);
        }
    }
}

fn enums_of(text: &str, found: &mut BTreeMap<String, bool>) {
    let mut is_open = false;
    // A macro that declares an enum indents it.
    for line in text.lines().map(str::trim_start) {
        if let Some(rest) = line.strip_prefix("pub enum ") {
            let name = rest.split(|character: char| !character.is_alphanumeric()).next().unwrap();
            found.insert(name.to_owned(), is_open);
        }
        // Attributes and documentation stand directly above an item. Any other line ends them.
        is_open = line == "#[non_exhaustive]" || is_open && line.starts_with(['#', '/']);
    }
}

/// Returns the names between the braces of a `pub use` of this crate.
fn re_exported(text: &str, from: &str) -> Vec<String> {
    let (_, rest) = text.split_once(&format!("pub use {from}::{{")).expect("the crate is handed on");
    let names = rest.split('}').next().unwrap().split(',').map(|name| name.trim().to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

#[test]
fn every_public_enum_is_non_exhaustive_or_has_a_reason() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut own = BTreeMap::new();
    enums(&crates.join("node/src"), &mut own);
    let surface = std::fs::read_to_string(crates.join("node/src/fabric/mod.rs")).unwrap();
    for name in ["collectives", "protocol"] {
        let mut others = BTreeMap::new();
        enums(&crates.join(name).join("src"), &mut others);
        let names = re_exported(&surface, &format!("rackloom_{name}"));
        let enums = names.into_iter().filter_map(|name| others.remove_entry(&name));
        let before = own.len();
        own.extend(enums);
        assert!(own.len() > before, "{name} hands on enums");
    }
    let grants = std::fs::read_to_string(crates.join("control/src/grant.rs")).unwrap();
    enums_of(&grants, &mut own);
    let closed: Vec<_> =
        own.iter().filter(|(_, is_open)| !**is_open).map(|(name, _)| name.as_str()).collect();
    let expected: Vec<_> = CLOSED.iter().map(|(name, _)| *name).collect();
    assert_eq!(closed, expected, "closed enums; hint: `#[non_exhaustive]`, or a reason above");
}

#[test]
fn the_reader_of_sources_finds_closed_and_open_enums() {
    let mut found = BTreeMap::new();
    let text = "#[non_exhaustive]\n/// Said.\n#[derive(Debug)]\npub enum Open {\n}\n\npub enum Closed {\n}\n";
    enums_of(text, &mut found);
    assert_eq!(found, BTreeMap::from([("Open".to_owned(), true), ("Closed".to_owned(), false)]));
}
