//! Payload that a schedule moves: bytes and messages per rank and per pair of ranks.
//!
//! Headers, acknowledgements and signals are not counted, because they depend on the fabric. On a ring, "per rank and
//! direction" is [`Traffic::between`] a rank and one of its neighbours.

use std::collections::BTreeMap;

use crate::schedule::Schedule;

/// Payload of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes by (sender, receiver); pairs that exchange nothing are absent.
    pairs: BTreeMap<(usize, usize), Load>,
}

/// Load between two ranks, or into or out of one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Payload bytes.
    pub bytes: u64,
    /// Number of puts.
    pub messages: u64,
}

/// Returns a schedule's payload, for elements of this size in bytes.
#[must_use]
pub fn traffic(schedule: &Schedule, element_bytes: usize) -> Traffic {
    let mut traffic = Traffic::default();
    for transfer in &schedule.transfers {
        let load = traffic.pairs.entry((transfer.from, transfer.to)).or_default();
        load.bytes += (transfer.source.length * element_bytes) as u64;
        load.messages += 1;
    }
    traffic
}

impl Traffic {
    /// Returns the load from one rank to another.
    #[must_use]
    pub fn between(&self, from: usize, to: usize) -> Load {
        self.pairs.get(&(from, to)).copied().unwrap_or_default()
    }

    /// Returns the load that a rank sends.
    #[must_use]
    pub fn sent(&self, rank: usize) -> Load {
        self.total(|from, _| from == rank)
    }

    /// Returns the load that a rank receives.
    #[must_use]
    pub fn received(&self, rank: usize) -> Load {
        self.total(|_, to| to == rank)
    }

    /// Returns the total load between all ranks.
    #[must_use]
    pub fn all(&self) -> Load {
        self.total(|_, _| true)
    }

    /// Returns each pair that exchanges data, with its load, in order of sender and receiver.
    pub fn pairs(&self) -> impl Iterator<Item = ((usize, usize), Load)> + '_ {
        self.pairs.iter().map(|(&pair, &load)| (pair, load))
    }

    fn total(&self, counts: impl Fn(usize, usize) -> bool) -> Load {
        let counted = self.pairs.iter().filter(|((from, to), _)| counts(*from, *to));
        counted.fold(Load::default(), |sum, (_, load)| Load {
            bytes: sum.bytes + load.bytes,
            messages: sum.messages + load.messages,
        })
    }
}
