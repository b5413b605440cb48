//! The algorithms, and the one function that builds a schedule.
//!
//! Each file here holds one idea and returns nothing but steps. Orders of reduction are part of an algorithm: they fix
//! the bits of a floating-point result, and they are stated where they are decided. Times are estimated elsewhere
//! ([`choose`](crate::choose)).

mod barrier;
mod direct;
mod halving_doubling;
mod pipeline;
mod ring;
mod tree;

use core::fmt;
use core::num::NonZeroUsize;
use core::str::FromStr;

use thiserror::Error;

use crate::builder::{Builder, input, output};
use crate::collective::Collective;
use crate::schedule::Schedule;

/// Algorithm of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Each rank talks to the next one only. All-reduce (reduce-scatter, then all-gather), reduce-scatter, all-gather.
    Ring,
    /// Two rings that run against each other, each with half of every part.
    BidirectionalRing,
    /// All-reduce: every rank sends its input to all ranks, and each reduces alone.
    OneShot,
    /// All-reduce: a direct reduce-scatter, then a direct all-gather.
    TwoShot,
    /// All-reduce: recursive halving, then recursive doubling (Rabenseifner). Ranks beyond the largest power of two
    /// hand their input to a partner before and take the result from it afterwards.
    HalvingDoubling,
    /// Every pair at once. Reduce-scatter, all-gather, all-to-all; reduce, gather, scatter, where the root is in every pair.
    Direct,
    /// All-to-all: one partner after the other, round *k* at distance *k*.
    Pairwise,
    /// Broadcast, reduce: a binomial tree.
    Binomial,
    /// Broadcast: along the ring, cut into segments that follow each other.
    RingPipeline {
        /// Number of segments.
        segments: NonZeroUsize,
    },
    /// Barrier: in round *k* signal the rank at distance 2^*k* (Hensgen, Finkel and Manber 1988).
    Dissemination,
    /// Barrier: ranks of one server first, then one leader per server.
    TwoLevel,
}

impl Algorithm {
    /// Returns every algorithm; the pipeline with this many segments.
    #[must_use]
    pub const fn all(segments: NonZeroUsize) -> [Self; 11] {
        [
            Self::Ring,
            Self::BidirectionalRing,
            Self::OneShot,
            Self::TwoShot,
            Self::HalvingDoubling,
            Self::Direct,
            Self::Pairwise,
            Self::Binomial,
            Self::RingPipeline { segments },
            Self::Dissemination,
            Self::TwoLevel,
        ]
    }

    /// Returns the lower-case name, without parameters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::BidirectionalRing => "bidirectional-ring",
            Self::OneShot => "one-shot",
            Self::TwoShot => "two-shot",
            Self::HalvingDoubling => "halving-doubling",
            Self::Direct => "direct",
            Self::Pairwise => "pairwise",
            Self::Binomial => "binomial",
            Self::RingPipeline { .. } => "ring-pipeline",
            Self::Dissemination => "dissemination",
            Self::TwoLevel => "two-level",
        }
    }

    /// Returns true if this algorithm can perform the collective.
    #[must_use]
    pub const fn does(self, collective: Collective) -> bool {
        use Collective as C;
        match self {
            Self::Ring | Self::BidirectionalRing => {
                matches!(collective, C::AllReduce | C::ReduceScatter | C::AllGather)
            }
            Self::OneShot | Self::TwoShot | Self::HalvingDoubling => matches!(collective, C::AllReduce),
            Self::Direct => matches!(
                collective,
                C::ReduceScatter
                    | C::AllGather
                    | C::AllToAll
                    | C::Reduce { .. }
                    | C::Gather { .. }
                    | C::Scatter { .. }
            ),
            Self::Pairwise => matches!(collective, C::AllToAll),
            Self::Binomial => matches!(collective, C::Broadcast { .. } | C::Reduce { .. }),
            Self::RingPipeline { .. } => matches!(collective, C::Broadcast { .. }),
            Self::Dissemination | Self::TwoLevel => matches!(collective, C::Barrier),
        }
    }
}

/// Displays the name; a pipeline with its number of segments (`ring-pipeline:8`).
impl fmt::Display for Algorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RingPipeline { segments } => formatter.pad(&format!("{}:{segments}", self.name())),
            _ => formatter.pad(self.name()),
        }
    }
}

