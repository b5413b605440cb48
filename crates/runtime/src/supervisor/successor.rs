//! Successors of members that a fault script kills for a time.
//!
//! A member announces before its death that it has a successor. Its neighbours detect the death on their
//! links. At the given time a new process starts, with a new incarnation, fresh memory and new cables, and
//! its neighbours replace theirs. The successor gets no state of the earlier incarnation.

use std::time::Duration;

use rackloom_control::order::Joined;
use rackloom_control::order::Order;
use rackloom_jobs::report::EventRecord;
use rackloom_protocol::NodeId;

use super::rack::Step;
use super::seats::process::Process;
use super::seats::socket::SeatMessage;
use super::{Supervisor, page_of};

impl Supervisor {
    /// Sends [`SeatMessage::SuccessorDue`] after a time.
    pub(super) fn schedule_successor(&self, member: usize, after_ns: u64) {
        let messages = self.messages.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_nanos(after_ns)).await;
            // Fails only if the supervisor has ended.
            let _ = messages.send((member, SeatMessage::SuccessorDue));
        });
    }

    /// Starts the successor of a member.
    pub(super) fn start_successor(&mut self, member: usize) -> Vec<Step> {
        let Some(ends) = self.rack.due_successor(member) else { return Vec::new() };
        match self.seat_successor(member) {
            Ok(()) => vec![Step::Fault(EventRecord { at_ns: self.clock.now().0, ..ends })],
            Err(reason) => self.rack.successor_failed(member, &reason),
        }
    }

    fn seat_successor(&mut self, member: usize) -> Result<(), String> {
        let environment = self.wiring.without_wires();
        let edges = self.plan.graph().ports(NodeId(member as u16)).iter().map(|port| port.edge).collect();
        let page = page_of(self.stays, edges);
        let start = || {
            let log = self.logs.of_successor(&self.rack.seats[member].name)?;
            Process::start(
                member,
                self.program.seat(),
                &environment,
                page,
                log,
                self.logs.level(),
                self.messages.clone(),
            )
        };
        let process = start().map_err(|error| format!("cannot start a process: {error}"))?;
        let (mut start, wires) = match self.cable(member, process.pid) {
            Ok(cabled) => cabled,
            Err(reason) => {
                process.kill();
                return Err(reason);
            }
        };
        start.status_page = process.page_descriptor;
        let joined = Joined { descriptors: start.grant.descriptors(), start };
        process.send_with(Order::Follow(Box::new(joined)), wires);
        self.seat(member, process);
        Ok(())
    }
}
