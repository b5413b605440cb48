//! Links that ranks use when all of them send at once, on tori, hypercubes and racks of leaves and spines.
//!
//! Such a move costs the latency of its longest path, and the time in which the busiest link carries all bytes that cross it. Paths are those of
//! the fabric: a torus and a hypercube correct one coordinate after the other, the first one first, each by the shorter direction; a message to
//! another leaf crosses one spine. A leaf is assumed to divide its traffic equally among its uplinks.
//!
//! The two directions of a ring of even size are equally long for its opposite rank. A pair of ranks uses one of them, and the choice of all pairs is
//! uneven. So the busiest link is taken as if all of such messages took the same direction, except those of a single root.

use crate::fabric::TopologyKind;

/// Paths of a shape.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Paths {
    /// Sizes of the dimensions of a torus, or of a hypercube, which has two ranks in each.
    Grid { sizes: Vec<usize>, ranks: usize },
    /// Leaves with this number of ranks and of links to spines.
    Leaves { ranks_per_leaf: usize, uplinks: f64, ranks: usize },
}

/// Links that a move uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Usage {
    /// Hops of the longest path.
    pub(crate) longest: f64,
    /// Mean hops of a path.
    pub(crate) mean: f64,
    /// Messages that cross the busiest link in one direction.
    pub(crate) busiest: f64,
}

impl Paths {
    /// Returns the paths of this topology, or `None` if a move there has a closed form.
    pub(crate) fn of(kind: TopologyKind, ranks: usize) -> Option<Self> {
        match kind {
            TopologyKind::Torus { sizes } => {
                let sizes = sizes.map(|size| size as usize).to_vec();
                // A group of some ranks is at some of the points only, and estimated like a star.
                (sizes.iter().product::<usize>() == ranks).then_some(Self::Grid { sizes, ranks })
            }
            TopologyKind::Hypercube => {
                let sizes = || vec![2; ranks.ilog2() as usize];
                ranks.is_power_of_two().then(|| Self::Grid { sizes: sizes(), ranks })
            }
            TopologyKind::LeafSpine { ranks_per_leaf, uplinks } => Some(Self::Leaves {
                ranks_per_leaf: ranks_per_leaf.max(1) as usize,
                uplinks: f64::from(uplinks.max(1)),
                ranks,
            }),
            TopologyKind::Ring | TopologyKind::Star | TopologyKind::Mesh | TopologyKind::Custom => None,
        }
    }

    /// Returns the links that these messages, given as sender and receiver, use at once.
    pub(crate) fn usage(&self, messages: impl IntoIterator<Item = (usize, usize)>) -> Usage {
        match self {
            Self::Grid { sizes, ranks } => {
                let mut loads = vec![0.0; 2 * sizes.len() * ranks];
                let hops = messages.into_iter().map(|message| walk(sizes, message, &[1.0], &mut loads));
                Usage::without_loads(hops).with(&loads)
            }
            Self::Leaves { ranks_per_leaf, uplinks, ranks } => {
                // Up and down links of ranks, then those of leaves.
                let mut loads = vec![0.0; 4 * ranks];
                let hops = messages.into_iter().map(|(from, to)| {
                    let leaves = [from / ranks_per_leaf, to / ranks_per_leaf];
                    loads[from] += 1.0;
                    loads[ranks + to] += 1.0;
                    if leaves[0] == leaves[1] {
                        return 1.0;
                    }
                    loads[2 * ranks + leaves[0]] += 1.0 / uplinks;
                    loads[3 * ranks + leaves[1]] += 1.0 / uplinks;
                    2.0
                });
                Usage::without_loads(hops).with(&loads)
            }
        }
    }

    /// Returns the links that are used if every rank sends a message to every other.
    pub(crate) fn all_pairs(&self) -> Usage {
        match self {
            Self::Grid { sizes, ranks } => {
                let used = sizes.iter().filter(|size| **size > 1);
                // Hops in a ring from one rank to all others, and those in the direction that has the opposite rank.
                let hops = |size: &usize| (size * size / 4) as f64;
                let next = |size: &usize| (size / 2 * (size / 2 + 1) / 2) as f64;
                let busiest = used.clone().map(|size| (ranks / size) as f64 * next(size));
                let mean: f64 = used.clone().map(|size| hops(size) * (ranks / size) as f64).sum();
                Usage {
                    longest: used.clone().map(|size| (size / 2) as f64).sum(),
                    mean: mean / (ranks - 1) as f64,
                    busiest: busiest.fold(0.0, f64::max),
                }
            }
            Self::Leaves { ranks_per_leaf, uplinks, ranks } => {
                let others = (ranks - ranks_per_leaf.min(ranks)) as f64;
                let peers = (ranks - 1) as f64;
                Usage {
                    longest: if others > 0.0 { 2.0 } else { 1.0 },
                    mean: 1.0 + others / peers,
                    busiest: peers.max(*ranks_per_leaf as f64 * others / uplinks),
                }
            }
        }
    }

    /// Returns the links that are used if the first rank sends a message to every other.
    pub(crate) fn root_to_all(&self) -> Usage {
        match self {
            Self::Grid { sizes, ranks } => {
                let mut loads = vec![0.0; 2 * sizes.len() * ranks];
                let hops = (1..*ranks).map(|to| walk(sizes, (0, to), &[0.5, 0.5], &mut loads));
                Usage::without_loads(hops).with(&loads)
            }
            Self::Leaves { ranks, .. } => self.usage((1..*ranks).map(|to| (0, to))),
        }
    }
}

