//! Requests of this process, and the operations of the fabric that carry them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rackloom::fabric::{
    Completion, Ended, Error, Node, NodeId, OperationError, Queue, RegionId, RemoteAddress, Slice,
};
use rustix::io::Errno;

use super::directory::{Directory, Place};
use super::incoming::Incoming;
use super::message::{Content, DATA_BYTES, Grant, MESSAGE_BYTES, Message, Route};
use super::port::PortWatch;
use super::regions::Regions;
use super::slots::Slots;
use crate::engine::{
    Address, Carried, Notice, Operation, Outcome, Payload, Piece, Port, Region, Remote, Request, Target,
    Ticket, Transport, Waiter, addresses_of,
};
use crate::layout::Gid;
use crate::layout::constants::*;

/// Numbers of the regions of the transport. Keys of verbs are 256 or larger.
const OUTGOING_REGION: u32 = 1;
const INCOMING_REGION: u32 = 2;
const OUTGOING_SLOTS: usize = 256;
const INCOMING_SLOTS: usize = 256;
/// Tag of messages.
const MESSAGE_TAG: u64 = 0x7263_6b6c_6f6f_6d01;
/// Tag of receives that only report the loss of a peer. Nothing is sent with it.
const WATCH_TAG: u64 = 0x7263_6b6c_6f6f_6d02;
/// Length of the part of a long write that is written last.
const TAIL_BYTES: usize = 64;
/// Writes above this length have a tail.
const PAGE_BYTES: usize = 4096;
/// Interval between two posts of receives that failed because no peer was reached.
const POST_INTERVAL: Duration = Duration::from_millis(1);
/// Number of polls between two looks for connections that have closed.
const POLLS_PER_LOOK: u32 = 64;

/// Time in which requests wait for a process that was never reached. A process that has just begun is reached within milliseconds, and a
/// program may know its address before. A datagram is lost afterwards.
const EARLY: Duration = Duration::from_secs(1);
/// Most datagrams that wait so.
const EARLY_MAX: usize = 1024;

/// Kinds of operations of the fabric, in the highest byte of the context.
const SENT: u64 = 1 << 56;
pub(super) const RECEIVED: u64 = 2 << 56;
const JOB: u64 = 3 << 56;
pub(super) const INCOMING: u64 = 4 << 56;
const WATCH: u64 = 5 << 56;
const NUMBER: u64 = (1 << 56) - 1;

