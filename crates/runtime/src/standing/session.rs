//! Sessions of processes that outlive their launcher.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Gives the process a session of its own, so that neither Ctrl-C nor a closed terminal reaches it.
pub(super) fn start_session(command: &mut Command) {
    // SAFETY: needed because only the child can leave its session. Between fork and exec the closure makes one system
    // call: it allocates nothing, takes no lock and touches no memory of the parent.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            Ok(())
        });
    }
}
