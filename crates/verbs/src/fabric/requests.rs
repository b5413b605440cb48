//! Requests of this process, and the operations of the fabric that carry them.
//!
//! *Order of writes.* Where the rack keeps the order of puts, all puts of a write begin at once, behind those of the writes before. Where it does not, the
//! tail of a write begins when its other bytes and all earlier writes have arrived. A write of one page at most has nothing but a tail then.

use rackloom::fabric::{Ended, Error, Key, NodeId, OperationError, RegionId, RemoteAddress, Slice};

use super::job::{Connection, GrantName, Job, Stage, Then};
use super::message::{Content, DATA_BYTES, Grant, Message};
use super::operation::{JOB, Start};
use super::transport::FabricTransport;
use crate::engine::{Operation, Outcome, Payload, PeerEvent, Piece, Process, Remote, Request};
use crate::layout::constants::*;

/// Length of the part of a long write that is written last.
const TAIL_BYTES: usize = 64;
/// Writes above this length have a tail.
const PAGE_BYTES: usize = 4096;

impl FabricTransport {
    /// Begins a request to a process that is reached.
    pub(super) fn begin(&mut self, peer: NodeId, request: Request) {
        let Request { ticket, from, to, message, operation } = request;
        self.watch(peer);
        let number = self.number();
        let connection = Connection { process: peer, to: to.queue_pair, from: from.queue_pair };
        let job = |stage| Job { ticket, connection, message, stage, slot: None, failure: None };
        match operation {
            Operation::Send { payload, immediate, is_solicited } => {
                let Some(content) = self.content(&payload) else {
                    self.ended.push((ticket, Outcome::OperationFailed));
                    return;
                };
                let job = job(Stage::Announced);
                let route = job.route(number);
                self.jobs.by_number.insert(number, job);
                self.notify(peer, Message::Send { route, message, immediate, is_solicited, content });
            }
            operation => {
                self.jobs.by_number.insert(number, job(Stage::Waiting(operation)));
                self.jobs.lines.entry(connection).or_default().waiting.push_back(number);
                self.begin_line(connection);
            }
        }
    }