/// Error: no algorithm has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "unknown algorithm \"{0}\"; hint: one of ring, bidirectional-ring, one-shot, two-shot, halving-doubling, direct, \
     pairwise, binomial, ring-pipeline:SEGMENTS, dissemination, two-level"
)]
pub struct UnknownAlgorithm(pub String);

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownAlgorithm(text.to_owned());
        let (name, segments) = match text.split_once(':') {
            Some((name, count)) => (name, count.parse().map_err(|_| unknown())?),
            None => (text, NonZeroUsize::MIN),
        };
        let found = Self::all(segments).into_iter().find(|algorithm| algorithm.name() == name);
        let takes_segments = matches!(found, Some(Self::RingPipeline { .. }));
        found.filter(|_| takes_segments == text.contains(':')).ok_or_else(unknown)
    }
}

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

/// Builds the schedule of a collective by an algorithm.
///
/// # Errors
/// If the algorithm cannot perform the collective, or a number is out of its bounds.
pub fn build(request: &Request<'_>, algorithm: Algorithm) -> Result<Schedule, Refused> {
    check(request, algorithm)?;
    let mut builder = Builder::new(request);
    if request.ranks == 1 {
        alone(&mut builder);
    } else {
        lay_out(&mut builder, request, algorithm);
    }
    Ok(builder.finish(algorithm))
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

/// Lays out a collective of one rank, which gets its own input.
fn alone(builder: &mut Builder) {
    if builder.collective != Collective::Barrier {
        let all = 0..builder.elements;
        builder.step(0, 0);
        builder.copy(0, input(all.clone()), output(all));
    }
}

fn lay_out(builder: &mut Builder, request: &Request<'_>, algorithm: Algorithm) {
    match algorithm {
        Algorithm::Ring => ring::lay_out(builder, 1),
        Algorithm::BidirectionalRing => ring::lay_out(builder, 2),
        Algorithm::OneShot => direct::one_shot(builder),
        Algorithm::TwoShot => direct::two_shot(builder),
        Algorithm::HalvingDoubling => halving_doubling::all_reduce(builder),
        Algorithm::Direct => direct::lay_out(builder),
        Algorithm::Pairwise => direct::pairwise(builder),
        Algorithm::Binomial => tree::lay_out(builder),
        Algorithm::RingPipeline { segments } => pipeline::broadcast(builder, segments.get()),
        Algorithm::Dissemination => barrier::flat(builder),
        Algorithm::TwoLevel => barrier::two_level(builder, request.servers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(collective: Collective, ranks: usize) -> Request<'static> {
        Request { collective, ranks, elements: 10, servers: &[] }
    }

    #[test]
    fn every_name_leads_back_to_its_algorithm() {
        for algorithm in Algorithm::all(NonZeroUsize::new(7).unwrap()) {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }
        for wrong in ["", "rings", "ring:3", "ring-pipeline", "ring-pipeline:0", "ring-pipeline:x"] {
            assert_eq!(wrong.parse::<Algorithm>(), Err(UnknownAlgorithm(wrong.to_owned())));
        }
    }

    #[test]
    fn every_collective_can_be_done() {
        for collective in Collective::all(0) {
            assert!(suitable(collective, NonZeroUsize::MIN).next().is_some(), "{collective}");
        }
    }

    #[test]
    fn a_refusal_names_valid_values() {
        let reason = |request: &Request<'_>, algorithm| build(request, algorithm).unwrap_err().to_string();
        let refused = reason(&request(Collective::AllToAll, 4), Algorithm::Ring);
        assert_eq!(refused, "ring cannot do all-to-all; hint: all-to-all is done by direct, pairwise");
        assert_eq!(
            reason(&request(Collective::AllReduce, 0), Algorithm::Ring),
            "0 ranks; hint: between 1 and 1024"
        );
        let rooted = request(Collective::Broadcast { root: 4 }, 4);
        assert_eq!(reason(&rooted, Algorithm::Binomial), "root 4 of 4 ranks; hint: between 0 and 3");
        let barrier = Request { servers: &[0, 0], ..request(Collective::Barrier, 3) };
        assert!(reason(&barrier, Algorithm::TwoLevel).contains("2 servers named for 3 ranks"));
        let huge = Request { elements: ELEMENTS_MAX + 1, ..request(Collective::AllReduce, 3) };
        assert_eq!(build(&huge, Algorithm::Ring), Err(Refused::Elements(ELEMENTS_MAX + 1)));
        let segments = NonZeroUsize::new(SEGMENTS_MAX + 1).unwrap();
        let fine = Algorithm::RingPipeline { segments };
        let broadcast = request(Collective::Broadcast { root: 0 }, 3);
        assert_eq!(build(&broadcast, fine), Err(Refused::Segments(segments)));
    }
}