/// Transport of one process.
pub struct FabricTransport {
    pub(super) node: Node,
    pub(super) place: Place,
    pub(super) directory: Directory,
    pub(super) addresses: [Gid; 2],
    pub(super) queue: Arc<Queue>,
    pub(super) regions: Regions,
    pub(super) outgoing: Slots,
    pub(super) incoming: Slots,
    /// Messages that found no slot.
    pub(super) messages: VecDeque<(NodeId, Message)>,
    /// Number of messages that have a slot.
    pub(super) sending: usize,
    /// Operations of the fabric that found a full queue.
    pub(super) starts: VecDeque<(Start, u64)>,
    /// Operations of the fabric that failed when they were begun.
    pub(super) failed: VecDeque<(u64, Error)>,
    pub(super) jobs: BTreeMap<u64, Job>,
    pub(super) last_number: u64,
    pub(super) grants: BTreeMap<GrantName, Grant>,
    pub(super) watched: BTreeSet<NodeId>,
    pub(super) requests: Incoming,
    pub(super) ended: Vec<(Ticket, Outcome)>,
    pub(super) polls: u32,
    /// Datagrams to processes that are not reached yet, with the time at which they are lost.
    pub(super) early: VecDeque<(Instant, NodeId, Message)>,
    /// Requests to processes that were never reached, with the time at which they have no answer.
    pub(super) early_requests: VecDeque<(Instant, NodeId, Request)>,
    /// Times until which requests to a process wait for it. The time of a process that was reached has passed.
    pub(super) contacts: BTreeMap<NodeId, Instant>,
    pub(super) port: PortWatch,
    /// Slots of incoming messages without a receive.
    pub(super) idle: Vec<usize>,
    /// Time of the next post of receives.
    pub(super) post_due: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GrantName {
    pub(super) process: NodeId,
    pub(super) to: u32,
    from: u32,
    key: u32,
    right: u32,
}

/// Operation of the fabric.
pub(super) enum Start {
    Send { peer: NodeId, slot: usize, length: usize },
    Receive { slot: usize },
    Watch { peer: NodeId },
    Put { source: Slice, target: RemoteAddress },
    Get { source: RemoteAddress, into: Slice },
    FetchAdd { target: RemoteAddress, add: u64 },
    CompareSwap { target: RemoteAddress, expected: u64, new: u64 },
}

/// Request of this process.
pub(super) struct Job {
    ticket: Ticket,
    peer: NodeId,
    from: u32,
    to: u32,
    stage: Stage,
    /// Slot with inline data.
    slot: Option<usize>,
    failure: Option<Outcome>,
}

enum Stage {
    /// The peer has the application for a grant.
    Applying(Operation),
    /// Operations of the fabric are in flight.
    Moving { left: usize, tail: Option<(Slice, RemoteAddress)>, then: Then },
    /// The peer will answer.
    Announced,
}

/// Step after the last operation of the fabric.
enum Then {
    Finish,
    Notify { length: u64, immediate: u32, is_solicited: bool },
    Value { into: Vec<Piece> },
}

impl FabricTransport {
    /// Returns the transport of the process that has `node`.
    ///
    /// # Errors
    /// Those of [`Node::allocate`]; [`Error::NoSuchNode`] if the directory does not list the node.
    pub fn new(node: Node, directory: Directory) -> Result<Self, Error> {
        let place = directory.place_of(node.id()).ok_or(Error::NoSuchNode(node.id()))?;
        let outgoing = Slots::new(&node, OUTGOING_REGION, MESSAGE_BYTES, OUTGOING_SLOTS)?;
        let mut incoming = Slots::new(&node, INCOMING_REGION, MESSAGE_BYTES, INCOMING_SLOTS)?;
        let port = PortWatch::new(&node);
        let idle = std::iter::from_fn(|| incoming.take()).collect();
        Ok(Self {
            addresses: addresses_of(place.seat),
            queue: Queue::with_capacity(OUTGOING_SLOTS + INCOMING_SLOTS),
            node,
            place,
            directory,
            regions: Regions::default(),
            outgoing,
            incoming,
            messages: VecDeque::new(),
            sending: 0,
            starts: VecDeque::new(),
            failed: VecDeque::new(),
            jobs: BTreeMap::new(),
            last_number: 0,
            grants: BTreeMap::new(),
            watched: BTreeSet::new(),
            requests: Incoming::default(),
            ended: Vec::new(),
            polls: 0,
            early: VecDeque::new(),
            early_requests: VecDeque::new(),
            contacts: BTreeMap::new(),
            port,
            idle,
            post_due: Instant::now(),
        })
    }

    pub(super) fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number & NUMBER
    }

    // ---- operations of the fabric ------------------------------------------------------------------------------------

    /// Begins an operation of the fabric, now or with a later poll.
    pub(super) fn start(&mut self, start: Start, context: u64) {
        let waiting = if self.starts.is_empty() { self.try_start(start, context) } else { Some(start) };
        self.starts.extend(waiting.map(|start| (start, context)));
    }

