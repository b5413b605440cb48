//! Effects of local operations on memory, and their completions.
//!
//! The permissions were checked when an operation was taken. An owner that died since then keeps its memory until a
//! new incarnation takes the seat, as mapped pages stay until they are unmapped; after that the operation ends as
//! unreachable and changes nothing.

use rackloom_plan::faults::MemoryFaults;
use rackloom_protocol::{
    Atomic, Completion, Event, Instant, LocalRange, Memory, MemoryAccess, MemoryDone, MemoryRequest,
    MemoryToken, NodeId, OperationError, RegionId, RemoteAddress, Signal,
};

use super::{Access, Body, Local, Pending, WORD_BYTES, Wait, completed, copies};
use crate::memory::memories::Memories;
use crate::memory::pending_copies::RegionOffset;
use crate::memory::seat_memory::SeatMemory;

/// Inputs and outputs of one poll of the local path.
pub(crate) struct AccessContext<'a> {
    pub(crate) memories: &'a mut Memories,
    /// Counts requests to memory: the watchdog's measure of progress.
    pub(crate) requests: &'a mut u64,
    /// Memory faults of the node from a fault script.
    pub(crate) memory_faults: Option<&'a mut MemoryFaults>,
    pub(crate) events: &'a mut Vec<Event>,
    /// Nodes whose memory has changed, and that may wait for that.
    pub(crate) touched: &'a mut Vec<NodeId>,
}

impl Local {
    /// Carries out due operations, and ends the waits whose words have the awaited values.
    pub(crate) fn poll(&mut self, now: Instant, around: &mut AccessContext<'_>) {
        while self.next_due() <= now
            && let Some(Pending { what, .. }) = self.pending.pop_front()
        {
            match what {
                Body::Flush { operation, target } if self.forget_failures(target) => {
                    self.end(operation, OperationError::EarlierFailure);
                }
                Body::Flush { operation, target } => self.flushes.push_back((operation, target)),
                Body::Access { target, access } => {
                    let is_there = !self.owners[target.index()].has_successor.get();
                    self.carry_out(target, is_there, &access, around);
                }
            }
        }
        around.events.append(&mut self.ended);
        self.look_at_words(around);
    }

    fn carry_out(&mut self, target: NodeId, is_there: bool, access: &Access, around: &mut AccessContext<'_>) {
        *around.requests += 1;
        let result = if is_there { self.perform(access, around) } else { Err(OperationError::Unreachable) };
        if is_there && !matches!(access, Access::Fetch { .. }) {
            around.touched.push(target);
        }
        match *access {
            Access::Store { completion: Completion::Accepted, .. } => {
                if result.is_err() && !self.failed.contains(&target) {
                    self.failed.push(target);
                }
            }
            Access::Store { operation, .. }
            | Access::Atomic { operation, .. }
            | Access::Put { operation, .. }
            | Access::Fetch { operation, .. } => self.ended.push(completed(operation, result)),
        }
    }

    fn perform(&self, access: &Access, around: &mut AccessContext<'_>) -> Result<u64, OperationError> {
        match *access {
            Access::Store { at, ref data, .. } => {
                copies::store(around.memories, at.node, offset_of(at), data).map(|()| 0).map_err(|_| failed())
            }
            Access::Atomic { at, atomic, .. } => around.apply(at, atomic),
            Access::Put { at, source, signal, .. } => {
                around.copy(self.node, own(source), at.node, offset_of(at), source.length)?;
                match signal {
                    Some(signal) => around.raise(at.node, signal).map(|_| 0),
                    None => Ok(0),
                }
            }
            Access::Fetch { at, into, .. } => {
                around.copy(at.node, offset_of(at), self.node, own(into), into.length).map(|()| 0)
            }
        }
    }

    fn look_at_words(&mut self, around: &mut AccessContext<'_>) {
        let node = self.node;
        let memory_faults = &mut around.memory_faults;
        let fails = |_: &RegionId| memory_faults.as_mut().is_some_and(|memory_faults| memory_faults.fails());
        let unreadable: Vec<_> = self.refused_regions.drain(..).filter(fails).collect();
        self.waits.retain(|wait| {
            let result =
                if unreadable.contains(&wait.region) { Some(Err(failed())) } else { around.look(node, wait) };
            let Some(result) = result else { return true };
            around.events.push(completed(wait.operation, result));
            false
        });
    }
}

impl AccessContext<'_> {
    /// Copies bytes from one node's memory to another's.
    fn copy(
        &mut self,
        source: NodeId,
        from: RegionOffset,
        target: NodeId,
        to: RegionOffset,
        length: u64,
    ) -> Result<(), OperationError> {
        if length == 0 {
            return Ok(());
        }
        copies::copy(self.memories, source, from, target, to, length).map_err(|_| failed())
    }

    fn raise(&mut self, node: NodeId, signal: Signal) -> Result<u64, OperationError> {
        let Signal { region, offset, key, kind, value } = signal;
        self.apply(RemoteAddress { node, region, offset, key }, kind.atomic(value))
    }

    fn apply(&mut self, at: RemoteAddress, atomic: Atomic) -> Result<u64, OperationError> {
        let access = MemoryAccess::Atomic { offset: at.offset, atomic };
        let request = MemoryRequest { token: MemoryToken(0), region: at.region, access };
        let mut memory = SeatMemory::new(self.memories, at.node, self.requests, None);
        match memory.execute(&request, &[]) {
            Some(MemoryDone::Value(old)) => Ok(old),
            _ => Err(failed()),
        }
    }

    /// Returns the result of a wait, or `None` if it goes on.
    fn look(&mut self, node: NodeId, wait: &Wait) -> Option<Result<u64, OperationError>> {
        let mut word = [0; WORD_BYTES as usize];
        let mut memory = SeatMemory::new(self.memories, node, self.requests, None);
        if memory.read(wait.region, wait.offset, &mut word).is_err() {
            return Some(Err(failed()));
        }
        let word = u64::from_le_bytes(word);
        if wait.condition.holds(word, wait.value) {
            return Some(Ok(word));
        }
        wait.is_last.then_some(Err(OperationError::Unreachable))
    }
}

const fn failed() -> OperationError {
    OperationError::MemoryFailed
}

const fn offset_of(at: RemoteAddress) -> RegionOffset {
    RegionOffset { region: at.region, offset: at.offset }
}

const fn own(range: LocalRange) -> RegionOffset {
    RegionOffset { region: range.region, offset: range.offset }
}
