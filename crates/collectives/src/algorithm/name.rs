//! Algorithms by name, and the collectives that each can perform.

use core::fmt;
use core::num::NonZeroUsize;
use core::str::FromStr;

use thiserror::Error;

use crate::collective::Collective;
use crate::named::named;

/// Algorithm of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Each rank talks to the next one only. All-reduce (reduce-scatter, then all-gather), reduce-scatter, all-gather; scans, as
    /// a chain from rank 0 to the last.
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
    /// Every pair at once. Reduce-scatter, all-gather, all-to-all; reduce, gather, scatter, where the root is in every pair; scans, where each
    /// rank sends to all higher ranks.
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
    /// Ranks of one server first, then ranks of equal position in all servers. All-reduce, reduce-scatter, all-gather, broadcast.
    Hierarchical,
    /// Units in the switches of a star reduce and multicast. All-reduce, reduce-scatter, all-gather, broadcast, reduce. The schedule has a program for
    /// each unit behind those of the ranks.
    InSwitch {
        /// Number of switches, one per plane.
        switches: NonZeroUsize,
    },
}

named! {
    /// Algorithm of a collective without its parameters.
    pub enum AlgorithmKind {
        /// Each rank sends to the next one only.
        Ring = "ring",
        /// Two rings in opposite directions.
        BidirectionalRing = "bidirectional-ring",
        /// Every rank sends its whole input to every other rank, and each reduces alone.
        OneShot = "one-shot",
        /// Direct reduce-scatter, then direct all-gather.
        TwoShot = "two-shot",
        /// Recursive halving, then recursive doubling.
        HalvingDoubling = "halving-doubling",
        /// All pairs concurrently.
        Direct = "direct",
        /// One partner after the other.
        Pairwise = "pairwise",
        /// Binomial tree.
        Binomial = "binomial",
        /// Along the ring, in pipelined segments.
        RingPipeline = "ring-pipeline",
        /// Signals at distances that double.
        Dissemination = "dissemination",
        /// First the ranks of one server, then one leader per server.
        TwoLevel = "two-level",
        /// Inside each server, then between servers in parallel lanes.
        Hierarchical = "hierarchical",
        /// Switches of a star reduce and multicast.
        InSwitch = "in-switch",
    }
}

impl AlgorithmKind {
    /// Returns the algorithm. The pipeline has this many segments. Reduction in switches has one switch; [`Algorithm::over_switches`] sets
    /// their number.
    #[must_use]
    pub const fn with_segments(self, segments: NonZeroUsize) -> Algorithm {
        match self {
            Self::Ring => Algorithm::Ring,
            Self::BidirectionalRing => Algorithm::BidirectionalRing,
            Self::OneShot => Algorithm::OneShot,
            Self::TwoShot => Algorithm::TwoShot,
            Self::HalvingDoubling => Algorithm::HalvingDoubling,
            Self::Direct => Algorithm::Direct,
            Self::Pairwise => Algorithm::Pairwise,
            Self::Binomial => Algorithm::Binomial,
            Self::RingPipeline => Algorithm::RingPipeline { segments },
            Self::Dissemination => Algorithm::Dissemination,
            Self::TwoLevel => Algorithm::TwoLevel,
            Self::Hierarchical => Algorithm::Hierarchical,
            Self::InSwitch => Algorithm::InSwitch { switches: NonZeroUsize::MIN },
        }
    }
}

impl Algorithm {
    /// Returns every algorithm; the pipeline with this many segments.
    #[must_use]
    pub fn all(segments: NonZeroUsize) -> [Self; AlgorithmKind::ALL.len()] {
        AlgorithmKind::ALL.map(|kind| kind.with_segments(segments))
    }

    /// Returns the kind.
    #[must_use]
    pub const fn kind(self) -> AlgorithmKind {
        match self {
            Self::Ring => AlgorithmKind::Ring,
            Self::BidirectionalRing => AlgorithmKind::BidirectionalRing,
            Self::OneShot => AlgorithmKind::OneShot,
            Self::TwoShot => AlgorithmKind::TwoShot,
            Self::HalvingDoubling => AlgorithmKind::HalvingDoubling,
            Self::Direct => AlgorithmKind::Direct,
            Self::Pairwise => AlgorithmKind::Pairwise,
            Self::Binomial => AlgorithmKind::Binomial,
            Self::RingPipeline { .. } => AlgorithmKind::RingPipeline,
            Self::Dissemination => AlgorithmKind::Dissemination,
            Self::TwoLevel => AlgorithmKind::TwoLevel,
            Self::Hierarchical => AlgorithmKind::Hierarchical,
            Self::InSwitch { .. } => AlgorithmKind::InSwitch,
        }
    }

    /// Returns the algorithm for a star of this many switches.
    #[must_use]
    pub const fn over_switches(self, switches: NonZeroUsize) -> Self {
        match self {
            Self::InSwitch { .. } => Self::InSwitch { switches },
            other => other,
        }
    }

    /// Returns the number of switches that take part.
    #[must_use]
    pub const fn switches(self) -> usize {
        match self {
            Self::InSwitch { switches } => switches.get(),
            _ => 0,
        }
    }

    /// Returns the lower-case name, without parameters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.kind().name()
    }

    /// Returns true if this algorithm reduces the inputs in ascending order of rank, for any number of ranks. A reduction that does not commute
    /// needs that.
    #[must_use]
    pub const fn keeps_rank_order(self, collective: Collective) -> bool {
        match self {
            _ if !collective.kind().reduces() => true,
            Self::OneShot | Self::TwoShot | Self::Direct | Self::InSwitch { .. } => true,
            Self::Ring => matches!(collective, Collective::Scan | Collective::ExclusiveScan),
            _ => false,
        }
    }

    /// Returns true if this algorithm can perform the collective.
    #[must_use]
    pub const fn does(self, collective: Collective) -> bool {
        use Collective as C;
        match self {
            Self::Ring => matches!(
                collective,
                C::AllReduce | C::ReduceScatter | C::AllGather | C::Scan | C::ExclusiveScan
            ),
            Self::BidirectionalRing => {
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
                    | C::Scan
                    | C::ExclusiveScan
            ),
            Self::Pairwise => matches!(collective, C::AllToAll),
            Self::Binomial => matches!(collective, C::Broadcast { .. } | C::Reduce { .. }),
            Self::RingPipeline { .. } => matches!(collective, C::Broadcast { .. }),
            Self::Dissemination | Self::TwoLevel => matches!(collective, C::Barrier),
            Self::Hierarchical => {
                matches!(collective, C::AllReduce | C::ReduceScatter | C::AllGather | C::Broadcast { .. })
            }
            Self::InSwitch { .. } => matches!(
                collective,
                C::AllReduce | C::ReduceScatter | C::AllGather | C::Broadcast { .. } | C::Reduce { .. }
            ),
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
     pairwise, binomial, ring-pipeline:SEGMENTS, dissemination, two-level, hierarchical, in-switch"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_algorithm() {
        for algorithm in Algorithm::all(NonZeroUsize::new(7).unwrap()) {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }
        let three = NonZeroUsize::new(3).unwrap();
        assert_eq!(AlgorithmKind::InSwitch.with_segments(three).over_switches(three).switches(), 3);
        assert_eq!(Algorithm::Ring.over_switches(three), Algorithm::Ring);
        for wrong in ["", "rings", "ring:3", "ring-pipeline", "ring-pipeline:0", "ring-pipeline:x"] {
            assert_eq!(wrong.parse::<Algorithm>(), Err(UnknownAlgorithm(wrong.to_owned())));
        }
    }
}