    /// Begins an operation of the fabric. Returns it if the queue towards the peer is full.
    fn try_start(&mut self, start: Start, context: u64) -> Option<Start> {
        let begun = match &start {
            Start::Send { peer, slot, length } => {
                let source = self.outgoing.slice(*slot, *length);
                self.node.send(*peer, MESSAGE_TAG, &source).submit(&self.queue, context)
            }
            Start::Receive { slot } => {
                let into = self.incoming.slice(*slot, MESSAGE_BYTES);
                self.node.receive(None, MESSAGE_TAG, 0, &into).submit(&self.queue, context)
            }
            Start::Watch { peer } => {
                let into = self.outgoing.slice(0, 0);
                self.node.receive(Some(*peer), WATCH_TAG, 0, &into).submit(&self.queue, context)
            }
            Start::Put { source, target } => self.node.put(source, *target).submit(&self.queue, context),
            Start::Get { source, into } => self.node.get(*source, into).submit(&self.queue, context),
            Start::FetchAdd { target, add } => {
                self.node.fetch_add::<u64>(*target, *add).submit(&self.queue, context)
            }
            Start::CompareSwap { target, expected, new } => {
                self.node.compare_swap::<u64>(*target, *expected, *new).submit(&self.queue, context)
            }
        };
        match begun {
            Ok(_) => None,
            Err(Error::Busy { .. }) => Some(start),
            Err(error) => {
                self.failed.push_back((context, error));
                None
            }
        }
    }

    /// Sends a message, now or with a later poll.
    pub(super) fn notify(&mut self, peer: NodeId, message: Message) {
        if self.messages.is_empty()
            && let Some(slot) = self.outgoing.take()
        {
            self.send_from(slot, peer, &message);
        } else {
            self.messages.push_back((peer, message));
        }
    }

    fn send_from(&mut self, slot: usize, peer: NodeId, message: &Message) {
        let bytes = message.encode();
        if self.outgoing.write(slot, &bytes).is_err() {
            self.outgoing.give_back(slot);
            return;
        }
        self.sending += 1;
        self.start(Start::Send { peer, slot, length: bytes.len() }, SENT | slot as u64);
    }

    /// Sends datagrams whose process is reached now.
    fn send_early(&mut self) {
        for _ in 0..self.early.len() {
            let Some((until, peer, message)) = self.early.pop_front() else { return };
            if self.node.reaches(peer) {
                self.notify(peer, message);
            } else if Instant::now() < until {
                self.early.push_back((until, peer, message));
            }
        }
    }

    /// Begins requests whose process is reached now.
    fn begin_early(&mut self) {
        for _ in 0..self.early_requests.len() {
            let Some((until, peer, request)) = self.early_requests.pop_front() else { return };
            if self.node.reaches(peer) {
                self.contacts.insert(peer, Instant::now());
                self.begin(peer, request);
            } else if Instant::now() < until {
                self.early_requests.push_back((until, peer, request));
            } else {
                self.ended.push((request.ticket, unanswered(&request.operation)));
            }
        }
    }

    /// Begins operations and messages that had to wait.
    fn begin_waiting(&mut self) {
        while let Some((start, context)) = self.starts.pop_front() {
            if let Some(start) = self.try_start(start, context) {
                self.starts.push_front((start, context));
                break;
            }
        }
        while !self.messages.is_empty() {
            let Some(slot) = self.outgoing.take() else { break };
            if let Some((peer, message)) = self.messages.pop_front() {
                self.send_from(slot, peer, &message);
            }
        }
    }

    /// Has the fabric report the loss of a peer.
    pub(super) fn watch(&mut self, peer: NodeId) {
        if self.watched.insert(peer) {
            self.start(Start::Watch { peer }, WATCH | u64::from(peer.0));
        }
    }

    // ---- requests of this process ------------------------------------------------------------------------------------

