//! Two sides of a loop as two processes, each pinned to a processor.
//!
//! The target is a fork of the initiator, so both have all earlier mappings. Only a process without other threads should
//! fork, because a fork copies only the calling thread, but the locks of all others. So the command runs each take
//! in a process of its own.

use std::io::{self, PipeReader, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_parent_process_death_signal, waitpid};
use rustix::thread::{sched_getaffinity, sched_setaffinity};

use crate::processors::{Pair, hold_to};

impl Pair {
    /// Runs both sides at the same time, the initiator here and the target in a process of its own, and waits for both.
    ///
    /// Both must have time limits. A target that still runs after a failure of the initiator is killed.
    ///
    /// # Errors
    /// The error of the side that failed; of the target if both failed, because the initiator then reports only a timeout.
    pub fn run_processes<N>(
        self,
        initiator: impl FnOnce() -> io::Result<N>,
        target: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<N> {
        let target = TargetSide::begin(self.target, target)?;
        let before = sched_getaffinity(None)?;
        let initiator = hold_to(&[self.initiator]).and_then(|()| initiator());
        sched_setaffinity(None, &before)?;
        match initiator {
            Ok(value) => target.end().map(|()| value),
            Err(error) => Err(target.reason_if_over().unwrap_or(error)),
        }
    }
}

/// Process of the target. It is killed on drop at the latest.
struct TargetSide {
    process: Option<Pid>,
    /// Pipe with the error message of the process. It is closed when the process ends.
    reason: PipeReader,
}

impl TargetSide {
    fn begin(processor: usize, act: impl FnOnce() -> io::Result<()>) -> io::Result<Self> {
        let (reason, mut report) = io::pipe()?;
        // SAFETY: needed because the standard library starts other programs only. The child runs nothing but what is
        // below: it never returns into the caller's frames, runs none of their destructors, and ends by `_exit`.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let act = || {
                    set_parent_process_death_signal(Some(Signal::KILL))?;
                    hold_to(&[processor])?;
                    act()
                };
                let result = catch_unwind(AssertUnwindSafe(act));
                let result = result.unwrap_or_else(|_| Err(io::Error::other("it panicked")));
                if let Err(error) = &result {
                    // An error that cannot be reported is dropped.
                    let _ = report.write_all(error.to_string().as_bytes());
                }
                // SAFETY: needed to end without the destructors and buffers that belong to the initiator.
                unsafe { libc::_exit(i32::from(result.is_err())) }
            }
            process => Ok(Self { process: Pid::from_raw(process), reason }),
        }
    }

    /// Waits for the end of the process.
    fn end(mut self) -> io::Result<()> {
        let Some(process) = self.process.take() else { return Ok(()) };
        let status = loop {
            match waitpid(Some(process), WaitOptions::empty()) {
                Ok(ended) => break ended.map(|(_, status)| status),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        };
        match status.and_then(|status| status.exit_status()) {
            Some(0) => Ok(()),
            _ => Err(self.failure()),
        }
    }

    /// Returns the reason of the failure if the process has ended by itself.
    fn reason_if_over(mut self) -> Option<io::Error> {
        let process = self.process?;
        let (_, status) = waitpid(Some(process), WaitOptions::NOHANG).ok()??;
        self.process = None;
        (status.exit_status() != Some(0)).then(|| self.failure())
    }

    fn failure(&mut self) -> io::Error {
        let mut text = String::new();
        // A reason that cannot be read is empty.
        let _ = self.reason.read_to_string(&mut text);
        let text = if text.is_empty() { "it was ended" } else { &text };
        io::Error::other(format!("target of a loop: {text}"))
    }
}

impl Drop for TargetSide {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            // The process may have ended by itself just now.
            let _ = kill_process(process, Signal::KILL);
            let _ = waitpid(Some(process), WaitOptions::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::pages::Pages;
    use crate::processors::allowed;
    use crate::wait::wait_until;

    fn pair() -> Option<Pair> {
        let pair = Pair::choose().unwrap();
        if pair.is_none() {
            crate::processors::no_pair();
        }
        pair
    }

    #[test]
    fn the_target_is_another_process_on_its_processor_and_shares_only_pages() {
        let Some(pair) = pair() else { return };
        let before = allowed().unwrap();
        let pages = Pages::new(4096).unwrap();
        let (process, processor) = (pages.word(0), pages.word(8));
        let initiator = || {
            wait_until("initiator", || process.load(Ordering::Acquire) != 0)?;
            allowed()
        };
        let target = || {
            processor.store(allowed()?[0] as u64 + 1, Ordering::Relaxed);
            process.store(u64::from(std::process::id()), Ordering::Release);
            Ok(())
        };
        assert_eq!(pair.run_processes(initiator, target).unwrap(), [pair.initiator]);
        assert_ne!(process.load(Ordering::Relaxed), u64::from(std::process::id()));
        assert_eq!(processor.load(Ordering::Relaxed), pair.target as u64 + 1);
        assert_eq!(allowed().unwrap(), before, "the initiator is unpinned again");
    }

    #[test]
    fn a_failing_target_reports_the_reason() {
        let Some(pair) = pair() else { return };
        let error = pair.run_processes(|| Ok(()), || Err(io::Error::other("no space"))).unwrap_err();
        assert_eq!(error.to_string(), "target of a loop: no space");
    }

    #[test]
    fn an_abandoned_target_is_killed() {
        let Some(pair) = pair() else { return };
        let (alive, held) = io::pipe().unwrap();
        let initiator = || {
            drop(held);
            Err::<(), _>(io::Error::other("initiator"))
        };
        // It never ends by itself, and holds the pipe open until it is killed.
        let target = || loop {
            std::thread::park();
        };
        assert_eq!(pair.run_processes(initiator, target).unwrap_err().to_string(), "initiator");
        assert_eq!(io::read_to_string(alive).unwrap(), "", "the pipe has no writer any more");
    }
}
