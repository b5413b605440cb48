//! Collectives of one rank: the schedules of its groups, as puts with signals and waits.
//!
//! The collectives of a group run one after the other in the order of the list. Those of several groups run at the same time.
//! The work of a schedule (reductions and copies) is not done, because values have no meaning here. Memory notes its bytes: with a
//! model of the GPU it takes time, as in the job of a collective.

use std::collections::VecDeque;

use rackloom_collectives::{Action, Cursor, Local, Program, Transfer};
use rackloom_protocol::{Condition, NodeId, Signal, SignalKind};

use super::lanes::Lane;
use super::layout::{INBOX, SIGNALS, source};
use super::prepared::{Prepared, RankTable, Turn};
use crate::ranks::JobGroup;
use crate::ranks::ensemble::Poll;
use crate::ranks::request::{Body, Request, Tag};

/// Collectives of one rank.
#[derive(Debug)]
pub(super) struct Groups {
    queues: Vec<Progress>,
    /// True for each operation that is ready.
    is_ready: Vec<bool>,
    /// Queues that may go on.
    runnable: VecDeque<u32>,
}

/// Progress of a group's collectives.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// Number of the current collective, or of the next one.
    next: u32,
    active: Option<Active>,
}

/// Run of a schedule.
#[derive(Clone, Copy, Debug, Default)]
struct Active {
    cursor: Cursor,
    /// Number of puts that are not known to be visible.
    outstanding: u32,
    is_waiting: bool,
    /// True if work was noted.
    has_worked: bool,
}

/// Transfer that was sent, or the end of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The collective begins.
    Begun {
        /// The collective.
        operation: u32,
    },
    /// A transfer was issued.
    Sent {
        /// Collective that the transfer belongs to.
        operation: u32,
        /// Length in bytes.
        bytes: u64,
    },
    /// A collective has ended.
    Ended {
        /// The collective.
        operation: u32,
    },
}

impl Groups {
    pub(super) fn new(table: &RankTable) -> Self {
        let queues = vec![Progress::default(); table.queues.len()];
        Self { queues, is_ready: vec![false; table.roles.len()], runnable: VecDeque::new() }
    }

    /// Adds a collective that is ready.
    pub(super) fn add(&mut self, table: &RankTable, operation: u32) {
        self.is_ready[operation as usize] = true;
        self.runnable.push_back(table.roles[operation as usize].queue);
    }

    /// Records that the wait of a collective has ended.
    pub(super) fn arrived(&mut self, table: &RankTable, operation: u32) {
        let queue = table.roles[operation as usize].queue;
        if let Some(active) = &mut self.queues[queue as usize].active {
            active.is_waiting = false;
            active.cursor.advance();
        }
        self.runnable.push_back(queue);
    }

    /// Records that a put of a collective is visible.
    pub(super) fn visible(&mut self, table: &RankTable, operation: u32) {
        let queue = table.roles[operation as usize].queue;
        if let Some(active) = &mut self.queues[queue as usize].active {
            active.outstanding = active.outstanding.saturating_sub(1);
            if active.outstanding == 0 {
                self.runnable.push_back(queue);
            }
        }
    }

    /// Goes on with all collectives that may, and passes each step to `step`.
    pub(super) fn advance(
        &mut self,
        poll: &mut Poll<'_>,
        prepared: &Prepared,
        table: &RankTable,
        step: &mut impl FnMut(Step),
    ) {
        let mut blocked = VecDeque::new();
        while let Some(queue) = self.runnable.pop_front() {
            if !self.advance_queue(poll, prepared, table, queue, step) {
                blocked.push_back(queue);
            }
        }
        self.runnable = blocked;
    }

