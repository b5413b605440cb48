//! Credits of one link, both directions of it (CBFC-like).
//!
//! The sender counts credits consumed, the receiver counts credits freed; both counters run on for ever and wrap.
//! Every frame carries both, so a lost data frame or a lost credit update repairs itself with the next frame: what was
//! consumed and is not held has been freed, whether it arrived or not.

use crate::config::CreditConfig;

/// Both directions' counters at one end of a link.
#[derive(Clone, Copy, Debug)]
pub struct Credits {
    config: CreditConfig,
    consumed: u32,
    neighbour_freed: u32,
    neighbour_consumed: u32,
    held: u32,
    announced: u32,
}

impl Credits {
    /// A fresh link: everything free.
    #[must_use]
    pub const fn new(config: CreditConfig) -> Self {
        Self { config, consumed: 0, neighbour_freed: 0, neighbour_consumed: 0, held: 0, announced: 0 }
    }

    /// Credits that may be consumed now.
    #[must_use]
    pub const fn available(&self) -> u32 {
        self.config.limit.saturating_sub(self.consumed.wrapping_sub(self.neighbour_freed))
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
    /// A header of the neighbour came in: what it has consumed and what it has freed. Older counters are ignored.
    pub const fn hear(&mut self, consumed: u32, freed: u32) {
        self.hear_consumed(consumed);
        self.hear_freed(freed);
    }

    /// What the neighbour has consumed. Where frames are repeated by the link, only what a frame that is taken says counts:
    /// one that is missing will come, and must find its credits taken.
    pub const fn hear_consumed(&mut self, consumed: u32) {
        if is_ahead(consumed, self.neighbour_consumed) {
            self.neighbour_consumed = consumed;
        }
    }

    /// What the neighbour has freed.
    pub const fn hear_freed(&mut self, freed: u32) {
        // More freed than consumed is impossible; a forged counter must not open the gate.
        if is_ahead(freed, self.neighbour_freed) && !is_ahead(freed, self.consumed) {
            self.neighbour_freed = freed;
        }
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

    const fn freed(&self) -> u32 {
        self.neighbour_consumed.wrapping_sub(self.held)
    }

    /// Whether enough has been freed since the last announcement to be worth a frame of its own: a quarter of the limit.
    #[must_use]
    pub const fn update_due(&self) -> bool {
        let fresh = self.freed().wrapping_sub(self.announced);
        is_ahead(self.freed(), self.announced) && fresh >= self.config.limit / 4
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

    #[test]
    fn a_lost_frame_frees_its_credits_with_the_next_counter() {
        let (mut sender, mut receiver) = (Credits::new(CONFIG), Credits::new(CONFIG));
        let _lost = sender.consume(3);
        let header = sender.consume(2);
        receiver.hear(header, 0);
        sender.hear(0, receiver.announce());
        assert_eq!(sender.available(), 8);
    }

    #[test]
    fn a_held_frame_keeps_its_credits() {
        let (mut sender, mut receiver) = (Credits::new(CONFIG), Credits::new(CONFIG));
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
        let mut sender = Credits::new(CONFIG);
        sender.consume(8);
        sender.hear(0, 1000);
        assert_eq!(sender.available(), 0);
    }

    #[test]
    fn counters_wrap() {
        let (mut sender, mut receiver) = (Credits::new(CONFIG), Credits::new(CONFIG));
        sender.consumed = u32::MAX - 1;
        sender.neighbour_freed = u32::MAX - 1;
        receiver.neighbour_consumed = u32::MAX - 1;
        receiver.announced = u32::MAX - 1;
        receiver.hear(sender.consume(4), 0);
        sender.hear(0, receiver.announce());
        assert_eq!((sender.consumed, sender.available()), (2, 8));
    }
}
