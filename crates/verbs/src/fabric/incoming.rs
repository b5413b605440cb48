//! State of requests of peers.
//!
//! Messages of a connection are executed in the order of their numbers. The fabric may deliver a short message before a long one that was sent earlier,
//! and messages behind one that found no receive arrive all the same. They are held until the ones before them are executed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rackloom::fabric::NodeId;

use super::message::{Message, Route};
use crate::engine::{Arriving, Notice, Outcome};

/// Connection of a peer: its process and queue pair, and the queue pair of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stream {
    pub(super) process: NodeId,
    pub(super) from: u32,
    pub(super) to: u32,
}

/// Requests of peers that have not ended, and connections with grants.
#[derive(Default)]
pub(super) struct Incoming {
    /// Messages whose data are fetched.
    pub(super) arrivals: BTreeMap<u64, Arrival>,
    /// Numbers of these messages, in the order of their connection.
    pub(super) lines: BTreeMap<Stream, VecDeque<u64>>,
    /// Messages that arrived before their predecessors were executed, by their number. Each connection has fewer than the window of a queue pair.
    pub(super) held: BTreeMap<Stream, BTreeMap<u32, Message>>,
    /// Connections whose peers have grants.
    pub(super) granted: BTreeSet<Stream>,
    /// Replies that leave at the end of a poll.
    pub(super) replies: BTreeMap<NodeId, Vec<(u64, Outcome)>>,
}

pub(super) struct Arrival {
    pub(super) stream: Stream,
    pub(super) route: Route,
    pub(super) arriving: Arriving,
    pub(super) notice: Notice,
    pub(super) left: usize,
    pub(super) is_complete: bool,
}

impl Incoming {
    pub(super) fn forget(&mut self, peer: NodeId) {
        self.granted.retain(|stream| stream.process != peer);
        self.held.retain(|stream, _| stream.process != peer);
        self.replies.remove(&peer);
    }
}
