//! Messages of one size from one rank to another, and their duration.
//!
//! Latency: the next message is sent when the last one is complete. Bandwidth: as many messages as allowed are
//! outstanding. Time begins when the last warm-up message is complete, and ends with the last measured one.

use rackloom_protocol::{Completion, Condition, Instant, LocalRange, NodeId, RegionId, Signal, SignalKind};

use super::settings::{Measure, PairOperation};
use crate::measure::OperationKind;
use crate::ranks::ensemble::Poll;
use crate::ranks::pattern::Pattern;
use crate::ranks::request::{Body, Outcome, Request, Tag};
use crate::ranks::{CONTROL, JobGroup, NOTHING};

/// Region that a rank's messages are taken from.
pub(crate) const SOURCE: RegionId = RegionId(2);
/// Region that messages arrive in.
pub(crate) const TARGET: RegionId = RegionId(3);

/// Offset of the word that counts the arrived messages of the whole job.
const COUNT: u64 = JobGroup::own_word(0);

/// One case of the script: messages of one size, in one direction, between two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) from: u16,
    pub(crate) to: u16,
    pub(crate) operation: PairOperation,
    pub(crate) bytes: u64,
}

impl Case {
    /// Returns the rank whose bytes are moved.
    pub(crate) const fn source(&self) -> u16 {
        if matches!(self.operation, PairOperation::Get) { self.to } else { self.from }
    }

    /// Returns the rank whose memory receives the bytes.
    pub(crate) const fn target(&self) -> u16 {
        if matches!(self.operation, PairOperation::Get) { self.from } else { self.to }
    }
}

/// One rank's part in a case.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    case: Case,
    measure: Measure,
    warm_up: u64,
    messages: u64,
    issued: u64,
    over: u64,
    /// Value of the job's counting words before the first message.
    base: u64,
    begun: Option<Instant>,
    ended: Instant,
    /// True if a wait for the other rank's message is outstanding.
    is_waiting: bool,
}

impl Exchange {
    pub(crate) fn new(case: Case, measure: Measure, warm_up: u32, repetitions: u32, base: u64) -> Self {
        let messages = u64::from(warm_up) + u64::from(repetitions.max(1));
        Self {
            case,
            measure,
            warm_up: warm_up.into(),
            messages,
            issued: 0,
            over: 0,
            base,
            begun: None,
            ended: Instant::ZERO,
            is_waiting: false,
        }
    }

    /// Returns the number of messages that this case adds to the counting words.
    pub(crate) const fn counted(&self) -> u64 {
        if matches!(self.case.operation, PairOperation::Send) { self.messages } else { 0 }
    }

    /// Returns the bytes of all messages of this case to a rank. A message that is sent back has as many.
    pub(crate) fn bytes_to(&self, rank: u16) -> u64 {
        let is_answered = self.case.operation == PairOperation::Send && rank == self.case.from;
        if rank == self.case.target() || is_answered { self.messages * self.case.bytes } else { 0 }
    }

    /// Returns the time per message in nanoseconds.
    pub(crate) fn time_ns(&self) -> f64 {
        let took_ns = self.begun.map_or(0, |begun| self.ended.since(begun)) as f64;
        let crossings = if self.case.operation == PairOperation::Send { 2.0 } else { 1.0 };
        took_ns / (self.messages - self.warm_up) as f64 / crossings
    }

    /// Returns the number of complete messages, with those of the warm-up.
    pub(crate) const fn over(&self) -> u64 {
        self.over
    }

    /// Returns the number of all messages, with those of the warm-up.
    pub(crate) const fn messages(&self) -> u64 {
        self.messages
    }

    /// Advances the case. Returns whether this rank's part is over.
    pub(crate) fn advance(&mut self, poll: &mut Poll<'_>, pattern: Pattern) -> bool {
        let is_answering = self.case.operation == PairOperation::Send && poll.job_group.rank == self.case.to;
        if is_answering {
            if !self.is_waiting && self.over < self.messages {
                self.wait(poll, self.case.from, self.over + 1);
            }
        } else if poll.job_group.rank == self.case.from {
            self.begin(poll.now);
            while self.may_issue(poll) {
                self.issue(poll, pattern);
                self.issued += 1;
            }
        } else {
            return true;
        }
        self.over >= self.messages && poll.issuer.is_idle()
    }

    fn begin(&mut self, now: Instant) {
        if self.over == self.warm_up && self.begun.is_none() {
            self.begun = Some(now);
        }
    }

    fn may_issue(&self, poll: &Poll<'_>) -> bool {
        let last = if self.begun.is_some() { self.messages } else { self.warm_up };
        let has_space = match self.measure {
            Measure::Latency => self.issued == self.over,
            Measure::Bandwidth => poll.issuer.has_space(),
        };
        self.issued < last && has_space
    }

    /// Records that a request of this case succeeded.
    pub(crate) fn succeeded(&mut self, poll: &mut Poll<'_>, outcome: &Outcome) {
        let is_message = match self.case.operation {
            PairOperation::Send => outcome.kind == OperationKind::WaitUntil,
            _ => true,
        };
        if !is_message {
            return;
        }
        self.over += 1;
        self.ended = poll.now;
        self.is_waiting = false;
        if poll.job_group.rank == self.case.to {
            self.send(poll, self.case.from, self.over);
        }
    }

    fn issue(&mut self, poll: &mut Poll<'_>, pattern: Pattern) {
        let Case { to, operation, bytes, .. } = self.case;
        let own = |region| LocalRange { region, offset: 0, length: bytes };
        let body = match operation {
            PairOperation::Store => Body::Store {
                target: poll.job_group.address(to, TARGET, 0),
                data: pattern.bytes(0, bytes),
                completion: Completion::Visible,
            },
            PairOperation::Put => {
                Body::Put { target: poll.job_group.address(to, TARGET, 0), source: own(SOURCE), signal: None }
            }
            PairOperation::Get => {
                Body::Get { target: poll.job_group.address(to, SOURCE, 0), into: own(TARGET) }
            }
            PairOperation::Send => {
                self.send(poll, to, self.issued + 1);
                self.wait(poll, to, self.issued + 1);
                return;
            }
        };
        poll.issuer.submit(Request::new(Tag::Phase { peer: to, item: 0 }, body));
    }

    /// Sends a message to a peer and counts it there.
    fn send(&self, poll: &mut Poll<'_>, peer: u16, number: u64) {
        let word = poll.job_group.address(peer, CONTROL, COUNT);
        let source = LocalRange { region: SOURCE, offset: 0, length: self.case.bytes };
        let (target, source) = if self.case.bytes == 0 {
            (word, NOTHING)
        } else {
            (poll.job_group.address(peer, TARGET, 0), source)
        };
        let signal = Signal {
            region: word.region,
            offset: word.offset,
            key: word.key,
            kind: SignalKind::Set,
            value: self.base + number,
        };
        let body = Body::Put { target, source, signal: Some(signal) };
        poll.issuer.submit(Request::new(Tag::Phase { peer, item: 0 }, body));
    }

    fn wait(&mut self, poll: &mut Poll<'_>, peer: u16, number: u64) {
        self.is_waiting = true;
        let body = Body::WaitUntil {
            region: CONTROL,
            offset: COUNT,
            condition: Condition::AtLeast,
            value: self.base + number,
            depends_on: Some(NodeId(peer)),
        };
        poll.issuer.submit_urgent(Request::new(Tag::Phase { peer, item: 1 }, body));
    }
}
