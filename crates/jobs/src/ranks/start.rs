//! Deadline of a job's start, while a rank waits until it can reach every other rank.
//!
//! Reports of reachability pass from member to member. On a busy host each hop may take a second, so that a large rack needs longer than any fixed time.
//! The deadline therefore counts from the last rank that was reached, and leaves out time in which this rank itself did not run.

use rackloom_protocol::Instant;

/// Longest time between two looks that counts, in nanoseconds. A rank looks every millisecond as long as it has a processor.
const LOOK_NS_MAX: u64 = 100_000_000;

/// Wait for the other ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StartWait {
    timeout_ns: u64,
    until: Option<Instant>,
    missing_min: usize,
    looked_at: Instant,
}

impl StartWait {
    /// Returns a wait that ends `timeout_ns` nanoseconds after the last rank was reached, or after its first look.
    pub(crate) const fn new(timeout_ns: u64) -> Self {
        Self { timeout_ns, until: None, missing_min: usize::MAX, looked_at: Instant::ZERO }
    }

    /// Records that `missing` ranks cannot be reached. Returns whether these are fewer than ever before.
    ///
    /// A rank that is lost and reached again does not count: a link that comes and goes must not extend the wait for ever.
    pub(crate) fn record(&mut self, now: Instant, missing: usize) -> bool {
        let absent_ns = now.since(self.looked_at).saturating_sub(LOOK_NS_MAX);
        self.until = self.until.map(|until| until + absent_ns);
        self.looked_at = now;
        let is_progress = missing < self.missing_min;
        if is_progress {
            self.missing_min = missing;
            self.until = Some(now + self.timeout_ns);
        }
        is_progress
    }

    /// Returns whether the wait has lasted too long.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now >= until)
    }

    /// Returns the end of the wait, or `None` before the first look.
    pub(crate) const fn until(&self) -> Option<Instant> {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_counts_from_the_last_rank_that_was_reached() {
        let mut wait = StartWait::new(10);
        assert!(wait.record(Instant(0), 3) && !wait.is_over(Instant(9)) && wait.is_over(Instant(10)));
        assert!(wait.record(Instant(9), 2), "a rank was reached");
        assert!(!wait.is_over(Instant(18)) && wait.is_over(Instant(19)));
        assert_eq!(wait.until(), Some(Instant(19)));
    }

    #[test]
    fn time_in_which_the_rank_did_not_run_does_not_count() {
        const MS: u64 = 1_000_000;
        let mut wait = StartWait::new(1_000 * MS);
        wait.record(Instant(0), 2);
        wait.record(Instant(5_000 * MS), 2);
        assert!(!wait.is_over(Instant(5_000 * MS)) && wait.is_over(Instant(5_900 * MS)));
        wait.record(Instant(5_050 * MS), 2);
        assert_eq!(wait.until(), Some(Instant(5_900 * MS)), "a short time counts");
    }

    #[test]
    fn a_rank_that_comes_and_goes_does_not_extend_the_wait() {
        let mut wait = StartWait::new(10);
        wait.record(Instant(0), 2);
        wait.record(Instant(4), 1);
        assert!(!wait.record(Instant(6), 2) && !wait.record(Instant(8), 1));
        assert!(wait.is_over(Instant(14)));
    }
}
