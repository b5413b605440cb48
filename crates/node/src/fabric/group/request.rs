//! A call of a collective, and the ways to complete it: [`GroupRequest::wait`] and [`GroupRequest::wait_for`], `.await`, [`GroupRequest::submit`].
//!
//! A call begins with a place in the order of its lane (`shared`), and waits for its turn. It is a sequence of runs: a barrier, if the last run does not prove that all members have left the one before it, then a run for each
//! piece of the array. The first call of all begins with a join check. Arrived signals are handled before all other checks, because a
//! member that has done its part may leave. `peer_check` and `watch` handle members that are lost, give up or call a different collective.

use std::cell::RefCell;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rackloom_collectives::execute::{Arithmetic, Blocks};
use rackloom_collectives::{Buffer, Collective, Schedule};
use rackloom_protocol::{Instant, NodeId, OperationId};

use super::super::error::{Error, Invalid};
use super::super::pending::Pending;
use super::super::queue::Queue;
use super::arithmetic::{MOVED, names};
use super::data::{Data, Source};
use super::join_check::JoinCheck;
use super::layout::Set;
use super::peer_check::{PeerCheck, QUERY_INTERVAL_NS};
use super::query::{CallName, RETRY_NS, hash};
use super::running::{LaneRun, Running};
use super::schedules::{Prepared, Size};
use super::shared::{Inner, LaneState};
use super::wake_timer::WakeTimer;
use crate::fabric::engine::activity::Activity;
use crate::fabric::engine::core::Core;
use crate::fabric::engine::table::{Entry, Sink};

/// Collective that has not begun. `'a` is the lifetime of the caller's arrays, whose content is undefined after an error.
///
/// `Send` and `Sync`. As a future it works on any executor. Dropping a request that has begun breaks the group and notifies the other
/// members. So does [`Pending::cancel`] of one that was started.
#[must_use = "a collective does nothing until it is waited for, awaited or submitted"]
#[derive(Debug)]
pub struct GroupRequest<'a> {
    group: Arc<Inner>,
    call: Result<Call<'a>, Option<Error>>,
    wake_timer: WakeTimer,
    /// Waker that is registered for deaths.
    watcher: Option<Waker>,
}

/// Arguments and progress of a call.
#[derive(Debug)]
pub(super) struct Call<'a> {
    collective: Collective,
    arithmetic: Arithmetic,
    pub(super) data: Data<'a>,
    /// Number of rows of the whole array, of which members get parts.
    whole_rows: usize,
    /// Number of elements of each part, if the parts differ.
    parts: Vec<usize>,
    /// Schedules that were made before the call.
    pub(super) prepared: Option<Arc<Prepared>>,
    stage: Stage,
    /// Lane of the call, and its position in the order of that lane, once the call has begun.
    pub(super) lane: usize,
    turn: u64,
    /// A wait has ended at its deadline, and no other one has begun.
    is_paused: bool,
    /// Buffers of reductions, while the call has its turn.
    pub(super) blocks: Option<Box<Blocks>>,
    /// Number and hash that members compare, once the call has begun.
    name: CallName,
    peer_check: PeerCheck,
    /// Number of bytes of each row that are done, and of one piece at most.
    done: usize,
    pub(super) piece: usize,
    /// Size by which the group re-chooses the algorithm, if it does.
    pub(super) adapted: Option<Size>,
    /// Beginning of the first run.
    begun: Option<Instant>,
}

/// Reaction of a caller to a call that cannot advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    /// It waits for the end, and does nothing else meanwhile.
    Blocks,
    /// It returns, and the call is advanced again later.
    Returns,
}

#[derive(Debug)]
enum Stage {
    Fresh,
    /// Earlier calls of the lane have not ended.
    Queued,
    Gathering(JoinCheck),
    Between {
        has_met: bool,
    },
    Meeting(Running),
    Moving(Running, Range<usize>),
    /// The members agree on the time of the calls of an epoch.
    Agreeing(Running),
    Over,
}

impl<'a> Call<'a> {
    pub(super) fn new(collective: Collective, arithmetic: Arithmetic, data: Data<'a>) -> Self {
        let (stage, name) = (Stage::Fresh, CallName { number: 0, kind: 0 });
        let peer_check = PeerCheck::default();
        let (lane, turn) = (0, 0);
        Self {
            collective,
            arithmetic,
            data,
            whole_rows: 1,
            parts: Vec::new(),
            prepared: None,
            stage,
            lane,
            turn,
            is_paused: false,
            blocks: None,
            name,
            peer_check,
            done: 0,
            piece: 0,
            adapted: None,
            begun: None,
        }
    }

