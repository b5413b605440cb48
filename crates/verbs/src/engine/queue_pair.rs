//! Queue pair: its queues, attributes and completions.
//!
//! Sends complete in the order in which they were posted. A queue pair in error flushes all its work requests at once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::completion::{CompletionQueue, Entry, Overflow, Places};
use super::events::{AsyncEvent, Element, Events};
use super::faults::PairFaults;
use super::flights::Flights;
use super::rules::{Service, State};
use super::transport::Address;
use super::work::{Receive, Send, Status};
use crate::layout::attributes::{QpAttr, QpCap};
use crate::layout::constants::*;
use crate::layout::work::Wc;

/// Reason why the oldest send is not executed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    NotReady,
    NoAnswer,
}

/// Step of a stalled send.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It waits for the deadline.
    Waiting,
    /// It is repeated because the deadline has passed.
    Expired,
    /// It is repeated before the deadline, because the target may have become ready.
    Early,
}

/// State of the oldest send while it is repeated.
pub(super) struct Stall {
    pub(super) cause: Cause,
    /// Repetitions that are left; `None` is no limit.
    pub(super) left: Option<u32>,
    /// Time of the next repetition; `None` is never.
    pub(super) deadline_ns: Option<u64>,
    pub(super) step: Step,
}

pub(super) struct QueuePair {
    pub(super) number: u32,
    pub(super) domain: u32,
    pub(super) service: Service,
    pub(super) send_completions: Arc<CompletionQueue>,
    pub(super) receive_completions: Arc<CompletionQueue>,
    pub(super) shared: Option<u32>,
    pub(super) capacity: QpCap,
    pub(super) signals_all: bool,
    pub(super) owner: usize,
    pub(super) events: Arc<Events<AsyncEvent>>,
    pub(super) state: State,
    pub(super) attributes: QpAttr,
    pub(super) peer: Address,
    pub(super) sends: VecDeque<Send>,
    pub(super) receives: VecDeque<Receive>,
    /// Places of the send queue that are in use, with those of sends that are done and not polled.
    pub(super) places: Places,
    /// Sends without a signal that are done and not yet freed by a later completion.
    pub(super) unreported: u32,
    /// Requests of the oldest sends, which are at the transport.
    pub(super) flights: Flights,
    /// Time at which the oldest request at the transport counts as without an answer.
    pub(super) answer_by_ns: Option<u64>,
    /// Number of the next message of the peer.
    pub(super) next_message: u32,
    pub(super) stall: Option<Stall>,
    pub(super) reports_drain: bool,
    pub(super) is_established: bool,
    pub(super) faults: PairFaults,
}

/// Least time that a request at a transport gets for its answer: a packet of a modelled link may take far longer than one of a device, the fabric
/// repeats it by itself, and a peer may wait for a processor. The loss of a peer is detected sooner.
const ANSWER_NS_MIN: u64 = 8_000_000_000;

impl QueuePair {
    /// Returns the time until the last retry of a request without an answer has ended, or `None` if that is never.
    pub(super) fn answer_time_ns(&self) -> Option<u64> {
        let QpAttr { timeout, retry_cnt, .. } = self.attributes;
        let one_ns = 4096_u64 << timeout;
        (timeout > 0).then(|| one_ns.saturating_mul(u64::from(retry_cnt) + 1).max(ANSWER_NS_MIN))
    }

    /// Returns the number of packets of a send.
    pub(super) fn packets_of(&self, send: &Send) -> u64 {
        let packet_bytes = 128_u64 << self.attributes.path_mtu.min(MTU_4096);
        send.data.length().div_ceil(packet_bytes).max(1)
    }

    /// Returns the time before which the next send does not start; 0 if it does not wait.
    pub(super) fn ready_ns(&self) -> u64 {
        self.sends.get(self.flights.len()).map_or(0, |send| send.ready_ns)
    }

    /// Sends an asynchronous event about this queue pair.
    pub(super) fn report_event(&self, kind: u32) {
        self.events.push(AsyncEvent { kind, element: Element::QueuePair(self.owner) });
    }

