//! Links that ranks use when all of them send at once, on tori, hypercubes, racks of leaves and spines, and stars whose planes are not used equally.
//!
//! Such a move costs the latency of its longest path, and the time in which the busiest link carries all bytes that cross it. Paths are those of
//! the fabric: a torus and a hypercube correct one coordinate after the other, the first one first, each by the shorter direction; a message to
//! another leaf crosses one spine.
//!
//! The sender chooses the plane of a message, and the leaf its spine ([`Spread`]). Packets use all of them equally, and receivers take
//! them by their numbers. The hash of the fabric is not the one of this file, so the busiest link of messages by pairs is the mean of
//! several draws: near the truth where many messages share the links, and a guess where few do.
//!
//! The two directions of a ring of even size are equally long for its opposite rank. A pair of ranks uses one of them, and the choice of all pairs is
//! uneven. So the busiest link is taken as if all of such messages took the same direction, except those of a single root.

use crate::fabric::{Fabric, Spread, Spreading, TopologyKind};

/// Draws of a hash for few ranks. Among many ranks one draw is near the mean of all.
const DRAWS_MAX: usize = 8;
/// Ranks over all draws.
const DRAWN_RANKS: usize = 512;

/// Paths of a shape.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Paths {
    /// Sizes of the dimensions of a torus, or of a hypercube, which has two ranks in each.
    Grid { sizes: Vec<usize>, ranks: usize },
    /// Leaves, with spines or alone.
    Leaves(Leaves),
}

/// Leaves of all planes. A star is one leaf per plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Leaves {
    pub(crate) ranks: usize,
    pub(crate) ranks_per_leaf: usize,
    /// Links of a leaf to spines.
    pub(crate) uplinks: usize,
    pub(crate) planes: usize,
    pub(crate) spread: Spread,
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
    /// Returns the paths of this fabric, or `None` if a move there has a closed form.
    pub(crate) fn of(fabric: &Fabric, ranks: usize) -> Option<Self> {
        let leaves = |ranks_per_leaf: u32, uplinks: u32| {
            Self::Leaves(Leaves {
                ranks,
                ranks_per_leaf: ranks_per_leaf.max(1) as usize,
                uplinks: uplinks.max(1) as usize,
                planes: fabric.planes.max(1) as usize,
                spread: fabric.spread,
            })
        };
        match fabric.kind {
            TopologyKind::Torus { sizes } => {
                let sizes = sizes.map(|size| size as usize).to_vec();
                // A group of some ranks is at some of the points only, and estimated like a star.
                (sizes.iter().product::<usize>() == ranks).then_some(Self::Grid { sizes, ranks })
            }
            TopologyKind::Hypercube => {
                let sizes = || vec![2; ranks.ilog2() as usize];
                ranks.is_power_of_two().then(|| Self::Grid { sizes: sizes(), ranks })
            }
            TopologyKind::LeafSpine { ranks_per_leaf, uplinks } => Some(leaves(ranks_per_leaf, uplinks)),
            TopologyKind::Star if fabric.planes > 1 && fabric.spread.planes != Spreading::ByPacket => {
                Some(leaves(u32::try_from(ranks).unwrap_or(u32::MAX), 1))
            }
            TopologyKind::Ring | TopologyKind::Star | TopologyKind::Mesh | TopologyKind::Custom => None,
        }
    }

    /// Returns the links that these messages, given as sender and receiver, use at once.
    pub(crate) fn usage(&self, messages: impl IntoIterator<Item = (usize, usize), IntoIter: Clone>) -> Usage {
        match self {
            Self::Grid { sizes, ranks } => {
                let mut loads = vec![0.0; 2 * sizes.len() * ranks];
                let hops = messages.into_iter().map(|message| walk(sizes, message, &[1.0], &mut loads));
                Usage::without_loads(hops).with(&loads)
            }
            Self::Leaves(leaves) => leaves.usage(messages.into_iter()),
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
            Self::Leaves(leaves) => leaves.all_pairs(),
        }
    }

    /// Returns the links that are used if the first rank sends a message to every other, or receives one from each.
    pub(crate) fn with_root(&self, receives: bool) -> Usage {
        match self {
            Self::Grid { sizes, ranks } => {
                let mut loads = vec![0.0; 2 * sizes.len() * ranks];
                let hops = (1..*ranks).map(|to| walk(sizes, (0, to), &[0.5, 0.5], &mut loads));
                Usage::without_loads(hops).with(&loads)
            }
            Self::Leaves(leaves) => {
                let message = |other| if receives { (other, 0) } else { (0, other) };
                leaves.usage((1..leaves.ranks).map(message))
            }
        }
    }
}

