//! Workload with everything that all ranks derive from it equally: channels, lanes, and the memory of each rank.
//!
//! The ranks of a process share it. Every process computes the same from the same workload, so a sender knows the words of
//! its receiver without a message.

use std::collections::HashMap;

use rackloom_plan::DeviceModel;
use rackloom_workloads::{RankOperations, Work, Workload, check_durations};

use super::durations;
use super::error::WorkloadError;
use super::lanes::{Choose, Lane, Lanes, Shape};
use super::layout::MemoryNeed;
use crate::ranks::Rank;

/// Rack on which a workload is prepared. Lists are by rank.
#[derive(Clone, Copy)]
pub(crate) struct Rack<'a> {
    /// GPU nodes.
    pub(crate) ranks: &'a [Rank],
    /// Memory of each node, in bytes.
    pub(crate) memory_bytes: &'a [u64],
    /// Device of each node.
    pub(crate) devices: &'a [DeviceModel],
    /// Server of each node; empty if each has its own.
    pub(crate) servers: &'a [usize],
    /// Choice of algorithms.
    pub(crate) choose: Choose<'a>,
}

/// Workload that a rack can perform. It is shared by all ranks of a process.
#[derive(Debug)]
pub struct Prepared {
    /// The workload, with an entry for each GPU node of the rack. All of its computations are durations.
    pub(super) workload: Workload,
    /// Ranks that the workload states. The rack may have more nodes.
    pub(super) ranks_stated: usize,
    /// Tables by rank.
    pub(super) tables: Vec<RankTable>,
    pub(super) lanes: Vec<Lane>,
}

/// Channels, queues and memory of one rank.
#[derive(Debug, Default)]
pub(super) struct RankTable {
    /// Position of each operation in its channel or queue. The role of a computation has no meaning.
    pub(super) roles: Vec<Role>,
    pub(super) outgoing: Vec<Outgoing>,
    /// Channels to this rank. The index is that of the word.
    pub(super) incoming: Vec<Incoming>,
    /// Collectives by group of the rank.
    pub(super) queues: Vec<Queue>,
    /// Lanes of the rank.
    pub(super) lanes: Vec<OwnLane>,
    pub(super) need: MemoryNeed,
    /// Bytes of all messages and transfers to this rank.
    pub(super) due_bytes: u64,
}

/// Position of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Role {
    /// Index of the channel or of the queue.
    pub(super) queue: u32,
    /// Number of earlier operations there.
    pub(super) number: u32,
}

/// Channel from this rank: messages to one receiver with one tag.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) to: u16,
    tag: u32,
    /// Offset of the word at the receiver, in bytes.
    pub(super) word_offset: u64,
    /// Sends in their order.
    pub(super) operations: Vec<u32>,
}

/// Channel to this rank: messages of one sender with one tag.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) from: u16,
    pub(super) tag: u32,
    /// Number of messages that the sender sends.
    pub(super) sent: u64,
    /// Receives in their order.
    pub(super) operations: Vec<u32>,
}

/// Collectives of one group at one rank.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Collectives in their order.
    pub(super) turns: Vec<Turn>,
}

/// Collective at its position in the order of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) operation: u32,
    pub(super) lane: u32,
    /// Position of the rank in the group.
    pub(super) position: u32,
    /// Number of this run on the lane, from 1.
    pub(super) run: u64,
}

/// Lane at one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnLane {
    pub(super) lane: u32,
    /// Position of the rank in the group.
    pub(super) position: u32,
}

