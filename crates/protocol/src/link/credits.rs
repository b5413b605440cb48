//! Credits of both directions of one link (CBFC-like).
//!
//! The sender counts credits consumed, the receiver counts credits freed. Both counters only grow, and wrap. Every
//! frame carries both, so the next frame repairs the loss of a data frame or of a credit update: credits that are
//! consumed and not held are free, even if their frame never arrived. Without resync, only frames that arrive free
//! credits, and a lost frame leaks its credits.
//!
//! Counters of the neighbour are input: one that cannot be right is counted and ignored. Assertions concern this end's
//! own changes only, which no frame determines.

use crate::config::{CreditConfig, CreditUpdates};

/// Counters of both directions at one end of a link.
#[derive(Clone, Copy, Debug)]
pub struct Credits {
    config: CreditConfig,
    updates: CreditUpdates,
    consumed: u32,
    neighbour_freed: u32,
    neighbour_consumed: u32,
    held: u32,
    announced: u32,
    /// Credits that the link grants, barred or not.
    granted: u32,
    /// Counters of the neighbour that cannot be right.
    violations: u64,
}

impl Credits {
    /// Returns the counters of a new link, with all credits free.
    #[must_use]
    pub const fn new(config: CreditConfig, updates: CreditUpdates) -> Self {
        Self {
            config,
            updates,
            consumed: 0,
            neighbour_freed: 0,
            neighbour_consumed: 0,
            held: 0,
            announced: 0,
            granted: config.limit,
            violations: 0,
        }
    }

    /// Returns the credits that the link grants.
    #[must_use]
    pub const fn config(&self) -> CreditConfig {
        self.config
    }

    /// Returns true if lost frames give their credits back.
    #[must_use]
    pub const fn resyncs(&self) -> bool {
        self.updates.resync
    }

    /// Credits that may be consumed now.
    #[must_use]
    pub const fn available(&self) -> u32 {
        self.config.limit.saturating_sub(self.consumed.wrapping_sub(self.neighbour_freed))
    }

    /// Bars or allows all consumption. Used only for unlimited credits.
    pub const fn bar(&mut self, is_barred: bool) {
        self.config.limit = if is_barred { 0 } else { CreditConfig::UNLIMITED };
    }

    /// Returns true if all credits are free.
    #[must_use]
    pub const fn is_all_free(&self) -> bool {
        self.consumed == self.neighbour_freed
    }

    /// Credits that a frame of `bytes` costs.
    #[must_use]
    pub const fn cost(&self, bytes: usize) -> u32 {
        self.config.cost(bytes)
    }

    /// Consumes credits at the sender for a frame of this cost. Returns the counter for its header.
    pub const fn consume(&mut self, cost: u32) -> u32 {
        assert!(cost <= self.available(), "credits are consumed that are not available");
        self.consumed = self.consumed.wrapping_add(cost);
        self.consumed
    }

    /// Credits consumed so far, for control frames.
    #[must_use]
    pub const fn consumed(&self) -> u32 {
        self.consumed
    }

    // W-20
    /// Updates the counters from a header of the neighbour: the credits that it has consumed and freed. Older
    /// counters are ignored. Returns how many of the two counters cannot be right.
    #[inline]
    pub const fn receive(&mut self, consumed: u32, freed: u32) -> u64 {
        let before = self.violations;
        self.update_consumed(consumed);
        self.update_freed(freed);
        self.violations - before
    }

    /// Updates the credits that the neighbour has consumed. With link-level retry, only frames that are accepted
    /// count: a missing frame will be replayed and needs its credits.
    pub const fn update_consumed(&mut self, consumed: u32) {
        if !self.updates.resync || !is_ahead(consumed, self.neighbour_consumed) {
            return;
        }
        // The neighbour cannot have consumed more than the limit beyond what was announced to it (W-19).
        if consumed.wrapping_sub(self.announced) > self.granted {
            self.violations += 1;
            return;
        }
        self.neighbour_consumed = consumed;
    }

    // W-30
    /// Counts a data frame of this cost that arrived for the first time. Without resync, these frames alone determine
    /// what the neighbour has consumed.
    pub const fn count_arrival(&mut self, cost: u32) {
        if !self.updates.resync {
            self.neighbour_consumed = self.neighbour_consumed.wrapping_add(cost);
        }
    }

    /// Updates the credits that the neighbour has freed.
    pub const fn update_freed(&mut self, freed: u32) {
        if !is_ahead(freed, self.neighbour_freed) {
            return;
        }
        if !is_ahead(freed, self.consumed) {
            self.neighbour_freed = freed;
            return;
        }
        // More is freed than consumed: the neighbour accepted a counter that this end did not send. Everything
        // consumed is free then; the excess is ignored.
        self.violations += 1;
        if freed.wrapping_sub(self.consumed) <= self.granted {
            self.neighbour_freed = self.consumed;
        }
    }

    /// Number of the neighbour's counters so far that cannot be right.
    #[must_use]
    pub const fn violations(&self) -> u64 {
        self.violations
    }