    fn begin(&mut self, peer: NodeId, request: Request) {
        let Request { ticket, from, to, operation } = request;
        self.watch(peer);
        let number = self.number();
        let (from, to) = (from.queue_pair, to.queue_pair);
        let job = Job { ticket, peer, from, to, stage: Stage::Announced, slot: None, failure: None };
        if let Operation::Send { payload, immediate, is_solicited } = operation {
            let Some(content) = self.content(&payload) else {
                self.ended.push((ticket, Outcome::OperationFailed));
                return;
            };
            let route = job.route(number);
            self.jobs.insert(number, job);
            self.notify(peer, Message::Send { route, immediate, is_solicited, content });
            return;
        }
        let Some((remote, length, right)) = access_of(&operation) else {
            self.ended.push((ticket, Outcome::InvalidRequest));
            return;
        };
        let name = GrantName { process: peer, to, from, key: remote.key, right };
        let grant = self.grants.get(&name).copied().filter(|_| length > 0);
        self.jobs.insert(number, job);
        match grant {
            Some(grant) => self.access(number, operation, grant),
            None => self.apply(number, operation),
        }
    }

    /// Applies for a grant, with the access of a job.
    fn apply(&mut self, number: u64, operation: Operation) {
        let Some((remote, length, right)) = access_of(&operation) else { return };
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let (peer, route) = (job.peer, job.route(number));
        job.stage = Stage::Applying(operation);
        let (key, address) = (remote.key, remote.address);
        self.notify(peer, Message::Apply { route, key, address, length: length as u64, right });
    }

    /// Returns data as the content of a message. `None` if memory is no longer registered.
    fn content(&mut self, payload: &Payload) -> Option<Content> {
        let length = payload.length();
        if length <= DATA_BYTES {
            return Some(Content::Bytes(payload.to_bytes()));
        }
        let pieces = payload.pieces();
        pieces
            .iter()
            .map(|piece| self.regions.source(&self.node, *piece))
            .collect::<Option<_>>()
            .map(Content::Sources)
    }

    /// Accesses memory of the peer.
    fn access(&mut self, number: u64, operation: Operation, grant: Grant) {
        let Some(job) = self.jobs.get(&number) else { return };
        let Some((remote, length, right)) = access_of(&operation) else { return };
        let Some(offset) = grant.offset(remote, length) else {
            // The peer decides: it may enter the error state.
            let name = GrantName { process: job.peer, to: job.to, from: job.from, key: remote.key, right };
            self.grants.remove(&name);
            return self.apply(number, operation);
        };
        let target = RemoteAddress {
            node: job.peer,
            region: RegionId(remote.key),
            offset,
            key: rackloom::fabric::Key(grant.key),
        };
        match operation {
            Operation::Write { payload, immediate, is_solicited, .. } => {
                let then = match immediate {
                    Some(immediate) => Then::Notify { length: length as u64, immediate, is_solicited },
                    None => Then::Finish,
                };
                self.write(number, &payload, target, then);
            }
            Operation::Read { into, .. } => {
                let mut offset = 0;
                let mut starts = Vec::with_capacity(into.len());
                for piece in into {
                    let Some(slice) = self.regions.slice(piece) else { return self.fail(number) };
                    let source = RemoteAddress { offset: target.offset + offset, ..target };
                    starts.push(Start::Get { source, into: slice });
                    offset += piece.length() as u64;
                }
                self.go(number, starts, None, Then::Finish);
            }
            Operation::FetchAdd { into, add, .. } => {
                self.go(number, vec![Start::FetchAdd { target, add }], None, Then::Value { into });
            }
            Operation::CompareSwap { into, expected, new, .. } => {
                self.go(
                    number,
                    vec![Start::CompareSwap { target, expected, new }],
                    None,
                    Then::Value { into },
                );
            }
            Operation::Send { .. } | Operation::Datagram { .. } => self.fail(number),
        }
    }

