//! State of requests of this process.
//!
//! Requests of a connection that access memory of the peer begin in their order, and each waits for its grant. They end in their order, too.

use std::collections::{BTreeMap, VecDeque};

use rackloom::fabric::NodeId;

use super::message::{Grant, Route};
use super::operation::Start;
use crate::engine::{Operation, Outcome, Piece, Ticket};

/// Queue pair of this process and its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Connection {
    pub(super) process: NodeId,
    pub(super) to: u32,
    pub(super) from: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GrantName {
    pub(super) connection: Connection,
    pub(super) key: u32,
    pub(super) right: u32,
}

/// Request of this process.
pub(super) struct Job {
    pub(super) ticket: Ticket,
    pub(super) connection: Connection,
    pub(super) message: u32,
    pub(super) stage: Stage,
    /// Slot with inline data.
    pub(super) slot: Option<usize>,
    pub(super) failure: Option<Outcome>,
}

pub(super) enum Stage {
    /// It waits for a grant, or behind one that does.
    Waiting(Operation),
    /// Operations of the fabric are in flight, or have ended and the job waits for those before it. The tail follows then.
    Moving { left: usize, tail: Option<Start>, then: Then },
    /// The peer will answer.
    Announced,
}

/// Step after the last operation of the fabric.
pub(super) enum Then {
    Finish,
    Notify { length: u64, immediate: u32, is_solicited: bool },
    Value { into: Vec<Piece> },
}

/// Jobs of a connection, in their order.
#[derive(Default)]
pub(super) struct Line {
    /// They have not begun. The first one has applied for a grant if `applies` says so.
    pub(super) waiting: VecDeque<u64>,
    pub(super) applies: bool,
    /// They have begun and are not known to have moved their data.
    pub(super) moving: VecDeque<u64>,
}

/// Requests of this process that have not ended, and grants.
#[derive(Default)]
pub(super) struct Jobs {
    pub(super) by_number: BTreeMap<u64, Job>,
    pub(super) lines: BTreeMap<Connection, Line>,
    pub(super) grants: BTreeMap<GrantName, Grant>,
}

impl Job {
    pub(super) const fn route(&self, number: u64) -> Route {
        Route { number, from: self.connection.from, to: self.connection.to }
    }

    pub(super) const fn is_moving(&self) -> bool {
        matches!(self.stage, Stage::Moving { .. })
    }
}

impl Jobs {
    /// Removes a line without jobs.
    pub(super) fn tidy(&mut self, connection: Connection) {
        let line = self.lines.get(&connection);
        if line.is_some_and(|line| line.waiting.is_empty() && line.moving.is_empty()) {
            self.lines.remove(&connection);
        }
    }

    /// Forgets the grants of a queue pair of a process.
    pub(super) fn revoke(&mut self, process: NodeId, to: u32) {
        self.grants.retain(|name, _| (name.connection.process, name.connection.to) != (process, to));
    }
}
