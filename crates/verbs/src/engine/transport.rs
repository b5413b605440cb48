//! Interface to a fabric: requests of a queue pair are carried to a queue pair of a node, and each has an outcome.
//!
//! The engine decides order, retries, errors and completions. A transport moves a request to the target and the outcome back. It may do so at
//! once, or later: then it returns [`Carried::Pending`] and the outcome is given to [`super::Engine::finish`].
//!
//! A queue pair may have a window of requests at its transport. Requests of different kinds are never there together, apart from plain writes and one write
//! with immediate data behind them. The transport keeps the order of the others: data of a write become visible after those of the writes before, and the
//! target executes messages and atomic operations in the order in which they were carried.

use std::ops::RangeInclusive;
use std::time::Duration;

use rackloom::fabric::QueuePairFault;
use rustix::io::Errno;

use super::memory::{Piece, Region, Remote, copy, total};
use super::work::Receive;
use crate::layout::Gid;

/// Number of the first queue pair. Lower ones are reserved by the specification.
const FIRST_QUEUE_PAIR: u32 = 0x10;
/// Number of numbers of messages, which start again at 0.
pub(super) const MESSAGE_NUMBERS: u32 = 1 << 24;
/// Largest number of a queue pair.
pub(super) const QUEUE_PAIR_MAX: u32 = 0xff_ffff;

/// Bits of the number of a node below that of its port.
const SEAT_BITS: u32 = 16;

/// Returns the number under which a port of a seat is a node of its own. The number of the first port is that of the seat.
#[must_use]
pub const fn node_of_port(seat: u32, port: u8) -> u32 {
    seat | (port.saturating_sub(1) as u32) << SEAT_BITS
}

/// Returns the number of the seat of a node.
#[must_use]
pub const fn seat_of(node: u32) -> u32 {
    node & ((1 << SEAT_BITS) - 1)
}

/// Returns the number of the port of a node, from 1.
#[must_use]
pub const fn port_of(node: u32) -> u8 {
    (node >> SEAT_BITS) as u8 + 1
}

/// Queue pair of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Number of the node, that of its port ([`node_of_port`]); `None` if no node of the fabric has the address that the program gave.
    pub node: Option<u32>,
    /// Number of the queue pair at the node.
    pub queue_pair: u32,
}

/// Data of a request: checked local memory, or bytes that were copied when the request was posted.
#[derive(Debug)]
pub enum Payload {
    /// Local memory.
    Pieces(Vec<Piece>),
    /// Inline data.
    Bytes(Box<[u8]>),
}

impl Payload {
    /// Returns the memory with the data. Inline data stay where they are as long as the request exists.
    #[must_use]
    pub fn pieces(&self) -> Vec<Piece> {
        match self {
            Self::Pieces(pieces) => pieces.clone(),
            Self::Bytes(bytes) => vec![Piece::of_bytes(bytes)],
        }
    }

    /// Returns a copy of the data.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length()];
        copy(&self.pieces(), &[Piece::of_bytes(&bytes)]);
        std::hint::black_box(&mut bytes);
        bytes
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        match self {
            Self::Pieces(pieces) => total(pieces),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

/// Header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Q_Key.
    pub key: u32,
    /// Address of the sender.
    pub source: Gid,
    /// Address of the destination.
    pub destination: Gid,
    /// Traffic class.
    pub traffic_class: u8,
    /// Flow label.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
}

/// Operation of a request.
#[derive(Debug)]
pub enum Operation {
    /// Message into a receive of the target.
    Send {
        /// Data.
        payload: Payload,
        /// Immediate data.
        immediate: Option<u32>,
        /// The receive's completion is solicited.
        is_solicited: bool,
    },
    /// Data into memory of the target; with immediate data it also completes a receive.
    Write {
        /// Data.
        payload: Payload,
        /// Memory of the target.
        remote: Remote,
        /// Immediate data.
        immediate: Option<u32>,
        /// The receive's completion is solicited.
        is_solicited: bool,
    },
    /// Data of the target into local memory.
    Read {
        /// Local memory.
        into: Vec<Piece>,
        /// Memory of the target.
        remote: Remote,
    },
    /// Addition to eight bytes of the target. The old value goes into local memory.
    FetchAdd {
        /// Local memory.
        into: Vec<Piece>,
        /// Memory of the target.
        remote: Remote,
        /// Value that is added.
        add: u64,
    },
    /// New value for eight bytes of the target, if they have the expected value. The old value goes into local memory.
    CompareSwap {
        /// Local memory.
        into: Vec<Piece>,
        /// Memory of the target.
        remote: Remote,
        /// Expected value.
        expected: u64,
        /// New value.
        new: u64,
    },
    /// Message that may be lost.
    Datagram {
        /// Data.
        payload: Payload,
        /// Immediate data.
        immediate: Option<u32>,
        /// The receive's completion is solicited.
        is_solicited: bool,
        /// Header.
        header: Datagram,
    },
}

/// Identity of a request of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Queue pair that sent it.
    pub queue_pair: u32,
    /// Number of the attempt at this queue pair.
    pub sequence: u64,
}

