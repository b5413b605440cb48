//! The ledger: an oracle that compares requests, memory writes and completions of all nodes.
//!
//! An initiator sees that its put has ended, and a target sees its memory. Only an observer of both can check at the moment of
//! completion that one follows from the other. The ledger records every accepted command, every write that a memory carries
//! out, and every completion. It checks that a successful operation is in memory completely and once, that memory
//! changed nowhere else, that a signal came after its data, and that the results "unknown" and "nothing was sent" are
//! true.
//!
//! If several outstanding operations may write the same bytes, their writes cannot be separated. Such ranges are watched
//! as a whole ([`extents`]), and their operations count as not judged. Sizes and counters are compared, and for puts and stores bytes.
//!
//! The ledger changes nothing, and nothing depends on it: runs with and without it are identical to the bit.

mod entry;
mod extents;
#[cfg(test)]
mod tests;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use rackloom_jobs::{Oracle, Verdicts};
use rackloom_protocol::memory::vector::VectorMemory;
use rackloom_protocol::{Command, Event, Instant, NodeId, OperationError, OperationId, RegionId};

use self::entry::{Destination, Entry, Kind};
use self::extents::Extents;
use self::words::Words;
use crate::memory::references::range;

/// Access to the bytes of all nodes.
pub(crate) trait AllMemories {
    /// Returns a node's bytes.
    fn bytes(&self, node: NodeId) -> &VectorMemory;
}

/// The ledger of a rack.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Open operations by node, then by number in order of request.
    open: Vec<BTreeMap<u64, Entry>>,
    /// By node: the number of the operation with this identity.
    numbers: Vec<BTreeMap<OperationId, u64>>,
    next_number: u64,
    /// By node: ranges of its memory that outstanding operations may write.
    extents: Vec<Extents>,
    words: Words,
    /// By node: the peers that it cannot reach.
    lost: Vec<BTreeSet<NodeId>>,
    /// True if bytes are at their final offsets and can be compared.
    has_bytes: bool,
    /// Results of operations that [`Ledger::await_end`] named; `None` until they end.
    awaited: BTreeMap<(NodeId, OperationId), Option<Result<u64, OperationError>>>,
    verdicts: Verdicts,
}

impl Ledger {
    pub(crate) fn new(members: usize, has_bytes: bool) -> Self {
        Self {
            open: vec![BTreeMap::new(); members],
            numbers: vec![BTreeMap::new(); members],
            next_number: 0,
            extents: vec![Extents::default(); members],
            words: Words::default(),
            lost: vec![BTreeSet::new(); members],
            has_bytes,
            awaited: BTreeMap::new(),
            verdicts: Verdicts::default(),
        }
    }

    /// Returns the findings until now.
    pub(crate) fn verdicts(&self) -> &Verdicts {
        &self.verdicts
    }

    pub(crate) fn verdicts_mut(&mut self) -> &mut Verdicts {
        &mut self.verdicts
    }

    /// Keeps the result of this operation for [`Ledger::end_of`].
    pub(crate) fn await_end(&mut self, node: NodeId, operation: OperationId) {
        self.awaited.insert((node, operation), None);
    }

    /// Returns the result of the operation, if it has ended.
    pub(crate) fn end_of(&self, node: NodeId, operation: OperationId) -> Option<Result<u64, OperationError>> {
        self.awaited.get(&(node, operation)).copied().flatten()
    }

    /// Notes a frame that was sent to an earlier incarnation of this node, and whether the node used it.
    pub(crate) fn note_stale_frame(&mut self, now: Instant, node: NodeId, is_used: bool) {
        self.verdicts.judge(Oracle::Incarnations, !is_used, || {
            format!("{node} used a frame at {now:?} that was sent to an earlier incarnation of it")
        });
    }

    /// Notes a command that a node's endpoint has accepted.
    pub(crate) fn note_command(&mut self, node: NodeId, command: &Command<'_>) {
        let number = self.next_number;
        let Some(mut entry) = Entry::of(node, command, number) else { return };
        self.next_number += 1;
        entry.was_lost = entry.target.is_some_and(|target| self.lost[node.index()].contains(&target));
        if let Some(destination) = entry.destination
            && let Some(extents) = self.extents.get_mut(destination.holder.index())
        {
            extents.open(&destination, (node, number));
        }
        if let Some(word) = entry.word {
            self.words.request(word, entry.is_signal().then_some((node, number)));
        }
        if let Some(operation) = entry.operation {
            self.numbers[node.index()].insert(operation, number);
        }
        self.open[node.index()].insert(number, entry);
    }

