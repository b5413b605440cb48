//! Processor of one rank: it computes one operation at a time.
//!
//! A job reads no clock. In virtual time, and on processes with `sleep`, the engine polls it at the end of the computation. With
//! `spin` the rank keeps its processor busy in slices until a poll comes after that end. The same thread keeps links alive, so a
//! slice is shorter than the engine takes for a few frames.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rackloom_control::source::ComputeMode;
use rackloom_protocol::Instant;

use crate::ranks::ensemble::Step;
use crate::ranks::pattern::mix;

/// Mixing steps of one slice: about 20 microseconds of a processor of 3 GHz.
const SLICE_STEPS: u64 = 1 << 13;

/// Computations of one rank.
#[derive(Debug)]
pub(super) struct Processor {
    mode: ComputeMode,
    /// Longest time without progress that the job shows, in nanoseconds.
    progress_ns: u64,
    ready: BinaryHeap<Reverse<u32>>,
    current: Option<Current>,
    /// Result of the slices, so that they cannot be left out.
    sum: u64,
}

/// Computation that runs.
#[derive(Clone, Copy, Debug)]
struct Current {
    operation: u32,
    begun: Instant,
    until: Instant,
    /// Time at which the job shows progress.
    shown: Instant,
}

/// Computation that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Computed {
    pub(super) operation: u32,
    pub(super) begun: Instant,
    pub(super) ended: Instant,
}

impl Processor {
    /// Returns an idle processor. During a computation the job makes progress every `progress_ns` nanoseconds.
    pub(super) fn new(mode: ComputeMode, progress_ns: u64) -> Self {
        let progress_ns = progress_ns.max(1);
        Self { mode, progress_ns, ready: BinaryHeap::new(), current: None, sum: 0 }
    }

    /// Adds an operation that is ready.
    pub(super) fn add(&mut self, operation: u32) {
        self.ready.push(Reverse(operation));
    }

    /// Returns the computation that has ended, or begins the next one and returns `None`.
    pub(super) fn advance(&mut self, now: Instant, duration_ns: impl Fn(u32) -> u64) -> Option<Computed> {
        if self.current.is_none() {
            let Reverse(operation) = self.ready.pop()?;
            let until = Instant(now.0.saturating_add(duration_ns(operation)));
            self.current = Some(Current { operation, begun: now, until, shown: self.next_shown(now) });
        }
        let Current { operation, begun, .. } = self.current.take_if(|current| current.until <= now)?;
        Some(Computed { operation, begun, ended: now })
    }

    /// Returns the operation that runs, if it has begun at `now`.
    pub(super) fn begun_at(&self, now: Instant) -> Option<u32> {
        self.current.filter(|current| current.begun == now).map(|current| current.operation)
    }

    /// Computes, or returns the time of the next poll.
    pub(super) fn step(&mut self, now: Instant) -> Step {
        let shown = self.next_shown(now);
        let Some(current) = &mut self.current else { return Step::Waiting };
        if self.mode == ComputeMode::Spin {
            self.sum = (0..SLICE_STEPS).fold(self.sum, |sum, step| mix(sum ^ step));
            std::hint::black_box(self.sum);
            return Step::Again;
        }
        if current.shown <= now {
            current.shown = shown;
            return Step::Again;
        }
        Step::Until(current.until.min(current.shown))
    }

    fn next_shown(&self, now: Instant) -> Instant {
        Instant(now.0.saturating_add(self.progress_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processor(mode: ComputeMode) -> Processor {
        let mut processor = Processor::new(mode, 40);
        [7, 3].into_iter().for_each(|operation| processor.add(operation));
        processor
    }

    fn duration_ns(operation: u32) -> u64 {
        u64::from(operation) * 10
    }

    #[test]
    fn one_operation_computes_at_a_time_in_the_order_of_the_list() {
        let mut processor = processor(ComputeMode::Sleep);
        assert_eq!(processor.advance(Instant(5), duration_ns), None);
        assert_eq!((processor.begun_at(Instant(5)), processor.begun_at(Instant(6))), (Some(3), None));
        processor.add(1);
        assert_eq!(processor.step(Instant(5)), Step::Until(Instant(35)));
        assert_eq!(processor.advance(Instant(34), duration_ns), None);
        let computed = |operation, begun, ended| {
            Some(Computed { operation, begun: Instant(begun), ended: Instant(ended) })
        };
        assert_eq!(processor.advance(Instant(35), duration_ns), computed(3, 5, 35));
        assert_eq!(processor.advance(Instant(35), duration_ns), None);
        assert_eq!(processor.advance(Instant(46), duration_ns), computed(1, 35, 46), "a late poll counts");
    }

    #[test]
    fn a_long_computation_shows_progress() {
        let mut processor = processor(ComputeMode::Sleep);
        processor.advance(Instant(0), |_| 100);
        assert_eq!(processor.step(Instant(0)), Step::Until(Instant(40)));
        assert_eq!(processor.step(Instant(40)), Step::Again);
        assert_eq!(processor.step(Instant(41)), Step::Until(Instant(80)));
        assert_eq!(processor.step(Instant(80)), Step::Again);
        assert_eq!(processor.step(Instant(80)), Step::Until(Instant(100)));
    }

    #[test]
    fn spinning_goes_on_until_a_poll_after_the_end() {
        let mut processor = processor(ComputeMode::Spin);
        assert_eq!(processor.step(Instant(0)), Step::Waiting, "nothing computes");
        processor.advance(Instant(0), duration_ns);
        assert_eq!(processor.step(Instant(0)), Step::Again);
        assert_eq!(processor.advance(Instant(30), duration_ns).map(|computed| computed.operation), Some(3));
    }

    #[test]
    fn a_computation_without_duration_ends_at_once() {
        let mut processor = processor(ComputeMode::Sleep);
        assert!(processor.advance(Instant(9), |_| 0).is_some());
        assert!(processor.advance(Instant(9), |_| 0).is_some());
        assert_eq!(processor.advance(Instant(9), |_| 0), None);
    }
}
