//! Each error of the Rust library has a code of its own, and each reason and each algorithm a number.
//!
//! The enumerations may get more variants, so the compiler accepts a match that leaves some out. This test reads them from their source.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use syn::visit::{Visit, visit_arm, visit_pat_tuple_struct};

fn parse(path: &Path) -> syn::File {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    syn::parse_file(&text).expect("a source of Rust")
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the names of the variants of an enumeration.
fn variants(path: &str, name: &str) -> BTreeSet<String> {
    let file = parse(&crates().join(path));
    let found = file.items.into_iter().find_map(|item| match item {
        syn::Item::Enum(item) if item.ident == name => Some(item),
        _ => None,
    });
    let found = found.unwrap_or_else(|| panic!("{path} has no {name}"));
    found.variants.iter().map(|variant| variant.ident.to_string()).collect()
}

/// Variants of an enumeration in the patterns of all matches of a file.
struct Matched {
    name: &'static str,
    variants: BTreeSet<String>,
}

impl Matched {
    fn note(&mut self, path: &syn::Path) {
        let mut segments = path.segments.iter().rev();
        if let (Some(variant), Some(of)) = (segments.next(), segments.next())
            && of.ident == self.name
        {
            self.variants.insert(variant.ident.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for Matched {
    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        match &arm.pat {
            syn::Pat::Struct(pattern) => self.note(&pattern.path),
            syn::Pat::TupleStruct(pattern) => self.note(&pattern.path),
            syn::Pat::Path(pattern) => self.note(&pattern.path),
            _ => {}
        }
        visit_arm(self, arm);
    }

    /// Patterns within patterns, such as those of options.
    fn visit_pat_tuple_struct(&mut self, pattern: &'ast syn::PatTupleStruct) {
        self.note(&pattern.path);
        visit_pat_tuple_struct(self, pattern);
    }
}

/// Returns the variants of an enumeration that a file of this crate translates.
fn translated(name: &'static str, file: &str) -> BTreeSet<String> {
    let mut matched = Matched { name, variants: BTreeSet::new() };
    matched.visit_file(&parse(&crates().join("capi/src").join(file)));
    matched.variants
}

#[test]
fn each_error_of_the_library_has_a_code() {
    let variants = variants("node/src/fabric/error.rs", "Error");
    assert!(
        variants.len() > 15 && variants.contains("OverQuota"),
        "the search finds too little: {variants:?}"
    );
    assert_eq!(translated("Error", "codes.rs"), variants);
}

#[test]
fn each_error_of_a_pool_of_blocks_has_a_code() {
    let variants = variants("node/src/pool/mod.rs", "PoolError");
    assert!(variants.len() > 4, "the search finds too little: {variants:?}");
    assert_eq!(translated("PoolError", "codes.rs"), variants);
}

/// Returns the names of the fields of a structure.
fn fields(path: &str, name: &str) -> BTreeSet<String> {
    let file = parse(&crates().join(path));
    let found = file.items.into_iter().find_map(|item| match item {
        syn::Item::Struct(item) if item.ident == name => Some(item),
        _ => None,
    });
    let found = found.unwrap_or_else(|| panic!("{path} has no {name}"));
    found.fields.iter().filter_map(|field| field.ident.as_ref()).map(ToString::to_string).collect()
}

/// The structure of the Rust library may get more fields, so the compiler accepts a translation that leaves some out.
#[test]
fn each_counter_of_a_node_is_a_field_in_c() {
    let rust = fields("node/src/fabric/counters.rs", "NodeCounters");
    assert!(rust.len() > 15 && rust.contains("copied_bytes"), "the search finds too little: {rust:?}");
    let mut c = fields("capi/src/node.rs", "CountersRecord");
    assert!(c.remove("size") && c.remove("reserved"));
    assert_eq!(c, rust);
}

#[test]
fn each_reason_of_a_refusal_has_a_number() {
    let variants = variants("protocol/src/error.rs", "OperationError");
    assert!(variants.len() > 10, "the search finds too little: {variants:?}");
    assert_eq!(translated("OperationError", "codes.rs"), variants);
}

#[test]
fn each_algorithm_has_a_number() {
    let mut variants = variants("collectives/src/algorithm/name.rs", "Algorithm");
    assert!(variants.len() > 10, "the search finds too little: {variants:?}");
    assert!(variants.remove("InSwitch"), "groups of the library have no units in switches");
    assert_eq!(translated("Algorithm", "group/options.rs"), variants);
}

#[test]
fn each_kind_of_device_has_a_number() {
    let variants = variants("node/src/memory/options.rs", "DeviceChoice");
    assert!(variants.len() > 1, "the search finds too little: {variants:?}");
    assert_eq!(translated("DeviceChoice", "region.rs"), variants);
}
