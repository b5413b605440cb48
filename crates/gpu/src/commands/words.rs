//! Layout of the ring's memory: two words for the whole ring, a cache line for the reply of each slot, then the commands.

use std::sync::atomic::{AtomicU64, Ordering};

use super::command::WORDS;
use crate::pinned::Pinned;

/// Distance between commands, in bytes.
pub(super) const COMMAND_BYTES: usize = 128;
/// Bytes of a slot's state and value: one cache line.
pub(super) const REPLY_BYTES: usize = 64;
/// Bytes before the first reply: two words that hold for the whole ring.
pub(super) const CONTROL_BYTES: usize = 64;
/// Highest number of slots of a ring.
pub const SLOTS_MAX: u32 = 1 << 16;

pub(super) const PUBLISHED: u64 = 1;
pub(super) const DONE: u64 = 2;
pub(super) const FREED: u64 = 3;
pub(super) const CLOSED: u64 = u64::MAX;
pub(super) const ROUND_SHIFT: u32 = 16;
pub(super) const STATUS_SHIFT: u32 = 8;

/// Words of a ring, which both sides access.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) memory: Pinned,
    pub(super) slots: u32,
}

// SAFETY: needed because both sides hold them. Every access goes through `word`, which is an atomic; `self` keeps the memory.
unsafe impl Sync for Words {}

impl Words {
    pub(super) fn word(&self, offset: usize) -> &AtomicU64 {
        self.memory.word(offset)
    }

    pub(super) const fn slot(&self, ticket: u64) -> usize {
        (ticket % self.slots as u64) as usize
    }

    pub(super) const fn round(&self, ticket: u64) -> u64 {
        ticket / self.slots as u64
    }

    pub(super) fn state(&self, slot: usize) -> &AtomicU64 {
        self.word(CONTROL_BYTES + slot * REPLY_BYTES)
    }

    pub(super) fn value(&self, slot: usize) -> &AtomicU64 {
        self.word(CONTROL_BYTES + slot * REPLY_BYTES + 8)
    }

    pub(super) const fn commands(&self) -> usize {
        CONTROL_BYTES + self.slots as usize * REPLY_BYTES
    }

    pub(super) fn command_words(&self, slot: usize) -> impl Iterator<Item = &AtomicU64> {
        let first = self.commands() + slot * COMMAND_BYTES;
        (0..WORDS).map(move |index| self.word(first + index * 8))
    }

    /// Returns true if the host has closed the ring.
    pub(super) fn is_closed(&self) -> bool {
        self.word(0).load(Ordering::Acquire) != 0
    }
}
