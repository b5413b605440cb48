//! Ctrl-C, SIGTERM or a closed terminal, for commands that end in order: what was measured before is printed, a seat sends a departure.
//!
//! The signals are waited for by a thread, and whoever works looks now and then whether there was one. A command that works in a
//! command of its own has that told to end, which takes its rack down; such children do not hear the terminal's Ctrl-C: they are in
//! groups of their own, so that each of them is told exactly once.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::signal::unix::{SignalKind, signal};

/// Whether somebody wants this to end, and whom to tell.
#[derive(Debug, Default)]
pub struct Interruption {
    is_asked: AtomicBool,
    /// The command under way.
    child: Mutex<Option<OwnedFd>>,
}

impl Interruption {
    /// Listen from now on, until the process ends.
    pub fn listen() -> io::Result<Arc<Self>> {
        let this = Arc::new(Self::default());
        let heard = Arc::clone(&this);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        // From here on a signal waits to be heard instead of ending the process.
        let signals = {
            let _entered = runtime.enter();
            let each = |kind| signal(kind);
            [each(SignalKind::interrupt())?, each(SignalKind::terminate())?, each(SignalKind::hangup())?]
        };
        let listen = move || {
            runtime.block_on(async {
                let [mut interrupt, mut terminate, mut hangup] = signals;
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
            });
            heard.ask();
        };
        thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
        Ok(this)
    }

    /// Whether it is to end.
    pub fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Acquire)
    }

    /// End the take under way, and begin no other.
    pub fn ask(&self) {
        self.is_asked.store(true, Ordering::Release);
        if let Some(child) = &*self.child() {
            // It may have ended by itself just now.
            let _ = pidfd_send_signal(child, Signal::TERM);
        }
    }

    /// Wait for a command to end, which is told to if this is asked meanwhile.
    pub fn attend(&self, child: Child) -> io::Result<Output> {
        let process = Pid::from_child(&child);
        *self.child() = Some(pidfd_open(process, PidfdFlags::empty())?);
        let output = child.wait_with_output();
        *self.child() = None;
        output
    }

    fn child(&self) -> MutexGuard<'_, Option<OwnedFd>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_command_under_way_is_told_to_end() {
        let interruption = Interruption::default();
        // It ends with its standard input, which stays open, or by being told.
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let _input = child.stdin.take();
        let output = thread::scope(|scope| {
            let attending = scope.spawn(|| interruption.attend(child));
            while interruption.child().is_none() {
                thread::yield_now();
            }
            interruption.ask();
            attending.join().unwrap()
        });
        assert!(interruption.is_asked());
        assert_eq!(output.unwrap().status.code(), None, "it was ended by a signal");
    }
}
