//! Agreement of collectives: the n-th collective of a group is of one kind, size and root at all of its ranks.

use std::collections::HashMap;

use crate::check::describe;
use crate::check::nodes::{NONE, Numbers};
use crate::check::report::Report;
use crate::error::WorkloadError;
use crate::model::{Work, Workload};

/// Participation of one rank in a collective. The order of the fields is the order of the sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Call {
    group: u16,
    /// Number of the collective within its group.
    turn: u32,
    number: u32,
}

/// Collectives of all groups, in the order of groups and, within a group, of time.
#[derive(Debug, Default)]
pub(super) struct Instances {
    calls: Vec<Call>,
    /// First call of each instance, and the end.
    starts: Vec<usize>,
    /// For each operation its instance, or [`NONE`].
    of: Vec<u32>,
}

impl Instances {
    /// Returns the number of instances.
    pub(super) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the instance of an operation, if it is a collective.
    pub(super) fn of(&self, number: u32) -> Option<u32> {
        Some(self.of[number as usize]).filter(|instance| *instance != NONE)
    }

    /// Returns the instance that precedes another one in its group.
    pub(super) fn before(&self, instance: u32) -> Option<u32> {
        let first = &self.calls[self.starts[instance as usize]];
        (first.turn > 0).then(|| instance - 1)
    }

    /// Returns the operations of an instance.
    pub(super) fn operations(&self, instance: usize) -> impl Iterator<Item = u32> {
        self.calls[self.starts[instance]..self.starts[instance + 1]].iter().map(|call| call.number)
    }
}

/// Returns the instances. Adds ranks that miss a collective, and collectives that differ, to the report.
pub(super) fn agreed(workload: &Workload, numbers: &Numbers, report: &mut Report) -> Instances {
    let mut calls = calls(workload, numbers);
    calls.sort_unstable();
    let mut instances = Instances { calls: Vec::new(), starts: vec![0], of: vec![NONE; numbers.count()] };
    for same in calls.chunk_by(|one, other| (one.group, one.turn) == (other.group, other.turn)) {
        let index = instances.count() as u32;
        same.iter().for_each(|call| instances.of[call.number as usize] = index);
        instances.starts.push(instances.starts[index as usize] + same.len());
        check_instance(workload, numbers, same, report);
    }
    instances.calls = calls;
    instances
}

fn calls(workload: &Workload, numbers: &Numbers) -> Vec<Call> {
    let mut calls = Vec::new();
    for (rank, operations) in workload.ranks.iter().enumerate() {
        let mut turns = HashMap::<u16, u32>::new();
        for (index, operation) in operations.operations().iter().enumerate() {
            if let Work::Collective { group, .. } = operation.work {
                let turn = turns.entry(group).or_default();
                calls.push(Call { group, turn: *turn, number: numbers.number(rank, index) });
                *turn += 1;
            }
        }
    }
    calls
}

/// Compares the calls of one instance. They are in the order of ranks, and there is at least one.
fn check_instance(workload: &Workload, numbers: &Numbers, calls: &[Call], report: &mut Report) {
    let Some(first) = calls.first().filter(|_| !report.is_full()) else { return };
    let expected = &numbers.operation(workload, first.number).work;
    for call in calls {
        let work = &numbers.operation(workload, call.number).work;
        if work != expected && !report.is_full() {
            report.add(differs(workload, numbers, (first, call)));
        }
    }
    let members = &workload.groups[usize::from(first.group)].ranks;
    if calls.len() != members.len() {
        report.add(missing(numbers, calls, members));
    }
}

fn differs(workload: &Workload, numbers: &Numbers, (first, call): (&Call, &Call)) -> WorkloadError {
    let Call { group, turn, .. } = call;
    let own = describe::work(&numbers.operation(workload, call.number).work);
    let other = describe::operation(workload, numbers.place(first.number));
    let reason =
        format!("collective {turn} of group {group} differs: here it is {own}, and {other} precedes it");
    let hint = "the ranks of a group perform its collectives in one order, with equal kind, bytes and root";
    numbers.error(call.number, reason, hint)
}

fn missing(numbers: &Numbers, calls: &[Call], members: &[u16]) -> WorkloadError {
    let Call { group, turn, number } = calls[0];
    let present: Vec<_> = calls.iter().map(|call| numbers.place(call.number).0).collect();
    let absent = members.iter().find(|rank| present.binary_search(&usize::from(**rank)).is_err());
    let absent = absent.map_or_else(String::new, |rank| format!("rank {rank} has no such operation; "));
    let reason = format!(
        "collective {turn} of group {group} lacks ranks: {absent}{} of {} ranks have it",
        calls.len(),
        members.len()
    );
    numbers.error(number, reason, "each rank of a group performs each of its collectives")
}
