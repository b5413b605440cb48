//! Numbers of all operations of a workload, one range per rank.

use crate::error::WorkloadError;
use crate::model::{Operation, Workload};

/// Number that no operation has.
pub(super) const NONE: u32 = u32::MAX;

/// First number of each rank, and the end.
#[derive(Debug)]
pub(super) struct Numbers {
    starts: Vec<u32>,
}

impl Numbers {
    /// Numbers the operations. Their count is at most [`OPERATIONS_MAX`](crate::model::OPERATIONS_MAX).
    pub(super) fn new(workload: &Workload) -> Self {
        let mut starts = vec![0];
        let mut next = 0;
        for rank in &workload.ranks {
            next += rank.operations().len() as u32;
            starts.push(next);
        }
        Self { starts }
    }

    /// Returns the number of operations.
    pub(super) fn count(&self) -> usize {
        self.starts.last().map_or(0, |end| *end as usize)
    }

    /// Returns the number of an operation.
    pub(super) fn number(&self, rank: usize, operation: usize) -> u32 {
        self.starts[rank] + operation as u32
    }

    /// Returns rank and index of an operation.
    pub(super) fn place(&self, number: u32) -> (usize, usize) {
        let rank = self.starts.partition_point(|start| *start <= number) - 1;
        (rank, (number - self.starts[rank]) as usize)
    }

    /// Returns an operation.
    pub(super) fn operation<'w>(&self, workload: &'w Workload, number: u32) -> &'w Operation {
        let (rank, operation) = self.place(number);
        &workload.ranks[rank].operations()[operation]
    }

    /// Returns a mistake at an operation.
    pub(super) fn error(&self, number: u32, reason: String, hint: &str) -> WorkloadError {
        let (rank, operation) = self.place(number);
        WorkloadError::operation(rank, operation, reason, hint)
    }
}