    /// Receiver: holds the credits of a frame that is queued.
    pub const fn hold(&mut self, cost: u32) {
        // A neighbour that ignores the limit adds frames, not wraps: each of them takes a buffer of this end.
        assert!(self.held <= u32::MAX - cost, "more credits are held than can be counted");
        self.held += cost;
    }

    /// Receiver: releases the credits of a queued frame that has left.
    pub const fn end_hold(&mut self, cost: u32) {
        assert!(cost <= self.held, "credits are released that are not held");
        self.held -= cost;
    }

    /// Returns the credits freed so far for a header that leaves now, and records them as announced.
    pub const fn announce(&mut self) -> u32 {
        self.announced = self.freed();
        self.announced
    }

    /// Credits freed so far for the neighbour.
    #[must_use]
    pub const fn freed(&self) -> u32 {
        self.neighbour_consumed.wrapping_sub(self.held)
    }

    /// Returns a copy of the counters, for comparison with the other end of the link.
    #[must_use]
    pub const fn counters(&self) -> CreditCounters {
        CreditCounters {
            limit: self.config.limit,
            consumed: self.consumed,
            neighbour_freed: self.neighbour_freed,
            freed: self.freed(),
            held: self.held,
        }
    }

    /// Returns true if enough was freed since the last announcement to send a credit frame.
    #[must_use]
    pub const fn update_due(&self) -> bool {
        let fresh = self.freed().wrapping_sub(self.announced);
        is_ahead(self.freed(), self.announced) && fresh >= self.updates.spacing
    }
}

/// Credit counters of one end of a link, as a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreditCounters {
    /// Credits that the sender may have consumed without getting them back.
    pub limit: u32,
    /// Credits that this end consumed as a sender.
    pub consumed: u32,
    /// Credits that the neighbour has freed, as far as this end has received it.
    pub neighbour_freed: u32,
    /// Credits that this end freed as a receiver.
    pub freed: u32,
    /// Credits of the frames that this end holds as a receiver.
    pub held: u32,
}

/// Distribution of all credits of one link direction at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditBalance {
    /// Free, as the sender counts.
    pub available: u32,
    /// Taken by frames in flight, as the caller has counted them.
    pub in_flight: u32,
    /// Taken by frames that the receiver holds.
    pub held: u32,
    /// Free, but not yet announced to the sender.
    pub returning: u32,
    /// Taken by lost frames: until the next frame arrives if credits are resynchronised, else permanently.
    pub leaked: u32,
}

impl CreditBalance {
    /// Computes the distribution of one direction. `in_flight` is the cost of all data frames that have left the
    /// sender, that the receiver has not taken, and that may still arrive.
    ///
    /// Returns `None` if the parts exceed the limit. Otherwise they add up to the limit.
    #[must_use]
    pub fn of(sender: &Credits, receiver: &Credits, in_flight: u32) -> Option<Self> {
        Self::of_counters(&sender.counters(), &receiver.counters(), in_flight)
    }

    /// Computes the distribution from the counters of both ends, as [`CreditBalance::of`] does.
    #[must_use]
    pub fn of_counters(sender: &CreditCounters, receiver: &CreditCounters, in_flight: u32) -> Option<Self> {
        let outstanding = sender.consumed.wrapping_sub(sender.neighbour_freed);
        let returning = receiver.freed.wrapping_sub(sender.neighbour_freed);
        let parts = [returning, receiver.held, in_flight];
        let accounted = parts.iter().try_fold(0u32, |sum, part| sum.checked_add(*part))?;
        Some(Self {
            available: sender.limit.checked_sub(outstanding)?,
            in_flight,
            held: receiver.held,
            returning,
            leaked: outstanding.checked_sub(accounted)?,
        })
    }
}

