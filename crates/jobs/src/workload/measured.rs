//! Measurements of one rank: when it began and ended, and what it did in each phase.

use rackloom_control::report::{PhasePart, WorkloadPart};
use rackloom_protocol::Instant;
use rackloom_workloads::RankOperations;

use super::prepared::Prepared;

/// Measurements of one rank.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    part: WorkloadPart,
}

impl Measured {
    pub(super) fn new(prepared: &Prepared, operations: &RankOperations) -> Self {
        let workload = &prepared.workload;
        let phase = |name: &String| PhasePart { name: name.clone(), ..PhasePart::default() };
        let part = WorkloadPart {
            name: workload.name.clone(),
            ranks_stated: prepared.ranks_stated as u64,
            operations: operations.operations().len() as u64,
            phases: workload.phases.iter().map(phase).collect(),
            ..WorkloadPart::default()
        };
        Self { part }
    }

    /// Records that all ranks have met, so that the workload begins.
    pub(super) fn begin(&mut self, now: Instant) {
        if self.part.operations > 0 {
            self.part.began_ns = Some(now.0);
        }
    }

    /// Records the begin of an operation of a phase.
    pub(super) fn begun(&mut self, phase: u16, now: Instant) {
        if let Some(phase) = self.part.phases.get_mut(usize::from(phase)) {
            phase.began_ns.get_or_insert(now.0);
        }
    }

    /// Records the end of an operation of a phase.
    pub(super) fn ended(&mut self, phase: u16, now: Instant) {
        self.part.operations_over += 1;
        self.part.ended_ns = Some(now.0);
        if let Some(phase) = self.part.phases.get_mut(usize::from(phase)) {
            phase.operations += 1;
            phase.ended_ns = Some(now.0);
        }
    }

    /// Records a computation.
    pub(super) fn computed(&mut self, phase: u16, duration_ns: u64) {
        self.part.compute_ns += duration_ns;
        if let Some(phase) = self.part.phases.get_mut(usize::from(phase)) {
            phase.compute_ns += duration_ns;
        }
    }

    /// Records a message or a transfer that the rank sends.
    pub(super) fn sent(&mut self, phase: u16, bytes: u64) {
        self.part.messages += 1;
        self.part.bytes += bytes;
        if let Some(phase) = self.part.phases.get_mut(usize::from(phase)) {
            phase.bytes += bytes;
        }
    }

    /// Returns the rank's part of the report.
    pub(super) fn part(&self) -> WorkloadPart {
        self.part.clone()
    }
}
