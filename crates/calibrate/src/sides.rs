//! The two sides of a loop as two processes, each held to a processor.
//!
//! The far side is a fork of the near one: what both had mapped before, both have. Only a process without other threads should
//! do that, because a fork copies the thread that asks for it and the locks of all the others; so the command runs each take
//! in a process of its own.

use std::io::{self, PipeReader, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_parent_process_death_signal, waitpid};
use rustix::thread::{sched_getaffinity, sched_setaffinity};

use crate::processors::{Pair, hold_to};

impl Pair {
    /// Run both sides at the same time, the near one here and the far one in a process of its own, and wait for both.
    ///
    /// Both are expected to give up by themselves; a far side that is left alone is ended.
    ///
    /// # Errors
    /// That of the side that failed; the far one's goes first, because the near one then only says that nobody came.
    pub fn run_processes<N>(
        self,
        near: impl FnOnce() -> io::Result<N>,
        far: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<N> {
        let far = FarSide::begin(self.far, far)?;
        let before = sched_getaffinity(None)?;
        let near = hold_to(&[self.near]).and_then(|()| near());
        sched_setaffinity(None, &before)?;
        match near {
            Ok(value) => far.end().map(|()| value),
            Err(error) => Err(far.reason_if_over().unwrap_or(error)),
        }
    }
}

/// A process that is ended, at the latest, when nobody wants it any more.
struct FarSide {
    process: Option<Pid>,
    /// Why it failed, if it did; closed when it is over.
    reason: PipeReader,
}

impl FarSide {
    fn begin(processor: usize, act: impl FnOnce() -> io::Result<()>) -> io::Result<Self> {
        let (reason, mut tell) = io::pipe()?;
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
                    // Nobody is left to be told that the reason could not be told.
                    let _ = tell.write_all(error.to_string().as_bytes());
                }
                // SAFETY: needed to end without the destructors and buffers that belong to the near side.
                unsafe { libc::_exit(i32::from(result.is_err())) }
            }
            process => Ok(Self { process: Pid::from_raw(process), reason }),
        }
    }

    /// Wait until it is over.
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

    /// Why it failed, where it has ended before it was asked to.
    fn reason_if_over(mut self) -> Option<io::Error> {
        let process = self.process?;
        let (_, status) = waitpid(Some(process), WaitOptions::NOHANG).ok()??;
        self.process = None;
        (status.exit_status() != Some(0)).then(|| self.failure())
    }

    fn failure(&mut self) -> io::Error {
        let mut text = String::new();
        // A reason that cannot be read is an empty one.
        let _ = self.reason.read_to_string(&mut text);
        let text = if text.is_empty() { "it was ended" } else { &text };
        io::Error::other(format!("far side of a loop: {text}"))
    }
}

impl Drop for FarSide {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            // It may have ended by itself just now.
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
    use crate::patience::wait_until;
    use crate::processors::allowed;

    fn pair() -> Option<Pair> {
        let pair = Pair::choose().unwrap();
        if pair.is_none() {
            crate::processors::no_pair();
        }
        pair
    }

    #[test]
    fn the_far_side_is_another_process_on_its_processor_and_shares_only_pages() {
        let Some(pair) = pair() else { return };
        let before = allowed().unwrap();
        let pages = Pages::new(4096).unwrap();
        let (process, processor) = (pages.word(0), pages.word(8));
        let near = || {
            wait_until("near side", || process.load(Ordering::Acquire) != 0)?;
            allowed()
        };
        let far = || {
            processor.store(allowed()?[0] as u64 + 1, Ordering::Relaxed);
            process.store(u64::from(std::process::id()), Ordering::Release);
            Ok(())
        };
        assert_eq!(pair.run_processes(near, far).unwrap(), [pair.near]);
        assert_ne!(process.load(Ordering::Relaxed), u64::from(std::process::id()));
        assert_eq!(processor.load(Ordering::Relaxed), pair.far as u64 + 1);
        assert_eq!(allowed().unwrap(), before, "the near side is let go again");
    }

    #[test]
    fn a_far_side_that_fails_says_why() {
        let Some(pair) = pair() else { return };
        let error = pair.run_processes(|| Ok(()), || Err(io::Error::other("no room"))).unwrap_err();
        assert_eq!(error.to_string(), "far side of a loop: no room");
    }

    #[test]
    fn a_far_side_that_is_left_alone_is_ended() {
        let Some(pair) = pair() else { return };
        let (alive, held) = io::pipe().unwrap();
        let near = || {
            drop(held);
            Err::<(), _>(io::Error::other("near"))
        };
        // It would never end by itself, and holds the pipe open as long as it lives.
        let far = || loop {
            std::thread::park();
        };
        assert_eq!(pair.run_processes(near, far).unwrap_err().to_string(), "near");
        assert_eq!(io::read_to_string(alive).unwrap(), "", "the pipe has no writer any more");
    }
}