/// Returns true if `a` is after `b` in 32-bit serial number arithmetic.
#[must_use]
pub const fn is_ahead(a: u32, b: u32) -> bool {
    a != b && a.wrapping_sub(b) < 1 << 31
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: CreditConfig = CreditConfig { unit_bytes: 128, overhead_bytes: 16, limit: 8 };

    fn fresh() -> Credits {
        Credits::new(CONFIG, CONFIG.usual_updates())
    }

    fn leaking() -> Credits {
        Credits::new(CONFIG, CreditUpdates { resync: false, ..CONFIG.usual_updates() })
    }

    #[test]
    fn a_consumed_counter_beyond_the_limit_is_ignored_and_counted() {
        let (mut sender, mut receiver) = (fresh(), fresh());
        for forged in [9, 1000, 1 << 30, (1 << 31) - 1] {
            receiver.receive(forged, 0);
        }
        assert_eq!((receiver.freed(), receiver.violations()), (0, 4));
        receiver.receive(sender.consume(8), 0);
        sender.receive(0, receiver.announce());
        assert_eq!(sender.available(), 8, "the direction goes on");
    }

    #[test]
    fn a_forged_counter_within_the_limit_stops_no_direction() {
        let (mut sender, mut receiver) = (fresh(), fresh());
        receiver.receive(sender.consume(8), 0);
        receiver.hold(8);
        assert_eq!((sender.available(), receiver.announce()), (0, 0));
        receiver.end_hold(8);
        receiver.announce();
        receiver.receive(13, 0);
        for _ in 0..10 {
            sender.receive(0, receiver.announce());
            assert!(sender.available() >= 3, "the neighbour has freed everything");
            receiver.receive(sender.consume(3), 0);
        }
        assert_eq!(receiver.freed(), sender.consumed(), "both agree again");
    }

    #[test]
    fn without_resync_a_lost_frame_keeps_its_credits() {
        let (mut sender, mut receiver) = (leaking(), leaking());
        let _lost = sender.consume(3);
        receiver.receive(sender.consume(2), 0);
        assert_eq!(CreditBalance::of(&sender, &receiver, 2).map(|balance| balance.leaked), Some(3));
        receiver.count_arrival(2);
        sender.receive(0, receiver.announce());
        assert_eq!(sender.available(), 5);
        let balance = CreditBalance { available: 5, in_flight: 0, held: 0, returning: 0, leaked: 3 };
        assert_eq!(CreditBalance::of(&sender, &receiver, 0), Some(balance));
    }

    #[test]
    fn credits_balance_wherever_they_are_and_invented_credits_are_detected() {
        let (mut sender, mut receiver) = (fresh(), fresh());
        let header = sender.consume(3);
        let sent = sender.consume(2);
        let balance = |sender: &Credits, receiver: &Credits, in_flight| {
            let balance = CreditBalance::of(sender, receiver, in_flight)?;
            let CreditBalance { available, in_flight, held, returning, leaked } = balance;
            assert_eq!(available + in_flight + held + returning + leaked, CONFIG.limit);
            Some((available, held, returning, leaked))
        };
        assert_eq!(balance(&sender, &receiver, 5), Some((3, 0, 0, 0)));
        assert_eq!(balance(&sender, &receiver, 6), None);
        receiver.receive(header, 0);
        receiver.hold(3);
        assert_eq!(balance(&sender, &receiver, 2), Some((3, 3, 0, 0)));
        receiver.end_hold(3);
        assert_eq!(balance(&sender, &receiver, 2), Some((3, 0, 3, 0)));
        assert_eq!(balance(&sender, &receiver, 0), Some((3, 0, 3, 2)), "the second frame is lost");
        receiver.receive(sent, 0);
        sender.receive(0, receiver.announce());
        assert_eq!(balance(&sender, &receiver, 0), Some((8, 0, 0, 0)), "the next header gives all back");
    }

    #[test]
    fn updates_leave_by_their_spacing() {
        let mut receiver = Credits::new(CONFIG, CreditUpdates { spacing: 5, resync: true });
        receiver.receive(4, 0);
        assert!(!receiver.update_due());
        receiver.receive(5, 0);
        assert!(receiver.update_due());
        receiver.announce();
        assert!(!receiver.update_due());
    }

    #[test]
    fn a_lost_frame_frees_its_credits_with_the_next_counter() {
        let (mut sender, mut receiver) = (fresh(), fresh());
        let _lost = sender.consume(3);
        let header = sender.consume(2);
        receiver.receive(header, 0);
        sender.receive(0, receiver.announce());
        assert_eq!(sender.available(), 8);
    }

    #[test]
    fn a_held_frame_keeps_its_credits() {
        let (mut sender, mut receiver) = (fresh(), fresh());
        receiver.receive(sender.consume(5), 0);
        receiver.hold(5);
        sender.receive(0, receiver.announce());
        assert_eq!(sender.available(), 3);
        receiver.end_hold(5);
        assert!(receiver.update_due());
        sender.receive(0, receiver.announce());
        assert_eq!(sender.available(), 8);
    }

    #[test]
    fn a_forged_counter_does_not_open_the_gate() {
        let mut sender = fresh();
        sender.consume(8);
        sender.receive(0, 1000);
        assert_eq!(sender.available(), 0);
    }

    #[test]
    #[should_panic(expected = "credits are consumed that are not available")]
    fn a_sender_that_exceeds_its_credits_is_a_bug() {
        let mut sender = fresh();
        sender.consume(8);
        sender.consume(1);
    }

    #[test]
    #[should_panic(expected = "credits are released that are not held")]
    fn a_receiver_that_releases_a_frame_twice_is_a_bug() {
        let mut receiver = fresh();
        receiver.receive(3, 0);
        receiver.hold(3);
        receiver.end_hold(3);
        receiver.end_hold(3);
    }

    #[test]
    fn counters_wrap() {
        let (mut sender, mut receiver) = (fresh(), fresh());
        sender.consumed = u32::MAX - 1;
        sender.neighbour_freed = u32::MAX - 1;
        receiver.neighbour_consumed = u32::MAX - 1;
        receiver.announced = u32::MAX - 1;
        receiver.receive(sender.consume(4), 0);
        sender.receive(0, receiver.announce());
        assert_eq!((sender.consumed, sender.available()), (2, 8));
    }
}
