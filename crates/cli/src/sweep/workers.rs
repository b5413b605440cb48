//! Local engine: points as processes of this machine, several at once.
//!
//! A process is the unit of loss. One that dies without a result is started once more, and then listed. Processes end with this one, so a
//! sweep that is killed leaves none behind, and they are in process groups of their own, so that Ctrl-C ends them only here.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rackloom_experiments::parallel;
use rackloom_runtime::machine::child::die_with_parent;
use rackloom_runtime::machine::interruption::Interruption;

use super::folder::Folder;
use crate::tally::Tally;

/// Interval at which a process is polled for its end.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Number of times that a point is started.
const ATTEMPTS: u32 = 2;

/// Local engine of one sweep.
pub(super) struct Workers<'a> {
    pub(super) folder: &'a Folder,
    pub(super) interruption: &'a Interruption,
    /// Processes at the same time.
    pub(super) at_once: usize,
    /// Moment at which running processes are ended.
    pub(super) deadline: Option<Instant>,
}

/// Reasons of the points that have no result although they were started twice, by point.
pub(super) type Died = BTreeMap<u64, String>;

/// End of a process.
enum End {
    Result,
    Died(String),
    /// The sweep ends.
    Cut,
}

impl Workers<'_> {
    /// Runs these points. Returns those that died.
    pub(super) fn run(&self, points: &[u64], tally: &Tally) -> Died {
        let mut died = Died::new();
        let points = points.iter().copied();
        let run = |index| (index, self.run_point(index));
        parallel::for_each(
            points,
            self.at_once,
            || self.is_over(),
            run,
            |_, (index, end)| {
                match end {
                    End::Cut => return,
                    End::Result => {}
                    End::Died(reason) => _ = died.insert(index, reason),
                }
                tally.add();
            },
        );
        died
    }

    /// Returns true if the sweep ends before all points have run.
    pub(super) fn is_over(&self) -> bool {
        self.interruption.is_requested() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn run_point(&self, index: u64) -> End {
        let mut end = End::Cut;
        for _ in 0..ATTEMPTS {
            end =
                self.attempt(index).unwrap_or_else(|error| End::Died(format!("cannot be started: {error}")));
            if !matches!(end, End::Died(_)) {
                break;
            }
        }
        end
    }

    fn attempt(&self, index: u64) -> io::Result<End> {
        if self.is_over() {
            return Ok(End::Cut);
        }
        let log = self.folder.log(index);
        let mut command = Command::new("/proc/self/exe");
        command.args(["sweep", "--point", &index.to_string(), "--out"]).arg(self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?).process_group(0);
        die_with_parent(&mut command);
        let mut child = command.spawn()?;
        let Some(status) = self.wait(&mut child)? else { return Ok(End::Cut) };
        if status.success() {
            // An empty log of a run that ended well says nothing.
            let _ = fs::remove_file(&log);
            return Ok(End::Result);
        }
        Ok(End::Died(reason(status, &fs::read_to_string(&log).unwrap_or_default())))
    }

    /// Waits for the end of a process. Kills it and returns `None` if the sweep ends before.
    fn wait(&self, child: &mut Child) -> io::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            if self.is_over() {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Returns the reason of a death: the signal or the exit code, and the first line of the log.
fn reason(status: ExitStatus, log: &str) -> String {
    let how = match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, code) => format!("exit code {}", code.unwrap_or_default()),
    };
    match log.lines().find(|line| !line.trim().is_empty()) {
        Some(line) => format!("{how}: {}", line.trim()),
        None => how,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_death_has_a_reason() {
        assert_eq!(reason(ExitStatus::from_raw(9), ""), "signal 9");
        assert_eq!(reason(ExitStatus::from_raw(3 << 8), "\nno space\nmore"), "exit code 3: no space");
    }
}
