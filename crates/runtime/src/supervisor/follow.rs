//! Successors of members that a fault script kills for a time.
//!
//! A member announces before its death that it has a successor. Its neighbours detect the death on their links. When the time has come a new
//! process starts, with a new incarnation, fresh memory and new cables, and its neighbours replace theirs. No state of the earlier
//! incarnation is handed over.

use std::time::Duration;

use rackloom_control::order::Joined;
use rackloom_control::order::Order;
use rackloom_jobs::report::EventRecord;

use super::Supervisor;
use super::conversation::Heard;
use super::process::Process;
use super::rack::Step;

impl Supervisor {
    /// Starts the wait for the time of a successor.
    pub(super) fn follow_after(&self, member: usize, after_ns: u64) {
        let told = self.told.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_nanos(after_ns)).await;
            // Fails only if the supervisor has ended.
            let _ = told.send((member, Heard::Due));
        });
    }

    /// Starts the successor of a member.
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