    fn write(&mut self, number: u64, payload: &Payload, target: RemoteAddress, then: Then) {
        let mut slices = Vec::new();
        match payload {
            Payload::Bytes(bytes) if !bytes.is_empty() => {
                let Some(slot) = self.outgoing.take() else {
                    // Another poll will find a slot: the request is repeated.
                    return self.finish(number, Outcome::NoAnswer);
                };
                if let Some(job) = self.jobs.get_mut(&number) {
                    job.slot = Some(slot);
                }
                if self.outgoing.write(slot, bytes).is_err() {
                    return self.fail(number);
                }
                slices.push((self.outgoing.slice(slot, bytes.len()), bytes.len()));
            }
            Payload::Bytes(_) => {}
            Payload::Pieces(pieces) => {
                let mut pieces: Vec<Piece> = pieces.clone();
                if payload.length() > PAGE_BYTES
                    && let Some(last) = pieces.pop()
                {
                    let cut = last.length() - last.length().min(TAIL_BYTES);
                    pieces.extend((cut > 0).then(|| last.part(0..cut)));
                    pieces.push(last.part(cut..last.length()));
                }
                for piece in pieces {
                    let Some(slice) = self.regions.slice(piece) else { return self.fail(number) };
                    slices.push((slice, piece.length()));
                }
            }
        }
        let mut offset = target.offset;
        let mut puts: Vec<_> = slices
            .into_iter()
            .map(|(source, length)| {
                let target = RemoteAddress { offset, ..target };
                offset += length as u64;
                (source, target)
            })
            .collect();
        let tail = if puts.len() > 1 { puts.pop() } else { None };
        let starts = puts.into_iter().map(|(source, target)| Start::Put { source, target }).collect();
        self.go(number, starts, tail, then);
    }

    /// Begins the operations of a job.
    fn go(&mut self, number: u64, starts: Vec<Start>, tail: Option<(Slice, RemoteAddress)>, then: Then) {
        let left = starts.len();
        if let Some(job) = self.jobs.get_mut(&number) {
            job.stage = Stage::Moving { left, tail, then };
        }
        if left == 0 {
            self.advance(number);
        }
        starts.into_iter().for_each(|start| self.start(start, JOB | number));
    }

    /// Continues a job whose operations have ended.
    fn advance(&mut self, number: u64) {
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let Stage::Moving { left: 0, tail, then } = &mut job.stage else { return };
        if let Some(failure) = job.failure {
            return self.finish(number, failure);
        }
        if let Some((source, target)) = tail.take() {
            let then = std::mem::replace(then, Then::Finish);
            return self.go(number, vec![Start::Put { source, target }], None, then);
        }
        match std::mem::replace(then, Then::Finish) {
            Then::Finish | Then::Value { .. } => self.finish(number, Outcome::Done),
            Then::Notify { length, immediate, is_solicited } => {
                job.stage = Stage::Announced;
                let (peer, route) = (job.peer, job.route(number));
                self.notify(peer, Message::Written { route, length, immediate, is_solicited });
            }
        }
    }

    fn fail(&mut self, number: u64) {
        self.finish(number, Outcome::OperationFailed);
    }

    fn finish(&mut self, number: u64, outcome: Outcome) {
        let Some(job) = self.jobs.remove(&number) else { return };
        if let Some(slot) = job.slot {
            self.outgoing.give_back(slot);
        }
        if outcome != Outcome::Done {
            // The region or the connection may be gone.
            self.grants.retain(|name, _| (name.process, name.to) != (job.peer, job.to));
        }
        self.ended.push((job.ticket, outcome));
    }

    /// Handles the end of an operation of a job.
    fn moved(&mut self, number: u64, result: Result<Ended, Error>) {
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let Stage::Moving { left, then, .. } = &mut job.stage else { return };
        *left = left.saturating_sub(1);
        match result {
            Ok(ended) => {
                if let Then::Value { into } = then {
                    Piece::fill(into, &ended.value.to_ne_bytes());
                }
            }
            Err(error) => {
                job.failure.get_or_insert(outcome_of(&error));
            }
        }
        self.advance(number);
    }

