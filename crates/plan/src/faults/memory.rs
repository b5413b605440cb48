//! Memory that is slow or fails: what a fault script makes of one member's memory, for both engines.
//!
//! Whoever carries out what the core asks of memory asks [`MemoryFaults`] first whether it fails, and shows it the answer afterwards: an
//! answer that is to come late is kept here and given when its time has come, in the order of asking. A failing request touches
//! no byte, and its answer is never late, because a signal may not be raised whose data failed. Bytes that late answers speak of may be
//! there before. The message is late, not the access.
//!
//! Reading one's own bytes to send them fails as often ([`MemoryFaults::fails_to_read`]), by dice of its own: what is asked for by others does
//! not move it. No memory is touched here.

use std::collections::VecDeque;

use rackloom_protocol::{Instant, MemoryDone, MemoryFault, MemoryToken};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::random::{Chance, Stream};

/// What holds for the memory of one member.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemoryConditions {
    /// How much later answers come.
    pub late_ns: u64,
    /// Probability that a request fails, or the reading of what leaves.
    pub fail: f64,
}

impl MemoryConditions {
    /// The worst of both.
    #[must_use]
    pub fn joined(&self, other: &Self) -> Self {
        Self { late_ns: self.late_ns.max(other.late_ns), fail: self.fail.max(other.fail) }
    }

    /// The same in part: on its way there from nothing.
    #[must_use]
    pub fn scaled(&self, share: f64) -> Self {
        Self { late_ns: (self.late_ns as f64 * share) as u64, fail: self.fail * share }
    }
}

/// An answer that outlives the memory's own.
#[derive(Clone, Debug)]
enum Kept {
    Written,
    Bytes(Vec<u8>),
    Value(u64),
    Failed(MemoryFault),
}

impl Kept {
    fn of(done: &MemoryDone<'_>) -> Self {
        match *done {
            MemoryDone::Written => Self::Written,
            MemoryDone::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            MemoryDone::Value(value) => Self::Value(value),
            MemoryDone::Failed(fault) => Self::Failed(fault),
        }
    }

    fn as_done(&self) -> MemoryDone<'_> {
        match self {
            Self::Written => MemoryDone::Written,
            Self::Bytes(bytes) => MemoryDone::Bytes(bytes),
            Self::Value(value) => MemoryDone::Value(*value),
            Self::Failed(fault) => MemoryDone::Failed(*fault),
        }
    }
}

/// The memory faults of one member's memory.
#[derive(Clone, Debug)]
pub struct MemoryFaults {
    late_ns: u64,
    fail: Chance,
    stream: Stream,
    asked: u64,
    sources: Stream,
    read: u64,
    waiting: VecDeque<(Instant, MemoryToken, Kept)>,
    given: Option<Kept>,
}

impl MemoryFaults {
    /// None yet. Dice follow from the seed and the member's name alone.
    #[must_use]
    pub fn new(seed: u64, member: &str) -> Self {
        let stream = |what: &[u8]| {
            let named = [member.as_bytes(), what].concat();
            Stream::new(xxh3_64_with_seed(&named, seed))
        };
        Self {
            late_ns: 0,
            fail: Chance::new(0.0),
            stream: stream(b" memory"),
            asked: 0,
            sources: stream(b" sources"),
            read: 0,
            waiting: VecDeque::new(),
            given: None,
        }
    }

    /// What holds from now on. Answers that wait already keep their time.
    pub fn set(&mut self, conditions: &MemoryConditions) {
        (self.late_ns, self.fail) = (conditions.late_ns, Chance::new(conditions.fail));
    }

    /// Whether the next request fails. To be asked once for each.
    pub fn fails(&mut self) -> bool {
        self.asked += 1;
        self.fail.hits(self.stream.at(self.asked))
    }

    /// Whether the bytes of the next frame that leaves cannot be read. To be asked once for each frame with bytes of memory.
    pub fn fails_to_read(&mut self) -> bool {
        self.read += 1;
        self.fail.hits(self.sources.at(self.read))
    }