impl Prepared {
    /// Prepares a workload for a rack.
    ///
    /// # Errors
    /// The workload contradicts itself or does not fit the rack.
    pub(crate) fn new(mut workload: Workload, rack: Rack<'_>) -> Result<Self, WorkloadError> {
        if let Err(errors) = rackloom_workloads::check(&workload)
            && let Some(first) = errors.into_iter().next()
        {
            return Err(WorkloadError::Inconsistent { name: workload.name, first });
        }
        let (ranks, nodes) = (workload.ranks.len(), rack.ranks.len());
        if ranks > nodes {
            return Err(WorkloadError::TooManyRanks { name: workload.name, ranks, nodes });
        }
        if rack.ranks.iter().take(ranks).any(|rank| rank.tenant != rack.ranks[0].tenant) {
            return Err(WorkloadError::SeveralTenants);
        }
        workload.ranks.resize_with(nodes, RankOperations::default);
        durations::state(&mut workload, rack.ranks, rack.devices)?;
        if let Err(first) = check_durations(&workload) {
            return Err(WorkloadError::Inconsistent { name: workload.name, first });
        }
        let mut tables = channels(&workload);
        let lanes = queues(&workload, &mut tables, rack)?;
        for (rank, table) in tables.iter_mut().enumerate() {
            table.measure(&workload.ranks[rank], &lanes);
        }
        let prepared = Self { workload, ranks_stated: ranks, tables, lanes };
        prepared.must_fit(rack)?;
        Ok(prepared)
    }

    /// Returns the name of the workload.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.workload.name
    }

    /// Returns lines that name the algorithms of the collectives, in alphabetical order.
    pub(super) fn algorithms(&self) -> Vec<String> {
        let of_lane = |lane: &Lane| {
            let schedule = &lane.scheduled.schedule;
            format!("{} of {} ranks by {}", schedule.collective.name(), schedule.ranks(), schedule.algorithm)
        };
        let mut lines: Vec<_> = self.lanes.iter().map(of_lane).collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// Returns the schedules of the workload's collectives.
    pub(crate) fn schedules(&self) -> impl Iterator<Item = &rackloom_collectives::Schedule> {
        self.lanes.iter().map(|lane| &lane.scheduled.schedule)
    }

    fn must_fit(&self, rack: Rack<'_>) -> Result<(), WorkloadError> {
        let nodes = self.tables.iter().zip(rack.memory_bytes).zip(rack.ranks);
        for ((table, memory_bytes), rank) in nodes {
            if table.need.total_bytes() > *memory_bytes {
                let (node, need, memory_bytes) = (rank.name.clone(), table.need, *memory_bytes);
                return Err(WorkloadError::TooLarge { node, need, memory_bytes });
            }
        }
        Ok(())
    }
}

/// Returns the tables of all ranks with their channels.
fn channels(workload: &Workload) -> Vec<RankTable> {
    let mut tables: Vec<_> = workload.ranks.iter().map(outgoing).collect();
    let mut words: Vec<HashMap<(u16, u32), u32>> = vec![HashMap::new(); tables.len()];
    for rank in 0..tables.len() {
        let mut own = std::mem::take(&mut tables[rank].outgoing);
        for channel in &mut own {
            let receiver = usize::from(channel.to);
            let sent = channel.operations.len() as u64;
            let incoming = Incoming { from: rank as u16, tag: channel.tag, sent, operations: Vec::new() };
            let word = tables[receiver].incoming.len() as u32;
            words[receiver].insert((rank as u16, channel.tag), word);
            tables[receiver].incoming.push(incoming);
            channel.word_offset = 8 * u64::from(word);
        }
        tables[rank].outgoing = own;
    }
    for ((table, operations), words) in tables.iter_mut().zip(&workload.ranks).zip(&mut words) {
        table.add_receives(operations, words);
    }
    tables
}

/// Returns the table of a rank with its sends.
fn outgoing(operations: &RankOperations) -> RankTable {
    let mut known = HashMap::<(u16, u32), u32>::new();
    let mut table =
        RankTable { roles: vec![Role::default(); operations.operations().len()], ..RankTable::default() };
    for (index, operation) in (0_u32..).zip(operations.operations()) {
        let Work::Send { to, tag, .. } = operation.work else { continue };
        let queue = *known.entry((to, tag)).or_insert_with(|| {
            table.outgoing.push(Outgoing { to, tag, word_offset: 0, operations: Vec::new() });
            table.outgoing.len() as u32 - 1
        });
        let sends = &mut table.outgoing[queue as usize].operations;
        table.roles[index as usize] = Role { queue, number: sends.len() as u32 };
        sends.push(index);
    }
    table
}

