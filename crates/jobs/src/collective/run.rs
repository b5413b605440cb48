//! One run of a schedule on one rank: its actions as puts with signal and waits. Work on own memory is done elsewhere
//! ([`super::work`]), a bounded amount of it per turn, because the same thread keeps the links alive.

use rackloom_collectives::{Action, Cursor, ElementType, Schedule, Span, TransferId};
use rackloom_protocol::{Condition, Instant, LocalRange, NodeId, Signal, SignalKind};

use super::room::SIGNALS;
use super::work::{Blocks, TURN_BYTES, region_of, work};
use crate::crew::NOTHING;
use crate::crew::ensemble::Turn;
use crate::crew::request::{Body, Request, Tag};

/// How far a run got in a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Went {
    /// As far as it can until something outstanding ends.
    Waiting,
    /// As far as one turn may.
    Again,
    /// To the end; everything that it sent is visible at its target.
    Through,
    Failed(String),
}

/// One rank's place in one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Counts the runs of the job from 1; what signals are set to.
    pub(crate) number: u64,
    pub(crate) begun: Instant,
    cursor: Cursor,
    /// The wait of the current action has been asked for.
    is_waiting: bool,
    /// Bytes of the current work's target that are done.
    worked: usize,
}

impl Run {
    pub(crate) fn new(number: u64, begun: Instant) -> Self {
        Self { number, begun, cursor: Cursor::default(), is_waiting: false, worked: 0 }
    }

    /// Index of the step in which the rank is.
    pub(crate) fn step(&self) -> usize {
        self.cursor.step()
    }

    /// Whose signal is waited for.
    pub(crate) fn waits_for(&self, schedule: &Schedule, rank: usize) -> Option<usize> {
        let mut cursor = self.cursor;
        match cursor.action(&schedule.programs[rank]) {
            Some(Action::Await(id)) if self.is_waiting => Some(schedule.transfer(id).from),
            _ => None,
        }
    }

    /// A wait ended with the word's value.
    pub(crate) fn arrived(&mut self, value: u64) -> Result<(), String> {
        if value != self.number {
            return Err(format!("a signal of run {value} came in run {}", self.number));
        }
        self.is_waiting = false;
        self.cursor.advance();
        Ok(())
    }

    pub(crate) fn advance(
        &mut self,
        turn: &mut Turn<'_>,
        schedule: &Schedule,
        element: ElementType,
        blocks: &mut Blocks,
    ) -> Went {
        let program = &schedule.programs[usize::from(turn.crew.rank)];
        let mut budget = TURN_BYTES;
        loop {
            match self.cursor.action(program) {
                None if !turn.issuer.is_idle() => return Went::Waiting,
                // The work of this turn has taken time that its `now` does not know.
                None if budget < TURN_BYTES => return Went::Again,
                None => return Went::Through,
                Some(Action::Await(id)) => {
                    self.wait(turn, schedule, id);
                    return Went::Waiting;
                }
                Some(Action::Work(_)) if budget == 0 => return Went::Again,
                Some(Action::Work(piece)) => {
                    match work(turn.memory, (program, piece), element, &mut self.worked, (blocks, budget)) {
                        Ok(moved) => budget = budget.saturating_sub(moved),
                        Err(failure) => return Went::Failed(failure),
                    }
                    if self.worked >= piece.target().bytes(element.bytes()).len() {
                        self.worked = 0;
                        self.cursor.advance();
                    }
                }
                Some(Action::Send(_)) if !turn.issuer.has_room() => return Went::Waiting,
                Some(Action::Send(id)) => {
                    self.send(turn, schedule, id, element);
                    self.cursor.advance();
                }
            }
        }
    }

    fn wait(&mut self, turn: &mut Turn<'_>, schedule: &Schedule, id: TransferId) {
        if self.is_waiting {
            return;
        }
        self.is_waiting = true;
        let transfer = schedule.transfer(id);
        let body = Body::WaitUntil {
            region: SIGNALS,
            offset: signal_offset(transfer.arrival),
            condition: Condition::AtLeast,
            value: self.number,
            depends_on: Some(NodeId(transfer.from as u16)),
        };
        turn.issuer.submit_urgent(Request::new(tag(transfer.from, id), body));
    }

    fn send(&self, turn: &mut Turn<'_>, schedule: &Schedule, id: TransferId, element: ElementType) {
        let transfer = schedule.transfer(id);
        let owner = transfer.to as u16;
        let word = turn.crew.address(owner, SIGNALS, signal_offset(transfer.arrival));
        let signal = Signal {
            region: word.region,
            offset: word.offset,
            key: word.key,
            kind: SignalKind::Set,
            value: self.number,
        };
        let (target, source) = if transfer.source.length == 0 {
            (word, NOTHING)
        } else {
            let place = |span: Span| (region_of(span.buffer), span.bytes(element.bytes()));
            let (region, bytes) = place(transfer.source);
            let source = LocalRange { region, offset: bytes.start as u64, length: bytes.len() as u64 };
            let (region, bytes) = place(transfer.target);
            (turn.crew.address(owner, region, bytes.start as u64), source)
        };
        let body = Body::Put { target, source, signal: Some(signal) };
        turn.issuer.submit(Request::new(tag(transfer.to, id), body));
    }
}

/// The peer of a transfer, and its number.
fn tag(peer: usize, id: TransferId) -> Tag {
    Tag::Phase { peer: peer as u16, item: id.0 }
}

fn signal_offset(arrival: u32) -> u64 {
    u64::from(arrival) * 8
}
