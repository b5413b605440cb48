//! Test fabric for tests: as disorderly as the rules allow, and able to break each rule on demand.
//!
//! Operations become segments that are applied in random order. Only fences, signals and flushes delay anything. So a
//! litmus that passes here does not pass by luck. A litmus that passes in spite of a [`Defect`] is useless.
//!
//! The simulator does not replace it. The simulator runs the real core, which breaks no rule; here each of 29 rules is broken once, and the litmus must
//! fail for each.

mod fabric;
mod messages;
mod seat;

use rackloom_protocol::memory::vector::VectorMemory;
use rackloom_protocol::{Instant, NodeId};

use self::fabric::{Fabric, Seated};
use self::seat::TestSeat;
use super::{Litmus, LitmusSettings};
use crate::job::{Job, Progress};
use crate::ranks::Rank;

/// A rule that the test fabric breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Defect {
    /// One posted store is never applied, although it is reported as applied.
    PostedStoreLost,
    /// One acknowledged store, or the end of a put, is acknowledged and never applied.
    AcknowledgedStoreLost,
    /// One segment of one put is never applied.
    SegmentLost,
    /// One put is applied with one bit flipped.
    BitFlipped,
    /// One put begins a byte too late.
    Shifted,
    /// One put writes a byte more than it should.
    ByteTooMuch,
    /// One put reads its source at a later offset, and so carries data of another writer's slot.
    WrongSource,
    /// Signals do not wait for their data.
    SignalEarly,
    /// Fences order nothing.
    FenceIgnored,
    /// Flushes wait for nothing, and the operations that they should have waited for are late.
    FlushEarly,
    /// One fetch-add is applied twice.
    AddTwice,
    /// One swap is applied twice.
    SwapTwice,
    /// One compare-swap does not compare.
    SwapWithoutCompare,
    /// Atomics on 4 bytes touch 8.
    AtomicTooWide,
    /// One load or get returns one wrong byte.
    ReadWrong,
    /// One load or get returns one byte too few.
    ReadShort,
    /// A wrong key is accepted.
    KeyIgnored,
    /// Bounds are checked against the first byte only: the rest is cut off.
    BoundsLoose,
    /// Read-only regions can be written.
    PermissionIgnored,
    /// Accesses are refused, but the byte is written first.
    RefusedTooLate,
    /// Refusals are not reported to the owner.
    RefusalSilent,
    /// A flush does not report an earlier failure.
    FailureForgotten,
    /// One wait completes before its condition holds.
    WaitEarly,
    /// One message arrives before an older one of its source.
    MessageOvertakes,
    /// One message arrives with one bit flipped.
    MessageChanged,
    /// One message arrives without its last byte.
    MessageShort,
    /// One message arrives twice.
    MessageTwice,
    /// Receives take any tag.
    TagIgnored,
    /// Receives cannot be cancelled.
    CancelIgnored,
}

/// Ranks, the fabric between them, and the order of polls.
pub(super) struct TestRack {
    fabric: Fabric,
    jobs: Vec<Litmus>,
    finished: Vec<bool>,
    now: Instant,
}

impl TestRack {
    pub(super) fn new(ranks: &[Rank], settings: &LitmusSettings, seed: u64) -> Self {
        let count = ranks.len();
        let jobs: Vec<_> = (0..count)
            .map(|rank| Litmus::new(NodeId(rank as u16), ranks.to_vec(), settings.clone()).unwrap())
            .collect();
        let fabric = Fabric {
            seats: jobs.iter().map(|job| Seated::new(job.regions(), count)).collect(),
            flights: Vec::new(),
            next_flight: 0,
            random: seed,
            defect: None,
            defect_after: 0,
            is_spent: false,
        };
        Self { fabric, jobs, now: Instant::ZERO, finished: vec![false; count] }
    }

    /// Sets a rule to break. A defect that occurs once skips the first `after` opportunities.
    pub(super) fn with_defect(mut self, defect: Defect, after: u32) -> Self {
        (self.fabric.defect, self.fabric.defect_after) = (Some(defect), after);
        self
    }

    pub(super) fn memory(&mut self, rank: usize) -> &mut VectorMemory {
        &mut self.fabric.seats[rank].memory
    }

    pub(super) fn job(&mut self, rank: usize) -> &mut Litmus {
        &mut self.jobs[rank]
    }

    /// Runs until every live rank is over, or until there is no progress for long.
    pub(super) fn run(&mut self) -> Result<(), String> {
        self.run_until(|_| false)
    }

    /// Runs like [`Self::run`], but stops when `stop` returns `true`.
    pub(super) fn run_until(&mut self, mut stop: impl FnMut(&mut Self) -> bool) -> Result<(), String> {
        let (mut idle, mut progress) = (0, 0);
        while !self.is_over() {
            if stop(self) {
                return Ok(());
            }
            self.now = self.now + 100;
            let rank = self.fabric.random(self.jobs.len());
            self.poll(rank);
            for _ in 0..4 {
                self.fabric.deliver_one();
            }
            let sum: u64 = self.jobs.iter().map(Job::progress_count).sum();
            idle = if sum == progress { idle + 1 } else { 0 };
            progress = sum;
            if idle > 20_000 {
                return Err(self.jobs.iter().map(Job::waiting_for).collect::<Vec<_>>().join("; "));
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.finished.iter().zip(&self.fabric.seats).all(|(finished, seat)| *finished || seat.is_dead)
    }

    fn poll(&mut self, rank: usize) {
        if self.fabric.seats[rank].is_dead {
            return;
        }
        let job = &mut self.jobs[rank];
        for event in std::mem::take(&mut self.fabric.seats[rank].events) {
            job.handle_event(self.now, &event);
        }
        // Commands are only queued. Only the job accesses memory during its poll.
        let mut memory = std::mem::take(&mut self.fabric.seats[rank].memory);
        let progress = job.poll(self.now, &mut TestSeat { fabric: &mut self.fabric, rank }, &mut memory);
        self.fabric.seats[rank].memory = memory;
        self.finished[rank] = progress == Progress::Finished;
        self.fabric.match_messages(rank);
        self.fabric.settle_waits(rank);
    }

    /// Kills a rank. Its memory and its outstanding operations are lost. The others do not detect the loss yet.
    pub(super) fn kill(&mut self, rank: usize) {
        self.fabric.seats[rank].is_dead = true;
        self.fabric.flights.retain(|(_, flight)| usize::from(flight.source) != rank);
    }

    /// Reports to a live rank that another one is lost.
    pub(super) fn announce_loss(&mut self, to: usize, lost: usize) {
        self.fabric.announce_loss(to, lost);
    }
}