/// Gives every rank the queues of its groups. Returns the lanes.
fn queues(workload: &Workload, tables: &mut [RankTable], rack: Rack<'_>) -> Result<Vec<Lane>, WorkloadError> {
    let mut lanes = Lanes::new(&workload.groups, tables.len(), rack.servers, rack.choose);
    let positions: HashMap<(u16, u16), u32> = (0_u16..)
        .zip(&workload.groups)
        .flat_map(|(group, of)| (0..).zip(&of.ranks).map(move |(position, rank)| ((group, *rank), position)))
        .collect();
    for (rank, operations) in workload.ranks.iter().enumerate() {
        let mut runs = HashMap::<u32, u64>::new();
        let mut of_group = HashMap::<u16, u32>::new();
        for (index, operation) in (0_u32..).zip(operations.operations()) {
            let Work::Collective { group, kind, bytes, root } = operation.work else { continue };
            let Some(position) = positions.get(&(group, rank as u16)).copied() else { continue };
            let lane = lanes.lane(Shape { group, kind, bytes, root })?;
            let table = &mut tables[rank];
            let run = runs.entry(lane).or_default();
            *run += 1;
            if *run == 1 {
                table.lanes.push(OwnLane { lane, position });
            }
            let all = &mut lanes.lanes[lane as usize].runs;
            *all = (*all).max(*run);
            let queue = *of_group.entry(group).or_insert_with(|| {
                table.queues.push(Queue::default());
                table.queues.len() as u32 - 1
            });
            let turns = &mut table.queues[queue as usize].turns;
            table.roles[index as usize] = Role { queue, number: turns.len() as u32 };
            turns.push(Turn { operation: index, lane, position, run: *run });
        }
    }
    for (table, signal_bytes) in tables.iter_mut().zip(&lanes.signal_bytes) {
        table.need.signal_bytes = *signal_bytes;
    }
    Ok(lanes.lanes)
}

impl RankTable {
    fn add_receives(&mut self, operations: &RankOperations, words: &mut HashMap<(u16, u32), u32>) {
        for (index, operation) in (0_u32..).zip(operations.operations()) {
            let Work::Receive { from, tag, .. } = operation.work else { continue };
            let incoming = &mut self.incoming;
            let queue = *words.entry((from, tag)).or_insert_with(|| {
                incoming.push(Incoming { from, tag, sent: 0, operations: Vec::new() });
                incoming.len() as u32 - 1
            });
            let receives = &mut incoming[queue as usize].operations;
            self.roles[index as usize] = Role { queue, number: receives.len() as u32 };
            receives.push(index);
        }
    }

