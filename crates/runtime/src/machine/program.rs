//! Program that runs supervisors, seats and their helpers. Each is a process, started with a hidden command.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::outcome::failure::Failure;

/// Device that processes without input or output have in their place.
const NULL_DEVICE: &str = "/dev/null";

/// Program with the commands `seat`, `keep`, `agent`, `exec` and `sweep-names`, as the `rackloom` command has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    path: PathBuf,
}

impl Program {
    /// Returns the program at this path.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns the program of the calling process. It stays reachable if its file is replaced.
    #[must_use]
    pub fn current() -> Self {
        Self::at("/proc/self/exe")
    }

    /// Returns a command that starts one member of a rack. The control socket is its standard input.
    #[must_use]
    pub fn seat(&self) -> Command {
        self.with("seat")
    }

    /// Returns a command that starts the supervisor of a standing rack. The socket to its launcher is its standard input.
    #[must_use]
    pub fn keep(&self) -> Command {
        self.with("keep")
    }

    /// Returns a command that starts the agent of a seat. The socket to its launcher is its standard input.
    #[must_use]
    pub fn agent(&self) -> Command {
        self.with("agent")
    }

    /// Returns a command that takes a seat and becomes a program.
    #[must_use]
    pub fn exec(&self) -> Command {
        self.with("exec")
    }

    /// Returns a command that removes the names of network namespaces after the end of its standard input.
    #[must_use]
    pub fn sweep_names(&self) -> Command {
        self.with("sweep-names")
    }

    fn with(&self, hidden: &str) -> Command {
        let mut command = Command::new(&self.path);
        command.arg(hidden);
        command
    }
}

/// Returns the failure of a process that could not be started. `what`: the process, such as `cannot start the supervisor`.
pub(crate) fn start_failure(what: impl Into<String>, error: &io::Error) -> Failure {
    let failure = Failure::could_not_start(what, error);
    match OpenOptions::new().read(true).write(true).open(NULL_DEVICE) {
        Ok(_) => failure,
        Err(_) => failure
            .at_path(Path::new(NULL_DEVICE))
            .hint("this user must be able to read and write it: restore its mode, as root, with `chmod 666 /dev/null`"),
    }
}