/// Request of a queue pair.
#[derive(Debug)]
pub struct Request {
    /// Identity.
    pub ticket: Ticket,
    /// Sender.
    pub from: Address,
    /// Destination.
    pub to: Address,
    /// Number of the message, among those of the connection. It has no meaning for operations that complete no receive.
    pub message: u32,
    /// Operation.
    pub operation: Operation,
}

/// Outcome of a request. A datagram is done when it has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The target has executed the request.
    Done,
    /// No receive is posted at the target. The sender waits this long before it repeats the request.
    NotReady {
        /// Nanoseconds.
        wait_ns: u64,
    },
    /// No queue pair answers.
    NoAnswer,
    /// The process of the target has ended, or no path leads there and none is expected. The request is not repeated.
    Lost,
    /// The target does not accept such a request.
    InvalidRequest,
    /// The key, the bounds or the rights of remote memory do not fit.
    AccessDenied,
    /// The target failed locally.
    OperationFailed,
}

/// State of a request after [`Transport::carry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// The request has its outcome.
    Done(Outcome),
    /// The outcome follows.
    Pending,
}

/// Position of a message in the order of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// It is the next one.
    Now,
    /// Messages before it have not been executed. It is one of the next [`super::WINDOW`].
    Later,
    /// It has been executed.
    Before,
    /// It is far from the next one, or the queue pair executes no requests of this peer.
    Never,
}

/// Receive whose data are on their way.
#[derive(Debug)]
pub struct Arriving {
    pub(super) queue_pair: u32,
    pub(super) receive: Receive,
    /// Memory of the receive, as long as the message.
    pub pieces: Vec<Piece>,
}

/// Immediate data of a message, and whether its completion is solicited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Immediate data.
    pub immediate: Option<u32>,
    /// The receive's completion is solicited.
    pub is_solicited: bool,
}

/// Receiver of requests: executes them on the objects of its process.
pub trait Target {
    /// Executes a request: checks it, moves its data and completes a receive where the operation uses one.
    fn execute(&mut self, request: &Request) -> Outcome;

    /// Checks an access of the peer of a queue pair to memory, as [`Self::execute`] does, and returns the region. The access itself is not made
    /// here.
    ///
    /// # Errors
    /// The outcome of the request that would make the access.
    fn permit(
        &mut self,
        from: Address,
        to: u32,
        remote: Remote,
        length: u64,
        right: u32,
    ) -> Result<Region, Outcome>;

    /// Takes a receive for a message of the peer of a queue pair. [`Self::end_message`] follows.
    ///
    /// # Errors
    /// The outcome of the request.
    fn begin_message(&mut self, from: Address, to: u32, length: u64) -> Result<Arriving, Outcome>;

    /// Completes a receive whose data have arrived, or fails it.
    fn end_message(&mut self, arriving: Arriving, notice: Notice, is_complete: bool) -> Outcome;

    /// Completes a receive for a write with immediate data, whose data have arrived.
    fn complete_write(&mut self, from: Address, to: u32, length: u64, notice: Notice) -> Outcome;

    /// Returns the position of a message of the peer of a queue pair. A message that takes a receive makes the following one the next.
    fn due(&self, from: Address, to: u32, message: u32) -> Due;

    /// Returns true if a queue pair executes requests of this peer.
    fn is_open(&self, from: Address, to: u32) -> bool;
}

/// Waits until a transport has work, for a time at most. It is called without the engine.
pub type Waiter = Box<dyn Fn(Duration) + Send>;

