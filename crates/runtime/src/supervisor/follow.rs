//! Somebody new in the seat of a member that a fault script has killed for a time.
//!
//! The dead one said before that it is to be followed; its neighbours find out from their links that it is
//! gone, as always. When its time has come a new process starts, with an incarnation of its own, fresh memory and new cables, and its
//! neighbours exchange theirs. Nothing of the old life is handed over, so nothing of it can be taken for the new one's.

use std::time::Duration;

use rackloom_jobs::report::EventRecord;

use super::Supervisor;
use super::process::{Heard, Process};
use super::rack::Step;
use rackloom_control::order::Joined;
use rackloom_control::order::Order;

impl Supervisor {
    /// See to it that the time comes.
    pub(super) fn follow_after(&self, member: usize, after_ns: u64) {
        let told = self.told.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_nanos(after_ns)).await;
            // Fails only if nobody is left who could care.
            let _ = told.send((member, Heard::Due));
        });
    }

    /// The time has come.
    pub(super) fn follow(&mut self, member: usize) -> Vec<Step> {
        let Some(ends) = self.rack.due_to_be_followed(member) else { return Vec::new() };
        match self.seat_follower(member) {
            Ok(()) => vec![Step::Fault(EventRecord { at_ns: self.clock.now().0, ..ends })],
            Err(why) => self.rack.cannot_be_followed(member, &why),
        }
    }

    fn seat_follower(&mut self, member: usize) -> Result<(), String> {
        let place = self.wiring.bare_place();
        let start = || {
            let log = self.logs.of_follower(&self.rack.seats[member].name)?;
            Process::start(member, self.program.seat(), &place, log, self.logs.level(), self.told.clone())
        };
        let process = start().map_err(|error| format!("cannot start a process: {error}"))?;
        let (start, wires) = match self.cable(member, process.pid) {
            Ok(cabled) => cabled,
            Err(why) => {
                process.kill();
                return Err(why);
            }
        };
        let joined = Joined { descriptors: start.grant.descriptors(), start };
        process.say_with(Order::Follow(Box::new(joined)), wires);
        self.seat(member, process);
        Ok(())
    }
}
