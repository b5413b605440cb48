//! Memory that the program of another process owns. It cannot be mapped, so the system copies between the two processes.
//!
//! The system calls are `process_vm_readv` and `process_vm_writev`. They name the owner by its process number, and the bytes by their address
//! there. A copy is no atomic access, so loads, stores and atomics are not offered.
//!
//! *Identity.* The number of a process may be used again after its end. An importer opens a descriptor of the owner's process and then reads a
//! secret there, which came with the grant: if it is right and the process still runs, number, descriptor and address space belong together. Each
//! copy checks first that the process still runs and that the owner has not closed the connection. A number that is used again between this check
//! and the system call is not detected.
//!
//! *Permission.* The system may refuse copies between processes, although both have one user: a security module limits them to descendants, the
//! owner is not dumpable, or a filter refuses the calls. The read of the secret detects that.
//!
//! Announcements of accesses, bounds and access rights are those of all imports ([`super::imported`]).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{Ordering, fence};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::access::AccessError;

/// Length of the secret by which an importer recognises the owner's memory.
pub(super) const SECRET_BYTES: usize = 16;

/// Addresses in the owner's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InProgram {
    /// Address of the region.
    pub(super) address: u64,
    /// Address of the secret.
    pub(super) secret_address: u64,
    pub(super) secret: [u8; SECRET_BYTES],
}

/// Reason why the memory of a program cannot be reached by copies.
#[derive(Debug)]
pub(super) enum Unreached {
    /// The system refuses copies between the two processes.
    Denied(io::Error),
    /// The owner has ended, or the address is not its own.
    Gone,
}

/// Memory of a program in another process.
#[derive(Debug)]
pub(super) struct ProgramMemory {
    process: Pid,
    descriptor: OwnedFd,
    address: u64,
    length: usize,
}

impl ProgramMemory {
    /// Opens the memory of a process, and checks that copies from it work.
    pub(super) fn open(process: u32, place: &InProgram, length: u64) -> Result<Self, Unreached> {
        let process = i32::try_from(process).ok().and_then(Pid::from_raw).ok_or(Unreached::Gone)?;
        let length = usize::try_from(length).map_err(|_| Unreached::Gone)?;
        let descriptor = pidfd_open(process, PidfdFlags::empty()).map_err(|cause| {
            if cause == rustix::io::Errno::SRCH { Unreached::Gone } else { Unreached::Denied(cause.into()) }
        })?;
        let opened = Self { process, descriptor, address: place.address, length };
        let mut found = [0; SECRET_BYTES];
        let read = opened.copy(Direction::Read, found.as_mut_ptr(), place.secret_address, SECRET_BYTES);
        match read {
            Err(CopyError::System(cause)) => return Err(Unreached::Denied(cause)),
            Err(CopyError::BadAddress | CopyError::Gone) => return Err(Unreached::Gone),
            Ok(()) => {}
        }
        let is_owner = found == place.secret && !is_any_ready([opened.descriptor.as_fd()]);
        if is_owner { Ok(opened) } else { Err(Unreached::Gone) }
    }

    pub(super) const fn length(&self) -> usize {
        self.length
    }

    /// Returns a range, which the caller has checked to lie within the memory. `connection` is that of the import.
    pub(super) const fn span<'a>(&'a self, offset: u64, connection: BorrowedFd<'a>) -> ProgramSpan<'a> {
        ProgramSpan { memory: self, offset, connection }
    }

