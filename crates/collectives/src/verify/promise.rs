//! Definition of each element of each output of a collective, without any algorithm.

use crate::collective::Collective;
use crate::partition::Parts;

/// Ranks whose values an output element contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contributors {
    /// Every rank, each exactly once.
    All,
    /// The ranks below this one, each exactly once.
    Below(usize),
    /// This rank alone.
    One(usize),
}

/// Definition of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Promise {
    pub(super) contributors: Contributors,
    /// Position in the contributors' inputs.
    pub(super) position: usize,
}

/// Returns the definition of `element` of the output of `rank`.
pub(super) fn promise(collective: Collective, parts: &Parts, rank: usize, element: usize) -> Promise {
    let all = |position| Promise { contributors: Contributors::All, position };
    let one = |from, position| Promise { contributors: Contributors::One(from), position };
    match collective {
        Collective::AllReduce | Collective::Reduce { .. } | Collective::Barrier => all(element),
        Collective::ReduceScatter => all(parts.part(rank).start + element),
        Collective::AllGather | Collective::Gather { .. } => {
            let owner = parts.owner(element).unwrap_or(0);
            one(owner, element - parts.part(owner).start)
        }
        Collective::Broadcast { root } => one(root, element),
        Collective::AllToAll => {
            let received = |from: usize| parts.received_block(from, rank);
            let from = (0..parts.ranks()).find(|&from| received(from).contains(&element)).unwrap_or(0);
            one(from, parts.sent_block(from, rank).start + element - received(from).start)
        }
        Collective::Scan => Promise { contributors: Contributors::Below(rank + 1), position: element },
        Collective::ExclusiveScan => Promise { contributors: Contributors::Below(rank), position: element },
        Collective::Scatter { root } => one(root, parts.part(rank).start + element),
    }
}
