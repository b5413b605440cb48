//! Issues requests to the endpoint, tracks outstanding operations, and measures them.
//!
//! There are two queues. Work of a phase is bounded by a number of outstanding operations. Urgent requests (waits,
//! barrier signals, notices) never wait behind work. A request that the endpoint refuses as busy or without a path is
//! retried: it stays at the front of its queue, so requests of one queue are accepted in order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rackloom_protocol::{CommandRefused, Instant, NodeId, OperationError, OperationId};

use super::observer::{Observer, Span};
use super::request::{Body, Carried, Failure, Matched, Outcome, Request, Seat, Tag};
use crate::measure::{Measurements, OperationKind, OperationPath};
use crate::oracle::{Oracle, Verdicts};

/// Maximum number of queued work requests. A longer queue would only hide the back-pressure of the endpoint.
const QUEUED_MAX: usize = 8;

/// Operation that the endpoint has accepted.
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
    /// Message that a receive has matched.
    message: Option<Matched>,
    /// Number of posted stores that this flush completes.
    posted: u32,
}

/// Method by which an operation is timed.
#[derive(Clone, Copy, Debug)]
enum Timing {
    /// By the time of its completion event.
    Event { path: OperationPath },
    /// The operation was complete when its call returned. Times from the first attempt to the completion, and of the
    /// call alone, in nanoseconds.
    Call { latency_ns: u64, took_ns: u64 },
}

impl Timing {
    /// Returns the time at which an operation that began at `begun` and is complete `now` had ended.
    fn ended(self, now: Instant, begun: Instant) -> Instant {
        match self {
            Self::Event { .. } => now,
            Self::Call { latency_ns, .. } => begun + latency_ns,
        }
    }
}

/// Result of one attempt to issue a request.
enum Tried {
    Gone,
    Keep,
}

/// Queued and outstanding requests, with their measurements.
#[derive(Debug)]
pub(crate) struct Issuer {
    work: VecDeque<Request>,
    urgent: VecDeque<Request>,
    outstanding: BTreeMap<u64, Ticket>,
    outstanding_work: usize,
    outstanding_max: usize,
    start_timeout_ns: u64,
    next_operation: u64,
    /// Posted stores per target that no flush covers yet.
    posted: BTreeMap<NodeId, u32>,
    lost: BTreeSet<NodeId>,
    outcomes: VecDeque<Outcome>,
    is_blocked: bool,
    progress: u64,
    /// True if some tickets were discarded, so that their completions are unknown.
    has_forgotten: bool,
    /// Nodes that the endpoint has reported as lost, or as a new incarnation.
    known_lost: BTreeSet<NodeId>,
    /// Number of operations with an unknown outcome, by target.
    unknown: BTreeMap<NodeId, u64>,
    verdicts: Verdicts,
    pub(crate) measurements: Measurements,
    pub(crate) observer: Observer,
}

impl Issuer {
    /// Returns an empty issuer. An unreachable target that is not known to be lost is retried for `start_timeout_ns`.
    pub(crate) fn new(outstanding_max: usize, start_timeout_ns: u64) -> Self {
        Self {
            work: VecDeque::new(),
            urgent: VecDeque::new(),
            outstanding: BTreeMap::new(),
            outstanding_work: 0,
            outstanding_max: outstanding_max.max(1),
            start_timeout_ns,
            next_operation: 1,
            posted: BTreeMap::new(),
            lost: BTreeSet::new(),
            outcomes: VecDeque::new(),
            is_blocked: false,
            progress: 0,
            has_forgotten: false,
            known_lost: BTreeSet::new(),
            unknown: BTreeMap::new(),
            verdicts: Verdicts::default(),
            measurements: Measurements::default(),
            observer: Observer::default(),
        }
    }

    /// Queues a work request.
    pub(crate) fn submit(&mut self, request: Request) {
        self.work.push_back(request);
    }

    /// Queues a request that must not wait behind work.
    pub(crate) fn submit_urgent(&mut self, request: Request) {
        self.urgent.push_back(request);
    }

    /// Returns whether another work request would be issued soon.
    pub(crate) fn has_space(&self) -> bool {
        self.work.len() < QUEUED_MAX && self.outstanding_work + self.work.len() < self.outstanding_max
    }

    /// Returns whether all work has been accepted and has completed. Waits and notices do not count.
    pub(crate) fn is_idle(&self) -> bool {
        self.work.is_empty() && self.outstanding_work == 0
    }

