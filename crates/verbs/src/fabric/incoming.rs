//! State of requests of peers.

use std::collections::{BTreeMap, BTreeSet};

use rackloom::fabric::NodeId;

use crate::engine::{Arriving, Notice};

/// Requests of peers that have not ended, and connections with grants.
#[derive(Default)]
pub(super) struct Incoming {
    /// Messages whose data are fetched.
    pub(super) arrivals: BTreeMap<u64, Arrival>,
    /// Connections whose peers have grants: process and queue pair of the peer, and queue pair of this process.
    pub(super) granted: BTreeSet<(NodeId, u32, u32)>,
}

pub(super) struct Arrival {
    pub(super) peer: NodeId,
    pub(super) number: u64,
    pub(super) arriving: Arriving,
    pub(super) notice: Notice,
    pub(super) left: usize,
    pub(super) is_complete: bool,
}

impl Incoming {
    pub(super) fn forget(&mut self, peer: NodeId) {
        self.granted.retain(|(process, ..)| *process != peer);
    }
}
