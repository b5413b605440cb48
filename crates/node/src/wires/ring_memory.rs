//! Memory of a ring: its file as it is mapped, and the words in it that both sides access as atomics.
//!
//! The rules for reading and writing these words are in [`super::ring`]. `crates/models` runs the same rules on memory of its own, which is why
//! they are not in one file with the mapping.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::mapping::{Mapping, sealed_length};

/// Number of bytes before the body.
pub(super) const HEADER_BYTES: usize = 4096;
/// Offset of the producer's index in the file, in bytes.
pub(super) const TAIL_AT: usize = 64;
const STARVED_AT: usize = 72;
/// Offset of the consumer's index in the file, in bytes.
pub(super) const HEAD_AT: usize = 128;
/// Offset of the batch size within a record's header, in bytes.
const BATCH_AT: u64 = 4;

/// Returns the length in bytes of the file for a body of this many bytes.
pub(super) const fn file_bytes(body_bytes: u32) -> u64 {
    HEADER_BYTES as u64 + body_bytes as u64
}

#[derive(Debug)]
pub(super) struct Shared {
    mapping: Mapping,
    /// Size of the body in bytes, a power of two.
    pub(super) body_bytes: usize,
}

impl Shared {
    pub(super) fn open(file: BorrowedFd<'_>) -> io::Result<Self> {
        let length = sealed_length(file)?;
        let body = length.checked_sub(HEADER_BYTES as u64).and_then(|body| usize::try_from(body).ok());
        match body {
            Some(body) if body.is_power_of_two() && (4096..=1 << 31).contains(&body) => {
                Ok(Self { mapping: Mapping::mirrored(file, HEADER_BYTES, body)?, body_bytes: body })
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "ring file has an impossible length")),
        }
    }

    pub(super) fn index(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at.is_multiple_of(8) && at < HEADER_BYTES);
        // SAFETY: needed because indices live in shared pages. `at` is a multiple of 8 within the page-aligned header, mapped as long as `self`; both
        // processes access it only as an atomic.
        unsafe { AtomicU64::from_ptr(self.mapping.base().add(at).cast()) }
    }

    pub(super) fn starved(&self) -> &AtomicU32 {
        // SAFETY: sound for the reasons given for `index`; 4 bytes at a multiple of 4 that no index overlaps.
        unsafe { AtomicU32::from_ptr(self.mapping.base().add(STARVED_AT).cast()) }
    }

    /// Returns the length word of the record at a position, which is a multiple of 8.
    pub(super) fn length_word(&self, position: u64) -> &AtomicU32 {
        self.word(position)
    }

    /// Returns the word that contains the size of the batch that begins at a position.
    pub(super) fn batch_word(&self, position: u64) -> &AtomicU32 {
        self.word(position + BATCH_AT)
    }

    fn word(&self, position: u64) -> &AtomicU32 {
        debug_assert!(position.is_multiple_of(4));
        // SAFETY: needed because records live in shared pages. `body` stays in the first copy of the body and is a multiple of 4; both processes
        // access the word only as an atomic.
        unsafe { AtomicU32::from_ptr(self.body(position).cast()) }
    }

    /// Returns the address of a position. The `body_bytes` bytes from there on are mapped, because of the second copy.
    pub(super) fn body(&self, position: u64) -> *mut u8 {
        let offset = position as usize & (self.body_bytes - 1);
        self.mapping.base().wrapping_add(HEADER_BYTES + offset)
    }

    /// Returns address and length of the mapping. It stays mapped until the process ends.
    pub(super) fn keep_pages(&mut self) -> (usize, usize) {
        self.mapping.keep();
        (self.mapping.base().expose_provenance(), self.mapping.length())
    }
}