    pub(super) fn granted(&mut self, peer: NodeId, number: u64, grant: Grant) {
        let Some(job) = self.jobs.get_mut(&number).filter(|job| job.peer == peer) else { return };
        let Stage::Applying(operation) = std::mem::replace(&mut job.stage, Stage::Announced) else { return };
        let Some((remote, length, right)) = access_of(&operation) else { return };
        let (from, to) = (job.from, job.to);
        if grant.offset(remote, length).is_none() {
            // A peer that grants something else than the application names.
            return self.finish(number, Outcome::InvalidRequest);
        }
        if length > 0 {
            self.grants.insert(GrantName { process: peer, to, from, key: remote.key, right }, grant);
        }
        self.access(number, operation, grant);
    }

    pub(super) fn replied(&mut self, peer: NodeId, number: u64, outcome: Outcome) {
        if self.jobs.get(&number).is_some_and(|job| job.peer == peer && !job.is_moving()) {
            self.finish(number, outcome);
        }
    }

    /// Ends everything with a peer that is lost.
    fn lost(&mut self, peer: NodeId) {
        self.watched.remove(&peer);
        self.grants.retain(|name, _| name.process != peer);
        self.messages.retain(|(to, _)| *to != peer);
        let waiting = self.jobs.iter().filter(|(_, job)| job.peer == peer && !job.is_moving());
        let waiting: Vec<_> = waiting.map(|(number, _)| *number).collect();
        // Operations of the fabric that are in flight end by themselves.
        waiting.into_iter().for_each(|number| self.finish(number, Outcome::Lost));
        self.requests.forget(peer);
    }

    fn handle(&mut self, context: u64, result: Result<Ended, Error>, target: &mut dyn Target) {
        let number = context & NUMBER;
        match context & !NUMBER {
            SENT => {
                self.sending -= 1;
                self.outgoing.give_back(number as usize);
            }
            RECEIVED => self.received(number as usize, result, target),
            JOB => self.moved(number, result),
            INCOMING => self.fetched(number, result.is_ok(), target),
            WATCH => {
                if result.is_err() {
                    self.lost(NodeId(number as u16));
                }
            }
            _ => debug_assert!(false, "every operation has a kind"),
        }
    }

    /// Posts receives again that failed, because no peer was reached.
    fn post_receives(&mut self) {
        while let Some(slot) = self.idle.pop() {
            self.start(Start::Receive { slot }, RECEIVED | slot as u64);
        }
    }
}

impl Job {
    const fn route(&self, number: u64) -> Route {
        Route { number, from: self.from, to: self.to }
    }

    const fn is_moving(&self) -> bool {
        matches!(self.stage, Stage::Moving { .. })
    }
}

/// Returns the memory that an operation accesses, the number of bytes and the right that it needs.
fn access_of(operation: &Operation) -> Option<(Remote, usize, u32)> {
    let length = |pieces: &[Piece]| pieces.iter().map(|piece| piece.length()).sum();
    match operation {
        Operation::Write { payload, remote, .. } => Some((*remote, payload.length(), ACCESS_REMOTE_WRITE)),
        Operation::Read { into, remote } => Some((*remote, length(into), ACCESS_REMOTE_READ)),
        Operation::FetchAdd { remote, .. } | Operation::CompareSwap { remote, .. } => {
            Some((*remote, 8, ACCESS_REMOTE_ATOMIC))
        }
        Operation::Send { .. } | Operation::Datagram { .. } => None,
    }
}

fn outcome_of(error: &Error) -> Outcome {
    match error {
        Error::PeerLost { .. } | Error::PeerLeft { .. } | Error::NoSuchNode(_) | Error::Closed => {
            Outcome::Lost
        }
        Error::Refused { reason: OperationError::Misaligned, .. } => Outcome::InvalidRequest,
        Error::Refused { .. } => Outcome::AccessDenied,
        _ => Outcome::OperationFailed,
    }
}

impl Transport for FabricTransport {
    fn own_node(&self) -> u32 {
        self.place.seat
    }

    fn addresses(&self) -> &[Gid] {
        &self.addresses
    }

