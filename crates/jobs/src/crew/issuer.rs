//! Hands requests to the endpoint as far as it takes them, remembers what is outstanding, and measures.
//!
//! Two queues: the work of a phase, bounded by a number of outstanding operations, and urgent requests (waits, barrier signals,
//! notices), which never stand behind work. A request that the endpoint is too busy for stays at the front of its queue, so the
//! order within a queue is the order of acceptance.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rackloom_protocol::{CommandRefused, Instant, NodeId, OperationError, OperationId};

use super::request::{Body, Carried, Failure, Matched, Outcome, Request, Seat, Tag};
use crate::measure::{Measurements, OperationKind, OperationPath};
use crate::oracle::{Oracle, Verdicts};

/// Work that is queued ahead of the endpoint at most; more would only hide its back-pressure.
const QUEUED_MAX: usize = 8;

/// An operation that the endpoint has accepted.
#[derive(Debug)]
struct Ticket {
    tag: Tag,
    kind: OperationKind,
    target: Option<NodeId>,
    expects: Option<OperationError>,
    bytes: u64,
    begun: Instant,
    timing: Timing,
    is_wait: bool,
    /// Which message a receive has met.
    message: Option<Matched>,
    /// Posted stores that this flush stands for.
    posted: u32,
}

/// How an operation is timed.
#[derive(Clone, Copy, Debug)]
enum Timing {
    /// By the time of the event of its end.
    Event { path: OperationPath },
    /// It was complete when its call returned: from the first attempt to the end, and the call alone, in nanoseconds.
    Call { latency_ns: u64, took_ns: u64 },
}

/// What a try of a request led to.
enum Tried {
    Gone,
    Keep,
}

/// Requests on their way, and what is measured about them.
#[derive(Debug)]
pub(crate) struct Issuer {
    work: VecDeque<Request>,
    urgent: VecDeque<Request>,
    outstanding: BTreeMap<u64, Ticket>,
    outstanding_work: usize,
    outstanding_max: usize,
    patience_ns: u64,
    next_operation: u64,
    /// Posted stores per target that no flush stands for yet.
    posted: BTreeMap<NodeId, u32>,
    lost: BTreeSet<NodeId>,
    outcomes: VecDeque<Outcome>,
    is_blocked: bool,
    progress: u64,
    /// Some tickets were given away: their ends will not be known.
    has_forgotten: bool,
    /// Nodes that the endpoint has said to be lost, or to have begun a new life.
    told_lost: BTreeSet<NodeId>,
    /// Whose operations ended with an unknown outcome.
    unknown: BTreeMap<NodeId, u64>,
    verdicts: Verdicts,
    pub(crate) measurements: Measurements,
}

impl Issuer {
    /// `patience_ns`: how long an unreachable target that is not known to be lost is tried.
    pub(crate) fn new(outstanding_max: usize, patience_ns: u64) -> Self {
        Self {
            work: VecDeque::new(),
            urgent: VecDeque::new(),
            outstanding: BTreeMap::new(),
            outstanding_work: 0,
            outstanding_max: outstanding_max.max(1),
            patience_ns,
            next_operation: 1,
            posted: BTreeMap::new(),
            lost: BTreeSet::new(),
            outcomes: VecDeque::new(),
            is_blocked: false,
            progress: 0,
            has_forgotten: false,
            told_lost: BTreeSet::new(),
            unknown: BTreeMap::new(),
            verdicts: Verdicts::default(),
            measurements: Measurements::default(),
        }
    }

    /// Queue a piece of work.
    pub(crate) fn submit(&mut self, request: Request) {
        self.work.push_back(request);
    }

    /// Queue something that must not stand behind work.
    pub(crate) fn submit_urgent(&mut self, request: Request) {
        self.urgent.push_back(request);
    }

    /// Whether more work would be issued soon.
    pub(crate) fn has_room(&self) -> bool {
        self.work.len() < QUEUED_MAX && self.outstanding_work + self.work.len() < self.outstanding_max
    }

