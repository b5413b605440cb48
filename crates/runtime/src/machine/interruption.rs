//! Signals that end a command in order: SIGINT (Ctrl-C), SIGTERM, and SIGHUP of a closed terminal.
//!
//! A thread waits for the signals, and the working thread polls [`Interruption::is_requested`]. A working
//! thread that runs a child process forwards the interruption to it once. Such a child has a process group of
//! its own, so the terminal's Ctrl-C does not reach it as well.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::signal::unix::{SignalKind, signal};

/// Request to end a command, forwarded to its child process.
#[derive(Debug, Default)]
pub struct Interruption {
    is_requested: AtomicBool,
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
        let of_thread = Arc::clone(&this);
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
            of_thread.request();
        };
        thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
        Ok(this)
    }

    /// Returns true if the command must end.
    pub fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::Acquire)
    }

    /// Interrupts the command, and the child process that runs now.
    pub fn request(&self) {
        self.is_requested.store(true, Ordering::Release);
        if let Some(child) = &*self.child() {
            // Fails if the child has just ended.
            let _ = pidfd_send_signal(child, Signal::TERM);
        }
    }

    /// Waits for the end of a child process. An interruption is forwarded to it.
    ///
    /// # Errors
    /// The process cannot be watched.
    pub fn wait_for(&self, child: Child) -> io::Result<Output> {
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
        // The process ends when its standard input, which stays open here, is closed, or by a signal.
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let _input = child.stdin.take();
        let output = thread::scope(|scope| {
            let waiting = scope.spawn(|| interruption.wait_for(child));
            while interruption.child().is_none() {
                thread::yield_now();
            }
            interruption.request();
            waiting.join().unwrap()
        });
        assert!(interruption.is_requested());
        assert_eq!(output.unwrap().status.code(), None, "a signal ended it");
    }
}
