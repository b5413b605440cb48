//! Operations in flight: whom to tell when one ends, and what to keep until then.
//!
//! A slot is reused as soon as its end has been told, so nothing is allocated per operation once there are as many
//! slots as operations were ever in flight at once. A name carries the slot's generation: a late word about an
//! operation that is long over meets nobody.

use std::sync::Arc;
use std::task::Waker;

use rackloom_protocol::{Event, NodeId, OperationError, OperationId, RegionId};

use super::deaths::Deaths;
use super::error::Error;
use super::handled::{Handled, Over};
use super::posted::{Flushes, Unsaid};
use super::queue::{Completion, Queue};
use super::uses::Uses;

/// How an operation ended well.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended {
    /// The old value of an atomic, the word that ended a wait, the length of a message; else 0.
    pub value: u64,
    /// Sender and tag of a received message.
    pub matched: Option<(NodeId, u64)>,
}

/// Who wants to know.
#[derive(Debug, Default)]
pub(super) enum Sink {
    /// Somebody who comes and asks.
    Asker(Option<Waker>),
    /// A completion queue, with the caller's context.
    Queue(Arc<Queue>, u64),
    /// The node's driver, with its context.
    Driver(u64),
    /// Nobody; a failure is told by the next flush.
    Posted,
    /// Nobody any more.
    #[default]
    Nobody,
}

/// What is kept for an operation.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) sink: Sink,
    pub(super) peer: Option<NodeId>,
    /// The operation's own memory.
    pub(super) uses: Option<RegionId>,
    pub(super) matched: Option<(NodeId, u64)>,
    /// What it speaks for, if it is a flush.
    pub(super) flushes: Flushes,
}

#[derive(Debug)]
enum State {
    Free,
    InFlight(Entry),
    Ended(Result<Ended, Error>),
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    state: State,
}

/// All operations of one node.
#[derive(Debug, Default)]
pub(super) struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Who must be woken once the engine's lock is free.
    pub(super) to_wake: Vec<Waker>,
    /// Operations that have ended so far.
    pub(super) ended_count: u64,
    pub(super) deaths: Deaths,
    /// The driver's plain operations; what else it has begun stands among the others.
    pub(super) plain: Handled,
    /// What has ended of the driver's operations.
    handled: Vec<Completion>,
    /// Whom to wake when one of them ends.
    pub(super) handled_waker: Option<Waker>,
    /// Regions that operations in flight use.
    pub(super) uses: Uses,
    /// What went wrong with posted operations.
    pub(super) unsaid: Unsaid,
}

const fn index_of(operation: OperationId) -> usize {
    (operation.0 & 0xffff_ffff) as usize
}

