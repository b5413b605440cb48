//! Faults that a joined seat plays, and polls of the node under these faults.
//!
//! The state exists only after the first injection, so a node without faults has no cost.

use rackloom_plan::faults::{Conditions, FaultAction, QueuePairFault};
use rackloom_protocol::Instant;
use std::sync::Arc;

use super::notices::NoticeSender;
use crate::fabric::engine::member::Member;
use crate::fabric::engine::table::Table;
use crate::fabric::local::LocalPaths;
use crate::seat::FaultPlayer;

/// Fault player of one seat, with its connection to the supervisor.
#[derive(Debug)]
pub(in crate::fabric) struct SeatFaults {
    player: FaultPlayer,
    notice_sender: Arc<NoticeSender>,
    /// Faults of the queue pairs of this process.
    queue_pairs: Vec<QueuePairFault>,
}

impl SeatFaults {
    pub(in crate::fabric) const fn new(player: FaultPlayer, notice_sender: Arc<NoticeSender>) -> Self {
        Self { player, notice_sender, queue_pairs: Vec::new() }
    }

    /// Add faults whose times count from now. The next poll plays them.
    pub(in crate::fabric) fn inject(
        &mut self,
        member: &mut Member,
        first: usize,
        text: &str,
    ) -> Result<(), String> {
        let now = member.now();
        self.player.inject(now, first, text, member.ports_mut())?;
        member.set_alarm(now);
        Ok(())
    }

    /// Ends all faults. The next poll restores what they have changed.
    pub(in crate::fabric) fn end_all(&mut self, member: &mut Member) {
        let now = member.now();
        self.player.end_faults(now);
        member.set_alarm(now);
    }

    /// Handles the trigger of this event, which another member has detected.
    pub(in crate::fabric) fn handle_set_off(&mut self, member: &mut Member, event: usize) {
        let now = member.now();
        self.player.handle_set_off(now, event);
        member.set_alarm(now);
    }

    /// Returns the faults of the queue pairs of this process that are active now.
    pub(in crate::fabric) fn of_queue_pairs(&self) -> &[QueuePairFault] {
        &self.queue_pairs
    }

    /// Returns the conditions that a new cable at this port gets.
    pub(in crate::fabric) fn conditions(&self, port: usize) -> Option<&Conditions> {
        self.player.conditions(port)
    }

    /// Polls the node once, and plays the fault actions that are due afterwards. Returns `true` if something happened.
    pub(in crate::fabric) fn poll(
        &mut self,
        now: Instant,
        member: &mut Member,
        table: &mut Table,
        local: Option<&LocalPaths>,
    ) -> bool {
        let Self { player, notice_sender, queue_pairs } = self;
        member.memory_mut().set_time(now);
        let progress = member.poll(now, &mut |event| {
            player.handle_event(now, &event);
            table.handle_event(event);
        });
        // A broken connection ends the seat. Its control thread detects that.
        let _ = notice_sender.flush();
        let actions =
            player.play(now, member.ports_mut(), || None, &mut &**notice_sender).unwrap_or_default();
        for action in &actions {
            match action {
                FaultAction::Memory(conditions) => {
                    if let Some(local) = local {
                        local.withhold();
                    }
                    member.memory_mut().set_faults(now, conditions, || player.memory_faults());
                }
                FaultAction::QueuePairs(faults) => queue_pairs.clone_from(faults),
                FaultAction::Revoke => {
                    let regions = member.memory_mut().names();
                    regions.into_iter().for_each(|region| member.member_mut().revoke(region));
                    if let Some(local) = local {
                        local.revoke_all();
                    }
                }
                _ => {}
            }
        }
        let due = player.next_due(now).min(member.memory_mut().next_due());
        member.set_alarm(due);
        progress || !actions.is_empty()
    }
}
