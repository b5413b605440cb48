//! The bytes of an imported region: mapped pages, opened memory of a device, or memory of another program.
//!
//! All have the same operations, on a range that was checked before, but memory of a program has no atomics: the system copies there. This processor accesses pages. The importer's own device moves memory of a
//! device, after all earlier requests to it; the bytes are visible there when the operation returns. A copy between pages and a device goes
//! through a buffer, piece by piece.
//!
//! Permissions and the state of the owner are not checked here.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rackloom_protocol::{Atomic, MemoryFault, SignalKind};

use super::access::AccessError;
use super::message::OnDevice;
use super::program_memory::{ProgramMemory, ProgramSpan};
use crate::mapping::Mapping;
use crate::memory::{Local, SharedDevice, locked};
use crate::window::Window;

/// Size of a piece that goes through a buffer.
const PIECE_BYTES: usize = 64 << 10;

/// Bytes of an imported region. Dropping the value unmaps or closes them.
#[derive(Debug)]
pub(super) enum Backing {
    Pages(Mapping),
    Device(Opened),
    Program(ProgramMemory),
}

/// Memory on a device of another process.
#[derive(Debug)]
pub(super) struct Opened {
    device: SharedDevice,
    address: u64,
    length: usize,
}

impl Opened {
    /// Opens an owner's offer with the importer's device.
    pub(super) fn new(
        device: Option<&SharedDevice>,
        offer: &OnDevice,
        file: Option<BorrowedFd<'_>>,
        length: u64,
    ) -> io::Result<Self> {
        let none = || {
            io::Error::other(
                "it lies on a device, and this member has none; hint: put its memory on one, too, or go through the wire",
            )
        };
        let device = device.ok_or_else(none)?;
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let address = locked(device).open_there(offer.kind, &offer.handle, file)?;
        Ok(Self { device: SharedDevice::clone(device), address, length })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        locked(&self.device).close_there(self.address);
    }
}

impl Backing {
    pub(super) fn length(&self) -> usize {
        match self {
            Self::Pages(pages) => pages.length(),
            Self::Device(opened) => opened.length,
            Self::Program(memory) => memory.length(),
        }
    }

    /// Returns `true` for memory of a program, which only copies reach.
    pub(super) const fn is_in_program(&self) -> bool {
        matches!(self, Self::Program(_))
    }

    /// Returns the device and the address of opened memory.
    #[cfg(feature = "gpu")]
    pub(super) const fn on_device(&self) -> Option<(&SharedDevice, u64)> {
        match self {
            Self::Pages(_) | Self::Program(_) => None,
            Self::Device(opened) => Some((&opened.device, opened.address)),
        }
    }

    /// Returns a range, which the caller has checked to lie within the region. `connection` is that of the import.
    #[inline(always)]
    pub(super) fn span<'a>(&'a self, offset: u64, length: u64, connection: &'a OwnedFd) -> Span<'a> {
        match self {
            Self::Pages(pages) => {
                let base = pages.base().wrapping_add(offset as usize);
                // SAFETY: needed because shared pages are not a slice. The range lies within the mapping, which exists as long as `self`,
                // and no references into it exist except to atomics.
                Span::Pages(unsafe { Window::over(base, length as usize) })
            }
            Self::Device(opened) => Span::Device(&opened.device, opened.address + offset),
            Self::Program(memory) => Span::Program(memory.span(offset, connection.as_fd())),
        }
    }
}