impl Usage {
    /// Returns the usage of messages with these hops.
    fn without_loads(hops: impl Iterator<Item = f64>) -> Self {
        let (mut longest, mut sum, mut count) = (0.0_f64, 0.0, 0.0_f64);
        for hops in hops {
            longest = longest.max(hops);
            sum += hops;
            count += 1.0;
        }
        Self { longest, mean: sum / count.max(1.0), busiest: 0.0 }
    }

    fn with(self, loads: &[f64]) -> Self {
        Self { busiest: loads.iter().copied().fold(0.0, f64::max), ..self }
    }
}

/// Adds a message to the loads of the links that it crosses, and returns its hops. `ties` are its shares in the next direction, and in the
/// previous one if there are two, of a ring in which both are equally long.
///
/// `loads` has, for each rank and dimension, the link to the next rank and the link to the previous one.
fn walk(sizes: &[usize], (from, to): (usize, usize), ties: &[f64], loads: &mut [f64]) -> f64 {
    let (mut at, mut stride, mut hops) = (from, 1, 0);
    for (dimension, size) in sizes.iter().copied().enumerate() {
        let (here, target) = (at / stride % size, to / stride % size);
        let next = (target + size - here) % size;
        let previous = (size - next) % size;
        let corner = at - here * stride;
        let mut add = |steps: usize, is_next: bool, share: f64| {
            for step in 0..steps {
                let coordinate = if is_next { here + step } else { here + size - step } % size;
                let link = (corner + coordinate * stride) * sizes.len() + dimension;
                loads[2 * link + usize::from(!is_next)] += share;
            }
        };
        // Two ranks of a dimension share one link.
        if next == previous && size > 2 {
            ties.iter().zip([true, false]).for_each(|(share, is_next)| add(next, is_next, *share));
        } else if next <= previous {
            add(next, true, 1.0);
        } else {
            add(previous, false, 1.0);
        }
        hops += next.min(previous);
        at = corner + target * stride;
        stride *= size;
    }
    hops as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(ranks: usize) -> impl Iterator<Item = (usize, usize)> {
        let all = (0..ranks).flat_map(move |from| (0..ranks).map(move |to| (from, to)));
        all.filter(|(from, to)| from != to)
    }

    fn grid(sizes: &[usize]) -> Paths {
        Paths::Grid { sizes: sizes.to_vec(), ranks: sizes.iter().product() }
    }

    fn assert_close(found: Usage, expected: Usage, what: &str) {
        let values = |usage: Usage| [usage.longest, usage.mean, usage.busiest];
        let close = values(found).iter().zip(values(expected)).all(|(one, other)| (one - other).abs() < 1e-9);
        assert!(close, "{what}: {found:?}, not {expected:?}");
    }

    /// The closed forms of uniform traffic count the links that every message crosses, one by one.
    #[test]
    fn uniform_traffic_has_the_loads_of_all_its_paths() {
        for sizes in [&[4, 4][..], &[5, 3], &[4, 3, 2], &[2, 2, 2], &[6, 1, 1], &[2; 5]] {
            let paths = grid(sizes);
            let ranks = sizes.iter().product();
            assert_close(paths.all_pairs(), paths.usage(pairs(ranks)), &format!("{sizes:?}"));
        }
        for (ranks_per_leaf, uplinks) in [(4, 4.0), (4, 1.0), (2, 8.0)] {
            let paths = Paths::Leaves { ranks_per_leaf, uplinks, ranks: 16 };
            assert_close(paths.all_pairs(), paths.usage(pairs(16)), &format!("{ranks_per_leaf}, {uplinks}"));
        }
    }

    #[test]
    fn neighbours_of_a_torus_share_no_link() {
        let paths = grid(&[4, 4]);
        let next = paths.usage((0..16).map(|rank| (rank, (rank + 1) % 16)));
        // The last of each row of four crosses the row and the column.
        assert_eq!(next, Usage { longest: 2.0, mean: 1.25, busiest: 1.0 });
        // Two columns further: the busiest link carries two messages.
        assert_eq!(paths.usage((0..16).map(|rank| (rank, rank ^ 2))).busiest, 2.0);
        assert_eq!(paths.usage((0..16).map(|rank| (rank, rank ^ 1))).busiest, 1.0);
    }

    #[test]
    fn partners_of_a_hypercube_are_neighbours() {
        let paths = Paths::of(TopologyKind::Hypercube, 16).unwrap();
        for bit in 0..4 {
            let usage = paths.usage((0..16).map(|rank| (rank, rank ^ (1 << bit))));
            assert_eq!(usage, Usage { longest: 1.0, mean: 1.0, busiest: 1.0 });
        }
        assert_eq!(paths.root_to_all().longest, 4.0);
        // Half of the ranks differ in the bit that is corrected first.
        assert_eq!(paths.root_to_all().busiest, 8.0);
    }

    #[test]
    fn a_leaf_with_few_uplinks_is_the_bottleneck() {
        let shifted = |uplinks| {
            let paths = Paths::Leaves { ranks_per_leaf: 4, uplinks, ranks: 16 };
            paths.usage((0..16).map(|rank| (rank, (rank + 4) % 16))).busiest
        };
        assert_eq!((shifted(4.0), shifted(2.0), shifted(1.0)), (1.0, 2.0, 4.0));
    }
}
