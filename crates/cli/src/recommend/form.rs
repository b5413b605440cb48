//! Sizes of a shape for a number of nodes.
//!
//! | shape | sizes |
//! |---|---|
//! | `torus` | two dimensions, and three: those that multiply to the number of nodes and are nearest to a square, or to a cube. Each has two nodes at least |
//! | `hypercube` | log2 of the number of nodes |
//! | `leaf-spine` | nodes of a leaf: the largest divisor of the number of nodes that is at most its square root. As many spines as a leaf has nodes, and half as many |
//!
//! A number of nodes that a shape cannot have is a form as well, with the reason.

use crate::arguments::ShapeName;

/// Shape with all of its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Star,
    Ring,
    FullMesh,
    LeafSpine {
        leaves: u64,
        nodes_per_leaf: u64,
        spines: u64,
    },
    /// Sizes of three dimensions; the last one is 1 if there are two.
    Torus([u64; 3]),
    Hypercube {
        dimensions: u32,
    },
    /// The shape does not exist for this number of nodes, for this reason.
    Impossible(&'static str),
}

/// Returns the forms of a shape with this number of nodes.
pub(super) fn forms(shape: ShapeName, nodes: u64) -> Vec<Form> {
    match shape {
        ShapeName::Star => vec![Form::Star],
        ShapeName::Ring => vec![Form::Ring],
        ShapeName::FullMesh => vec![Form::FullMesh],
        ShapeName::LeafSpine => leaf_spines(nodes),
        ShapeName::Torus => vec![
            square(nodes).map_or(Form::Impossible("the number of nodes is prime: no torus"), |[x, y]| {
                Form::Torus([x, y, 1])
            }),
            cube(nodes).map_or(
                Form::Impossible(
                    "the number of nodes has fewer than three factors: no torus of three dimensions",
                ),
                Form::Torus,
            ),
        ],
        ShapeName::Hypercube if nodes.is_power_of_two() => {
            vec![Form::Hypercube { dimensions: nodes.ilog2() }]
        }
        ShapeName::Hypercube => {
            vec![Form::Impossible("the number of nodes is no power of two: no hypercube")]
        }
    }
}

fn leaf_spines(nodes: u64) -> Vec<Form> {
    let Some([leaves, nodes_per_leaf]) = square(nodes) else {
        return vec![Form::Impossible("the number of nodes is prime: no leaves of equal size")];
    };
    let with = |spines| Form::LeafSpine { leaves, nodes_per_leaf, spines };
    vec![with(nodes_per_leaf), with(nodes_per_leaf.div_ceil(2))]
}

/// Returns two numbers of at least two, the larger first, that multiply to `nodes` and are nearest to each other.
fn square(nodes: u64) -> Option<[u64; 2]> {
    let smaller = (2..=nodes.isqrt()).rev().find(|size| nodes.is_multiple_of(*size))?;
    Some([nodes / smaller, smaller])
}

/// Returns three numbers of at least two, the largest first, that multiply to `nodes` and have the least sum.
fn cube(nodes: u64) -> Option<[u64; 3]> {
    let smallest = (2..=nodes.isqrt()).filter(|size| nodes.is_multiple_of(*size));
    let sizes = smallest.filter_map(|size| square(nodes / size).map(|[x, y]| [x, y, size]));
    let mut best = sizes.min_by_key(|sizes| sizes.iter().sum::<u64>())?;
    best.sort_unstable_by(|one, other| other.cmp(one));
    Some(best)
}

impl Form {
    /// Returns the sizes as a table shows them; empty for shapes with no sizes but the number of nodes.
    pub(super) fn sizes(self) -> String {
        match self {
            Self::LeafSpine { leaves, nodes_per_leaf, spines } => {
                let plural = if spines == 1 { "" } else { "s" };
                format!("{leaves}x{nodes_per_leaf}, {spines} spine{plural}")
            }
            Self::Torus([x, y, 1]) => format!("{x}x{y}"),
            Self::Torus([x, y, z]) => format!("{x}x{y}x{z}"),
            _ => String::new(),
        }
    }

