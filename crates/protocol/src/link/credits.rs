//! Credits of one link, both directions of it (CBFC-like).
//!
//! The sender counts credits consumed, the receiver counts credits freed; both counters run on for ever and wrap.
//! Every frame carries both, so a lost data frame or a lost credit update repairs itself with the next frame: what was
//! consumed and is not held has been freed, whether it arrived or not. With that resync switched off, only frames that
//! arrive free credits, and a lost one leaks its own.

use crate::config::{CreditConfig, CreditUpdates};

/// Both directions' counters at one end of a link.
#[derive(Clone, Copy, Debug)]
pub struct Credits {
    config: CreditConfig,
    updates: CreditUpdates,
    consumed: u32,
    neighbour_freed: u32,
    neighbour_consumed: u32,
    held: u32,
    announced: u32,
    /// What the link grants, whether barred or not.
    granted: u32,
    /// Counters of the neighbour that no honest one can have.
    violations: u64,
}

impl Credits {
    /// A fresh link: everything free.
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

    /// What the link grants.
    #[must_use]
    pub const fn config(&self) -> CreditConfig {
        self.config
    }

    /// Whether lost frames give their credits back.
    #[must_use]
    pub const fn resyncs(&self) -> bool {
        self.updates.resync
    }

    /// Credits that may be consumed now.
    #[must_use]
    pub const fn available(&self) -> u32 {
        self.config.limit.saturating_sub(self.consumed.wrapping_sub(self.neighbour_freed))
    }

    /// Nothing may be consumed until the bar is lifted again; only for credits that are without end.
    pub const fn bar(&mut self, is_barred: bool) {
        self.config.limit = if is_barred { 0 } else { CreditConfig::UNLIMITED };
    }

    /// Whether the sender holds back nothing: all credits are free.
    #[must_use]
    pub const fn is_all_free(&self) -> bool {
        self.consumed == self.neighbour_freed
    }

    /// Credits that a frame of `bytes` costs.
    #[must_use]
    pub const fn cost(&self, bytes: usize) -> u32 {
        self.config.cost(bytes)
    }

    /// Sender: a frame of this cost leaves. Returns the counter to put into its header.
    pub const fn consume(&mut self, cost: u32) -> u32 {
        self.consumed = self.consumed.wrapping_add(cost);
        self.consumed
    }

    /// The consumed counter as it stands, for control frames.
    #[must_use]
    pub const fn consumed(&self) -> u32 {
        self.consumed
    }

    // W-20
    /// Takes the counters of a header of the neighbour: what it has consumed and what it has freed. Older counters are ignored.
    /// Returns how many of the two no honest neighbour can have.
    #[inline]
    pub const fn hear(&mut self, consumed: u32, freed: u32) -> u64 {
        let before = self.violations;
        self.hear_consumed(consumed);
        self.hear_freed(freed);
        self.violations - before
    }

    /// What the neighbour has consumed. Where frames are repeated by the link, only what a frame that is taken says counts:
    /// one that is missing will come, and must find its credits taken.
    pub const fn hear_consumed(&mut self, consumed: u32) {
        if !self.updates.resync || !is_ahead(consumed, self.neighbour_consumed) {
            return;
        }
        // It can have consumed no more than the limit beyond what it knows to be free (W-19).
        if consumed.wrapping_sub(self.announced) > self.granted {
            self.violations += 1;
            return;
        }
        self.neighbour_consumed = consumed;
    }

    // W-30
    /// A data frame of this cost has arrived for the first time. Without resync this alone is what the neighbour has
    /// consumed.
    pub const fn count_arrival(&mut self, cost: u32) {
        if !self.updates.resync {
            self.neighbour_consumed = self.neighbour_consumed.wrapping_add(cost);
        }
    }

    /// What the neighbour has freed.
    pub const fn hear_freed(&mut self, freed: u32) {
        if !is_ahead(freed, self.neighbour_freed) {
            return;
        }
        if !is_ahead(freed, self.consumed) {
            self.neighbour_freed = freed;
            return;
        }
        // More freed than consumed: the neighbour has believed a counter that is not ours. All that was consumed is free then, as
        // if it had said so; beyond the limit it is not believed.
        self.violations += 1;
        if freed.wrapping_sub(self.consumed) <= self.granted {
            self.neighbour_freed = self.consumed;
        }
    }

