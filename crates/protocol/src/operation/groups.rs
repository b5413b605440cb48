//! Commands in progress that may consist of several operations: one entry per command.
//!
//! A peer cannot end a part twice: its answer finds a part only through an outstanding operation, which ends with it.

use alloc::vec::Vec;

use super::OperationId;
use crate::error::OperationError;

/// Index of a command in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupId(u32);

#[derive(Clone, Copy, Debug)]
struct Group {
    operation: OperationId,
    remaining: u32,
    error: Option<OperationError>,
    value: u64,
}

/// Table of commands in progress.
#[derive(Debug, Default)]
pub struct Groups {
    table: Vec<Group>,
    free: Vec<GroupId>,
    open: usize,
}

impl Groups {
    /// Adds a command that ends after `parts` parts have ended.
    pub fn open(&mut self, operation: OperationId, parts: u32) -> GroupId {
        assert!(parts > 0, "a command has at least one part");
        let group = Group { operation, remaining: parts, error: None, value: 0 };
        self.open += 1;
        if let Some(id) = self.free.pop() {
            self.table[id.0 as usize] = group;
            return id;
        }
        self.table.push(group);
        GroupId(self.table.len() as u32 - 1)
    }

    /// Counts a command that needs no entry, because it has one part.
    #[inline]
    pub const fn begin_one(&mut self) {
        self.open += 1;
    }

    /// Ends a command that has no entry.
    #[inline]
    pub const fn end_one(&mut self) {
        assert!(self.open > 0, "a command ends that is not in progress");
        self.open -= 1;
    }

    /// Ends one part. Returns the command and its result if it was the last part.
    pub fn end_part(
        &mut self,
        id: GroupId,
        result: Result<u64, OperationError>,
    ) -> Option<(OperationId, Result<u64, OperationError>)> {
        let group = &mut self.table[id.0 as usize];
        match result {
            Ok(value) => group.value = value,
            Err(error) => group.error = group.error.or(Some(error)),
        }
        assert!(group.remaining > 0, "a part of a command ends twice");
        group.remaining -= 1;
        if group.remaining > 0 {
            return None;
        }
        let ended = (group.operation, group.error.map_or(Ok(group.value), Err));
        self.free.push(id);
        assert!(
            self.open > self.table.len() - self.free.len(),
            "more entries are in use than commands are open"
        );
        self.open -= 1;
        Some(ended)
    }

    /// Number of commands in progress.
    #[must_use]
    pub const fn open_count(&self) -> usize {
        self.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "a part of a command ends twice")]
    fn a_part_that_ends_twice_is_a_bug() {
        let mut groups = Groups::default();
        let group = groups.open(OperationId(1), 2);
        assert_eq!(groups.end_part(group, Ok(0)), None);
        assert_eq!(groups.end_part(group, Ok(7)), Some((OperationId(1), Ok(7))));
        groups.end_part(group, Ok(0));
    }
}
