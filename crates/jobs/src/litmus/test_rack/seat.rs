//! Endpoint of the test rack: accepts a rank's commands and queues them.

use rackloom_protocol::operation::messages::Posted;
use rackloom_protocol::{Command, CommandRefused, Completion, Event, Instant, NodeId, OperationError};

use super::fabric::{Action, FLIGHTS_MAX, Fabric, Wait, segments};
use crate::ranks::request::{Carried, Seat};

pub(super) struct TestSeat<'a> {
    pub(super) fabric: &'a mut Fabric,
    pub(super) rank: usize,
}

impl TestSeat<'_> {
    pub(super) fn queue(&mut self, target: NodeId) -> Result<u16, CommandRefused> {
        if self.fabric.seats[self.rank].lost[target.index()] {
            return Err(CommandRefused::Unreachable(target));
        }
        let rank = self.rank as u16;
        if self.fabric.flights.iter().filter(|(_, flight)| flight.source == rank).count() >= FLIGHTS_MAX {
            return Err(CommandRefused::Busy);
        }
        Ok(target.0)
    }
}

impl Seat for TestSeat<'_> {
    fn is_reachable(&self, node: NodeId) -> bool {
        !self.fabric.seats[self.rank].lost[node.index()]
    }

    fn command(&mut self, _now: Instant, command: Command<'_>) -> Result<Carried, CommandRefused> {
        let rank = self.rank;
        match command {
            Command::Store { operation, target: address, data, completion } => {
                let target = self.queue(address.node)?;
                let operation = (completion == Completion::Visible).then_some(operation);
                let action = Action::Write { address, segments: segments(data), signal: None };
                self.fabric.launch(rank, target, operation, action);
            }
            Command::Load { operation, target: address, into }
            | Command::Get { operation, target: address, into } => {
                let target = self.queue(address.node)?;
                let action = Action::Read { address, into: (into.region, into.offset), length: into.length };
                self.fabric.launch(rank, target, Some(operation), action);
            }
            Command::Atomic { operation, target: address, atomic } => {
                let target = self.queue(address.node)?;
                self.fabric.launch(rank, target, Some(operation), Action::Atomic { address, atomic });
            }
            Command::Put { operation, target: address, source, signal } => {
                let target = self.queue(address.node)?;
                self.fabric.launch(rank, target, Some(operation), Action::Put { address, source, signal });
            }
            Command::Send { operation, target, tag, source } => {
                let target = self.queue(target)?;
                self.fabric.launch(rank, target, Some(operation), Action::Message { tag, source });
            }
            Command::Receive { operation, source, tag, ignore, into } => {
                if let Some(node) = source.filter(|node| self.fabric.seats[rank].lost[node.index()]) {
                    return Err(CommandRefused::Unreachable(node));
                }
                self.fabric.seats[rank].posted.push(Posted { operation, source, tag, ignore, into });
            }
            Command::WaitUntil { operation, region, offset, condition, value, depends_on } => {
                if depends_on.is_some_and(|node| self.fabric.seats[rank].lost[node.index()]) {
                    return Err(CommandRefused::Unreachable(depends_on.unwrap_or_default()));
                }
                let wait =
                    Wait { operation, word: (region, offset), condition: (condition, value), depends_on };
                self.fabric.seats[rank].waits.push(wait);
            }
            Command::Fence { target } => match target {
                Some(target) => self.fabric.seats[rank].epochs[target.index()] += 1,
                None => self.fabric.seats[rank].epochs.iter_mut().for_each(|epoch| *epoch += 1),
            },
            Command::Flush { operation, target } => {
                let before = self.fabric.next_flight;
                let (to, all) = (target.unwrap_or(NodeId(rank as u16)).0, target.is_none());
                self.fabric.launch(rank, to, Some(operation), Action::Flush { before, all });
            }
            Command::Cancel { operation } => {
                self.fabric.cancel_receive(rank, operation);
                let seat = &mut self.fabric.seats[rank];
                if seat.waits.iter().any(|wait| wait.operation == operation) {
                    seat.waits.retain(|wait| wait.operation != operation);
                    seat.events.push(Event::Completed { operation, result: Err(OperationError::Cancelled) });
                }
            }
            other => panic!("{other:?}"),
        }
        Ok(Carried::Endpoint)
    }
}
