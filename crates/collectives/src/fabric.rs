//! Properties of a fabric on which estimates depend: the kind of its topology, the use of its paths, and a few measured times.

use core::num::NonZeroUsize;

/// Kind of a rack's topology, as far as estimates distinguish racks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TopologyKind {
    /// Each rank linked to the next; a rank has two links.
    Ring,
    /// Each rank linked to one switch per plane.
    Star,
    /// Each rank linked to each other.
    Mesh,
    /// Each rank linked to the next and the previous one of each dimension; the first coordinate grows fastest with the rank.
    Torus {
        /// Ranks of each dimension; 1 for dimensions that the torus does not have.
        sizes: [u32; 3],
    },
    /// Two ranks linked if their numbers differ in one bit.
    Hypercube,
    /// Each rank linked to a leaf switch per plane, each leaf to spine switches. Ranks are numbered leaf by leaf.
    LeafSpine {
        /// Ranks of each leaf.
        ranks_per_leaf: u32,
        /// Links of a leaf to spines, in one plane.
        uplinks: u32,
    },
    /// Anything else; estimated like a star of one plane.
    Custom,
}

/// Returns the kind of a rack, and the planes of a star or of leaves and spines; `Custom` if it is no shape that estimates distinguish. Derived
/// from the links, not from a name: `links` are pairs of members, of which the first `ranks` are ranks and the next `switches` are switches.
#[must_use]
pub fn kind_of(ranks: usize, switches: usize, links: &[(usize, usize)]) -> (TopologyKind, u32) {
    let links = Links::new(links);
    let is_star = || {
        let each = |rank| (ranks..ranks + switches).all(|switch| links.has(rank, switch));
        switches > 0 && (0..ranks).all(each)
    };
    let is_ring = || links.count == ranks && (0..ranks).all(|rank| links.has(rank, (rank + 1) % ranks));
    let is_mesh = || (0..ranks).all(|left| (0..left).all(|right| links.has(left, right)));
    let is_hypercube = || ranks.is_power_of_two() && links.are_grid(&vec![2; ranks.ilog2() as usize]);
    match switches {
        0 if ranks > 2 && is_ring() => (TopologyKind::Ring, 1),
        0 if is_mesh() => (TopologyKind::Mesh, 1),
        0 if is_hypercube() => (TopologyKind::Hypercube, 1),
        0 => (torus(ranks, &links).unwrap_or(TopologyKind::Custom), 1),
        _ if is_star() => (TopologyKind::Star, switches as u32),
        _ => leaf_spine(ranks, switches, &links).unwrap_or((TopologyKind::Custom, 1)),
    }
}

/// Links of a rack, to be searched.
struct Links {
    /// Pairs of members with a link, the smaller number first, ascending.
    pairs: Vec<(usize, usize)>,
    /// Number of links; two members may have several.
    count: usize,
}

impl Links {
    fn new(links: &[(usize, usize)]) -> Self {
        let mut pairs: Vec<_> = links.iter().map(|(a, b)| (*a.min(b), *a.max(b))).collect();
        pairs.sort_unstable();
        pairs.dedup();
        Self { pairs, count: links.len() }
    }

    fn has(&self, a: usize, b: usize) -> bool {
        self.pairs.binary_search(&(a.min(b), a.max(b))).is_ok()
    }

    /// Returns true if the links are those of a grid with these sizes whose rows are rings, and no others.
    fn are_grid(&self, sizes: &[usize]) -> bool {
        let ranks: usize = sizes.iter().product();
        // Two ranks of a dimension share one link.
        let per_rank: usize = sizes.iter().map(|size| if *size > 2 { 2 } else { size - 1 }).sum();
        if self.count != ranks * per_rank / 2 || self.pairs.len() != self.count {
            return false;
        }
        let mut stride = 1;
        sizes.iter().all(|size| {
            let own = stride;
            stride *= size;
            let next = |rank: usize| {
                let at = rank / own % size;
                rank - at * own + (at + 1) % size * own
            };
            *size == 1 || (0..ranks).all(|rank| self.has(rank, next(rank)))
        })
    }
}

/// Returns the torus that these links are, if they are one: two dimensions, or three.
fn torus(ranks: usize, links: &Links) -> Option<TopologyKind> {
    let divisors = |count: usize| (2..=count).filter(move |size| count.is_multiple_of(*size));
    let sizes = divisors(ranks).flat_map(|x| divisors(ranks / x).map(move |y| [x, y, ranks / x / y]));
    let sizes = sizes.into_iter().find(|sizes| links.are_grid(sizes))?;
    Some(TopologyKind::Torus { sizes: sizes.map(|size| size as u32) })
}

