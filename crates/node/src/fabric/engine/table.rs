//! Operations in flight: where each completion goes, and what is kept until then.
//!
//! A slot is free again as soon as its completion is delivered. So nothing is allocated per operation once the table has as many slots as
//! operations were ever in flight at once. An identifier contains the generation of its slot: a late event of an operation that
//! has ended matches no slot.

use std::sync::Arc;
use std::task::Waker;

use rackloom_protocol::{Event, NodeId, OperationError, OperationId, RegionId};

use super::deaths::Deaths;
use super::handled::{Handled, Over};
use super::posted::{Flushes, UnreportedFailures};
use super::uses::Uses;
use crate::fabric::completion::{Completion, Ended};
use crate::fabric::error::Error;
use crate::fabric::queue::Queue;

/// Receiver of a completion.
#[derive(Debug, Default)]
pub(in crate::fabric) enum Sink {
    /// A request, which polls for it or is woken.
    Request(Option<Waker>),
    /// A completion queue, with the caller's context.
    Queue(Arc<Queue>, u64),
    /// The node's driver, with its context.
    Driver(u64),
    /// None, since the operation is posted. The next flush reports a failure.
    Posted,
    /// None: the completion is dropped.
    #[default]
    Discard,
}

/// State of an operation in flight.
#[derive(Debug, Default)]
pub(in crate::fabric) struct Entry {
    pub(in crate::fabric) sink: Sink,
    pub(in crate::fabric) peer: Option<NodeId>,
    /// Region of this node that the operation uses.
    pub(in crate::fabric) uses: Option<RegionId>,
    pub(in crate::fabric) matched: Option<(NodeId, u64)>,
    /// Posted operations that it covers, if it is a flush.
    pub(in crate::fabric) flushes: Flushes,
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
pub(in crate::fabric) struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Wakers to be called once the engine's lock is free.
    pub(in crate::fabric) to_wake: Vec<Waker>,
    /// Number of operations that have ended.
    pub(in crate::fabric) ended_count: u64,
    pub(in crate::fabric) deaths: Deaths,
    /// The driver's plain operations. The driver's other operations are in `slots`.
    pub(in crate::fabric) plain: Handled,
    /// Completions of the driver.
    handled: Vec<Completion>,
    /// Waker for the driver's next completion.
    pub(in crate::fabric) handled_waker: Option<Waker>,
    /// Regions that operations in flight use.
    pub(in crate::fabric) uses: Uses,
    /// Failures of posted operations that no flush has reported.
    pub(in crate::fabric) unreported: UnreportedFailures,
}

const fn index_of(operation: OperationId) -> usize {
    (operation.0 & 0xffff_ffff) as usize
}