    /// Returns whether nothing is queued or outstanding, and no outcome waits to be popped.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_idle() && self.urgent.is_empty() && self.outstanding.is_empty() && self.outcomes.is_empty()
    }

    /// Returns whether an accepted operation has not completed.
    pub(crate) fn has_outstanding(&self) -> bool {
        !self.outstanding.is_empty()
    }

    /// Returns whether a refused request is to be retried, so that another poll soon makes sense.
    pub(crate) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Returns a number that grows with every acceptance and every completion.
    pub(crate) fn progress(&self) -> u64 {
        self.progress
    }

    /// Returns the next outcome, in order of completion.
    pub(crate) fn pop_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    /// Marks `node` as lost. From now on requests to it fail at once.
    pub(crate) fn lose(&mut self, node: NodeId) {
        self.lost.insert(node);
    }

    /// Discards queued requests and outstanding sends, and cancels all waits. A send completes only with its receive,
    /// and no rank may post that receive after a break-off.
    pub(crate) fn break_off(&mut self) {
        self.work.clear();
        self.urgent.clear();
        let before = self.outstanding.len();
        self.outstanding.retain(|_, ticket| ticket.kind != OperationKind::Send);
        self.outstanding_work -= before - self.outstanding.len();
        self.has_forgotten |= before > self.outstanding.len();
        self.cancel_waits();
    }

    /// Cancels all outstanding waits.
    pub(crate) fn cancel_waits(&mut self) {
        let waits: Vec<_> = self.outstanding.iter().filter(|(_, ticket)| ticket.is_wait).collect();
        let cancels: Vec<_> = waits
            .into_iter()
            .map(|(id, ticket)| Request::new(ticket.tag, Body::Cancel { wait: OperationId(*id) }))
            .collect();
        self.urgent.extend(cancels);
    }

    /// Cancels the wait or receive with this tag, if it has not completed.
    pub(crate) fn cancel(&mut self, tag: Tag) {
        let found = self.outstanding.iter().find(|(_, ticket)| ticket.is_wait && ticket.tag == tag);
        if let Some((id, _)) = found {
            let cancel = Body::Cancel { wait: OperationId(*id) };
            self.submit_urgent(Request::new(tag, cancel));
        }
    }

    /// Records that a receive has matched a message. Its completion comes later.
    pub(crate) fn matched(&mut self, operation: OperationId, message: Matched) {
        if let Some(ticket) = self.outstanding.get_mut(&operation.0) {
            ticket.message = Some(message);
        }
    }

    /// Offers the queued requests to the endpoint.
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
                !self.lost.contains(&node) && now.since(begun) < self.start_timeout_ns
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
        // Posted stores to mapped memory need no flush.
        if !request.body.completes() && !matches!(timing, Timing::Event { path: OperationPath::Frames }) {
            self.observe(timing.ended(now, begun), kind, target, begun, Ok(request.body.bytes()));
            return self.count(now, kind, begun, timing, Ok(request.body.bytes()));
        }
        if let Timing::Event { path } = timing {
            self.measurements.begin_on(path, kind, now);
        }
        if !request.body.completes() {
            self.measurements.count(kind, now.since(begun), Ok(request.body.bytes()));
            self.observe(now, kind, target, begun, Ok(request.body.bytes()));
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
            // A refused access moves no bytes. Its refusal is its success.
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
        // If the caller can detect the mistake, a refusal by the caller's own endpoint is as good as a refusal by the
        // owner.
        let is_own_mistake =
            matches!(request.expects, Some(OperationError::Misaligned | OperationError::OutOfBounds));
        let is_right = is_own_mistake && matches!(refused, CommandRefused::Invalid(_));
        let result = if is_right { Ok(0) } else { Err(Failure::Refused(refused)) };
        let target = request.body.target();
        let outcome = Outcome { tag: request.tag, kind, target, result, message: None };
        let timing = Timing::Event { path: OperationPath::Frames };
        self.conclude(now, begun, timing, Some(0), outcome);
    }

    /// Records the completion of an operation.
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
        // The completion of a cancelled wait is no evidence about the fabric.
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
        self.conclude(now, begun, timing, bytes, Outcome { tag, kind, target, result, message });
    }

    fn ended_again(&mut self, operation: OperationId) {
        if !self.has_forgotten {
            self.verdicts.find(Oracle::OneEnd, || format!("operation {} ended again", operation.0));
        }
    }

    /// Records that the endpoint reported a node as lost, or as a new incarnation.
    pub(crate) fn known_lost(&mut self, node: NodeId) {
        self.known_lost.insert(node);
    }

    /// Returns the oracle's verdicts about completions. Call this only at the end: a completion may be reported before
    /// the loss that explains it.
    pub(crate) fn verdicts(&self, name: impl Fn(NodeId) -> String) -> Verdicts {
        let mut verdicts = self.verdicts.clone();
        for (node, count) in &self.unknown {
            if self.known_lost.contains(node) {
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

    /// Counts a completion and queues its outcome. `bytes` is the size that a success counts; `None` leaves the
    /// completion uncounted.
    fn conclude(
        &mut self,
        now: Instant,
        begun: Instant,
        timing: Timing,
        bytes: Option<u64>,
        outcome: Outcome,
    ) {
        if let Timing::Event { path } = timing {
            self.measurements.end_on(path, outcome.kind, now);
        }
        if let Some(bytes) = bytes {
            let counted = outcome.result.map(|_| bytes).map_err(Failure::name);
            self.observe(timing.ended(now, begun), outcome.kind, outcome.target, begun, counted);
            self.count(now, outcome.kind, begun, timing, counted);
        }
        self.outcomes.push_back(outcome);
    }

    fn count(
        &mut self,
        now: Instant,
        kind: OperationKind,
        begun: Instant,
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

    /// Records an operation that has ended.
    pub(crate) fn observe(
        &mut self,
        ended: Instant,
        kind: OperationKind,
        target: Option<NodeId>,
        begun: Instant,
        outcome: Result<u64, &'static str>,
    ) {
        let bytes = outcome.unwrap_or(0);
        self.observer.record(Span { kind, target, begun, ended, bytes, error: outcome.err() });
    }

    /// Describes the outstanding operations for a watchdog: how many of which kind to which target.
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