/// State of the port of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Port {
    /// A path leads to other nodes, or has not been looked for yet.
    #[default]
    Active,
    /// No path is left.
    Down,
    /// The device is gone for ever.
    Removed,
}

/// Process that has the device, by its number in the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process(pub u16);

/// Event of connection management.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerEvent {
    /// A note of a process has arrived.
    Note {
        /// Sender.
        from: Process,
        /// Bytes of the note. They are of another program, so they may be anything.
        bytes: Vec<u8>,
    },
    /// A process that had notes, or that sent some, has ended or is no longer reached.
    Lost(Process),
}

/// Largest note between two processes, in bytes.
pub const NOTE_BYTES: usize = 512;

/// Means by which requests reach other queue pairs.
pub trait Transport: Send {
    /// Returns the number of this node, that of its first port.
    fn own_node(&self) -> u32;

    /// Returns the number of ports.
    fn port_count(&self) -> u8 {
        1
    }

    /// Returns the addresses of a port of this node, by their index. Empty for a port that does not exist.
    fn addresses(&self, port: u8) -> &[Gid];

    /// Returns the node with an address, or `None`.
    fn node_of(&self, address: &Gid) -> Option<u32>;

    /// Starts a request. `target` executes requests to this process.
    fn carry(&mut self, request: Request, target: &mut dyn Target) -> Carried;

    /// Returns the numbers that queue pairs of this process have.
    fn queue_pair_numbers(&self) -> RangeInclusive<u32> {
        FIRST_QUEUE_PAIR..=QUEUE_PAIR_MAX
    }

    /// Makes memory with this key reachable for peers.
    ///
    /// # Errors
    /// The error number of the registration.
    fn register(&mut self, key: u32, region: &Region) -> Result<(), Errno> {
        let _ = (key, region);
        Ok(())
    }

    /// Ends the access of peers to memory.
    fn deregister(&mut self, key: u32) {
        let _ = key;
    }

    /// Executes requests of peers that have arrived, and returns requests of this process that have ended, with their outcomes. Never waits.
    fn poll(&mut self, target: &mut dyn Target) -> Vec<(Ticket, Outcome)> {
        let _ = target;
        Vec::new()
    }

    /// Returns a function that waits until [`Self::poll`] has work. `None` if it never has.
    fn waiter(&self) -> Option<Waiter> {
        None
    }

    /// Has other threads place data of peers at once from now on, until the next [`Self::poll`]: the program does something else than polling.
    fn hand_over(&mut self) {}

    /// Returns true if [`Self::poll`] has work that no wait of [`Self::waiter`] reports, so that it is due within milliseconds.
    fn is_pressing(&self) -> bool {
        false
    }

    /// Returns the state of a port, as the last [`Self::poll`] has found it.
    fn port(&self, port: u8) -> Port {
        let _ = port;
        Port::Active
    }

    /// Returns the faults of queue pairs that are active from now on, as [`Self::poll`] has found them. `None` if they are those of the last call.
    fn take_queue_pair_faults(&mut self) -> Option<Vec<QueuePairFault>> {
        None
    }

    /// Returns true if peers have everything that this process has sent. Replies to requests of peers count.
    fn is_flushed(&self) -> bool {
        true
    }

    /// Returns the number of this process.
    fn own_process(&self) -> Process {
        Process(0)
    }

    /// Returns the processes that a node may have, present or not.
    fn processes(&self, node: u32) -> Vec<Process> {
        if node == self.own_node() { vec![self.own_process()] } else { Vec::new() }
    }

    /// Returns the node of a process, or `None` if there is no such process.
    fn node_of_process(&self, process: Process) -> Option<u32> {
        (process == self.own_process()).then(|| self.own_node())
    }

    /// Returns true if notes reach a process now.
    fn reaches_process(&self, process: Process) -> bool {
        process == self.own_process()
    }

    /// Returns true if a path leads to a node now.
    fn reaches_node(&self, node: u32) -> bool {
        node == self.own_node()
    }

    /// Sends a note of at most [`NOTE_BYTES`] to another process. The loss of that process is a [`PeerEvent`] from now on.
    fn send_note(&mut self, to: Process, bytes: Vec<u8>) {
        let _ = (to, bytes);
    }

    /// Takes the events that [`Self::poll`] has found.
    fn take_peer_events(&mut self) -> Vec<PeerEvent> {
        Vec::new()
    }
}
