//! Definition of each element of each output of a collective, without any algorithm.

use crate::collective::Collective;
use crate::partition::part;

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
pub(super) fn promise(
    collective: Collective,
    ranks: usize,
    elements: usize,
    rank: usize,
    element: usize,
) -> Promise {
    let mine = part(elements, ranks, rank);
    let all = |position| Promise { contributors: Contributors::All, position };
    let one = |from, position| Promise { contributors: Contributors::One(from), position };
    match collective {
        Collective::AllReduce | Collective::Reduce { .. } | Collective::Barrier => all(element),
        Collective::ReduceScatter => all(mine.start + element),
        Collective::AllGather | Collective::Gather { .. } => {
            let owner = (0..ranks).find(|&owner| part(elements, ranks, owner).contains(&element));
            let owner = owner.unwrap_or(0);
            one(owner, element - part(elements, ranks, owner).start)
        }
        Collective::Broadcast { root } => one(root, element),
        Collective::AllToAll => one(element / mine.len(), mine.start + element % mine.len()),
        Collective::Scan => Promise { contributors: Contributors::Below(rank + 1), position: element },
        Collective::ExclusiveScan => Promise { contributors: Contributors::Below(rank), position: element },
        Collective::Scatter { root } => one(root, mine.start + element),
    }
}
