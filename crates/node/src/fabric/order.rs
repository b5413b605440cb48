//! The one way to the core: a command is given a name, its end goes to a sink.
//!
//! Requests, batches, drivers and collectives all come through here; so an operation cannot behave differently in one of them.

use rackloom_protocol::{Command, Completion as Level, Member, NodeId, OperationId, RegionId};

use super::engine::Core;
use super::error::Error;
use super::region::Region;
use super::table::{Entry, Sink};

/// What a request asks of the core, and a handle that keeps its memory in place until the core knows.
#[derive(Clone, Debug)]
pub(super) struct Order<'a> {
    pub(super) command: Command<'a>,
    #[expect(dead_code, reason = "kept to be given back when the core knows")]
    pub(super) hold: Option<Region>,
}

impl Core {
    /// Give the core a command under a name.
    pub(super) fn submit(&mut self, command: Command<'_>, sink: Sink) -> Result<OperationId, Error> {
        let peer = peer_of(&command);
        let member = self.member.as_deref_mut().ok_or(Error::Closed)?;
        if let (Command::WaitUntil { .. }, Some(node)) = (&command, peer)
            && !member.member().is_reachable(node)
        {
            return Err(Error::PeerLost { peer: node, maybe_done: false });
        }
        let operation = self.table.open(Entry { sink, peer, uses: region_of(&command), matched: None });
        // The core asks commands for no time; that of the last turn saves a look at the clock.
        let now = member.last_turn();
        let (command, is_silent) = named(command, operation);
        if let Err(refused) = member.member_mut().handle_command(now, command) {
            self.table.close(operation);
            return Err(Error::from_refusal(refused, peer));
        }
        if is_silent {
            self.table.succeed(operation);
        }
        Ok(operation)
    }

    /// A command that the core says nothing more about. It leaves now if that helps it to be there sooner: as long as others
    /// are on their way and the open packet has room, it waits for company.
    pub(super) fn post(&mut self, command: Command<'_>) -> Result<(), Error> {
        let peer = peer_of(&command);
        let member = self.member.as_deref_mut().ok_or(Error::Closed)?;
        let now = member.last_turn();
        let given = member.member_mut().handle_command(now, command);
        given.map_err(|refused| Error::from_refusal(refused, peer))?;
        // One whole packet.
        if self.is_worth_sending(&command, 1) {
            self.visit_to_send();
        }
        Ok(())
    }

    /// Whether what has just been given should leave now: nothing is on its way to the peer, or more packets than `company` wait.
    #[inline]
    pub(super) fn is_worth_sending(&self, command: &Command<'_>, company: usize) -> bool {
        let Some(member) = &self.member else { return false };
        peer_of(command).is_none_or(|peer| member.member().is_worth_a_turn(peer, company))
    }

    /// End a wait or a receive, if it has not ended.
    pub(super) fn cancel(&mut self, operation: OperationId) {
        if let Some(member) = &mut self.member {
            let now = member.now();
            // What has ended meanwhile needs no end.
            let _ = member.member_mut().handle_command(now, Command::Cancel { operation });
        }
    }

    /// Whether somebody who is awake will make the next turn.
    pub(super) const fn is_driven(&self) -> bool {
        self.has_driver && self.driver_asleep.is_none()
    }
}

/// Whose loss ends the command.
const fn peer_of(command: &Command<'_>) -> Option<NodeId> {
    match command {
        Command::Store { target, .. }
        | Command::Load { target, .. }
        | Command::Atomic { target, .. }
        | Command::Put { target, .. }
        | Command::Get { target, .. } => Some(target.node),
        Command::Send { target, .. } => Some(*target),
        Command::Receive { source: peer, .. }
        | Command::WaitUntil { depends_on: peer, .. }
        | Command::Fence { target: peer }
        | Command::Flush { target: peer, .. } => *peer,
        _ => None,
    }
}

/// The region of this node's own that the command uses until it ends.
const fn region_of(command: &Command<'_>) -> Option<RegionId> {
    match command {
        Command::Put { source: range, .. }
        | Command::Send { source: range, .. }
        | Command::Load { into: range, .. }
        | Command::Get { into: range, .. }
        | Command::Receive { into: range, .. } => Some(range.region),
        Command::WaitUntil { region, .. } => Some(*region),
        _ => None,
    }
}

/// The command with its name, and whether the core says nothing about its end.
fn named(mut command: Command<'_>, name: OperationId) -> (Command<'_>, bool) {
    let is_silent =
        matches!(command, Command::Store { completion: Level::Accepted, .. } | Command::Fence { .. });
    match &mut command {
        Command::Store { operation, .. }
        | Command::Load { operation, .. }
        | Command::Atomic { operation, .. }
        | Command::Put { operation, .. }
        | Command::Get { operation, .. }
        | Command::Send { operation, .. }
        | Command::Receive { operation, .. }
        | Command::WaitUntil { operation, .. }
        | Command::Flush { operation, .. } => *operation = name,
        _ => {}
    }
    (command, is_silent)
}