    /// Sets the number of rows of the whole array.
    pub(super) fn with_rows(self, whole_rows: usize) -> Self {
        Self { whole_rows, ..self }
    }

    /// Sets the number of elements of each part, for parts of different lengths.
    pub(super) fn with_parts(self, parts: Vec<usize>) -> Self {
        Self { parts, ..self }
    }

    /// Returns `true` if the parts have listed lengths.
    pub(super) const fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Has the call take these schedules.
    pub(super) fn with_prepared(self, prepared: Arc<Prepared>) -> Self {
        Self { prepared: Some(prepared), ..self }
    }

    /// Chooses the length of a piece, and makes the schedules of all pieces.
    pub(super) fn prepare(&self, group: &Inner) -> Result<Prepared, Error> {
        let piece = self.piece_bytes(group)?;
        let mut schedules = Vec::new();
        let rest = self.data.row_bytes.checked_rem(piece).unwrap_or(0);
        let whole = self.data.row_bytes - rest;
        for columns in [0..piece, whole..self.data.row_bytes] {
            if let Some(size) = self.size(&columns).filter(|_| !columns.is_empty()) {
                let schedule = group.schedules().find(&size)?;
                schedules.push((size, schedule));
            }
        }
        Ok(Prepared { piece, schedules })
    }

    /// Returns the largest number of bytes of each row of which a piece fits into the staging.
    fn piece_bytes(&self, group: &Inner) -> Result<usize, Error> {
        if self.data.row_bytes == 0 {
            return Ok(0);
        }
        let element_bytes = self.arithmetic.element_bytes();
        let size_of = |columns: usize| self.size(&(0..columns * element_bytes));
        let columns = group.schedules().columns(self.data.row_bytes / element_bytes, size_of)?;
        Ok(columns * element_bytes)
    }

    /// Returns the size of the collective of these columns, in bytes. `None` beyond the address space.
    pub(super) fn size(&self, columns: &Range<usize>) -> Option<Size> {
        let element_bytes = self.arithmetic.element_bytes();
        let (start, end) = (columns.start / element_bytes, columns.end / element_bytes);
        let parts: Vec<_> = self.parts.iter().map(|part| part.min(&end) - part.min(&start)).collect();
        let elements = if parts.is_empty() {
            self.whole_rows.checked_mul(end - start)?
        } else {
            parts.iter().try_fold(0_usize, |sum, part| sum.checked_add(*part))?
        };
        let (collective, is_ordered) = (self.collective, self.arithmetic.is_ordered());
        let algorithm = self.adapted.as_ref().and_then(|size| size.algorithm);
        Some(Size { collective, elements, element_bytes, parts, is_ordered, algorithm })
    }

    /// Returns the schedule of these columns.
    fn schedule(&self, group: &Inner, columns: &Range<usize>) -> Result<Arc<Schedule>, Error> {
        let size = self.size(columns).ok_or(Error::Invalid(Invalid::ArrayTooLarge))?;
        let prepared = self.prepared.iter().flat_map(|prepared| &prepared.schedules);
        match prepared.into_iter().find(|(known, _)| *known == size) {
            Some((_, schedule)) => Ok(Arc::clone(schedule)),
            None => group.schedules().find(&size),
        }
    }

    const fn has_begun(&self) -> bool {
        !matches!(self.stage, Stage::Fresh | Stage::Over)
    }

    /// Gives the call its place in the order of its lane, if it has none. A caller that blocks is refused behind a call that no thread drives,
    /// because that may be a call of the same thread.
    fn begin(&mut self, core: &mut Core, group: &Inner, caller: Caller) -> Result<(), Error> {
        if !matches!(self.stage, Stage::Fresh) {
            return Ok(());
        }
        core.member()?;
        let mut common = group.common();
        if let Some(broken) = common.broken {
            return Err(broken.error(false));
        }
        let lane = common.next_lane;
        let mut state = group.lane(lane);
        if caller == Caller::Blocks && state.turns.paused > 0 {
            return Err(Error::Invalid(Invalid::GroupBusy));
        }
        common.next_lane = (lane + 1) % group.lanes.len();
        (self.lane, self.turn, self.stage) = (lane, state.turns.taken, Stage::Queued);
        state.turns.taken += 1;
        Ok(())
    }

