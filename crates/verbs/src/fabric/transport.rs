//! The transport: operations of the fabric, messages, and the calls of the engine.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rackloom::fabric::{self, Completion, Error, Node, NodeId, Queue, QueuePairFault};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::datagrams::{Datagrams, Position};
use super::directory::{Directory, Place};
use super::early::{Early, Ended, Waiting};
use super::incoming::Incoming;
use super::job::{Connection, Jobs};
use super::message::{MESSAGE_BYTES, Message};
use super::operation::{INCOMING, JOB, NUMBER, RECEIVED, SENT, Start, Starts, WATCH};
use super::port::PortWatch;
use super::regions::Regions;
use super::slots::Slots;
use crate::engine::{
    Address, Carried, Notice, Operation, Outcome, PeerEvent, Port, Process, Region, Request, Target, Ticket,
    Transport, Waiter, addresses_of, node_of_port, port_of, seat_of,
};
use crate::layout::Gid;

/// Numbers of the regions of the transport. Keys of verbs are 256 or larger.
const OUTGOING_REGION: u32 = 1;
const INCOMING_REGION: u32 = 2;
const OUTGOING_SLOTS: usize = 256;
const INCOMING_SLOTS: usize = 256;
/// Tag of messages.
const MESSAGE_TAG: u64 = 0x7263_6b6c_6f6f_6d01;
/// Tag of receives that only report the loss of a peer. Nothing is sent with it.
const WATCH_TAG: u64 = 0x7263_6b6c_6f6f_6d02;
/// Interval between two posts of receives that failed because no peer was reached.
const POST_INTERVAL: Duration = Duration::from_millis(1);
/// Number of polls between two looks for connections that have closed.
const POLLS_PER_LOOK: u32 = 64;

/// Transport of one port of a process.
pub struct FabricTransport {
    /// Number of the port.
    number: u8,
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
    starts: Starts,
    /// Operations of the fabric that failed when they were begun.
    pub(super) failed: VecDeque<(u64, Error)>,
    pub(super) jobs: Jobs,
    /// Connections whose next request waits for a slot.
    pub(super) starved: BTreeSet<Connection>,
    /// Puts to one process take effect in the order in which they begin.
    pub(super) keeps_order: bool,
    pub(super) last_number: u64,
    pub(super) watched: BTreeSet<NodeId>,
    pub(super) requests: Incoming,
    pub(super) datagrams: Datagrams<Request>,
    pub(super) ended: Vec<(Ticket, Outcome)>,
    /// Events of connection management that the next look takes.
    pub(super) peer_events: Vec<PeerEvent>,
    pub(super) polls: u32,
    early: Early,
    pub(super) port: PortWatch,
    /// Slots of incoming messages without a receive.
    pub(super) idle: Vec<usize>,
    /// Time of the next post of receives.
    pub(super) post_due: Instant,
}

impl FabricTransport {
    /// Returns the transport of a port of the process that has `node`. The directory lists the processes that the port reaches.
    ///
    /// # Errors
    /// Those of [`Node::allocate`]; [`Error::NoSuchNode`] if the directory does not list the node.
    pub fn new(node: Node, directory: Directory, port: u8) -> Result<Self, Error> {
        let place = directory.place_of(node.id()).ok_or(Error::NoSuchNode(node.id()))?;
        let outgoing = Slots::new(&node, OUTGOING_REGION, MESSAGE_BYTES, OUTGOING_SLOTS)?;
        let mut incoming = Slots::new(&node, INCOMING_REGION, MESSAGE_BYTES, INCOMING_SLOTS)?;
        let (watch, keeps_order) = (PortWatch::new(&node), node.keeps_order_of_puts());
        let idle = std::iter::from_fn(|| incoming.take()).collect();
        Ok(Self {
            number: port,
            addresses: addresses_of(node_of_port(place.seat, port)),
            queue: Queue::with_capacity(OUTGOING_SLOTS + INCOMING_SLOTS),
            node,
            place,
            directory,
            regions: Regions::default(),
            outgoing,
            incoming,
            messages: VecDeque::new(),
            sending: 0,
            starts: Starts::default(),
            failed: VecDeque::new(),
            jobs: Jobs::default(),
            starved: BTreeSet::new(),
            keeps_order,
            last_number: 0,
            watched: BTreeSet::new(),
            requests: Incoming::default(),
            datagrams: Datagrams::default(),
            ended: Vec::new(),
            peer_events: Vec::new(),
            polls: 0,
            early: Early::default(),
            port: watch,
            idle,
            post_due: Instant::now(),
        })
    }

    /// Returns the node that a seat is for this port.
    pub(super) fn node_of_seat(&self, seat: u32) -> u32 {
        node_of_port(seat, self.number)
    }