    /// Adds the completion of a send, unless it is a success without a signal.
    fn report_send(&mut self, send: &Send, status: Status) -> Result<(), Overflow> {
        let is_success = status == Status::Success;
        if is_success && !send.is_signalled && !self.signals_all || self.faults.loses_completion() {
            self.unreported += 1;
            return Ok(());
        }
        let completion = Wc {
            wr_id: send.id,
            status: status as u32,
            opcode: send.kind.opcode(),
            byte_len: u32::try_from(send.data.length()).unwrap_or(u32::MAX),
            qp_num: self.number,
            ..Wc::default()
        };
        let freed = Some((Arc::clone(&self.places), std::mem::take(&mut self.unreported) + 1));
        self.send_completions.push(Entry { completion, is_solicited: !is_success, freed })
    }

    /// Completes the oldest send with success.
    pub(super) fn succeed_send(&mut self) {
        let Some(send) = self.sends.pop_front() else { return };
        if self.report_send(&send, Status::Success).is_err() {
            self.overflow();
        }
    }

    /// Completes the oldest send with an error and flushes the others.
    pub(super) fn fail_send(&mut self, status: Status) {
        debug_assert_ne!(status, Status::Success, "a success is no failure");
        if let Some(send) = self.sends.pop_front() {
            // After an overflow the queue pair enters the error state all the same.
            let _ = self.report_send(&send, status);
        }
        match self.service {
            Service::Rc => self.enter_error(),
            Service::Ud => {
                self.state = State::Sqe;
                self.flush_sends();
            }
        }
    }

    /// Adds the completion of a receive. `completion` has its fields except the numbers of the request and of this queue pair.
    pub(super) fn report_receive(&mut self, receive: &Receive, completion: Wc, is_solicited: bool) {
        if self.faults.loses_completion() {
            return;
        }
        let completion = Wc { wr_id: receive.id, qp_num: self.number, ..completion };
        let is_error = completion.status != Status::Success as u32;
        let entry = Entry { completion, is_solicited: is_solicited || is_error, freed: None };
        if self.receive_completions.push(entry).is_err() {
            self.overflow();
        }
    }

    fn overflow(&mut self) {
        if self.state != State::Err {
            self.report_event(EVENT_QP_FATAL);
            self.enter_error();
        }
    }

    /// Flushes the sends of a queue pair that is in error.
    pub(super) fn flush_sends(&mut self) {
        self.flights.forget();
        (self.stall, self.answer_by_ns) = (None, None);
        while let Some(send) = self.sends.pop_front() {
            let _ = self.report_send(&send, Status::Flushed);
        }
    }

    /// Flushes the receives of a queue pair that is in error.
    pub(super) fn flush_receives(&mut self) {
        while let Some(receive) = self.receives.pop_front() {
            let completion = Wc { status: Status::Flushed as u32, opcode: WC_RECV, ..Wc::default() };
            self.report_receive(&receive, completion, false);
        }
    }

    /// Enters the error state and flushes all work requests.
    pub(super) fn enter_error(&mut self) {
        let was = std::mem::replace(&mut self.state, State::Err);
        self.flush_sends();
        self.flush_receives();
        if self.shared.is_some() && was != State::Err {
            self.report_event(EVENT_QP_LAST_WQE_REACHED);
        }
        debug_assert!(self.sends.is_empty() && self.receives.is_empty(), "a queue pair in error has no work");
    }

    /// Discards work requests and completions, and forgets attributes.
    pub(super) fn reset(&mut self) {
        self.state = State::Reset;
        self.attributes = QpAttr::default();
        self.sends.clear();
        self.receives.clear();
        self.flights.forget();
        (self.stall, self.answer_by_ns) = (None, None);
        (self.reports_drain, self.is_established) = (false, false);
        self.send_completions.purge(self.number);
        self.receive_completions.purge(self.number);
        self.unreported = 0;
        self.places.store(0, Ordering::Relaxed);
    }

    /// Reports that the send queue is drained, if the program wants to know.
    pub(super) fn report_drain(&mut self) {
        let is_drained = self.state == State::Sqd && self.stall.is_none() && self.flights.is_empty();
        if is_drained && std::mem::take(&mut self.reports_drain) {
            self.report_event(EVENT_SQ_DRAINED);
        }
    }
}