    /// Notes that no thread drives the call any more, or that one does again.
    fn set_paused(&mut self, group: &Inner, is_paused: bool) {
        if self.is_paused != is_paused && self.has_begun() {
            self.is_paused = is_paused;
            let paused = &mut group.lane(self.lane).turns.paused;
            *paused = if is_paused { *paused + 1 } else { *paused - 1 };
        }
    }

    /// Lets the next call of the lane begin, if this one has the turn or has had it. Returns `true` if it had a place in the order.
    fn leave_lane(&mut self, core: &mut Core, group: &Inner) -> bool {
        self.set_paused(group, false);
        let has_place = self.has_begun();
        self.stage = Stage::Over;
        if has_place {
            let mut state = group.lane(self.lane);
            if let Some(blocks) = self.blocks.take() {
                state.blocks = Some(blocks);
            }
            core.table.to_wake.extend(state.turns.end());
        }
        has_place
    }

    /// Advances the call. `None` while it waits.
    fn advance(&mut self, core: &mut Core, group: &Inner, caller: Caller) -> Option<Result<(), Error>> {
        if let Err(error) = self.begin(core, group, caller) {
            return Some(Err(error));
        }
        self.set_paused(group, false);
        loop {
            let went = self.step(core, group);
            match went {
                Some(Ok(Stage::Over)) => {
                    self.leave_lane(core, group);
                    return Some(Ok(()));
                }
                Some(Ok(stage)) => self.stage = stage,
                // The first failure of the group is the cause of this one.
                Some(Err(error)) if self.has_begun() => {
                    return Some(Err(group.check_departure().err().unwrap_or(error)));
                }
                Some(Err(error)) => return Some(Err(error)),
                None => match self.peer_check(core, group) {
                    Ok(false) => return None,
                    Ok(true) => _ = core.poll(),
                    Err(error) => return Some(Err(error)),
                },
            }
        }
    }

    /// Advances the call by one stage. `None` while it waits.
    ///
    /// Holds no lock while it polls the node, because a poll may advance other calls of the group.
    fn step(&mut self, core: &mut Core, group: &Inner) -> Option<Result<Stage, Error>> {
        let moved = match &mut self.stage {
            Stage::Queued if self.turn != group.lane(self.lane).turns.ended => {
                let error = group.watch(core).err()?;
                Err(error)
            }
            Stage::Queued => match self.claim(core, group) {
                // From here on a failure notifies the other members.
                Ok(stage) => group.watch(core).map(|()| stage),
                Err(error) => {
                    self.leave_lane(core, group);
                    Err(error)
                }
            },
            Stage::Gathering(join_check) => {
                let gathered = join_check.advance(core, &group.membership)?;
                group.common().is_complete = gathered.is_ok();
                gathered.map(|()| Stage::Between { has_met: false })
            }
            Stage::Between { has_met } => {
                let has_met = *has_met;
                let now = match core.member() {
                    Ok(engine) => engine.now(),
                    Err(error) => return Some(Err(error)),
                };
                self.next(group, has_met, now)
            }
            Stage::Agreeing(running) => {
                let blocks = buffers(&mut self.blocks, &running.arithmetic);
                let agreed = running.advance(core, &group.membership, blocks, Source::Staging)?;
                let offset = running.buffer(&group.membership, Buffer::Output);
                agreed.and_then(|()| self.end_epoch(group, offset)).map(|()| Stage::Over)
            }
            Stage::Meeting(running) => {
                let blocks = buffers(&mut self.blocks, &self.arithmetic);
                let met = running.advance(core, &group.membership, blocks, Source::Staging)?;
                group.lane(self.lane).must_meet &= met.is_err();
                met.map(|()| Stage::Between { has_met: true })
            }
            Stage::Moving(running, columns) => {
                let blocks = buffers(&mut self.blocks, &self.arithmetic);
                let source = self.data.source(&group.membership.memory.arrays, columns);
                let moved = running.advance(core, &group.membership, blocks, source)?;
                let output = running.buffer(&group.membership, Buffer::Output);
                let (columns, elements) = (columns.clone(), running.schedule.elements);
                // A member with an empty part may leave before others have begun.
                let are_filled = self.parts.is_empty() || running.schedule.parts.are_all_filled();
                group.lane(self.lane).must_meet =
                    !(are_filled && self.collective.synchronizes(group.membership.members.len(), elements));
                self.done = columns.end;
                moved
                    .and_then(|()| self.data.copy_out(&group.membership.memory.arrays, output, &columns))
                    .map(|()| Stage::Between { has_met: false })
            }
            Stage::Fresh | Stage::Over => Err(Error::Closed),
        };
        Some(moved)
    }

