//! One process per seat: starts them, prefixes their output, and gathers their exit codes.
//!
//! Each process takes its seat by itself (`rackloom exec --seat`) and becomes the program. Its standard input is empty. All programs run to
//! their end, also after one has failed.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::machine::child::die_with_parent;
use crate::machine::interruption::Interruption;
use crate::outcome::failure::Failure;

/// Longest piece of a line that is printed at once. A longer line is printed in several.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// Time from the forwarded interruption to the end of what is left.
const KILL_AFTER: Duration = Duration::from_secs(5);
/// Time between two looks at the processes.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// End of the program of one seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatEnd {
    /// Name of the seat.
    pub seat: String,
    /// Exit code as a shell reports it: that of the program, or 128 and the number of the signal that ended it.
    pub code: u8,
    /// End of the program, as text.
    pub how: String,
}

/// Receiver of the programs' output. Called from several threads.
pub trait SeatOutput: Sync {
    /// Takes a line without its end, of the standard output of the seat's program, or of its standard error.
    fn line(&self, seat: &str, is_error: bool, line: &[u8]);
}

/// Starts the command of each seat, and waits for all of them. An interruption is forwarded to all as SIGTERM; what is left five seconds later
/// is killed. If this process dies, the programs are killed.
///
/// # Errors
/// A process cannot be started. Those that were started are killed.
pub fn run_on_seats(
    commands: Vec<(String, Command)>,
    interruption: &Interruption,
    output: &dyn SeatOutput,
) -> Result<Vec<SeatEnd>, Failure> {
    let mut running = Vec::new();
    for (seat, command) in commands {
        match start(command) {
            Ok(child) => running.push(Running { seat, child, end: None }),
            Err(error) => {
                running.iter_mut().for_each(|one| one.signal(Signal::KILL));
                return Err(Failure::could_not_start(
                    format!("cannot start the process of seat {seat}"),
                    error,
                ));
            }
        }
    }
    thread::scope(|scope| {
        for one in &mut running {
            let (out, error) = (one.child.stdout.take(), one.child.stderr.take());
            let seat = one.seat.clone();
            if let Some(out) = out {
                let seat = seat.clone();
                scope.spawn(move || copy_lines(out, |line| output.line(&seat, false, line)));
            }
            if let Some(error) = error {
                scope.spawn(move || copy_lines(error, |line| output.line(&seat, true, line)));
            }
        }
        wait(&mut running, interruption);
    });
    Ok(running.into_iter().map(Running::into_end).collect())
}

#[derive(Debug)]
struct Running {
    seat: String,
    child: Child,
    end: Option<io::Result<ExitStatus>>,
}

impl Running {
    /// Sends a signal to the process group, unless its leader has been waited for.
    fn signal(&self, signal: Signal) {
        if self.end.is_none() {
            let _ = kill_process_group(Pid::from_child(&self.child), signal);
        }
    }

    fn into_end(self) -> SeatEnd {
        let Self { seat, end, .. } = self;
        match end {
            Some(Ok(status)) => {
                let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(255);
                let how = match (status.code(), status.signal()) {
                    (Some(code), _) => format!("exit code {code}"),
                    (None, Some(signal)) => format!("ended by signal {signal}"),
                    (None, None) => status.to_string(),
                };
                SeatEnd { seat, code: u8::try_from(code).unwrap_or(255), how }
            }
            Some(Err(error)) => SeatEnd { seat, code: 255, how: format!("cannot be waited for: {error}") },
            None => SeatEnd { seat, code: 255, how: "was not waited for".to_owned() },
        }
    }
}

fn start(mut command: Command) -> io::Result<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    die_with_parent(&mut command);
    command.spawn()
}

fn wait(running: &mut [Running], interruption: &Interruption) {
    let mut kill_at = None;
    while running.iter().any(|one| one.end.is_none()) {
        for one in running.iter_mut().filter(|one| one.end.is_none()) {
            // What is left of its group would hold the pipes open. The number of the group is its own until the leader has been waited for.
            if has_ended(&one.child) {
                one.signal(Signal::KILL);
            }
            one.end = one.child.try_wait().transpose();
        }
        if interruption.is_requested() {
            match kill_at {
                None => {
                    kill_at = Some(Instant::now() + KILL_AFTER);
                    running.iter().for_each(|one| one.signal(Signal::TERM));
                }
                Some(at) if Instant::now() >= at => running.iter().for_each(|one| one.signal(Signal::KILL)),
                Some(_) => {}
            }
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Returns true if a process has ended and has not been waited for.
fn has_ended(child: &Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(Pid::from_child(child)), options).is_ok_and(|status| status.is_some())
}

/// Reads lines until the end, and passes each without its end.
fn copy_lines(from: impl Read, mut take: impl FnMut(&[u8])) {
    let (mut from, mut line) = (BufReader::new(from), Vec::new());
    loop {
        line.clear();
        match from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => take(line.strip_suffix(b"\n").unwrap_or(&line)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Lines(Mutex<Vec<(String, bool, String)>>);

    impl SeatOutput for Lines {
        fn line(&self, seat: &str, is_error: bool, line: &[u8]) {
            let line = String::from_utf8_lossy(line).into_owned();
            self.0.lock().unwrap().push((seat.to_owned(), is_error, line));
        }
    }

    fn shell(seat: &str, script: &str) -> (String, Command) {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        (seat.to_owned(), command)
    }

    fn codes(ends: &[SeatEnd]) -> Vec<u8> {
        ends.iter().map(|end| end.code).collect()
    }

    #[test]
    fn output_and_codes_are_gathered() {
        let lines = Lines::default();
        let commands = vec![
            shell("n0", "echo one; echo two >&2; cat"),
            shell("n1", "exit 3"),
            shell("n2", "kill -9 $$"),
        ];
        let ends = run_on_seats(commands, &Interruption::default(), &lines).unwrap();
        assert_eq!(codes(&ends), [0, 3, 137]);
        let mut lines = lines.0.into_inner().unwrap();
        lines.sort();
        assert_eq!(lines, [("n0".into(), false, "one".into()), ("n0".into(), true, "two".into())]);
    }

    #[test]
    fn an_interruption_reaches_every_program() {
        let (lines, interruption) = (Lines::default(), Interruption::default());
        let ignores = "trap '' TERM; echo ready; while :; do sleep 0.01; done";
        let commands = vec![shell("n0", "exec sleep 1000"), shell("n1", ignores)];
        let ends = thread::scope(|scope| {
            let ends = scope.spawn(|| run_on_seats(commands, &interruption, &lines).unwrap());
            while lines.0.lock().unwrap().is_empty() {
                thread::sleep(Duration::from_millis(1));
            }
            interruption.request();
            ends.join().unwrap()
        });
        assert_eq!(codes(&ends), [143, 137]);
    }

    #[test]
    fn a_program_that_is_missing_is_an_error() {
        let command = Command::new("/there is no such program");
        let run = run_on_seats(vec![("n0".to_owned(), command)], &Interruption::default(), &Lines::default());
        assert!(run.unwrap_err().to_string().contains("seat n0"));
    }
}
