//! Traffic patterns that are typical of racks of GPUs, as lists of targets.
//!
//! Every rank can compute the messages of every other rank, so a receiver knows what it must receive without a message
//! about it. This module does not determine when a message is sent.

use rackloom_plan::PatternName;

use super::shuffle::Shuffle;
use crate::ranks::pattern::fold;

const PURPOSE: u64 = 0x7472_6166_6669;

/// Traffic of the whole rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scheme {
    pub(crate) pattern: PatternName,
    pub(crate) ranks: u16,
    /// Messages of each flow, or of each rank if targets are random.
    pub(crate) messages: u64,
    pub(crate) seed: u64,
}

impl Scheme {
    /// Returns the targets of a rank's messages, in the order in which they are sent.
    pub(crate) fn targets(&self, rank: u16) -> Vec<u16> {
        if self.is_drawn() {
            return (0..self.messages).map(|number| self.drawn(rank, number)).collect();
        }
        let flows = self.flows_from(rank);
        let longest = flows.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let round =
            |number| flows.iter().filter(move |(_, count)| number < *count).map(|(target, _)| *target);
        (0..longest).flat_map(round).collect()
    }

    /// Returns the senders of the messages that a rank receives, in ascending order, with the number of messages of each.
    pub(crate) fn sources(&self, rank: u16) -> Vec<(u16, u64)> {
        let all = |count: &dyn Fn(u16) -> u64| {
            let counts =
                (0..self.ranks).filter(|source| *source != rank).map(|source| (source, count(source)));
            counts.filter(|(_, count)| *count > 0).collect()
        };
        let one = |source: Option<u16>| source.map(|source| (source, self.messages)).into_iter().collect();
        match self.pattern {
            _ if self.messages == 0 && self.pattern != PatternName::Experts => Vec::new(),
            PatternName::Permutation => one(Some(self.circle_neighbour(rank, self.ranks - 1))),
            PatternName::Pipeline => one(rank.checked_sub(1)),
            PatternName::KvCache => one(self.kv_cache_source(rank)),
            PatternName::Incast if rank != 0 => Vec::new(),
            PatternName::Incast | PatternName::AllToAll | PatternName::TensorParallel => {
                all(&|_| self.messages)
            }
            PatternName::Experts => all(&|_| self.of_expert(rank)),
            PatternName::Uniform | PatternName::SmallStores => all(&|source| {
                (0..self.messages).filter(|number| self.drawn(source, *number) == rank).count() as u64
            }),
        }
    }

    /// Returns the number of slots for messages at a rank. Flows that are drawn may come from any rank.
    pub(crate) fn slots(&self, rank: u16) -> u16 {
        match self.pattern {
            PatternName::Permutation => 1,
            PatternName::Pipeline => u16::from(rank > 0),
            PatternName::KvCache => u16::from(self.kv_cache_source(rank).is_some()),
            PatternName::Incast if rank != 0 => 0,
            _ => self.ranks,
        }
    }

    /// Returns the most slots of a rank.
    pub(crate) const fn slots_max(&self) -> u16 {
        self.pattern.slots_max(self.ranks as u64) as u16
    }

    /// Returns the number of the slot at a rank in which the messages of a sender arrive.
    pub(crate) fn slot(&self, from: u16, to: u16) -> u64 {
        if self.slots(to) <= 1 { 0 } else { from.into() }
    }

    /// Returns the ranks whose messages a rank must receive before it goes on; none in most patterns.
    pub(crate) fn awaited(&self, rank: u16) -> Vec<u16> {
        match self.pattern {
            PatternName::Pipeline => rank.checked_sub(1).into_iter().collect(),
            PatternName::TensorParallel => (0..self.ranks).filter(|other| *other != rank).collect(),
            _ => Vec::new(),
        }
    }

    const fn is_drawn(&self) -> bool {
        matches!(self.pattern, PatternName::Uniform | PatternName::SmallStores)
    }

    fn drawn(&self, rank: u16, number: u64) -> u16 {
        let random = fold(self.seed, &[PURPOSE, rank.into(), number]);
        let others = u64::from(self.ranks - 1);
        let step = ((u128::from(random) * u128::from(others)) >> 64) as u16;
        (rank + 1 + step) % self.ranks
    }

