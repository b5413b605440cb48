//! Trace of one rank: its nodes as operations.

use std::collections::HashMap;

use prost::Message as _;
use rackloom_collectives::CollectiveKind;

use crate::error::{Place, WorkloadError};
use crate::import::chakra::groups::Groups;
use crate::import::chakra::messages::Node;
use crate::import::chakra::records::Records;
use crate::import::notes::Notes;
use crate::import::order::{self, Ordered, Stuck};
use crate::machine::Machine;
use crate::model::Work;

/// Nodes of one rank.
#[derive(Debug, Default)]
pub(super) struct Trace {
    nodes: Vec<order::Node>,
    /// Identity of each node.
    ids: Vec<u64>,
    /// Dependencies of each node, by identity.
    dependencies: Vec<Dependencies>,
}

/// Dependencies of a node, by identity.
#[derive(Debug)]
struct Dependencies {
    /// Data that it needs.
    data: Vec<u64>,
    /// Its caller. A callee often ends before its caller, so these count only in a trace without others.
    control: Vec<u64>,
}

/// State that nodes of all ranks share.
pub(super) struct Shared<'s, 'o> {
    /// Machine for computations of which the trace has no duration.
    pub(super) machine: &'s Machine,
    /// Groups of collectives.
    pub(super) groups: &'s mut Groups<'o>,
    /// Notes.
    pub(super) notes: &'s mut Notes,
}

const CONTROL_NOTE: &str =
    "control dependencies that are left out: on missing nodes, or of a trace with data dependencies";

