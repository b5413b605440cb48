//! An operation that has begun, as a handle: test it, wait for it, await it, cancel it.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rackloom_protocol::{Instant, OperationId};

use super::completion::Ended;
use super::error::{Error, Invalid};
use super::request::{Outcome, Request};
use crate::fabric::engine::core::Core;
use crate::fabric::engine::node_engine::Engine;
use crate::fabric::engine::table::Sink;

/// Operation in progress.
///
/// `Send` and `Sync`. As a future it works on any executor. If it is dropped, an operation to a peer continues without a completion, and
/// its memory is kept until it ends, and a collective continues too. A receive or a wait on a word is cancelled.
///
/// ```
/// # use rackloom::fabric::{Fabric, Pending, Plan, RegionOptions, wait_all};
/// # let fabric = Fabric::local(&Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "example")?)?;
/// # let [initiator, target] = fabric.nodes() else { unreachable!() };
/// let table = target.allocate(RegionOptions::new(1, 2), 64)?;
/// let mut first = initiator.store(table.address(0), &[1; 8]).start()?;
/// let rest = [8, 16].map(|at| initiator.store(table.address(at), &[2; 8]).start());
/// // Other work. `test` polls the node once and never blocks.
/// let is_over = first.test();
/// # let _ = is_over;
/// first.wait()?;
/// wait_all(rest.into_iter().collect::<Result<Vec<_>, _>>()?)?;
/// assert_eq!(table.get::<u8>(16)?, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "the completion of the operation is lost if its handle is dropped"]
#[derive(Debug)]
pub struct Pending<T> {
    engine: Arc<Engine>,
    operation: OperationId,
    state: State,
    kind: Kind,
    outcome: PhantomData<fn() -> T>,
}

/// Kind of operation, as far as its end without a result is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The operation ends by itself, and cannot be cancelled.
    Transfer,
    /// The operation waits for other nodes, and could take a message or a word from later operations. It ends with its handle.
    Wait,
    /// The operation is a collective. It continues without its handle.
    Collective,
}

#[derive(Debug)]
enum State {
    InFlight,
    Ended(Result<Ended, Error>),
    Taken,
}

impl<T: Outcome> Request<'_, T> {
    /// Begins the operation now, and returns its handle. Does not block, except for the node's lock. The bytes of a store are copied.
    ///
    /// # Errors
    /// [`Error::Busy`] if the queue towards the peer is full: poll and try again with a new request. Other errors that are known at once.
    pub fn start(self) -> Result<Pending<T>, Error> {
        let engine = Arc::clone(self.engine());
        let order = self.into_order(&engine)?;
        let kind = if order.waits_for_others() { Kind::Wait } else { Kind::Transfer };
        let mut held = engine.hold();
        let core = held.core();
        let (operation, state) = if order.is_posted {
            (core.submit(order.command, Sink::Posted)?, State::Ended(Ok(Ended::default())))
        } else {
            (core.submit(order.command, Sink::Request(None))?, State::InFlight)
        };
        core.visit_to_send();
        drop(held);
        Ok(Pending { engine, operation, state, kind, outcome: PhantomData })
    }
}

impl Pending<()> {
    /// Returns the handle of a collective that advances by itself.
    pub(in crate::fabric) const fn of_activity(engine: Arc<Engine>, operation: OperationId) -> Self {
        let (state, kind) = (State::InFlight, Kind::Collective);
        Self { engine, operation, state, kind, outcome: PhantomData }
    }
}

impl<T: Outcome> Pending<T> {
    /// Returns the identifier of the operation.
    #[must_use]
    pub const fn id(&self) -> OperationId {
        self.operation
    }

    /// Polls the node once, and returns `true` if the operation has ended. Never blocks. [`Pending::wait`] then returns at once.
    pub fn test(&mut self) -> bool {
        let engine = Arc::clone(&self.engine);
        engine.hold().core().visit_for(|core| self.look(core).then_some(())).is_some()
    }

    /// Blocks until the operation has ended. The calling thread drives the node meanwhile.
    ///
    /// # Errors
    /// Any [`Error`] except [`Error::Busy`].
    pub fn wait(mut self) -> Result<T, Error> {
        self.wait_until(Instant::NEVER);
        self.take().unwrap_or(Err(Error::Closed))
    }

