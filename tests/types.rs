//! Types have few flags: no struct of the sources has four or more `bool` fields.
//!
//! Four flags have sixteen combinations, and a reader cannot know which of them exist. An enum names those that do.

use std::path::{Path, PathBuf};

use syn::visit::Visit;
use syn::{Fields, ItemStruct, Type};

/// Least number of `bool` fields that a struct must not have.
const FLAGS_TOO_MANY: usize = 4;

/// Structs with too many flags, as `name: count`.
#[derive(Default)]
struct Flags(Vec<String>);

impl<'ast> Visit<'ast> for Flags {
    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        let count = flags(&item.fields);
        if count >= FLAGS_TOO_MANY {
            self.0.push(format!("{}: {count}", item.ident));
        }
        syn::visit::visit_item_struct(self, item);
    }
}

/// Returns the number of `bool` fields. The elements of an array or a tuple count one by one.
fn flags(fields: &Fields) -> usize {
    fields.iter().map(|field| flags_of(&field.ty)).sum()
}

fn flags_of(kind: &Type) -> usize {
    match kind {
        Type::Path(path) => usize::from(path.path.is_ident("bool")),
        Type::Tuple(tuple) => tuple.elems.iter().map(flags_of).sum(),
        _ => 0,
    }
}

/// Returns the structs of a source text with too many flags, those in functions and modules included.
fn structs_with_flags(text: &str) -> Vec<String> {
    let mut found = Flags::default();
    found.visit_file(&syn::parse_file(text).expect("the source is Rust"));
    found.0
}

/// Adds the Rust files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_struct_has_four_flags() {
    let mut files = Vec::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for entry in std::fs::read_dir(crates).expect("the folder of the crates") {
        let folder = entry.expect("an entry").path().join("src");
        if folder.exists() {
            sources(&folder, &mut files);
        }
    }
    assert!(files.len() > 300, "only {} files", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source can be read");
        let found = structs_with_flags(&text);
        wrong.extend(found.iter().map(|found| format!("{}: {found}", file.display())));
    }
    assert!(wrong.is_empty(), "make enums of the states that exist:\n{}", wrong.join("\n"));
}

#[test]
fn planted_structs_with_four_flags_are_found() {
    let named = "mod inner { struct Planted { a: bool, b: u8, c: bool, d: bool, e: bool } }";
    assert_eq!(structs_with_flags(named), ["Planted: 4"]);
    let hidden = "fn f() { struct Pairs { both: (bool, bool), more: (bool, (u8, bool)) } }";
    assert_eq!(structs_with_flags(hidden), ["Pairs: 4"]);
    assert_eq!(structs_with_flags("struct Bare(bool, bool, bool, bool);"), ["Bare: 4"]);
    assert_eq!(structs_with_flags("struct Few { a: bool, b: bool, c: bool }"), [""; 0]);
}
