//! Requester: the oldest sends become requests, and the outcome of a request completes its send, repeats it or fails it.
//!
//! A queue pair has a window of requests at the transport: sends in a row that may be there together (`Send::may_follow`). Outcomes count in the order of
//! the sends. A request that is to be repeated ends the window: it is repeated alone, and the requests behind it begin again after its success.

use super::flights::WINDOW;
use super::limits;
use super::objects::Objects;
use super::queue_pair::{Cause, Stall, Step};
use super::rules::{Service, State};
use super::transport::{
    Address, Datagram, Operation, Outcome, Payload, Request, Ticket, Transport, node_of_port,
};
use super::work::{Data, Kind, Status};
use crate::layout::attributes::AhAttr;
use crate::layout::constants::ACCESS_LOCAL_WRITE;

/// Repetitions that mean "without limit" for a receiver that is not ready.
const RETRY_FOREVER: u8 = 7;

impl Objects {
    /// Returns the next request of a queue pair, which is then at the transport. A send that fails locally is completed. `None` if none may start.
    pub(super) fn next_request(
        &mut self,
        number: u32,
        transport: &dyn Transport,
        now_ns: u64,
    ) -> Option<Request> {
        let pair = self.queue_pairs.get(&number)?;
        let may_start = match &pair.stall {
            Some(stall) => stall.step != Step::Waiting && matches!(pair.state, State::Rts | State::Sqd),
            None => pair.state == State::Rts,
        };
        let (index, is_alone) = (pair.flights.len(), pair.stall.is_some());
        let send = pair.sends.get(index)?;
        let depth = if send.kind.is_fetch() { usize::from(pair.attributes.max_rd_atomic) } else { WINDOW };
        let has_space = if is_alone { index == 0 } else { index < depth.clamp(1, WINDOW) };
        let follows = index == 0 || send.may_follow(pair.sends.get(index - 1)?);
        if !may_start || !has_space || !follows {
            return None;
        }
        if send.ready_ns > now_ns {
            self.delayed.insert(number);
            return None;
        }
        let (is_message, packets) = (send.kind.is_message(), pair.packets_of(send));
        if pair.faults.fails(packets) {
            // Sends complete in order, so it fails when it is the oldest one.
            if index == 0 {
                let pair = self.queue_pairs.get_mut(&number)?;
                pair.faults.note_failure();
                pair.fail_send(Status::RetryExceeded);
                self.stalled.remove(&number);
            }
            return None;
        }
        let prepared = self.prepare(number, index, transport)?;
        let pair = self.queue_pairs.get_mut(&number)?;
        match prepared {
            Ok((to, operation)) => {
                pair.faults.count_packets(packets);
                let (sequence, message) = pair.flights.add(is_message);
                let ticket = Ticket { queue_pair: number, sequence };
                let from = Address {
                    node: Some(node_of_port(self.node, pair.attributes.port_num)),
                    queue_pair: number,
                };
                Some(Request { ticket, from, to, message, operation })
            }
            // It fails when it is the oldest one.
            Err(_) if index > 0 => None,
            Err(status) => {
                pair.fail_send(status);
                self.stalled.remove(&number);
                None
            }
        }
    }