    /// Whether all work has been accepted and has ended. Waits and notices do not count.
    pub(crate) fn is_idle(&self) -> bool {
        self.work.is_empty() && self.outstanding_work == 0
    }

    /// Whether nothing at all is queued, outstanding, or waiting to be told.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_idle() && self.urgent.is_empty() && self.outstanding.is_empty() && self.outcomes.is_empty()
    }

    /// Whether something that was accepted has not ended.
    pub(crate) fn has_outstanding(&self) -> bool {
        !self.outstanding.is_empty()
    }

    /// Whether the endpoint took less than was offered, so that asking again soon makes sense.
    pub(crate) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Grows with every acceptance and every end.
    pub(crate) fn progress(&self) -> u64 {
        self.progress
    }

    /// How the next request ended.
    pub(crate) fn pop_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    /// From now on requests to this node end at once.
    pub(crate) fn lose(&mut self, node: NodeId) {
        self.lost.insert(node);
    }

    /// Forget what has not been accepted and what is being sent, and cancel all waits. A message ends with its receive,
    /// which nobody may post any more once ranks break off.
    pub(crate) fn break_off(&mut self) {
        self.work.clear();
        self.urgent.clear();
        let before = self.outstanding.len();
        self.outstanding.retain(|_, ticket| ticket.kind != OperationKind::Send);
        self.outstanding_work -= before - self.outstanding.len();
        self.has_forgotten |= before > self.outstanding.len();
        self.cancel_waits();
    }

    /// Cancel all waits that are outstanding.
    pub(crate) fn cancel_waits(&mut self) {
        let waits: Vec<_> = self.outstanding.iter().filter(|(_, ticket)| ticket.is_wait).collect();
        let cancels: Vec<_> = waits
            .into_iter()
            .map(|(id, ticket)| Request::new(ticket.tag, Body::Cancel { wait: OperationId(*id) }))
            .collect();
        self.urgent.extend(cancels);
    }

    /// Cancel the wait or receive that was asked for under this tag, if it has not ended.
    pub(crate) fn cancel(&mut self, tag: Tag) {
        let found = self.outstanding.iter().find(|(_, ticket)| ticket.is_wait && ticket.tag == tag);
        if let Some((id, _)) = found {
            let cancel = Body::Cancel { wait: OperationId(*id) };
            self.submit_urgent(Request::new(tag, cancel));
        }
    }

    /// A receive has met its message; its end comes later.
    pub(crate) fn matched(&mut self, operation: OperationId, message: Matched) {
        if let Some(ticket) = self.outstanding.get_mut(&operation.0) {
            ticket.message = Some(message);
        }
    }

    /// Offer the endpoint what is queued.
    pub(crate) fn pump(&mut self, now: Instant, seat: &mut dyn Seat) {
        self.is_blocked = false;
        while let Some(request) = self.urgent.pop_front() {
            if let Tried::Keep = self.offer(now, seat, request, |issuer| &mut issuer.urgent) {
                break;
            }
        }
        while self.outstanding_work < self.outstanding_max {
            let Some(request) = self.work.pop_front() else { break };
            if let Tried::Keep = self.offer(now, seat, request, |issuer| &mut issuer.work) {
                break;
            }
        }
    }

    fn offer(
        &mut self,
        now: Instant,
        seat: &mut dyn Seat,
        mut request: Request,
        queue: fn(&mut Self) -> &mut VecDeque<Request>,
    ) -> Tried {
        let begun = *request.first_tried.get_or_insert(now);
        let id = self.next_operation;
        match seat.command(now, request.body.command(OperationId(id))) {
            Ok(carried) => {
                self.next_operation += 1;
                self.accepted(now, id, &request, carried);
                Tried::Gone
            }
            Err(refused) if self.should_retry(now, begun, refused) => {
                self.is_blocked = true;
                queue(self).push_front(request);
                Tried::Keep
            }
            Err(refused) => {
                self.refused(now, &request, refused);
                Tried::Gone
            }
        }
    }

    fn should_retry(&self, now: Instant, begun: Instant, refused: CommandRefused) -> bool {
        match refused {
            CommandRefused::Busy => true,
            CommandRefused::Unreachable(node) => {
                !self.lost.contains(&node) && now.since(begun) < self.patience_ns
            }
            _ => false,
        }
    }

    fn accepted(&mut self, now: Instant, id: u64, request: &Request, carried: Carried) {
        self.progress += 1;
        let Some(kind) = measured_kind(request) else { return };
        let begun = request.first_tried.unwrap_or(now);
        let timing = match carried {
            Carried::Endpoint => Timing::Event { path: OperationPath::Frames },
            Carried::Direct { took_ns: None } => Timing::Event { path: OperationPath::Direct },
            Carried::Direct { took_ns: Some(took_ns) } => {
                Timing::Call { latency_ns: now.since(begun) + took_ns, took_ns }
            }
        };
        let target = request.body.target();
        // No flush has to stand for a posted store on mapped memory.
        if !request.body.completes() && !matches!(timing, Timing::Event { path: OperationPath::Frames }) {
            return self.count(now, (kind, begun), timing, Ok(request.body.bytes()));
        }
        if let Timing::Event { path } = timing {
            self.measurements.begin_on(path, kind, now);
        }
        if !request.body.completes() {
            self.measurements.count(kind, now.since(begun), Ok(request.body.bytes()));
            match (kind, target) {
                (OperationKind::StorePosted, Some(target)) => *self.posted.entry(target).or_default() += 1,
                _ => self.measurements.end(kind, now),
            }
            return;
        }
        let is_wait = request.body.is_wait();
        let ticket = Ticket {
            tag: request.tag,
            kind,
            target,
            expects: request.expects,
            // A refused access moves no byte; that it was refused is its success.
            bytes: if request.expects.is_some() { 0 } else { request.body.bytes() },
            begun,
            timing,
            is_wait,
            message: None,
            posted: if matches!(request.body, Body::Flush { .. }) { self.take_posted(target) } else { 0 },
        };
        self.outstanding_work += usize::from(!is_wait);
        self.outstanding.insert(id, ticket);
    }

    fn take_posted(&mut self, target: Option<NodeId>) -> u32 {
        match target {
            Some(target) => self.posted.remove(&target).unwrap_or(0),
            None => std::mem::take(&mut self.posted).into_values().sum(),
        }
    }

    fn refused(&mut self, now: Instant, request: &Request, refused: CommandRefused) {
        self.progress += 1;
        let Some(kind) = measured_kind(request) else { return };
        let begun = request.first_tried.unwrap_or(now);
        self.measurements.begin(kind, now);
        // A refusal at the caller's own side is as good as one at the owner's, where the caller can see the mistake.
        let is_own_mistake =
            matches!(request.expects, Some(OperationError::Misaligned | OperationError::OutOfBounds));
        let is_right = is_own_mistake && matches!(refused, CommandRefused::Invalid(_));
        let result = if is_right { Ok(0) } else { Err(Failure::Refused(refused)) };
        let target = request.body.target();
        let outcome = Outcome { tag: request.tag, kind, target, result, message: None };
        let timing = Timing::Event { path: OperationPath::Frames };
        self.conclude(now, (begun, timing), Some(0), outcome);
    }

    /// An operation ended.
    pub(crate) fn completed(
        &mut self,
        now: Instant,
        operation: OperationId,
        result: Result<u64, OperationError>,
    ) {
        let Some(ticket) = self.outstanding.remove(&operation.0) else { return self.ended_again(operation) };
        self.verdicts.hold(Oracle::OneEnd);
        if let (Err(OperationError::OutcomeUnknown), Some(target)) = (result, ticket.target) {
            *self.unknown.entry(target).or_default() += 1;
        }
        self.progress += 1;
        self.outstanding_work -= usize::from(!ticket.is_wait);
        for _ in 0..ticket.posted {
            self.measurements.end(OperationKind::StorePosted, now);
        }
        // The end of a cancelled wait says nothing about the fabric.
        let bytes = match (ticket.kind, result) {
            (_, Err(OperationError::Cancelled)) => None,
            (OperationKind::Receive, Ok(length)) => Some(length),
            _ => Some(ticket.bytes),
        };
        let result = match (result, ticket.expects) {
            (Ok(value), None) => Ok(value),
            (Ok(_), Some(_)) => Err(Failure::Allowed),
            (Err(error), Some(expected)) if error == expected => Ok(0),
            (Err(error), _) => Err(Failure::Operation(error)),
        };
        let Ticket { tag, kind, target, message, begun, timing, .. } = ticket;
        self.conclude(now, (begun, timing), bytes, Outcome { tag, kind, target, result, message });
    }

    fn ended_again(&mut self, operation: OperationId) {
        if !self.has_forgotten {
            self.verdicts.find(Oracle::OneEnd, || format!("operation {} ended again", operation.0));
        }
    }

    /// The endpoint says that a node is lost, or that it has begun a new life.
    pub(crate) fn told_lost(&mut self, node: NodeId) {
        self.told_lost.insert(node);
    }

    /// What the ends of operations say. In the end only: an operation's end may be told before the loss that explains it.
    pub(crate) fn verdicts(&self, name: impl Fn(NodeId) -> String) -> Verdicts {
        let mut verdicts = self.verdicts.clone();
        for (node, count) in &self.unknown {
            if self.told_lost.contains(node) {
                verdicts.hold_times(Oracle::UnknownIfTrue, *count);
            } else {
                let what = || {
                    format!(
                        "{count} operations to {} ended with an unknown outcome, and it was never lost",
                        name(*node)
                    )
                };
                verdicts.find(Oracle::UnknownIfTrue, what);
            }
        }
        verdicts
    }

    /// `bytes`: what a success counts for; `None` if the end is not counted at all.
    fn conclude(
        &mut self,
        now: Instant,
        (begun, timing): (Instant, Timing),
        bytes: Option<u64>,
        outcome: Outcome,
    ) {
        if let Timing::Event { path } = timing {
            self.measurements.end_on(path, outcome.kind, now);
        }
        if let Some(bytes) = bytes {
            let counted = outcome.result.map(|_| bytes).map_err(Failure::name);
            self.count(now, (outcome.kind, begun), timing, counted);
        }
        self.outcomes.push_back(outcome);
    }

    fn count(
        &mut self,
        now: Instant,
        (kind, begun): (OperationKind, Instant),
        timing: Timing,
        outcome: Result<u64, &str>,
    ) {
        match timing {
            Timing::Event { path } => {
                self.measurements.count_on(path, kind, now.since(begun), outcome);
            }
            Timing::Call { latency_ns, took_ns } => {
                self.measurements.count_direct(kind, latency_ns, took_ns, outcome);
            }
        }
    }

    /// What is outstanding, for a watchdog: how many of which kind towards whom.
    pub(crate) fn waiting_for(&self, name: impl Fn(NodeId) -> String) -> String {
        let mut counts = BTreeMap::<String, u32>::new();
        for ticket in self.outstanding.values().filter(|ticket| ticket.tag != Tag::AbortWait) {
            let target = ticket.target.map_or_else(|| "all".to_owned(), &name);
            *counts.entry(format!("{} to {target}", ticket.kind.name())).or_default() += 1;
        }
        let mut parts: Vec<_> = counts.into_iter().map(|(what, count)| format!("{count} {what}")).collect();
        let queued = self.work.len() + self.urgent.len();
        if queued > 0 {
            parts.push(format!("{queued} not accepted yet"));
        }
        if parts.is_empty() { "nothing outstanding".to_owned() } else { parts.join(", ") }
    }
}

fn measured_kind(request: &Request) -> Option<OperationKind> {
    let kind = request.body.kind()?;
    let is_forbidden = request.expects.is_some_and(|error| error != OperationError::Cancelled);
    Some(if is_forbidden { OperationKind::ForbiddenAccess } else { kind })
}

#[cfg(test)]
#[path = "issuer_tests.rs"]
mod tests;
