//! The guide says of each public method of the fabric's types how C has it, or that C leaves it out.

use std::collections::BTreeSet;
use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the functions and methods of `rackloom::fabric` in the list of the API, as `Type::method` or `function`.
fn methods() -> BTreeSet<String> {
    let list = read("../node/public-api.txt");
    let functions = list.lines().filter_map(|line| line.split_once("fn rackloom::fabric::"));
    let functions = functions.filter(|(before, _)| ["", "const ", "unsafe "].contains(before));
    functions.filter_map(|(_, rest)| rest.split(['(', '<']).next()).map(str::to_owned).collect()
}

/// Returns the names in backquotes of the first column of the tables below a heading.
fn named(heading: &str) -> Vec<String> {
    let guide = read("../../docs/c-library.md");
    let section = guide.split(&format!("## {heading}\n")).nth(1).expect("the section");
    let section = section.split("\n## ").next().expect("its text");
    let cells = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned);
    names.collect()
}

#[test]
fn each_method_is_in_one_row_of_the_tables() {
    let (methods, named) = (methods(), named("From Rust to C"));
    assert!(methods.len() > 150 && methods.contains("Node::put"), "the search finds too little: {methods:?}");
    let unique: BTreeSet<_> = named.iter().cloned().collect();
    let missing: Vec<_> = methods.difference(&unique).collect();
    let unknown: Vec<_> = unique.difference(&methods).collect();
    assert!(missing.is_empty(), "docs/c-library.md does not say how C has these: {missing:?}");
    assert!(unknown.is_empty(), "docs/c-library.md names methods that do not exist: {unknown:?}");
    assert_eq!(named.len(), unique.len(), "a method is in two rows");
}
