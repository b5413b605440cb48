//! Rights to make namespaces: those of the user, or those that a user namespace of its own gives.
//!
//! In that user namespace a process keeps the number of its user, so files belong to the same user and programs that refuse to run as root run. Its
//! capabilities are *ambient*: programs that it starts have them too.

use std::fs::File;
use std::io::{self, Write};

use rustix::process::{getgid, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, capabilities, configure_capability_in_ambient_set,
    set_capabilities, unshare_unsafe,
};

use super::error::{NamespaceError, forbidden};

/// Returns true if this process has the right to make namespaces and interfaces.
fn may_make_namespaces() -> bool {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

/// Gives this process the right to make namespaces and interfaces: by a user namespace of its own, unless it has that right. Fails in a process with
/// more than one thread.
///
/// # Errors
/// [`NamespaceError::Forbidden`], with the right that the system refuses.
pub fn enter_user_namespace() -> Result<(), NamespaceError> {
    if may_make_namespaces() { Ok(()) } else { enter_new_user_namespace(UnshareFlags::empty()) }
}

/// Moves this process into new namespaces: one of users, and `others`. Makes nothing but system calls.
pub(super) fn enter_new_user_namespace(others: UnshareFlags) -> Result<(), NamespaceError> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    // SAFETY: needed to get the right to make namespaces. `unshare` with these flags leaves file descriptors, memory and working directory shared as
    // they are. It changes only the rights of this thread, and the kernel refuses processes with several threads.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER | others) }.map_err(forbidden("a user namespace"))?;
    write_line("/proc/self/setgroups", format_args!("deny"))
        .and_then(|()| write_line("/proc/self/uid_map", format_args!("{user} {user} 1")))
        .and_then(|()| write_line("/proc/self/gid_map", format_args!("{group} {group} 1")))
        .map_err(forbidden("to keep its user in its own user namespace"))?;
    pass_on(CapabilitySet::all()).map_err(forbidden("to pass its capabilities on to programs"))
}

/// Limits the capabilities of programs that this process becomes or starts to these, as far as it has them. Root passes on what it has in any case.
pub(crate) fn pass_on(wanted: CapabilitySet) -> io::Result<()> {
    let sets = capabilities(None)?;
    let passed = sets.permitted & wanted;
    set_capabilities(None, CapabilitySets { inheritable: passed, ..sets })?;
    for capability in passed.iter() {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

/// Writes a short text in one system call, without allocating.
pub(super) fn write_line(path: &str, text: std::fmt::Arguments<'_>) -> io::Result<()> {
    let mut buffer = [0; 64];
    let mut rest = &mut buffer[..];
    rest.write_fmt(text)?;
    let unused = rest.len();
    let length = buffer.len() - unused;
    File::options().write(true).open(path)?.write_all(&buffer[..length])
}
