//! Receiving end of one link direction: which frames are accepted, which are requested again, and when to
//! acknowledge.
//!
//! Frames are accepted only in the order of their numbers. The first frame after a gap is answered by one negative
//! acknowledgement (NACK), which names the last frame accepted. Then nothing more is sent until the missing frame
//! arrives, however many others come. The sender's timer covers a NACK or a replayed frame that is lost.

use super::receiver_state::{ReceiverState, ReceiverStimulus, next};
use crate::config::RetryConfig;
use crate::link::counters::RetryCounters;
use crate::link::credits::is_ahead;
use crate::time::Instant;

/// Receiving end of one link direction.
#[derive(Debug)]
pub struct Receiver {
    spacing_bytes: u32,
    delay_ns: u64,
    state: ReceiverState,
    /// Name of the present numbering, as the sender gave it.
    initialisation: u32,
    received: u32,
    refusal_due: bool,
    echo_due: bool,
    unacknowledged_bytes: u32,
    ack_by: Option<Instant>,
    ack_at_once: bool,
}

/// Meaning of a routed frame's sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The next frame; it is accepted.
    InOrder,
    /// A frame that had been accepted before.
    Duplicate,
    /// An earlier frame is missing.
    OutOfSequence,
}

impl Receiver {
    /// Returns a receiver that has received nothing and agreed on no numbers.
    #[must_use]
    pub const fn new(config: &RetryConfig) -> Self {
        Self {
            spacing_bytes: config.ack_spacing_bytes,
            delay_ns: config.ack_delay_ns,
            state: ReceiverState::Unnumbered,
            initialisation: 0,
            received: 0,
            refusal_due: false,
            echo_due: false,
            unacknowledged_bytes: 0,
            ack_by: None,
            ack_at_once: false,
        }
    }

    /// Number of the last frame accepted.
    #[must_use]
    pub const fn received(&self) -> u32 {
        self.received
    }

    /// Applies a stimulus. Returns true if the state changes.
    const fn shift(&mut self, stimulus: ReceiverStimulus) -> bool {
        let before = self.state;
        self.state = next(before, stimulus);
        before as u8 != self.state as u8
    }

    // W-27
    /// Handles the sender's announcement of its last number. A repeated announcement only requests a confirmation.
    ///
    /// Returns true if the numbering begins anew.
    pub fn receive_init(&mut self, initialisation: u32, sequence: u32) -> bool {
        self.echo_due = true;
        if self.state != ReceiverState::Unnumbered && self.initialisation == initialisation {
            return false;
        }
        self.shift(ReceiverStimulus::Numbered);
        (self.initialisation, self.received) = (initialisation, sequence);
        self.refusal_due = false;
        self.acknowledge();
        true
    }

    // W-26
    /// Judges a received routed frame by its number and length.
    pub fn judge(
        &mut self,
        now: Instant,
        sequence: u32,
        bytes: usize,
        counters: &mut RetryCounters,
    ) -> Arrival {
        if self.state == ReceiverState::Unnumbered {
            return Arrival::OutOfSequence;
        }
        if sequence == self.received.wrapping_add(1) {
            self.received = sequence;
            self.shift(ReceiverStimulus::Next);
            assert!(self.state == ReceiverState::InOrder, "the expected frame ends a gap");
            counters.rx_ok += 1;
            self.unacknowledged_bytes = self.unacknowledged_bytes.saturating_add(bytes as u32);
            self.ack_by.get_or_insert(now + self.delay_ns);
            return Arrival::InOrder;
        }
        if is_ahead(sequence, self.received) {
            if self.shift(ReceiverStimulus::Ahead) {
                self.refusal_due = true;
                counters.rx_missing_seq += 1;
            }
            return Arrival::OutOfSequence;
        }
        // The acknowledgement of this frame may have been lost.
        self.shift(ReceiverStimulus::Behind);
        counters.rx_duplicate_seq += 1;
        self.ack_at_once = true;
        Arrival::Duplicate
    }

    /// Returns true if an acknowledgement must be sent now.
    #[must_use]
    pub fn ack_due(&self, now: Instant) -> bool {
        self.ack_at_once
            || self.unacknowledged_bytes >= self.spacing_bytes
            || self.ack_by.is_some_and(|by| now >= by)
    }

