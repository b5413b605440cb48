//! Files of one crate form layers: no two of them import each other, directly or in a circle. Some modules have an order.
//!
//! `tests/support/imports.rs` has the rules of counting.

#[path = "support/imports.rs"]
mod imports;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use imports::Imports;

/// Pairs of top-level modules of one crate that do not import each other in either direction.
const APART: &[(&str, &str, &str)] = &[
    // A member's interface to its engine does not know how links work, and links do not know who drives them.
    ("protocol", "contract", "link"),
    ("protocol", "contract", "transport"),
    ("protocol", "contract", "forwarding"),
    ("protocol", "link", "transport"),
    ("protocol", "endpoint", "switch"),
];

/// Orders of top-level modules of one crate, the lowest first. A module imports no module that stands after it.
/// `docs/ARCHITECTURE.md` gives their reasons.
const ORDERS: &[(&str, &[&str])] = &[
    ("plan", &["setting", "model", "schema", "read", "check"]),
    ("plan", &["setting", "model", "read", "faults"]),
    ("protocol", &["ids", "link", "forwarding", "inspect", "endpoint"]),
    ("protocol", &["ids", "link", "forwarding", "inspect", "switch"]),
    ("protocol", &["ids", "transport", "endpoint"]),
    ("control", &["oracle", "report", "request"]),
    ("control", &["oracle", "report", "notice"]),
    ("jobs", &["job", "ranks", "survivors", "collective", "build"]),
    ("jobs", &["job", "ranks", "litmus", "build"]),
    ("jobs", &["job", "ranks", "workload", "build"]),
    ("simulator", &["ids", "frames", "fabric", "wires", "seat"]),
    ("node", &["mapping", "window", "memory", "sharing", "fabric"]),
    ("node", &["wires", "runtime", "fabric"]),
    ("node", &["wires", "seat", "fabric"]),
    ("runtime", &["outcome", "machine", "request", "seat", "standing"]),
    ("runtime", &["outcome", "machine", "supervisor", "run", "standing"]),
    ("verbs", &["layout", "engine", "cm", "fabric", "abi"]),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Reads the crate in a folder, from its library or else from its program.
fn read(folder: &Path) -> Imports {
    let root =
        ["src/lib.rs", "src/main.rs"].map(|file| folder.join(file)).into_iter().find(|file| file.exists());
    let root = root.unwrap_or_else(|| panic!("{}: no root file", folder.display()));
    Imports::read(&root).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn files_of_a_crate_import_each_other_in_no_circle() {
    let mut wrong = Vec::new();
    let mut looked_at = 0;
    for entry in std::fs::read_dir(crates()).expect("the folder of the crates") {
        let folder = entry.expect("an entry").path();
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        // Its modules are files of the node, which is counted itself.
        if name == "models" {
            continue;
        }
        let imports = read(&folder);
        looked_at += imports.files.len();
        let circles = imports.circles();
        let count: usize = circles.iter().map(Vec::len).sum();
        if count > 0 {
            wrong.push(format!("{name}: {count} files in circles"));
            wrong.extend(circles.iter().flat_map(|group| imports.edges_within(group)));
        }
    }
    assert!(looked_at > 100, "only {looked_at} files were read");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn modules_that_are_apart_do_not_import_each_other() {
    for (name, first, second) in APART {
        let imports = read(&crates().join(name));
        for module in [first, second] {
            assert!(imports.has_module(module), "{name} has no module {module}");
        }
        let found = imports.edges_between(first, second);
        assert!(found.is_empty(), "{name}: {first} and {second} are not apart:\n{}", found.join("\n"));
    }
}

/// Returns each pair of a module and a higher module of an order.
fn pairs<'a>(order: &'a [&'a str]) -> impl Iterator<Item = (&'a str, &'a str)> {
    order.iter().enumerate().flat_map(|(index, low)| order[index + 1..].iter().map(move |high| (*low, *high)))
}

#[test]
fn modules_import_no_higher_module_of_their_order() {
    let mut of_crates = BTreeMap::new();
    for (name, order) in ORDERS {
        let imports = of_crates.entry(name).or_insert_with(|| read(&crates().join(name)));
        for module in *order {
            assert!(imports.has_module(module), "{name} has no module {module}");
        }
        for (low, high) in pairs(order) {
            let found = imports.edges_from(low, high);
            assert!(found.is_empty(), "{name}: {low} is below {high}:\n{}", found.join("\n"));
        }
    }
}

#[test]
fn the_architecture_document_states_every_order() {
    let path = crates().join("../docs/ARCHITECTURE.md");
    let document = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}"));
    let (_, section) = document.split_once("\n## Layers inside crates\n").expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let stated: Vec<_> = section.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    let declared: Vec<_> =
        ORDERS.iter().map(|(name, order)| format!("{name}: {}", order.join(" <- "))).collect();
    assert_eq!(stated, declared);
}

/// Reads a copy of a crate in which the first module of each pair imports the second.
fn with_planted_imports<'a>(name: &str, pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Imports {
    let folder = tempfile::tempdir().expect("a folder");
    copy(&crates().join(name).join("src"), folder.path());
    let file_of = |module: &str| {
        let files = [format!("{module}.rs"), format!("{module}/mod.rs")].map(|file| folder.path().join(file));
        files.into_iter().find(|file| file.exists()).expect("the module")
    };
    for (from, to) in pairs {
        append(&file_of(from), &format!("use crate::{to}::PlantedIn{to} as {from}To{to};\n"));
        append(&file_of(to), &format!("pub struct PlantedIn{to};\n"));
    }
    Imports::read(&folder.path().join("lib.rs")).expect("the crate is read")
}

#[test]
fn an_import_between_modules_that_are_apart_is_found() {
    for (name, first, second) in APART {
        for (from, to) in [(first, second), (second, first)] {
            let imports = with_planted_imports(name, std::iter::once((*from, *to)));
            let found = imports.edges_between(first, second);
            assert_eq!(found.len(), 1, "{name}: {from} imports {to}: {found:?}");
        }
    }
}

#[test]
fn an_import_of_a_higher_module_is_found() {
    for (name, order) in ORDERS {
        let imports = with_planted_imports(name, pairs(order));
        for (low, high) in pairs(order) {
            let found = imports.edges_from(low, high);
            assert_eq!(found.len(), 1, "{name}: {low} imports {high}: {found:?}");
        }
    }
}

/// Copies a folder of source files.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder is made");
    for entry in std::fs::read_dir(from).expect("a folder of sources") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a file is copied");
        }
    }
}

