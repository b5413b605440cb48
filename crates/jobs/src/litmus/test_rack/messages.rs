//! Tagged messages of the rack: they arrive in the order of one source, and wait for a receive that matches them.

use rackloom_protocol::memory::vector::VectorMemory;
use rackloom_protocol::operation::messages::Posted;
use rackloom_protocol::{Event, JobMemory, LocalRange, Memory, NodeId, OperationError, OperationId};

use super::Defect;
use super::fabric::{Action, Fabric, Flight, Seated};

/// A message that has arrived before its receive.
#[derive(Clone, Debug)]
pub(super) struct Arrived {
    source: NodeId,
    tag: u64,
    bytes: Vec<u8>,
}

impl Fabric {
    /// Returns whether an older message of the same source has not arrived yet.
    pub(super) fn is_overtaking(&mut self, number: u64, flight: &Flight) -> bool {
        let is_message = |action: &Action| matches!(action, Action::Message { .. });
        let is_older = |(other_number, other): &&(u64, Flight)| {
            *other_number < number
                && (other.source, other.target) == (flight.source, flight.target)
                && is_message(&other.action)
        };
        is_message(&flight.action)
            && self.flights.iter().any(|flight| is_older(&flight))
            && !self.hits(Defect::MessageOvertakes)
    }

    /// Delivers a message.
    pub(super) fn arrive(&mut self, flight: &Flight, tag: u64, source: LocalRange) {
        let mut bytes = vec![0; source.length as usize];
        let memory = &mut self.seats[usize::from(flight.source)].memory;
        memory.read(source.region, source.offset, &mut bytes).unwrap();
        if !bytes.is_empty() && self.hits(Defect::MessageChanged) {
            bytes[0] ^= 8;
        }
        if !bytes.is_empty() && self.hits(Defect::MessageShort) {
            bytes.pop();
        }
        if self.hits(Defect::MessageTwice) {
            let twice = Arrived { source: NodeId(flight.source), tag, bytes: bytes.clone() };
            self.seats[usize::from(flight.target)].arrived.push(twice);
        }
        let message = Arrived { source: NodeId(flight.source), tag, bytes };
        self.seats[usize::from(flight.target)].arrived.push(message);
        self.match_messages(usize::from(flight.target));
    }

    /// Matches receives and messages, the oldest of both first.
    pub(super) fn match_messages(&mut self, rank: usize) {
        let is_loose = self.has(Defect::TagIgnored);
        let Seated { memory, posted, arrived, events, .. } = &mut self.seats[rank];
        let mut next = 0;
        while let Some(receive) = posted.get(next).copied() {
            let takes = |message: &Arrived| {
                receive.takes(message.source, message.tag)
                    || (is_loose && receive.takes(message.source, receive.tag))
            };
            match arrived.iter().position(takes) {
                Some(message) => {
                    posted.remove(next);
                    land(memory, events, &receive, &arrived.remove(message));
                }
                None => next += 1,
            }
        }
    }

    /// Cancels a receive, unless it has matched a message.
    pub(super) fn cancel_receive(&mut self, rank: usize, operation: OperationId) {
        let forgets = self.has(Defect::CancelIgnored);
        let seat = &mut self.seats[rank];
        if !forgets && seat.posted.iter().any(|posted| posted.operation == operation) {
            seat.posted.retain(|posted| posted.operation != operation);
            seat.events.push(Event::Completed { operation, result: Err(OperationError::Cancelled) });
        }
    }

    /// Handles the loss of a node: receives that name it fail.
    pub(super) fn fail_receives(&mut self, rank: usize, node: NodeId) {
        let seat = &mut self.seats[rank];
        let named = |posted: &Posted| posted.source == Some(node);
        let (ended, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut seat.posted).into_iter().partition(named);
        seat.posted = kept;
        for Posted { operation, .. } in ended {
            seat.events.push(Event::Completed { operation, result: Err(OperationError::Unreachable) });
        }
    }
}

fn land(memory: &mut VectorMemory, events: &mut Vec<Event>, receive: &Posted, message: &Arrived) {
    let (operation, length) = (receive.operation, message.bytes.len() as u64);
    let Arrived { source, tag, .. } = *message;
    events.push(Event::MessageMatched { operation, source, tag, length });
    let result = if length > receive.into.length {
        Err(OperationError::MessageTruncated)
    } else {
        memory.write(receive.into.region, receive.into.offset, &message.bytes).unwrap();
        Ok(length)
    };
    events.push(Event::Completed { operation, result });
}
