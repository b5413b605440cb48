//! Descriptors that a member inherits from its supervisor.

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Keeps a descriptor open across the next `exec` of this process. The child side of a spawn may call it between fork and exec, because it makes only
/// system calls.
///
/// # Errors
/// The error of the system.
pub fn keep_across_exec(fd: RawFd) -> io::Result<()> {
    if fd < 0 {
        return Err(rustix::io::Errno::BADF.into());
    }
    // SAFETY: needed because the descriptor is known by number only, on the child's side of a fork. It is borrowed for this one call. A number that
    // is not open yields an error.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty())?;
    Ok(())
}

/// Takes over an inherited descriptor, and closes it on exec.
pub(crate) fn adopt(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(rustix::io::Errno::BADF.into());
    }
    // SAFETY: needed because inherited descriptors are known by number only. The descriptor is borrowed for the next call, which refuses a number
    // that is not open before anything owns it.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    rustix::io::fcntl_setfd(borrowed, rustix::io::FdFlags::CLOEXEC)?;
    // SAFETY: the descriptor is open. By the contract of the callers' `from_fd` functions it was inherited for this purpose, and nothing else in the
    // process owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
