//! Operations of one rank in an order in which each follows those that it depends on.
//!
//! Formats may state dependencies on later operations, dependencies on the begin of an operation, and nodes that do nothing. A
//! workload has only dependencies on the end of earlier operations. The order of the file is kept where dependencies permit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::model::{DEPENDENCIES_MAX, RankOperations, Work};

/// Operation of a format, or a node that only joins dependencies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    /// Phase and work; `None` for a node that does nothing.
    pub(super) work: Option<(u16, Work)>,
    /// Nodes that must have ended.
    pub(super) after: Vec<u32>,
    /// Nodes that must have begun.
    pub(super) after_begin: Vec<u32>,
}

/// Reason for which there is no order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stuck {
    /// Nodes of which each depends on the next, and the last on the first.
    Circle(Vec<u32>),
    /// There are more than [`DEPENDENCIES_MAX`] dependencies.
    TooLarge,
}

/// Operations of one rank, and for each the node that it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ordered {
    /// The operations.
    pub(super) operations: RankOperations,
    /// Index of the node of each operation.
    pub(super) nodes: Vec<u32>,
}

/// Orders nodes. Indices in `after` and `after_begin` are below the number of nodes.
pub(super) fn ordered(nodes: &[Node]) -> Result<Ordered, Stuck> {
    // The begin of an operation is kept only where another node waits for it.
    let mut is_kept: Vec<bool> = nodes.iter().map(|node| node.work.is_none()).collect();
    nodes.iter().flat_map(|node| &node.after_begin).for_each(|begun| is_kept[*begun as usize] = true);
    let waits_for = vec![Waits::default(); nodes.len()];
    let mut builder = Builder { nodes, is_kept, waits_for, known: 0, ordered: Ordered::default() };
    for node in sorted(nodes)? {
        builder.add(node)?;
    }
    Ok(builder.ordered)
}

/// Dependencies of a node that are resolved, as indices of operations.
#[derive(Clone, Debug, Default)]
struct Waits {
    /// Operations before the node begins.
    begin: Vec<u32>,
    /// The operation of the node, if it is one.
    operation: Option<u32>,
}

struct Builder<'n> {
    nodes: &'n [Node],
    is_kept: Vec<bool>,
    waits_for: Vec<Waits>,
    /// Resolved dependencies that are kept.
    known: usize,
    ordered: Ordered,
}

impl Builder<'_> {
    fn add(&mut self, index: u32) -> Result<(), Stuck> {
        let node = &self.nodes[index as usize];
        let mut begin = Vec::new();
        for earlier in &node.after {
            let waits = &self.waits_for[*earlier as usize];
            match waits.operation {
                Some(operation) => begin.push(operation),
                None => begin.extend(&waits.begin),
            }
        }
        for earlier in &node.after_begin {
            begin.extend(&self.waits_for[*earlier as usize].begin);
        }
        begin.sort_unstable();
        begin.dedup();
        self.known += begin.len();
        if self.known > DEPENDENCIES_MAX {
            return Err(Stuck::TooLarge);
        }
        let operation = node.work.map(|(phase, work)| {
            self.ordered.nodes.push(index);
            self.ordered.operations.add(phase, work, begin.iter().copied())
        });
        let begin = if self.is_kept[index as usize] { begin } else { Vec::new() };
        self.waits_for[index as usize] = Waits { begin, operation };
        Ok(())
    }
}

/// Returns the indices of all nodes, each behind those that it depends on, otherwise in ascending order.
fn sorted(nodes: &[Node]) -> Result<Vec<u32>, Stuck> {
    let mut waits: Vec<usize> = nodes.iter().map(|node| node.after.len() + node.after_begin.len()).collect();
    let mut next = vec![Vec::new(); nodes.len()];
    for (index, node) in (0..).zip(nodes) {
        node.after.iter().chain(&node.after_begin).for_each(|earlier| next[*earlier as usize].push(index));
    }
    let free = (0..).zip(&waits).filter(|(_, waits)| **waits == 0);
    let mut ready: BinaryHeap<Reverse<u32>> = free.map(|(index, _)| Reverse(index)).collect();
    let mut sorted = Vec::with_capacity(nodes.len());
    while let Some(Reverse(node)) = ready.pop() {
        sorted.push(node);
        for later in &next[node as usize] {
            waits[*later as usize] -= 1;
            if waits[*later as usize] == 0 {
                ready.push(Reverse(*later));
            }
        }
    }
    if sorted.len() == nodes.len() { Ok(sorted) } else { Err(Stuck::Circle(circle(nodes, &waits))) }
}

