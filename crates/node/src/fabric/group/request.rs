//! A call of a collective, and the ways to end it: [`GroupRequest::wait`], `.await`, [`GroupRequest::submit`].
//!
//! A call is a row of runs: a barrier where the last run does not prove that everybody has left the one before it, then a run for
//! each piece of the array. What happens when somebody is lost, gives up or does something else, `watch` settles.

use std::cell::RefCell;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rackloom_collectives::execute::Blocks;
use rackloom_collectives::{Buffer, Collective};
use rackloom_protocol::{Instant, OperationId};

use super::super::activity::Activity;
use super::super::engine::Core;
use super::super::error::Error;
use super::super::queue::Queue;
use super::super::table::{Entry, Sink};
use super::data::Data;
use super::ground::Set;
use super::running::Running;
use super::schedules::Size;
use super::{Arithmetic, Inner, State};

/// How long members may be late to join.
const JOIN_PATIENCE_NS: u64 = 10_000_000_000;
/// A collective that has not begun. `'a` is the life of the caller's arrays, whose content is undefined after an error.
///
/// `Send` and `Sync`; as a future it needs no particular executor. Dropping one that has begun breaks the group, and the other members are
/// told.
#[must_use = "a collective does nothing until it is waited for, awaited or submitted"]
#[derive(Debug)]
pub struct GroupRequest<'a> {
    group: Arc<Inner>,
    call: Result<Call<'a>, Option<Error>>,
}

/// What was called, and how far it is.
#[derive(Debug)]
pub(super) struct Call<'a> {
    collective: Collective,
    arithmetic: Arithmetic,
    data: Data<'a>,
    /// Rows of the whole array of which parts are dealt out.
    whole_rows: usize,
    stage: Stage,
    /// Bytes of each row that are done, and of one piece at most.
    done: usize,
    piece: usize,
}

#[derive(Debug)]
enum Stage {
    Fresh,
    Between { has_met: bool },
    Meeting(Running),
    Moving(Running, Range<usize>),
    Over,
}

impl<'a> Call<'a> {
    pub(super) fn new(collective: Collective, arithmetic: Arithmetic, data: Data<'a>) -> Self {
        Self { collective, arithmetic, data, whole_rows: 1, stage: Stage::Fresh, done: 0, piece: 0 }
    }

    /// The same, where the whole array has so many rows.
    pub(super) fn with_rows(self, whole_rows: usize) -> Self {
        Self { whole_rows, ..self }
    }

    const fn has_begun(&self) -> bool {
        !matches!(self.stage, Stage::Fresh | Stage::Over)
    }