    /// Sums up the memory that the rank needs and the bytes that it receives.
    fn measure(&mut self, operations: &RankOperations, lanes: &[Lane]) {
        let need = &mut self.need;
        need.count_bytes = 8 * self.incoming.len() as u64;
        for operation in operations.operations() {
            match operation.work {
                Work::Send { bytes, .. } => need.source_bytes = need.source_bytes.max(bytes),
                Work::Receive { bytes, .. } => {
                    need.inbox_bytes = need.inbox_bytes.max(bytes);
                    self.due_bytes = self.due_bytes.saturating_add(bytes);
                }
                Work::Compute { .. } | Work::Kernel { .. } | Work::Collective { .. } => {}
            }
        }
        for own in &self.lanes {
            let lane = &lanes[own.lane as usize];
            let flow = lane.scheduled.flows[own.position as usize];
            need.source_bytes = need.source_bytes.max(flow.sent_max);
            need.inbox_bytes = need.inbox_bytes.max(flow.received_max);
            self.due_bytes = self.due_bytes.saturating_add(flow.received_bytes.saturating_mul(lane.runs));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackloom_collectives::Algorithm;
    use rackloom_protocol::Tenant;
    use rackloom_workloads::text;

    const TEXT: &str = "workload w\nranks 3\ngroup 0..2\n\
        rank 0\nsend 2 100B tag 5\nsend 2 7B\nsend 2 100B tag 5 after -2\nall-reduce group 0 300B\nall-reduce group 0 300B after -1\n\
        rank 1\nsend 2 9B\nall-reduce group 0 300B\nall-reduce group 0 300B\n\
        rank 2\nreceive 1 9B\nreceive 0 100B tag 5\nreceive 0 100B tag 5\nreceive 0 7B\nall-reduce group 0 300B\nall-reduce group 0 300B\n";

    fn prepared(nodes: usize, memory_bytes: u64) -> Result<Prepared, WorkloadError> {
        let workload = text::read(TEXT, "w").unwrap_or_else(|errors| panic!("{errors}"));
        let rank = |number| Rank { name: format!("n{number}"), tenant: Tenant(0) };
        let ranks: Vec<_> = (0..nodes).map(rank).collect();
        let memory_bytes = vec![memory_bytes; nodes];
        let devices = vec![DeviceModel::default(); nodes];
        let rack = Rack {
            ranks: &ranks,
            memory_bytes: &memory_bytes,
            devices: &devices,
            servers: &[],
            choose: &|_| Ok(Algorithm::Ring),
        };
        Prepared::new(workload, rack)
    }

    #[test]
    fn a_sender_knows_the_words_of_its_receiver() {
        let prepared = prepared(4, 1 << 20).unwrap();
        let [first, second, third, idle] = &prepared.tables[..] else { panic!("four nodes") };
        let out = |table: &RankTable| -> Vec<(u16, u64, Vec<u32>)> {
            let channels = table.outgoing.iter();
            channels.map(|channel| (channel.to, channel.word_offset, channel.operations.clone())).collect()
        };
        assert_eq!(out(first), [(2, 0, vec![0, 2]), (2, 8, vec![1])]);
        assert_eq!(out(second), [(2, 16, vec![0])]);
        let channels: Vec<_> =
            third.incoming.iter().map(|one| (one.from, one.tag, one.sent, &one.operations[..])).collect();
        assert_eq!(channels, [(0, 5, 2, &[1, 2][..]), (0, 0, 1, &[3]), (1, 0, 1, &[0])]);
        assert_eq!(third.roles[2], Role { queue: 0, number: 1 });
        assert!(idle.roles.is_empty() && idle.need == MemoryNeed::default());
    }

    #[test]
    fn collectives_of_a_group_have_an_order_and_runs() {
        let prepared = prepared(3, 1 << 20).unwrap();
        let turn = |operation, run| Turn { operation, lane: 0, position: 2, run };
        assert_eq!(prepared.tables[2].queues[0].turns, [turn(4, 1), turn(5, 2)]);
        assert_eq!((prepared.lanes.len(), prepared.lanes[0].runs), (1, 2));
        assert_eq!(prepared.algorithms(), ["all-reduce of 3 ranks by ring"]);
    }

    #[test]
    fn memory_holds_the_longest_message_and_a_word_for_each_channel_and_transfer() {
        let prepared = prepared(3, 1 << 20).unwrap();
        // A ring of 3 sends parts of 100 bytes, 4 times in a run.
        let need = MemoryNeed { source_bytes: 100, inbox_bytes: 100, count_bytes: 24, signal_bytes: 32 };
        assert_eq!(prepared.tables[2].need, need);
        assert_eq!(prepared.tables[2].due_bytes, 9 + 200 + 7 + 2 * 400);
        let total = need.total_bytes();
        assert!(super::tests::prepared(3, total).is_ok());
        let error = super::tests::prepared(3, total - 1).unwrap_err().to_string();
        assert!(error.contains(&format!("needs {total} bytes of memory at n2")), "{error}");
    }
}