    /// Copies between bytes of this process and an address of the other one, in as many calls as the system needs.
    fn copy(
        &self,
        direction: Direction,
        local: *mut u8,
        remote: u64,
        length: usize,
    ) -> Result<(), CopyError> {
        let mut done = 0;
        while done < length {
            let left = length - done;
            let here = libc::iovec { iov_base: local.wrapping_add(done).cast(), iov_len: left };
            let there = (remote as usize).wrapping_add(done);
            let there = libc::iovec { iov_base: std::ptr::without_provenance_mut(there), iov_len: left };
            let process = self.process.as_raw_nonzero().get();
            // SAFETY: needed because rustix has no such call. Sound because both lists have one element and are only read, and the callers
            // pass local bytes that are valid for `length` bytes and to which no Rust reference exists. The system checks the addresses of the other process.
            let moved = unsafe {
                match direction {
                    Direction::Read => {
                        libc::process_vm_readv(process, &raw const here, 1, &raw const there, 1, 0)
                    }
                    Direction::Write => {
                        libc::process_vm_writev(process, &raw const here, 1, &raw const there, 1, 0)
                    }
                }
            };
            match usize::try_from(moved) {
                Ok(0) => return Err(CopyError::BadAddress),
                Ok(moved) => done += moved,
                Err(_) => match io::Error::last_os_error() {
                    cause if cause.kind() == io::ErrorKind::Interrupted => {}
                    cause if cause.raw_os_error() == Some(libc::EFAULT) => return Err(CopyError::BadAddress),
                    cause if cause.raw_os_error() == Some(libc::ESRCH) => return Err(CopyError::Gone),
                    cause => return Err(CopyError::System(cause)),
                },
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
enum Direction {
    Read,
    Write,
}

#[derive(Debug)]
enum CopyError {
    /// An address of either process is not mapped, or does not allow the access. Bytes before it may have been copied.
    BadAddress,
    Gone,
    System(io::Error),
}

/// Range of the memory of a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgramSpan<'a> {
    memory: &'a ProgramMemory,
    offset: u64,
    connection: BorrowedFd<'a>,
}

impl ProgramSpan<'_> {
    /// Copies `length` bytes of the range to `local`.
    ///
    /// # Safety
    /// `local` is valid for writes of `length` bytes, and no Rust reference to them exists.
    pub(super) unsafe fn read(self, local: *mut u8, length: usize) -> Result<(), AccessError> {
        self.copy(Direction::Read, local, length)
    }

    /// Copies `length` bytes from `local` into the range.
    ///
    /// # Safety
    /// `local` is valid for reads of `length` bytes.
    pub(super) unsafe fn write(self, local: *const u8, length: usize) -> Result<(), AccessError> {
        self.copy(Direction::Write, local.cast_mut(), length)
    }

    /// Returns the range without its first `done` bytes.
    pub(super) const fn after(self, done: usize) -> Self {
        Self { offset: self.offset + done as u64, ..self }
    }

    fn copy(self, direction: Direction, local: *mut u8, length: usize) -> Result<(), AccessError> {
        let Self { memory, offset, connection } = self;
        if is_any_ready([memory.descriptor.as_fd(), connection]) {
            return Err(AccessError::OwnerGone);
        }
        fence(Ordering::AcqRel);
        let copied = memory.copy(direction, local, memory.address + offset, length);
        fence(Ordering::AcqRel);
        copied.map_err(|error| match error {
            CopyError::BadAddress => AccessError::BadMemory,
            CopyError::Gone => AccessError::OwnerGone,
            CopyError::System(_) => AccessError::NotPermitted,
        })
    }
}

/// Returns `true` if a process has ended or a connection was closed. An owner sends nothing after its grant.
fn is_any_ready<const N: usize>(descriptors: [BorrowedFd<'_>; N]) -> bool {
    let mut awaited = descriptors.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
    poll(&mut awaited, Some(&crate::clock::timespec(0))).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::mapping::{Mapping, sealed_memfd};

    const SECRET: [u8; SECRET_BYTES] = *b"0123456789abcdef";
    const PAGE: usize = 4096;

    fn place(address: *const u8, secret: &[u8; SECRET_BYTES]) -> InProgram {
        let secret_address = secret.as_ptr().expose_provenance() as u64;
        InProgram { address: address.expose_provenance() as u64, secret_address, secret: SECRET }
    }

    /// The system copies within one process, too.
    #[test]
    fn bytes_are_copied_in_both_directions_and_a_freed_page_ends_a_copy() {
        let file = sealed_memfd("pages", 3 * PAGE as u64).unwrap();
        let pages = Mapping::new(file.as_fd(), 3 * PAGE).unwrap();
        let memory = ProgramMemory::open(std::process::id(), &place(pages.base(), &SECRET), 3 * PAGE as u64);
        let memory = memory.unwrap();
        let (here, there) = UnixStream::pair().unwrap();
        let span = |offset| memory.span(offset, here.as_fd());
        let source: Vec<u8> = (0..2 * PAGE).map(|at| (at % 251) as u8).collect();
        let mut target = vec![0; 2 * PAGE];
        // SAFETY: the buffers have these lengths, and nothing else uses them meanwhile.
        unsafe {
            span(100).write(source.as_ptr(), source.len()).unwrap();
            span(100).after(7).read(target.as_mut_ptr(), source.len() - 7).unwrap();
        }
        assert_eq!(target[..source.len() - 7], source[7..]);
        // SAFETY: the page lies in the mapping above, to which no reference exists.
        unsafe {
            let middle = pages.base().add(PAGE);
            rustix::mm::mprotect(middle.cast(), PAGE, rustix::mm::MprotectFlags::empty()).unwrap();
            assert_eq!(span(0).write(source.as_ptr(), 2 * PAGE), Err(AccessError::BadMemory));
            assert_eq!(span(PAGE as u64).read(target.as_mut_ptr(), 1), Err(AccessError::BadMemory));
            assert_eq!(span(0).read(target.as_mut_ptr(), PAGE), Ok(()));
        }
        assert_eq!(target[..PAGE], source[..PAGE], "the copy before the page was done");
        drop(there);
        // SAFETY: as above.
        assert_eq!(unsafe { span(0).read(target.as_mut_ptr(), 1) }, Err(AccessError::OwnerGone));
    }

    #[test]
    fn a_process_with_another_secret_or_that_has_ended_is_not_the_owner() {
        let wrong = *b"another secret !";
        let opened = ProgramMemory::open(std::process::id(), &place(wrong.as_ptr(), &wrong), 1);
        assert!(matches!(opened, Err(Unreached::Gone)), "{opened:?}");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg("--list")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        child.wait().unwrap();
        let opened = ProgramMemory::open(child.id(), &place(SECRET.as_ptr(), &SECRET), 1);
        assert!(matches!(opened, Err(Unreached::Gone)), "{opened:?}");
    }
}