    /// Begins the accesses of a connection in their order, up to the first one that must wait for a grant or for a slot.
    pub(super) fn begin_line(&mut self, connection: Connection) {
        loop {
            let Some(line) = self.jobs.lines.get_mut(&connection).filter(|line| !line.applies) else {
                return;
            };
            let Some(number) = line.waiting.front().copied() else { break };
            let Some(job) = self.jobs.by_number.get(&number) else {
                line.waiting.pop_front();
                continue;
            };
            let Stage::Waiting(operation) = &job.stage else { return };
            let Some((remote, length, right)) = access_of(operation) else {
                self.fail(number);
                continue;
            };
            let name = GrantName { connection, key: remote.key, right };
            let grant = self.jobs.grants.get(&name).copied();
            match grant.filter(|grant| length > 0 && grant.offset(remote, length).is_some()) {
                Some(grant) => {
                    if !self.access(number, grant) {
                        return;
                    }
                }
                None => {
                    // The peer decides about an access beyond a grant: it may enter the error state.
                    let (route, Remote { key, address }, length) = (job.route(number), remote, length as u64);
                    line.applies = true;
                    self.jobs.grants.remove(&name);
                    let apply = Message::Apply { route, key, address, length, right };
                    return self.notify(connection.process, apply);
                }
            }
        }
        self.jobs.tidy(connection);
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

    /// Begins the access of the first waiting job of a connection. Returns false if it needs a slot and there is none.
    fn access(&mut self, number: u64, grant: Grant) -> bool {
        let Some(job) = self.jobs.by_number.get_mut(&number) else { return true };
        let connection = job.connection;
        let Stage::Waiting(operation) = &job.stage else { return true };
        if let Operation::Write { payload: Payload::Bytes(bytes), .. } = operation
            && !bytes.is_empty()
        {
            job.slot = self.outgoing.take();
            if job.slot.is_none() {
                self.starved.insert(connection);
                return false;
            }
        }
        let moving = Stage::Moving { left: 0, tail: None, then: Then::Finish };
        let Stage::Waiting(operation) = std::mem::replace(&mut job.stage, moving) else { return true };
        let slot = job.slot;
        if let Some(line) = self.jobs.lines.get_mut(&connection) {
            line.waiting.retain(|waiting| *waiting != number);
            line.moving.push_back(number);
        }
        match self.moves(connection.process, operation, grant, slot) {
            Some((starts, tail, then)) => self.go(number, starts, tail, then),
            None => self.fail(number),
        }
        true
    }

    /// Returns the operations of the fabric of an access: those that begin now, the tail, and the step after them. `None` if memory is no longer registered.
    fn moves(
        &self,
        peer: NodeId,
        operation: Operation,
        grant: Grant,
        slot: Option<usize>,
    ) -> Option<(Vec<Start>, Option<Start>, Then)> {
        let (remote, length, _) = access_of(&operation)?;
        let offset = grant.offset(remote, length)?;
        let target = RemoteAddress { node: peer, region: RegionId(remote.key), offset, key: Key(grant.key) };
        match operation {
            Operation::Write { payload, immediate, is_solicited, .. } => {
                let then = match immediate {
                    Some(immediate) => Then::Notify { length: length as u64, immediate, is_solicited },
                    None => Then::Finish,
                };
                let mut puts = self.puts(&payload, target, slot)?;
                let has_tail = !self.keeps_order && !puts.is_empty();
                let tail = if has_tail { puts.pop() } else { None };
                Some((puts, tail, then))
            }
            Operation::Read { into, .. } => {
                let mut offset = 0;
                let mut gets = Vec::with_capacity(into.len());
                for piece in into {
                    let source = RemoteAddress { offset: target.offset + offset, ..target };
                    gets.push(Start::Get { source, into: self.regions.slice(piece)? });
                    offset += piece.length() as u64;
                }
                Some((gets, None, Then::Finish))
            }
            Operation::FetchAdd { into, add, .. } => {
                Some((vec![Start::FetchAdd { target, add }], None, Then::Value { into }))
            }
            Operation::CompareSwap { into, expected, new, .. } => {
                Some((vec![Start::CompareSwap { target, expected, new }], None, Then::Value { into }))
            }
            Operation::Send { .. } | Operation::Datagram { .. } => None,
        }
    }

    /// Returns the puts of a write, the last bytes of a long one as a put of their own.
    fn puts(&self, payload: &Payload, target: RemoteAddress, slot: Option<usize>) -> Option<Vec<Start>> {
        let mut slices: Vec<(Slice, usize)> = Vec::new();
        match payload {
            Payload::Bytes(bytes) => {
                if let Some(slot) = slot {
                    self.outgoing.write(slot, bytes).ok()?;
                    slices.push((self.outgoing.slice(slot, bytes.len()), bytes.len()));
                }
            }
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
                    slices.push((self.regions.slice(piece)?, piece.length()));
                }
            }
        }
        let mut offset = target.offset;
        let put = |(source, length)| {
            let target = RemoteAddress { offset, ..target };
            offset += length as u64;
            Start::Put { source, target }
        };
        Some(slices.into_iter().map(put).collect())
    }

    /// Begins the operations of a job.
    fn go(&mut self, number: u64, starts: Vec<Start>, tail: Option<Start>, then: Then) {
        let left = starts.len();
        let Some(job) = self.jobs.by_number.get_mut(&number) else { return };
        let connection = job.connection;
        job.stage = Stage::Moving { left, tail, then };
        starts.into_iter().for_each(|start| self.start(start, JOB | number));
        if left == 0 {
            self.advance_line(connection);
        }
    }

    /// Continues the oldest jobs of a connection whose operations have ended.
    fn advance_line(&mut self, connection: Connection) {
        loop {
            let Some(line) = self.jobs.lines.get_mut(&connection) else { return };
            let Some(number) = line.moving.front().copied() else { break };
            let Some(job) = self.jobs.by_number.get_mut(&number) else {
                line.moving.pop_front();
                continue;
            };
            let Stage::Moving { left, tail, then } = &mut job.stage else { return };
            if *left > 0 {
                return;
            }
            if job.failure.is_none()
                && let Some(tail) = tail.take()
            {
                *left = 1;
                return self.start(tail, JOB | number);
            }
            line.moving.pop_front();
            match (job.failure, std::mem::replace(then, Then::Finish)) {
                (Some(failure), _) => self.finish(number, failure),
                (None, Then::Finish | Then::Value { .. }) => self.finish(number, Outcome::Done),
                (None, Then::Notify { length, immediate, is_solicited }) => {
                    job.stage = Stage::Announced;
                    let (route, message) = (job.route(number), job.message);
                    let written = Message::Written { route, message, length, immediate, is_solicited };
                    self.notify(connection.process, written);
                }
            }
        }
        self.jobs.tidy(connection);
    }

    fn fail(&mut self, number: u64) {
        self.finish(number, Outcome::OperationFailed);
    }

    fn finish(&mut self, number: u64, outcome: Outcome) {
        let Some(job) = self.jobs.by_number.remove(&number) else { return };
        if let Some(slot) = job.slot {
            self.outgoing.give_back(slot);
        }
        self.ended.push((job.ticket, outcome));
        match outcome {
            Outcome::Done | Outcome::NotReady { .. } => {}
            _ => {
                // The region or the connection may be gone. Requests behind this one are repeated after it, or are flushed.
                self.jobs.revoke(job.connection.process, job.connection.to);
                self.fail_line(job.connection, number, outcome);
            }
        }
    }

    /// Ends the jobs of a connection behind a failed one. Those that move data fail when they have done so.
    fn fail_line(&mut self, connection: Connection, failed: u64, outcome: Outcome) {
        let Some(line) = self.jobs.lines.get_mut(&connection) else { return };
        line.applies = false;
        let waiting = std::mem::take(&mut line.waiting);
        for number in line.moving.iter().filter(|number| **number > failed) {
            if let Some(job) = self.jobs.by_number.get_mut(number) {
                job.failure.get_or_insert(outcome);
            }
        }
        let waiting = waiting.into_iter().filter_map(|number| self.jobs.by_number.remove(&number));
        self.ended.extend(waiting.map(|job| (job.ticket, outcome)));
        self.jobs.tidy(connection);
    }

    /// Handles the end of an operation of a job.
    pub(super) fn moved(&mut self, number: u64, result: Result<Ended, Error>) {
        let Some(job) = self.jobs.by_number.get_mut(&number) else { return };
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
        let connection = job.connection;
        self.advance_line(connection);
    }

    /// Removes the application of a job from its connection. Returns false if the job has none.
    fn end_application(&mut self, peer: NodeId, number: u64) -> bool {
        let Some(job) = self.jobs.by_number.get(&number) else { return false };
        let Some(line) = self.jobs.lines.get_mut(&job.connection) else { return false };
        let is_it = job.connection.process == peer && line.applies && line.waiting.front() == Some(&number);
        line.applies &= !is_it;
        is_it
    }

    pub(super) fn granted(&mut self, peer: NodeId, number: u64, grant: Grant) {
        if !self.end_application(peer, number) {
            return;
        }
        let Some(job) = self.jobs.by_number.get(&number) else { return };
        let (connection, Stage::Waiting(operation)) = (job.connection, &job.stage) else { return };
        let Some((remote, length, right)) = access_of(operation) else { return };
        if grant.offset(remote, length).is_none() {
            // A peer that grants something else than the application names.
            return self.finish(number, Outcome::InvalidRequest);
        }
        if length > 0 {
            self.jobs.grants.insert(GrantName { connection, key: remote.key, right }, grant);
        } else {
            self.access(number, grant);
        }
        self.begin_line(connection);
    }

    pub(super) fn replied(&mut self, peer: NodeId, number: u64, outcome: Outcome) {
        let Some(job) = self.jobs.by_number.get(&number) else { return };
        let connection = job.connection;
        if matches!(job.stage, Stage::Announced) && connection.process == peer {
            self.finish(number, outcome);
        } else if self.end_application(peer, number) {
            self.finish(number, outcome);
            self.begin_line(connection);
        }
    }

    /// Ends everything with a peer that is lost.
    pub(super) fn lost(&mut self, peer: NodeId) {
        self.watched.remove(&peer);
        self.messages.retain(|(to, _)| *to != peer);
        let is_waiting = |job: &Job| job.connection.process == peer && !job.is_moving();
        let waiting = self.jobs.by_number.iter().filter(|(_, job)| is_waiting(job));
        let waiting: Vec<_> = waiting.map(|(number, _)| *number).collect();
        // Operations of the fabric that are in flight end by themselves.
        waiting.into_iter().for_each(|number| self.finish(number, Outcome::Lost));
        self.jobs.grants.retain(|name, _| name.connection.process != peer);
        self.requests.forget(peer);
        self.datagrams.forget(peer);
        self.peer_events.push(PeerEvent::Lost(Process(peer.0)));
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
