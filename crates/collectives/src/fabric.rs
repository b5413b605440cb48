//! Properties of a fabric on which estimates depend: the kind of its topology, and a few measured times.

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

/// Returns the kind of a rack, and the planes of a star: a ring, a star, a mesh, or `Custom` for all others. Derived from the links, not from a name: `links` are pairs of
/// members, of which the first `ranks` are ranks and the next `switches` are switches.
#[must_use]
pub fn kind_of(ranks: usize, switches: usize, links: &[(usize, usize)]) -> (TopologyKind, u32) {
    let has_link =
        |left: usize, right: usize| links.contains(&(left, right)) || links.contains(&(right, left));
    let is_star =
        switches > 0 && (0..ranks).all(|rank| (ranks..ranks + switches).all(|switch| has_link(rank, switch)));
    let is_ring = links.len() == ranks && (0..ranks).all(|rank| has_link(rank, (rank + 1) % ranks));
    let is_mesh = || (0..ranks).all(|left| (0..left).all(|right| has_link(left, right)));
    match switches {
        0 if ranks > 2 && is_ring => (TopologyKind::Ring, 1),
        0 if is_mesh() => (TopologyKind::Mesh, 1),
        _ if is_star => (TopologyKind::Star, switches as u32),
        _ => (TopologyKind::Custom, 1),
    }
}

/// Properties of the fabric for estimates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fabric {
    /// Kind of the topology.
    pub kind: TopologyKind,
    /// Planes of a star, or of leaves and spines, over which a rank's traffic spreads.
    pub planes: u32,
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
    /// nothing, as in virtual time.
    pub reduce_ns_per_byte: f64,
}
