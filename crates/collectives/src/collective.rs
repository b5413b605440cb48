//! The collective operations: their results, the shapes of their inputs and outputs, and their bus factors.
//!
//! The algorithms that perform them are not part of this file.
//!
//! `elements` always counts the whole array of which each rank has a part (NCCL's "size"): for an all-gather of *n*
//! elements per rank it is *n* times the ranks. Parts are cut by [`partition`](crate::partition).

use core::fmt;

use crate::partition::part;

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
}

impl Collective {
    /// Returns every collective; those with a root have it at `root`.
    #[must_use]
    pub const fn all(root: usize) -> [Self; 9] {
        [
            Self::AllReduce,
            Self::ReduceScatter,
            Self::AllGather,
            Self::Broadcast { root },
            Self::Reduce { root },
            Self::AllToAll,
            Self::Gather { root },
            Self::Scatter { root },
            Self::Barrier,
        ]
    }

    /// Returns the collective with this name, or `None` if no collective has it. `root` is ignored for collectives without a root.
    #[must_use]
    pub fn from_name(name: &str, root: usize) -> Option<Self> {
        Self::all(root).into_iter().find(|collective| collective.name() == name)
    }

    /// Returns the lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all-reduce",
            Self::ReduceScatter => "reduce-scatter",
            Self::AllGather => "all-gather",
            Self::Broadcast { .. } => "broadcast",
            Self::Reduce { .. } => "reduce",
            Self::AllToAll => "all-to-all",
            Self::Gather { .. } => "gather",
            Self::Scatter { .. } => "scatter",
            Self::Barrier => "barrier",
        }
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

    /// Returns whether the collective reduces values, so that it needs a reduction operation.
    #[must_use]
    pub const fn reduces(self) -> bool {
        matches!(self, Self::AllReduce | Self::ReduceScatter | Self::Reduce { .. })
    }

    /// Returns the number of elements of a rank's input.
    #[must_use]
    pub fn input_elements(self, rank: usize, ranks: usize, elements: usize) -> usize {
        match self {
            Self::AllReduce | Self::ReduceScatter | Self::Reduce { .. } | Self::AllToAll => elements,
            Self::AllGather | Self::Gather { .. } => part(elements, ranks, rank).len(),
            Self::Broadcast { root } | Self::Scatter { root } if root == rank => elements,
            Self::Broadcast { .. } | Self::Scatter { .. } | Self::Barrier => 0,
        }
    }

    /// Returns the number of elements of a rank's output.
    #[must_use]
    pub fn output_elements(self, rank: usize, ranks: usize, elements: usize) -> usize {
        match self {
            Self::AllReduce | Self::AllGather | Self::Broadcast { .. } => elements,
            Self::ReduceScatter | Self::Scatter { .. } => part(elements, ranks, rank).len(),
            Self::AllToAll => ranks * part(elements, ranks, rank).len(),
            Self::Reduce { root } | Self::Gather { root } if root == rank => elements,
            Self::Reduce { .. } | Self::Gather { .. } | Self::Barrier => 0,
        }
    }

    /// Returns whether no rank can end before every rank has begun, for any algorithm, because each rank's output depends on
    /// every rank's input. In that case two sets of buffers may alternate between runs without a barrier.
    #[must_use]
    pub const fn synchronizes(self, ranks: usize, elements: usize) -> bool {
        match self {
            Self::AllReduce => elements > 0 || ranks == 1,
            Self::AllGather | Self::ReduceScatter | Self::AllToAll => elements >= ranks,
            Self::Barrier => true,
            Self::Broadcast { .. } | Self::Reduce { .. } | Self::Gather { .. } | Self::Scatter { .. } => {
                ranks == 1
            }
        }
    }

    /// Returns the factor from the algorithm bandwidth (elements x size / time) to the bus bandwidth, which every link must have
    /// carried for any algorithm. Source: nccl-tests, `doc/PERFORMANCE.md`. Returns `None` for a barrier, which carries no data.
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
            Self::Broadcast { .. } | Self::Reduce { .. } => 1.0,
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
    fn every_name_parses_to_its_collective() {
        for collective in Collective::all(2) {
            assert_eq!(Collective::from_name(collective.name(), 2), Some(collective));
        }
        assert_eq!(Collective::from_name("allreduce", 0), None);
    }
}