    /// Go on; `None` while it waits.
    fn advance(&mut self, core: &mut Core, group: &Inner) -> Option<Result<(), Error>> {
        loop {
            if let Err(error) = group.watch(core) {
                return Some(Err(error));
            }
            let mut state = group.state();
            let state = &mut *state;
            let moved = match &mut self.stage {
                Stage::Fresh => self.claim(state),
                Stage::Between { has_met } => {
                    let has_met = *has_met;
                    self.next(core, group, state, has_met)
                }
                Stage::Meeting(running) => {
                    let met = running.advance(core, &group.place, &mut state.blocks)?;
                    state.must_meet &= met.is_err();
                    met.map(|()| Stage::Between { has_met: true })
                }
                Stage::Moving(running, columns) => {
                    let moved = running.advance(core, &group.place, &mut state.blocks)?;
                    let place = running.buffer(&group.place, Buffer::Output);
                    let (columns, schedule) = (columns.clone(), Arc::clone(&running.schedule));
                    state.must_meet =
                        !self.collective.synchronizes(group.place.members.len(), schedule.elements);
                    self.done = columns.end;
                    moved
                        .and_then(|()| self.data.copy_out(&group.place.region, place, &columns))
                        .map(|()| Stage::Between { has_met: false })
                }
                Stage::Over => return Some(Err(Error::Closed)),
            };
            match moved {
                Ok(Stage::Over) => {
                    self.stage = Stage::Over;
                    state.is_busy = false;
                    return Some(Ok(()));
                }
                Ok(stage) => self.stage = stage,
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Take the group, if it is free and whole, and decide how large a piece is.
    fn claim(&mut self, state: &mut State) -> Result<Stage, Error> {
        if let Some(broken) = state.broken {
            return Err(broken.error(false));
        }
        if state.is_busy {
            return Err(Error::Invalid(
                "another collective of the group has not ended; hint: one group per thread",
            ));
        }
        let element_bytes = self.arithmetic.element.bytes();
        if self.data.row_bytes > 0 {
            let row = self.data.row_bytes / element_bytes;
            let columns = state.schedules.columns(self.collective, self.whole_rows, row, element_bytes)?;
            self.piece = columns * element_bytes;
        }
        if !state.blocks.are_for(self.arithmetic.operation, self.arithmetic.element) {
            state.blocks = Blocks::new(self.arithmetic.operation, self.arithmetic.element);
        }
        state.is_busy = true;
        Ok(Stage::Between { has_met: false })
    }

    /// The next run.
    fn next(
        &mut self,
        core: &mut Core,
        group: &Inner,
        state: &mut State,
        has_met: bool,
    ) -> Result<Stage, Error> {
        let is_barrier = self.collective == Collective::Barrier;
        let is_over = if is_barrier { has_met } else { self.done == self.data.row_bytes };
        if is_over {
            return Ok(Stage::Over);
        }
        let patient_until = core.member()?.now() + JOIN_PATIENCE_NS;
        if is_barrier || state.must_meet {
            let size = Size { collective: Collective::Barrier, elements: 0, element_bytes: 1 };
            let schedule = state.schedules.find(size)?;
            state.barriers = state.barriers.wrapping_add(1);
            let run = (Set::Barrier, state.barriers, 0);
            return Ok(Stage::Meeting(Running::new(
                &group.place,
                schedule,
                run,
                super::MOVED,
                patient_until,
            )));
        }
        let columns = self.done..self.data.row_bytes.min(self.done + self.piece);
        let element_bytes = self.arithmetic.element.bytes();
        let elements = self.whole_rows * columns.len() / element_bytes;
        let size = Size { collective: self.collective, elements, element_bytes };
        let schedule = state.schedules.find(size)?;
        state.runs = state.runs.wrapping_add(1);
        let run = (Set::of_run(state.runs), state.runs, self.kind(elements));
        let running = Running::new(&group.place, schedule, run, self.arithmetic, patient_until);
        let place = running.buffer(&group.place, Buffer::Input);
        self.data.copy_in(&group.place.region, place, &columns)?;
        Ok(Stage::Moving(running, columns))
    }

    /// A number that members which do different things are unlikely to share (FNV-1a).
    fn kind(&self, elements: usize) -> u32 {
        let Arithmetic { operation, element } = self.arithmetic;
        let root = self.collective.root().map_or(0, |root| root as u64 + 1);
        let names = [self.collective.name(), operation.name(), element.name()];
        let bytes = names.into_iter().flat_map(str::bytes);
        let bytes = bytes.chain(root.to_le_bytes()).chain((elements as u64).to_le_bytes());
        bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }

    fn running(&mut self) -> Option<&mut Running> {
        match &mut self.stage {
            Stage::Meeting(running) | Stage::Moving(running, _) => Some(running),
            _ => None,
        }
    }
}

impl<'a> GroupRequest<'a> {
    pub(super) fn new(group: &Arc<Inner>, call: Result<Call<'a>, Error>) -> Self {
        Self { group: Arc::clone(group), call: call.map_err(Some) }
    }

    /// Block until this member's part is over and all it has sent is visible. The calling thread drives the node
    /// meanwhile.
    ///
    /// # Errors
    /// [`Error::PeerLost`] if any member is lost, [`Error::GroupBroken`] if one gave up or calls something else,
    /// [`Error::Invalid`] if the arrays do not fit the group, [`Error::Refused`] if a member has not joined after ten
    /// seconds, [`Error::Closed`].
    pub fn wait(mut self) -> Result<(), Error> {
        let engine = Arc::clone(self.group.place.region.engine());
        let this = RefCell::new(&mut self);
        let ended = engine.wait(
            Instant::NEVER,
            |core| this.borrow_mut().look(core),
            |core, waker| this.borrow_mut().register(core, waker),
        );
        ended.unwrap_or(Err(Error::Closed))
    }

    fn look(&mut self, core: &mut Core) -> Option<Result<(), Error>> {
        let call = match &mut self.call {
            Ok(call) => call,
            Err(error) => return Some(Err(error.take().unwrap_or(Error::Closed))),
        };
        let result = call.advance(core, &self.group)?;
        if let Err(error) = &result {
            self.give_up(core, error);
        }
        Some(result)
    }

    /// The call has failed, or nobody wants it any more.
    fn give_up(&mut self, core: &mut Core, error: &Error) {
        let Ok(call) = &mut self.call else { return };
        if call.has_begun() {
            if let Some(running) = call.running() {
                running.abandon(core);
            }
            call.stage = Stage::Over;
            self.group.break_off(core, error);
        }
    }

    fn register(&mut self, core: &mut Core, waker: &Waker) {
        self.group.register(core, waker);
        if let Some(running) = self.call.as_mut().ok().and_then(Call::running) {
            running.register(core, waker);
        }
    }

    fn must_ask_again(&mut self) -> bool {
        let running = self.call.as_mut().ok().and_then(Call::running);
        running.is_some_and(|running| running.must_ask_again())
    }
}

impl GroupRequest<'static> {
    /// Begin, and leave the completion to `queue`, marked with `context`. The collective goes on by itself, driven by whoever
    /// drives the node, the background thread included. For calls that borrow no array: a barrier, and
    /// [`super::Group::on_slices`].
    ///
    /// # Errors
    /// What is known at once; all else is the completion's.
    pub fn submit(mut self, queue: &Arc<Queue>, context: u64) -> Result<OperationId, Error> {
        if let Err(error) = &mut self.call {
            return Err(error.take().unwrap_or(Error::Closed));
        }
        let engine = Arc::clone(self.group.place.region.engine());
        let mut held = engine.hold();
        let core = held.core();
        core.member()?;
        let sink = Sink::Queue(Arc::clone(queue), context);
        let operation = core.table.open(Entry { sink, peer: None, uses: None, matched: None });
        core.begin(operation, Box::new(self));
        Ok(operation)
    }
}

impl Activity for GroupRequest<'static> {
    fn advance(&mut self, core: &mut Core) -> Option<Result<(), Error>> {
        self.look(core)
    }
}

impl Future for GroupRequest<'_> {
    type Output = Result<(), Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let engine = Arc::clone(this.group.place.region.engine());
        let mut held = engine.hold();
        let core = held.core();
        if let Some(result) = core.visit_for(|core| this.look(core)) {
            return Poll::Ready(result);
        }
        this.register(core, context.waker());
        drop(held);
        if this.must_ask_again() {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl Drop for GroupRequest<'_> {
    fn drop(&mut self) {
        if self.call.as_ref().is_ok_and(Call::has_begun) {
            let engine = Arc::clone(self.group.place.region.engine());
            let mut held = engine.hold();
            let me = self.group.me();
            self.give_up(held.core(), &Error::GroupBroken { peer: me });
        }
    }
}
