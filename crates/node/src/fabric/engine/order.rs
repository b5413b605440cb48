//! Submission of commands to the core: each gets an identifier, and its completion goes to a sink.
//!
//! Requests, batches, drivers and collectives all use these methods, so an operation behaves the same in all of them.

use rackloom_protocol::{
    Command, Completion as Level, Event, ListedStore, Member, NodeId, OperationError, OperationId, RegionId,
    RemoteAddress,
};

use super::core::{BatchHint, Core};
use super::posted::Flushes;
use super::table::{Entry, Sink};
use crate::fabric::completion::Ended;
use crate::fabric::error::{Error, Invalid};
use crate::fabric::memory::region::Region;

/// Identifier in a request that has not begun.
pub(in crate::fabric) const NAMELESS: OperationId = OperationId(0);

/// One of several stores for [`crate::fabric::Driver::stores`].
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Store<'a> {
    /// Target of the store.
    pub target: RemoteAddress,
    /// Data, 1 to 16384 bytes.
    pub data: &'a [u8],
    /// Context of the completion. A posted store has no completion.
    pub context: u64,
}

impl<'a> Store<'a> {
    /// Returns a store of `data` to `target`, with `context` for its completion.
    #[must_use]
    #[inline]
    pub const fn new(target: RemoteAddress, data: &'a [u8], context: u64) -> Self {
        Self { target, data, context }
    }
}

/// Command of a request, and a handle that keeps its memory until the core has the command.
#[derive(Clone, Debug)]
pub(in crate::fabric) struct Order<'a> {
    pub(in crate::fabric) command: Command<'a>,
    #[expect(dead_code, reason = "kept to be given back when the core knows")]
    pub(in crate::fabric) hold: Option<Region>,
    /// The operation ends when the core accepts it. A store carries this in its command.
    pub(in crate::fabric) is_posted: bool,
}

impl Order<'_> {
    /// Returns `true` if the operation waits for other nodes, and could take a message or a word from later operations.
    pub(in crate::fabric) const fn waits_for_others(&self) -> bool {
        matches!(self.command, Command::Receive { .. } | Command::WaitUntil { .. })
    }

    /// Returns the order, posted.
    pub(in crate::fabric) fn posted(mut self) -> Result<Self, Error> {
        match &mut self.command {
            Command::Store { completion, .. } => *completion = Level::Accepted,
            Command::Receive { .. } | Command::WaitUntil { .. } | Command::Flush { .. } => {
                return Err(Error::Invalid(Invalid::NotPostable));
            }
            _ => self.is_posted = true,
        }
        Ok(self)
    }

    /// Returns the peer whose loss ends the operation.
    pub(in crate::fabric) const fn peer(&self) -> Option<NodeId> {
        peer_of(&self.command)
    }
}

impl Core {
    /// Gives the core a command under a new identifier.
    // Inlined: a caller that knows its command and its sink writes both once, where they stay. Behind a call they are written field
    // by field and then copied as a whole, and such a copy waits until every field has left for the cache: a tenth of a store's time.
    #[inline(always)]
    pub(in crate::fabric) fn submit(
        &mut self,
        mut command: Command<'_>,
        sink: Sink,
    ) -> Result<OperationId, Error> {
        let peer = peer_of(&command);
        let direct = self.access_directly(&command);
        let Some(member) = self.member.as_deref_mut() else { return Err(Error::Closed) };
        let (uses, flushes) = (region_of(&command), Flushes::of(&command));
        let operation = self.table.open(Entry { sink, peer, uses, matched: None, flushes });
        if let Some(result) = direct {
            self.table.handle_event(Event::Completed { operation, result });
            return Ok(operation);
        }
        // Commands need no precise time. The time of the last poll saves a clock reading.
        let now = member.last_poll();
        let is_silent = is_silent(&command);
        name(&mut command, operation);
        if let Err(refused) = member.member_mut().handle_command(now, command) {
            self.table.close(operation);
            let error = self.table.deaths.name(Error::from_refusal(refused, peer));
            return Err(self.table.unreported.take(flushes).unwrap_or(error));
        }
        if is_silent {
            self.table.succeed(operation);
        }
        Ok(operation)
    }

    /// Executes a command on mapped memory of a peer, if that is possible now. Returns its result; `None` if it must go in frames.
    #[inline(always)]
    fn access_directly(&mut self, command: &Command<'_>) -> Option<Result<u64, OperationError>> {
        if self.local.is_none() { None } else { self.access_local(command) }
    }

    #[inline(never)]
    fn access_local(&mut self, command: &Command<'_>) -> Option<Result<u64, OperationError>> {
        let Self { local: Some(local), member: Some(member), .. } = self else { return None };
        if let Command::WaitUntil { region, .. } = *command {
            local.await_word(region);
        }
        local.access(member, command)
    }

