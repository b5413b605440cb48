//! Examples of the library, run as a user runs them: as processes, with their options, also when one of their processes is killed.
//!
//! `cargo test --workspace` builds the examples. Each run has a run directory of its own, in which nothing may be left.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use support::{rackloom, scratch, within};

/// Longest time of one program, on a busy machine. The programs limit each of their own waits to a minute.
const TIMEOUT: Duration = Duration::from_secs(240);

/// Returns the path of an example, which Cargo puts beside the command.
fn example(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_rackloom")).parent().expect("a folder");
    let path = folder.join("examples").join(name);
    assert!(path.exists(), "{} is missing; `cargo build --workspace --examples` makes it", path.display());
    path
}

/// Run directory for the racks of one test.
struct Session(PathBuf);

impl Session {
    fn new() -> Self {
        let path = scratch("session");
        std::fs::create_dir(&path).expect("the folder can be written");
        Self(path)
    }

    /// Runs an example to its end.
    fn run(&self, name: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(example(name));
        command.args(arguments).env("XDG_RUNTIME_DIR", &self.0).env("TMPDIR", &self.0);
        command.env("RACKLOOM", env!("CARGO_BIN_EXE_rackloom"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let shown = format!("{command:?}");
        let mut child = command.spawn().expect("the example starts");
        // The examples print less than a pipe holds.
        within(TIMEOUT, &shown, || child.try_wait().expect("a child"));
        child.wait_with_output().expect("a child")
    }

    /// Returns the output of an example that ends with 0 and prints no error.
    fn passes(&self, name: &str, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.run(name, arguments);
        let (stdout, stderr) = (text(&stdout), text(&stderr));
        assert!(status.success() && stderr.is_empty(), "{name} {arguments:?}: {status}\n{stdout}\n{stderr}");
        let left = self.left_files();
        assert!(left.is_empty(), "{name} leaves {left:?}");
        stdout
    }

    /// Returns the names of files of examples and of folders of racks.
    fn left_files(&self) -> Vec<String> {
        let names = |folder: PathBuf| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        let racks = names(self.0.join("rackloom")).into_iter().filter(|name| !name.starts_with('.'));
        let files = names(self.0.clone()).into_iter().filter(|name| name != "rackloom");
        files.chain(racks).collect()
    }

    /// Returns the error of an example that ends with 1.
    fn fails(&self, name: &str, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.run(name, arguments);
        assert_eq!(status.code(), Some(1), "{name} {arguments:?}\n{}\n{}", text(&stdout), text(&stderr));
        text(&stderr)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = rackloom(&["down", "--all"]).in_run_directory(&self.0).finish();
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_ping_is_received_once() {
    let printed = Session::new().passes("ping_pong", &[]);
    assert!(printed.starts_with("1000 rounds, the ball shows 2000; "), "{printed}");
}

#[test]
fn every_rank_of_a_ring_has_the_sum_of_all() {
    let session = Session::new();
    for ranks in [2, 3, 4] {
        let printed = session.passes("ring_all_reduce", &[&ranks.to_string()]);
        let expected =
            format!("{ranks} ranks, {} numbers each; every rank has the sum of all\n", ranks * 1024);
        assert_eq!(printed, expected);
    }
}

#[test]
fn workers_of_a_parameter_server_find_the_line() {
    let printed = Session::new().passes("parameter_server", &[]);
    let numbers: Vec<f64> = printed.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [_, _, slope, intercept, ..] = numbers[..] else { panic!("{printed}") };
    assert!((slope - 3.0).abs() < 0.05 && (intercept + 2.0).abs() < 0.05, "{printed}");
}

#[test]
fn a_process_takes_two_seats_of_a_rack_and_a_missing_rack_is_an_error() {
    let session = Session::new();
    let file = support::topology("ring-4.yaml");
    let file = file.to_str().expect("a plain path");
    let on_rack = |arguments: &[&str]| {
        let ended = rackloom(arguments).in_run_directory(&session.0).finish();
        assert_eq!(ended.code, Some(0), "{arguments:?}\n{}\n{}", ended.stdout, ended.stderr);
    };
    on_rack(&["up", file, "--vacant", "n1,n3"]);
    let Output { status, stdout, stderr } = session.run("take_seats", &["ring-4", "n1", "n3"]);
    assert!(status.success(), "{}", text(&stderr));
    assert_eq!(text(&stdout), "n3 has read \"from a process of my own\"; number 10 of the sum is 30\n");
    on_rack(&["down", "ring-4"]);
    let error = session.fails("take_seats", &["ring-4", "n1", "n3"]);
    assert!(error.contains("no rack at"), "{error}");
}
