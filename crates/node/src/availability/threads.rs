//! The kernel's data about the threads of a process: `/proc/PID/task/*/stat` and `schedstat`.
//!
//! Both files are readable by every user unless the system hides processes. The parsers are pure and never panic.

use std::fs;
use std::path::Path;

/// Maximum number of threads that are read per process. A process with more is judged by these.
const THREADS_MAX: usize = 64;
/// Index of the start time among the fields of `stat` after the name of the program. The first field is the state, the twentieth the start time.
const START_TIME_FIELD: usize = 19;

/// State of a thread, as far as it explains silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadState {
    /// The thread runs or waits for a processor.
    Runnable,
    /// The thread waits in the kernel and cannot be interrupted: for a page of a file, or for a lock of the kernel.
    Blocked,
    /// A signal or a debugger has stopped the thread.
    Stopped,
    /// The thread sleeps, or it has ended.
    Asleep,
}

/// Sample of one thread at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadSample {
    /// Number of the thread.
    pub thread: u32,
    /// State of the thread.
    pub state: ThreadState,
    /// Time on a processor since the thread's start, in nanoseconds.
    pub run_ns: u64,
    /// Time on a run queue since the thread's start, in nanoseconds. A wait is included only after it has ended.
    pub waited_ns: u64,
}

/// Sample of the threads of one process at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessSample {
    /// Start time in ticks since boot. If it differs under the same process number, the process is a different one.
    pub started_ticks: u64,
    /// The threads of the process.
    pub threads: Vec<ThreadSample>,
}

/// Reads the threads of a process. Returns `None` if the process has ended or may not be read.
#[must_use]
pub(crate) fn sample(process: u32) -> Option<ProcessSample> {
    sample_in(Path::new("/proc"), process)
}

/// Returns the time that the calling thread has spent on a run queue since its start, in nanoseconds. Returns `None` where the kernel does not report
/// it.
#[must_use]
pub fn own_waited_ns() -> Option<u64> {
    parse_schedstat(&fs::read_to_string("/proc/thread-self/schedstat").ok()?).map(|(_, waited_ns)| waited_ns)
}

fn sample_in(proc: &Path, process: u32) -> Option<ProcessSample> {
    let of_process = proc.join(process.to_string());
    let (_, started_ticks) = parse_stat(&fs::read_to_string(of_process.join("stat")).ok()?)?;
    let tasks = fs::read_dir(of_process.join("task")).ok()?;
    let threads = tasks.take(THREADS_MAX).filter_map(|task| thread(&task.ok()?.path())).collect();
    Some(ProcessSample { started_ticks, threads })
}

/// Reads one thread. Returns `None` for a thread that ends while it is read.
fn thread(task: &Path) -> Option<ThreadSample> {
    let thread = task.file_name()?.to_str()?.parse().ok()?;
    let (run_ns, waited_ns) = parse_schedstat(&fs::read_to_string(task.join("schedstat")).ok()?)?;
    let (state, _) = parse_stat(&fs::read_to_string(task.join("stat")).ok()?)?;
    Some(ThreadSample { thread, state, run_ns, waited_ns })
}

/// Returns state and start time of a `stat` line. The name of the program may hold any character, so fields count from the last bracket.
fn parse_stat(line: &str) -> Option<(ThreadState, u64)> {
    let (_, fields) = line.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = match fields.next()? {
        "R" => ThreadState::Runnable,
        "D" => ThreadState::Blocked,
        "T" | "t" => ThreadState::Stopped,
        _ => ThreadState::Asleep,
    };
    let started_ticks = fields.nth(START_TIME_FIELD - 1)?.parse().ok()?;
    Some((state, started_ticks))
}

/// Returns run time and waiting time of a `schedstat` line, in nanoseconds.
fn parse_schedstat(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.split_ascii_whitespace();
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let line = "123 (a ) R 9) S 1 123 123 0 -1 4194560 89 0 0 0 0 0 0 0 20 0 1 0 77777 2899968 200 0";
        assert_eq!(parse_stat(line), Some((ThreadState::Asleep, 77_777)));
        assert_eq!(parse_stat("1 (x) T 1 2"), None, "a short line is no evidence");
        assert_eq!(parse_stat(""), None);
        assert_eq!(parse_schedstat("100 2000 3\n"), Some((100, 2000)));
        assert_eq!(parse_schedstat("100"), None);
    }

    #[test]
    fn the_own_process_is_readable_and_one_that_does_not_exist_is_not() {
        let own = sample(std::process::id()).expect("a process may read itself");
        assert!(own.threads.iter().any(|thread| thread.state == ThreadState::Runnable));
        assert!(own.started_ticks > 0);
        assert_eq!(sample(u32::MAX), None);
    }

    #[test]
    fn a_stopped_process_is_read_as_stopped() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
        rustix::process::waitid(
            rustix::process::WaitId::Pid(process),
            rustix::process::WaitIdOptions::STOPPED,
        )
        .unwrap();
        let sample = sample(child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(sample.threads[0].state, ThreadState::Stopped);
    }
}
