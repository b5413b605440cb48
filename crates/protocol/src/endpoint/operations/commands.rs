//! Commands of the caller: checked, numbered and queued, or refused at once.

use alloc::vec::Vec;

use crate::endpoint::Endpoint;
use crate::endpoint::order::Across;
use crate::endpoint::peer::Peer;
use crate::endpoint::stream::Stream;
use crate::error::{CommandRefused, InvalidCommand, OperationError};
use crate::event::Event;
use crate::ids::{Class, NodeId};
use crate::operation::bulk::Bulk;
use crate::operation::messages::Posted;
use crate::operation::outstanding::{ReplyKind, ReplyWait, VisibleWait, Waiting};
use crate::operation::waits::{Flush, WordWait};
use crate::operation::{
    Atomic, Command, Completion, GET_BYTES_MAX, LOAD_STORE_BYTES_MAX, LocalRange, OperationId, RemoteAddress,
    Signal,
};
use crate::wire::layout::{OPERATION_HEADER, OPERATIONS};
use crate::wire::packed::{LOAD_BYTES_MAX, Operation, SELECT_BYTES};

const PASSES_THE_END: CommandRefused = CommandRefused::Invalid(InvalidCommand::RemoteRange);
/// Largest number of long transfers that may be queued towards one node.
const BULK_QUEUE_MAX: usize = 1024;

/// Store of a list of stores to one node.
#[derive(Clone, Copy, Debug)]
pub struct ListedStore<'d> {
    /// Name of the operation in its completion.
    pub operation: OperationId,
    /// Destination.
    pub target: &'d RemoteAddress,
    /// Bytes to store.
    pub data: &'d [u8],
}

impl Endpoint {
    pub(in crate::endpoint) fn take_command(&mut self, command: Command<'_>) -> Result<(), CommandRefused> {
        match command {
            Command::WaitUntil { operation, region, offset, condition, value, depends_on } => {
                if !offset.is_multiple_of(8) || !self.regions.holds(region, offset, 8) {
                    return Err(CommandRefused::Invalid(InvalidCommand::WaitWord));
                }
                self.check_remote(depends_on)?;
                let is_last = depends_on.is_some_and(|node| !self.forwarder.reaches(node));
                self.words.push(WordWait {
                    operation,
                    region,
                    offset,
                    condition,
                    value,
                    depends_on,
                    is_checking: false,
                    is_stale: false,
                    is_last,
                });
                self.look_at_word(self.words.len() - 1);
                Ok(())
            }
            Command::Receive { operation, source, tag, ignore, into } => {
                self.check_remote(source)?;
                self.post_receive(Posted { operation, source, tag, ignore, into })
            }
            Command::Send { operation, target, tag, source } => {
                self.with_peer(target, Class::Request, |endpoint, peer| {
                    endpoint.in_order(peer, Class::Request, |endpoint, peer| {
                        endpoint.start_send(peer, operation, tag, source)
                    })
                })?
            }
            Command::Cancel { operation } => self.cancel(operation),
            Command::Fence { target } => {
                self.check_reached(target)?;
                self.fence(target);
                Ok(())
            }
            Command::Flush { operation, target } => {
                if !self.has_unreported_failure(target) {
                    self.check_reached(target)?;
                }
                self.flush(operation, target);
                Ok(())
            }
            Command::Store { operation, target, data, completion } => {
                self.store(operation, &target, data, completion)
            }
            Command::Load { target, .. }
            | Command::Atomic { target, .. }
            | Command::Put { target, .. }
            | Command::Get { target, .. } => {
                if target.offset.checked_add(remote_bytes(&command)).is_none() {
                    return Err(PASSES_THE_END);
                }
                let is_bulk = matches!(command, Command::Put { .. } | Command::Get { .. });
                let class = if is_bulk { Class::Bulk } else { Class::Request };
                self.with_peer(target.node, class, |endpoint, peer| {
                    endpoint.in_order(peer, class, |endpoint, peer| endpoint.start(peer, command))
                })?
            }
        }
    }

    /// Executes a [`Command::Store`], the most frequent command, without the cost of building and matching the enum.
    ///
    /// # Errors
    /// See [`CommandRefused`].
    // By reference: the caller has just written the address field by field, and a copy of the whole would wait for
    // the fields.
    #[inline]
    pub fn store(
        &mut self,
        operation: OperationId,
        target: &RemoteAddress,
        data: &[u8],
        completion: Completion,
    ) -> Result<(), CommandRefused> {
        self.with_peer(target.node, Class::Request, |endpoint, peer| {
            endpoint.start_store_in_order(peer, operation, target, data, completion)
        })?
    }

