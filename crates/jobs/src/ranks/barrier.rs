//! Barrier of all ranks, made of signals: dissemination (Hensgen, Finkel and Manber 1988).
//!
//! In step `k`, a rank signals the rank `2^k` positions away in the group, and waits for the rank `2^k` positions away
//! on the other side. After `ceil(log2 n)` steps each rank has received a signal from every other rank, directly or
//! through others. Every word has one writer. Its value only grows, by one per barrier, so a fast rank may be one
//! barrier ahead without harm. Odd barriers signal by fetch-add, even ones by a put of no bytes.

use rackloom_protocol::{
    Atomic, AtomicKind, Condition, Instant, LocalRange, NodeId, RemoteAddress, Signal, SignalKind, Width,
};

use super::issuer::Issuer;
use super::request::{Body, Outcome, Request, Tag};
use crate::measure::OperationKind;

/// Number of words that a barrier uses: enough for 65,536 ranks.
pub(crate) const BARRIER_WORDS: u64 = 16;

/// Location of the barrier's words.
pub(crate) trait Grounds {
    /// Returns the number of this rank.
    fn rank(&self) -> u16;
    /// Returns the address of word `step` (below [`BARRIER_WORDS`]) in an owner's memory.
    fn barrier_word(&self, owner: u16, step: u16) -> RemoteAddress;
}

/// Signal pattern of one rank: the ranks that it signals and waits for.
#[derive(Clone, Debug)]
struct Dissemination {
    group: Vec<u16>,
    position: usize,
}

impl Dissemination {
    fn steps(&self) -> u16 {
        let steps = self.group.len().next_power_of_two().trailing_zeros() as u16;
        debug_assert!(u64::from(steps) <= BARRIER_WORDS);
        steps
    }

    fn signals(&self, step: u16) -> u16 {
        self.group[(self.position + (1 << step)) % self.group.len()]
    }

    fn waits_for(&self, step: u16) -> u16 {
        let count = self.group.len();
        self.group[(self.position + count - (1 << step) % count) % count]
    }
}

/// Barrier state of one rank.
#[derive(Debug)]
pub(crate) struct Barrier {
    partners: Dissemination,
    /// Number of barriers begun.
    episode: u64,
    step: u16,
    /// Completions that the current step still needs: of its signal and of its wait.
    pending: u8,
    begun: Instant,
}

impl Barrier {
    /// Returns a barrier of the ranks in `group`, for the member `rank`.
    pub(crate) fn new(group: Vec<u16>, rank: u16) -> Self {
        let position = group.iter().position(|member| *member == rank).unwrap_or(0);
        Self {
            partners: Dissemination { group, position },
            episode: 0,
            step: 0,
            pending: 0,
            begun: Instant::ZERO,
        }
    }

    /// Begins the next barrier.
    pub(crate) fn begin(&mut self, now: Instant, grounds: &impl Grounds, issuer: &mut Issuer) {
        self.episode += 1;
        self.step = 0;
        self.begun = now;
        issuer.measurements.begin(OperationKind::Barrier, now);
        self.request(grounds, issuer);
    }

    /// Records that a signal or a wait of the barrier succeeded.
    pub(crate) fn succeeded(&mut self, grounds: &impl Grounds, issuer: &mut Issuer) {
        self.pending = self.pending.saturating_sub(1);
        if self.pending == 0 && self.step < self.partners.steps() {
            self.step += 1;
            self.request(grounds, issuer);
        }
    }

    /// Returns whether a signal or a wait of the current barrier may complete with `value`. A word has one writer, so
    /// the writer knows the value that its fetch-add must find.
    pub(crate) fn is_right(&self, outcome: &Outcome, value: u64) -> bool {
        match outcome.kind {
            OperationKind::WaitUntil => value >= self.episode,
            OperationKind::FetchAddEight => value + 1 == self.episode,
            _ => true,
        }
    }

    /// Returns whether all ranks have entered the barrier.
    pub(crate) fn is_over(&self) -> bool {
        self.step >= self.partners.steps()
    }

    /// Measures the barrier that is over.
    pub(crate) fn finish(&self, now: Instant, issuer: &mut Issuer) {
        issuer.measurements.end(OperationKind::Barrier, now);
        issuer.measurements.count(OperationKind::Barrier, now.since(self.begun), Ok(0));
        issuer.observe(now, OperationKind::Barrier, None, self.begun, Ok(0));
    }

    /// Returns the words on which this rank is signalled, with the values that they must hold once all barriers are
    /// over.
    pub(crate) fn words(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        (0..BARRIER_WORDS as u16)
            .map(|step| (step, if step < self.partners.steps() { self.episode } else { 0 }))
    }

    /// Returns the rank that this one waits for.
    pub(crate) fn waits_for(&self) -> u16 {
        self.partners.waits_for(self.step.min(self.partners.steps().saturating_sub(1)))
    }

    fn request(&mut self, grounds: &impl Grounds, issuer: &mut Issuer) {
        if self.is_over() {
            return;
        }
        let target = grounds.barrier_word(self.partners.signals(self.step), self.step);
        let own = grounds.barrier_word(grounds.rank(), self.step);
        issuer.submit_urgent(Request::new(Tag::BarrierSignal, self.signal(target)));
        let wait = Body::WaitUntil {
            region: own.region,
            offset: own.offset,
            condition: Condition::AtLeast,
            value: self.episode,
            depends_on: Some(NodeId(self.partners.waits_for(self.step))),
        };
        issuer.submit_urgent(Request::new(Tag::BarrierWait, wait));
        self.pending = 2;
    }

    fn signal(&self, target: RemoteAddress) -> Body {
        if self.episode % 2 == 1 {
            let atomic = Atomic { kind: AtomicKind::FetchAdd, width: Width::Eight, operand: 1, compare: 0 };
            return Body::Atomic { target, atomic };
        }
        let RemoteAddress { region, offset, key, .. } = target;
        let signal = Signal { region, offset, key, kind: SignalKind::Add, value: 1 };
        let source = LocalRange { region, offset: 0, length: 0 };
        Body::Put { target, source, signal: Some(signal) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn members(count: usize) -> Vec<Dissemination> {
        // Gaps in the numbers: a group need not contain the whole rack.
        let group: Vec<_> = (0..count as u16).map(|rank| rank * 3 + 1).collect();
        (0..count).map(|position| Dissemination { group: group.clone(), position }).collect()
    }

    #[test]
    fn after_all_steps_each_rank_knows_of_every_rank_and_one_step_less_is_too_few() {
        for count in 1..=33 {
            let members = members(count);
            let mut reached: Vec<BTreeSet<u16>> =
                members.iter().map(|member| BTreeSet::from([member.group[member.position]])).collect();
            for step in 0..members[0].steps() {
                assert!(reached.iter().any(|set| set.len() < count), "{count}: step {step} is not needed");
                let before = reached.clone();
                for (position, member) in members.iter().enumerate() {
                    let from = member.group.iter().position(|rank| *rank == member.waits_for(step)).unwrap();
                    reached[position].extend(&before[from]);
                }
            }
            assert!(reached.iter().all(|set| set.len() == count), "{count}");
        }
    }

    #[test]
    fn the_awaited_rank_signals_this_one() {
        for count in 2..=17 {
            let members = members(count);
            for member in &members {
                for step in 0..member.steps() {
                    let partner =
                        members.iter().find(|other| other.group[other.position] == member.waits_for(step));
                    assert_eq!(partner.unwrap().signals(step), member.group[member.position]);
                    assert_ne!(member.waits_for(step), member.group[member.position]);
                }
            }
        }
    }
}