    /// Records that an acknowledgement leaves. Returns the number to acknowledge.
    pub const fn acknowledge(&mut self) -> u32 {
        self.unacknowledged_bytes = 0;
        self.ack_by = None;
        self.ack_at_once = false;
        self.received
    }

    /// Cancels all pending acknowledgements, because the link no longer carries data.
    pub const fn cancel_acks(&mut self) {
        self.acknowledge();
        (self.refusal_due, self.echo_due) = (false, false);
    }

    /// Returns true if a negative acknowledgement must leave, and clears the request.
    pub const fn take_refusal(&mut self) -> bool {
        core::mem::replace(&mut self.refusal_due, false)
    }

    /// Returns the name of the numbering to confirm to the sender, if a confirmation is due, and clears the request.
    pub fn take_echo(&mut self) -> Option<u32> {
        let is_known =
            core::mem::replace(&mut self.echo_due, false) && self.state != ReceiverState::Unnumbered;
        is_known.then_some(self.initialisation)
    }

    /// Returns true if a frame of the receiver itself must leave.
    #[must_use]
    pub fn must_send(&self, now: Instant) -> bool {
        self.echo_due || self.refusal_due || self.ack_due(now)
    }

    /// Returns the latest time at which an acknowledgement must leave.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.ack_by.unwrap_or(Instant::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::CONFIG;
    use super::*;

    const NOW: Instant = Instant(1_000);

    fn receiver() -> (Receiver, RetryCounters) {
        let mut receiver = Receiver::new(&CONFIG);
        assert!(receiver.receive_init(1, 0));
        assert_eq!(receiver.take_echo(), Some(1));
        (receiver, RetryCounters::default())
    }

    // W-26
    #[test]
    fn one_refusal_per_gap_is_sent_until_the_missing_frame_arrives() {
        let (mut receiver, mut counters) = receiver();
        let mut judge = |receiver: &mut Receiver, sequence| receiver.judge(NOW, sequence, 100, &mut counters);
        assert_eq!(judge(&mut receiver, 1), Arrival::InOrder);
        for late in [3, 4, 5] {
            assert_eq!(judge(&mut receiver, late), Arrival::OutOfSequence);
        }
        assert!(receiver.take_refusal());
        assert_eq!(judge(&mut receiver, 6), Arrival::OutOfSequence);
        assert!(!receiver.take_refusal(), "reported once");
        assert_eq!(judge(&mut receiver, 2), Arrival::InOrder);
        assert_eq!(judge(&mut receiver, 4), Arrival::OutOfSequence);
        assert!(receiver.take_refusal(), "another gap");
        assert_eq!((counters.rx_ok, counters.rx_missing_seq), (2, 2));
    }

    #[test]
    fn acknowledgements_leave_by_spacing_by_delay_and_at_once_for_duplicates() {
        let (mut receiver, mut counters) = receiver();
        receiver.judge(NOW, 1, 100, &mut counters);
        assert!(!receiver.ack_due(NOW));
        assert_eq!(receiver.deadline(), NOW + CONFIG.ack_delay_ns);
        assert!(receiver.ack_due(receiver.deadline()));
        receiver.judge(NOW, 2, CONFIG.ack_spacing_bytes as usize, &mut counters);
        assert!(receiver.ack_due(NOW));
        assert_eq!(receiver.acknowledge(), 2);
        assert!(!receiver.ack_due(Instant(1_000_000)));
        assert_eq!(receiver.judge(NOW, 1, 100, &mut counters), Arrival::Duplicate);
        assert!(receiver.ack_due(NOW));
    }

    // W-27
    #[test]
    fn an_old_initialisation_that_arrives_again_moves_nothing() {
        let (mut receiver, mut counters) = receiver();
        receiver.judge(NOW, 1, 100, &mut counters);
        assert!(!receiver.receive_init(1, 0));
        assert_eq!(receiver.received(), 1);
        assert!(receiver.receive_init(2, 40));
        assert_eq!(receiver.judge(NOW, 41, 100, &mut counters), Arrival::InOrder);
    }

    #[test]
    fn before_numbers_are_agreed_no_frame_is_accepted_or_acknowledged() {
        let mut receiver = Receiver::new(&CONFIG);
        let mut counters = RetryCounters::default();
        assert_eq!(receiver.judge(NOW, 1, 100, &mut counters), Arrival::OutOfSequence);
        assert!(!receiver.must_send(Instant(1_000_000)));
    }
}
