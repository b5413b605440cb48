//! Network namespaces for the packet wire, without root where the kernel allows it.
//!
//! Order of events: the supervisor calls [`enter_supervisor_namespaces`] before it has threads; each child calls
//! [`enter_new_network_namespace`] between fork and exec, so once the spawn has returned its namespace exists; the
//! supervisor lays the [`Cable`]s; each child [`bring_up`]s its ends. No namespace gets a name unless somebody asks for
//! one ([`Names`]): each lives as long as a process or an interface end in it, and the kernel sweeps up after the last one,
//! however it ended.
//!
//! An ordinary user gets the right to do this from a user namespace of its own, in which it counts as root and which
//! gives it no power outside. Some systems forbid even that; then there is one typed error that names the step.

mod bridges;
mod cables;
mod interfaces;
mod names;
mod news;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use rustix::process::{geteuid, getgid, getuid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use thiserror::Error;

pub use bridges::{Bridge, BridgeCable, make_bridges, plug_into_bridges};
#[cfg(test)]
pub(crate) use cables::remove;
pub use cables::{Cable, CableEnd, lay_cables};
pub use interfaces::{bring_up, set_mtu, switch_off, switch_on_all};
pub(crate) use interfaces::{hardware_address, has_carrier, mtu};
pub use names::{NameError, Names, sweep_names_after};
pub(crate) use news::LinkNews;

/// Why the packet wire cannot be had.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// The kernel or its administrator forbids a step.
    #[error(
        "the packet wire needs {step}, which this system forbids: {cause}\n\
         hint: use `--wire shared-memory` or `--wire udp`, run as root, or allow unprivileged user namespaces \
         (user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"
    )]
    Forbidden {
        /// What is missing.
        step: &'static str,
        /// What the kernel said.
        cause: io::Error,
    },
    /// There is no bridge to be had.
    #[error(
        "cannot make bridge {bridge}: {cause}\n\
         hint: the kernel needs its bridge module; without it, leave `switch: bridge` out of the rack file"
    )]
    NoBridge {
        /// Its name.
        bridge: String,
        /// What the kernel said.
        cause: io::Error,
    },
    /// A cable could not be laid.
    #[error("cannot lay cable {cable}: {cause}")]
    Cable {
        /// Its two interface names.
        cable: String,
        /// What the kernel said.
        cause: io::Error,
    },
}

/// Give this process a network namespace of its own, in which it may lay cables; an ordinary user gets a user
/// namespace first. Fails in a process with more than one thread. Makes nothing but system calls, so it may also run
/// between fork and exec.
///
/// # Errors
/// [`NamespaceError::Forbidden`], with what the system lacks or forbids.
pub fn enter_supervisor_namespaces() -> Result<(), NamespaceError> {
    if geteuid().is_root() && enter_new_network_namespace().is_ok() {
        return Ok(());
    }
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    // SAFETY: needed to get the right to make namespaces. `unshare` with these flags leaves file descriptors, memory
    // and working directory shared as they are; what it changes is what this thread may do, and the kernel refuses
    // processes with several threads.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET) }
        .map_err(forbidden("a user namespace"))?;
    let map = forbidden("to be root in its own user namespace");
    write_map("/proc/self/setgroups", format_args!("deny"))
        .and_then(|()| write_map("/proc/self/uid_map", format_args!("0 {user} 1")))
        .and_then(|()| write_map("/proc/self/gid_map", format_args!("0 {group} 1")))
        .map_err(map)
}

/// Give this process a network namespace of its own, with nothing in it. For a child between fork and exec: it makes
/// nothing but system calls.
///
/// # Errors
/// The system's.
pub fn enter_new_network_namespace() -> io::Result<()> {
    // SAFETY: needed so that each member has interfaces of its own. `unshare` of the network namespace leaves memory
    // and file descriptors as they are, and sockets that are open stay where they were opened.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
    // Interfaces that are born quiet send no neighbour discovery. Nothing depends on it.
    let _ = write_map("/proc/sys/net/ipv6/conf/default/disable_ipv6", format_args!("1"));
    Ok(())
}

/// Give this process a network namespace of its own in which the supervisor `process` may lay cables: that of an ordinary
/// user counts as root only within its own user namespace, so this process enters that one first. Fails in a process with
/// more than one thread.
///
/// # Errors
/// [`NamespaceError::Forbidden`], with what the system lacks or forbids.
pub fn enter_network_namespace_beside(process: u32) -> Result<(), NamespaceError> {
    let path = format!("/proc/{process}/ns/user");
    let its = File::open(path).map_err(forbidden("the supervisor's user namespace"))?;
    let identity = |file: &File| file.metadata().map(|about| (about.dev(), about.ino()));
    let is_ours = File::open("/proc/self/ns/user").and_then(|ours| Ok(identity(&ours)? == identity(&its)?));
    if !is_ours.map_err(forbidden("to compare user namespaces"))? {
        move_into_link_name_space(its.as_fd(), Some(LinkNameSpaceType::User))
            .map_err(forbidden("to enter the supervisor's user namespace"))?;
    }
    enter_new_network_namespace().map_err(forbidden("a network namespace"))
}

/// Which network namespace a process is in: equal for two processes if they share it.
///
/// # Errors
/// The system's: there is no such process, or it is somebody else's.
pub fn network_namespace_of(process: u32) -> io::Result<(u64, u64)> {
    let about = std::fs::metadata(format!("/proc/{process}/ns/net"))?;
    Ok((about.dev(), about.ino()))
}

/// Write a short text in one system call, without allocating.
fn write_map(path: &str, text: std::fmt::Arguments<'_>) -> io::Result<()> {
    let mut buffer = [0; 64];
    let mut rest = &mut buffer[..];
    rest.write_fmt(text)?;
    let unused = rest.len();
    let length = buffer.len() - unused;
    File::options().write(true).open(path)?.write_all(&buffer[..length])
}

fn forbidden<E: Into<io::Error>>(step: &'static str) -> impl Fn(E) -> NamespaceError {
    move |cause| NamespaceError::Forbidden { step, cause: cause.into() }
}
