//! Rack under test: the real binary, its report, its processes.
//!
//! Every wait has a timeout, and a rack that a failed test leaves behind is taken down with its supervisor.
//! Racks of one test binary run one after the other: they share few processors, and a test that measures time
//! should not measure its neighbours.

// Each test binary uses its own part of this file.
#![allow(dead_code)]

pub(crate) mod arrays;
pub(crate) mod footprint;
pub(crate) mod machines;
pub(crate) mod schema;
pub(crate) mod seats;
pub(crate) mod session;
pub(crate) mod stages;
pub(crate) mod wires;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

/// Time that no rack of these tests needs, on a slow machine with both processors busy.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Time within which an interrupted command ends.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

static ONE_RACK_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// Returns the path of a shipped rack file.
pub(crate) fn topology(name: &str) -> PathBuf {
    root().join("topologies").join(name)
}

/// The three shapes.
pub(crate) const TOPOLOGIES: [&str; 3] = ["ring-4.yaml", "star-4.yaml", "full-mesh-4.yaml"];

/// Returns a unique path.
pub(crate) fn scratch(name: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}-{name}", std::process::id()))
}

/// Writes a rack file for one test.
pub(crate) fn rack_file(text: &str) -> PathBuf {
    let path = scratch("rack.yaml");
    std::fs::write(&path, text).expect("the scratch folder can be written");
    path
}