/// Returns leaves and spines with their planes, if the links are such: every rank linked to a leaf of each plane, leaves with equal numbers of
/// consecutive ranks and of links to spines, and each spine linked to every leaf of a plane.
fn leaf_spine(ranks: usize, switches: usize, links: &Links) -> Option<(TopologyKind, u32)> {
    let members = ranks + switches;
    let mut neighbours = vec![Vec::new(); members];
    for (a, b) in &links.pairs {
        neighbours[*a].push(*b);
        neighbours[*b].push(*a);
    }
    let is_leaf = |switch: usize| neighbours[switch].first().is_some_and(|first| *first < ranks);
    let ranks_of = |leaf: usize| neighbours[leaf].iter().filter(|member| **member < ranks).count();
    let planes = neighbours.first()?.len();
    let ranks_per_leaf = ranks_of(*neighbours.first()?.first()?);
    let (leaves, spines): (Vec<usize>, Vec<usize>) = (ranks..members).partition(|switch| is_leaf(*switch));
    let leaves_per_plane = ranks.checked_div(ranks_per_leaf)?;
    // A leaf has links to ranks once and to spines in equal numbers; `count` has parallel ones as well.
    let up = links.count.checked_sub(ranks * planes)?;
    let uplinks =
        up.checked_div(leaves.len()).filter(|uplinks| *uplinks > 0 && uplinks * leaves.len() == up)?;
    let of_ranks = (0..ranks).all(|rank| {
        let first = rank / ranks_per_leaf * ranks_per_leaf;
        neighbours[rank].len() == planes
            && neighbours[rank].iter().all(|leaf| *leaf >= ranks && neighbours[*leaf].first() == Some(&first))
    });
    let of_leaves = leaves.iter().all(|leaf| {
        let up = &neighbours[*leaf][ranks_of(*leaf)..];
        ranks_of(*leaf) == ranks_per_leaf && !up.is_empty() && up.iter().all(|spine| !is_leaf(*spine))
    });
    let of_spines = spines.iter().all(|spine| {
        let below = &neighbours[*spine];
        below.len() == leaves_per_plane && below.iter().all(|leaf| *leaf >= ranks && is_leaf(*leaf))
    });
    let is_whole = of_ranks && of_leaves && of_spines && leaves.len() == leaves_per_plane * planes;
    let kind = TopologyKind::LeafSpine { ranks_per_leaf: ranks_per_leaf as u32, uplinks: uplinks as u32 };
    (is_whole && leaves_per_plane > 1).then_some((kind, planes as u32))
}

/// Choice of a path among several of equal length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Spreading {
    /// One path per pair of ranks, by a hash.
    #[default]
    ByPair,
    /// One path per receiver: consecutive receivers take the paths one after the other.
    ByReceiver,
    /// A path for each packet: a message uses all paths equally.
    ByPacket,
}

/// Use of the planes of a rack and of its spines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spread {
    /// Choice of the plane by the sender.
    pub planes: Spreading,
    /// Choice of the spine by a leaf.
    pub spines: Spreading,
}

impl Spread {
    /// Every packet has a path of its own, in all switches.
    pub const EQUAL: Self = Self { planes: Spreading::ByPacket, spines: Spreading::ByPacket };
}

/// Limit of the transfers that a rank has in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransferLimit {
    /// Largest number of transfers in flight.
    pub in_flight: NonZeroUsize,
    /// Time that a transfer is in flight beside its begin, its path and its bytes: the path of its acknowledgement.
    pub end_ns: f64,
}

