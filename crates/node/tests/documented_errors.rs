//! Tests that every public function of the crate that returns a result or a request documents its errors under `# Errors`.

use std::path::Path;

/// Returns the public functions of a source that do not document their errors.
fn undocumented(text: &str) -> Vec<String> {
    let (mut documented, mut found) = (false, Vec::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let bare = line.trim_start();
        if bare.starts_with("///") || bare.starts_with("#[") {
            documented |= bare.contains("# Errors");
            continue;
        }
        if let Some(name) = name_of(bare) {
            let mut signature = bare.to_owned();
            while !signature.contains(['{', ';']) {
                signature += lines.next().expect("a function has a body");
            }
            let (_, returns) = signature.split_once("->").unwrap_or_default();
            if !documented && ["Result<", "Request<"].iter().any(|fallible| returns.contains(fallible)) {
                found.push(name.to_owned());
            }
        }
        documented = false;
    }
    found
}

/// Returns the name of a public function, if the line begins one.
fn name_of(line: &str) -> Option<&str> {
    let mut rest = line.strip_prefix("pub ")?;
    for word in ["const ", "async ", "unsafe "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    rest.strip_prefix("fn ")?.split(|character: char| !character.is_alphanumeric() && character != '_').next()
}

fn check_folder(directory: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            check_folder(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            found.extend(undocumented(&text).into_iter().map(|name| format!("{}: {name}", path.display())));
        }
    }
}

#[test]
fn every_public_function_that_can_fail_documents_its_errors() {
    let mut found = Vec::new();
    check_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert!(found.is_empty(), "without `# Errors`: {found:#?}");
}

#[test]
fn the_reader_of_sources_finds_undocumented_functions() {
    let text = "/// Said.\n///\n/// # Errors\n/// Some.\npub fn said() -> Result<(), ()> {\n}\n\n/// Not said.\n#[inline]\n\
                pub const fn unsaid(\n    one: u8,\n) -> Request<'static, ()> {\n}\npub fn cannot_fail() -> u8 {\n}\n\
                pub(crate) fn ours() -> Result<(), ()> {\n}\n";
    assert_eq!(undocumented(text), ["unsaid"]);
}
