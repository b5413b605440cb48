//! A program's process enters the network of its seat.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use rustix::system::sethostname;
use rustix::thread::{
    CapabilitySet, LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe,
};

use crate::namespaces::{NamespaceError, enter_user_namespace_of, forbidden, pass_on};

/// Network of a program.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug)]
pub struct ProgramNetwork {
    /// Process whose user namespace has the rights over it.
    pub supervisor: u32,
    /// Network namespace of the seat.
    pub namespace: OwnedFd,
    /// Name of the seat, which is the name of the host inside.
    pub host: String,
    /// Lines of `/etc/hosts`: addresses and names of all seats.
    pub hosts: String,
}

/// Moves this process, which is about to become a program, into the network of its seat. The program keeps its user, and may send raw packets and
/// change interfaces of this network. The host has the name of the seat, and names of seats have addresses. Fails in a process with more than one
/// thread. Returns a line for each part that this system refuses, without which the network works.
///
/// # Errors
/// [`NamespaceError::Forbidden`], with the right that the system refuses.
pub fn enter(network: &ProgramNetwork) -> Result<Vec<String>, NamespaceError> {
    enter_user_namespace_of(network.supervisor)?;
    move_into_link_name_space(network.namespace.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(forbidden("to enter the network namespace of the seat"))?;
    let mut refused = Vec::new();
    let mut note = |what: &str, result: io::Result<()>| {
        refused.extend(result.err().map(|error| format!("{what}: {error}")));
    };
    note("the host keeps its name", name_host(&network.host));
    match separate_mounts() {
        Ok(()) => {
            note("names of seats have no addresses", set_hosts(&network.hosts));
            note("/sys shows the interfaces of the host", show_own_interfaces());
        }
        Err(error) => note("names of seats have no addresses", Err(error)),
    }
    let passed = CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW | CapabilitySet::NET_BIND_SERVICE;
    note("the program cannot send raw packets", pass_on(passed));
    Ok(refused)
}

fn unshare(what: UnshareFlags) -> io::Result<()> {
    // SAFETY: needed because `unshare` has no safe form. These flags change the name of the host, or the table of mounts, for this process alone.
    // Descriptors and memory stay as they are.
    Ok(unsafe { unshare_unsafe(what) }?)
}

fn name_host(name: &str) -> io::Result<()> {
    unshare(UnshareFlags::NEWUTS)?;
    Ok(sethostname(name.as_bytes())?)
}

/// Gives this process mounts of its own. Later mounts of the host appear here, and none of these there.
fn separate_mounts() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS)?;
    Ok(mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?)
}

/// Covers `/etc/hosts` with a file of these lines.
fn set_hosts(lines: &str) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(lines.as_bytes())?;
    let hosts = Path::new("/etc/hosts");
    rustix::fs::chmod(file.path(), rustix::fs::Mode::from_raw_mode(0o644))?;
    // The mount keeps the file after its name is gone.
    Ok(mount_bind(file.path(), hosts)?)
}

fn show_own_interfaces() -> io::Result<()> {
    Ok(mount("sysfs", "/sys", "sysfs", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)?)
}
