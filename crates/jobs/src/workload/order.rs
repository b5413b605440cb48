//! Order of the operations of one rank: an operation is ready when all that it depends on have ended.
//!
//! Each rank counts for each operation the dependencies that have not ended. An end costs as much as the operation has
//! successors, so a whole workload costs as much as it has operations and dependencies.

use rackloom_workloads::RankOperations;

/// Count of an operation that has ended.
const OVER: u32 = u32::MAX;

/// Progress of one rank through its operations.
#[derive(Debug)]
pub(super) struct Order {
    /// Number of dependencies that have not ended, or [`OVER`].
    missing: Vec<u32>,
    /// Start of each operation's successors in `successors`, and the end of the last.
    starts: Vec<u32>,
    successors: Vec<u32>,
    /// Operations that became ready and were not taken yet.
    ready: Vec<u32>,
    over: usize,
}

impl Order {
    pub(super) fn new(operations: &RankOperations) -> Self {
        let count = operations.operations().len();
        let dependencies =
            || operations.operations().iter().map(|operation| operations.dependencies(operation));
        let mut starts = vec![0_u32; count + 1];
        dependencies().flatten().for_each(|before| starts[*before as usize + 1] += 1);
        for index in 0..count {
            starts[index + 1] += starts[index];
        }
        let mut successors = vec![0; starts[count] as usize];
        let mut next = starts.clone();
        for (operation, before) in (0_u32..).zip(dependencies()) {
            for before in before {
                let slot = &mut next[*before as usize];
                successors[*slot as usize] = operation;
                *slot += 1;
            }
        }
        let missing: Vec<_> = dependencies().map(|before| before.len() as u32).collect();
        let ready = (0..count as u32).filter(|operation| missing[*operation as usize] == 0).collect();
        Self { missing, starts, successors, ready, over: 0 }
    }

    /// Takes the operations that have become ready, in the order of the list.
    pub(super) fn take_ready(&mut self) -> Vec<u32> {
        let mut ready = std::mem::take(&mut self.ready);
        ready.sort_unstable();
        ready
    }

    /// Returns whether operations have become ready and were not taken yet.
    pub(super) const fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Records that an operation has ended.
    pub(super) fn end(&mut self, operation: u32) {
        let index = operation as usize;
        debug_assert_eq!(self.missing[index], 0, "operation {operation} ends before it began");
        self.missing[index] = OVER;
        self.over += 1;
        for successor in self.starts[index]..self.starts[index + 1] {
            let successor = self.successors[successor as usize];
            let missing = &mut self.missing[successor as usize];
            *missing -= 1;
            if *missing == 0 {
                self.ready.push(successor);
            }
        }
    }

    /// Returns the number of operations that have ended.
    pub(super) const fn over(&self) -> usize {
        self.over
    }

    /// Returns the number of operations.
    pub(super) const fn total(&self) -> usize {
        self.missing.len()
    }

    /// Returns whether all operations have ended.
    pub(super) const fn is_over(&self) -> bool {
        self.over == self.missing.len()
    }

    /// Returns the first operation of the list that is ready and has not ended.
    pub(super) fn first_unfinished(&self) -> Option<u32> {
        self.missing.iter().position(|missing| *missing == 0).map(|index| index as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackloom_workloads::Work;

    fn operations(dependencies: &[&[u32]]) -> RankOperations {
        let mut operations = RankOperations::default();
        for before in dependencies {
            operations.add(0, Work::Compute { duration_ns: 1 }, before.iter().copied());
        }
        operations
    }

    #[test]
    fn an_operation_is_ready_after_the_last_of_its_dependencies() {
        let mut order = Order::new(&operations(&[&[], &[0], &[], &[0, 2], &[1, 3]]));
        assert_eq!(order.take_ready(), [0, 2]);
        order.end(2);
        assert_eq!(order.take_ready(), [0; 0]);
        order.end(0);
        assert_eq!((order.take_ready(), order.first_unfinished()), (vec![1, 3], Some(1)));
        order.end(3);
        order.end(1);
        assert_eq!(order.take_ready(), [4]);
        assert_eq!((order.over(), order.is_over()), (4, false));
        order.end(4);
        assert!(order.is_over() && order.first_unfinished().is_none());
    }

    #[test]
    fn a_rank_without_operations_is_over_at_once() {
        let mut order = Order::new(&operations(&[]));
        assert!(order.is_over() && order.take_ready().is_empty());
    }

    #[test]
    fn a_dependency_that_is_listed_twice_counts_twice_and_ends_twice() {
        let mut order = Order::new(&operations(&[&[], &[0, 0]]));
        order.take_ready();
        order.end(0);
        assert_eq!(order.take_ready(), [1]);
    }
}
