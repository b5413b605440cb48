//! The command in a shell: version, templates, completions, manual pages, colours, and terminals of few columns.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::Value;
use support::session::Session;
use support::wires::not_tried;
use support::{Ended, rack_file, rackloom, scratch, send, topology};

/// Width of the terminal of these tests.
const COLUMNS: usize = 40;
/// Longest time in which a completion is answered on a busy machine. A rack has half a second, and requests of the supervisor have ten.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(5);

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

fn passes(arguments: &[&str]) -> String {
    let ended = rackloom(arguments).finish();
    assert_eq!(ended.code, Some(0), "{arguments:?}\n{}\n{}", ended.stdout, ended.stderr);
    ended.stdout
}

fn refused(arguments: &[&str]) -> String {
    let Ended { code, stdout, stderr, .. } = rackloom(arguments).finish();
    assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
    stderr
}

/// Returns true if a program can be started.
fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// The version has the commit of the reports, and the number in the frames.
#[test]
fn the_version_names_commit_and_wire_format() {
    let ended = rackloom(&["sim", text(&topology("ring-4.yaml")), "--json", "-"]).finish();
    let report: Value = serde_json::from_str(&ended.stdout).expect("a report");
    let (meta, versions) = (&report["meta"], &report["meta"]["versions"]);
    let name = |value: &Value| value.as_str().expect("a name").to_owned();
    let expected = format!(
        "rackloom {} (commit {}, wire format {})\n",
        name(&versions["rackloom"]),
        name(&meta["commit"]),
        versions["wire"]
    );
    assert_eq!(passes(&["--version"]), expected);
    assert_eq!(passes(&["-V"]), expected);
}