    /// Returns the mean number of links that a message crosses: of messages to the next rank, or to any other.
    pub(super) fn links_crossed(self, nodes: u64, is_to_next: bool) -> f64 {
        let count = nodes as f64;
        let of_ring = |size: u64| (size * size / 4) as f64 / size as f64;
        match self {
            Self::Star => 2.0,
            Self::Ring if !is_to_next => of_ring(nodes) * count / (count - 1.0),
            Self::Ring | Self::FullMesh | Self::Impossible(_) => 1.0,
            Self::LeafSpine { nodes_per_leaf, .. } if is_to_next => 2.0 + 2.0 / nodes_per_leaf as f64,
            Self::LeafSpine { nodes_per_leaf, .. } => {
                2.0 + 2.0 * (nodes - nodes_per_leaf) as f64 / (count - 1.0)
            }
            // The last node of a row is linked to the next row through the first one.
            Self::Torus([x, _, 1]) if is_to_next => 1.0 + 1.0 / x as f64,
            Self::Torus([x, y, _]) if is_to_next => 1.0 + 1.0 / x as f64 + 1.0 / (x * y) as f64,
            Self::Torus(sizes) => sizes.into_iter().map(of_ring).sum::<f64>() * count / (count - 1.0),
            Self::Hypercube { .. } if is_to_next => 2.0,
            Self::Hypercube { dimensions } => f64::from(dimensions) / 2.0 * count / (count - 1.0),
        }
    }

    /// Returns the number of links of each node. Links of planes count.
    pub(super) fn links_per_node(self, nodes: u64, planes: u64) -> u64 {
        match self {
            Self::Star | Self::LeafSpine { .. } => planes,
            // Two nodes of a ring share one link.
            Self::Ring => 2.min(nodes - 1),
            Self::FullMesh => nodes - 1,
            Self::Torus(sizes) => sizes.into_iter().map(|size| 2.min(size - 1)).sum(),
            Self::Hypercube { dimensions } => u64::from(dimensions),
            Self::Impossible(_) => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tori_are_nearest_to_a_square_and_to_a_cube() {
        for (nodes, sizes) in [
            (8, [[4, 2, 1], [2, 2, 2]]),
            (36, [[6, 6, 1], [4, 3, 3]]),
            (64, [[8, 8, 1], [4, 4, 4]]),
            (100, [[10, 10, 1], [5, 5, 4]]),
            (256, [[16, 16, 1], [8, 8, 4]]),
        ] {
            assert_eq!(forms(ShapeName::Torus, nodes), sizes.map(Form::Torus), "{nodes}");
        }
        let of_six = forms(ShapeName::Torus, 6);
        assert!(matches!(of_six[..], [Form::Torus([3, 2, 1]), Form::Impossible(_)]), "{of_six:?}");
        assert!(matches!(forms(ShapeName::Torus, 7)[..], [Form::Impossible(_), Form::Impossible(_)]));
    }

    #[test]
    fn leaves_have_spines_for_all_of_their_nodes_or_for_half() {
        let with = |spines| Form::LeafSpine { leaves: 16, nodes_per_leaf: 8, spines };
        assert_eq!(forms(ShapeName::LeafSpine, 128), [with(8), with(4)]);
        assert!(matches!(forms(ShapeName::LeafSpine, 13)[..], [Form::Impossible(_)]));
    }

    #[test]
    fn a_hypercube_has_a_power_of_two() {
        assert_eq!(forms(ShapeName::Hypercube, 64), [Form::Hypercube { dimensions: 6 }]);
        assert!(matches!(forms(ShapeName::Hypercube, 12)[..], [Form::Impossible(_)]));
    }

    #[test]
    fn links_of_a_node_are_those_of_the_shape() {
        let links = |form: Form, nodes| form.links_per_node(nodes, 3);
        assert_eq!(links(Form::Star, 8), 3);
        assert_eq!((links(Form::Ring, 2), links(Form::Ring, 3)), (1, 2));
        assert_eq!((links(Form::Torus([4, 2, 1]), 8), links(Form::Torus([4, 4, 4]), 64)), (3, 6));
        assert_eq!((links(Form::Hypercube { dimensions: 5 }, 32), links(Form::FullMesh, 9)), (5, 8));
    }

    #[test]
    fn messages_cross_as_many_links_as_by_hand() {
        // Of three others in a ring of four, two are next to a node and one is opposite.
        assert!((Form::Ring.links_crossed(4, false) - 4.0 / 3.0).abs() < 1e-12);
        // Of three others in a square, too.
        assert!((Form::Hypercube { dimensions: 2 }.links_crossed(4, false) - 4.0 / 3.0).abs() < 1e-12);
        assert!((Form::Torus([2, 2, 1]).links_crossed(4, false) - 4.0 / 3.0).abs() < 1e-12);
        // One neighbour at the leaf, two at the other one.
        let leaves = Form::LeafSpine { leaves: 2, nodes_per_leaf: 2, spines: 1 };
        assert!((leaves.links_crossed(4, false) - 10.0 / 3.0).abs() < 1e-12);
        assert!((leaves.links_crossed(4, true) - 3.0).abs() < 1e-12);
    }
}
