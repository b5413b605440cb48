//! The driver's plain operations in flight: only the state that their completion needs.
//!
//! A driver begins and ends millions of operations per second, and needs only its context at their end. So they are not in the table of
//! all operations ([`super::table`]), whose entries have wakers and queues. An entry here is a few numbers, each written once and in place.
//!
//! Entries form a ring. Operations mostly end in the order in which they began, so the next free entry is usually the next one, and there
//! is no list of free entries.
//!
//! The identifiers of these operations have a bit of their own. Nothing here wakes or waits.

use rackloom_protocol::{NodeId, OperationId, RegionId};

/// Bit of the identifiers of these operations.
const MINE: u64 = 1 << 31;

/// One operation.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    context: u64,
    /// Grows with each use of the entry, so that a late event of an operation that has ended matches no entry.
    generation: u32,
    uses: Option<RegionId>,
    peer: NodeId,
    is_open: bool,
    /// The driver that began the operation was dropped.
    is_abandoned: bool,
    /// The operation has no completion. The next flush reports a failure.
    is_posted: bool,
}

/// State of an operation that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fabric) struct Over {
    /// Context of the driver. `None` if there is no completion.
    pub(in crate::fabric) context: Option<u64>,
    pub(in crate::fabric) peer: NodeId,
    pub(in crate::fabric) uses: Option<RegionId>,
    /// The next flush reports a failure.
    pub(in crate::fabric) is_posted: bool,
}

/// All plain operations of one node's driver.
#[derive(Debug, Default)]
pub(in crate::fabric) struct Handled {
    entries: Vec<Entry>,
    /// Index of the entry that is used next, unless it is in use.
    next_index: usize,
    open_count: usize,
}

impl Handled {
    /// Returns `true` if the operation belongs here and not to the table.
    #[inline]
    pub(in crate::fabric) const fn names(operation: OperationId) -> bool {
        operation.0 & MINE != 0
    }

    /// Assigns an identifier to an operation.
    #[inline]
    pub(in crate::fabric) fn open(
        &mut self,
        context: u64,
        peer: NodeId,
        uses: Option<RegionId>,
    ) -> OperationId {
        if self.entries.get(self.next_index).is_none_or(|entry| entry.is_open) {
            self.find_free_entry();
        }
        let index = self.next_index;
        self.next_index = if index + 1 == self.entries.len() { 0 } else { index + 1 };
        self.open_count += 1;
        let entry = &mut self.entries[index];
        entry.context = context;
        entry.generation = entry.generation.wrapping_add(1);
        entry.uses = uses;
        entry.peer = peer;
        entry.is_open = true;
        entry.is_abandoned = false;
        entry.is_posted = false;
        OperationId(u64::from(entry.generation) << 32 | MINE | index as u64)
    }

    /// Marks the operation that was opened last as posted.
    #[inline]
    pub(in crate::fabric) fn post(&mut self, operation: OperationId) {
        if let Some(entry) = self.entries.get_mut((operation.0 & (MINE - 1)) as usize) {
            entry.is_posted = true;
        }
    }

    /// Moves to a free entry, because the next one is in use by a longer operation. Adds entries if all are in use.
    #[cold]
    fn find_free_entry(&mut self) {
        if self.open_count == self.entries.len() {
            self.next_index = self.entries.len();
            self.entries.push(Entry::default());
            return;
        }
        while self.entries[self.next_index].is_open {
            self.next_index = if self.next_index + 1 == self.entries.len() { 0 } else { self.next_index + 1 };
        }
    }

    /// Ends an operation. `None` if there is no such operation in flight.
    #[inline]
    pub(in crate::fabric) fn close(&mut self, operation: OperationId) -> Option<Over> {
        let index = (operation.0 & (MINE - 1)) as u32;
        let entry = self.entries.get_mut(index as usize)?;
        if !entry.is_open || entry.generation != (operation.0 >> 32) as u32 {
            return None;
        }
        entry.is_open = false;
        self.open_count -= 1;
        let has_reader = !entry.is_abandoned && !entry.is_posted;
        let context = has_reader.then_some(entry.context);
        Some(Over { context, peer: entry.peer, uses: entry.uses, is_posted: entry.is_posted })
    }

    /// Drops the completions of a driver that is dropped. Its operations continue.
    pub(in crate::fabric) fn abandon(&mut self) {
        for entry in &mut self.entries {
            entry.is_abandoned = true;
        }
    }

    /// Returns the identifiers of all operations in flight.
    pub(in crate::fabric) fn names_in_flight(&self) -> Vec<OperationId> {
        let in_flight = self.entries.iter().zip(0_u64..).filter(|(entry, _)| entry.is_open);
        in_flight
            .map(|(entry, index)| OperationId(u64::from(entry.generation) << 32 | MINE | index))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: NodeId = NodeId(3);

    #[test]
    fn an_operation_ends_once_and_only_under_its_identifier() {
        let mut handled = Handled::default();
        let first = handled.open(10, PEER, Some(RegionId(7)));
        let second = handled.open(11, PEER, None);
        assert!(Handled::names(first) && Handled::names(second) && !Handled::names(OperationId(1 << 32)));
        assert_eq!(handled.names_in_flight(), [first, second]);
        assert_eq!(
            handled.close(first),
            Some(Over { context: Some(10), peer: PEER, uses: Some(RegionId(7)), is_posted: false })
        );
        assert_eq!(handled.close(first), None, "it has ended");
        let third = handled.open(12, PEER, None);
        assert_eq!(handled.entries.len(), 2, "the entry of the first is used again");
        assert_ne!(first, third, "one entry, two identifiers");
        assert_eq!(handled.close(first), None);
        assert_eq!(handled.close(third).and_then(|over| over.context), Some(12));
        assert_eq!(handled.names_in_flight(), [second]);
    }

    /// Entries in use stay. A free entry is found at any index, and none is added while one is free.
    #[test]
    fn long_operations_keep_their_entries() {
        let mut handled = Handled::default();
        let mut open: Vec<OperationId> = (0..8).map(|context| handled.open(context, PEER, None)).collect();
        for round in 0..100_u64 {
            let over = open.remove((round * 5 % 8) as usize);
            assert!(handled.close(over).is_some());
            open.push(handled.open(100 + round, PEER, None));
            let mut names = open.clone();
            names.sort_unstable_by_key(|name| name.0 & (MINE - 1));
            assert_eq!(handled.names_in_flight(), names);
        }
        assert_eq!(handled.entries.len(), 8);
    }

    #[test]
    fn operations_of_a_dropped_driver_have_no_completion() {
        let mut handled = Handled::default();
        let old = handled.open(1, PEER, Some(RegionId(7)));
        handled.abandon();
        let new = handled.open(2, PEER, None);
        let over = handled.close(old);
        assert_eq!(over, Some(Over { context: None, peer: PEER, uses: Some(RegionId(7)), is_posted: false }));
        assert_eq!(handled.close(new).and_then(|over| over.context), Some(2));
    }
}
