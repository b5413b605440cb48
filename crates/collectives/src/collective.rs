//! The collective operations: their results, the shapes of their inputs and outputs, and their bus factors.
//!
//! The algorithms that perform them are not part of this file.
//!
//! `elements` always counts the whole array of which each rank has a part (NCCL's "size"): for an all-gather of *n*
//! elements per rank it is *n* times the ranks. Parts are cut by [`partition`](crate::partition).

use core::fmt;

use crate::named::named;
use crate::partition::Parts;

/// A collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Collective {
    /// Every rank ends with the reduction of all inputs.
    AllReduce,
    /// Rank *r* ends with part *r* of the reduction of all inputs.
    ReduceScatter,
    /// Every rank ends with the parts of all ranks, in order of rank.
    AllGather,
    /// Every rank ends with the root's input.
    Broadcast {
        /// Rank whose input is sent.
        root: usize,
    },
    /// The root ends with the reduction of all inputs.
    Reduce {
        /// Rank that receives the result.
        root: usize,
    },
    /// Rank *r* ends with part *r* of each rank's input, in order of rank.
    AllToAll,
    /// The root ends with the parts of all ranks, in order of rank.
    Gather {
        /// Rank that receives the parts.
        root: usize,
    },
    /// Rank *r* ends with part *r* of the root's input.
    Scatter {
        /// Rank whose input is sent.
        root: usize,
    },
    /// No rank leaves before every rank has entered.
    Barrier,
    /// Rank *r* ends with the reduction of the inputs of ranks 0 to *r*.
    Scan,
    /// Rank *r* ends with the reduction of the inputs of ranks 0 to *r* - 1. Rank 0 gets nothing.
    ExclusiveScan,
}

named! {
    /// Collective operation without its root.
    pub enum CollectiveKind {
        /// Every rank ends with the reduction of all inputs.
        AllReduce = "all-reduce",
        /// Rank *r* ends with part *r* of the reduction of all inputs.
        ReduceScatter = "reduce-scatter",
        /// Every rank ends with the parts of all ranks.
        AllGather = "all-gather",
        /// Every rank ends with the root's input.
        Broadcast = "broadcast",
        /// The root ends with the reduction of all inputs.
        Reduce = "reduce",
        /// Rank *r* ends with part *r* of each rank's input.
        AllToAll = "all-to-all",
        /// The root ends with the parts of all ranks.
        Gather = "gather",
        /// Rank *r* ends with part *r* of the root's input.
        Scatter = "scatter",
        /// No rank leaves before every rank has entered.
        Barrier = "barrier",
        /// Rank *r* ends with the reduction of the inputs of ranks 0 to *r*.
        Scan = "scan",
        /// Rank *r* ends with the reduction of the inputs of ranks 0 to *r* - 1.
        ExclusiveScan = "exclusive-scan",
    }
}

impl CollectiveKind {
    /// Returns the collective of this kind with its root at `root`, if it has one.
    #[must_use]
    pub const fn at(self, root: usize) -> Collective {
        match self {
            Self::AllReduce => Collective::AllReduce,
            Self::ReduceScatter => Collective::ReduceScatter,
            Self::AllGather => Collective::AllGather,
            Self::Broadcast => Collective::Broadcast { root },
            Self::Reduce => Collective::Reduce { root },
            Self::AllToAll => Collective::AllToAll,
            Self::Gather => Collective::Gather { root },
            Self::Scatter => Collective::Scatter { root },
            Self::Barrier => Collective::Barrier,
            Self::Scan => Collective::Scan,
            Self::ExclusiveScan => Collective::ExclusiveScan,
        }
    }

    /// Returns true if the collective reduces values, so that it needs a reduction operation.
    #[must_use]
    pub const fn reduces(self) -> bool {
        matches!(
            self,
            Self::AllReduce | Self::ReduceScatter | Self::Reduce | Self::Scan | Self::ExclusiveScan
        )
    }

    /// Returns true if the collective has a root.
    #[must_use]
    pub const fn has_root(self) -> bool {
        matches!(self, Self::Broadcast | Self::Reduce | Self::Gather | Self::Scatter)
    }

