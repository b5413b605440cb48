//! Replay timer: the time that a sender waits for an acknowledgement before it replays.
//!
//! The control loop of the link is the lower bound of the wait. Between real processes a neighbour answers only once
//! it has a processor, and no number of the plan states how long that takes, so the wait follows measurements: it is
//! twice the longest recent time from a frame to its acknowledgement. A frame that was sent more than once is not
//! measured, because its acknowledgement may answer either copy. Each replay without an acknowledgement doubles the
//! wait. With equal bounds the wait is constant.

use crate::config::RetryConfig;
use crate::link::credits::is_ahead;
use crate::time::Instant;

/// Factor of the lower bound that the wait has before any measurement, and at most with measurements (own choice). A
/// lost last frame waits that long, and the transport must wait longer.
const MEASURED_FACTOR: u64 = 4;
/// Factor of the longest recent measurement that the wait has (own choice).
const MARGIN: u64 = 2;
/// Half-life of the longest measurement, in nanoseconds (own choice).
const DECAY_NS: u64 = 1_000_000_000;

/// Replay timer of one sender. Times are in nanoseconds.
#[derive(Debug)]
pub struct ReplayTimer {
    least_ns: u64,
    most_ns: u64,
    longest: Option<Measured>,
    /// Number and send time of the frame being measured: it was sent once and is not acknowledged yet.
    timed: Option<(u32, Instant)>,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    took_ns: u64,
    at: Instant,
}

impl ReplayTimer {
    /// Returns a timer without measurements.
    #[must_use]
    pub fn new(config: &RetryConfig) -> Self {
        let least_ns = config.replay_timer_ns;
        Self { least_ns, most_ns: config.replay_timer_max_ns.max(least_ns), longest: None, timed: None }
    }

    /// Records that a new frame with this number was sent.
    pub fn note_sent(&mut self, now: Instant, number: u32) {
        self.timed.get_or_insert((number, now));
    }

    /// Records that the neighbour has acknowledged all frames up to this number.
    pub fn note_acknowledged(&mut self, now: Instant, number: u32) {
        let Some((_, sent_at)) = self.timed.filter(|(timed, _)| !is_ahead(*timed, number)) else { return };
        self.timed = None;
        let took_ns = now.since(sent_at).max(self.longest.map_or(0, |longest| longest.decayed_ns(now)));
        self.longest = Some(Measured { took_ns, at: now });
    }

    /// Cancels the measurement, because frames are replayed or given up.
    pub const fn note_replay(&mut self) {
        self.timed = None;
    }

    /// Returns the wait after this many consecutive replays without an acknowledgement.
    #[must_use]
    pub fn wait_ns(&self, replays_without_ack: u8) -> u64 {
        let measured_ns = match self.longest {
            Some(longest) => longest.took_ns.saturating_mul(MARGIN),
            None => u64::MAX,
        };
        let most_measured_ns = self.least_ns.saturating_mul(MEASURED_FACTOR).min(self.most_ns);
        let factor = 1_u64.checked_shl(replays_without_ack.into()).unwrap_or(u64::MAX);
        measured_ns.clamp(self.least_ns, most_measured_ns).saturating_mul(factor).min(self.most_ns)
    }
}

impl Measured {
    /// Returns the measurement after its decay since it was taken.
    fn decayed_ns(&self, now: Instant) -> u64 {
        let passed_ns = now.since(self.at).min(DECAY_NS);
        let lost = u128::from(self.took_ns) * u128::from(passed_ns) / (2 * u128::from(DECAY_NS));
        self.took_ns - lost as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::CONFIG;
    use super::*;

    const NOW: Instant = Instant(5_000);

    fn timer(most: u64) -> ReplayTimer {
        ReplayTimer::new(&RetryConfig { replay_timer_max_ns: most * CONFIG.replay_timer_ns, ..CONFIG })
    }

    #[test]
    fn with_equal_bounds_the_wait_is_constant() {
        let mut timer = timer(1);
        timer.note_sent(NOW, 1);
        timer.note_acknowledged(NOW + 50_000, 1);
        assert_eq!([0, 1, 255].map(|failures| timer.wait_ns(failures)), [1_000; 3]);
    }

    #[test]
    fn the_wait_is_long_until_something_is_measured_and_doubles_up_to_its_bound() {
        let timer = timer(64);
        let waits = [0, 1, 2, 3, 4, 63, 64, 255].map(|failures| timer.wait_ns(failures));
        assert_eq!(waits, [4_000, 8_000, 16_000, 32_000, 64_000, 64_000, 64_000, 64_000]);
    }

    #[test]
    fn the_wait_follows_the_longest_recent_measurement() {
        let mut timer = timer(64);
        timer.note_sent(NOW, 7);
        timer.note_sent(NOW + 100, 8);
        timer.note_acknowledged(NOW + 1_500, 6);
        assert_eq!(timer.wait_ns(0), 4_000, "the frame is not acknowledged yet");
        timer.note_acknowledged(NOW + 1_500, 8);
        assert_eq!(timer.wait_ns(0), 3_000);
        timer.note_sent(NOW + 4_000, 9);
        timer.note_acknowledged(NOW + 4_010, 9);
        assert_eq!(timer.wait_ns(0), 3_000, "a short one does not replace a long one");
        for (seconds, expected_ns) in [(10, 1_500), (20, 1_000)] {
            let late = NOW + seconds * DECAY_NS;
            timer.note_sent(late, 10);
            timer.note_acknowledged(late + 10, 10);
            assert_eq!(
                timer.wait_ns(0),
                expected_ns,
                "a measurement halves what is left of an old one, down to the lower bound"
            );
        }
    }

    #[test]
    fn one_very_long_measurement_does_not_hold_a_lost_frame_back() {
        let mut timer = timer(64);
        timer.note_sent(NOW, 1);
        timer.note_acknowledged(NOW + 1_000_000, 1);
        assert_eq!([0, 1].map(|failures| timer.wait_ns(failures)), [4_000, 8_000]);
    }

    #[test]
    fn a_frame_that_was_sent_twice_measures_nothing() {
        let mut timer = timer(64);
        timer.note_sent(NOW, 1);
        timer.note_replay();
        timer.note_acknowledged(NOW + 1_100, 1);
        assert_eq!(timer.wait_ns(0), 4_000);
    }
}
