//! Traffic patterns that are typical of racks of GPUs, as lists of targets.
//!
//! Every rank can compute the messages of every other rank, so a receiver knows what it must receive without a message
//! about it. This module does not determine when a message is sent.

use rackloom_plan::PatternName;

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
        // Each rank begins with its next neighbour, so that the ranks do not all send to one target at once.
        let others = (1..self.ranks).map(|step| (rank + step) % self.ranks);
        let flows: Vec<(u16, u64)> = others.map(|target| (target, self.flow(rank, target))).collect();
        let longest = flows.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let round =
            |number| flows.iter().filter(move |(_, count)| number < *count).map(|(target, _)| *target);
        (0..longest).flat_map(round).collect()
    }

    /// Returns the number of messages that a rank receives, by sender.
    pub(crate) fn sources(&self, rank: u16) -> Vec<u64> {
        let count = |source: u16| {
            if source == rank {
                0
            } else if self.is_drawn() {
                (0..self.messages).filter(|number| self.drawn(source, *number) == rank).count() as u64
            } else {
                self.flow(source, rank)
            }
        };
        (0..self.ranks).map(count).collect()
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

    /// Returns the number of messages from one rank to another.
    fn flow(&self, from: u16, to: u16) -> u64 {
        let is_flow = match self.pattern {
            PatternName::Permutation => self.next_in_circle(from) == to,
            PatternName::Incast => to == 0,
            // Tokens to experts of unequal popularity: the k-th gets a k-th of what the first gets (Zipf).
            PatternName::Experts => return (self.messages / (u64::from(to) + 1)).max(1),
            PatternName::Pipeline => to == from + 1,
            PatternName::KvCache => from < self.ranks / 2 && to == from + self.ranks / 2,
            PatternName::AllToAll | PatternName::TensorParallel => true,
            PatternName::Uniform | PatternName::SmallStores => false,
        };
        u64::from(is_flow) * self.messages
    }

    /// Returns the next rank in a circle of all ranks in random order.
    fn next_in_circle(&self, rank: u16) -> u16 {
        let mut circle: Vec<u16> = (0..self.ranks).collect();
        circle.sort_by_key(|one| fold(self.seed, &[PURPOSE, u64::from(*one) << 32]));
        let index = circle.iter().position(|one| *one == rank).unwrap_or(0);
        circle[(index + 1) % circle.len()]
    }
}

#[cfg(test)]
mod tests {
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
                assert_eq!(scheme.sources(rank), sent[usize::from(rank)], "{pattern} at {rank}");
            }
            assert!(sent.iter().flatten().sum::<u64>() > 0, "{pattern} sends nothing");
        }
    }

    #[test]
    fn patterns_have_the_sums_of_their_names() {
        let sums = |pattern| -> Vec<u64> {
            (0..8).map(|rank| scheme(pattern, 8, 12).sources(rank).iter().sum()).collect()
        };
        assert_eq!(sums(PatternName::Permutation), [12; 8]);
        assert_eq!(sums(PatternName::AllToAll), [84; 8]);
        assert_eq!(sums(PatternName::TensorParallel), [84; 8]);
        assert_eq!(sums(PatternName::Incast), [84, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(sums(PatternName::Pipeline), [0, 12, 12, 12, 12, 12, 12, 12]);
        assert_eq!(sums(PatternName::KvCache), [0, 0, 0, 0, 12, 12, 12, 12]);
        assert_eq!(sums(PatternName::Experts), [84, 42, 28, 21, 14, 14, 7, 7]);
    }
}
