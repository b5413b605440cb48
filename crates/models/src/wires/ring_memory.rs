//! Memory of a ring for models: a body of 64 bytes, whose words are atomics of `loom`.
//!
//! Frames are not written through the slices of the ring, which `loom` does not see. Each eight bytes of the body have a cell, which reports two
//! threads that use it at the same time. Headers and payload share memory in a real ring, so the model writes arbitrary values into the words too.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Size of the body. It holds two records of 24 bytes, and the third has to wait.
const BODY_BYTES: usize = 64;
const UNIT_BYTES: usize = 8;
const WORD_BYTES: usize = 4;
pub(super) const TAIL_AT: usize = 64;
pub(super) const HEAD_AT: usize = 128;
/// Value that is left in memory by earlier payload. It is no valid length or size.
const RESIDUE: u32 = 0xdead_beef;

struct Memory {
    tail: AtomicU64,
    head: AtomicU64,
    starved: AtomicU32,
    words: Vec<AtomicU32>,
    cells: Vec<UnsafeCell<u64>>,
    /// Bytes of the body. Only their address is used.
    bytes: Box<[u8]>,
}

/// Handle of the memory. Each side of the ring has one.
#[derive(Clone)]
pub(super) struct Shared {
    memory: Arc<Memory>,
    pub(super) body_bytes: usize,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Shared")
    }
}

impl Shared {
    /// Returns the memory of an empty ring through which `begin` bytes have passed.
    pub(super) fn empty(begin: u64) -> Self {
        let word = |at: usize| {
            let is_end_of_batch = at == (begin as usize + WORD_BYTES) % BODY_BYTES / WORD_BYTES;
            AtomicU32::new(if is_end_of_batch { 0 } else { RESIDUE })
        };
        let memory = Memory {
            tail: AtomicU64::new(begin),
            head: AtomicU64::new(begin),
            starved: AtomicU32::new(0),
            words: (0..BODY_BYTES / WORD_BYTES).map(word).collect(),
            cells: (0..BODY_BYTES / UNIT_BYTES).map(|_| UnsafeCell::new(0)).collect(),
            bytes: vec![0; 2 * BODY_BYTES].into(),
        };
        #[expect(clippy::arc_with_non_send_sync, reason = "the model checks what makes sharing it sound")]
        let memory = Arc::new(memory);
        Self { memory, body_bytes: BODY_BYTES }
    }

    pub(super) fn open(_file: BorrowedFd<'_>) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn index(&self, at: usize) -> &AtomicU64 {
        if at == TAIL_AT { &self.memory.tail } else { &self.memory.head }
    }

    pub(super) fn starved(&self) -> &AtomicU32 {
        &self.memory.starved
    }

    pub(super) fn length_word(&self, position: u64) -> &AtomicU32 {
        self.word(position)
    }

    pub(super) fn batch_word(&self, position: u64) -> &AtomicU32 {
        self.word(position + WORD_BYTES as u64)
    }

    fn word(&self, position: u64) -> &AtomicU32 {
        &self.memory.words[position as usize % BODY_BYTES / WORD_BYTES]
    }

    pub(super) fn body(&self, position: u64) -> *mut u8 {
        self.memory.bytes.as_ptr().cast_mut().wrapping_add(position as usize % BODY_BYTES)
    }

    pub(super) fn keep_pages(&mut self) -> (usize, usize) {
        (0, 0)
    }

    /// Writes a value into the eight bytes at a position, as the payload of a frame.
    pub(super) fn write(&self, position: u64, value: u64) {
        self.length_word(position).store(RESIDUE, Ordering::Relaxed);
        self.batch_word(position).store(RESIDUE, Ordering::Relaxed);
        // SAFETY: sound because `loom` panics if another thread accesses the cell at the same time. Needed because the cell is shared.
        self.cell(position).with_mut(|cell| unsafe { *cell = value });
    }

    /// Returns the value at a position.
    pub(super) fn read(&self, position: u64) -> u64 {
        // SAFETY: sound because `loom` panics if another thread writes the cell at the same time. Needed because the cell is shared.
        self.cell(position).with(|cell| unsafe { *cell })
    }

    fn cell(&self, position: u64) -> &UnsafeCell<u64> {
        &self.memory.cells[position as usize % BODY_BYTES / UNIT_BYTES]
    }
}
