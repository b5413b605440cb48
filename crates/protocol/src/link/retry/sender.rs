//! Sending end of one link direction: numbers, copies, replays, and the limit of replays.
//!
//! Every routed frame is numbered and kept until the neighbour acknowledges it. A negative acknowledgement replays
//! all frames after the one that it names, and so does a timer that runs while nothing is acknowledged. Too many
//! consecutive replays without an acknowledgement flush the link: the copies are given up, and both ends agree on
//! numbers anew.
//!
//! The sender does not judge why frames are lost. An acknowledgement resets the count of replays.

use super::buffer::{KeptFrame, ReplayBuffer};
use super::state::{RetryState, RetryStimulus, next};
use super::timer::ReplayTimer;
use crate::config::{FlushPolicy, RetryConfig};
use crate::link::counters::RetryCounters;
use crate::link::credits::is_ahead;
use crate::time::Instant;
use crate::transmit::Passage;

/// Sending end of one link direction.
#[derive(Debug)]
pub struct Sender {
    config: RetryConfig,
    init_interval_ns: u64,
    state: RetryState,
    /// Last number given.
    sent: u32,
    kept: ReplayBuffer,
    /// Index of the kept frame that a replay sends next.
    cursor: usize,
    timer: ReplayTimer,
    timer_at: Option<Instant>,
    replays_without_ack: u8,
    /// Last negative acknowledgement acted upon. The neighbour sends each once; a second one is a duplicate of the
    /// device.
    refused: Option<u32>,
    /// Name of the present numbering.
    initialisation: u32,
    init_due: Option<Instant>,
    /// Length of a frame that did not fit into the window, in bytes.
    waiting_bytes: usize,
}

impl Sender {
    /// Returns a sender that has sent nothing, on a link that does not carry data yet.
    #[must_use]
    pub fn new(config: RetryConfig, init_interval_ns: u64, frame_bytes_max: usize) -> Self {
        let bytes = config.outstanding_bytes as usize;
        Self {
            config,
            init_interval_ns,
            state: RetryState::Init,
            sent: 0,
            kept: ReplayBuffer::new(bytes + frame_bytes_max),
            cursor: 0,
            timer: ReplayTimer::new(&config),
            timer_at: None,
            replays_without_ack: 0,
            refused: None,
            initialisation: 0,
            init_due: None,
            waiting_bytes: 0,
        }
    }

    /// Returns the state of the sender.
    #[must_use]
    pub const fn state(&self) -> RetryState {
        self.state
    }

    /// Last number given.
    #[must_use]
    pub const fn sent(&self) -> u32 {
        self.sent
    }

    /// Number of frames that the neighbour has not acknowledged.
    #[must_use]
    pub fn outstanding_frames(&self) -> usize {
        self.kept.len()
    }

    fn acknowledged(&self) -> u32 {
        self.sent.wrapping_sub(self.kept.len() as u32)
    }

    fn shift(&mut self, stimulus: RetryStimulus) {
        self.state = next(self.state, stimulus);
    }

    /// Asserts what holds after every change. A number of the neighbour cannot break it: one outside the frames in
    /// flight is ignored before it changes anything.
    fn check(&self) {
        assert!(self.cursor <= self.kept.len(), "a replay passes the last kept frame");
        match self.state {
            RetryState::Init | RetryState::Flush => {
                assert!(self.kept.is_empty(), "frames are kept without agreed numbers");
            }
            RetryState::Replay => {
                assert!(self.cursor < self.kept.len(), "a replay has no frame left");
                assert!(self.timer_at.is_none(), "the timer runs during a replay");
            }
            RetryState::Advance => {
                assert!(self.timer_at.is_none() || !self.kept.is_empty(), "the timer waits for nothing");
            }
        }
    }

    // ---- beginning and end -----------------------------------------------------------------------------------------

    /// Begins to agree on numbers, when the link begins to carry data.
    pub fn start(&mut self, now: Instant) {
        self.shift(RetryStimulus::Started);
        self.reinitialise(now);
        self.check();
    }

