//! Connections that each connection waits for, from triggers.
//!
//! A workload waits for all of some operations, and never for the first of several. So a trigger with one activation and a barrier of
//! all its activations can be expressed. Activations of a multishot trigger take the order of the file, because their order in time is
//! not known.

use std::collections::BTreeMap;

use crate::error::WorkloadError;
use crate::import::connections::lines::{Connection, Kind, Trigger};

/// End of a connection, at its sender or its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// Index of the connection.
    pub(super) connection: usize,
    /// True for the end at the receiver.
    pub(super) is_receive: bool,
}

/// Connections that begin after some ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// Ends that are waited for, at least one.
    pub(super) after: Vec<End>,
    /// Indices of the connections, at least one.
    pub(super) connections: Vec<usize>,
}

/// Trigger with its activations and targets, in the order of the file.
#[derive(Debug, Default)]
struct Use {
    trigger: Option<Trigger>,
    /// First line that names the trigger.
    line: usize,
    activations: Vec<End>,
    targets: Vec<usize>,
}

/// Returns the starts of all connections that wait for triggers.
pub(super) fn starts(connections: &[Connection], triggers: &[Trigger]) -> Result<Vec<Start>, WorkloadError> {
    let mut starts = Vec::new();
    for (id, used) in uses(connections, triggers)? {
        starts.extend(starts_of(id, used)?);
    }
    Ok(starts)
}

fn uses(connections: &[Connection], triggers: &[Trigger]) -> Result<BTreeMap<u32, Use>, WorkloadError> {
    let mut uses = BTreeMap::<u32, Use>::new();
    for trigger in triggers {
        let used = uses.entry(trigger.id).or_default();
        if used.trigger.is_some() {
            let reason = format!("trigger {} is stated twice", trigger.id);
            return Err(WorkloadError::line(trigger.line, 1, reason, "leave one of them out"));
        }
        (used.trigger, used.line) = (Some(*trigger), trigger.line);
    }
    for (index, connection) in connections.iter().enumerate() {
        let mut of = |id: Option<u32>, add: &mut dyn FnMut(&mut Use)| {
            if let Some(id) = id {
                let used = uses.entry(id).or_insert_with(|| Use { line: connection.line, ..Use::default() });
                add(used);
            }
        };
        let end = |is_receive: bool| End { connection: index, is_receive };
        of(connection.trigger, &mut |used: &mut Use| used.targets.push(index));
        of(connection.send_done, &mut |used: &mut Use| used.activations.push(end(false)));
        of(connection.receive_done, &mut |used: &mut Use| used.activations.push(end(true)));
    }
    Ok(uses)
}

fn starts_of(id: u32, used: Use) -> Result<Vec<Start>, WorkloadError> {
    let Use { trigger, line, activations, targets } = used;
    let count = activations.len();
    let refused = |reason: String, hint: &str| Err(WorkloadError::line(line, 1, reason, hint));
    let Some(trigger) = trigger else {
        return refused(format!("there is no trigger {id}"), "add a line like `trigger id 1 oneshot`");
    };
    if targets.is_empty() {
        return Ok(Vec::new());
    }
    match trigger.kind {
        Kind::OneShot if count == 1 => Ok(vec![Start { after: activations, connections: targets }]),
        Kind::OneShot => refused(
            format!(
                "trigger {id} fires after the first of {count} ends, and a workload waits for all or none"
            ),
            "let one connection activate it, or use a barrier of all",
        ),
        Kind::Barrier { count: wanted } if wanted == count as u64 => {
            Ok(vec![Start { after: activations, connections: targets }])
        }
        Kind::Barrier { count: wanted } => refused(
            format!("barrier {id} fires after {wanted} activations, and {count} connections activate it"),
            "state the number of connections that name the barrier",
        ),
        Kind::MultiShot if count < targets.len() => refused(
            format!("trigger {id} starts {} connections, and {count} activate it", targets.len()),
            "each activation starts one connection; add activations",
        ),
        Kind::MultiShot => {
            let pairs = activations.into_iter().zip(targets);
            Ok(pairs.map(|(end, target)| Start { after: vec![end], connections: vec![target] }).collect())
        }
    }
}
