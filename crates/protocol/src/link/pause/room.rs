//! The receiving end of a channel that pauses its neighbour: how much of it is held here, and what the neighbour has been told.
//!
//! Above xoff the neighbour is asked to pause, and asked again before the pause is over; at xon it may go on. Between the two
//! words and their effect data still comes: headroom is for that. What finds no room there either is lost.

use crate::time::Instant;

/// The receiving end of one channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Bytes that are held for passing on.
    held_bytes: u64,
    /// Of those: bytes in the headroom, which found no room below xoff.
    beyond_bytes: u64,
    /// The neighbour has been asked to pause, or is about to be.
    is_asking: bool,
    /// A word to the neighbour is due.
    is_owed: bool,
    /// When it must be asked again.
    refresh_at: Instant,
}

impl Room {
    pub(super) const EMPTY: Self =
        Self { held_bytes: 0, beyond_bytes: 0, is_asking: false, is_owed: false, refresh_at: Instant::NEVER };

    pub(super) const fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Bytes below xoff.
    pub(super) const fn below_bytes(&self) -> u64 {
        self.held_bytes - self.beyond_bytes
    }

    /// Bytes in the headroom once so many more have come.
    pub(super) fn beyond_with(&self, bytes: usize, xoff_bytes: u64) -> u64 {
        let fitting = xoff_bytes.saturating_sub(self.below_bytes()).min(bytes as u64);
        self.beyond_bytes + bytes as u64 - fitting
    }

    pub(super) const fn is_asking(&self) -> bool {
        self.is_asking
    }

    pub(super) fn hold(&mut self, bytes: usize, xoff_bytes: u64) {
        self.beyond_bytes = self.beyond_with(bytes, xoff_bytes);
        self.held_bytes += bytes as u64;
        if self.beyond_bytes > 0 && !self.is_asking {
            self.is_asking = true;
            self.is_owed = true;
        }
    }

    pub(super) const fn unhold(&mut self, bytes: usize) {
        self.beyond_bytes = self.beyond_bytes.saturating_sub(bytes as u64);
        self.held_bytes = self.held_bytes.saturating_sub(bytes as u64);
    }

    /// Let the neighbour go on if there is room enough again.
    pub(super) fn relent(&mut self, xon_bytes: u64) {
        if self.is_asking && self.held_bytes <= xon_bytes {
            self.is_asking = false;
            self.is_owed = true;
            self.refresh_at = Instant::NEVER;
        }
    }

    /// The link carries no data any more: whatever was said is forgotten at the other end too.
    pub(super) const fn forget(&mut self) {
        self.is_asking = false;
        self.is_owed = false;
        self.refresh_at = Instant::NEVER;
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.is_owed || now >= self.refresh_at
    }

    /// The word leaves: whether it asks for a pause, which lasts so long.
    pub(super) fn speak(&mut self, now: Instant, pause_ns: u64) -> bool {
        self.is_owed = false;
        self.refresh_at = if self.is_asking { now + (pause_ns / 2).max(1) } else { Instant::NEVER };
        self.is_asking
    }

    pub(super) const fn deadline(&self) -> Instant {
        self.refresh_at
    }
}