    /// Returns the targets of a rank with the number of messages to each. A rank begins with its next neighbour, so that the ranks do not all send to
    /// one target at once.
    fn flows_from(&self, rank: u16) -> Vec<(u16, u64)> {
        let others = || (1..self.ranks).map(|step| (rank + step) % self.ranks);
        let one = |target: Option<u16>| target.map(|target| (target, self.messages)).into_iter().collect();
        let last = self.ranks - 1;
        match self.pattern {
            PatternName::Permutation => one(Some(self.circle_neighbour(rank, 1))),
            PatternName::Incast => one((rank != 0).then_some(0)),
            PatternName::Pipeline => one((rank < last).then_some(rank + 1)),
            PatternName::KvCache => one((rank < self.ranks / 2).then_some(rank + self.ranks / 2)),
            PatternName::Experts => others().map(|target| (target, self.of_expert(target))).collect(),
            PatternName::AllToAll | PatternName::TensorParallel => {
                others().map(|target| (target, self.messages)).collect()
            }
            PatternName::Uniform | PatternName::SmallStores => Vec::new(),
        }
    }

    /// Returns the number of messages that each rank sends to an expert. Experts are not equally popular: the k-th gets a k-th of what the first gets
    /// (Zipf).
    fn of_expert(&self, expert: u16) -> u64 {
        (self.messages / (u64::from(expert) + 1)).max(1)
    }

    fn kv_cache_source(&self, rank: u16) -> Option<u16> {
        rank.checked_sub(self.ranks / 2).filter(|source| *source < self.ranks / 2)
    }

    /// Returns the rank that is `steps` after this one in a circle of all ranks in random order.
    fn circle_neighbour(&self, rank: u16, steps: u16) -> u16 {
        let shuffle = Shuffle::new(self.ranks, fold(self.seed, &[PURPOSE]));
        let position = u32::from(shuffle.position_of(rank)) + u32::from(steps);
        shuffle.rank_at((position % u32::from(self.ranks)) as u16)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn scheme(pattern: PatternName, ranks: u16, messages: u64) -> Scheme {
        Scheme { pattern, ranks, messages, seed: 7 }
    }

    #[test]
    fn receivers_expect_exactly_what_senders_send() {
        for pattern in PatternName::ALL {
            let scheme = scheme(*pattern, 8, 10);
            let mut sent = vec![vec![0; 8]; 8];
            for rank in 0..8 {
                scheme
                    .targets(rank)
                    .iter()
                    .for_each(|target| sent[usize::from(*target)][usize::from(rank)] += 1);
            }
            for rank in 0..8_u16 {
                let sources = scheme.sources(rank);
                let slots: BTreeSet<_> =
                    sources.iter().map(|(source, _)| scheme.slot(*source, rank)).collect();
                assert_eq!(
                    slots.len(),
                    sources.len(),
                    "{pattern}: each source of {rank} has a slot of its own"
                );
                assert!(slots.iter().all(|slot| *slot < scheme.slots(rank).into()), "{pattern} at {rank}");
                assert!(scheme.slots(rank) <= scheme.slots_max(), "{pattern} at {rank}");
                let counts =
                    (0..8).map(|source| sources.iter().find(|one| one.0 == source).map_or(0, |one| one.1));
                assert_eq!(Vec::from_iter(counts), sent[usize::from(rank)], "{pattern} at {rank}");
            }
            assert!(sent.iter().flatten().sum::<u64>() > 0, "{pattern} sends nothing");
        }
    }

    #[test]
    fn patterns_have_the_sums_of_their_names() {
        let sums = |pattern| -> Vec<u64> {
            (0..8)
                .map(|rank| scheme(pattern, 8, 12).sources(rank).iter().map(|(_, count)| count).sum())
                .collect()
        };
        assert_eq!(sums(PatternName::Permutation), [12; 8]);
        assert_eq!(sums(PatternName::AllToAll), [84; 8]);
        assert_eq!(sums(PatternName::TensorParallel), [84; 8]);
        assert_eq!(sums(PatternName::Incast), [84, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(sums(PatternName::Pipeline), [0, 12, 12, 12, 12, 12, 12, 12]);
        assert_eq!(sums(PatternName::KvCache), [0, 0, 0, 0, 12, 12, 12, 12]);
        assert_eq!(sums(PatternName::Experts), [84, 42, 28, 21, 14, 14, 7, 7]);
    }

    #[test]
    fn a_permutation_is_one_circle_of_all_ranks_that_the_seed_determines() {
        let circle = |seed: u64, ranks: u16| -> Vec<u16> {
            let scheme = Scheme { seed, ..scheme(PatternName::Permutation, ranks, 1) };
            let next = |rank: &u16| Some(scheme.targets(*rank)[0]);
            std::iter::successors(Some(0), next).take(usize::from(ranks)).collect()
        };
        for ranks in [2, 3, 5, 64, 1000] {
            let ordered: BTreeSet<_> = circle(7, ranks).into_iter().collect();
            assert_eq!(ordered.len(), usize::from(ranks));
        }
        assert_eq!(circle(7, 64), circle(7, 64));
        assert_ne!(circle(7, 64), circle(8, 64));
    }
}
