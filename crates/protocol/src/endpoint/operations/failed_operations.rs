//! Failed operations of a stream, for the signals that count them.
//!
//! A signal states that its data is visible. So operations that were refused, that failed in memory, or that their
//! sender gave up are kept here by number. A signal that counts any of them is refused when it is about to be issued
//! to memory, because memory has answered all earlier requests then.
//!
//! A signal counts the operations directly before it. Of all failures before the first operation that is not visible,
//! only the last one can still matter. So few ranges are kept, however many operations are refused.

use alloc::vec::Vec;

use crate::error::OperationError;
use crate::link::credits::is_ahead;

/// Range of failed operations, and the error reported to their sender; no error if the sender gave them up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: u32,
    end: u32,
    error: Option<OperationError>,
}

/// Failed operations of one stream, ordered by number.
#[derive(Debug, Default)]
pub(in crate::endpoint) struct FailedOperations(Vec<Range>);

impl FailedOperations {
    /// Records that the operations from `first` to before `end` failed. All operations before `visible` are complete.
    pub(in crate::endpoint) fn note(
        &mut self,
        first: u32,
        end: u32,
        error: Option<OperationError>,
        visible: u32,
    ) {
        let index = self.0.iter().rposition(|known| !is_ahead(known.first, first)).map_or(0, |last| last + 1);
        match index.checked_sub(1).map(|last| &mut self.0[last]) {
            Some(last) if last.end == first && last.error == error => last.end = end,
            _ => self.0.insert(index, Range { first, end, error }),
        }
        let past = self.0.iter().take_while(|known| !is_ahead(known.end, visible)).count();
        self.0.drain(..past.saturating_sub(1));
    }

    /// Returns the error of the last failed operation of a range, if any has failed.
    pub(in crate::endpoint) fn find(&self, first: u32, end: u32) -> Option<Option<OperationError>> {
        let meets = |known: &&Range| first != end && is_ahead(known.end, first) && is_ahead(end, known.first);
        self.0.iter().rev().find(meets).map(|known| known.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: Option<OperationError> = Some(OperationError::MemoryFailed);

    #[test]
    fn a_failed_range_is_found_by_every_range_that_overlaps_it_only() {
        let mut failed_operations = FailedOperations::default();
        failed_operations.note(10, 12, FAILED, 10);
        for (first, end) in [(0, 11), (10, 20), (11, 12), (5, 30)] {
            assert_eq!(failed_operations.find(first, end), Some(FAILED), "{first} to {end}");
        }
        for (first, end) in [(0, 10), (12, 20), (11, 11), (5, 5)] {
            assert_eq!(failed_operations.find(first, end), None, "{first} to {end}");
        }
    }

    #[test]
    fn numbers_wrap_and_arrive_out_of_order() {
        let mut failed_operations = FailedOperations::default();
        let visible = u32::MAX - 3;
        failed_operations.note(2, 3, FAILED, visible);
        failed_operations.note(u32::MAX, 1, None, visible);
        assert_eq!(failed_operations.find(u32::MAX - 3, u32::MAX), None);
        assert_eq!(failed_operations.find(u32::MAX - 3, 0), Some(None));
        assert_eq!(failed_operations.find(1, 2), None);
        assert_eq!(failed_operations.find(1, 5), Some(FAILED));
    }

    #[test]
    fn only_the_last_of_the_past_failures_is_kept() {
        let mut failed_operations = FailedOperations::default();
        for number in 0..1000 {
            failed_operations.note(2 * number, 2 * number + 1, FAILED, 2 * number);
        }
        assert!(failed_operations.0.len() <= 2, "{failed_operations:?}");
        assert_eq!(
            failed_operations.find(0, 1999),
            Some(FAILED),
            "the last of them, which is all that it takes"
        );
        for number in 2000..3000 {
            failed_operations.note(number, number + 1, FAILED, 1000);
        }
        assert!(failed_operations.0.len() <= 3, "neighbours are one: {failed_operations:?}");
    }
}