    /// Notes a write to a node's memory for an operation.
    pub(crate) fn note_write(&mut self, node: NodeId, region: RegionId, offset: u64, length: u64) {
        let Some(extents) = self.extents.get_mut(node.index()) else { return };
        let found = extents.write(region, offset, length);
        let where_to = || format!("{length} bytes at {offset} of {region} of {node}");
        self.verdicts.judge(Oracle::Untouched, found.is_covered, || {
            format!("{} were written, and no outstanding operation may write there", where_to())
        });
        if found.is_too_much {
            self.verdicts.find(Oracle::ExactlyOnce, || {
                format!("{} were written by an operation that had written all of its bytes", where_to())
            });
        }
    }

    /// Notes a write of a node's own job to its memory.
    pub(crate) fn note_own_write(&mut self, node: NodeId, region: RegionId, offset: u64, length: u64) {
        if let Some(extents) = self.extents.get_mut(node.index()) {
            extents.touch(region, offset, length);
        }
    }

    /// Notes an atomic or a signal that is applied to a word of a node's memory.
    pub(crate) fn note_applied(&mut self, node: NodeId, region: RegionId, offset: u64) {
        self.note_own_write(node, region, offset, 8);
        let word = (node, region, offset);
        let is_right = self.words.apply(word);
        self.verdicts.judge(Oracle::ExactlyOnce, is_right, || {
            format!("the word at {offset} of {region} of {node} was changed more often than was requested")
        });
        let Self { words, open, extents, .. } = self;
        let is_whole = |(initiator, number): (NodeId, u64)| {
            let destination = open.get(initiator.index()).and_then(|open| open.get(&number)?.destination);
            destination.is_none_or(|destination| {
                extents[destination.holder.index()].is_whole(&destination).unwrap_or(true)
            })
        };
        if let Some(is_right) = words.take_signal(word, is_whole) {
            self.verdicts.judge(Oracle::Order, is_right, || {
                format!("the signal at {offset} of {region} of {node} came before its data")
            });
        }
    }

    /// Takes the events of a node's endpoint. Losses come first: they explain completions of the same batch.
    pub(crate) fn handle_events(
        &mut self,
        now: Instant,
        node: NodeId,
        events: &[Event],
        memories: &impl AllMemories,
    ) {
        for event in events {
            match *event {
                Event::NodeLost { node: lost } => {
                    self.lost[node.index()].insert(lost);
                    self.mark_lost(node, lost);
                }
                Event::NodeRestarted { node: lost } => self.mark_lost(node, lost),
                Event::NodeReached { node: back } => {
                    self.lost[node.index()].remove(&back);
                }
                _ => {}
            }
        }
        for event in events {
            if let Event::Completed { operation, result } = *event {
                self.ended(now, node, operation, result, memories);
            }
        }
    }

    fn mark_lost(&mut self, node: NodeId, lost: NodeId) {
        let concerned = self.open[node.index()].values_mut().filter(|entry| entry.target == Some(lost));
        concerned.for_each(|entry| entry.was_lost = true);
    }

    /// Begins a new incarnation of a node: its memory is new, and operations of the old one may not write there.
    pub(crate) fn begin_incarnation(&mut self, node: NodeId) {
        self.extents[node.index()] = Extents::default();
        self.words.forget(node);
        // Requests of the old incarnation may still arrive at other nodes: their ranges stay covered.
        self.open[node.index()].clear();
        self.numbers[node.index()].clear();
        for entry in self.open.iter_mut().flat_map(BTreeMap::values_mut) {
            entry.destination = entry.destination.filter(|destination| destination.holder != node);
            entry.word = entry.word.filter(|(holder, ..)| *holder != node);
        }
    }

