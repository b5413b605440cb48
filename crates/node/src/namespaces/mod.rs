//! Network namespaces for the packet wire, without root where the kernel allows it.
//!
//! Order of events: the supervisor calls [`enter_supervisor_namespaces`] before it has threads. Each child calls [`enter_new_network_namespace`]
//! between fork and exec, so its namespace exists once the spawn has returned. The supervisor creates the [`Cable`]s. Each child calls [`bring_up`]
//! for its ends. Namespaces have no names unless the user requests them ([`Names`]). Each exists as long as a process or an interface end in it, and
//! the kernel removes it after the last one, however that ended.
//!
//! An unprivileged user gets the right to do this from a user namespace of its own, in which it keeps its number, has all capabilities, and which
//! gives it no rights outside. Some systems forbid even that. Then one typed error names the step.

mod bridges;
mod cables;
mod error;
mod interfaces;
mod link_events;
mod names;
mod rights;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use rustix::process::geteuid;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

pub use bridges::{Bridge, BridgeCable, connect_to_bridges, create_bridges};
#[cfg(test)]
pub(crate) use cables::remove;
pub use cables::{Cable, CableEnd, create_cables};
pub(crate) use cables::{cause_of, with_netlink};
pub use error::NamespaceError;
pub(crate) use error::forbidden;
pub use interfaces::{bring_up, set_mtu, switch_off, switch_on_all};
pub(crate) use interfaces::{hardware_address, has_carrier, mtu};
pub(crate) use link_events::LinkEvents;
pub use names::{NameError, Names, sweep_names_after};
pub use rights::enter_user_namespace;
pub(crate) use rights::pass_on;

/// Moves this process into a network namespace of its own, in which it may create cables. An unprivileged user gets a user namespace first. Fails in
/// a process with more than one thread. Makes nothing but system calls, so it may also run between fork and exec.
///
/// # Errors
/// [`NamespaceError::Forbidden`], with the right that the system lacks or refuses.
pub fn enter_supervisor_namespaces() -> Result<(), NamespaceError> {
    if geteuid().is_root() && enter_new_network_namespace().is_ok() {
        return Ok(());
    }
    rights::enter_new_user_namespace(UnshareFlags::NEWNET)
}

/// Moves this process into an empty network namespace of its own. For a child between fork and exec: it makes nothing but system calls.
///
/// # Errors
/// The error of the system.
pub fn enter_new_network_namespace() -> io::Result<()> {
    // SAFETY: needed so that each member has interfaces of its own. `unshare` of the network namespace leaves memory and file descriptors as they
    // are, and sockets that are open stay where they were opened.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
    // Interfaces without IPv6 send no neighbour discovery. Correctness does not depend on it.
    let _ = rights::write_line("/proc/sys/net/ipv6/conf/default/disable_ipv6", format_args!("1"));
    Ok(())
}

/// Moves this process into a network namespace of its own in which the supervisor `process` may create cables. An unprivileged supervisor counts as
/// root only within its own user namespace, so this process enters that one first. Fails in a process with more than one thread.
///
/// # Errors
/// [`NamespaceError::Forbidden`], with the right that the system lacks or refuses.
pub fn enter_network_namespace_beside(process: u32) -> Result<(), NamespaceError> {
    enter_user_namespace_of(process)?;
    enter_new_network_namespace().map_err(forbidden("a network namespace"))
}

/// Moves this process into the user namespace of another process of this user, unless it is there. Fails in a process with more than one thread.
///
/// # Errors
/// [`NamespaceError::Forbidden`], with the right that the system refuses.
pub fn enter_user_namespace_of(process: u32) -> Result<(), NamespaceError> {
    let path = format!("/proc/{process}/ns/user");
    let its = File::open(path).map_err(forbidden("the supervisor's user namespace"))?;
    let identity = |file: &File| file.metadata().map(|about| (about.dev(), about.ino()));
    let is_ours = File::open("/proc/self/ns/user").and_then(|ours| Ok(identity(&ours)? == identity(&its)?));
    if !is_ours.map_err(forbidden("to compare user namespaces"))? {
        move_into_link_name_space(its.as_fd(), Some(LinkNameSpaceType::User))
            .map_err(forbidden("to enter the supervisor's user namespace"))?;
    }
    Ok(())
}

/// Returns the identity of a process's network namespace. It is equal for two processes if they share the namespace.
///
/// # Errors
/// The error of the system: there is no such process, or it belongs to another user.
pub fn network_namespace_of(process: u32) -> io::Result<(u64, u64)> {
    let about = std::fs::metadata(format!("/proc/{process}/ns/net"))?;
    Ok((about.dev(), about.ino()))
}