    /// Counters of the neighbour that no honest one can have, so far.
    #[must_use]
    pub const fn violations(&self) -> u64 {
        self.violations
    }

    /// Receiver: a frame is kept for a while.
    pub const fn hold(&mut self, cost: u32) {
        self.held += cost;
    }

    /// Receiver: a kept frame has left.
    pub const fn unhold(&mut self, cost: u32) {
        self.held = self.held.saturating_sub(cost);
    }

    /// Credits freed so far for the neighbour, to be put into a header. Counts as announced.
    pub const fn announce(&mut self) -> u32 {
        self.announced = self.freed();
        self.announced
    }

    /// Credits freed so far for the neighbour.
    #[must_use]
    pub const fn freed(&self) -> u32 {
        self.neighbour_consumed.wrapping_sub(self.held)
    }

    /// The counters as they stand, for whoever looks at both ends of a link.
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

    /// Whether enough has been freed since the last announcement to be worth a frame of its own.
    #[must_use]
    pub const fn update_due(&self) -> bool {
        let fresh = self.freed().wrapping_sub(self.announced);
        is_ahead(self.freed(), self.announced) && fresh >= self.updates.spacing
    }
}

/// What one end of a link has counted, so that it can be told to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreditCounters {
    /// Credits that the sender may have consumed and not got back.
    pub limit: u32,
    /// As a sender: consumed so far.
    pub consumed: u32,
    /// As a sender: what the neighbour has freed, as far as is known.
    pub neighbour_freed: u32,
    /// As a receiver: freed so far.
    pub freed: u32,
    /// As a receiver: taken by frames that are held.
    pub held: u32,
}

/// Where all credits of one link direction are at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Books {
    /// Free, as the sender knows.
    pub available: u32,
    /// Taken by frames under way, as whoever asked has counted them.
    pub under_way: u32,
    /// Taken by frames that the receiver holds.
    pub held: u32,
    /// Free, and the sender has yet to hear of it.
    pub returning: u32,
    /// Taken by frames that are gone: until the next frame arrives where credits are resynchronised, else for good.
    pub leaked: u32,
}

impl Books {
    /// Draw up the books of one direction; `under_way` are the credits of all data frames that have left the sender, have
    /// not been taken by the receiver, and still may be.
    ///
    /// `None` if they cannot be balanced: credits have come from nowhere. The parts always add up to the limit.
    #[must_use]
    pub fn of(sender: &Credits, receiver: &Credits, under_way: u32) -> Option<Self> {
        Self::of_counters(&sender.counters(), &receiver.counters(), under_way)
    }

    /// The same from what both ends have told.
    #[must_use]
    pub fn of_counters(sender: &CreditCounters, receiver: &CreditCounters, under_way: u32) -> Option<Self> {
        let outstanding = sender.consumed.wrapping_sub(sender.neighbour_freed);
        let returning = receiver.freed.wrapping_sub(sender.neighbour_freed);
        let parts = [returning, receiver.held, under_way];
        let accounted = parts.iter().try_fold(0u32, |sum, part| sum.checked_add(*part))?;
        Some(Self {
            available: sender.limit.checked_sub(outstanding)?,
            under_way,
            held: receiver.held,
            returning,
            leaked: outstanding.checked_sub(accounted)?,
        })
    }
}