/// Bytes of one access.
#[derive(Clone, Copy, Debug)]
pub(super) enum Span<'a> {
    Pages(Window<'a>),
    Device(&'a SharedDevice, u64),
    Program(ProgramSpan<'a>),
}

impl Span<'_> {
    #[inline(always)]
    pub(super) fn read(self, out: &mut [u8]) -> Result<(), AccessError> {
        match self {
            Self::Pages(window) => window.read(0, out).map_err(misaligned),
            Self::Device(device, address) => locked(device).read_there(address, out).map_err(failed),
            // SAFETY: needed because the system writes the bytes. Sound because they are borrowed exclusively.
            Self::Program(span) => unsafe { span.read(out.as_mut_ptr(), out.len()) },
        }
    }

    #[inline(always)]
    pub(super) fn write(self, bytes: &[u8]) -> Result<(), AccessError> {
        match self {
            Self::Pages(window) => window.write(0, bytes).map_err(misaligned),
            Self::Device(device, address) => locked(device).write_there(address, bytes).map_err(failed),
            // SAFETY: needed because the system reads the bytes. Sound because they are borrowed.
            Self::Program(span) => unsafe { span.write(bytes.as_ptr(), bytes.len()) },
        }
    }

    #[inline(always)]
    pub(super) fn atomic(self, offset: u64, atomic: &Atomic) -> Result<u64, AccessError> {
        match self {
            Self::Pages(window) => window.atomic(0, atomic).map_err(misaligned),
            Self::Device(..) if !offset.is_multiple_of(atomic.width.bytes()) => Err(AccessError::Misaligned),
            Self::Device(device, address) => locked(device).change_there(address, atomic).map_err(failed),
            Self::Program(_) => Err(AccessError::OnlyCopies),
        }
    }

    /// Updates an 8-byte word after all earlier writes.
    #[inline(always)]
    pub(super) fn signal(self, offset: u64, kind: SignalKind, value: u64) -> Result<(), AccessError> {
        if let Self::Pages(window) = self {
            return window.signal(0, kind, value).map_err(misaligned);
        }
        self.atomic(offset, &kind.atomic(value)).map(|_| ())
    }

    /// Copies local bytes in.
    #[inline(always)]
    pub(super) fn copy_from(self, local: Local<'_>, length: usize) -> Result<(), AccessError> {
        match (self, local) {
            (Self::Pages(window), Local::Pages(own, offset)) => {
                window.copy_from(0, own, offset, length).map_err(misaligned)
            }
            (Self::Device(device, address), Local::Device(own, region, offset))
                if SharedDevice::ptr_eq(device, own) =>
            {
                locked(device).copy_there(address, region, offset, length).map_err(failed)
            }
            (Self::Program(span), Local::Pages(own, offset)) => {
                let source = own.range(offset, length).map_err(outside)?;
                // SAFETY: needed because the system reads the bytes. Sound because the window has checked that it contains them.
                unsafe { span.write(source, length) }
            }
            _ => in_pieces(length, |done, piece| {
                local.read(done, piece)?;
                self.after(done).write(piece)
            }),
        }
    }

    /// Copies bytes out to local memory.
    #[inline(always)]
    pub(super) fn copy_to(self, local: Local<'_>, length: usize) -> Result<(), AccessError> {
        match (self, local) {
            (Self::Pages(window), Local::Pages(own, offset)) => {
                own.copy_from(offset, window, 0, length).map_err(misaligned)
            }
            (Self::Device(device, address), Local::Device(own, region, offset))
                if SharedDevice::ptr_eq(device, own) =>
            {
                locked(device).copy_here(region, offset, address, length).map_err(failed)
            }
            (Self::Program(span), Local::Pages(own, offset)) => {
                let target = own.range(offset, length).map_err(outside)?;
                // SAFETY: needed because the system writes the bytes. Sound because the window has checked that it contains them, and to bytes of a
                // window no Rust reference exists, except to atomics.
                unsafe { span.read(target, length) }
            }
            _ => in_pieces(length, |done, piece| {
                self.after(done).read(piece)?;
                local.write(done, piece)
            }),
        }
    }

    /// Returns the span without its first `done` bytes.
    fn after(self, done: usize) -> Self {
        match self {
            Self::Pages(window) => Self::Pages(window.after(done)),
            Self::Device(device, address) => Self::Device(device, address + done as u64),
            Self::Program(span) => Self::Program(span.after(done)),
        }
    }
}

impl Local<'_> {
    fn read(self, done: usize, out: &mut [u8]) -> Result<(), AccessError> {
        let done = done as u64;
        match self {
            Self::Pages(window, offset) => window.read(offset + done, out),
            Self::Device(device, region, offset) => locked(device).read(region, offset + done, out),
        }
        .map_err(failed)
    }

    fn write(self, done: usize, bytes: &[u8]) -> Result<(), AccessError> {
        let done = done as u64;
        match self {
            Self::Pages(window, offset) => window.write(offset + done, bytes),
            Self::Device(device, region, offset) => locked(device).write(region, offset + done, bytes),
        }
        .map_err(failed)
    }
}

#[cold]
fn in_pieces(
    length: usize,
    mut act: impl FnMut(usize, &mut [u8]) -> Result<(), AccessError>,
) -> Result<(), AccessError> {
    let mut buffer = vec![0; PIECE_BYTES.min(length)];
    (0..length).step_by(PIECE_BYTES).try_for_each(|done| {
        let piece = PIECE_BYTES.min(length - done);
        act(done, &mut buffer[..piece])
    })
}

/// Converts a fault of a window. The window has the length of the access, so the only possible fault is a misaligned atomic.
fn misaligned(_fault: MemoryFault) -> AccessError {
    AccessError::Misaligned
}

fn outside(_fault: MemoryFault) -> AccessError {
    AccessError::LocalRange
}

fn failed(_fault: MemoryFault) -> AccessError {
    AccessError::DeviceFailed
}
