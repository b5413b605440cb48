//! Exported names and their versions.

use std::collections::BTreeSet;
use std::process::Command;

use super::support::{Library, printed, skip};

/// Returns the names of the list with their versions, as `name@@version`.
fn listed() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut version = "";
    for line in include_str!("../../libibverbs.map").lines().map(str::trim) {
        if let Some(begin) = line.strip_suffix(" {") {
            version = begin;
        } else if let Some(name) = line.strip_suffix(';').filter(|name| {
            name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
        }) {
            names.insert(format!("{name}@@{version}"));
        }
    }
    names
}

#[test]
fn the_library_exports_the_listed_names_with_their_versions_and_no_others() {
    let library = Library::new();
    let mut command = Command::new("nm");
    command.args(["-D", "--defined-only", "--with-symbol-versions"]).arg(library.file());
    if command.output().is_err() {
        skip("the_library_exports_the_listed_names_with_their_versions_and_no_others", "nm is not installed");
        return;
    }
    let symbols = printed(&mut command);
    let functions = symbols.lines().filter(|line| line.contains(" T "));
    let found: BTreeSet<_> =
        functions.filter_map(|line| line.rsplit(' ').next()).map(str::to_owned).collect();
    let listed = listed();
    assert!(listed.len() > 100, "only {} names", listed.len());
    assert!(listed.contains("ibv_open_device@@IBVERBS_1.1"));
    assert!(listed.contains("rdma_establish@@RDMACM_1.2"));
    assert_eq!(found, listed);
}
