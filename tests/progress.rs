//! Progress bar: it counts on a terminal, and is absent elsewhere.
//!
//! `script` (util-linux) provides the terminal. The rack works until it is interrupted, so that nothing here depends on
//! the speed of the machine.

mod support;

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::Signal;
use support::schema::mistakes;
use support::wires::not_tried;
use support::{monotonic_ns, rack_file, run, scratch, send, topology, within};

const TIMEOUT: Duration = Duration::from_secs(120);
const RUNS: &str = "1000000";

/// Returns the numbers of runs that a bar has shown, in order.
fn runs_shown(text: &str) -> Vec<u64> {
    let before = text.split(&format!(" of {RUNS} runs")).collect::<Vec<_>>();
    let shown = before[..before.len() - 1].iter().filter_map(|text| text.rsplit([' ', '\u{1b}']).next());
    shown.filter_map(|number| number.parse().ok()).collect()
}

/// Command on a terminal.
struct Terminal {
    process: Child,
    screen: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    fn run(line: &str) -> Self {
        let mut process = Command::new("script")
            .args(["-qfec", line, "/dev/null"])
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("script starts");
        let screen = Arc::new(Mutex::new(Vec::new()));
        let (seen, mut output) = (Arc::clone(&screen), process.stdout.take().expect("it was piped"));
        let reader = std::thread::spawn(move || {
            let mut block = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut block) {
                seen.lock().expect("no thread panics with it").extend_from_slice(&block[..length]);
            }
        });
        Self { process, screen, reader: Some(reader) }
    }

    /// Returns everything that was shown.
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().expect("no thread panics with it")).into_owned()
    }

    /// Types Ctrl-C, and returns the exit code of the command.
    fn interrupt(&mut self) -> Option<i32> {
        self.process.stdin.take().expect("it was piped").write_all(b"\x03").expect("the terminal takes it");
        let ended = within(TIMEOUT, "the end of the command", || {
            self.process.try_wait().expect("it is a child of this process")
        });
        self.reader.take().expect("it is joined once").join().expect("it only reads");
        ended.code()
    }
}

#[test]
fn a_bar_on_a_terminal_counts_the_runs_of_a_collective() {
    if Command::new("script").arg("--version").output().is_err() {
        not_tried("there is no `script` to lend a terminal");
        return;
    }
    let file = rack_file("name: bar\nshape: {ring: {nodes: 3}}\n");
    // A shell that remains beside the program gets the Ctrl-C as well, and some shells then report their own death instead of its exit code.
    let line = format!(
        "exec {} run {} --collective all-reduce --bytes 4KiB --algorithm ring --repetitions {RUNS} --warm-up 0",
        env!("CARGO_BIN_EXE_rackloom"),
        file.display()
    );
    let mut terminal = Terminal::run(&line);
    let runs = within(TIMEOUT, "progress of the bar", || {
        let runs = runs_shown(&terminal.text());
        (runs.first() != runs.last()).then_some(runs)
    });
    assert!(runs.is_sorted(), "a bar goes forward: {runs:?}");
    assert_eq!(terminal.interrupt(), Some(6), "interrupted");
}

/// A small rack is simulated at once. The large one takes longer than any test, and the small one gives an estimate of it.
#[test]
fn a_search_on_a_terminal_counts_down_and_an_interrupted_one_leaves_a_part_of_its_result() {
    if Command::new("script").arg("--version").output().is_err() {
        not_tried("there is no `script` to lend a terminal");
        return;
    }
    let json = scratch("interrupted.json");
    let line = format!(
        "exec {} recommend {} --collective all-reduce --bytes 64MiB --nodes 4,64 --shapes star --algorithm one-shot --target busbw=0.001 \
         --frames-max 10000000000 --time-limit 1000d --json {}",
        env!("CARGO_BIN_EXE_rackloom"),
        topology("star-8.yaml").display(),
        json.display()
    );
    let mut terminal = Terminal::run(&line);
    within(TIMEOUT, "the time left", || {
        let text = terminal.text();
        (text.contains("1 of 2 · ") && text.contains(" left")).then_some(())
    });
    assert_eq!(terminal.interrupt(), Some(6), "interrupted");
    let result = std::fs::read_to_string(&json).expect("a result was written");
    let result: serde_json::Value = serde_json::from_str(&result).expect("JSON");
    assert_eq!(mistakes("recommend", &result), [""; 0]);
    assert_eq!(result["is_complete"], false);
    let state = |index: usize| &result["candidates"][index]["state"];
    assert_eq!((state(0), state(1)), (&"not-simulated".into(), &"simulated".into()), "{result}");
    let reason = result["candidates"][0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("interrupted"), "{reason}");
}

#[test]
fn without_a_terminal_there_is_no_bar() {
    let file = rack_file("name: nobar\nshape: {ring: {nodes: 3}}\n");
    let options = ["--collective", "all-reduce", "--bytes", "4KiB", "--repetitions", RUNS];
    let mut rack = run(&file).with(&options).start();
    let origin_ns = rack.members().origin_monotonic_ns;
    // Longer than the delay before a bar appears.
    within(TIMEOUT, "three seconds", || (monotonic_ns() > origin_ns + 3_000_000_000).then_some(()));
    send(rack.supervisor(), Signal::INT);
    let ended = rack.finish();
    assert_eq!(ended.code, Some(6), "{}", ended.stderr);
    assert!(!ended.stderr.contains("runs"), "{}", ended.stderr);
}
