//! Stages of a test: each wire, with each kind of user that starts the rack.
//!
//! A rack behaves alike for root and for a user without rights: no capability, no home directory. Run by root, every
//! stage runs as both; run by another user, as that user. Forbidden stages are skipped as in `wires`.

use std::fs::{self, File, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::Rackloom;
use super::wires::{COULD_NOT_START, skipped, wires};

/// The user without rights.
const UNPRIVILEGED: u32 = 65_534;
const FOLDER_PREFIX: &str = "rackloom-stage-";

/// Wire, and the user that starts the rack on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage {
    /// The wire.
    pub(crate) wire: &'static str,
    is_unprivileged: bool,
}

/// Returns every wire that `test` can use here, with each user that may start a rack.
pub(crate) fn stages(test: &str) -> Vec<Stage> {
    let stages =
        |is_unprivileged, wires: Vec<_>| wires.into_iter().map(move |wire| Stage { wire, is_unprivileged });
    let mut all: Vec<_> = stages(false, wires(test)).collect();
    if rustix::process::geteuid().is_root() {
        all.extend(stages(true, wires_of_unprivileged(test)));
    }
    all
}

/// Makes `rackloom run` of this rack by a user without rights, with a report: by the test's own user if that is not root.
pub(crate) fn run_without_rights(text: &str) -> Rackloom {
    let is_root = rustix::process::geteuid().is_root();
    if is_root { by_unprivileged_user(&public_file(text)) } else { super::run(&super::rack_file(text)) }
}

impl Stage {
    /// Makes `rackloom run` of this rack on this stage, with a report.
    pub(crate) fn run(self, text: &str) -> Rackloom {
        let rackloom = if self.is_unprivileged {
            by_unprivileged_user(&public_file(text))
        } else {
            super::run(&super::rack_file(text))
        };
        rackloom.with(&["--wire", self.wire])
    }
}

impl std::fmt::Display for Stage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "{}{}",
            self.wire,
            if self.is_unprivileged { " as a user without rights" } else { "" }
        )
    }
}

/// A system may forbid to others what it allows to root.
fn wires_of_unprivileged(test: &str) -> Vec<&'static str> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    let missing = MISSING.get_or_init(|| {
        let rack = "name: can-start\nshape: {ring: {nodes: 2}}\njob: none\n";
        let ended = Stage { wire: "packet", is_unprivileged: true }.run(rack).finish();
        (ended.code == Some(COULD_NOT_START)).then_some(ended.stderr)
    });
    if let Some(reason) = missing {
        skipped(&format!("{test} on the packet wire as a user without rights: {}", reason.trim()));
        return vec!["shared-memory", "udp"];
    }
    vec!["shared-memory", "udp", "packet"]
}

/// Returns a folder in which every user may write, like the one for temporary files. It outlives the test; the next test removes it.
fn public_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        sweep();
        let folder = std::env::temp_dir().join(format!("{FOLDER_PREFIX}{}", std::process::id()));
        fs::create_dir_all(&folder).expect("temporary files can be written");
        fs::set_permissions(&folder, Permissions::from_mode(0o1777)).expect("the folder exists");
        folder
    })
}

/// Removes the folders of tests that have ended.
fn sweep() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(FOLDER_PREFIX)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns a unique path in it.
fn public_path(name: &str) -> PathBuf {
    let own = super::scratch(name);
    public_folder().join(own.file_name().expect("a name"))
}

fn public_file(text: &str) -> PathBuf {
    let path = public_path("rack.yaml");
    fs::write(&path, text).expect("the folder can be written");
    fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("the file exists");
    path
}

/// Makes `rackloom run FILE` by a user without rights, in the root folder and with nothing of the test's environment to write to.
fn by_unprivileged_user(file: &Path) -> Rackloom {
    // The program is not started by path: such a user may not be allowed to reach it.
    let binary = File::open(env!("CARGO_BIN_EXE_rackloom")).expect("the binary is there");
    rustix::io::fcntl_setfd(&binary, rustix::io::FdFlags::empty()).expect("it is open");
    let mut command = Command::new(format!("/proc/self/fd/{}", binary.as_raw_fd()));
    command.uid(UNPRIVILEGED).gid(UNPRIVILEGED).current_dir("/").env("HOME", "/nonexistent");
    command.env_remove("XDG_RUNTIME_DIR").env_remove("RACKLOOM_LOG").env_remove("NO_COLOR");
    let (json, pids) = (public_path("report.json"), public_path("pids.json"));
    command.arg("run").arg(file).arg("--json").arg(&json).arg("--pids").arg(&pids);
    Rackloom { command, json, pids, binary: Some(binary) }
}