impl Leaves {
    fn hops(&self, (from, to): (usize, usize)) -> f64 {
        if from / self.ranks_per_leaf == to / self.ranks_per_leaf { 1.0 } else { 2.0 }
    }

    fn usage(&self, messages: impl Iterator<Item = (usize, usize)> + Clone) -> Usage {
        let usage = Usage::without_loads(messages.clone().map(|message| self.hops(message)));
        let draws = self.draws();
        let busiest: f64 = (0..draws).map(|draw| self.busiest(messages.clone(), draw)).sum();
        Usage { busiest: busiest / draws as f64, ..usage }
    }

    fn all_pairs(&self) -> Usage {
        let Self { ranks, ranks_per_leaf, .. } = *self;
        if self.spread != Spread::EQUAL {
            let all = (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to)));
            return self.usage(all.filter(|(from, to)| from != to));
        }
        let others = (ranks - ranks_per_leaf.min(ranks)) as f64;
        let peers = (ranks - 1) as f64;
        let up = ranks_per_leaf as f64 * others / self.uplinks as f64;
        Usage {
            longest: if others > 0.0 { 2.0 } else { 1.0 },
            mean: 1.0 + others / peers,
            busiest: peers.max(up) / self.planes as f64,
        }
    }

    /// Returns the number of draws of a hash; 1 if nothing is drawn.
    fn draws(&self) -> usize {
        let Spread { planes, spines } = self.spread;
        let is_drawn = planes == Spreading::ByPair && self.planes > 1
            || spines == Spreading::ByPair && self.uplinks > 1 && self.ranks > self.ranks_per_leaf;
        if is_drawn { (DRAWN_RANKS / self.ranks.max(1)).clamp(1, DRAWS_MAX) } else { 1 }
    }

    /// Returns the messages on the busiest link, in one draw of the hash.
    fn busiest(&self, messages: impl Iterator<Item = (usize, usize)>, draw: usize) -> f64 {
        let Self { ranks, ranks_per_leaf, uplinks, planes, spread } = *self;
        let leaves = ranks.div_ceil(ranks_per_leaf);
        // In each plane the links up from ranks and down to them, then those up from leaves and down to them.
        let (up, down) = (2 * ranks, 2 * ranks + leaves * uplinks);
        let of_plane = 2 * ranks + 2 * leaves * uplinks;
        let mut loads = vec![0.0_f64; planes * of_plane];
        let mut busiest = 0.0_f64;
        for (from, to) in messages {
            let leaf_of = |rank: usize| rank / ranks_per_leaf;
            let is_local = leaf_of(from) == leaf_of(to);
            let used = choices(spread.planes, planes, to, || hash(from, to, 0, draw));
            let share = 1.0 / used.len() as f64;
            for plane in used {
                let mut add = |link: usize, share: f64| {
                    let load = &mut loads[plane * of_plane + link];
                    *load += share;
                    busiest = busiest.max(*load);
                };
                add(from, share);
                add(ranks + to, share);
                if is_local {
                    continue;
                }
                // All receivers behind a plane have numbers that are as far apart as there are planes.
                let spines = choices(spread.spines, uplinks, to / planes, || hash(from, to, plane + 1, draw));
                let share = share / spines.len() as f64;
                for spine in spines {
                    add(up + leaf_of(from) * uplinks + spine, share);
                    add(down + leaf_of(to) * uplinks + spine, share);
                }
            }
        }
        busiest
    }
}

/// Returns the paths, of this many, that a message uses.
fn choices(
    spreading: Spreading,
    count: usize,
    receiver: usize,
    hash: impl FnOnce() -> usize,
) -> core::ops::Range<usize> {
    let one = |path: usize| path % count..path % count + 1;
    match spreading {
        Spreading::ByPacket => 0..count,
        Spreading::ByReceiver => one(receiver),
        Spreading::ByPair if count == 1 => 0..1,
        Spreading::ByPair => one(hash()),
    }
}