    /// Checks that the wait can still end. Returns `true` if the core has a command to send.
    fn peer_check(&mut self, core: &mut Core, group: &Inner) -> Result<bool, Error> {
        let mut issued = false;
        match &self.stage {
            Stage::Meeting(running) | Stage::Moving(running, _) | Stage::Agreeing(running) => {
                group.check_departure()?;
                self.peer_check.advance(core, group, running, self.name, &mut issued)?;
            }
            _ => group.watch(core)?,
        }
        Ok(issued)
    }

    /// Takes the turn, and chooses the length of a piece.
    fn claim(&mut self, core: &mut Core, group: &Inner) -> Result<Stage, Error> {
        if let Some(broken) = group.common().broken {
            return Err(broken.error(false));
        }
        self.piece = match &self.prepared {
            Some(prepared) => prepared.piece,
            None => self.piece_bytes(group)?,
        };
        let now = core.member()?.now();
        let mut state = group.lane(self.lane);
        self.begin_adapting(group, &mut state);
        self.blocks = state.blocks.take();
        if let Some(blocks) = &mut self.blocks {
            blocks.set(&self.arithmetic);
        }
        state.calls = CallName::after(state.calls);
        self.name =
            CallName { number: state.calls, kind: self.kind(group.membership.terms, self.data.row_bytes) };
        let layout = group.lanes[self.lane].layout;
        group.announce(layout, self.name)?;
        if group.common().is_complete {
            return Ok(Stage::Between { has_met: false });
        }
        let timeout_ns = u64::try_from(group.options.join_timeout.as_nanos()).unwrap_or(u64::MAX);
        Ok(Stage::Gathering(JoinCheck::new(&group.membership, layout, now, timeout_ns)))
    }

    /// Begins the next run.
    fn next(&mut self, group: &Inner, has_met: bool, now: Instant) -> Result<Stage, Error> {
        let layout = group.lanes[self.lane].layout;
        let begun = *self.begun.get_or_insert(now);
        let is_barrier = self.collective == Collective::Barrier;
        let is_over = if is_barrier { has_met } else { self.done == self.data.row_bytes };
        if is_over {
            let agreement = self.agreement(group, now.since(begun))?;
            return Ok(agreement.map_or(Stage::Over, Stage::Agreeing));
        }
        let mut state = group.lane(self.lane);
        if is_barrier || state.must_meet {
            let schedule = group.schedules().find(&Size::barrier())?;
            state.barriers = state.barriers.wrapping_add(1);
            let run = LaneRun { layout, set: Set::Barrier, number: state.barriers, kind: self.name.kind };
            return Ok(Stage::Meeting(Running::new(&group.membership, schedule, run, MOVED)));
        }
        let columns = self.done..self.data.row_bytes.min(self.done + self.piece);
        let schedule = self.schedule(group, &columns)?;
        let running = self.run_with_data(group, &mut state, schedule, self.arithmetic.clone());
        let arrays = &group.membership.memory.arrays;
        if matches!(self.data.source(arrays, &columns), Source::Staging) {
            let staging = running.buffer(&group.membership, Buffer::Input);
            self.data.copy_in(arrays, staging, &columns)?;
        }
        Ok(Stage::Moving(running, columns))
    }

    /// Returns the next run with data of the call's lane.
    pub(super) fn run_with_data(
        &self,
        group: &Inner,
        state: &mut LaneState,
        schedule: Arc<Schedule>,
        arithmetic: Arithmetic,
    ) -> Running {
        state.runs = state.runs.wrapping_add(1);
        let layout = group.lanes[self.lane].layout;
        let kind = self.kind(group.membership.terms, schedule.elements);
        let run = LaneRun { layout, set: Set::of_run(state.runs), number: state.runs, kind };
        Running::new(&group.membership, schedule, run, arithmetic)
    }

    /// Returns a hash of the group's options and the call, which must be equal on all members.
    pub(super) fn kind(&self, terms: u32, length: usize) -> u32 {
        let root = self.collective.root().map_or(0, |root| root as u64 + 1);
        let [operation, element] = names(&self.arithmetic);
        let bytes = [self.collective.name(), operation, element].into_iter().flat_map(str::bytes);
        let element_bytes = self.arithmetic.element_bytes();
        let numbers = [root, length as u64, element_bytes as u64].into_iter();
        let parts = self.parts.iter().map(|part| *part as u64);
        hash(terms, bytes.chain(numbers.chain(parts).flat_map(u64::to_le_bytes)))
    }

