//! Directories of a user's running racks, and connections to their control sockets.
//!
//! Sockets are bound and connected through `/proc/self/fd`. A socket's address holds only 107 bytes, and an open directory stays the same one even if
//! its path names another one later.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::process::getuid;

const SOCKET: &str = "control";

/// Returns the session's runtime directory if there is one, which the system empties; else a directory of the user's own.
#[must_use]
pub fn run_directory() -> PathBuf {
    let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match session.filter(|path| path.is_absolute() && path.is_dir()) {
        Some(path) => path.join("rackloom"),
        None => PathBuf::from(format!("/tmp/rackloom-{}", getuid().as_raw())),
    }
}

/// Checks that a directory belongs to this user and that no other user can enter it.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] if the check fails, or the error of the system if the directory cannot be examined.
pub fn check_private(path: &Path) -> io::Result<()> {
    // A symbolic link is not followed: in a directory such as /tmp any user may have created it.
    let found = fs::symlink_metadata(path)?;
    let refuse = |what: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, what.to_owned()));
    match () {
        () if !found.is_dir() => refuse("it is not a directory"),
        () if found.uid() != getuid().as_raw() => refuse("it belongs to another user"),
        () if found.mode() & 0o077 != 0 => refuse("others can enter it"),
        () => Ok(()),
    }
}

/// Connects to the rack in this directory.
///
/// # Errors
/// The error of the system. "Not found" and "connection refused" mean that no rack runs there.
pub fn connect(directory: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(socket_in(&File::open(directory)?))
}

/// Returns the address of the control socket of the rack in an open directory.
#[must_use]
pub fn socket_in(directory: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd()))
}