    /// Stops when the link no longer carries data. Returns the number of unacknowledged frames, which the transport
    /// retransmits.
    pub fn stop(&mut self) -> usize {
        self.shift(RetryStimulus::LinkLost);
        self.init_due = None;
        let given_up = self.give_up();
        self.check();
        given_up
    }

    fn give_up(&mut self) -> usize {
        (self.cursor, self.replays_without_ack, self.waiting_bytes) = (0, 0, 0);
        (self.timer_at, self.refused) = (None, None);
        self.timer.note_replay();
        self.kept.clear()
    }

    fn reinitialise(&mut self, now: Instant) {
        self.initialisation = self.initialisation.wrapping_add(1);
        self.init_due = Some(now);
    }

    /// Makes the next attempt to agree on numbers due now, because the neighbour has announced its own.
    pub fn replay_now(&mut self, now: Instant) {
        if self.init_due.is_some() {
            self.init_due = Some(now);
        }
    }

    /// Returns true if the numbering must be announced to the neighbour.
    #[must_use]
    pub fn init_is_due(&self, now: Instant) -> bool {
        self.init_due.is_some_and(|due| now >= due)
    }

    /// Records that the announcement leaves. Returns the name of the numbering.
    pub fn send_init(&mut self, now: Instant) -> u32 {
        self.init_due = Some(now + self.init_interval_ns);
        self.initialisation
    }

    // W-27
    /// Handles the neighbour's confirmation of a numbering.
    pub fn receive_echo(&mut self, initialisation: u32) {
        if initialisation == self.initialisation && self.init_due.take().is_some() {
            self.shift(RetryStimulus::Echoed);
        }
    }

    // ---- frames out ------------------------------------------------------------------------------------------------

    /// Returns true if a frame of this length may leave.
    #[must_use]
    pub fn admits(&self, bytes: usize) -> bool {
        match self.state {
            RetryState::Advance => {
                self.kept.len() < self.config.outstanding_frames as usize
                    && self.kept.used() + bytes <= self.config.outstanding_bytes as usize
            }
            RetryState::Init | RetryState::Replay => false,
            RetryState::Flush => self.config.flush != FlushPolicy::Block,
        }
    }

    /// Returns true if a frame may leave. A frame whose length is not known yet may exceed the window.
    #[must_use]
    pub fn has_space(&self) -> bool {
        self.admits(self.waiting_bytes.max(1))
    }

    /// Records that a frame of this length does not fit. It is tried again only after an acknowledgement.
    pub const fn note_wait(&mut self, bytes: usize) {
        self.waiting_bytes = bytes;
    }

    /// Numbers a frame that leaves. Returns the number and how the frame is protected.
    pub fn number(&mut self, bytes: usize, counters: &mut RetryCounters) -> (u32, Passage) {
        if self.state == RetryState::Flush {
            let passage = match self.config.flush {
                FlushPolicy::BestEffort => Passage::Unprotected,
                FlushPolicy::Block | FlushPolicy::Discard => Passage::Discarded,
            };
            counters.tx_discard += u64::from(passage == Passage::Discarded);
            return (self.sent, passage);
        }
        assert!(self.state == RetryState::Advance, "a frame is numbered while no new frame may leave");
        self.sent = self.sent.wrapping_add(1);
        self.kept.reserve(bytes);
        counters.tx_ok += 1;
        (self.sent, Passage::Kept)
    }

    /// Keeps the newest numbered frame, now complete; copies it unless the device keeps it (`is_kept`).
    pub fn keep(&mut self, now: Instant, frame: &[u8], is_kept: bool) {
        assert!(!self.kept.is_empty(), "a frame is kept that was not numbered");
        if is_kept {
            self.kept.leave_last();
        } else {
            self.kept.fill_last(frame);
        }
        self.timer.note_sent(now, self.sent);
        self.timer_at.get_or_insert(now + self.timer.wait_ns(self.replays_without_ack));
    }