    fn running(&mut self) -> Option<&mut Running> {
        match &mut self.stage {
            Stage::Meeting(running) | Stage::Moving(running, _) | Stage::Agreeing(running) => Some(running),
            _ => None,
        }
    }

    /// Drops all waits and queries of this call, and leaves its lane.
    fn abandon(&mut self, core: &mut Core, group: &Inner) {
        self.peer_check.abandon(core);
        match &mut self.stage {
            Stage::Gathering(join_check) => join_check.abandon(core),
            Stage::Meeting(running) | Stage::Moving(running, _) | Stage::Agreeing(running) => {
                running.abandon(core);
            }
            _ => {}
        }
        self.leave_lane(core, group);
    }

    fn register(&self, core: &mut Core, group: &Inner, waker: &Waker) {
        match &self.stage {
            Stage::Queued => group.lane(self.lane).turns.register(waker),
            Stage::Gathering(join_check) => join_check.register(core, waker),
            Stage::Meeting(running) | Stage::Moving(running, _) | Stage::Agreeing(running) => {
                running.register(core, waker);
                self.peer_check.register(core, waker);
            }
            _ => {}
        }
    }
}

/// Returns the buffers of a call, made at the first use by a call of the lane.
fn buffers<'b>(kept: &'b mut Option<Box<Blocks>>, arithmetic: &Arithmetic) -> &'b mut Blocks {
    kept.get_or_insert_with(|| Box::new(Blocks::of(arithmetic)))
}

impl<'a> GroupRequest<'a> {
    pub(super) fn new(group: &Arc<Inner>, call: Result<Call<'a>, Error>) -> Self {
        Self {
            group: Arc::clone(group),
            call: call.map_err(Some),
            wake_timer: WakeTimer::default(),
            watcher: None,
        }
    }

    /// Blocks until this member's part is done and all its puts are visible. The calling thread drives the node meanwhile.
    ///
    /// # Errors
    /// [`Error::PeerLost`] or [`Error::PeerLeft`] if a member is lost; [`Error::GroupBroken`] if one gave up, calls a different collective or
    /// joined a different group under this number; [`Error::NotJoined`] if one has not joined in time; [`Error::Invalid`] if the arrays do
    /// not fit the group; [`Error::Refused`] if a member has dropped its group; [`Error::Closed`].
    pub fn wait(mut self) -> Result<(), Error> {
        self.wait_until(Instant::NEVER).unwrap_or(Err(Error::Closed))
    }

    /// Blocks until this member's part is done, at most for `timeout`. At the deadline the call is neither ended nor given up: call this
    /// method again, any number of times. The call advances only during such a call. Dropping the request breaks the group.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`]; [`Error::TimedOut`] with the awaited member, if there is exactly one.
    pub fn wait_for(&mut self, timeout: Duration) -> Result<(), Error> {
        let engine = Arc::clone(self.group.membership.memory.words.engine());
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let ended = self.wait_until(engine.clock.now() + timeout_ns);
        ended.unwrap_or_else(|| {
            let mut held = engine.hold();
            held.core().member()?;
            self.stop_watching(held.core());
            self.pause();
            Err(Error::TimedOut { peer: self.awaited(), waited_ms: timeout_ns / 1_000_000, continues: true })
        })
    }

    /// Returns `None` if `until` passed first, or if the node has left.
    fn wait_until(&mut self, until: Instant) -> Option<Result<(), Error>> {
        let engine = Arc::clone(self.group.membership.memory.words.engine());
        let this = RefCell::new(self);
        engine.wait(
            until,
            |core| this.borrow_mut().look(core, Caller::Blocks),
            |core, waker| this.borrow_mut().register(core, waker),
        )
    }

    /// Returns the member whose signal the call waits for.
    fn awaited(&mut self) -> Option<NodeId> {
        let (_, rank) = self.call.as_mut().ok()?.running()?.waits_for()?;
        Some(self.group.membership.members[rank])
    }

    fn look(&mut self, core: &mut Core, caller: Caller) -> Option<Result<(), Error>> {
        let call = match &mut self.call {
            Ok(call) => call,
            Err(error) => return Some(Err(error.take().unwrap_or(Error::Closed))),
        };
        let result = call.advance(core, &self.group, caller)?.map_err(|error| core.table.deaths.name(error));
        self.stop_watching(core);
        if let Err(error) = &result {
            self.give_up(core, error);
        }
        // The next call of the lane may be one that was started.
        if !core.activities.is_empty() {
            core.advance_activities();
        }
        Some(result)
    }

