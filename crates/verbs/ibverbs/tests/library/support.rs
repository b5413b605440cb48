//! The library in a folder of its own, a C compiler, and reports of what is skipped.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Writes that a test did not run, where the test runner does not capture it.
pub(crate) fn skip(test: &str, reason: &str) {
    let line = format!("SKIPPED (1): {test}: {}\n", reason.trim().replace('\n', "; "));
    std::io::stderr().write_all(line.as_bytes()).expect("standard error is open");
}

/// Folder with the library under the name that programs load.
pub(crate) struct Library {
    folder: tempfile::TempDir,
}

impl Library {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::copy(env!("CARGO_BIN_EXE_ibverbs"), folder.path().join("libibverbs.so.1")).expect("a copy");
        Self { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder().join("libibverbs.so.1")
    }

    /// Returns a command that loads this library, on no seat.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", self.folder());
        ["RACKLOOM_SEAT", "RACKLOOM_RANK", "RACKLOOM_NODES"].iter().for_each(|name| {
            command.env_remove(name);
        });
        command
    }
}

/// Returns true if the distribution's headers are installed. Otherwise the test is skipped.
pub(crate) fn has_headers(test: &str) -> bool {
    let is_there = Path::new("/usr/include/infiniband/verbs.h").exists();
    if !is_there {
        skip(test, "the headers of libibverbs are not installed (package libibverbs-dev)");
    }
    is_there
}

/// Compiles a program in C.
pub(crate) fn compile(source: &Path, program: &Path, further: &[&str]) {
    let mut command = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-pthread"]).arg(source);
    let output = command.arg("-o").arg(program).args(further).output().expect("cc starts");
    assert!(output.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&output.stderr));
}

/// Returns the output of a command that succeeds.
pub(crate) fn printed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{stdout}\n{stderr}");
    stdout.into_owned()
}