    /// Whether an answer given now must wait.
    #[must_use]
    pub fn delays(&self) -> bool {
        self.late_ns > 0 || !self.waiting.is_empty()
    }

    /// Keep an answer that must wait.
    pub fn keep(&mut self, now: Instant, token: MemoryToken, done: &MemoryDone<'_>) {
        let last = self.waiting.back().map_or(now, |(due, ..)| *due);
        self.waiting.push_back(((now + self.late_ns).max(last), token, Kept::of(done)));
    }

    /// The next answer whose time has come.
    pub fn poll(&mut self, now: Instant) -> Option<(MemoryToken, MemoryDone<'_>)> {
        if self.next_due() > now {
            return None;
        }
        let (_, token, kept) = self.waiting.pop_front()?;
        Some((token, self.given.insert(kept).as_done()))
    }

    /// When the next answer is due; [`Instant::NEVER`] if none waits.
    #[must_use]
    pub fn next_due(&self) -> Instant {
        self.waiting.front().map_or(Instant::NEVER, |(due, ..)| *due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: u32) -> MemoryToken {
        MemoryToken(number)
    }

    #[test]
    fn late_answers_come_in_the_order_of_asking_and_when_they_are_due() {
        let mut memory_faults = MemoryFaults::new(1, "n0");
        assert!(!memory_faults.delays());
        memory_faults.set(&MemoryConditions { late_ns: 100, fail: 0.0 });
        memory_faults.keep(Instant(10), token(1), &MemoryDone::Bytes(&[7, 8]));
        memory_faults.set(&MemoryConditions::default());
        assert!(memory_faults.delays(), "nobody overtakes who waits");
        memory_faults.keep(Instant(20), token(2), &MemoryDone::Value(9));
        assert_eq!(memory_faults.next_due(), Instant(110));
        assert_eq!(memory_faults.poll(Instant(109)), None);
        assert_eq!(memory_faults.poll(Instant(110)), Some((token(1), MemoryDone::Bytes(&[7, 8]))));
        assert_eq!(memory_faults.poll(Instant(110)), Some((token(2), MemoryDone::Value(9))));
        assert_eq!(memory_faults.next_due(), Instant::NEVER);
        assert!(!memory_faults.delays());
    }

    #[test]
    fn as_many_fail_as_it_says_and_raising_the_rate_moves_none() {
        let failing = |fail| {
            let mut memory_faults = MemoryFaults::new(3, "n1");
            memory_faults.set(&MemoryConditions { late_ns: 0, fail });
            (0..10_000).map(|_| memory_faults.fails()).collect::<Vec<_>>()
        };
        let (some, more) = (failing(0.1), failing(0.2));
        // Five standard deviations of a binomial: sqrt(10000 * 0.1 * 0.9) = 30.
        assert!(some.iter().filter(|fails| **fails).count().abs_diff(1_000) < 150);
        assert!(some.iter().zip(&more).all(|(some, more)| *more || !some));
    }

    #[test]
    fn reading_what_leaves_fails_as_often_whatever_others_ask() {
        let failing = |requests: bool| {
            let mut memory_faults = MemoryFaults::new(3, "n1");
            memory_faults.set(&MemoryConditions { late_ns: 0, fail: 0.1 });
            let read = |_| {
                requests.then(|| memory_faults.fails());
                memory_faults.fails_to_read()
            };
            (0..10_000).map(read).collect::<Vec<_>>()
        };
        let alone = failing(false);
        assert!(alone.iter().filter(|fails| **fails).count().abs_diff(1_000) < 150);
        assert_eq!(alone, failing(true));
    }

    #[test]
    fn the_worst_of_each_holds_and_half_a_trouble_is_half_of_it() {
        let late = MemoryConditions { late_ns: 100, fail: 0.1 };
        let failing = MemoryConditions { late_ns: 50, fail: 0.4 };
        assert_eq!(late.joined(&failing), MemoryConditions { late_ns: 100, fail: 0.4 });
        assert_eq!(failing.scaled(0.5), MemoryConditions { late_ns: 25, fail: 0.2 });
    }
}