    /// Checks a send and returns its destination and operation, or the status with which it fails. `None` without a send.
    fn prepare(
        &self,
        number: u32,
        index: usize,
        transport: &dyn Transport,
    ) -> Option<Result<(Address, Operation), Status>> {
        let pair = self.queue_pairs.get(&number)?;
        let send = pair.sends.get(index)?;
        let length = send.data.length();
        let longest = match pair.service {
            Service::Rc => limits::MESSAGE_BYTES,
            Service::Ud => limits::DATAGRAM_BYTES,
        };
        if length > longest || send.kind.is_atomic() && length != 8 {
            return Some(Err(Status::LocalLength));
        }
        let needed = if send.kind.is_fetch() { ACCESS_LOCAL_WRITE } else { 0 };
        let payload = match &send.data {
            Data::Inline(bytes) => Payload::Bytes(bytes.clone()),
            Data::Parts(parts) => match self.pieces(parts, pair.domain, needed) {
                Some(pieces) => Payload::Pieces(pieces),
                None => return Some(Err(Status::LocalProtection)),
            },
        };
        let into = |payload: &Payload| payload.pieces();
        let is_solicited = send.is_solicited;
        let mut to = pair.peer;
        let operation = match send.kind {
            Kind::Send { immediate } => Operation::Send { payload, immediate, is_solicited },
            Kind::Write { remote, immediate } => {
                Operation::Write { payload, remote, immediate, is_solicited }
            }
            Kind::Read { remote } => Operation::Read { into: into(&payload), remote },
            Kind::FetchAdd { remote, add } => Operation::FetchAdd { into: into(&payload), remote, add },
            Kind::CompareSwap { remote, expected, new } => {
                Operation::CompareSwap { into: into(&payload), remote, expected, new }
            }
            Kind::Datagram { route, queue_pair, key, immediate } => {
                to = Address { node: transport.node_of(&route.grh.dgid), queue_pair };
                let is_controlled = key & 1 << 31 != 0;
                let key = if is_controlled { pair.attributes.qkey } else { key };
                let header = self.header(&route, key);
                Operation::Datagram { payload, immediate, is_solicited, header }
            }
        };
        Some(Ok((to, operation)))
    }

    fn header(&self, route: &AhAttr, key: u32) -> Datagram {
        let source = self.addresses_of_port(route.port_num).get(usize::from(route.grh.sgid_index));
        let source = source.copied().unwrap_or_default();
        Datagram {
            key,
            source,
            destination: route.grh.dgid,
            traffic_class: route.grh.traffic_class,
            flow_label: route.grh.flow_label,
            hop_limit: route.grh.hop_limit,
        }
    }

    /// Applies the outcome of an attempt. An outcome of an attempt that the queue pair no longer knows is ignored.
    pub(super) fn settle(&mut self, ticket: Ticket, outcome: Outcome, now_ns: u64) {
        let number = ticket.queue_pair;
        let Some(pair) = self.queue_pairs.get_mut(&number) else { return };
        if !pair.flights.end(ticket.sequence, outcome) {
            return;
        }
        while let Some(outcome) = self.queue_pairs.get_mut(&number).and_then(|pair| pair.flights.take_ended())
        {
            self.apply(number, outcome, now_ns);
        }
        self.await_answer(number, now_ns);
    }

    /// Applies the outcome of the oldest send.
    fn apply(&mut self, number: u32, outcome: Outcome, now_ns: u64) {
        let Some(pair) = self.queue_pairs.get_mut(&number) else { return };
        match outcome {
            Outcome::Done => {
                pair.stall = None;
                pair.succeed_send();
                pair.report_drain();
            }
            Outcome::NotReady { wait_ns } => {
                let retries = pair.attributes.rnr_retry;
                let left = (retries < RETRY_FOREVER).then_some(u32::from(retries));
                self.stall(number, Cause::NotReady, left, Some(now_ns.saturating_add(wait_ns)));
            }
            Outcome::NoAnswer => {
                // A timeout of 0 never ends.
                let timeout = pair.attributes.timeout;
                let deadline = (timeout > 0).then(|| now_ns.saturating_add(4096 << timeout));
                let left = (timeout > 0).then_some(u32::from(pair.attributes.retry_cnt));
                self.stall(number, Cause::NoAnswer, left, deadline);
            }
            Outcome::Lost => pair.fail_send(Status::RetryExceeded),
            Outcome::InvalidRequest => pair.fail_send(Status::RemoteInvalid),
            Outcome::AccessDenied => pair.fail_send(Status::RemoteAccess),
            Outcome::OperationFailed => pair.fail_send(Status::RemoteOperation),
        }
        if self.queue_pairs.get(&number).is_none_or(|pair| pair.stall.is_none()) {
            self.stalled.remove(&number);
        }
    }

    /// Gives the oldest request of a queue pair that is at the transport a time for its answer. Each answer gives the next one the whole time.
    fn await_answer(&mut self, number: u32, now_ns: u64) {
        let Some(pair) = self.queue_pairs.get_mut(&number) else { return };
        let time_ns = if pair.flights.is_empty() { None } else { pair.answer_time_ns() };
        pair.answer_by_ns = time_ns.map(|time_ns| now_ns.saturating_add(time_ns));
        if pair.answer_by_ns.is_some() {
            self.awaiting.insert(number);
        } else {
            self.awaiting.remove(&number);
        }
    }