    /// Blocks until the operation has ended, at most for `timeout`. Returns `None` at the deadline: the operation continues, and the handle can be
    /// used again.
    ///
    /// # Errors
    /// Any [`Error`] except [`Error::Busy`]. [`Error::Closed`] if the result was returned before.
    pub fn wait_for(&mut self, timeout: Duration) -> Option<Result<T, Error>> {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        self.wait_until(self.engine.clock.now() + timeout_ns);
        self.take()
    }

    /// Cancels a receive, a wait on a word or a collective. Its result is then [`Error::Failed`] with [`super::OperationError::Cancelled`], unless it has
    /// ended before. A collective that is cancelled breaks its group, on all members. Other operations cannot be cancelled.
    ///
    /// # Errors
    /// [`Error::Invalid`] for other operations.
    pub fn cancel(&mut self) -> Result<(), Error> {
        if self.kind == Kind::Transfer {
            return Err(Error::Invalid(Invalid::NotCancellable));
        }
        let engine = Arc::clone(&self.engine);
        let mut held = engine.hold();
        let core = held.core();
        if self.look(core) {
            return Ok(());
        }
        if self.kind == Kind::Collective {
            core.cancel_activity(self.operation);
        } else {
            core.cancel(self.operation);
            core.poll();
        }
        Ok(())
    }

    fn wait_until(&mut self, until: Instant) {
        let engine = Arc::clone(&self.engine);
        let operation = self.operation;
        engine.wait(
            until,
            |core| self.look(core).then_some(()),
            |core, waker| core.table.set_waker(operation, waker),
        );
    }

    /// Returns `true` if the operation has ended, and keeps its result.
    fn look(&mut self, core: &mut Core) -> bool {
        if matches!(self.state, State::InFlight) {
            let Some(result) = core.table.take(self.operation) else { return false };
            self.state = State::Ended(result);
        }
        true
    }

    /// Takes the result. `None` while the operation is in flight.
    fn take(&mut self) -> Option<Result<T, Error>> {
        if matches!(self.state, State::InFlight) {
            return None;
        }
        match std::mem::replace(&mut self.state, State::Taken) {
            State::Ended(result) => Some(result.map(T::of)),
            State::InFlight | State::Taken => Some(Err(Error::Closed)),
        }
    }
}

impl<T: Outcome> Future for Pending<T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let engine = Arc::clone(&this.engine);
        let mut held = engine.hold_for_task();
        let core = held.core();
        if core.visit_for(|core| this.look(core).then_some(())).is_none() {
            core.table.set_waker(this.operation, context.waker());
            held.delegate();
            return Poll::Pending;
        }
        drop(held);
        Poll::Ready(this.take().unwrap_or(Err(Error::Closed)))
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        if !matches!(self.state, State::InFlight) {
            return;
        }
        self.engine.hold().core().abandon(self.operation, self.kind == Kind::Wait);
    }
}

/// Blocks until one of the operations has ended, and returns its index. All of them must be operations of one node. The handle of that
/// operation then returns its result at once.
///
/// # Errors
/// [`Error::Invalid`] for an empty list, or for operations of several nodes. [`Error::Closed`] if the node has left.
pub fn wait_any<T: Outcome>(pending: &mut [Pending<T>]) -> Result<usize, Error> {
    let engine = common_engine(pending)?;
    let cell = std::cell::RefCell::new(pending);
    let ended = engine.wait(
        Instant::NEVER,
        |core| cell.borrow_mut().iter_mut().position(|one| one.look(core)),
        |core, waker| cell.borrow().iter().for_each(|one| core.table.set_waker(one.operation, waker)),
    );
    ended.ok_or(Error::Closed)
}

/// Blocks until all operations have ended, and returns their results in order. They may be operations of several nodes.
///
/// # Errors
/// The error of the first operation in the list that failed. The others have ended as well.
pub fn wait_all<T: Outcome>(pending: Vec<Pending<T>>) -> Result<Vec<T>, Error> {
    let ended: Vec<_> = pending.into_iter().map(Pending::wait).collect();
    ended.into_iter().collect()
}

fn common_engine<T>(pending: &[Pending<T>]) -> Result<Arc<Engine>, Error> {
    let first = pending.first().ok_or(Error::Invalid(Invalid::NothingToAwait))?;
    let is_other = |one: &Pending<T>| !Arc::ptr_eq(&one.engine, &first.engine);
    if pending.iter().any(is_other) {
        return Err(Error::Invalid(Invalid::SeveralNodes));
    }
    Ok(Arc::clone(&first.engine))
}