impl Table {
    /// Assigns an identifier to an operation.
    #[inline(always)]
    pub(in crate::fabric) fn open(&mut self, entry: Entry) -> OperationId {
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

    /// Removes an operation.
    pub(in crate::fabric) fn close(&mut self, operation: OperationId) {
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

    /// Takes the result of an operation of a request. `None` while it is in flight.
    pub(in crate::fabric) fn take(&mut self, operation: OperationId) -> Option<Result<Ended, Error>> {
        let Some(slot) = self.slot(operation) else { return Some(Err(Error::Closed)) };
        if !matches!(slot.state, State::Ended(_)) {
            return None;
        }
        let State::Ended(result) = std::mem::replace(&mut slot.state, State::Free) else { return None };
        self.free.push(index_of(operation) as u32);
        Some(result)
    }

    /// Sets the waker for the end of the operation.
    pub(in crate::fabric) fn set_waker(&mut self, operation: OperationId, waker: &Waker) {
        if let Some(Slot { state: State::InFlight(Entry { sink: Sink::Request(known), .. }), .. }) =
            self.slot(operation)
        {
            match known {
                Some(known) => known.clone_from(waker),
                None => *known = Some(waker.clone()),
            }
        }
    }

    /// Drops the completion. The operation continues, and its memory is kept until it ends.
    pub(in crate::fabric) fn abandon(&mut self, operation: OperationId) {
        if self.take(operation).is_none()
            && let Some(Slot { state: State::InFlight(entry), .. }) = self.slot(operation)
        {
            entry.sink = Sink::Discard;
        }
    }

    /// Returns `true` if the driver has completions.
    #[inline]
    pub(in crate::fabric) const fn has_handled(&self) -> bool {
        !self.handled.is_empty()
    }

    /// Moves the driver's completions to the end of `completions`. Returns their number.
    #[inline]
    pub(in crate::fabric) fn take_handled(&mut self, completions: &mut Vec<Completion>) -> usize {
        let count = self.handled.len();
        if completions.is_empty() {
            std::mem::swap(completions, &mut self.handled);
        } else {
            completions.append(&mut self.handled);
        }
        count
    }

    /// Drops the completions of a driver that is dropped. Its operations continue.
    pub(in crate::fabric) fn abandon_handled(&mut self) {
        self.handled.clear();
        self.handled_waker = None;
        self.plain.abandon();
        for slot in &mut self.slots {
            if let State::InFlight(Entry { sink: sink @ Sink::Driver(_), .. }) = &mut slot.state {
                *sink = Sink::Discard;
            }
        }
    }

    /// Handles an event of the core.
    #[inline(always)]
    pub(in crate::fabric) fn handle_event(&mut self, event: Event) {
        match event {
            Event::Completed { operation, result } if Handled::names(operation) => {
                self.end_plain(operation, result);
            }
            event => self.handle_other_event(event),
        }
    }

    fn handle_other_event(&mut self, event: Event) {
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
            event => self.to_wake.extend(self.deaths.handle_event(&event)),
        }
    }

    fn end(&mut self, operation: OperationId, result: Result<Ended, Error>) {
        self.end_with(operation, |_, _| result);
    }

    /// Ends a plain operation of the driver, which is by far the most frequent case. Reads fields one by one: a copy of the whole entry would
    /// wait for the fields that were just written (see [`super::order`]).
    #[inline]
    fn end_plain(&mut self, operation: OperationId, result: Result<u64, OperationError>) {
        let Some(over) = self.plain.close(operation) else { return };
        self.ended_count += 1;
        self.uses.end(over.uses);
        let Some(context) = over.context else { return self.end_without_completion(&over, result) };
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

    /// Ends a plain operation without a completion.
    #[inline]
    fn end_without_completion(&mut self, over: &Over, result: Result<u64, OperationError>) {
        if let (true, Err(error)) = (over.is_posted, result) {
            let error = self.deaths.name(Error::from_end(error, Some(over.peer)));
            self.unreported.note(over.peer, error);
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
        let result = self.unreported.settle(entry.flushes, result);
        if let Sink::Request(waker) = entry.sink {
            self.slots[index_of(operation)].state = State::Ended(result);
            self.to_wake.extend(waker);
            return;
        }
        self.free.push(index_of(operation) as u32);
        match (entry.sink, entry.peer, result) {
            (Sink::Posted, Some(peer), Err(error)) => self.unreported.note(peer, error),
            (sink, _, result) => self.deliver(sink, operation, result),
        }
    }

    /// Delivers a result to all sinks except a request.
    pub(in crate::fabric) fn deliver(
        &mut self,
        sink: Sink,
        operation: OperationId,
        result: Result<Ended, Error>,
    ) {
        match sink {
            Sink::Queue(queue, context) => {
                self.to_wake.extend(queue.push(Completion { context, operation, result }));
            }
            Sink::Driver(context) => {
                self.handled.push(Completion { context, operation, result });
                self.to_wake.extend(self.handled_waker.take());
            }
            Sink::Request(_) | Sink::Posted | Sink::Discard => {}
        }
    }

    /// Ends an operation that the core has not received.
    pub(in crate::fabric) fn conclude(&mut self, operation: OperationId, result: Result<Ended, Error>) {
        self.end(operation, result);
    }

    /// Ends an operation successfully whose end the core does not report.
    pub(in crate::fabric) fn succeed(&mut self, operation: OperationId) {
        self.end(operation, Ok(Ended::default()));
    }

    /// Ends all operations, because the node leaves.
    pub(in crate::fabric) fn end_all(&mut self) {
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