    /// Notes that the youngest request of a queue pair is pending.
    pub(super) fn note_pending(&mut self, number: u32, now_ns: u64) {
        if self.queue_pairs.get(&number).is_some_and(|pair| pair.flights.len() == 1) {
            self.await_answer(number, now_ns);
        }
    }

    /// Lets the oldest send wait, or fails it if no retry is left.
    fn stall(&mut self, number: u32, cause: Cause, left: Option<u32>, deadline_ns: Option<u64>) {
        let Some(pair) = self.queue_pairs.get_mut(&number) else { return };
        let before = pair.stall.take().filter(|stall| stall.cause == cause);
        // An attempt before the deadline costs no retry.
        let is_early = before.as_ref().is_some_and(|stall| stall.step == Step::Early);
        let stall = match before {
            Some(stall) if is_early => Stall { step: Step::Waiting, ..stall },
            Some(stall) => Stall { step: Step::Waiting, deadline_ns, ..stall },
            None => Stall { cause, left, deadline_ns, step: Step::Waiting },
        };
        let has_failed = cause == Cause::NotReady && stall.left == Some(0) && !is_early;
        if has_failed {
            pair.fail_send(Status::NotReadyExceeded);
            return;
        }
        pair.stall = Some(stall);
        self.stalled.insert(number);
    }

    /// Returns the earliest deadline of a send that waits.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        let stalls = self.stalled.iter().filter_map(|number| self.queue_pairs.get(number)?.stall.as_ref());
        let stalls = stalls.filter(|stall| stall.step == Step::Waiting).filter_map(|stall| stall.deadline_ns);
        let answers = self.awaiting.iter().filter_map(|number| self.queue_pairs.get(number)?.answer_by_ns);
        let delayed = self.delayed.iter().filter_map(|number| Some(self.queue_pairs.get(number)?.ready_ns()));
        stalls.chain(answers).chain(delayed).min()
    }

    /// Marks stalled sends whose deadline has passed, and returns queue pairs that may have a request now. Those without an answer and without a retry fail.
    pub(super) fn expire(&mut self, now_ns: u64) -> Vec<u32> {
        // Those that wait on are noted again when the next send is looked at.
        let mut repeated: Vec<_> = std::mem::take(&mut self.delayed).into_iter().collect();
        for number in self.awaiting.clone() {
            let Some(pair) = self.queue_pairs.get_mut(&number).filter(|pair| !pair.flights.is_empty()) else {
                self.awaiting.remove(&number);
                continue;
            };
            if pair.answer_by_ns.is_none_or(|answer_by_ns| answer_by_ns <= now_ns) {
                // A late outcome is that of an attempt which the queue pair no longer knows.
                pair.fail_send(Status::RetryExceeded);
                self.awaiting.remove(&number);
                self.stalled.remove(&number);
            }
        }
        for number in self.stalled.clone() {
            let Some(pair) = self.queue_pairs.get_mut(&number) else { continue };
            let Some(stall) = &mut pair.stall else { continue };
            let is_expired = stall.deadline_ns.is_some_and(|deadline| deadline <= now_ns);
            if stall.step != Step::Waiting || !is_expired {
                continue;
            }
            if stall.cause == Cause::NoAnswer && stall.left == Some(0) {
                pair.fail_send(Status::RetryExceeded);
                self.stalled.remove(&number);
                continue;
            }
            stall.left = stall.left.map(|left| left.saturating_sub(1));
            stall.step = Step::Expired;
            repeated.push(number);
        }
        repeated
    }

    /// Marks stalled sends to this node for an attempt before their deadline, and returns their queue pairs.
    pub(super) fn wake_stalled(&mut self) -> Vec<u32> {
        for number in &self.stalled {
            // Nothing that happens here makes another node ready.
            let pair = self.queue_pairs.get_mut(number).filter(|pair| pair.peer.node == Some(self.node));
            let stall = pair.and_then(|pair| pair.stall.as_mut());
            if let Some(stall) = stall.filter(|stall| stall.step == Step::Waiting) {
                stall.step = Step::Early;
            }
        }
        self.stalled.iter().copied().collect()
    }
}