    /// Goes on with one queue. Returns false if no event announces when it may go on.
    fn advance_queue(
        &mut self,
        poll: &mut Poll<'_>,
        prepared: &Prepared,
        table: &RankTable,
        queue: u32,
        step: &mut impl FnMut(Step),
    ) -> bool {
        let progress = &mut self.queues[queue as usize];
        while let Some(turn) = table.queues[queue as usize].turns.get(progress.next as usize) {
            let operation = turn.operation;
            if !self.is_ready[operation as usize] {
                return true;
            }
            if progress.active.is_none() {
                step(Step::Begun { operation });
            }
            let active = progress.active.get_or_insert_default();
            match active.advance(poll, prepared, turn, step) {
                Run::Waiting => return true,
                Run::Blocked => return false,
                Run::Over => {}
            }
            (progress.active, progress.next) = (None, progress.next + 1);
            step(Step::Ended { operation });
        }
        true
    }
}

/// State of a run after a step.
enum Run {
    /// A wait or a put is outstanding.
    Waiting,
    /// There is no space for another put, or own memory is at work.
    Blocked,
    /// All actions are over, all puts are visible, and own work has ended.
    Over,
}

impl Active {
    fn advance(
        &mut self,
        poll: &mut Poll<'_>,
        prepared: &Prepared,
        turn: &Turn,
        step: &mut impl FnMut(Step),
    ) -> Run {
        let Turn { operation, lane, position, run } = *turn;
        let lane = &prepared.lanes[lane as usize];
        let ranks = &prepared.workload.groups[usize::from(lane.group)].ranks;
        let schedule = &lane.scheduled.schedule;
        let program = &schedule.programs[position as usize];
        loop {
            match self.cursor.action(program) {
                None if self.outstanding > 0 => return Run::Waiting,
                None if self.has_worked && poll.memory.is_busy() => return Run::Blocked,
                None => return Run::Over,
                Some(Action::Await(_)) if self.is_waiting => return Run::Waiting,
                Some(Action::Await(id)) => {
                    let transfer = schedule.transfer(id);
                    let peer = ranks[transfer.from];
                    let tag = Tag::Phase { peer, item: operation };
                    self.is_waiting = true;
                    poll.issuer.submit_urgent(Request::new(tag, wait(lane, transfer, peer, run)));
                    return Run::Waiting;
                }
                Some(Action::Work(piece)) => {
                    note_work(poll, program, &piece);
                    self.has_worked = true;
                    self.cursor.advance();
                }
                Some(Action::Send(_)) if !poll.issuer.has_space() => return Run::Blocked,
                Some(Action::Send(id)) => {
                    let transfer = schedule.transfer(id);
                    let peer = ranks[transfer.to];
                    let tag = Tag::Phase { peer, item: operation };
                    poll.issuer.submit(Request::new(tag, put(poll.job_group, lane, transfer, peer)));
                    self.outstanding += 1;
                    self.cursor.advance();
                    step(Step::Sent { operation, bytes: transfer.source.length as u64 });
                }
            }
        }
    }
}

/// Notes the bytes of a piece of work. An element of a schedule of a workload is a byte.
fn note_work(poll: &mut Poll<'_>, program: &Program, piece: &Local) {
    let ((moves, reductions), bytes) = (program.amounts(piece), piece.target().length);
    poll.memory.note_work((moves * bytes) as u64, (reductions * bytes) as u64);
}

/// Returns the offset of the word of a transfer at its receiver.
fn word_offset(lane: &Lane, transfer: &Transfer) -> u64 {
    lane.bases[transfer.to] + 8 * u64::from(transfer.arrival)
}

fn put(job_group: &JobGroup, lane: &Lane, transfer: &Transfer, to: u16) -> Body {
    let word = job_group.address(to, SIGNALS, word_offset(lane, transfer));
    let (region, offset, key) = (word.region, word.offset, word.key);
    let signal = Signal { region, offset, key, kind: SignalKind::Add, value: 1 };
    let bytes = transfer.source.length as u64;
    let target = if bytes == 0 { word } else { job_group.address(to, INBOX, 0) };
    Body::Put { target, source: source(bytes), signal: Some(signal) }
}

fn wait(lane: &Lane, transfer: &Transfer, from: u16, run: u64) -> Body {
    Body::WaitUntil {
        region: SIGNALS,
        offset: word_offset(lane, transfer),
        condition: Condition::AtLeast,
        value: run,
        depends_on: Some(NodeId(from)),
    }
}