    /// Ends a call that has failed or was dropped.
    fn give_up(&mut self, core: &mut Core, error: &Error) {
        let Ok(call) = &mut self.call else { return };
        if call.has_begun() {
            call.abandon(core, &self.group);
            self.group.break_group(core, error);
        }
    }

    fn register(&mut self, core: &mut Core, waker: &Waker) {
        if !self.watcher.as_ref().is_some_and(|known| known.will_wake(waker)) {
            self.stop_watching(core);
            self.watcher = Some(waker.clone());
        }
        self.group.register(core, waker);
        if let Ok(call) = &self.call {
            call.register(core, &self.group, waker);
        }
    }

    fn stop_watching(&mut self, core: &mut Core) {
        if let Some(waker) = self.watcher.take() {
            core.table.deaths.forget(&waker);
        }
    }

    /// Sets a reminder, so that a future checks its peer again without an event.
    fn set_wake_timer(&self, core: &mut Core, waker: &Waker) {
        let is_gathering = matches!(self.call, Ok(Call { stage: Stage::Gathering(_), .. }));
        self.wake_timer.set(core, waker, if is_gathering { RETRY_NS } else { QUERY_INTERVAL_NS });
    }

    /// Notes that the caller stops to drive the call for now.
    fn pause(&mut self) {
        if let Ok(call) = &mut self.call {
            call.set_paused(&self.group, true);
        }
    }

    fn must_retry(&mut self) -> bool {
        let running = self.call.as_mut().ok().and_then(Call::running);
        running.is_some_and(|running| running.must_retry())
    }
}

impl GroupRequest<'static> {
    /// Begins the collective. Its completion, with `context`, arrives in `queue`. The collective advances in the thread that drives the node,
    /// for example the background thread. For calls that borrow no array: a barrier, and [`super::Group::on_slices`].
    ///
    /// # Errors
    /// Errors that are known at once. The completion reports all others.
    pub fn submit(self, queue: &Arc<Queue>, context: u64) -> Result<OperationId, Error> {
        self.hand_over(Sink::Queue(Arc::clone(queue), context))
    }

    /// Begins the collective now, and returns its handle. The collective advances in the background, as one that was submitted. Dropping the handle
    /// does not end it.
    ///
    /// # Errors
    /// Errors that are known at once. The handle returns all others.
    pub fn start(self) -> Result<Pending<()>, Error> {
        let engine = Arc::clone(self.group.membership.memory.words.engine());
        let operation = self.hand_over(Sink::Request(None))?;
        Ok(Pending::of_activity(engine, operation))
    }

    /// Gives the call its place in the order of the group, and has the node advance it.
    fn hand_over(mut self, sink: Sink) -> Result<OperationId, Error> {
        let engine = Arc::clone(self.group.membership.memory.words.engine());
        let mut held = engine.hold();
        let core = held.core();
        match &mut self.call {
            Ok(call) => call.begin(core, &self.group, Caller::Returns)?,
            Err(error) => return Err(error.take().unwrap_or(Error::Closed)),
        }
        let operation = core.table.open(Entry { sink, ..Entry::default() });
        core.begin(operation, Box::new(self));
        Ok(operation)
    }
}

impl Activity<Core> for GroupRequest<'static> {
    fn advance(&mut self, core: &mut Core) -> Option<Result<(), Error>> {
        self.look(core, Caller::Returns)
    }
}

impl Future for GroupRequest<'_> {
    type Output = Result<(), Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let engine = Arc::clone(this.group.membership.memory.words.engine());
        let mut held = engine.hold_for_task();
        let core = held.core();
        if let Some(result) = core.visit_for(|core| this.look(core, Caller::Returns)) {
            return Poll::Ready(result);
        }
        this.register(core, context.waker());
        this.set_wake_timer(core, context.waker());
        this.pause();
        if this.must_retry() {
            core.await_space(context.waker());
        }
        held.delegate();
        Poll::Pending
    }
}

impl Drop for GroupRequest<'_> {
    fn drop(&mut self) {
        let has_begun = self.call.as_ref().is_ok_and(Call::has_begun);
        if !has_begun && self.watcher.is_none() {
            return;
        }
        let engine = Arc::clone(self.group.membership.memory.words.engine());
        let mut held = engine.hold();
        self.stop_watching(held.core());
        if has_begun {
            let me = self.group.me();
            self.give_up(held.core(), &Error::GroupBroken { peer: me });
        }
    }
}
