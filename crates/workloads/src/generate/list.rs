//! List of the operations of one rank while it is built.

use rackloom_collectives::CollectiveKind;

use crate::model::{RankOperations, Work};

/// Operations of one rank. Those of the chain run one after the other; others only wait for the chain.
#[derive(Debug, Default)]
pub(super) struct List {
    operations: RankOperations,
    /// Last operation of the chain.
    last: Option<u32>,
    phase: u16,
}

impl List {
    /// Begins a phase.
    pub(super) const fn begin(&mut self, phase: u16) {
        self.phase = phase;
    }

    /// Adds an operation to the chain.
    pub(super) fn then(&mut self, work: Work) {
        self.last = Some(self.operations.add(self.phase, work, self.last));
    }

    /// Adds an operation that waits for the chain and that the chain does not wait for.
    pub(super) fn beside(&mut self, phase: u16, work: Work) {
        self.operations.add(phase, work, self.last);
    }

    /// Adds a receive that waits for nothing. The chain waits for it.
    pub(super) fn receive(&mut self, work: Work, next: Work) {
        let received = self.operations.add(self.phase, work, []);
        let before = self.last.into_iter().chain([received]);
        self.last = Some(self.operations.add(self.phase, next, before));
    }

    /// Adds a collective to the chain, if the rank has a group.
    pub(super) fn collective(&mut self, group: Option<u16>, kind: CollectiveKind, bytes: u64) {
        if let Some(group) = group {
            self.then(collective(group, kind, bytes));
        }
    }

    /// Adds a collective beside the chain, if the rank has a group.
    pub(super) fn collective_beside(
        &mut self,
        phase: u16,
        group: Option<u16>,
        kind: CollectiveKind,
        bytes: u64,
    ) {
        if let Some(group) = group {
            self.beside(phase, collective(group, kind, bytes));
        }
    }

    /// Returns the list.
    pub(super) fn finish(self) -> RankOperations {
        self.operations
    }
}

const fn collective(group: u16, kind: CollectiveKind, bytes: u64) -> Work {
    Work::Collective { group, kind, bytes, root: 0 }
}
