//! Uniform traffic: the load of the busiest link of a shape.
//!
//! Each node sends one message to each other node, over a shortest path, and all paths that tie are used equally. A cut that divides
//! the nodes into two halves of N/2 is crossed by N^2/4 messages in each direction, so the links of the narrowest cut bound the
//! throughput (bisection; Dally and Towles, "Principles and practices of interconnection networks", 2004, chapters 3 and 5). In an
//! edge-symmetric shape that is equal to the mean number of hops over the number of links.

/// Returns the messages on each direction of each link of one dimension of a torus, of `nodes` nodes in all and `size` in a ring.
///
/// A ring of an even size is cut in two places: N^2/4 messages over 2 N/k links are N k/8. A ring of an odd size has no such cut; its
/// mean distance is (k^2 - 1)/4k. Two nodes share one link, so a ring of two is cut in one place.
#[must_use]
pub fn torus_link_load(nodes: u64, size: u64) -> f64 {
    let (nodes, size) = (nodes as f64, size as f64);
    if size < 2.0 {
        0.0
    } else if size == 2.0 {
        nodes / 2.0
    } else if size % 2.0 == 0.0 {
        nodes * size / 8.0
    } else {
        nodes * (size * size - 1.0) / (8.0 * size)
    }
}

/// Returns the messages on the busiest link of a torus of these sizes: those of its longest dimension.
#[must_use]
pub fn torus_load(sizes: &[u64]) -> f64 {
    let nodes = sizes.iter().product();
    sizes.iter().map(|size| torus_link_load(nodes, *size)).fold(0.0, f64::max)
}

/// Returns the messages on each direction of each link of a hypercube: N^2/4 over N/2 links.
#[must_use]
pub fn hypercube_load(dimensions: u32) -> f64 {
    f64::from(2_u32.pow(dimensions)) / 2.0
}

/// Returns the messages on the busiest link of leaves and spines: those that leave a leaf, over its links to the spines, or those of a
/// node, over its own link.
#[must_use]
pub fn leaf_spine_load(leaves: u64, nodes_per_leaf: u64, links_up: u64) -> f64 {
    let nodes = leaves * nodes_per_leaf;
    let of_leaf = (nodes_per_leaf * (nodes - nodes_per_leaf)) as f64 / links_up as f64;
    of_leaf.max((nodes - 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the messages over the link from coordinate 0 to 1 of a ring: half of a message for each direction of a tie.
    fn counted(nodes: u64, size: u64) -> f64 {
        // Pairs of nodes that have two given coordinates, over rings of this dimension.
        let (per_coordinate, rings) = (nodes / size, nodes / size);
        let mut messages = 0.0;
        for from in 0..size {
            for to in 0..size {
                let forward = (to + size - from) % size;
                let share = if 2 * forward < size {
                    1.0
                } else if 2 * forward == size {
                    0.5
                } else {
                    0.0
                };
                let crosses = (0..forward).any(|step| (from + step) % size == 0);
                messages += if crosses { share } else { 0.0 };
            }
        }
        messages * (per_coordinate * per_coordinate) as f64 / rings as f64
    }

    #[test]
    fn rings_are_as_loaded_as_counted() {
        for size in [3, 4, 5, 6, 7, 8] {
            for rings in [1, 2, 9] {
                let nodes = size * rings;
                let difference = torus_link_load(nodes, size) - counted(nodes, size);
                assert!(difference.abs() < 1e-9, "{size} x {rings}: {difference}");
            }
        }
        assert_eq!(torus_link_load(8, 8), 8.0, "N^2/8 of a single ring");
    }

    #[test]
    fn a_cube_is_a_torus_of_twos_and_fours() {
        assert_eq!((hypercube_load(4), torus_load(&[2, 2, 2, 2]), torus_load(&[4, 4])), (8.0, 8.0, 8.0));
        assert_eq!(torus_load(&[4, 4, 1]), 8.0);
        assert_eq!(torus_load(&[8, 2]), 16.0, "the longest dimension");
    }

    #[test]
    fn leaves_with_as_many_links_up_as_nodes_are_bounded_by_the_nodes() {
        assert_eq!(leaf_spine_load(4, 4, 4), 15.0);
        assert_eq!(leaf_spine_load(2, 8, 2), 32.0, "64 messages over two links");
    }
}