    /// Returns true if the collective carries an array, so that a size and a type apply.
    #[must_use]
    pub const fn moves_data(self) -> bool {
        !matches!(self, Self::Barrier)
    }

    /// Returns the names of the collectives for which `is_true` holds, for hints: `broadcast, reduce, gather, scatter`.
    #[must_use]
    pub fn listed(is_true: impl Fn(Self) -> bool) -> String {
        let kinds = Self::ALL.into_iter().filter(|one| is_true(*one));
        kinds.map(Self::name).collect::<Vec<_>>().join(", ")
    }
}

impl Collective {
    /// Returns every collective; those with a root have it at `root`.
    #[must_use]
    pub fn all(root: usize) -> [Self; CollectiveKind::ALL.len()] {
        CollectiveKind::ALL.map(|kind| kind.at(root))
    }

    /// Returns the kind.
    #[must_use]
    pub const fn kind(self) -> CollectiveKind {
        match self {
            Self::AllReduce => CollectiveKind::AllReduce,
            Self::ReduceScatter => CollectiveKind::ReduceScatter,
            Self::AllGather => CollectiveKind::AllGather,
            Self::Broadcast { .. } => CollectiveKind::Broadcast,
            Self::Reduce { .. } => CollectiveKind::Reduce,
            Self::AllToAll => CollectiveKind::AllToAll,
            Self::Gather { .. } => CollectiveKind::Gather,
            Self::Scatter { .. } => CollectiveKind::Scatter,
            Self::Barrier => CollectiveKind::Barrier,
            Self::Scan => CollectiveKind::Scan,
            Self::ExclusiveScan => CollectiveKind::ExclusiveScan,
        }
    }

