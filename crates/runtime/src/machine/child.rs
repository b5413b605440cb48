//! Arrangements of a child process with its parent, made between fork and exec.

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal, setsid};

/// Has the process killed when the thread that starts it ends, which includes the death of this process.
pub fn die_with_parent(command: &mut Command) {
    let parent = getpid();
    // SAFETY: needed because only the child can arrange its death with its parent. Between fork and exec the closure makes
    // system calls only: it allocates nothing, takes no lock, and touches nothing but the copied number.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the previous line. No signal would come then.
            if getppid() != Some(parent) {
                return Err(rustix::io::Errno::SRCH.into());
            }
            Ok(())
        });
    }
}

/// Gives the process a session of its own, so that neither Ctrl-C nor a closed terminal reaches it.
pub(crate) fn start_session(command: &mut Command) {
    // SAFETY: needed because only the child can leave its session. Between fork and exec the closure makes one system
    // call: it allocates nothing, takes no lock and touches no memory of the parent.
    unsafe {
        command.pre_exec(|| {
            setsid()?;
            Ok(())
        });
    }
}