/// Returns a circle among the nodes that wait for others.
fn circle(nodes: &[Node], waits: &[usize]) -> Vec<u32> {
    let mut position = vec![None; nodes.len()];
    let mut path: Vec<u32> = Vec::new();
    let mut current = waits.iter().position(|waits| *waits > 0);
    while let Some(node) = current {
        if let Some(first) = position[node] {
            return path.split_off(first);
        }
        position[node] = Some(path.len());
        path.push(node as u32);
        let earlier = nodes[node].after.iter().chain(&nodes[node].after_begin);
        current = earlier.map(|index| *index as usize).find(|index| waits[*index] > 0);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(duration_ns: u64, after: &[u32], after_begin: &[u32]) -> Node {
        let work = (duration_ns > 0).then_some((0, Work::Compute { duration_ns }));
        Node { work, after: after.to_vec(), after_begin: after_begin.to_vec() }
    }

    /// Returns the node of each operation with the operations that it depends on.
    fn listed(ordered: &Ordered) -> Vec<(u32, Vec<u32>)> {
        let operations = ordered.operations.operations().iter();
        let dependencies = operations.map(|one| ordered.operations.dependencies(one).to_vec());
        ordered.nodes.iter().copied().zip(dependencies).collect()
    }

    #[test]
    fn dependencies_on_later_nodes_are_put_in_order() {
        let nodes = [node(1, &[2], &[]), node(1, &[], &[]), node(1, &[1], &[])];
        let expected = [(1, vec![]), (2, vec![0]), (0, vec![1])];
        assert_eq!(listed(&ordered(&nodes).unwrap()), expected);
    }

    #[test]
    fn nodes_that_do_nothing_pass_dependencies_on() {
        // 0 and 1 end before 3 begins, over the node 2.
        let nodes = [node(1, &[], &[]), node(1, &[], &[]), node(0, &[0, 1], &[]), node(1, &[2, 0], &[])];
        let expected = [(0, vec![]), (1, vec![]), (3, vec![0, 1])];
        assert_eq!(listed(&ordered(&nodes).unwrap()), expected);
    }

    #[test]
    fn a_dependency_on_a_begin_waits_for_what_the_begin_waits_for() {
        let nodes = [node(1, &[], &[]), node(1, &[0], &[]), node(1, &[], &[1]), node(1, &[], &[2])];
        let expected = [(0, vec![]), (1, vec![0]), (2, vec![0]), (3, vec![0])];
        assert_eq!(listed(&ordered(&nodes).unwrap()), expected);
    }

    #[test]
    fn a_circle_is_returned_without_the_nodes_that_lead_to_it() {
        let nodes = [
            node(1, &[1], &[]),
            node(1, &[3], &[]),
            node(1, &[], &[]),
            node(0, &[4], &[]),
            node(1, &[], &[1]),
        ];
        assert_eq!(ordered(&nodes), Err(Stuck::Circle(vec![1, 3, 4])));
        assert_eq!(ordered(&[node(1, &[0], &[])]), Err(Stuck::Circle(vec![0])));
    }

    #[test]
    fn dependencies_that_multiply_are_refused() {
        // 6000 nodes wait, over one node that does nothing, for 6000 others: 36 million dependencies.
        let mut nodes = vec![node(1, &[], &[]); 6_000];
        nodes.push(node(0, &(0..6_000).collect::<Vec<_>>(), &[]));
        nodes.extend(vec![node(1, &[6_000], &[]); 6_000]);
        assert_eq!(ordered(&nodes), Err(Stuck::TooLarge));
    }
}