    fn ended(
        &mut self,
        now: Instant,
        node: NodeId,
        operation: OperationId,
        result: Result<u64, OperationError>,
        memories: &impl AllMemories,
    ) {
        if let Some(end) = self.awaited.get_mut(&(node, operation)) {
            *end = Some(result);
        }
        let number = self.numbers[node.index()].remove(&operation);
        let Some(entry) = number.and_then(|number| self.open[node.index()].remove(&number)) else {
            let what =
                || format!("operation {} of {node} ended with {result:?}, and had ended before", operation.0);
            return self.verdicts.find(Oracle::OneEnd, what);
        };
        self.verdicts.hold(Oracle::OneEnd);
        if let Kind::Flush { target } = entry.kind {
            return self.end_posted(now, node, target, entry.number, result, memories);
        }
        self.settle(now, node, &entry, result, memories);
    }

    /// A flush ends the posted stores before it. Its result says nothing about a single store.
    fn end_posted(
        &mut self,
        now: Instant,
        node: NodeId,
        target: Option<NodeId>,
        before: u64,
        result: Result<u64, OperationError>,
        memories: &impl AllMemories,
    ) {
        let is_meant =
            |entry: &Entry| entry.operation.is_none() && (target.is_none() || entry.target == target);
        let open = &mut self.open[node.index()];
        let numbers: Vec<_> =
            open.range(..before).filter(|(_, entry)| is_meant(entry)).map(|(number, _)| *number).collect();
        let result = result.map_err(|_| OperationError::EarlierFailure);
        for number in numbers {
            if let Some(entry) = self.open[node.index()].remove(&number) {
                self.settle(now, node, &entry, result, memories);
            }
        }
    }

    /// Compares the writes to memory with the result of the operation.
    fn settle(
        &mut self,
        now: Instant,
        node: NodeId,
        entry: &Entry,
        result: Result<u64, OperationError>,
        memories: &impl AllMemories,
    ) {
        let name = || format!("{} of {node} at {now:?}", entry.name());
        let is_unknown =
            matches!(result, Err(OperationError::OutcomeUnknown | OperationError::EarlierFailure));
        let is_undone = matches!(result, Err(OperationError::Unreachable));
        if result == Err(OperationError::OutcomeUnknown) && entry.target.is_some() {
            self.verdicts.judge(Oracle::UnknownIfTrue, entry.was_lost, || {
                format!("{} ended with an unknown outcome, and its target was never lost", name())
            });
        }
        let written = entry.destination.and_then(|destination| {
            let extents = self.extents.get_mut(destination.holder.index())?;
            // A range that an operation with an unknown outcome may still write stays covered for good.
            if is_unknown { extents.abandon(&destination) } else { extents.close(&destination) }
        });
        let must_be_whole = result.is_ok();
        match (entry.destination, written) {
            (Some(destination), Some(written)) if must_be_whole => {
                let length = entry.length_of(result, destination.length);
                self.verdicts.judge(Oracle::ExactlyOnce, written.bytes == length, || {
                    format!("{} ended well with {} of its {length} bytes written", name(), written.bytes)
                });
                if !written.is_touched && self.has_bytes {
                    self.compare(entry, &destination, memories);
                }
            }
            // A lost load, get or receive may leave a part of the data in the buffer of the node that began it. No other memory has changed.
            (Some(_), Some(written)) if is_undone && !matches!(entry.kind, Kind::Fetch | Kind::Receive) => {
                self.verdicts.judge(Oracle::UnknownIfTrue, written.bytes == 0, || {
                    format!("{} ended with nothing sent, and {} bytes were written", name(), written.bytes)
                });
            }
            (Some(_), None) if must_be_whole => self.verdicts.pass_over(Oracle::ExactlyOnce),
            _ => {}
        }
        if let Some(word) = entry.word {
            let is_right = self.words.end(word, result.is_ok(), is_unknown, (node, entry.number));
            self.verdicts.judge(Oracle::ExactlyOnce, is_right, || {
                format!("{} ended, and its word was not changed exactly once", name())
            });
        }
    }

    /// Compares the bytes in memory with those that were to be written.
    fn compare(&mut self, entry: &Entry, destination: &Destination, memories: &impl AllMemories) {
        let there = range(
            memories.bytes(destination.holder),
            destination.region,
            destination.offset,
            destination.length as usize,
        );
        let wanted = match &entry.kind {
            Kind::Store { data } => Some(&**data),
            Kind::Put { source } => {
                range(memories.bytes(entry.initiator), source.region, source.offset, source.length as usize)
            }
            _ => return,
        };
        self.verdicts.judge(Oracle::Shadow, there == wanted, || {
            format!("{} of {} ended well, and other bytes are at its target", entry.name(), entry.initiator)
        });
    }
}