impl Table {
    /// Give an operation a name.
    #[inline(always)]
    pub(super) fn open(&mut self, entry: Entry) -> OperationId {
        self.uses.begin(entry.uses);
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, state: State::Free });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        slot.state = State::InFlight(entry);
        OperationId(u64::from(slot.generation) << 32 | u64::from(index))
    }

    /// Forget an operation.
    pub(super) fn close(&mut self, operation: OperationId) {
        let Some(slot) = self.slot(operation) else { return };
        if let State::InFlight(entry) = std::mem::replace(&mut slot.state, State::Free) {
            self.uses.end(entry.uses);
        }
        self.free.push(index_of(operation) as u32);
    }

    fn slot(&mut self, operation: OperationId) -> Option<&mut Slot> {
        let generation = (operation.0 >> 32) as u32;
        let slot = self.slots.get_mut(index_of(operation))?;
        (slot.generation == generation && !matches!(slot.state, State::Free)).then_some(slot)
    }

    /// Take the result of an operation that somebody asks for; `None` while it is in flight.
    pub(super) fn take(&mut self, operation: OperationId) -> Option<Result<Ended, Error>> {
        let Some(slot) = self.slot(operation) else { return Some(Err(Error::Closed)) };
        if !matches!(slot.state, State::Ended(_)) {
            return None;
        }
        let State::Ended(result) = std::mem::replace(&mut slot.state, State::Free) else { return None };
        self.free.push(index_of(operation) as u32);
        Some(result)
    }

    /// Whom to wake when the operation ends.
    pub(super) fn set_waker(&mut self, operation: OperationId, waker: &Waker) {
        if let Some(Slot { state: State::InFlight(Entry { sink: Sink::Asker(known), .. }), .. }) =
            self.slot(operation)
        {
            match known {
                Some(known) => known.clone_from(waker),
                None => *known = Some(waker.clone()),
            }
        }
    }

    /// Nobody will ask any more; the operation goes on, and its memory stays until it ends.
    pub(super) fn abandon(&mut self, operation: OperationId) {
        if self.take(operation).is_none()
            && let Some(Slot { state: State::InFlight(entry), .. }) = self.slot(operation)
        {
            entry.sink = Sink::Nobody;
        }
    }

    /// Whether any of the driver's operations has ended and has not been taken.
    #[inline]
    pub(super) const fn has_handled(&self) -> bool {
        !self.handled.is_empty()
    }

    /// Move what has ended of the driver's operations to the end of `completions`. Returns how many those are.
    #[inline]
    pub(super) fn take_handled(&mut self, completions: &mut Vec<Completion>) -> usize {
        let count = self.handled.len();
        if completions.is_empty() {
            std::mem::swap(completions, &mut self.handled);
        } else {
            completions.append(&mut self.handled);
        }
        count
    }

    /// The driver has gone: its operations go on, and nobody is told.
    pub(super) fn abandon_handled(&mut self) {
        self.handled.clear();
        self.handled_waker = None;
        self.plain.abandon();
        for slot in &mut self.slots {
            if let State::InFlight(Entry { sink: sink @ Sink::Driver(_), .. }) = &mut slot.state {
                *sink = Sink::Nobody;
            }
        }
    }

    /// Hear what the core says.
    #[inline(always)]
    pub(super) fn hear(&mut self, event: Event) {
        match event {
            Event::Completed { operation, result } if Handled::names(operation) => {
                self.end_plain(operation, result);
            }
            event => self.hear_other(event),
        }
    }

    fn hear_other(&mut self, event: Event) {
        match event {
            Event::Completed { operation, result } => {
                self.end_with(operation, |entry, deaths| {
                    let matched = entry.matched;
                    result.map(|value| Ended { value, matched }).map_err(|error| {
                        deaths.name(Error::from_end(error, entry.peer.or(matched.map(|(source, _)| source))))
                    })
                });
            }
            Event::MessageMatched { operation, source, tag, .. } => {
                if let Some(Slot { state: State::InFlight(entry), .. }) = self.slot(operation) {
                    entry.matched = Some((source, tag));
                }
            }
            Event::FlushFailed { operation, node } => {
                if let Some(Slot { state: State::InFlight(entry), .. }) = self.slot(operation) {
                    entry.peer = Some(node);
                }
            }
            event => self.to_wake.extend(self.deaths.hear(&event)),
        }
    }

    fn end(&mut self, operation: OperationId, result: Result<Ended, Error>) {
        self.end_with(operation, |_, _| result);
    }

    /// The most frequent end by far: that of a plain operation of the driver's. Nothing is moved as a whole here that has been written
    /// in parts just before (see [`super::order`]).
    #[inline]
    fn end_plain(&mut self, operation: OperationId, result: Result<u64, OperationError>) {
        let Some(over) = self.plain.close(operation) else { return };
        self.ended_count += 1;
        self.uses.end(over.uses);
        let Some(context) = over.context else { return self.end_unheard(&over, result) };
        match result {
            Ok(value) => {
                self.handled.push(Completion {
                    context,
                    operation,
                    result: Ok(Ended { value, matched: None }),
                });
            }
            Err(error) => {
                let result = Err(self.deaths.name(Error::from_end(error, Some(over.peer))));
                self.handled.push(Completion { context, operation, result });
            }
        }
        if let Some(waker) = self.handled_waker.take() {
            self.to_wake.push(waker);
        }
    }

    /// Nobody waits for it.
    #[inline]
    fn end_unheard(&mut self, over: &Over, result: Result<u64, OperationError>) {
        if let (true, Err(error)) = (over.is_posted, result) {
            let error = self.deaths.name(Error::from_end(error, Some(over.peer)));
            self.unsaid.note(over.peer, error);
        }
    }

    fn end_with(
        &mut self,
        operation: OperationId,
        result: impl FnOnce(&Entry, &Deaths) -> Result<Ended, Error>,
    ) {
        let Some(slot) = self.slot(operation) else { return };
        if !matches!(slot.state, State::InFlight(_)) {
            return;
        }
        let State::InFlight(entry) = std::mem::replace(&mut slot.state, State::Free) else { return };
        self.ended_count += 1;
        self.uses.end(entry.uses);
        let result = result(&entry, &self.deaths);
        let result = self.unsaid.settle(entry.flushes, result);
        if let Sink::Asker(waker) = entry.sink {
            self.slots[index_of(operation)].state = State::Ended(result);
            self.to_wake.extend(waker);
            return;
        }
        self.free.push(index_of(operation) as u32);
        match (entry.sink, entry.peer, result) {
            (Sink::Posted, Some(peer), Err(error)) => self.unsaid.note(peer, error),
            (sink, _, result) => self.tell(sink, operation, result),
        }
    }

    /// Tell whoever does not come and ask.
    pub(super) fn tell(&mut self, sink: Sink, operation: OperationId, result: Result<Ended, Error>) {
        match sink {
            Sink::Queue(queue, context) => {
                self.to_wake.extend(queue.push(Completion { context, operation, result }));
            }
            Sink::Driver(context) => {
                self.handled.push(Completion { context, operation, result });
                self.to_wake.extend(self.handled_waker.take());
            }
            Sink::Asker(_) | Sink::Posted | Sink::Nobody => {}
        }
    }

    /// An operation that the core knows nothing of has ended.
    pub(super) fn conclude(&mut self, operation: OperationId, result: Result<Ended, Error>) {
        self.end(operation, result);
    }

    /// An operation about whose end the core says nothing has been taken.
    pub(super) fn succeed(&mut self, operation: OperationId) {
        self.end(operation, Ok(Ended::default()));
    }

    /// The node leaves: everything in flight ends.
    pub(super) fn end_all(&mut self) {
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            if matches!(slot.state, State::InFlight(_)) {
                let operation = OperationId(u64::from(slot.generation) << 32 | index as u64);
                self.end(operation, Err(Error::Closed));
            }
        }
        for operation in self.plain.names_in_flight() {
            let Some(over) = self.plain.close(operation) else { continue };
            self.ended_count += 1;
            self.uses.end(over.uses);
            if let Some(context) = over.context {
                self.handled.push(Completion { context, operation, result: Err(Error::Closed) });
            }
        }
        self.to_wake.extend(self.handled_waker.take());
    }
}