/// Properties of the fabric for estimates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fabric {
    /// Kind of the topology.
    pub kind: TopologyKind,
    /// Planes of a star, or of leaves and spines. `spread` decides how many of them a rank's traffic uses.
    pub planes: u32,
    /// Use of planes and spines.
    pub spread: Spread,
    /// Time from a put to its signal at a neighbour, without data: "alpha". Ranks of one leaf are neighbours, and a path to another leaf takes two
    /// such times.
    pub alpha_ns: f64,
    /// Time per byte of one link: "beta", one over the rate.
    pub link_ns_per_byte: f64,
    /// Time from a put to its signal at a rank of the same server, without data. Ranks of one server exchange data through
    /// shared memory and not through links.
    pub local_alpha_ns: f64,
    /// Time per byte of the shared memory of one server. All ranks of the server share it.
    pub local_ns_per_byte: f64,
    /// Time that a rank takes to reduce one byte of an operand into its values: "gamma". Zero if computing costs
    /// nothing, as in virtual time without a model of the device.
    pub reduce_ns_per_byte: f64,
    /// Time per byte that a rank reads or writes in its own memory to reduce and to copy. The longer one of this time and that of
    /// `reduce_ns_per_byte` counts. Zero if a measured `reduce_ns_per_byte` contains it.
    pub memory_ns_per_byte: f64,
    /// Time from the request of a transfer to its begin, if `alpha_ns` does not contain it. It counts once for all hops.
    pub begin_ns: f64,
    /// Limit of a rank's transfers in flight; `None` without one.
    pub transfer_limit: Option<TransferLimit>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Links of a grid whose rows are rings, in the numbers of a torus, by coordinates.
    fn grid([x, y, z]: [usize; 3]) -> Vec<(usize, usize)> {
        let number = |a: usize, b: usize, c: usize| (c % z * y + b % y) * x + a % x;
        let mut links = Vec::new();
        for c in 0..z {
            for b in 0..y {
                for a in 0..x {
                    let nexts = [number(a + 1, b, c), number(a, b + 1, c), number(a, b, c + 1)];
                    let own = number(a, b, c);
                    links.extend(
                        nexts
                            .into_iter()
                            .filter(|next| *next != own)
                            .map(|next| (own.min(next), own.max(next))),
                    );
                }
            }
        }
        links.sort_unstable();
        links.dedup();
        links
    }

    #[test]
    fn a_torus_is_known_by_its_sizes_in_the_order_of_its_numbers() {
        for sizes in [[3, 2, 1], [2, 3, 1], [4, 4, 1], [5, 3, 1], [4, 2, 2], [2, 2, 4], [3, 3, 3], [8, 4, 2]]
        {
            let expected = TopologyKind::Torus { sizes: sizes.map(|size| size as u32) };
            let ranks = sizes.iter().product();
            assert_eq!(kind_of(ranks, 0, &grid(sizes)), (expected, 1));
            // Without a link, or with one more, or with two ranks exchanged, it is none.
            let links = grid(sizes);
            assert_eq!(kind_of(ranks, 0, &links[1..]).0, TopologyKind::Custom, "{sizes:?}");
            assert_eq!(
                kind_of(ranks, 0, &[&links[..], &links[..1]].concat()).0,
                TopologyKind::Custom,
                "{sizes:?}"
            );
        }
        let renamed = |rank: usize| if rank < 2 { 1 - rank } else { rank };
        let links: Vec<_> = grid([5, 3, 1]).into_iter().map(|(a, b)| (renamed(a), renamed(b))).collect();
        assert_eq!(kind_of(15, 0, &links).0, TopologyKind::Custom);
    }

    #[test]
    fn a_hypercube_is_known_and_small_ones_are_no_others() {
        for dimensions in [3, 4, 6] {
            let ranks = 1_usize << dimensions;
            let bits = |rank: usize| (0..dimensions).map(move |bit| (rank, rank ^ (1 << bit)));
            let links: Vec<_> = (0..ranks).flat_map(bits).filter(|(a, b)| a < b).collect();
            assert_eq!(kind_of(ranks, 0, &links), (TopologyKind::Hypercube, 1));
            assert_eq!(kind_of(ranks, 0, &links[1..]).0, TopologyKind::Custom);
        }
        assert_eq!(kind_of(2, 0, &[(0, 1)]).0, TopologyKind::Mesh);
    }

    /// Links of leaves and spines, plane by plane.
    fn leaves_and_spines(
        leaves: usize,
        each: usize,
        spines: usize,
        parallel: usize,
        planes: usize,
    ) -> Vec<(usize, usize)> {
        let ranks = leaves * each;
        let mut links = Vec::new();
        for plane in 0..planes {
            let first = ranks + plane * (leaves + spines);
            links.extend((0..ranks).map(|rank| (rank, first + rank / each)));
            let pairs = (0..leaves).flat_map(|leaf| (0..spines).map(move |spine| (leaf, spine)));
            links.extend(
                pairs.flat_map(|(leaf, spine)| vec![(first + leaf, first + leaves + spine); parallel]),
            );
        }
        links
    }

    #[test]
    fn leaves_and_spines_are_known_with_their_planes_and_uplinks() {
        for (leaves, each, spines, parallel, planes) in
            [(4, 4, 2, 1, 1), (2, 4, 1, 1, 1), (2, 3, 2, 2, 1), (4, 2, 2, 1, 3)]
        {
            let links = leaves_and_spines(leaves, each, spines, parallel, planes);
            let (ranks, switches) = (leaves * each, planes * (leaves + spines));
            let uplinks = (spines * parallel) as u32;
            let kind = TopologyKind::LeafSpine { ranks_per_leaf: each as u32, uplinks };
            assert_eq!(kind_of(ranks, switches, &links), (kind, planes as u32));
            // Without one link of a rank, or of a leaf, it is none.
            for missing in [0, links.len() - 1] {
                let mut fewer = links.clone();
                fewer.remove(missing);
                assert_eq!(
                    kind_of(ranks, switches, &fewer).0,
                    TopologyKind::Custom,
                    "{missing} of {links:?}"
                );
            }
        }
        // Two leaves with links to each other have no spine, and a rank without a link is no part of a leaf.
        let mut trunks: Vec<_> = (0..8).map(|rank| (rank, 8 + rank / 4)).collect();
        trunks.extend([(8, 9); 4]);
        assert_eq!(kind_of(8, 2, &trunks).0, TopologyKind::Custom);
        assert_eq!(kind_of(3, 2, &[(1, 3), (2, 3), (3, 4)]).0, TopologyKind::Custom);
        assert_eq!(kind_of(0, 0, &[]).1, 1);
    }
}