/// Whether `a` comes after `b` on the 32-bit circle.
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
            receiver.hear(forged, 0);
        }
        assert_eq!((receiver.freed(), receiver.violations()), (0, 4));
        receiver.hear(sender.consume(8), 0);
        sender.hear(0, receiver.announce());
        assert_eq!(sender.available(), 8, "the direction goes on");
    }

    #[test]
    fn a_forged_counter_within_the_limit_stops_no_direction() {
        let (mut sender, mut receiver) = (fresh(), fresh());
        receiver.hear(sender.consume(8), 0);
        receiver.hold(8);
        assert_eq!((sender.available(), receiver.announce()), (0, 0));
        receiver.unhold(8);
        receiver.announce();
        receiver.hear(13, 0);
        for _ in 0..10 {
            sender.hear(0, receiver.announce());
            assert!(sender.available() >= 3, "the neighbour has freed everything");
            receiver.hear(sender.consume(3), 0);
        }
        assert_eq!(receiver.freed(), sender.consumed(), "both agree again");
    }

    #[test]
    fn without_resync_a_lost_frame_keeps_its_credits() {
        let (mut sender, mut receiver) = (leaking(), leaking());
        let _lost = sender.consume(3);
        receiver.hear(sender.consume(2), 0);
        assert_eq!(Books::of(&sender, &receiver, 2).map(|books| books.leaked), Some(3));
        receiver.count_arrival(2);
        sender.hear(0, receiver.announce());
        assert_eq!(sender.available(), 5);
        let books = Books { available: 5, under_way: 0, held: 0, returning: 0, leaked: 3 };
        assert_eq!(Books::of(&sender, &receiver, 0), Some(books));
    }

    #[test]
    fn books_balance_wherever_the_credits_are_and_not_if_some_come_from_nowhere() {
        let (mut sender, mut receiver) = (fresh(), fresh());
        let header = sender.consume(3);
        let sent = sender.consume(2);
        let books = |sender: &Credits, receiver: &Credits, under_way| {
            let books = Books::of(sender, receiver, under_way)?;
            let Books { available, under_way, held, returning, leaked } = books;
            assert_eq!(available + under_way + held + returning + leaked, CONFIG.limit);
            Some((available, held, returning, leaked))
        };
        assert_eq!(books(&sender, &receiver, 5), Some((3, 0, 0, 0)));
        assert_eq!(books(&sender, &receiver, 6), None);
        receiver.hear(header, 0);
        receiver.hold(3);
        assert_eq!(books(&sender, &receiver, 2), Some((3, 3, 0, 0)));
        receiver.unhold(3);
        assert_eq!(books(&sender, &receiver, 2), Some((3, 0, 3, 0)));
        assert_eq!(books(&sender, &receiver, 0), Some((3, 0, 3, 2)), "the second frame is lost");
        receiver.hear(sent, 0);
        sender.hear(0, receiver.announce());
        assert_eq!(books(&sender, &receiver, 0), Some((8, 0, 0, 0)), "the next header gives all back");
    }

    #[test]
    fn updates_leave_by_their_spacing() {
        let mut receiver = Credits::new(CONFIG, CreditUpdates { spacing: 5, resync: true });
        receiver.hear(4, 0);
        assert!(!receiver.update_due());
        receiver.hear(5, 0);
        assert!(receiver.update_due());
        receiver.announce();
        assert!(!receiver.update_due());
    }

    #[test]
    fn a_lost_frame_frees_its_credits_with_the_next_counter() {
        let (mut sender, mut receiver) = (fresh(), fresh());
        let _lost = sender.consume(3);
        let header = sender.consume(2);
        receiver.hear(header, 0);
        sender.hear(0, receiver.announce());
        assert_eq!(sender.available(), 8);
    }

    #[test]
    fn a_held_frame_keeps_its_credits() {
        let (mut sender, mut receiver) = (fresh(), fresh());
        receiver.hear(sender.consume(5), 0);
        receiver.hold(5);
        sender.hear(0, receiver.announce());
        assert_eq!(sender.available(), 3);
        receiver.unhold(5);
        assert!(receiver.update_due());
        sender.hear(0, receiver.announce());
        assert_eq!(sender.available(), 8);
    }

    #[test]
    fn a_forged_counter_does_not_open_the_gate() {
        let mut sender = fresh();
        sender.consume(8);
        sender.hear(0, 1000);
        assert_eq!(sender.available(), 0);
    }

    #[test]
    fn counters_wrap() {
        let (mut sender, mut receiver) = (fresh(), fresh());
        sender.consumed = u32::MAX - 1;
        sender.neighbour_freed = u32::MAX - 1;
        receiver.neighbour_consumed = u32::MAX - 1;
        receiver.announced = u32::MAX - 1;
        receiver.hear(sender.consume(4), 0);
        sender.hear(0, receiver.announce());
        assert_eq!((sender.consumed, sender.available()), (2, 8));
    }
}
