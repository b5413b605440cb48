//! Puts the commit into the binary, so that a report says which code made it.
//!
//! A source tree without git (an unpacked archive) builds all the same and reports "unknown".

use std::path::Path;
use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn main() {
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=RACKLOOM_COMMIT={commit}");
    println!("cargo::rerun-if-changed=build.rs");
    // HEAD changes when a branch is checked out, the log of HEAD also when a commit is added. Work trees keep both
    // elsewhere than in `.git`, so the path comes from git.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}
