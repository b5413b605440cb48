//! References of a workload: ranks, groups, phases and earlier operations exist.
//!
//! Each operation is checked alone. Partners of messages and the order are checked elsewhere.

use crate::check::durations;
use crate::check::report::Report;
use crate::error::WorkloadError;
use crate::model::{
    GROUPS_MAX, Group, OPERATIONS_MAX, Operation, PHASES_MAX, RANKS_MAX, RankOperations, Work, Workload,
};

/// Adds each wrong reference to the report.
pub(super) fn check(workload: &Workload, report: &mut Report) {
    check_size(workload, report);
    check_names(workload, report);
    for (index, group) in workload.groups.iter().enumerate() {
        if let Err((reason, hint)) = check_group(group, workload.ranks.len()) {
            report.add(WorkloadError::whole(format!("group {index}: {reason}"), hint));
        }
    }
    let memberships = memberships(workload);
    for (rank, operations) in workload.ranks.iter().enumerate() {
        check_rank(workload, (rank, &memberships[rank]), operations, report);
    }
}

/// Returns the groups of each rank, in ascending order.
fn memberships(workload: &Workload) -> Vec<Vec<u16>> {
    let mut memberships = vec![Vec::new(); workload.ranks.len()];
    for (index, group) in workload.groups.iter().enumerate() {
        for rank in &group.ranks {
            if let Some(groups) = memberships.get_mut(usize::from(*rank)) {
                groups.push(index as u16);
            }
        }
    }
    memberships
}

/// Reason and hint.
pub(crate) type Refused = (String, &'static str);

fn check_size(workload: &Workload, report: &mut Report) {
    let ranks = workload.ranks.len();
    if ranks == 0 || ranks > RANKS_MAX {
        let reason = format!("the workload has {ranks} ranks");
        report.add(WorkloadError::whole(reason, format!("a workload has 1 to {RANKS_MAX} ranks")));
    }
    let operations: usize = workload.ranks.iter().map(|rank| rank.operations().len()).sum();
    if operations > OPERATIONS_MAX {
        let reason = format!("the workload has {operations} operations");
        report.add(WorkloadError::whole(
            reason,
            format!("at most {OPERATIONS_MAX} are checked; cut the trace"),
        ));
    }
}

fn check_names(workload: &Workload, report: &mut Report) {
    if workload.phases.len() > PHASES_MAX {
        let reason = format!("the workload has {} phases", workload.phases.len());
        return report
            .add(WorkloadError::whole(reason, format!("a workload has at most {PHASES_MAX} phases")));
    }
    if workload.groups.len() > GROUPS_MAX {
        let reason = format!("the workload has {} groups", workload.groups.len());
        return report
            .add(WorkloadError::whole(reason, format!("a workload has at most {GROUPS_MAX} groups")));
    }
    if !workload.name.is_empty() && !is_name(&workload.name) {
        let reason = format!("{:?} is no name of a workload", workload.name);
        report.add(WorkloadError::whole(reason, NAME_HINT));
    }
    for (index, phase) in workload.phases.iter().enumerate() {
        if !is_name(phase) {
            report.add(WorkloadError::whole(format!("phase {index}: {phase:?} is no name"), NAME_HINT));
        } else if let Some(first) = workload.phases[..index].iter().position(|other| other == phase) {
            let reason = format!("phases {first} and {index} are both named {phase:?}");
            report.add(WorkloadError::whole(reason, "give each phase a name of its own"));
        }
    }
}

const NAME_HINT: &str = "a name is one line without `#`, not empty, and does not begin or end with a blank";

/// Returns true if a text is one line that the text format can hold.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && !text.contains(|one: char| one.is_control() || one == '#')
}

/// Checks the members of a group, in a workload of this many ranks.
pub(crate) fn check_group(group: &Group, ranks: usize) -> Result<(), Refused> {
    if let Some(rank) = group.ranks.iter().find(|rank| usize::from(**rank) >= ranks) {
        return Err((
            format!("there is no rank {rank}"),
            "ranks count from 0; add the rank or remove it here",
        ));
    }
    let mut sorted = group.ranks.clone();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err((format!("rank {} is listed twice", pair[0]), "list each rank once"));
    }
    match group.ranks.len() {
        0 | 1 => Err((format!("it has {} ranks", group.ranks.len()), "a group has at least 2 ranks")),
        _ => Ok(()),
    }
}

/// Checks the operations of a rank with its groups.
fn check_rank(
    workload: &Workload,
    (rank, groups): (usize, &[u16]),
    operations: &RankOperations,
    report: &mut Report,
) {
    if let Some(error) = durations::beyond_limit(rank, operations) {
        report.add(error);
    }
    for (index, operation) in operations.operations().iter().enumerate() {
        if report.is_full() {
            return;
        }
        let checks = [
            check_dependencies(operations.dependencies(operation), index),
            check_phase(workload, operation),
            check_work(workload, (rank, groups), &operation.work),
        ];
        for (reason, hint) in checks.into_iter().filter_map(Result::err) {
            report.add(WorkloadError::operation(rank, index, reason, hint));
        }
    }
}

fn check_dependencies(dependencies: &[u32], index: usize) -> Result<(), Refused> {
    match dependencies.iter().find(|dependency| **dependency as usize >= index) {
        Some(later) => Err((
            format!("it depends on operation {later}, which is not an earlier one"),
            "list an operation after those that it depends on",
        )),
        None => Ok(()),
    }
}

fn check_phase(workload: &Workload, operation: &Operation) -> Result<(), Refused> {
    let (phase, phases) = (operation.phase, workload.phases.len());
    if usize::from(phase) < phases {
        return Ok(());
    }
    Err((
        format!("there is no phase {phase}; the workload has {phases}"),
        "add the phase to the list of phases",
    ))
}

fn check_work(workload: &Workload, (rank, groups): (usize, &[u16]), work: &Work) -> Result<(), Refused> {
    match *work {
        Work::Compute { .. } | Work::Kernel { .. } => Ok(()),
        Work::Send { to: peer, .. } | Work::Receive { from: peer, .. } => {
            check_peer(usize::from(peer), rank, workload.ranks.len())
        }
        Work::Collective { group, .. } => match workload.groups.get(usize::from(group)) {
            None => Err((format!("there is no group {group}"), "add the group to the list of groups")),
            Some(_) if groups.binary_search(&group).is_err() => {
                let reason = format!("rank {rank} is no member of group {group}");
                Err((reason, "add the rank to the group, or name one of its groups"))
            }
            Some(members) => check_collective(members, work),
        },
    }
}

fn check_peer(peer: usize, rank: usize, ranks: usize) -> Result<(), Refused> {
    if peer >= ranks {
        let reason = format!("there is no rank {peer}; the workload has {ranks}");
        return Err((reason, "ranks count from 0; correct the number of the peer"));
    }
    if peer == rank {
        let reason = format!("rank {rank} exchanges a message with itself");
        return Err((reason, "use a computation for a copy within a rank"));
    }
    Ok(())
}

fn check_collective(group: &Group, work: &Work) -> Result<(), Refused> {
    let Work::Collective { group: index, kind, bytes, root } = *work else { return Ok(()) };
    if usize::from(root) >= group.ranks.len() {
        let reason = format!("root {root} is beyond the {} ranks of group {index}", group.ranks.len());
        return Err((reason, "the root is a position in the group, from 0"));
    }
    if root != 0 && !kind.has_root() {
        return Err((format!("{kind} has no root"), "leave the root 0"));
    }
    if bytes != 0 && !kind.moves_data() {
        return Err((format!("{kind} carries no bytes"), "leave the bytes 0"));
    }
    Ok(())
}
