//! Where the standing racks of a user are, and how their control sockets are reached.
//!
//! Sockets are bound and connected through `/proc/self/fd`, because a socket's address holds only 107 bytes and because
//! that way it is this directory and not whatever its path names by now.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::process::getuid;

const SOCKET: &str = "control";

/// The session's runtime directory if there is one, which the system empties; else a directory of the user's own.
#[must_use]
pub fn run_directory() -> PathBuf {
    let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match session.filter(|path| path.is_absolute() && path.is_dir()) {
        Some(path) => path.join("rackloom"),
        None => PathBuf::from(format!("/tmp/rackloom-{}", getuid().as_raw())),
    }
}

/// Whether a directory is this user's alone.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] if it is not; what the system says if it cannot be looked at.
pub fn check_private(path: &Path) -> io::Result<()> {
    // Not followed if it is a link: in a directory such as /tmp anybody may have put it there.
    let found = fs::symlink_metadata(path)?;
    let refuse = |what: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, what.to_owned()));
    match () {
        () if !found.is_dir() => refuse("it is not a directory"),
        () if found.uid() != getuid().as_raw() => refuse("it belongs to somebody else"),
        () if found.mode() & 0o077 != 0 => refuse("others can enter it"),
        () => Ok(()),
    }
}

/// A connection to the rack in this directory.
///
/// # Errors
/// What the system says: not found and connection refused mean that none lives there.
pub fn connect(directory: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(socket_in(&File::open(directory)?))
}

/// The address of the control socket of the rack in an open directory.
#[must_use]
pub fn socket_in(directory: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd()))
}