/// Returns a number that looks random, for a pair of ranks at a place where a path is chosen.
fn hash(from: usize, to: usize, place: usize, draw: usize) -> usize {
    let mut word = [from, to, place, draw].iter().fold(0x51_7c_c1_b7_27_22_0a_95_u64, |word, part| {
        (word ^ *part as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    });
    word ^= word >> 32;
    (word.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 33) as usize
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

    fn pairs(ranks: usize) -> impl Iterator<Item = (usize, usize)> + Clone {
        let all = (0..ranks).flat_map(move |from| (0..ranks).map(move |to| (from, to)));
        all.filter(|(from, to)| from != to)
    }

    fn leaves(ranks_per_leaf: usize, uplinks: usize, planes: usize, spread: Spread) -> Paths {
        Paths::Leaves(Leaves { ranks: 16, ranks_per_leaf, uplinks, planes, spread })
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
        for (ranks_per_leaf, uplinks, planes) in [(4, 4, 1), (4, 1, 3), (2, 8, 2)] {
            let paths = leaves(ranks_per_leaf, uplinks, planes, Spread::EQUAL);
            let what = format!("{ranks_per_leaf}, {uplinks}, {planes}");
            assert_close(paths.all_pairs(), paths.usage(pairs(16)), &what);
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
        let paths = grid(&[2; 4]);
        for bit in 0..4 {
            let usage = paths.usage((0..16).map(|rank| (rank, rank ^ (1 << bit))));
            assert_eq!(usage, Usage { longest: 1.0, mean: 1.0, busiest: 1.0 });
        }
        assert_eq!(paths.with_root(false).longest, 4.0);
        // Half of the ranks differ in the bit that is corrected first.
        assert_eq!(paths.with_root(false).busiest, 8.0);
    }

    #[test]
    fn a_leaf_with_few_uplinks_is_the_bottleneck() {
        let shifted = |uplinks| {
            let paths = leaves(4, uplinks, 1, Spread::EQUAL);
            paths.usage((0..16).map(|rank| (rank, (rank + 4) % 16))).busiest
        };
        assert_eq!((shifted(4), shifted(2), shifted(1)), (1.0, 2.0, 4.0));
    }

    const fn spread(planes: Spreading, spines: Spreading) -> Spread {
        Spread { planes, spines }
    }

    #[test]
    fn a_receiver_has_one_plane_and_its_sender_uses_all() {
        let star = leaves(16, 1, 4, spread(Spreading::ByReceiver, Spreading::ByReceiver));
        assert_eq!(star.all_pairs().busiest, 15.0);
        assert_eq!(star.with_root(true).busiest, 15.0);
        // Three or four of 15 receivers in each plane.
        assert_eq!(star.with_root(false).busiest, 4.0);
        // Of four ranks of a leaf in one plane, each sends to twelve receivers in other leaves, a quarter of them behind each spine.
        let spines = leaves(4, 4, 1, spread(Spreading::ByReceiver, Spreading::ByReceiver));
        assert_eq!(spines.all_pairs().busiest, 15.0);
        assert_eq!(spines.usage((0..16).map(|rank| (rank, (rank + 4) % 16))).busiest, 1.0);
    }

    #[test]
    fn a_pair_has_one_plane_and_many_pairs_use_all_of_them_unevenly() {
        let star = leaves(16, 1, 4, spread(Spreading::ByPair, Spreading::ByPair));
        assert_eq!(star.usage((0..16).map(|rank| (rank, (rank + 1) % 16))).busiest, 1.0);
        let all = star.all_pairs().busiest;
        assert!((6.0..11.0).contains(&all), "{all} of 15 messages over four planes");
        let packets = leaves(16, 1, 4, spread(Spreading::ByPacket, Spreading::ByPair));
        assert_eq!(packets.all_pairs().busiest, 15.0 / 4.0);
        let spines = leaves(4, 4, 1, spread(Spreading::ByPair, Spreading::ByPair)).all_pairs().busiest;
        assert!((15.0..24.0).contains(&spines), "{spines}, of 12 in the mean");
    }

    #[test]
    fn the_hash_uses_all_paths_equally() {
        for count in [2, 3, 4, 7] {
            let mut used = vec![0_usize; count];
            for (from, to) in pairs(64) {
                used[hash(from, to, 0, 1) % count] += 1;
            }
            let mean = 64 * 63 / count;
            assert!(used.iter().all(|paths| paths.abs_diff(mean) < mean / 8), "{used:?}");
        }
    }
}
