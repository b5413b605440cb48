//! Definition of each element of each output of a collective, without any algorithm.

use core::ops::Range;

use crate::collective::Collective;
use crate::partition::Parts;

/// Ranks whose values an output element contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contributors {
    /// Every rank, each exactly once.
    All,
    /// The ranks below this one, each exactly once.
    Below(usize),
    /// This rank alone.
    One(usize),
}

/// Definition of consecutive elements of an output, which have the same contributors at consecutive positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    /// Elements of the output.
    pub elements: Range<usize>,
    /// Ranks whose values they contain.
    pub contributors: Contributors,
    /// Position of the first one in the contributors' inputs.
    pub position: usize,
}

/// Returns the definition of the whole output of `rank`, which has `elements` elements, in ascending order.
pub fn promised(
    collective: Collective,
    parts: &Parts,
    rank: usize,
    elements: usize,
) -> impl Iterator<Item = Promise> {
    let ranges: Vec<Range<usize>> = match collective {
        _ if elements == 0 => Vec::new(),
        Collective::AllGather | Collective::Gather { .. } => {
            (0..parts.ranks()).map(|owner| parts.part(owner)).collect()
        }
        Collective::AllToAll => (0..parts.ranks()).map(|from| parts.received_block(from, rank)).collect(),
        _ => core::iter::once(0..elements).collect(),
    };
    let parts = parts.clone();
    ranges.into_iter().enumerate().filter(|(_, elements)| !elements.is_empty()).map(
        move |(from, elements)| {
            // These ranges are in the order of the ranks that have given them.
            let first = match collective {
                Collective::AllGather | Collective::Gather { .. } => One::new(from, 0),
                Collective::AllToAll => One::new(from, parts.sent_block(from, rank).start),
                _ => promise(collective, &parts, rank, elements.start),
            };
            Promise { elements, contributors: first.contributors, position: first.position }
        },
    )
}

/// Definition of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct One {
    pub(super) contributors: Contributors,
    /// Position in the contributors' inputs.
    pub(super) position: usize,
}

impl One {
    const fn new(from: usize, position: usize) -> Self {
        Self { contributors: Contributors::One(from), position }
    }
}

/// Returns the definition of `element` of the output of `rank`.
pub(super) fn promise(collective: Collective, parts: &Parts, rank: usize, element: usize) -> One {
    let all = |position| One { contributors: Contributors::All, position };
    let one = One::new;
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
        Collective::Scan => One { contributors: Contributors::Below(rank + 1), position: element },
        Collective::ExclusiveScan => One { contributors: Contributors::Below(rank), position: element },
        Collective::Scatter { root } => one(root, parts.part(rank).start + element),
    }
}