/// Reason and hint.
type Refused = (String, &'static str);

impl Trace {
    /// Reads the file of a rank. The first record is metadata.
    pub(super) fn read(bytes: &[u8], rank: u16, shared: &mut Shared<'_, '_>) -> Result<Self, WorkloadError> {
        let mut trace = Self::default();
        for record in Records::new(bytes) {
            let (number, bytes) = record?;
            if number > 0 {
                let added = trace.add(bytes, rank, shared);
                added.map_err(|(reason, hint)| {
                    WorkloadError::at(Place::Record { record: number }, reason, hint)
                })?;
            }
        }
        Ok(trace)
    }

    fn add(&mut self, bytes: &[u8], rank: u16, shared: &mut Shared<'_, '_>) -> Result<(), Refused> {
        let node = Node::decode(bytes).map_err(|error| {
            (format!("the record is no node: {error}"), "the file is damaged, or is no Chakra trace")
        })?;
        let work = work(&node, rank, shared)
            .map_err(|(reason, hint)| (format!("node {}: {reason}", node.id), hint))?;
        let work = work.map(|work| (0, work));
        self.nodes.push(order::Node { work, ..order::Node::default() });
        self.ids.push(node.id);
        self.dependencies
            .push(Dependencies { data: node.data_dependencies, control: node.control_dependencies });
        Ok(())
    }

    /// Returns the operations in order.
    pub(super) fn ordered(mut self, notes: &mut Notes) -> Result<Ordered, WorkloadError> {
        let mut indices = HashMap::new();
        for (index, id) in (0..).zip(&self.ids) {
            if let Some(first) = indices.insert(*id, index) {
                let reason = format!("node {id} is in the trace twice, also in {}", place(first));
                return Err(WorkloadError::at(place(index), reason, "give each node an identity of its own"));
            }
        }
        let uses_control = self.dependencies.iter().all(|one| one.data.is_empty());
        for (index, Dependencies { data, control }) in self.dependencies.iter().enumerate() {
            for id in data {
                let Some(earlier) = indices.get(id) else {
                    let reason = format!(
                        "node {} depends on node {id}, which the trace does not have",
                        self.ids[index]
                    );
                    let hint = "export the whole trace, or remove the dependency";
                    return Err(WorkloadError::at(place(index as u32), reason, hint));
                };
                self.nodes[index].after.push(*earlier);
            }
            for id in control {
                match indices.get(id).filter(|_| uses_control) {
                    Some(earlier) => self.nodes[index].after.push(*earlier),
                    None => notes.count(CONTROL_NOTE),
                }
            }
        }
        order::ordered(&self.nodes).map_err(|stuck| self.stuck(&stuck))
    }

    fn stuck(&self, stuck: &Stuck) -> WorkloadError {
        let Stuck::Circle(circle) = stuck else {
            return WorkloadError::whole("a rank has too many dependencies", "cut the trace");
        };
        let shown: Vec<_> = circle.iter().take(8).map(|node| self.ids[*node as usize].to_string()).collect();
        let more = if circle.len() > 8 { " -> ..." } else { "" };
        let reason =
            format!("{} nodes depend on each other in a circle: {}{more}", circle.len(), shown.join(" -> "));
        let first = circle.iter().min().copied().unwrap_or(0);
        WorkloadError::at(place(first), reason, "remove one of their dependencies")
    }
}

/// Returns the record of a node.
pub(super) fn place(node: u32) -> Place {
    Place::Record { record: u64::from(node) + 1 }
}

/// Returns the work of a node, or `None` if it does nothing.
fn work(node: &Node, rank: u16, shared: &mut Shared<'_, '_>) -> Result<Option<Work>, Refused> {
    match node.kind {
        // The call of a collective by a processor; a node of the device follows.
        2..=7 if node.is_true("is_cpu_op") => {
            shared.notes.count("operations of processors that take no time here");
            Ok(None)
        }
        2..=4 => compute(node, shared),
        5 => message(node, rank, "comm_dst").map(|(to, bytes, tag)| Some(Work::Send { to, bytes, tag })),
        6 => {
            message(node, rank, "comm_src").map(|(from, bytes, tag)| Some(Work::Receive { from, bytes, tag }))
        }
        7 => collective(node, rank, shared),
        0 | 1 | 8..=10 => {
            shared.notes.count("nodes of metadata, storage, batches and checkpoints that do nothing");
            Ok(None)
        }
        other => Err((format!("there is no type {other} of a node"), "types are 0 to 10; convert the trace")),
    }
}

/// Returns the computation of a node, or the time of its memory access.
fn compute(node: &Node, shared: &mut Shared<'_, '_>) -> Result<Option<Work>, Refused> {
    const HINT: &str = "correct the attribute";
    if node.duration_micros > 0 {
        let duration_ns = node.duration_micros.checked_mul(1_000);
        let duration_ns = duration_ns.ok_or(("its duration does not fit in 64 bits".to_owned(), HINT))?;
        return Ok(Some(Work::Compute { duration_ns }));
    }
    let number =
        |name: &str| node.number(name).map_err(|reason| (reason, HINT)).map(Option::unwrap_or_default);
    let (operations, bytes) = (number("num_ops")?, number("tensor_size")?);
    if operations == 0 && bytes == 0 {
        shared.notes.count("computations without duration, num_ops and tensor_size that take no time");
        return Ok(None);
    }
    shared.notes.count(match shared.machine.rates {
        Some(_) => "computations whose duration follows from num_ops and tensor_size",
        None => "computations that are stated by num_ops and tensor_size, for the device of a rack",
    });
    Ok(Some(shared.machine.compute(operations.into(), bytes.into())))
}

/// Returns peer, bytes and tag of a message. `peer` is the attribute of the other end.
fn message(node: &Node, rank: u16, peer: &str) -> Result<(u16, u64, u32), Refused> {
    const HINT: &str = "a message has comm_src, comm_dst, comm_size and comm_tag";
    let number = |name: &str| node.number(name).map_err(|reason| (reason, HINT));
    let missing = |name: &str| (format!("its {name} is missing"), HINT);
    let own = if peer == "comm_dst" { "comm_src" } else { "comm_dst" };
    if number(own)?.is_some_and(|own| own != u64::from(rank)) {
        return Err((format!("its {own} is not the rank {rank} of the file"), HINT));
    }
    let other = number(peer)?.ok_or_else(|| missing(peer))?;
    let other = u16::try_from(other).map_err(|_| (format!("there is no rank {other}"), HINT))?;
    let bytes = match number("comm_size")? {
        Some(bytes) => bytes,
        None => number("tensor_size")?.ok_or_else(|| missing("comm_size"))?,
    };
    let tag = number("comm_tag")?.unwrap_or(0);
    let tag =
        u32::try_from(tag).map_err(|_| (format!("its comm_tag {tag} does not fit in 32 bits"), HINT))?;
    Ok((other, bytes, tag))
}

fn collective(node: &Node, rank: u16, shared: &mut Shared<'_, '_>) -> Result<Option<Work>, Refused> {
    const HINT: &str = "a collective has comm_type from 0 to 9, and comm_size";
    let number = |name: &str| node.number(name).map_err(|reason| (reason, HINT));
    let kind = number("comm_type")?
        .and_then(kind)
        .ok_or(("its comm_type is unknown or missing".to_owned(), HINT))?;
    let Some(group) = shared.groups.of(node, rank, shared.notes)? else { return Ok(None) };
    let ranks = shared.groups.list[usize::from(group)].ranks.len() as u64;
    let bytes = match kind {
        CollectiveKind::Barrier => 0,
        _ => number("comm_size")?.ok_or(("its comm_size is missing".to_owned(), HINT))?,
    };
    // The size is that of a rank's input; a workload states the whole array.
    let parts = if matches!(kind, CollectiveKind::AllGather | CollectiveKind::Gather) { ranks } else { 1 };
    let bytes = bytes.checked_mul(parts).ok_or(("its array does not fit in 64 bits".to_owned(), HINT))?;
    let root = match number("root_rank")?.filter(|_| kind.has_root()) {
        None => 0,
        Some(root) => shared
            .groups
            .position(group, root)
            .ok_or_else(|| (format!("its root_rank {root} is no member of its group"), HINT))?,
    };
    Ok(Some(Work::Collective { group, kind, bytes, root }))
}

/// Returns the kind with a number of `CollectiveCommType`.
const fn kind(number: u64) -> Option<CollectiveKind> {
    Some(match number {
        0 => CollectiveKind::AllReduce,
        1 => CollectiveKind::Reduce,
        2 => CollectiveKind::AllGather,
        3 => CollectiveKind::Gather,
        4 => CollectiveKind::Scatter,
        5 => CollectiveKind::Broadcast,
        6 => CollectiveKind::AllToAll,
        7 | 8 => CollectiveKind::ReduceScatter,
        9 => CollectiveKind::Barrier,
        _ => return None,
    })
}
