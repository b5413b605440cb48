//! Tests of the layers of this crate: setting, model, schema, read, check. A layer imports only itself and lower ones.

use std::path::{Path, PathBuf};

/// Folders with the modules of the crate that their files must not import.
const FORBIDDEN: [(&str, &[&str]); 4] = [
    ("setting", &["check", "faults", "impair", "model", "read", "schema"]),
    ("model", &["check", "faults", "impair", "read", "schema"]),
    ("schema", &["check"]),
    ("read", &["check", "faults", "impair"]),
];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the crate") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn layers_import_lower_layers_only() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (layer, forbidden) in FORBIDDEN {
        let mut paths = Vec::new();
        files(&source.join(layer), &mut paths);
        assert!(paths.len() > 4, "{layer} has only {} files", paths.len());
        for path in paths {
            let text = std::fs::read_to_string(&path).expect("a source file");
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            for (number, line) in (1..).zip(code) {
                let wrong = forbidden.iter().find(|module| line.contains(&format!("crate::{module}")));
                assert_eq!(wrong, None, "{}, code line {number}: {line}", path.display());
            }
        }
    }
}