    /// Returns the queue of the completions of this port.
    pub(super) const fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    pub(super) fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number & NUMBER
    }

    // ---- operations of the fabric ------------------------------------------------------------------------------------

    /// Begins an operation of the fabric, now or with a later poll.
    pub(super) fn start(&mut self, start: Start, context: u64) {
        let parts = (&self.node, &self.queue, &self.outgoing, &self.incoming);
        let failed = &mut self.failed;
        self.starts.begin(start, context, |start, context| try_start(parts, failed, start, context));
    }

    /// Sends a message, now or with a later poll.
    pub(super) fn notify(&mut self, peer: NodeId, mut message: Message) {
        match &mut message {
            Message::Datagram { at, .. } => {
                self.watch(peer);
                *at = self.datagrams.send(peer);
            }
            Message::Note(_) => self.watch(peer),
            _ => {}
        }
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

    /// Returns true if what is sent to a process now must wait until it is reached.
    fn is_early(&self, peer: NodeId) -> bool {
        self.early.waits_for(peer) || !self.node.reaches(peer)
    }

    /// Begins requests, datagrams and notes whose process is reached now.
    fn begin_early(&mut self) {
        if self.early.is_empty() {
            return;
        }
        let node = &self.node;
        for ended in self.early.take_ended(Instant::now(), |peer| node.reaches(peer)) {
            match ended {
                Ended::Reached(peer, Waiting::Message(message)) => self.notify(peer, message),
                Ended::Reached(peer, Waiting::Request(request)) => self.begin(peer, request),
                Ended::Late(Waiting::Message(_)) => {}
                Ended::Late(Waiting::Request(request)) => {
                    self.ended.push((request.ticket, unanswered(&request.operation)));
                }
            }
        }
    }

    /// Begins operations and messages that had to wait.
    fn begin_waiting(&mut self) {
        let parts = (&self.node, &self.queue, &self.outgoing, &self.incoming);
        let failed = &mut self.failed;
        self.starts.begin_waiting(|start, context| try_start(parts, failed, start, context));
        while !self.messages.is_empty() {
            let Some(slot) = self.outgoing.take() else { break };
            if let Some((peer, message)) = self.messages.pop_front() {
                self.send_from(slot, peer, &message);
            }
        }
        for connection in std::mem::take(&mut self.starved) {
            self.begin_line(connection);
        }
    }

    /// Has the fabric report the loss of a peer.
    pub(super) fn watch(&mut self, peer: NodeId) {
        if self.watched.insert(peer) {
            self.start(Start::Watch { peer }, WATCH | u64::from(peer.0));
        }
    }

    fn handle(&mut self, context: u64, result: Result<fabric::Ended, Error>, target: &mut dyn Target) {
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

impl Transport for FabricTransport {
    fn own_node(&self) -> u32 {
        self.node_of_seat(self.place.seat)
    }

    fn addresses(&self, _port: u8) -> &[Gid] {
        &self.addresses
    }

    fn node_of(&self, address: &Gid) -> Option<u32> {
        let mut nodes = (0..self.directory.seats()).map(|seat| self.node_of_seat(seat));
        nodes.find(|node| addresses_of(*node).contains(address))
    }

    fn queue_pair_numbers(&self) -> std::ops::RangeInclusive<u32> {
        self.place.queue_pairs()
    }

    fn carry(&mut self, request: Request, target: &mut dyn Target) -> Carried {
        let Address { node: Some(node), queue_pair } = request.to else {
            return Carried::Done(unanswered(&request.operation));
        };
        // No path leads from one plane to another.
        let seat = Some(seat_of(node)).filter(|_| port_of(node) == self.number);
        let Some(peer) = seat.and_then(|seat| self.directory.process(seat, queue_pair)) else {
            return Carried::Done(unanswered(&request.operation));
        };
        if peer == self.node.id() {
            return Carried::Done(target.execute(&request));
        }
        self.begin_early();
        let is_early = self.is_early(peer);
        match request.operation {
            Operation::Datagram { payload, immediate, is_solicited, header } => {
                let (from, to) = (request.from.queue_pair, queue_pair);
                let (at, data) = (Position::default(), payload.to_bytes());
                let message = Message::Datagram { from, to, immediate, is_solicited, header, at, data };
                if is_early {
                    self.early.add_message(peer, message, Instant::now());
                } else {
                    self.notify(peer, message);
                }
                Carried::Done(Outcome::Done)
            }
            operation if is_early => {
                let request = Request { operation, ..request };
                match self.early.add_request(peer, request, Instant::now()) {
                    None => Carried::Pending,
                    Some(request) => Carried::Done(unanswered(&request.operation)),
                }
            }
            operation => {
                self.early.note_reached(peer, Instant::now());
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
        self.begin_early();
        self.begin_waiting();
        while let Some((context, error)) = self.failed.pop_front() {
            self.handle(context, Err(error), target);
        }
        while let Some(Completion { context, result, .. }) = self.node.poll(&self.queue) {
            self.handle(context, result, target);
        }
        self.send_replies();
        std::mem::take(&mut self.ended)
    }

    fn waiter(&self) -> Option<Waiter> {
        Some(waiter_of(vec![Arc::clone(&self.queue)]))
    }

    fn hand_over(&mut self) {
        self.node.pause_polls();
    }

    fn is_pressing(&self) -> bool {
        !(self.idle.is_empty() && self.early.is_empty())
    }

    fn port(&self, _port: u8) -> Port {
        self.port.state()
    }

    fn take_queue_pair_faults(&mut self) -> Option<Vec<QueuePairFault>> {
        self.port.take_faults()
    }

    fn is_flushed(&self) -> bool {
        self.sending == 0 && self.messages.is_empty() && !self.early.has_datagrams()
    }

    fn own_process(&self) -> Process {
        Process(self.node.id().0)
    }

    fn processes(&self, node: u32) -> Vec<Process> {
        self.directory.processes(seat_of(node)).iter().map(|process| Process(process.0)).collect()
    }

    fn node_of_process(&self, process: Process) -> Option<u32> {
        self.directory.place_of(NodeId(process.0)).map(|place| self.node_of_seat(place.seat))
    }

    fn reaches_process(&self, process: Process) -> bool {
        process == self.own_process() || self.node.reaches(NodeId(process.0))
    }

    fn reaches_node(&self, node: u32) -> bool {
        let seat = seat_of(node);
        seat == self.place.seat || u16::try_from(seat).is_ok_and(|seat| self.node.reaches(NodeId(seat)))
    }

    fn send_note(&mut self, to: Process, bytes: Vec<u8>) {
        let (peer, note) = (NodeId(to.0), Message::Note(bytes));
        if self.is_early(peer) {
            self.early.add_message(peer, note, Instant::now());
        } else {
            self.notify(peer, note);
        }
    }

    fn take_peer_events(&mut self) -> Vec<PeerEvent> {
        std::mem::take(&mut self.peer_events)
    }
}

/// Returns a function that waits for completions of these queues.
pub(super) fn waiter_of(queues: Vec<Arc<Queue>>) -> Waiter {
    // A thread that waits in the node drives it, and polls of the program then leave the node to that thread, also while it has no processor. So
    // the fabric's own thread drives, and this one waits for completions.
    Box::new(move |timeout: Duration| {
        let Ok(opened) = queues.iter().map(|queue| queue.descriptor()).collect::<Result<Vec<_>, _>>() else {
            return std::thread::sleep(timeout);
        };
        let mut descriptors: Vec<_> = opened.iter().map(|queue| PollFd::new(queue, PollFlags::IN)).collect();
        let timeout = Timespec::try_from(timeout).ok();
        // After a signal the caller polls and waits again.
        let _ = rustix::event::poll(&mut descriptors, timeout.as_ref());
    })
}

/// Begins an operation of the fabric. Returns it if the queue towards the peer is full.
fn try_start(
    (node, queue, outgoing, incoming): (&Node, &Arc<Queue>, &Slots, &Slots),
    failed: &mut VecDeque<(u64, Error)>,
    start: Start,
    context: u64,
) -> Option<Start> {
    let begun = match &start {
        Start::Send { peer, slot, length } => {
            let source = outgoing.slice(*slot, *length);
            node.send(*peer, MESSAGE_TAG, &source).submit(queue, context)
        }
        Start::Receive { slot } => {
            let into = incoming.slice(*slot, MESSAGE_BYTES);
            node.receive(None, MESSAGE_TAG, 0, &into).submit(queue, context)
        }
        Start::Watch { peer } => {
            let into = outgoing.slice(0, 0);
            node.receive(Some(*peer), WATCH_TAG, 0, &into).submit(queue, context)
        }
        Start::Put { source, target } => node.put(source, *target).submit(queue, context),
        Start::Get { source, into } => node.get(*source, into).submit(queue, context),
        Start::FetchAdd { target, add } => node.fetch_add::<u64>(*target, *add).submit(queue, context),
        Start::CompareSwap { target, expected, new } => {
            node.compare_swap::<u64>(*target, *expected, *new).submit(queue, context)
        }
    };
    match begun {
        Ok(_) => None,
        Err(Error::Busy { .. }) => Some(start),
        Err(error) => {
            failed.push_back((context, error));
            None
        }
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
