//! Who sends how much to whom: traffic matrices that racks of GPUs are known for.
//!
//! A matrix counts operations; row is who sends, column who gets. What it takes on a given fabric is for a run to find.

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

    /// Everybody sends to one other, and everybody gets from one: a shuffled circle.
    pub(crate) fn permutation(nodes: usize, count: u64, seed: u64) -> Self {
        let mut circle: Vec<usize> = (0..nodes).collect();
        for place in (1..nodes).rev() {
            circle.swap(place, (random_share(seed, place as u64) * (place + 1) as f64) as usize);
        }
        let next = |from| {
            let place = circle.iter().position(|node| *node == from).unwrap_or(0);
            circle[(place + 1) % nodes]
        };
        Self::of(nodes, |from, to| if next(from) == to { count } else { 0 })
    }

    /// Everybody sends as much to everybody.
    pub(crate) fn all_to_all(nodes: usize, count: u64) -> Self {
        Self::of(nodes, |_, _| count)
    }

    /// Everybody sends to the first.
    pub(crate) fn incast(nodes: usize, count: u64) -> Self {
        Self::of(nodes, |_, to| if to == 0 { count } else { 0 })
    }

    /// Tokens to experts of unequal popularity: the k-th gets a k-th of what the first gets (Zipf).
    pub(crate) fn experts(nodes: usize, count: u64) -> Self {
        Self::of(nodes, |_, to| count / (to as u64 + 1))
    }

    /// The first half holds caches of keys and values, and each of it sends to one of the second.
    pub(crate) fn hand_over(nodes: usize, count: u64) -> Self {
        Self::of(nodes, |from, to| if to == from + nodes / 2 { count } else { 0 })
    }

    /// Operations that the busiest node sends or gets, whichever is more.
    pub(crate) fn busiest(&self) -> u64 {
        let sent = self.rows.iter().map(|row| row.iter().sum::<u64>());
        let got = (0..self.rows.len()).map(|to| self.rows.iter().map(|row| row[to]).sum());
        sent.chain(got).max().unwrap_or(0)
    }

    /// Operations between the busiest pair.
    pub(crate) fn busiest_pair(&self) -> u64 {
        self.rows.iter().flatten().copied().max().unwrap_or(0)
    }

    /// The same as flows of puts.
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
    fn in_a_permutation_everybody_sends_once_and_gets_once() {
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
    fn the_busiest_port_is_where_most_meets() {
        assert_eq!(Matrix::incast(8, 10).busiest(), 70);
        assert_eq!(Matrix::all_to_all(8, 10).busiest(), 70);
        assert_eq!(Matrix::experts(4, 12).busiest(), 36, "the first expert gets 12 of each other");
        assert_eq!((Matrix::hand_over(8, 10).busiest(), Matrix::all_to_all(8, 10).busiest_pair()), (10, 10));
    }
}
