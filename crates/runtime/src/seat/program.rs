//! Program whose seat this process holds as its agent (`rackloom exec`).
//!
//! The agent is not the parent of the program, so it watches a pidfd. A thread sees the end of the program and, unless the seat is held, its
//! stops (Ctrl-Z, a debugger, SIGSTOP): a stopped program is a silent node.
//!
//! | end of the program | end of the seat |
//! |---|---|
//! | exit, with any code | in order: peers get a departure and detect no death |
//! | a signal such as SIGKILL, or unknown | at once, as after SIGKILL: peers detect the death of the node |

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rackloom::ip::Interface;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open};

use super::exit_status::{ProgramEnd, end_of, is_hidden, state_of};
use crate::machine::interruption::Interruption;

/// Time between two looks whether the program is stopped.
const STATE_INTERVAL: Duration = Duration::from_millis(50);

/// Reasons for the end of a seat beside its control socket. By default there are none.
#[derive(Debug, Default)]
pub(crate) struct Holder {
    /// Interruption on which the seat leaves in order.
    pub(crate) interruption: Option<Arc<Interruption>>,
    /// Program that holds the seat.
    pub(crate) program: Option<Arc<SeatProgram>>,
    /// Network interface of the program.
    pub(crate) interface: Option<Interface>,
}

/// Program that holds the seat of this process.
#[derive(Debug)]
pub(crate) struct SeatProgram {
    process: Arc<OwnedFd>,
    is_stopped: Mutex<bool>,
    changed: Condvar,
}

impl SeatProgram {
    /// Watches the process `pid` in a thread. `interruption` is requested when the program has exited. With `holds`, stops of the program do
    /// not stop the node.
    ///
    /// # Errors
    /// The process has ended, or there are no descriptors or threads.
    pub(crate) fn watch(pid: u32, holds: bool, interruption: Arc<Interruption>) -> io::Result<Arc<Self>> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let number = number.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let process = Arc::new(pidfd_open(number, PidfdFlags::empty())?);
        let is_hidden = is_hidden(pid);
        let this = Arc::new(Self { process, is_stopped: Mutex::new(false), changed: Condvar::new() });
        let of_thread = Arc::clone(&this);
        let watch = move || {
            while !of_thread.has_ended_within(STATE_INTERVAL) {
                if !holds {
                    of_thread.set_stopped(is_stopped(pid));
                }
            }
            match end_of(&of_thread.process, pid, is_hidden) {
                ProgramEnd::Exited => {
                    interruption.request();
                    of_thread.set_stopped(false);
                }
                // A process may always signal itself.
                ProgramEnd::Killed | ProgramEnd::Unknown => drop(kill_process(getpid(), Signal::KILL)),
            }
        };
        thread::Builder::new().name("program".to_owned()).spawn(watch)?;
        Ok(this)
    }

    /// Returns the pidfd of the program.
    pub(crate) fn process(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.process)
    }

    /// Waits while the program is stopped. The wait ends with the program.
    pub(crate) fn wait_while_stopped(&self) {
        let stopped = self.changed.wait_while(self.lock(), |is_stopped| *is_stopped);
        drop(stopped.unwrap_or_else(PoisonError::into_inner));
    }

    fn set_stopped(&self, is_stopped: bool) {
        *self.lock() = is_stopped;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true once the program has ended. Waits for at most this time.
    fn has_ended_within(&self, time: Duration) -> bool {
        let timeout = Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
        let mut ends = [PollFd::from_borrowed_fd(self.process.as_fd(), PollFlags::IN)];
        // An interrupted wait is a short one.
        matches!(poll(&mut ends, Some(&timeout)), Ok(ready) if ready > 0)
    }
}

/// Returns true if the process is stopped by a signal or by a debugger.
fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    matches!(state_of(&stat), Some('T' | 't'))
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::time::Instant;

    use super::*;

    fn program() -> Child {
        // It ends when its standard input, which stays open here, is closed, or by a signal.
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
    }

    fn within(what: &str, mut is_so: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_program_that_exits_interrupts_the_seat() {
        let (mut child, interruption) = (program(), Arc::new(Interruption::default()));
        let program = SeatProgram::watch(child.id(), false, Arc::clone(&interruption)).unwrap();
        program.wait_while_stopped();
        assert!(!interruption.is_requested());
        drop(child.stdin.take());
        child.wait().unwrap();
        within("the interruption", || interruption.is_requested());
    }

    #[test]
    fn a_stopped_program_stops_the_node_unless_it_is_held() {
        let (mut child, interruption) = (program(), Arc::new(Interruption::default()));
        let [silent, held] = [false, true]
            .map(|holds| SeatProgram::watch(child.id(), holds, Arc::clone(&interruption)).unwrap());
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::STOP).unwrap();
        within("the stop", || *silent.lock());
        assert!(!*held.lock());
        held.wait_while_stopped();
        kill_process(pid, Signal::CONT).unwrap();
        silent.wait_while_stopped();
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