    fn node_of(&self, address: &Gid) -> Option<u32> {
        (0..self.directory.seats()).find(|seat| addresses_of(*seat).contains(address))
    }

    fn queue_pair_numbers(&self) -> std::ops::RangeInclusive<u32> {
        self.place.queue_pairs()
    }

    fn carry(&mut self, request: Request, target: &mut dyn Target) -> Carried {
        let Address { node: Some(seat), queue_pair } = request.to else {
            return Carried::Done(unanswered(&request.operation));
        };
        let Some(peer) = self.directory.process(seat, queue_pair) else {
            return Carried::Done(unanswered(&request.operation));
        };
        if peer == self.node.id() {
            return Carried::Done(target.execute(&request));
        }
        let is_reached = self.node.reaches(peer);
        match request.operation {
            Operation::Datagram { payload, immediate, is_solicited, header } => {
                let (from, to) = (request.from.queue_pair, queue_pair);
                let data = payload.to_bytes();
                let message = Message::Datagram { from, to, immediate, is_solicited, header, data };
                if is_reached && self.early.is_empty() {
                    self.notify(peer, message);
                } else if self.early.len() < EARLY_MAX {
                    self.early.push_back((Instant::now() + EARLY, peer, message));
                }
                Carried::Done(Outcome::Done)
            }
            operation if !is_reached => {
                let now = Instant::now();
                let until = *self.contacts.entry(peer).or_insert(now + EARLY);
                if until <= now {
                    return Carried::Done(unanswered(&operation));
                }
                self.early_requests.push_back((until, peer, Request { operation, ..request }));
                Carried::Pending
            }
            operation => {
                self.contacts.entry(peer).or_insert_with(Instant::now);
                self.begin(peer, Request { operation, ..request });
                Carried::Pending
            }
        }
    }

    fn register(&mut self, key: u32, region: &Region) -> Result<(), Errno> {
        self.regions.insert(&self.node, key, region)
    }

    fn deregister(&mut self, key: u32) {
        self.regions.remove(key);
    }

    fn poll(&mut self, target: &mut dyn Target) -> Vec<(Ticket, Outcome)> {
        self.polls = self.polls.wrapping_add(1);
        self.port.look(&self.node);
        if self.polls.is_multiple_of(POLLS_PER_LOOK) {
            self.close_ended(target);
        }
        if !self.idle.is_empty() && self.post_due <= Instant::now() {
            self.post_due = Instant::now() + POST_INTERVAL;
            self.post_receives();
        }
        self.send_early();
        self.begin_early();
        self.begin_waiting();
        while let Some((context, error)) = self.failed.pop_front() {
            self.handle(context, Err(error), target);
        }
        while let Some(Completion { context, result, .. }) = self.node.poll(&self.queue) {
            self.handle(context, result, target);
        }
        std::mem::take(&mut self.ended)
    }

    fn waiter(&self) -> Option<Waiter> {
        let (node, queue) = (self.node.clone(), Arc::clone(&self.queue));
        Some(Box::new(move |timeout: Duration| {
            node.wait_until_filled(&queue, timeout);
        }))
    }

    fn is_pressing(&self) -> bool {
        !(self.idle.is_empty() && self.early.is_empty() && self.early_requests.is_empty())
    }

    fn port(&self) -> Port {
        self.port.state()
    }

    fn is_flushed(&self) -> bool {
        self.sending == 0 && self.messages.is_empty() && self.early.is_empty()
    }
}

/// Returns the outcome of a request that reaches no process. A datagram is lost.
const fn unanswered(operation: &Operation) -> Outcome {
    if matches!(operation, Operation::Datagram { .. }) { Outcome::Done } else { Outcome::NoAnswer }
}

/// Returns the notice of a message.
pub(super) const fn notice(immediate: Option<u32>, is_solicited: bool) -> Notice {
    Notice { immediate, is_solicited }
}
