//! Signals that end a command in order: Ctrl-C, SIGTERM, or SIGHUP of a closed terminal.
//!
//! A thread waits for the signals, and the working thread polls the result. A working thread that runs a child process forwards the
//! interruption to it, once. Such children are in process groups of their own, so the terminal's Ctrl-C does not reach them as well.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::signal::unix::{SignalKind, signal};

/// Interruption of a command, and the child process that it is forwarded to.
#[derive(Debug, Default)]
pub struct Interruption {
    is_asked: AtomicBool,
    /// Child process that runs now.
    child: Mutex<Option<OwnedFd>>,
}

impl Interruption {
    /// Starts the thread that waits for signals, until the process ends.
    ///
    /// # Errors
    /// The thread or the signal handlers cannot be set up.
    pub fn listen() -> io::Result<Arc<Self>> {
        let this = Arc::new(Self::default());
        let heard = Arc::clone(&this);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        // From here on a signal does not end the process.
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

    /// Returns whether the command must end.
    pub fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Acquire)
    }

    /// Interrupts the command, and the child process that runs now.
    pub fn ask(&self) {
        self.is_asked.store(true, Ordering::Release);
        if let Some(child) = &*self.child() {
            // It may have ended by itself just now.
            let _ = pidfd_send_signal(child, Signal::TERM);
        }
    }

    /// Waits for the end of a child process. An interruption is forwarded to it.
    ///
    /// # Errors
    /// The process cannot be watched.
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
    fn an_interruption_ends_the_child_process() {
        let interruption = Interruption::default();
        // It ends with its standard input, which stays open, or by a signal.
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
