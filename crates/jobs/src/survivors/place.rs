//! Where a group plays: its ranks are numbered anew, and its regions are those of a room of its own.
//!
//! A job that is played again by fewer knows nothing of the others: it says rank 1 and region 4, and this says which node and which
//! region that is. Rooms are never used twice, so whatever somebody sends late who is not of the group lands where nobody looks.

use rackloom_protocol::{
    Combine, Command, CommandRefused, Instant, LocalRange, Memory, MemoryDone, MemoryFault, MemoryRequest,
    NodeId, OperationId, RegionId, RemoteAddress, Signal,
};

use crate::crew::Crew;
use crate::job::{Carried, Seat};

/// Regions of one room; a job has fewer.
const REGIONS: u32 = 16;
/// Operations of one room.
const FIRST_OPERATION: u64 = 1 << 48;

/// A group and its room; room 0 is the whole rack's.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) room: u64,
    /// Ranks of the rack, by rank of the group.
    pub(super) members: Vec<u16>,
}

impl Place {
    /// A region of the rack for one of the group.
    pub(super) fn region(&self, region: RegionId) -> RegionId {
        RegionId(region.0 + self.room as u32 * REGIONS)
    }

    /// The group's name of an operation of the rack; nothing if it is of another room.
    pub(super) fn operation_of(&self, operation: OperationId) -> Option<OperationId> {
        (operation.0 / FIRST_OPERATION == self.room).then_some(OperationId(operation.0 % FIRST_OPERATION))
    }

    /// The group's number of a node.
    pub(super) fn rank_of(&self, node: NodeId) -> Option<NodeId> {
        let rank = self.members.iter().position(|member| *member == node.0)?;
        Some(NodeId(rank as u16))
    }

    fn node(&self, rank: NodeId) -> NodeId {
        self.members.get(rank.index()).map_or(rank, |member| NodeId(*member))
    }

    fn operation(&self, operation: OperationId) -> OperationId {
        OperationId(operation.0 + self.room * FIRST_OPERATION)
    }

    fn range(&self, range: LocalRange) -> LocalRange {
        LocalRange { region: self.region(range.region), ..range }
    }

    fn address(&self, crew: &Crew, target: RemoteAddress) -> RemoteAddress {
        let node = self.node(target.node);
        crew.address(node.0, self.region(target.region), target.offset)
    }

    fn signal(&self, crew: &Crew, target: NodeId, signal: Signal) -> Signal {
        let word = self.address(
            crew,
            RemoteAddress { node: target, region: signal.region, offset: signal.offset, key: signal.key },
        );
        Signal { region: word.region, key: word.key, ..signal }
    }

    fn command<'c>(&self, crew: &Crew, command: Command<'c>) -> Command<'c> {
        match command {
            Command::Store { operation, target, data, completion } => {
                let (operation, target) = (self.operation(operation), self.address(crew, target));
                Command::Store { operation, target, data, completion }
            }
            Command::Load { operation, target, into } => {
                let (operation, target) = (self.operation(operation), self.address(crew, target));
                Command::Load { operation, target, into: self.range(into) }
            }
            Command::Atomic { operation, target, atomic } => {
                let (operation, target) = (self.operation(operation), self.address(crew, target));
                Command::Atomic { operation, target, atomic }
            }
            Command::Put { operation, target, source, signal } => {
                let signal = signal.map(|signal| self.signal(crew, target.node, signal));
                let (operation, target) = (self.operation(operation), self.address(crew, target));
                Command::Put { operation, target, source: self.range(source), signal }
            }
            Command::Get { operation, target, into } => {
                let (operation, target) = (self.operation(operation), self.address(crew, target));
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
            // Nothing else is asked by a job that goes on.
            other => other,
        }
    }
}

/// The seat of a rank of the group.
pub(super) struct OnPlace<'a> {
    pub(super) place: &'a Place,
    pub(super) crew: &'a Crew,
    pub(super) seat: &'a mut dyn Seat,
}

impl Seat for OnPlace<'_> {
    fn command(&mut self, now: Instant, command: Command<'_>) -> Result<Carried, CommandRefused> {
        // The whole rack is its own group, under its own names.
        let command = if self.place.room == 0 { command } else { self.place.command(self.crew, command) };
        self.seat.command(now, command)
    }

    fn is_reachable(&self, node: NodeId) -> bool {
        self.seat.is_reachable(self.place.node(node))
    }
}

/// A rank's own memory in the group's room.
pub(super) struct InRoom<'a> {
    pub(super) place: &'a Place,
    pub(super) memory: &'a mut dyn Memory,
}

impl Memory for InRoom<'_> {
    /// A job asks memory directly, never like a frame.
    fn execute<'m>(&'m mut self, _: &MemoryRequest<'_>, _: &[u8]) -> Option<MemoryDone<'m>> {
        Some(MemoryDone::Failed(MemoryFault::NotMapped))
    }
    fn is_busy(&self) -> bool {
        self.memory.is_busy()
    }
    fn read(&mut self, region: RegionId, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        self.memory.read(self.place.region(region), offset, out)
    }
    fn combine(&mut self, combine: &Combine) -> Result<bool, MemoryFault> {
        let place = |(region, offset)| (self.place.region(region), offset);
        self.memory.combine(&Combine {
            target: place(combine.target),
            source: place(combine.source),
            ..*combine
        })
    }
    fn write(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.memory.write(self.place.region(region), offset, bytes)
    }
}
