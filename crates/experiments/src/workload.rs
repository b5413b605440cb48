//! Traffic matrices that are typical of racks of GPUs.
//!
//! A matrix counts operations: rows are senders, columns receivers. A run finds how long it takes on a given fabric.

use rackloom_plan::random_share;

use crate::traffic::{Flow, Kind};

/// Operations by sender and receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matrix {
    rows: Vec<Vec<u64>>,
}

impl Matrix {
    fn of(nodes: usize, count: impl Fn(usize, usize) -> u64) -> Self {
        let row = |from| (0..nodes).map(|to| if from == to { 0 } else { count(from, to) }).collect();
        Self { rows: (0..nodes).map(row).collect() }
    }

    /// Returns a shuffled circle: every node sends to one other, and receives from one.
    pub(crate) fn permutation(nodes: usize, count: u64, seed: u64) -> Self {
        let mut circle: Vec<usize> = (0..nodes).collect();
        for index in (1..nodes).rev() {
            circle.swap(index, (random_share(seed, index as u64) * (index + 1) as f64) as usize);
        }
        let next = |from| {
            let index = circle.iter().position(|node| *node == from).unwrap_or(0);
            circle[(index + 1) % nodes]
        };
        Self::of(nodes, |from, to| if next(from) == to { count } else { 0 })
    }

    /// Returns equal traffic between all nodes.
    pub(crate) fn all_to_all(nodes: usize, count: u64) -> Self {
        Self::of(nodes, |_, _| count)
    }

    /// Returns traffic of all nodes to the first.
    pub(crate) fn incast(nodes: usize, count: u64) -> Self {
        Self::of(nodes, |_, to| if to == 0 { count } else { 0 })
    }

    /// Returns tokens to experts of unequal popularity: the k-th gets a k-th of what the first gets (Zipf).
    pub(crate) fn experts(nodes: usize, count: u64) -> Self {
        Self::of(nodes, |_, to| count / (to as u64 + 1))
    }

    /// Returns the transfer of key-value caches: each node of the first half sends to one of the second.
    pub(crate) fn kv_cache(nodes: usize, count: u64) -> Self {
        Self::of(nodes, |from, to| if to == from + nodes / 2 { count } else { 0 })
    }

    /// Returns the larger of the operations sent or received by the busiest node.
    pub(crate) fn busiest(&self) -> u64 {
        let sent = self.rows.iter().map(|row| row.iter().sum::<u64>());
        let got = (0..self.rows.len()).map(|to| self.rows.iter().map(|row| row[to]).sum());
        sent.chain(got).max().unwrap_or(0)
    }

    /// Returns the operations between the busiest pair.
    pub(crate) fn busiest_pair(&self) -> u64 {
        self.rows.iter().flatten().copied().max().unwrap_or(0)
    }

    /// Returns the matrix as flows of puts.
    pub(crate) fn flows(&self, bytes: u64) -> Vec<Vec<Flow>> {
        let flows = |row: &Vec<u64>| {
            let targets = row.iter().enumerate().filter(|(_, count)| **count > 0);
            targets.map(|(to, count)| Flow::greedy(Kind::Put, to as u16, bytes, *count)).collect()
        };
        self.rows.iter().map(flows).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_permutation_every_node_sends_once_and_receives_once() {
        for seed in 0..20 {
            let matrix = Matrix::permutation(8, 5, seed);
            for node in 0..8 {
                assert_eq!(matrix.rows[node].iter().sum::<u64>(), 5);
                assert_eq!(matrix.rows.iter().map(|row| row[node]).sum::<u64>(), 5);
                assert_eq!(matrix.rows[node][node], 0);
            }
        }
    }

    #[test]
    fn the_busiest_port_has_the_most_operations() {
        assert_eq!(Matrix::incast(8, 10).busiest(), 70);
        assert_eq!(Matrix::all_to_all(8, 10).busiest(), 70);
        assert_eq!(Matrix::experts(4, 12).busiest(), 36, "the first expert gets 12 of each other");
        assert_eq!((Matrix::kv_cache(8, 10).busiest(), Matrix::all_to_all(8, 10).busiest_pair()), (10, 10));
    }
}
