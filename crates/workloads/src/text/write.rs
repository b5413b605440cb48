//! A workload as text.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::model::{Operation, RankOperations, Work, Workload};
use crate::ranks;
use crate::text::quantity::{write_flops, write_size, write_time};

/// Returns a workload as text. If it satisfies [`check`](crate::check()), [`read`](crate::text::read()) returns an equal one.
#[must_use]
pub fn write(workload: &Workload) -> String {
    let mut text = heading(workload);
    for (ranks, operations) in blocks(workload) {
        text.push_str("rank ");
        text.push_str(&ranks::write(&ranks));
        text.push('\n');
        text.push_str(&operations);
    }
    text
}

fn heading(workload: &Workload) -> String {
    let mut text = String::new();
    if !workload.name.is_empty() {
        text.push_str(&format!("workload {}\n", workload.name));
    }
    text.push_str(&format!("ranks {}\n", workload.ranks.len()));
    for phase in &workload.phases {
        text.push_str(&format!("phase {phase}\n"));
    }
    for group in &workload.groups {
        text.push_str(&format!("group {}\n", ranks::write(&group.ranks)));
    }
    text
}

/// Returns the distinct lists of operations that are not empty, each with its ranks, in the order of their first rank.
fn blocks(workload: &Workload) -> Vec<(Vec<u16>, String)> {
    let mut blocks: Vec<Vec<u16>> = Vec::new();
    let mut known = HashMap::new();
    let mut previous: Option<(&RankOperations, usize)> = None;
    for (rank, operations) in workload.ranks.iter().enumerate() {
        if !operations.operations().is_empty() {
            // Ranks of one block often share their list, and are then found equal at once.
            let index = match previous {
                Some((other, index)) if other == operations => index,
                _ => *known.entry(block(workload, operations)).or_insert(blocks.len()),
            };
            previous = Some((operations, index));
            if index == blocks.len() {
                blocks.push(Vec::new());
            }
            blocks[index].push(rank as u16);
        }
    }
    let mut texts: Vec<_> = known.into_iter().collect();
    texts.sort_unstable_by_key(|(_, index)| *index);
    blocks.into_iter().zip(texts).map(|(ranks, (text, _))| (ranks, text)).collect()
}

/// Returns the lines of one rank.
fn block(workload: &Workload, operations: &RankOperations) -> String {
    let mut text = String::new();
    let mut phase = 0;
    for (index, operation) in operations.operations().iter().enumerate() {
        if operation.phase != phase {
            phase = operation.phase;
            let name = workload.phases.get(usize::from(phase)).map_or("", String::as_str);
            text.push_str(&format!("in {name}\n"));
        }
        line(&mut text, operation, operations.dependencies(operation), index);
    }
    text
}

fn line(text: &mut String, operation: &Operation, dependencies: &[u32], index: usize) {
    text.push_str(&work(&operation.work));
    for (position, dependency) in dependencies.iter().enumerate() {
        let word = if position == 0 { " after" } else { "" };
        let distance = index as i64 - i64::from(*dependency);
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{word} -{distance}");
    }
    text.push('\n');
}

fn work(work: &Work) -> String {
    let tagged = |tag: u32| if tag == 0 { String::new() } else { format!(" tag {tag}") };
    match *work {
        Work::Compute { duration_ns } => format!("compute {}", write_time(duration_ns)),
        Work::Kernel { flops, bytes: 0 } => format!("compute {}", write_flops(flops)),
        Work::Kernel { flops, bytes } => format!("compute {} {}", write_flops(flops), write_size(bytes)),
        Work::Send { to, bytes, tag } => format!("send {to} {}{}", write_size(bytes), tagged(tag)),
        Work::Receive { from, bytes, tag } => format!("receive {from} {}{}", write_size(bytes), tagged(tag)),
        Work::Collective { group, kind, bytes, root } => {
            let bytes = if kind.moves_data() { format!(" {}", write_size(bytes)) } else { String::new() };
            let root = if kind.has_root() { format!(" root {root}") } else { String::new() };
            format!("{kind} group {group}{bytes}{root}")
        }
    }
}
