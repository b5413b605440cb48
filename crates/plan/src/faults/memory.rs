//! Slow and failing memory of one member, for both engines.
//!
//! The engine calls [`MemoryFaults`] before each memory request to find out if it fails, and passes the answer afterwards. A delayed
//! answer is kept here until it is due, in the order of requests. A failing request touches no byte, and its answer is not delayed,
//! because a signal must not be raised if its data failed. Bytes may be visible before a delayed answer: the answer is late, not the
//! access.
//!
//! Reads of own memory for sending fail with the same probability ([`MemoryFaults::fails_to_read`]), from a separate random stream. So
//! requests of other members do not change which of them fail. This file accesses no memory.

use std::collections::VecDeque;

use rackloom_protocol::{Instant, MemoryDone, MemoryFault, MemoryToken};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::exchange::{Pass, Stated};
use super::kind::FaultKind;
use crate::model::random::{Chance, Stream};
use crate::schema::EventKeys;

/// Active faults of the memory of one member.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemoryConditions {
    /// Delay of answers, in nanoseconds.
    pub late_ns: u64,
    /// Probability that a request fails, or that a read for sending fails.
    pub fail: f64,
}

impl MemoryConditions {
    /// Returns the worst of both for each value.
    #[must_use]
    pub fn joined(&self, other: &Self) -> Self {
        Self { late_ns: self.late_ns.max(other.late_ns), fail: self.fail.max(other.fail) }
    }

    /// Returns the conditions at a share of their full strength, 0 to 1.
    #[must_use]
    pub fn scaled(&self, share: f64) -> Self {
        Self { late_ns: (self.late_ns as f64 * share) as u64, fail: self.fail * share }
    }
}

impl Stated for MemoryConditions {
    fn exchange(&mut self, keys: &mut EventKeys, pass: Pass) {
        match keys.what {
            FaultKind::SlowMemory => pass.value(&mut keys.by_ns, &mut self.late_ns),
            FaultKind::FailMemory => pass.value(&mut keys.rate, &mut self.fail),
            _ => {}
        }
    }
}

/// Copy of an answer that may outlive the memory of the original.
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

/// Memory faults of one member.
#[derive(Clone, Debug)]
pub struct MemoryFaults {
    late_ns: u64,
    fail: Chance,
    stream: Stream,
    requests: u64,
    sources: Stream,
    read: u64,
    waiting: VecDeque<(Instant, MemoryToken, Kept)>,
    given: Option<Kept>,
}

impl MemoryFaults {
    /// Returns a state without faults. Random numbers follow from the seed and the member's name alone.
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
            requests: 0,
            sources: stream(b" sources"),
            read: 0,
            waiting: VecDeque::new(),
            given: None,
        }
    }

    /// Sets the active conditions. Answers that are waiting keep their times.
    pub fn set(&mut self, conditions: &MemoryConditions) {
        (self.late_ns, self.fail) = (conditions.late_ns, Chance::new(conditions.fail));
    }

    /// Returns true if the next request fails. Call it once for each request.
    pub fn fails(&mut self) -> bool {
        self.requests += 1;
        self.fail.hits(self.stream.at(self.requests))
    }

    /// Returns true if the bytes of the next frame cannot be read. Call it once for each sent frame with bytes of memory.
    pub fn fails_to_read(&mut self) -> bool {
        self.read += 1;
        self.fail.hits(self.sources.at(self.read))
    }

    /// Returns true if an answer given now must wait.
    #[must_use]
    pub fn delays(&self) -> bool {
        self.late_ns > 0 || !self.waiting.is_empty()
    }

    /// Keeps an answer that must wait.
    pub fn keep(&mut self, now: Instant, token: MemoryToken, done: &MemoryDone<'_>) {
        let last = self.waiting.back().map_or(now, |(due, ..)| *due);
        self.waiting.push_back(((now + self.late_ns).max(last), token, Kept::of(done)));
    }

    /// Returns the next answer that is due.
    pub fn poll(&mut self, now: Instant) -> Option<(MemoryToken, MemoryDone<'_>)> {
        if self.next_due() > now {
            return None;
        }
        let (_, token, kept) = self.waiting.pop_front()?;
        Some((token, self.given.insert(kept).as_done()))
    }

    /// Returns the time at which the next answer is due, or [`Instant::NEVER`] if none waits.
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
    fn late_answers_come_in_request_order_when_they_are_due() {
        let mut memory_faults = MemoryFaults::new(1, "n0");
        assert!(!memory_faults.delays());
        memory_faults.set(&MemoryConditions { late_ns: 100, fail: 0.0 });
        memory_faults.keep(Instant(10), token(1), &MemoryDone::Bytes(&[7, 8]));
        memory_faults.set(&MemoryConditions::default());
        assert!(memory_faults.delays(), "a later answer does not overtake a waiting one");
        memory_faults.keep(Instant(20), token(2), &MemoryDone::Value(9));
        assert_eq!(memory_faults.next_due(), Instant(110));
        assert_eq!(memory_faults.poll(Instant(109)), None);
        assert_eq!(memory_faults.poll(Instant(110)), Some((token(1), MemoryDone::Bytes(&[7, 8]))));
        assert_eq!(memory_faults.poll(Instant(110)), Some((token(2), MemoryDone::Value(9))));
        assert_eq!(memory_faults.next_due(), Instant::NEVER);
        assert!(!memory_faults.delays());
    }

    #[test]
    fn the_stated_share_fails_and_a_larger_rate_keeps_earlier_failures() {
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
    fn reads_for_sending_fail_independently_of_other_requests() {
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
    fn joined_conditions_are_the_worst_and_half_a_condition_is_half_of_it() {
        let late = MemoryConditions { late_ns: 100, fail: 0.1 };
        let failing = MemoryConditions { late_ns: 50, fail: 0.4 };
        assert_eq!(late.joined(&failing), MemoryConditions { late_ns: 100, fail: 0.4 });
        assert_eq!(failing.scaled(0.5), MemoryConditions { late_ns: 25, fail: 0.2 });
    }
}