/// Returns the host's monotonic clock, which is the clock of a report shifted by the run's origin.
pub(crate) fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Polls `condition` until it returns a value, or returns `None` after the timeout.
fn poll_for<T>(timeout: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(value) = condition() {
            return Some(value);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Polls `condition` until it returns a value.
pub(crate) fn within<T>(timeout: Duration, what: &str, condition: impl FnMut() -> Option<T>) -> T {
    poll_for(timeout, condition).unwrap_or_else(|| panic!("{what} did not happen within {timeout:?}"))
}

/// Command with arguments, ready to start.
pub(crate) struct Rackloom {
    command: Command,
    json: PathBuf,
    pids: PathBuf,
    /// Descriptor that is kept open because the command names it by its number.
    binary: Option<std::fs::File>,
}

/// Result of a command.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    json: PathBuf,
}

/// Running rack.
pub(crate) struct Running {
    /// The command line, for messages.
    shown: String,
    child: Child,
    printed: [Printed; 2],
    json: PathBuf,
    pids: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

/// Output of a process, collected while it runs: a full pipe would stop it.
#[derive(Default)]
struct Printed(Option<JoinHandle<String>>);

impl Printed {
    fn collect(pipe: Option<impl Read + Send + 'static>) -> Self {
        let mut pipe = pipe.expect("it was piped");
        Self(Some(std::thread::spawn(move || {
            let mut text = String::new();
            pipe.read_to_string(&mut text).expect("output is UTF-8");
            text
        })))
    }

    fn read(self) -> String {
        self.0.map_or_else(String::new, |reader| reader.join().expect("output can be read"))
    }
}

/// Processes of a rack, by member.
pub(crate) struct Members {
    pub(crate) origin_monotonic_ns: u64,
    pub(crate) pids: Vec<(String, Pid)>,
}

/// Makes any command line.
pub(crate) fn rackloom(arguments: &[&str]) -> Rackloom {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rackloom"));
    command.current_dir(root()).args(arguments).env_remove("RACKLOOM_LOG").env_remove("NO_COLOR");
    Rackloom { command, json: scratch("report.json"), pids: scratch("pids.json"), binary: None }
}

/// Makes `rackloom run FILE`, with a report.
pub(crate) fn run(file: &Path) -> Rackloom {
    let mut rackloom = rackloom(&["run"]);
    rackloom.command.arg(file).arg("--json").arg(&rackloom.json).arg("--pids").arg(&rackloom.pids);
    rackloom
}

/// Makes `rackloom sim FILE`, with a report.
pub(crate) fn sim(file: &Path) -> Rackloom {
    let mut rackloom = rackloom(&["sim"]);
    rackloom.command.arg(file).arg("--json").arg(&rackloom.json);
    rackloom
}

impl Rackloom {
    /// Adds arguments.
    pub(crate) fn with(mut self, arguments: &[&str]) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets a run directory for standing racks.
    pub(crate) fn in_run_directory(mut self, session: &Path) -> Self {
        self.command.env("XDG_RUNTIME_DIR", session);
        self
    }

    /// Runs the command in this folder.
    pub(crate) fn in_folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Sets a variable in its environment and in that of all its processes.
    pub(crate) fn in_environment(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Limits the locked memory of it and of each of its processes, for every user.
    pub(crate) fn with_lockable_memory(mut self, bytes: u64) -> Self {
        use rustix::process::{Resource, Rlimit, geteuid, setrlimit};
        use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
        use std::os::unix::process::CommandExt;
        let is_root = geteuid().is_root();
        // SAFETY: needed because the limit must hold for the command and not for the test. Between fork and exec the
        // closure makes system calls on numbers only; it allocates nothing and takes no lock.
        unsafe {
            self.command.pre_exec(move || {
                setrlimit(Resource::Memlock, Rlimit { current: Some(bytes), maximum: Some(bytes) })?;
                if is_root {
                    // The limit does not bind a process with this capability, and root regains it with exec unless it is out of bounds.
                    remove_capability_from_bounding_set(CapabilitySet::IPC_LOCK)?;
                }
                Ok(())
            });
        }
        self
    }

    /// Starts it.
    pub(crate) fn start(mut self) -> Running {
        // A test that failed while it held the lock has taken its rack down.
        let alone = ONE_RACK_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = format!("{:?}", self.command);
        let mut child = self
            .command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        drop(self.binary.take());
        let printed = [Printed::collect(child.stdout.take()), Printed::collect(child.stderr.take())];
        Running { shown, child, printed, json: self.json, pids: self.pids, _alone: alone }
    }

    /// Starts it and waits for its end.
    pub(crate) fn finish(self) -> Ended {
        self.start().finish()
    }
}

impl Running {
    /// Returns the supervisor.
    pub(crate) fn supervisor(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Returns all members, once all links are up.
    pub(crate) fn members(&mut self) -> Members {
        let text = within(TIMEOUT, "bringing up all links", || {
            let ended = self.child.try_wait().expect("the supervisor can be waited for");
            assert!(ended.is_none(), "the run ended before its links were up: {ended:?}");
            std::fs::read_to_string(&self.pids).ok()
        });
        let value: Value = serde_json::from_str(&text).expect("the file of process ids is JSON");
        let pid = |member: &Value| Pid::from_raw(member["pid"].as_i64().expect("a process id") as i32);
        let members = value["members"].as_array().expect("a list of members").iter();
        Members {
            origin_monotonic_ns: value["origin_monotonic_ns"].as_u64().expect("an origin"),
            pids: members
                .map(|m| (m["name"].as_str().expect("a name").to_owned(), pid(m).expect("no zero")))
                .collect(),
        }
    }

    /// Waits for the end. A run that takes too long is interrupted, so that the panic shows what it was doing.
    pub(crate) fn finish(mut self) -> Ended {
        let pid = self.supervisor();
        let mut ended = || self.child.try_wait().expect("it can be waited for");
        let in_time = poll_for(TIMEOUT, &mut ended);
        let is_late = in_time.is_none();
        let status = in_time.unwrap_or_else(|| {
            kill_process(pid, Signal::INT).expect("it still runs");
            let what = format!("the end of {} after {TIMEOUT:?} and an interrupt", self.shown);
            within(INTERRUPT_TIMEOUT, &what, &mut ended)
        });
        let [stdout, stderr] = std::mem::take(&mut self.printed).map(Printed::read);
        assert!(!is_late, "{} ran for {TIMEOUT:?}; when interrupted:\n{stdout}\n{stderr}", self.shown);
        Ended { code: status.code(), stdout, stderr, json: self.json.clone() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Members {
    /// Returns the process of a member.
    pub(crate) fn pid(&self, name: &str) -> Pid {
        self.pids
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, pid)| *pid)
            .expect("there is such a member")
    }

    /// Waits until no member's process is left.
    pub(crate) fn all_gone(&self, timeout: Duration) {
        for (name, pid) in &self.pids {
            within(timeout, &format!("the end of {name}"), || is_gone(*pid).then_some(()));
        }
    }
}

/// Returns whether a process has ended. A zombie counts as ended.
pub(crate) fn is_gone(pid: Pid) -> bool {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    let Ok(text) = std::fs::read_to_string(path) else { return true };
    text.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X']))
}

/// Waits until a process has stopped.
pub(crate) fn has_stopped(pid: Pid, timeout: Duration) {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    within(timeout, &format!("the stop of process {}", pid.as_raw_nonzero()), || {
        let text = std::fs::read_to_string(&path).expect("a running process");
        let state = text.rsplit(')').next().expect("its state").trim_start();
        assert!(!state.starts_with('Z'), "it ended and did not stop");
        state.starts_with('T').then_some(())
    });
}

/// Sends a signal to a running process.
pub(crate) fn send(pid: Pid, signal: Signal) {
    kill_process(pid, signal).expect("the process is there");
}

impl Ended {
    /// Returns the report.
    pub(crate) fn report(&self) -> Value {
        let text = std::fs::read_to_string(&self.json)
            .unwrap_or_else(|error| panic!("no report: {error}\n{}\n{}", self.stdout, self.stderr));
        serde_json::from_str(&text).expect("the report is JSON")
    }

    /// Returns the report of a run that must have passed.
    pub(crate) fn passed(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}\n{}", self.stdout, self.stderr);
        let report = self.report();
        assert_eq!(report["verdict"], "pass", "{}", self.stdout);
        report
    }
}

/// Returns a report without its origin: date and command line differ between two runs that are otherwise equal.
pub(crate) fn without_meta(mut report: Value) -> Value {
    let meta = report.as_object_mut().and_then(|fields| fields.remove("meta"));
    assert!(meta.is_some(), "every report has a meta object");
    report
}

/// Returns the sum of a number over all links of a report.
pub(crate) fn over_links(report: &Value, number: impl Fn(&Value) -> u64) -> u64 {
    report["links"].as_array().expect("a list of links").iter().map(number).sum()
}

/// Returns the number of frames that were sent again.
pub(crate) fn retransmitted(report: &Value) -> u64 {
    over_links(report, |link| link["retransmitted"].as_u64().expect("a number"))
}

/// Returns the number of frames that receivers dropped, for any reason.
pub(crate) fn dropped(report: &Value) -> u64 {
    let of_link = |link: &Value| {
        let reasons = link["dropped"].as_object().expect("a table of reasons");
        reasons.values().map(|count| count.as_u64().expect("a number")).sum()
    };
    over_links(report, of_link)
}

/// Returns the number of faults of one kind that links injected.
pub(crate) fn injected(report: &Value, what: &str) -> u64 {
    let events = report["events"].as_array().expect("a list of events").iter();
    let lines = events.filter(|event| event["kind"] == "faults-injected");
    lines.map(|line| line["fields"][what].as_str().expect("a count").parse::<u64>().expect("a number")).sum()
}
