//! Receiving end of a channel that pauses its neighbour: the bytes held, and the pauses sent.
//!
//! Above xoff the neighbour is paused, and the pause is repeated before it expires. At xon it is resumed. Data still
//! arrives until a pause takes effect; the headroom is for that data. Frames that do not fit there are dropped.

use crate::time::Instant;

/// Receiving end of one channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Occupancy {
    /// Bytes held for forwarding.
    held_bytes: u64,
    /// Held bytes in the headroom, beyond xoff.
    beyond_bytes: u64,
    /// True if a pause was sent or is due.
    is_pausing: bool,
    /// True if a pause or resume is due now.
    is_message_due: bool,
    /// Time at which the pause must be repeated.
    refresh_at: Instant,
}

impl Occupancy {
    pub(super) const EMPTY: Self = Self {
        held_bytes: 0,
        beyond_bytes: 0,
        is_pausing: false,
        is_message_due: false,
        refresh_at: Instant::NEVER,
    };

    pub(super) const fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Number of bytes held below xoff.
    pub(super) const fn below_bytes(&self) -> u64 {
        assert!(self.beyond_bytes <= self.held_bytes, "the headroom holds more than the channel");
        self.held_bytes - self.beyond_bytes
    }

    /// Number of bytes in the headroom after `bytes` more have arrived.
    pub(super) fn beyond_with(&self, bytes: usize, xoff_bytes: u64) -> u64 {
        let fitting = xoff_bytes.saturating_sub(self.below_bytes()).min(bytes as u64);
        self.beyond_bytes + bytes as u64 - fitting
    }

    pub(super) const fn is_pausing(&self) -> bool {
        self.is_pausing
    }

    pub(super) fn hold(&mut self, bytes: usize, xoff_bytes: u64) {
        self.beyond_bytes = self.beyond_with(bytes, xoff_bytes);
        self.held_bytes += bytes as u64;
        assert!(self.beyond_bytes <= self.held_bytes, "the headroom holds more than the channel");
        if self.beyond_bytes > 0 && !self.is_pausing {
            self.is_pausing = true;
            self.is_message_due = true;
        }
    }

    pub(super) const fn end_hold(&mut self, bytes: usize) {
        assert!(bytes as u64 <= self.held_bytes, "a frame leaves that was not held");
        // The headroom empties first.
        self.beyond_bytes = self.beyond_bytes.saturating_sub(bytes as u64);
        self.held_bytes -= bytes as u64;
    }

    /// Resumes the neighbour if enough space is free again.
    pub(super) fn resume_below(&mut self, xon_bytes: u64) {
        if self.is_pausing && self.held_bytes <= xon_bytes {
            self.is_pausing = false;
            self.is_message_due = true;
            self.refresh_at = Instant::NEVER;
        }
    }

    /// Resets the pause after the link went down. The other end resets its state too.
    pub(super) const fn forget(&mut self) {
        self.is_pausing = false;
        self.is_message_due = false;
        self.refresh_at = Instant::NEVER;
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.is_message_due || now >= self.refresh_at
    }

    /// Records that the due message leaves. Returns true if it is a pause, which lasts `pause_ns`.
    pub(super) fn next_message(&mut self, now: Instant, pause_ns: u64) -> bool {
        self.is_message_due = false;
        self.refresh_at = if self.is_pausing { now + (pause_ns / 2).max(1) } else { Instant::NEVER };
        self.is_pausing
    }

    pub(super) const fn deadline(&self) -> Instant {
        self.refresh_at
    }
}
