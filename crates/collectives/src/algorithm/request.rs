//! Requests for schedules, and the reasons why a request is refused.

use core::num::NonZeroUsize;

use thiserror::Error;

use super::name::Algorithm;
use crate::collective::Collective;

/// Request for a schedule.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Collective to be performed.
    pub collective: Collective,
    /// Number of ranks.
    pub ranks: usize,
    /// Elements of the whole array, as [`Collective`] counts them; a barrier has none.
    pub elements: usize,
    /// The server of each rank, by rank; empty when each rank has a server of its own. Only
    /// [`Algorithm::TwoLevel`] uses it.
    pub servers: &'a [usize],
}

/// Maximum number of ranks of one schedule: the fabric's own limit of endpoints.
pub const RANKS_MAX: usize = 1024;
/// Maximum number of elements of one schedule (2^40, eight TiB of 64-bit elements), so that no position can overflow.
pub const ELEMENTS_MAX: usize = 1 << 40;
/// Maximum number of segments of a pipeline.
pub const SEGMENTS_MAX: usize = 1024;

/// Reason why no schedule was built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// The algorithm performs other collectives only.
    #[error("{algorithm} cannot do {collective}; hint: {collective} is done by {by}")]
    Unsuitable {
        /// Requested collective.
        collective: Collective,
        /// Requested algorithm.
        algorithm: Algorithm,
        /// Names of the algorithms that perform the collective.
        by: String,
    },
    /// No ranks, or more than a fabric has.
    #[error("{0} ranks; hint: between 1 and {RANKS_MAX}")]
    Ranks(usize),
    /// The root is not a rank.
    #[error("root {root} of {ranks} ranks; hint: between 0 and {}", .ranks - 1)]
    Root {
        /// Requested root.
        root: usize,
        /// Number of ranks.
        ranks: usize,
    },
    /// More elements than any memory holds.
    #[error("{0} elements; hint: at most {ELEMENTS_MAX}")]
    Elements(usize),
    /// The pipeline has too many segments.
    #[error("{0} segments; hint: at most {SEGMENTS_MAX}")]
    Segments(NonZeroUsize),
    /// The list of servers does not fit the ranks.
    #[error("{servers} servers named for {ranks} ranks; hint: name one per rank, or none")]
    Servers {
        /// Length of the list.
        servers: usize,
        /// Number of ranks.
        ranks: usize,
    },
}

/// Returns the algorithms that can perform a collective; the pipeline with `segments`.
pub fn suitable(collective: Collective, segments: NonZeroUsize) -> impl Iterator<Item = Algorithm> {
    Algorithm::all(segments).into_iter().filter(move |algorithm| algorithm.does(collective))
}

pub(crate) fn check(request: &Request<'_>, algorithm: Algorithm) -> Result<(), Refused> {
    let &Request { collective, ranks, elements, servers } = request;
    if !algorithm.does(collective) {
        let names: Vec<_> = suitable(collective, NonZeroUsize::MIN).map(Algorithm::name).collect();
        return Err(Refused::Unsuitable { collective, algorithm, by: names.join(", ") });
    }
    if ranks == 0 || ranks > RANKS_MAX {
        return Err(Refused::Ranks(ranks));
    }
    if let Some(root) = collective.root().filter(|&root| root >= ranks) {
        return Err(Refused::Root { root, ranks });
    }
    if elements > ELEMENTS_MAX {
        return Err(Refused::Elements(elements));
    }
    if !servers.is_empty() && servers.len() != ranks {
        return Err(Refused::Servers { servers: servers.len(), ranks });
    }
    match algorithm {
        Algorithm::RingPipeline { segments } if segments.get() > SEGMENTS_MAX => {
            Err(Refused::Segments(segments))
        }
        _ => Ok(()),
    }
}