    /// Executes stores to one node in order, up to the first that is refused. Returns the number of accepted stores,
    /// and the reason for the refusal.
    #[inline]
    pub fn stores<'d>(
        &mut self,
        node: NodeId,
        stores: impl Iterator<Item = ListedStore<'d>>,
        completion: Completion,
    ) -> (usize, Option<CommandRefused>) {
        let mut taken = 0;
        let begun = self.with_peer(node, Class::Request, |endpoint, peer| {
            for ListedStore { operation, target, data } in stores {
                debug_assert_eq!(target.node, node, "a list of stores is for one node");
                endpoint.start_store_in_order(peer, operation, target, data, completion)?;
                taken += 1;
            }
            Ok(())
        });
        (taken, begun.flatten().err())
    }

    /// Begins an operation towards a node, and queues its stream for transmission.
    #[inline(always)]
    fn with_peer<T>(
        &mut self,
        node: NodeId,
        class: Class,
        begin: impl FnOnce(&mut Self, &mut Peer) -> T,
    ) -> Result<T, CommandRefused> {
        self.check_reached(Some(node))?;
        let mut peer = self.peer_of(node).ok_or(CommandRefused::Unreachable(node))?;
        let begun = begin(self, &mut peer);
        self.queue_data(&mut peer, class);
        self.put_back(peer);
        Ok(begun)
    }

    #[inline]
    fn start_store_in_order(
        &mut self,
        peer: &mut Peer,
        operation: OperationId,
        target: &RemoteAddress,
        data: &[u8],
        completion: Completion,
    ) -> Result<(), CommandRefused> {
        if target.offset.checked_add(data.len() as u64).is_none() {
            return Err(PASSES_THE_END);
        }
        self.in_order(peer, Class::Request, |endpoint, peer| {
            endpoint.start_store(peer, operation, target, data, completion)
        })
    }

    /// Begins an operation towards a peer, if the order scope allows it now. A violation is reported only after the
    /// operation has begun, because a refused command is repeated and has violated nothing.
    #[inline(always)]
    fn in_order(
        &mut self,
        peer: &mut Peer,
        class: Class,
        begin: impl FnOnce(&mut Self, &mut Peer) -> Result<(), CommandRefused>,
    ) -> Result<(), CommandRefused> {
        let across = self.across_classes(peer, class);
        if across == Across::Waits || !self.passes_fence(peer) {
            return Err(CommandRefused::Busy);
        }
        begin(self, peer)?;
        self.note_across(across, class);
        Ok(())
    }

    /// Checks that the target of a command is another endpoint of the rack.
    fn check_remote(&self, named: Option<NodeId>) -> Result<(), CommandRefused> {
        let Some(node) = named else { return Ok(()) };
        let role = self.config().graph.members.get(node.index());
        let is_endpoint = role.is_some_and(|role| role.is_endpoint());
        if !is_endpoint || node == self.config().node {
            return Err(CommandRefused::NoSuchNode(node));
        }
        Ok(())
    }

    /// Checks that a live path leads to the target.
    fn check_reached(&self, named: Option<NodeId>) -> Result<(), CommandRefused> {
        self.check_remote(named)?;
        match named {
            Some(node) if !self.forwarder.reaches(node) => Err(CommandRefused::Unreachable(node)),
            _ => Ok(()),
        }
    }

    /// Returns true if posted stores to this node have failed and no flush has reported that yet.
    fn has_unreported_failure(&self, node: Option<NodeId>) -> bool {
        let peer = node.and_then(|node| self.peers.get(node.index())?.as_deref());
        peer.is_some_and(|peer| peer.posted_error.is_some())
    }

    #[inline]
    fn passes_fence(&self, peer: &mut Peer) -> bool {
        let Some(mut mark) = peer.seldom().and_then(|seldom| seldom.fence) else { return true };
        let reached = peer.has_reached(&mut mark);
        peer.seldom_mut().fence = (!reached).then_some(mark);
        reached
    }

    fn start(&mut self, peer: &mut Peer, command: Command<'_>) -> Result<(), CommandRefused> {
        match command {
            Command::Load { operation, target, into } => self.start_load(peer, operation, target, into),
            Command::Atomic { operation, target, atomic } => {
                self.start_atomic(peer, operation, target, atomic)
            }
            Command::Put { operation, target, source, signal } => {
                self.start_put(peer, operation, target, source, signal)
            }
            Command::Get { operation, target, into } => self.start_get(peer, operation, target, into),
            Command::Store { .. }
            | Command::Send { .. }
            | Command::Receive { .. }
            | Command::WaitUntil { .. }
            | Command::Fence { .. }
            | Command::Flush { .. }
            | Command::Cancel { .. } => Err(CommandRefused::Invalid(InvalidCommand::NotRemote)),
        }
    }

    pub(in crate::endpoint) fn has_space(&self, peer: &Peer) -> Result<(), CommandRefused> {
        let unsent = peer.streams.of(Class::Request).sender.unsent();
        if unsent < self.config().transport.window_packets as usize {
            Ok(())
        } else {
            Err(CommandRefused::Busy)
        }
    }

    #[inline]
    fn start_store(
        &mut self,
        peer: &mut Peer,
        operation: OperationId,
        target: &RemoteAddress,
        data: &[u8],
        completion: Completion,
    ) -> Result<(), CommandRefused> {
        if data.is_empty() || data.len() > LOAD_STORE_BYTES_MAX {
            return Err(CommandRefused::Invalid(InvalidCommand::StoreLength));
        }
        self.has_space(peer)?;
        let address = Some((target.region, target.key));
        let payload_bytes_max =
            usize::from(self.config().frame_bytes_max) - OPERATIONS - SELECT_BYTES - OPERATION_HEADER;
        let Stream { sender, outstanding, .. } = peer.streams.of_mut(Class::Request);
        let (first, mut last) = (sender.next_operation(), sender.next_operation());
        let (mut offset, mut rest) = (target.offset, data);
        while !rest.is_empty() {
            let (chunk, behind) = rest.split_at(rest.len().min(payload_bytes_max));
            last = sender.append(address, &Operation::Store { offset, data: chunk });
            (offset, rest) = (offset.wrapping_add(payload_bytes_max as u64), behind);
        }
        if completion == Completion::Visible {
            self.groups.begin_one();
            let wait = VisibleWait { first, last, command: Waiting::Command(operation), error: None };
            outstanding.expect_visible(wait);
        } else {
            peer.posted_last = Some(last);
        }
        Ok(())
    }

    fn start_load(
        &mut self,
        peer: &mut Peer,
        operation: OperationId,
        target: RemoteAddress,
        into: LocalRange,
    ) -> Result<(), CommandRefused> {
        if into.length == 0 || into.length > LOAD_STORE_BYTES_MAX as u64 {
            return Err(CommandRefused::Invalid(InvalidCommand::LoadLength));
        }
        if !self.regions.holds(into.region, into.offset, into.length) {
            return Err(CommandRefused::Invalid(InvalidCommand::Destination));
        }
        self.has_space(peer)?;
        let end = target.offset + into.length;
        let boundary = LOAD_BYTES_MAX as u64;
        let parts = (end.div_ceil(boundary) - target.offset / boundary) as u32;
        if parts > self.config().outstanding_loads_max {
            return Err(CommandRefused::Invalid(InvalidCommand::LoadRequests));
        }
        let Stream { sender, outstanding, .. } = peer.streams.of_mut(Class::Request);
        if outstanding.open_replies() as u32 + parts > self.forwarder.config.outstanding_loads_max {
            return Err(CommandRefused::Busy);
        }
        let group = self.groups.open(operation, parts);
        let mut offset = target.offset;
        while offset < end {
            let next = ((offset / boundary + 1) * boundary).min(end);
            let length = next - offset;
            let request = Operation::Load { offset, length: length as u32 };
            let number = sender.append(Some((target.region, target.key)), &request);
            let own_offset = into.offset + (offset - target.offset);
            let kind = ReplyKind::Bytes { region: into.region, offset: own_offset, length };
            outstanding.expect_reply(ReplyWait { number, group, kind, missing: length, is_over: false });
            offset = next;
        }
        Ok(())
    }

    fn start_atomic(
        &mut self,
        peer: &mut Peer,
        operation: OperationId,
        target: RemoteAddress,
        atomic: Atomic,
    ) -> Result<(), CommandRefused> {
        self.has_space(peer)?;
        let Stream { sender, outstanding, .. } = peer.streams.of_mut(Class::Request);
        if outstanding.open_replies() as u32 >= self.forwarder.config.outstanding_loads_max {
            return Err(CommandRefused::Busy);
        }
        let group = self.groups.open(operation, 1);
        let request = Operation::Atomic { offset: target.offset, atomic };
        let number = sender.append(Some((target.region, target.key)), &request);
        outstanding.expect_reply(ReplyWait {
            number,
            group,
            kind: ReplyKind::Value,
            missing: 0,
            is_over: false,
        });
        Ok(())
    }

    fn start_put(
        &mut self,
        peer: &mut Peer,
        operation: OperationId,
        target: RemoteAddress,
        source: LocalRange,
        signal: Option<Signal>,
    ) -> Result<(), CommandRefused> {
        if source.length == 0 && signal.is_none() {
            return Err(CommandRefused::Invalid(InvalidCommand::PutWithoutEffect));
        }
        if source.length > 0 && !self.regions.holds(source.region, source.offset, source.length) {
            return Err(CommandRefused::Invalid(InvalidCommand::Source));
        }
        self.queue_bulk(
            peer,
            |group| Bulk::Put {
                group,
                target,
                source,
                signal,
                position: 0,
                first: None,
                error: None,
                transfer: 0,
            },
            operation,
        )
    }

    fn start_get(
        &mut self,
        peer: &mut Peer,
        operation: OperationId,
        target: RemoteAddress,
        into: LocalRange,
    ) -> Result<(), CommandRefused> {
        if into.length == 0 || into.length > GET_BYTES_MAX {
            return Err(CommandRefused::Invalid(InvalidCommand::GetLength));
        }
        if !self.regions.holds(into.region, into.offset, into.length) {
            return Err(CommandRefused::Invalid(InvalidCommand::Destination));
        }
        self.queue_bulk(peer, |group| Bulk::Get { group, target, into }, operation)
    }

    fn queue_bulk(
        &mut self,
        peer: &mut Peer,
        bulk: impl FnOnce(crate::operation::groups::GroupId) -> Bulk,
        operation: OperationId,
    ) -> Result<(), CommandRefused> {
        let stream = peer.streams.of_mut(Class::Bulk);
        if stream.bulk.len() >= BULK_QUEUE_MAX {
            return Err(CommandRefused::Busy);
        }
        stream.push_bulk(bulk(self.groups.open(operation, 1)));
        peer.bulk_requested += 1;
        peer.judge_overlap();
        Ok(())
    }

    fn targets(&self, target: Option<NodeId>) -> Vec<NodeId> {
        match target {
            Some(node) => alloc::vec![node],
            None => self.known.clone(),
        }
    }

    fn fence(&mut self, target: Option<NodeId>) {
        for node in self.targets(target) {
            if let Some(Some(peer)) = self.peers.get_mut(node.index()) {
                peer.seldom_mut().fence = Some(peer.mark());
            }
        }
    }

    fn flush(&mut self, operation: OperationId, target: Option<NodeId>) {
        let mut failed = None;
        let mut marks = Vec::new();
        for node in self.targets(target) {
            if let Some(Some(peer)) = self.peers.get_mut(node.index()) {
                marks.push(peer.mark());
                // Later flushes report the errors of the other peers.
                failed = failed.or_else(|| peer.take_posted_error());
            }
        }
        self.flushes.push(Flush { operation, marks, failed });
        self.end_flushes();
    }

    fn cancel(&mut self, operation: OperationId) -> Result<(), CommandRefused> {
        let is_it = |posted: &Posted| posted.operation == operation;
        if let Some(index) = self.words.iter().position(|wait| wait.operation == operation) {
            self.words.swap_remove(index);
        } else if let Some(index) = self.matching.posted.iter().position(is_it) {
            self.matching.posted.remove(index);
        } else {
            return Err(CommandRefused::Invalid(InvalidCommand::NoSuchWait));
        }
        let result = Err(OperationError::Cancelled);
        self.forwarder.push_event(Event::Completed { operation, result });
        Ok(())
    }
}

/// Number of bytes that a command touches at its target.
const fn remote_bytes(command: &Command<'_>) -> u64 {
    match command {
        Command::Store { data, .. } => data.len() as u64,
        Command::Load { into, .. } | Command::Get { into, .. } => into.length,
        Command::Put { source, .. } => source.length,
        Command::Atomic { atomic, .. } => atomic.width.bytes(),
        Command::Send { .. }
        | Command::Receive { .. }
        | Command::WaitUntil { .. }
        | Command::Fence { .. }
        | Command::Flush { .. }
        | Command::Cancel { .. } => 0,
    }
}