    /// Executes stores directly, up to the first one that must go in frames. Returns their number.
    fn store_directly(&mut self, stores: &[Store<'_>], completion: Level) -> usize {
        if self.local.is_none() {
            return 0;
        }
        let is_done = |store: &&Store<'_>| {
            let Store { target, data, context } = **store;
            let command = Command::Store { operation: NAMELESS, target, data, completion };
            let done = self.access_local(&command);
            if let (Some(result), Level::Visible) = (done, completion) {
                let operation = self.table.plain.open(context, target.node, None);
                self.table.handle_event(Event::Completed { operation, result });
            }
            done.is_some()
        };
        stores.iter().take_while(is_done).count()
    }

    /// Gives the core the command of a request. The sink of a posted one gets its completion at once.
    pub(in crate::fabric) fn give(&mut self, order: &Order<'_>, sink: Sink) -> Result<OperationId, Error> {
        if !order.is_posted {
            return self.submit(order.command, sink);
        }
        let operation = self.submit(order.command, Sink::Posted)?;
        self.table.deliver(sink, operation, Ok(Ended::default()));
        Ok(operation)
    }

    /// Gives the core a store of the driver.
    // Inlined for the same reason.
    #[inline(always)]
    pub(in crate::fabric) fn submit_store(
        &mut self,
        target: &RemoteAddress,
        data: &[u8],
        context: u64,
    ) -> Result<OperationId, Error> {
        if self.local.is_some() {
            let store =
                Command::Store { operation: NAMELESS, target: *target, data, completion: Level::Visible };
            return self.submit_plain(store, target.node, context);
        }
        let Some(member) = self.member.as_deref_mut() else { return Err(Error::Closed) };
        let operation = self.table.plain.open(context, target.node, None);
        if let Err(refused) = member.member_mut().store(operation, target, data, Level::Visible) {
            self.table.plain.close(operation);
            return Err(self.table.deaths.name(Error::from_refusal(refused, Some(target.node))));
        }
        Ok(operation)
    }

