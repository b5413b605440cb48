//! Requests for schedules, and the reasons why a request is refused.

use core::fmt;
use core::num::NonZeroUsize;

use super::name::Algorithm;
use super::servers::Servers;
use crate::collective::Collective;
use crate::reason::Reason;

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
    /// [`Algorithm::TwoLevel`] and [`Algorithm::Hierarchical`] use it.
    pub servers: &'a [usize],
    /// Number of elements of each rank's part, by rank; empty when the parts are equal. Their sum is `elements`. Only collectives
    /// whose ranks have parts take them ([`Collective::has_parts`]). An all-to-all takes a block for each pair of ranks, a row
    /// per sender; `elements` is then the sum over all pairs.
    pub parts: &'a [usize],
}

/// Maximum number of ranks of one schedule: the limit of the members of a rack.
pub const RANKS_MAX: usize = 16_384;
/// Maximum number of elements of one schedule (2^40, eight TiB of 64-bit elements), so that no position can overflow.
pub const ELEMENTS_MAX: usize = 1 << 40;
/// Maximum number of segments of a pipeline.
pub const SEGMENTS_MAX: usize = 1024;

/// Reason why no schedule was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The algorithm performs other collectives only.
    Unsuitable {
        /// Requested collective.
        collective: Collective,
        /// Requested algorithm.
        algorithm: Algorithm,
        /// Names of the algorithms that perform the collective.
        by: String,
    },
    /// No ranks, or more than a fabric has.
    Ranks(usize),
    /// The root is not a rank.
    Root {
        /// Requested root.
        root: usize,
        /// Number of ranks.
        ranks: usize,
    },
    /// More elements than any memory holds.
    Elements(usize),
    /// The pipeline has too many segments.
    Segments(NonZeroUsize),
    /// The list of servers does not fit the ranks.
    Servers {
        /// Length of the list.
        servers: usize,
        /// Number of ranks.
        ranks: usize,
    },
    /// Parts are listed for a collective that has none.
    NoParts(Collective),
    /// The list of parts has the wrong length.
    PartCount {
        /// Length of the list.
        parts: usize,
        /// Number of parts, or of blocks of an all-to-all.
        expected: usize,
    },
    /// The parts are not the whole array.
    PartSum {
        /// Sum of the parts.
        sum: u128,
        /// Elements of the whole array.
        elements: usize,
    },
}

impl Refused {
    /// Returns message and hint.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Unsuitable { collective, algorithm, by } => Reason::new(
                // Every root has the same algorithms.
                format!("{algorithm} cannot do {}", collective.kind()),
                format!("{} is done by {by}", collective.kind()),
            ),
            Self::Ranks(ranks) => Reason::new(format!("{ranks} ranks"), format!("between 1 and {RANKS_MAX}")),
            Self::Root { root, ranks } => {
                Reason::new(format!("root {root} of {ranks} ranks"), format!("between 0 and {}", ranks - 1))
            }
            Self::Elements(elements) => {
                Reason::new(format!("{elements} elements"), format!("at most {ELEMENTS_MAX}"))
            }
            Self::Segments(segments) => {
                Reason::new(format!("{segments} segments"), format!("at most {SEGMENTS_MAX}"))
            }
            Self::Servers { servers, ranks } => Reason::new(
                format!("{servers} servers named for {ranks} ranks"),
                "name one per rank, or none",
            ),
            Self::NoParts(collective) => Reason::new(
                format!("parts listed for {collective}, whose ranks have no parts"),
                "leave them out, or take all-gather, reduce-scatter, gather, scatter or all-to-all",
            ),
            Self::PartCount { parts, expected } => Reason::new(
                format!("{parts} parts listed"),
                format!("list {expected}: one per rank, or one per pair of ranks of an all-to-all; or none"),
            ),
            Self::PartSum { sum, elements } => Reason::new(
                format!("the parts have {sum} elements, the array has {elements}"),
                "the parts are the whole array",
            ),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason().fmt(formatter)
    }
}

impl core::error::Error for Refused {}

/// Returns the algorithms by which ranks alone can perform a collective; the pipeline with `segments`. [`Algorithm::InSwitch`] needs switches as
/// well.
pub fn suitable(collective: Collective, segments: NonZeroUsize) -> impl Iterator<Item = Algorithm> {
    Algorithm::all(segments)
        .into_iter()
        .filter(move |algorithm| algorithm.switches() == 0 && algorithm.does(collective))
}

/// Returns the algorithms among which [`choose`](crate::choose::choose) chooses: all that can perform the collective, but
/// [`Algorithm::Hierarchical`] only if there are several servers and one of them has several ranks.
pub fn candidates(
    collective: Collective,
    segments: NonZeroUsize,
    servers: &[usize],
) -> impl Iterator<Item = Algorithm> {
    let are_two_levels = Servers::new(servers, servers.len()).are_two_levels();
    suitable(collective, segments)
        .filter(move |algorithm| are_two_levels || *algorithm != Algorithm::Hierarchical)
}

pub(crate) fn check(request: &Request<'_>, algorithm: Algorithm) -> Result<(), Refused> {
    let &Request { collective, ranks, elements, servers, parts } = request;
    if !algorithm.does(collective) {
        let suitable = Algorithm::all(NonZeroUsize::MIN).into_iter().filter(|one| one.does(collective));
        let names: Vec<_> = suitable.map(Algorithm::name).collect();
        return Err(Refused::Unsuitable { collective, algorithm, by: names.join(", ") });
    }
    if ranks == 0 || ranks + algorithm.switches() > RANKS_MAX {
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
    if !parts.is_empty() {
        check_parts(request)?;
    }
    match algorithm {
        Algorithm::RingPipeline { segments } if segments.get() > SEGMENTS_MAX => {
            Err(Refused::Segments(segments))
        }
        _ => Ok(()),
    }
}

fn check_parts(request: &Request<'_>) -> Result<(), Refused> {
    let &Request { collective, ranks, elements, parts, .. } = request;
    if !collective.has_parts() {
        return Err(Refused::NoParts(collective));
    }
    let expected = if collective == Collective::AllToAll { ranks * ranks } else { ranks };
    if parts.len() != expected {
        return Err(Refused::PartCount { parts: parts.len(), expected });
    }
    let sum = parts.iter().map(|&part| part as u128).sum();
    if sum == elements as u128 { Ok(()) } else { Err(Refused::PartSum { sum, elements }) }
}
