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

/// Number of ranks that a poll looks at, in the mean. A rank is polled after each frame, and a look at all ranks after each frame would take a time that
/// grows with the cube of their number.
const RANKS_PER_POLL: usize = 16;

/// Ranks that were not reached at the last look at all of them, without those that have been since.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unreached {
    ranks: Vec<u16>,
    /// Number of looks since the last one at all ranks.
    looks: usize,
}

impl Unreached {
    /// Looks for ranks that are reached now. Looks at all of them if none is left, if it is forced, or after as many looks that all together take as long.
    /// Returns whether it has looked at all.
    pub(crate) fn look(
        &mut self,
        is_forced: bool,
        all: impl Iterator<Item = u16>,
        count: usize,
        is_reachable: impl Fn(u16) -> bool,
    ) -> bool {
        while self.ranks.pop_if(|rank| is_reachable(*rank)).is_some() {}
        self.looks += 1;
        let is_whole = is_forced || self.ranks.is_empty() || self.looks * RANKS_PER_POLL >= count;
        if is_whole {
            self.looks = 0;
            self.ranks = all.filter(|rank| !is_reachable(*rank)).collect();
        }
        is_whole
    }

    pub(crate) fn ranks(&self) -> &[u16] {
        &self.ranks
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn all_ranks_are_reached_at_one_time_and_few_are_looked_at() {
        let (reached, looks) = (RefCell::new(BTreeSet::new()), Cell::new(0));
        let is_reachable = |rank: u16| {
            looks.set(looks.get() + 1);
            reached.borrow().contains(&rank)
        };
        let mut unreached = Unreached::default();
        let mut look = |is_forced| {
            let is_whole = unreached.look(is_forced, 1..1001, 1000, is_reachable);
            (is_whole, unreached.ranks().len())
        };
        assert_eq!(look(false), (true, 1000));
        let mut whole = 0;
        for rank in 1..1000 {
            reached.borrow_mut().insert(rank);
            let (is_whole, left) = look(false);
            whole += usize::from(is_whole);
            assert!(
                left > 0 && (!is_whole || left == 1000 - usize::from(rank)),
                "the last one is not reached"
            );
        }
        assert!((15..17).contains(&whole) && looks.get() < 20 * 1000, "{whole}, {}", looks.get());
        assert_eq!(look(true), (true, 1));
        reached.borrow_mut().remove(&5);
        reached.borrow_mut().insert(1000);
        assert_eq!(look(false), (true, 1), "one is lost again");
        reached.borrow_mut().insert(5);
        reached.borrow_mut().remove(&7);
        assert_eq!(look(false), (true, 1), "another one is lost");
        reached.borrow_mut().insert(7);
        assert_eq!(look(false), (true, 0));
    }

    #[test]
    fn few_ranks_are_all_looked_at() {
        let mut unreached = Unreached::default();
        for _ in 0..5 {
            assert!(unreached.look(false, 0..16, 16, |rank| rank < 3));
            assert_eq!(unreached.ranks().len(), 13);
        }
    }

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