    /// Gives the core stores of the driver to `peer`, up to the first one that is refused. Returns the number that was accepted.
    #[inline]
    pub(in crate::fabric) fn submit_stores(
        &mut self,
        peer: NodeId,
        stores: &[Store<'_>],
    ) -> (usize, Option<Error>) {
        let direct = self.store_directly(stores, Level::Visible);
        let stores = &stores[direct..];
        let Some(member) = self.member.as_deref_mut() else { return (0, Some(Error::Closed)) };
        if stores.is_empty() {
            return (direct, None);
        }
        self.batch = BatchHint::default();
        let (plain, mut last) = (&mut self.table.plain, NAMELESS);
        let named = stores.iter().map(|store| {
            last = plain.open(store.context, peer, None);
            ListedStore { operation: last, target: &store.target, data: store.data }
        });
        let (taken, refused) = member.member_mut().stores(peer, named, Level::Visible);
        let refused = refused.map(|refused| {
            // The last identifier was not used, unless there was none.
            self.table.plain.close(last);
            self.table.deaths.name(Error::from_refusal(refused, Some(peer)))
        });
        (direct + taken, refused)
    }

    /// Gives the core posted stores of the driver to `peer`, up to the first one that is refused. Returns the number that was accepted.
    #[inline]
    pub(in crate::fabric) fn post_stores(
        &mut self,
        peer: NodeId,
        stores: &[Store<'_>],
    ) -> (usize, Option<Error>) {
        let direct = self.store_directly(stores, Level::Accepted);
        let stores = &stores[direct..];
        let Some(member) = self.member.as_deref_mut() else { return (0, Some(Error::Closed)) };
        if stores.is_empty() {
            return (direct, None);
        }
        let nameless = stores.iter().map(|store| ListedStore {
            operation: NAMELESS,
            target: &store.target,
            data: store.data,
        });
        let (taken, refused) = member.member_mut().stores(peer, nameless, Level::Accepted);
        let taken = direct + taken;
        (taken, refused.map(|refused| self.table.deaths.name(Error::from_refusal(refused, Some(peer)))))
    }

    /// Gives the core a command of the driver to `peer` that ends with one event without a value.
    // Inlined for the same reason.
    #[inline(always)]
    pub(in crate::fabric) fn submit_plain(
        &mut self,
        mut command: Command<'_>,
        peer: NodeId,
        context: u64,
    ) -> Result<OperationId, Error> {
        let direct = self.access_directly(&command);
        let Some(member) = self.member.as_deref_mut() else { return Err(Error::Closed) };
        let uses = region_of(&command);
        self.table.uses.begin(uses);
        let operation = self.table.plain.open(context, peer, uses);
        if let Some(result) = direct {
            self.table.handle_event(Event::Completed { operation, result });
            return Ok(operation);
        }
        let now = member.last_poll();
        name(&mut command, operation);
        if let Err(refused) = member.member_mut().handle_command(now, command) {
            self.table.plain.close(operation);
            self.table.uses.end(uses);
            return Err(self.table.deaths.name(Error::from_refusal(refused, Some(peer))));
        }
        Ok(operation)
    }

    /// Gives the core a posted operation. It is sent now if that makes it arrive sooner. It waits for others to share its frame while packets
    /// to the peer are in flight and the open packet has free space.
    pub(in crate::fabric) fn post(&mut self, order: &Order<'_>) -> Result<(), Error> {
        let (command, peer) = (order.command, order.peer());
        if order.is_posted {
            self.submit(command, Sink::Posted)?;
        } else if self.access_directly(&command).is_some() {
            return Ok(());
        } else {
            // A posted store needs no identifier and no slot in the table.
            let Some(member) = self.member.as_deref_mut() else { return Err(Error::Closed) };
            let now = member.last_poll();
            let given = member.member_mut().handle_command(now, command);
            given.map_err(|refused| self.table.deaths.name(Error::from_refusal(refused, peer)))?;
        }
        // The batch is one whole packet.
        if self.is_worth_sending(peer, 1) {
            self.visit_to_send();
        }
        Ok(())
    }

    /// Gives the core a posted store of the driver.
    // Inlined for the same reason.
    #[inline(always)]
    pub(in crate::fabric) fn post_store(&mut self, target: &RemoteAddress, data: &[u8]) -> Result<(), Error> {
        let peer = target.node;
        if self.local.is_some() {
            let store =
                Command::Store { operation: NAMELESS, target: *target, data, completion: Level::Accepted };
            if self.access_local(&store).is_some() {
                return Ok(());
            }
        }
        let Some(member) = self.member.as_deref_mut() else { return Err(Error::Closed) };
        if let Err(refused) = member.member_mut().store(NAMELESS, target, data, Level::Accepted) {
            return Err(self.table.deaths.name(Error::from_refusal(refused, Some(peer))));
        }
        if self.is_worth_sending(Some(peer), 1) {
            self.visit_to_send();
        }
        Ok(())
    }

    /// Returns `true` if the last command is to be sent now: nothing to the peer is in flight, or more packets than `batch` wait.
    #[inline]
    pub(in crate::fabric) fn is_worth_sending(&self, peer: Option<NodeId>, batch: usize) -> bool {
        let Some(member) = &self.member else { return false };
        peer.is_none_or(|peer| member.member().batch_wanted(peer, batch) == 0)
    }

    /// Returns the result of [`Core::is_worth_sending`] for a sequence of operations to one peer. Until the next poll only their number changes.
    #[inline]
    pub(in crate::fabric) fn is_next_worth_sending(&mut self, peer: NodeId, batch: usize) -> bool {
        if self.batch.peer == Some(peer) && self.batch.wanted > 0 {
            self.batch.wanted -= 1;
            return false;
        }
        let Some(member) = &self.member else { return false };
        let wanted = member.member().batch_wanted(peer, batch);
        self.batch = BatchHint { peer: Some(peer), wanted: wanted.saturating_sub(1) };
        wanted == 0
    }

    /// Cancels a wait or a receive, if it has not ended.
    pub(in crate::fabric) fn cancel(&mut self, operation: OperationId) {
        if let Some(member) = &mut self.member {
            let now = member.now();
            // The command fails for an operation that has ended meanwhile. It needs no cancellation.
            let _ = member.member_mut().handle_command(now, Command::Cancel { operation });
        }
    }

    /// Drops the completion of a request. One that waits for other nodes is cancelled, so that it takes nothing from later ones.
    pub(in crate::fabric) fn abandon(&mut self, operation: OperationId, waits_for_others: bool) {
        self.table.abandon(operation);
        if waits_for_others {
            self.cancel(operation);
            // The poll handles the event of its end, which frees its region.
            self.poll();
        }
    }

    /// Returns an error if one of `nodes` is neither a GPU node of the plan nor a process of one. This node is allowed.
    pub(in crate::fabric) fn check_endpoints(&mut self, nodes: &[NodeId]) -> Result<(), Error> {
        let roles = &self.member()?.member().config().graph.members;
        let is_endpoint = |node: &NodeId| roles.get(node.index()).is_some_and(|role| role.is_endpoint());
        let unknown = nodes.iter().find(|node| !is_endpoint(node));
        unknown.map_or(Ok(()), |node| Err(Error::NoSuchNode(*node)))
    }

    /// Returns `true` if a driver thread is awake and makes the next poll.
    pub(in crate::fabric) const fn is_driven(&self) -> bool {
        self.has_driver && self.driver_asleep.is_none()
    }
}

/// Returns the peer whose loss ends the command.
pub(in crate::fabric) const fn peer_of(command: &Command<'_>) -> Option<NodeId> {
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

/// Returns the region of this node that the command uses until it ends.
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

/// Returns `true` if the core emits no event for the end of the command.
const fn is_silent(command: &Command<'_>) -> bool {
    matches!(command, Command::Store { completion: Level::Accepted, .. } | Command::Fence { .. })
}

#[inline(always)]
const fn name(command: &mut Command<'_>, name: OperationId) {
    match command {
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
}