    // ---- messages of the neighbour
    // -----------------------------------------------------------------------------------

    // W-28
    /// Handles an acknowledgement of all frames up to `number`. A number that was never sent is ignored.
    pub fn receive_ack(&mut self, now: Instant, number: u32) {
        let acknowledged = self.acknowledged();
        if !is_ahead(number, acknowledged) || is_ahead(number, self.sent) {
            return;
        }
        let count = number.wrapping_sub(acknowledged) as usize;
        self.timer.note_acknowledged(now, number);
        self.kept.forget(count);
        self.cursor = self.cursor.saturating_sub(count);
        (self.replays_without_ack, self.waiting_bytes) = (0, 0);
        self.end_replay_if_over(now);
        if self.timer_at.is_some() {
            self.timer_at =
                (!self.kept.is_empty()).then_some(now + self.timer.wait_ns(self.replays_without_ack));
        }
        assert!(self.acknowledged() == number, "an acknowledgement leaves as many frames as it names");
        self.check();
    }

    /// Handles a negative acknowledgement: all frames after `number` are missing. Returns the number of frames given
    /// up, if any.
    pub fn receive_nack(&mut self, now: Instant, number: u32, counters: &mut RetryCounters) -> Option<usize> {
        self.receive_ack(now, number);
        if number != self.acknowledged() || self.kept.is_empty() || self.refused == Some(number) {
            return None;
        }
        self.refused = Some(number);
        self.replay(now, RetryStimulus::Nacked, counters)
    }

    /// Handles the passage of time. Returns the number of frames given up, if the link was flushed.
    pub fn handle_time(&mut self, now: Instant, counters: &mut RetryCounters) -> Option<usize> {
        self.timer_at.filter(|at| now >= *at)?;
        self.replay(now, RetryStimulus::TimerExpired, counters)
    }

    fn replay(
        &mut self,
        now: Instant,
        stimulus: RetryStimulus,
        counters: &mut RetryCounters,
    ) -> Option<usize> {
        let limit = self.config.replay_count_max;
        if limit != RetryConfig::REPLAYS_UNLIMITED && self.replays_without_ack >= limit {
            self.shift(RetryStimulus::Exhausted);
            let given_up = self.give_up();
            self.reinitialise(now);
            counters.flushes += 1;
            counters.tx_flushed += given_up as u64;
            self.check();
            return Some(given_up);
        }
        self.shift(stimulus);
        self.replays_without_ack = self.replays_without_ack.saturating_add(1);
        (self.cursor, self.timer_at) = (0, None);
        self.timer.note_replay();
        counters.replays += 1;
        self.check();
        None
    }

    /// Returns true if a frame must be replayed.
    #[must_use]
    pub fn wants_replay(&self) -> bool {
        self.state == RetryState::Replay
    }

    /// Returns the next frame to replay. Writes it to `out` unless the device keeps its bytes.
    pub fn next_replayed(
        &mut self,
        now: Instant,
        out: &mut [u8],
        counters: &mut RetryCounters,
    ) -> Option<KeptFrame> {
        if self.state != RetryState::Replay {
            return None;
        }
        let kept_frame = self.kept.read_kept(self.cursor, out)?;
        self.cursor += 1;
        counters.tx_replay += 1;
        self.end_replay_if_over(now);
        self.check();
        Some(kept_frame)
    }

    fn end_replay_if_over(&mut self, now: Instant) {
        if self.state == RetryState::Replay && self.cursor >= self.kept.len() {
            self.shift(RetryStimulus::Replayed);
            self.timer_at =
                (!self.kept.is_empty()).then_some(now + self.timer.wait_ns(self.replays_without_ack));
        }
    }

    /// Returns the time at which the sender must be polled next.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        let timer_at = self.timer_at.unwrap_or(Instant::NEVER);
        timer_at.min(self.init_due.unwrap_or(Instant::NEVER))
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
