//! Exit status of a process that is not a child of this one.
//!
//! The kernel (6.15 or newer) says it of a pidfd once the parent has waited for the process. Before that, the process is a zombie, and its line
//! in `/proc` says it. On older kernels the answer is unknown if the parent was faster.
//!
//! The kernel hides the status in `/proc` from a process of another user, and from one in a user namespace of its own, such as the agent of an ordinary
//! user's rack with interfaces. It shows 0 then, like that of an orderly exit. Such a process waits for the parent. On an older kernel it takes the end
//! for an exit.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

/// Number of attempts. Between two of them, the parent may wait for the process.
const ATTEMPTS: u32 = 20;
/// Number of attempts if only the wait of the parent reveals the status.
const HIDDEN_ATTEMPTS: u32 = 2000;
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(1);
/// Place of the exit code behind the name in `/proc/PID/stat`: field 52 of proc(5).
const EXIT_CODE_FIELD: usize = 49;
/// Place of the first address of the code: field 26. It is 1 if the kernel hides it together with the exit code.
const START_CODE_FIELD: usize = 23;
/// `PIDFD_INFO_EXIT` of `linux/pidfd.h`.
const INFO_EXIT: u64 = 1 << 3;

/// `struct pidfd_info` of `linux/pidfd.h`, in its first version.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    /// Process numbers, users and groups.
    numbers: [u32; 11],
    exit_code: i32,
}

/// `PIDFD_GET_INFO`.
const GET_INFO: Opcode = opcode::read_write::<PidfdInfo>(0xFF, 11);

/// End of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramEnd {
    /// It returned or called `exit`.
    Exited,
    /// A signal ended it.
    Killed,
    /// The kernel does not say.
    Unknown,
}

/// Returns true if the kernel hides the exit status of a running process in `/proc` from this one.
pub(super) fn is_hidden(pid: u32) -> bool {
    field(pid, START_CODE_FIELD) == Some(1)
}

/// Returns how the process ended. Call it after the end of the process. `is_hidden`: result of [`is_hidden`] while it ran.
pub(super) fn end_of(process: &OwnedFd, pid: u32, is_hidden: bool) -> ProgramEnd {
    let attempts = if is_hidden { HIDDEN_ATTEMPTS } else { ATTEMPTS };
    for _ in 0..attempts {
        let of_pidfd = status_of_pidfd(process);
        if is_hidden && of_pidfd == Err(Errno::NOTTY) {
            return ProgramEnd::Exited;
        }
        let of_zombie = || if is_hidden { None } else { status_of_zombie(pid) };
        if let Some(status) = of_pidfd.ok().flatten().or_else(of_zombie) {
            // The lower seven bits are the signal: wait(2).
            return if status & 0x7f == 0 { ProgramEnd::Exited } else { ProgramEnd::Killed };
        }
        thread::sleep(ATTEMPT_INTERVAL);
    }
    ProgramEnd::Unknown
}

/// Returns the status, or `None` while the parent has not waited for the process. The error is `NOTTY` on kernels without the call.
fn status_of_pidfd(process: &OwnedFd) -> Result<Option<i32>, Errno> {
    let mut info = PidfdInfo { mask: INFO_EXIT, ..PidfdInfo::default() };
    // SAFETY: needed because no safe function has this call. The number is that of `PIDFD_GET_INFO` for a structure of this size,
    // the kernel writes at most that many bytes, and every pattern of bytes is a `PidfdInfo`.
    unsafe { ioctl(process.as_fd(), Updater::<GET_INFO, PidfdInfo>::new(&mut info)) }?;
    Ok((info.mask & INFO_EXIT != 0).then_some(info.exit_code))
}

fn status_of_zombie(pid: u32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    if state_of(&stat) != Some('Z') {
        return None;
    }
    field_of(&stat, EXIT_CODE_FIELD).and_then(|status| i32::try_from(status).ok())
}

/// Returns a field behind the name in the line of a process.
fn field(pid: u32, place: usize) -> Option<i64> {
    field_of(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?, place)
}

fn field_of(stat: &str, place: usize) -> Option<i64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(place)?.parse().ok()
}

/// Returns the state in a line of `/proc/PID/stat`. The name before it may have any characters.
pub(super) fn state_of(stat: &str) -> Option<char> {
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;

    #[test]
    fn a_state_follows_the_last_parenthesis() {
        assert_eq!(state_of("7 (a) b) T 1 2"), Some('T'));
        assert_eq!(state_of(""), None);
    }

    fn end(script: &str, waits_first: bool) -> ProgramEnd {
        let mut child = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).spawn().unwrap();
        let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        poll(&mut [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)], None).unwrap();
        if waits_first {
            child.wait().unwrap();
        }
        let end = end_of(&process, child.id(), false);
        child.wait().unwrap();
        end
    }

    #[test]
    fn a_zombie_says_how_it_ended() {
        assert_eq!(end("exit 0", false), ProgramEnd::Exited);
        assert_eq!(end("exit 3", false), ProgramEnd::Exited);
        assert_eq!(end("kill -9 $$", false), ProgramEnd::Killed);
    }

    #[test]
    fn a_hidden_status_is_known_when_the_parent_has_waited() {
        assert!(!is_hidden(std::process::id()));
        let of = |script: &str| {
            let mut child = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).spawn().unwrap();
            let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
            poll(&mut [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)], None).unwrap();
            let waited = thread::spawn(move || child.wait());
            let end = end_of(&process, 0, true);
            waited.join().unwrap().unwrap();
            (end, status_of_pidfd(&process) == Err(Errno::NOTTY))
        };
        for (script, end) in [("exit 3", ProgramEnd::Exited), ("kill -9 $$", ProgramEnd::Killed)] {
            let (found, is_old_kernel) = of(script);
            assert_eq!(found, if is_old_kernel { ProgramEnd::Exited } else { end });
        }
    }

    #[test]
    fn a_process_whose_parent_has_waited_says_it_or_is_unknown() {
        assert!([ProgramEnd::Exited, ProgramEnd::Unknown].contains(&end("exit 3", true)));
        assert!([ProgramEnd::Killed, ProgramEnd::Unknown].contains(&end("kill -9 $$", true)));
    }
}