    /// Returns the lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.kind().name()
    }

    /// Returns the root, or `None` for a collective without one.
    #[must_use]
    pub const fn root(self) -> Option<usize> {
        match self {
            Self::Broadcast { root }
            | Self::Reduce { root }
            | Self::Gather { root }
            | Self::Scatter { root } => Some(root),
            _ => None,
        }
    }

    /// Returns true if the collective reduces values, so that it needs a reduction operation.
    #[must_use]
    pub const fn reduces(self) -> bool {
        self.kind().reduces()
    }

    /// Returns true if each rank has a part of the array, so that a request may list the lengths of the parts.
    #[must_use]
    pub const fn has_parts(self) -> bool {
        matches!(
            self,
            Self::AllGather
                | Self::ReduceScatter
                | Self::Gather { .. }
                | Self::Scatter { .. }
                | Self::AllToAll
        )
    }

    /// Returns the number of elements of a rank's input, for equal parts.
    #[must_use]
    pub fn input_elements(self, rank: usize, ranks: usize, elements: usize) -> usize {
        self.input_of(rank, &Parts::equal(ranks, elements))
    }

    /// Returns the number of elements of a rank's output, for equal parts.
    #[must_use]
    pub fn output_elements(self, rank: usize, ranks: usize, elements: usize) -> usize {
        self.output_of(rank, &Parts::equal(ranks, elements))
    }

    /// Returns the number of elements of a rank's input.
    #[must_use]
    pub fn input_of(self, rank: usize, parts: &Parts) -> usize {
        let elements = parts.elements();
        match self {
            Self::AllReduce
            | Self::ReduceScatter
            | Self::Reduce { .. }
            | Self::Scan
            | Self::ExclusiveScan => elements,
            Self::AllToAll => parts.sent_elements(rank),
            Self::AllGather | Self::Gather { .. } => parts.part(rank).len(),
            Self::Broadcast { root } | Self::Scatter { root } if root == rank => elements,
            Self::Broadcast { .. } | Self::Scatter { .. } | Self::Barrier => 0,
        }
    }

    /// Returns the number of elements of a rank's output.
    #[must_use]
    pub fn output_of(self, rank: usize, parts: &Parts) -> usize {
        let elements = parts.elements();
        match self {
            Self::AllReduce | Self::AllGather | Self::Broadcast { .. } | Self::Scan => elements,
            Self::ExclusiveScan if rank > 0 => elements,
            Self::ReduceScatter | Self::Scatter { .. } => parts.part(rank).len(),
            Self::AllToAll => parts.received_elements(rank),
            Self::Reduce { root } | Self::Gather { root } if root == rank => elements,
            Self::Reduce { .. } | Self::Gather { .. } | Self::Barrier | Self::ExclusiveScan => 0,
        }
    }

    /// Returns whether no rank can end before every rank has begun, for any algorithm and equal parts, because each rank's
    /// output depends on every rank's input. In that case two sets of buffers may alternate between runs without a barrier.
    #[must_use]
    pub const fn synchronizes(self, ranks: usize, elements: usize) -> bool {
        match self {
            Self::AllReduce => elements > 0 || ranks == 1,
            Self::AllGather | Self::ReduceScatter | Self::AllToAll => elements >= ranks,
            Self::Barrier => true,
            Self::Broadcast { .. }
            | Self::Reduce { .. }
            | Self::Gather { .. }
            | Self::Scatter { .. }
            | Self::Scan
            | Self::ExclusiveScan => ranks == 1,
        }
    }

    /// Returns the factor from the algorithm bandwidth (elements x size / time) to the bus bandwidth, which every link must have
    /// carried for any algorithm. Source: nccl-tests, `doc/PERFORMANCE.md`, which has no scans: those have the factor of a
    /// reduce, because the last rank's result depends on every array. Returns `None` for a barrier, which carries no data.
    #[must_use]
    pub fn bus_factor(self, ranks: usize) -> Option<f64> {
        let share = (ranks as f64 - 1.0) / ranks as f64;
        Some(match self {
            Self::AllReduce => 2.0 * share,
            Self::ReduceScatter
            | Self::AllGather
            | Self::AllToAll
            | Self::Gather { .. }
            | Self::Scatter { .. } => share,
            Self::Broadcast { .. } | Self::Reduce { .. } | Self::Scan | Self::ExclusiveScan => 1.0,
            Self::Barrier => return None,
        })
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())?;
        self.root().map_or(Ok(()), |root| write!(formatter, " at rank {root}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_and_output_elements_of_all_ranks_sum_to_the_expected_totals() {
        let (ranks, elements) = (5, 13);
        let sum = |of: &dyn Fn(usize) -> usize| (0..ranks).map(of).sum::<usize>();
        for collective in Collective::all(3) {
            let given = sum(&|rank| collective.input_elements(rank, ranks, elements));
            let got = sum(&|rank| collective.output_elements(rank, ranks, elements));
            let expected = match collective {
                Collective::AllReduce | Collective::AllToAll => (65, 65),
                Collective::ReduceScatter | Collective::Reduce { .. } => (65, 13),
                Collective::AllGather | Collective::Broadcast { .. } => (13, 65),
                Collective::Gather { .. } | Collective::Scatter { .. } => (13, 13),
                Collective::Barrier => (0, 0),
                Collective::Scan => (65, 65),
                Collective::ExclusiveScan => (65, 52),
            };
            assert_eq!((given, got), expected, "{collective}");
        }
    }

    #[test]
    fn published_bus_bandwidth_follows_from_the_algorithm_bandwidth() {
        // Gaudi 3, eight cards: 293.118 GB/s algorithm, 512.957 GB/s bus.
        let bus = 293.118 * Collective::AllReduce.bus_factor(8).unwrap();
        assert!((bus - 512.957).abs() < 0.001, "{bus}");
        assert_eq!(Collective::Barrier.bus_factor(8), None);
    }

    #[test]
    fn every_name_leads_back_to_its_collective() {
        for collective in Collective::all(2) {
            let kind = CollectiveKind::from_name(collective.name()).unwrap();
            assert_eq!((kind.at(2), kind.has_root()), (collective, collective.root().is_some()));
        }
        assert_eq!(CollectiveKind::from_name("allreduce"), None);
    }

    #[test]
    fn options_of_a_collective_follow_from_its_kind() {
        assert_eq!(
            CollectiveKind::listed(CollectiveKind::reduces),
            "all-reduce, reduce-scatter, reduce, scan, exclusive-scan"
        );
        assert_eq!(CollectiveKind::listed(CollectiveKind::has_root), "broadcast, reduce, gather, scatter");
        assert_eq!(CollectiveKind::listed(|one| !one.moves_data()), "barrier");
    }
}
