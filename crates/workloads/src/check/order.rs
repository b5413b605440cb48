//! The order between ranks: no operation waits, over any number of steps, for itself.
//!
//! Operations are nodes of a graph, and so is each collective of a group. A collective waits for the operations of all its ranks
//! and for the previous one of its group. A work-list removes nodes that wait for nothing. What remains can never begin. A send
//! ends at once, so that it waits for no receive. Time does not matter.

use crate::check::collectives::Instances;
use crate::check::describe;
use crate::check::nodes::{NONE, Numbers};
use crate::error::WorkloadError;
use crate::model::Workload;

/// Most operations of a circle that a message lists.
const LISTED_MAX: usize = 8;

/// Checks that all operations can begin.
///
/// # Errors
///
/// Returns one circle, and the number of operations that can never begin.
pub(super) fn check(
    workload: &Workload,
    numbers: &Numbers,
    partners: &[u32],
    instances: &Instances,
) -> Result<(), WorkloadError> {
    let graph = Graph { workload, numbers, partners, instances };
    let waits = graph.remaining();
    match waits.iter().take(numbers.count()).position(|waits| *waits > 0) {
        None => Ok(()),
        Some(first) => Err(graph.deadlock(&waits, first as u32)),
    }
}

/// Nodes: first the operations by their number, then the instances of collectives.
struct Graph<'w> {
    workload: &'w Workload,
    numbers: &'w Numbers,
    partners: &'w [u32],
    instances: &'w Instances,
}

impl Graph<'_> {
    fn nodes(&self) -> usize {
        self.numbers.count() + self.instances.count()
    }

    fn node_of_instance(&self, instance: u32) -> u32 {
        self.numbers.count() as u32 + instance
    }

    /// Returns the node whose end is the end of an operation.
    fn end_of(&self, number: u32) -> u32 {
        self.instances.of(number).map_or(number, |instance| self.node_of_instance(instance))
    }

    /// Calls `visit` for each node that must have ended before `node` begins.
    fn before(&self, node: u32, mut visit: impl FnMut(u32)) {
        if let Some(instance) = (node as usize).checked_sub(self.numbers.count()) {
            return self.instances.operations(instance).for_each(visit);
        }
        let (rank, index) = self.numbers.place(node);
        let rank_operations = &self.workload.ranks[rank];
        let first = node - index as u32;
        let dependencies = rank_operations.dependencies(&rank_operations.operations()[index]);
        dependencies.iter().for_each(|dependency| visit(self.end_of(first + dependency)));
        let partner = self.partners[node as usize];
        if partner != NONE {
            visit(partner);
        }
        if let Some(before) = self.instances.of(node).and_then(|instance| self.instances.before(instance)) {
            visit(self.node_of_instance(before));
        }
    }

    /// Returns for each node how many nodes it waits for when nothing can begin any more.
    fn remaining(&self) -> Vec<u32> {
        let mut waits = vec![0_u32; self.nodes()];
        let after = self.successors(&mut waits);
        let mut ready: Vec<u32> =
            (0..).zip(&waits).filter(|(_, waits)| **waits == 0).map(|(node, _)| node).collect();
        while let Some(node) = ready.pop() {
            for next in after.of(node) {
                let waits = &mut waits[*next as usize];
                *waits -= 1;
                if *waits == 0 {
                    ready.push(*next);
                }
            }
        }
        waits
    }

    /// Returns the edges by the node that is waited for. Counts in `waits` how many nodes each node waits for.
    fn successors(&self, waits: &mut [u32]) -> Successors {
        let nodes = self.nodes();
        let mut starts = vec![0_usize; nodes + 1];
        for node in 0..nodes as u32 {
            self.before(node, |earlier| {
                starts[earlier as usize + 1] += 1;
                waits[node as usize] += 1;
            });
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut next = starts.clone();
        let mut edges = vec![0; starts[nodes]];
        for node in 0..nodes as u32 {
            self.before(node, |earlier| {
                edges[next[earlier as usize]] = node;
                next[earlier as usize] += 1;
            });
        }
        Successors { starts, edges }
    }

    /// Describes a circle that can be reached from an operation that never begins.
    fn deadlock(&self, waits: &[u32], first: u32) -> WorkloadError {
        let circle = self.circle(waits, first);
        let operations: Vec<_> =
            circle.iter().filter(|node| (**node as usize) < self.numbers.count()).collect();
        let listed = operations.iter().take(LISTED_MAX);
        let mut listed: Vec<_> =
            listed.map(|number| describe::operation(self.workload, self.numbers.place(**number))).collect();
        if operations.len() > LISTED_MAX {
            listed.push(format!("{} more operations", operations.len() - LISTED_MAX));
        }
        let stuck = waits.iter().take(self.numbers.count()).filter(|waits| **waits > 0).count();
        let reason = format!(
            "deadlock: {stuck} operations can never begin, because each of these waits for the next, and the last for the \
             first: {}",
            listed.join(" -> ")
        );
        let place = operations.iter().min().map_or(first, |number| **number);
        self.numbers.error(place, reason, "remove one of the dependencies, or change the order of one rank")
    }

    /// Returns a circle. Each node waits for the next one, and the last for the first.
    fn circle(&self, waits: &[u32], first: u32) -> Vec<u32> {
        let mut position = vec![NONE; self.nodes()];
        let mut path = Vec::new();
        let mut node = first;
        while position[node as usize] == NONE {
            position[node as usize] = path.len() as u32;
            path.push(node);
            let mut next = None;
            self.before(node, |earlier| {
                if waits[earlier as usize] > 0 {
                    next = next.or(Some(earlier));
                }
            });
            // A node that waits has a predecessor that waits.
            let Some(next) = next else { break };
            node = next;
        }
        path.split_off(position[node as usize] as usize)
    }
}

/// Nodes that wait for each node.
struct Successors {
    starts: Vec<usize>,
    edges: Vec<u32>,
}

impl Successors {
    fn of(&self, node: u32) -> &[u32] {
        &self.edges[self.starts[node as usize]..self.starts[node as usize + 1]]
    }
}