/// Adds a line to a file.
fn append(file: &Path, line: &str) {
    let text = std::fs::read_to_string(file).expect("a file is read");
    std::fs::write(file, text + line).expect("a file is written");
}

/// Writes files of a crate into a folder and returns its imports.
fn crate_of(folder: &Path, files: &[(&str, &str)]) -> Imports {
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder is made");
        std::fs::write(path, text).expect("a file is written");
    }
    Imports::read(&folder.join("lib.rs")).expect("the crate is read")
}

fn edges(imports: &Imports) -> Vec<String> {
    let all: Vec<&Path> = imports.files.iter().map(PathBuf::as_path).collect();
    imports.edges_within(&all)
}

#[test]
fn a_circle_is_found_through_re_exports_macros_and_parents() {
    let folder = tempfile::tempdir().expect("a folder");
    let imports = crate_of(
        folder.path(),
        &[
            ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
            ("a.rs", "use crate::B; pub struct A(B);"),
            ("b/mod.rs", "mod c; pub(crate) use c::C; pub struct B; fn f() { format!(\"{}\", c::g()); }"),
            ("b/c.rs", "use super::super::A; pub struct C; pub fn g() {}"),
        ],
    );
    assert_eq!(edges(&imports), ["a.rs -> b/mod.rs", "b/mod.rs -> b/c.rs", "b/c.rs -> a.rs"]);
    assert_eq!(imports.circles(), [["a.rs", "b/c.rs", "b/mod.rs"].map(Path::new)]);
}

#[test]
fn modules_re_exports_and_tests_are_no_imports() {
    let folder = tempfile::tempdir().expect("a folder");
    let imports = crate_of(
        folder.path(),
        &[
            ("lib.rs", "mod a; mod b; pub use a::A;"),
            ("a.rs", "pub struct A; #[cfg(test)] mod tests { use crate::b::B; }"),
            ("b.rs", "use crate::a; pub struct B(a::A, std::vec::Vec<u8>); #[cfg(test)] use crate::C;"),
        ],
    );
    assert_eq!(edges(&imports), ["b.rs -> a.rs"]);
    assert_eq!(imports.circles(), Vec::<Vec<&Path>>::new());
}
