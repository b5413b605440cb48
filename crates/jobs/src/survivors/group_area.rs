//! Translation of a group's numbers to those of the rack: its ranks are renumbered, and its regions are those of its
//! own area.
//!
//! The repeated job uses the group's numbers, such as rank 1 and region 4. This module translates them to nodes and
//! regions of the rack. A area is never used twice. So a late message from a rank outside the group lands in memory
//! that is no longer used.

use rackloom_protocol::{
    Combine, Command, CommandRefused, Instant, JobMemory, LocalRange, Memory, MemoryDone, MemoryFault,
    MemoryRequest, NodeId, OperationId, RegionId, RemoteAddress, Signal,
};

use crate::job::{Carried, Seat};
use crate::ranks::JobGroup;

/// Region numbers per area. A job has fewer regions.
const REGIONS: u32 = 16;
/// Operation identifiers per area.
const FIRST_OPERATION: u64 = 1 << 48;

/// A group and its area. Area 0 belongs to the whole rack.
#[derive(Clone, Debug)]
pub(super) struct GroupArea {
    pub(super) area: u64,
    /// Ranks of the rack, indexed by rank of the group.
    pub(super) members: Vec<u16>,
}

impl GroupArea {
    /// Returns the rack's region for a region of the group.
    pub(super) fn region(&self, region: RegionId) -> RegionId {
        RegionId(region.0 + self.area as u32 * REGIONS)
    }

    /// Returns the group's identifier of an operation of the rack; `None` if the operation belongs to another area.
    pub(super) fn operation_of(&self, operation: OperationId) -> Option<OperationId> {
        (operation.0 / FIRST_OPERATION == self.area).then_some(OperationId(operation.0 % FIRST_OPERATION))
    }

    /// Returns the rank within the group of a node; `None` if the node is not a member. Area 0 has also units in switches, behind the ranks.
    pub(super) fn rank_of(&self, node: NodeId) -> Option<NodeId> {
        if self.area == 0 {
            return Some(node);
        }
        let rank = self.members.iter().position(|member| *member == node.0)?;
        Some(NodeId(rank as u16))
    }

    fn node(&self, rank: NodeId) -> NodeId {
        self.members.get(rank.index()).map_or(rank, |member| NodeId(*member))
    }

    fn operation(&self, operation: OperationId) -> OperationId {
        OperationId(operation.0 + self.area * FIRST_OPERATION)
    }

    fn range(&self, range: LocalRange) -> LocalRange {
        LocalRange { region: self.region(range.region), ..range }
    }

    fn address(&self, job_group: &JobGroup, target: RemoteAddress) -> RemoteAddress {
        let node = self.node(target.node);
        job_group.address(node.0, self.region(target.region), target.offset)
    }

    fn signal(&self, job_group: &JobGroup, target: NodeId, signal: Signal) -> Signal {
        let word = self.address(
            job_group,
            RemoteAddress { node: target, region: signal.region, offset: signal.offset, key: signal.key },
        );
        Signal { region: word.region, key: word.key, ..signal }
    }

    fn command<'c>(&self, job_group: &JobGroup, command: Command<'c>) -> Command<'c> {
        match command {
            Command::Store { operation, target, data, completion } => {
                let (operation, target) = (self.operation(operation), self.address(job_group, target));
                Command::Store { operation, target, data, completion }
            }
            Command::Load { operation, target, into } => {
                let (operation, target) = (self.operation(operation), self.address(job_group, target));
                Command::Load { operation, target, into: self.range(into) }
            }
            Command::Atomic { operation, target, atomic } => {
                let (operation, target) = (self.operation(operation), self.address(job_group, target));
                Command::Atomic { operation, target, atomic }
            }
            Command::Put { operation, target, source, signal } => {
                let signal = signal.map(|signal| self.signal(job_group, target.node, signal));
                let (operation, target) = (self.operation(operation), self.address(job_group, target));
                Command::Put { operation, target, source: self.range(source), signal }
            }
            Command::Get { operation, target, into } => {
                let (operation, target) = (self.operation(operation), self.address(job_group, target));
                Command::Get { operation, target, into: self.range(into) }
            }
            Command::WaitUntil { operation, region, offset, condition, value, depends_on } => {
                Command::WaitUntil {
                    operation: self.operation(operation),
                    region: self.region(region),
                    offset,
                    condition,
                    value,
                    depends_on: depends_on.map(|rank| self.node(rank)),
                }
            }
            Command::Send { operation, target, tag, source } => {
                let (operation, target) = (self.operation(operation), self.node(target));
                Command::Send { operation, target, tag, source: self.range(source) }
            }
            Command::Receive { operation, source, tag, ignore, into } => {
                let (operation, source) = (self.operation(operation), source.map(|rank| self.node(rank)));
                Command::Receive { operation, source, tag, ignore, into: self.range(into) }
            }
            Command::Fence { target } => Command::Fence { target: target.map(|rank| self.node(rank)) },
            Command::Flush { operation, target } => {
                let (operation, target) = (self.operation(operation), target.map(|rank| self.node(rank)));
                Command::Flush { operation, target }
            }
            Command::Cancel { operation } => Command::Cancel { operation: self.operation(operation) },
            // A job that goes on issues no other commands.
            other => other,
        }
    }
}

/// Seat of a rank of the group.
pub(super) struct GroupSeat<'a> {
    pub(super) group: &'a GroupArea,
    pub(super) job_group: &'a JobGroup,
    pub(super) seat: &'a mut dyn Seat,
}

impl Seat for GroupSeat<'_> {
    fn command(&mut self, now: Instant, command: Command<'_>) -> Result<Carried, CommandRefused> {
        // In area 0, the group is the whole rack and its numbers need no translation.
        let command =
            if self.group.area == 0 { command } else { self.group.command(self.job_group, command) };
        self.seat.command(now, command)
    }

    fn is_reachable(&self, node: NodeId) -> bool {
        self.seat.is_reachable(self.group.node(node))
    }
}

/// A rank's own memory, in the memory area of the group.
pub(super) struct GroupMemory<'a> {
    pub(super) group: &'a GroupArea,
    pub(super) memory: &'a mut dyn JobMemory,
}

impl Memory for GroupMemory<'_> {
    /// Always fails: a job accesses memory directly, never by a frame's request.
    fn execute<'m>(&'m mut self, _: &MemoryRequest<'_>, _: &[u8]) -> Option<MemoryDone<'m>> {
        Some(MemoryDone::Failed(MemoryFault::NotMapped))
    }
    fn is_busy(&self) -> bool {
        self.memory.is_busy()
    }
    fn read(&mut self, region: RegionId, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        self.memory.read(self.group.region(region), offset, out)
    }
}

impl JobMemory for GroupMemory<'_> {
    fn combine(&mut self, combine: &Combine) -> Result<bool, MemoryFault> {
        let translate = |(region, offset)| (self.group.region(region), offset);
        self.memory.combine(&Combine {
            target: translate(combine.target),
            source: translate(combine.source),
            ..*combine
        })
    }
    fn note_work(&mut self, moved_bytes: u64, reduced_bytes: u64) {
        self.memory.note_work(moved_bytes, reduced_bytes);
    }
    fn elided_bytes(&self, region: RegionId) -> Option<u64> {
        self.memory.elided_bytes(self.group.region(region))
    }
    fn write(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.memory.write(self.group.region(region), offset, bytes)
    }
}
