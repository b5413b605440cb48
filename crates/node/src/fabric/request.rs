//! One request, three ways to end it: [`Request::wait`], `.await`, [`Request::submit`].
//!
//! A request does nothing until it is ended in one of the three ways ([`Request::wait_for`] is the first with a bound). All of
//! them go through [`Core::submit`], which gives the core one command.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rackloom_protocol::{Command, Completion as Level, Instant, NodeId, OperationError, OperationId};

use super::core::Core;
use super::engine::Engine;
use super::error::Error;
use super::held::Held;
use super::order::Order;
use super::queue::Queue;
use super::table::{Ended, Sink};

mod sealed {
    pub trait Sealed {}
}

/// What a request yields when it ends well: nothing, a word, or a [`Received`] message. Sealed.
///
/// Outcomes are `Send` and `Sync`: plain data.
pub trait Outcome: sealed::Sealed {
    #[doc(hidden)]
    fn of(ended: Ended) -> Self;
}

impl sealed::Sealed for () {}
impl Outcome for () {
    fn of(_: Ended) -> Self {}
}

impl sealed::Sealed for u64 {}
impl Outcome for u64 {
    fn of(ended: Ended) -> Self {
        ended.value
    }
}

/// A message that was received.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Received {
    /// Who sent it.
    pub source: NodeId,
    /// Its tag.
    pub tag: u64,
    /// Its length in bytes.
    pub length: u64,
}

impl sealed::Sealed for Received {}
impl Outcome for Received {
    fn of(ended: Ended) -> Self {
        let (source, tag) = ended.matched.unwrap_or_default();
        Self { source, tag, length: ended.value }
    }
}

/// An operation that has not begun. `'a` is the life of the bytes that a store carries; others borrow nothing.
///
/// `Send` and `Sync`; as a future it needs no particular executor. Dropping a request that has begun does not stop what goes
/// to a peer: it goes on, its memory stays in place until it ends, and nobody is told. A receive and a wait on a word end with
/// the request, so that they take nothing from those that come later; a message that a receive had met before is lost with
/// it.
#[must_use = "a request does nothing until it is waited for, awaited or submitted"]
#[derive(Debug)]
pub struct Request<'a, T> {
    engine: Arc<Engine>,
    order: Result<Order<'a>, Option<Error>>,
    begun: Option<OperationId>,
    outcome: PhantomData<fn() -> T>,
}

impl<'a, T: Outcome> Request<'a, T> {
    pub(super) fn new(engine: &Arc<Engine>, order: Result<Order<'a>, Error>) -> Self {
        let (engine, order) = (Arc::clone(engine), order.map_err(Some));
        Self { engine, order, begun: None, outcome: PhantomData }
    }

    /// Block until the operation has ended. The calling thread drives the node meanwhile. If the queue towards the peer
    /// is full, this waits for room.
    ///
    /// # Errors
    /// Any of [`Error`] except [`Error::Busy`].
    pub fn wait(mut self) -> Result<T, Error> {
        if let Some(result) = self.post() {
            return result.map(T::of);
        }
        let engine = Arc::clone(&self.engine);
        self.wait_in(&engine, engine.hold())
    }

    /// The same, at most for `patience`. If it runs out, a receive or a wait on a word is over and has taken nothing; what
    /// goes to a peer goes on, its memory stays in place until it ends, and nobody is told.
    ///
    /// # Errors
    /// Any of [`Error`] except [`Error::Busy`]; [`Error::TimedOut`] says whether the operation goes on.
    pub fn wait_for(mut self, patience: Duration) -> Result<T, Error> {
        if let Some(result) = self.post() {
            return result.map(T::of);
        }
        let engine = Arc::clone(&self.engine);
        let patience_ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        let until = engine.clock.now() + patience_ns;
        let ended = self.end_in(&engine, engine.hold(), until);
        ended.unwrap_or_else(|| self.give_up(patience_ns / 1_000_000)).map(T::of)
    }

    /// As [`Request::wait`] for somebody who has the node.
    pub(super) fn wait_in(mut self, engine: &Engine, held: Held<'_>) -> Result<T, Error> {
        if !std::ptr::eq(&*self.engine, engine) {
            // The lock first: a request lets go of an operation under it, if it has one.
            drop(held);
            return Err(Error::Invalid("the request belongs to another node"));
        }
        self.end_in(engine, held, Instant::NEVER).unwrap_or(Err(Error::Closed)).map(T::of)
    }

    /// `None` if `until` has come first, or if the node has left.
    fn end_in(&mut self, engine: &Engine, held: Held<'_>, until: Instant) -> Option<Result<Ended, Error>> {
        let this = std::cell::RefCell::new(self);
        engine.wait_from(
            held,
            until,
            |core| this.borrow_mut().look(core),
            |core, waker| this.borrow().register(core, waker),
        )
    }

    /// Patience has run out.
    fn give_up(&mut self, waited_ms: u64) -> Result<Ended, Error> {
        let peer = self.order.as_ref().ok().and_then(|order| order.peer());
        let timed_out = |goes_on| Err(Error::TimedOut { peer, waited_ms, goes_on });
        let engine = Arc::clone(&self.engine);
        let mut held = engine.hold();
        let core = held.core();
        core.member()?;
        let Some(operation) = self.begun else { return timed_out(false) };
        if self.ends_when_dropped() {
            core.cancel(operation);
            core.turn();
        }
        match self.look_again(core) {
            Some(Err(Error::Failed(OperationError::Cancelled))) => timed_out(false),
            Some(result) => result,
            None => timed_out(true),
        }
    }

    /// The same operation, posted: it ends when the core has accepted it, and yields nothing. A failure shows in the next
    /// [`super::Node::flush`], which also says when it is over. Until then memory that it reads must stay as it is, and memory
    /// that it writes into is not to be read; the bytes of a store have been copied.
    ///
    /// For whatever goes to a peer: stores, puts with and without a signal, gets, loads, sends, and atomics whose old value nobody
    /// wants. It is what others call an operation without completion, or an implicit one.
    ///
    /// ```
    /// # use rackloom::fabric::{Fabric, Plan, RegionOptions};
    /// # let fabric = Fabric::local(&Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "example")?)?;
    /// # let [near, far] = fabric.nodes() else { unreachable!() };
    /// let rows = near.register(RegionOptions::new(1, 1), vec![7_u64; 512])?;
    /// let table = far.allocate(RegionOptions::new(1, 2), 8192)?;
    /// for half in [0, 4096] {
    ///     near.put(&rows.slice(..), table.address(half)).posted().wait()?;
    /// }
    /// near.flush(Some(far.id())).wait()?; // both are visible, or this says what went wrong
    /// assert_eq!(table.get::<u64>(8184)?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When it ends: those of the operation that are known at once. [`Error::Invalid`] for what waits for others: a
    /// receive, a wait on a word, a flush.
    pub fn posted(mut self) -> Request<'a, ()> {
        let order = self.take_order().and_then(|order| order.posted().map_err(Some));
        Request { engine: Arc::clone(&self.engine), order, begun: None, outcome: PhantomData }
    }

    /// Begin, and leave the completion to `queue`, marked with `context`. Never blocks for long: it only waits for the
    /// node's lock. A posted operation completes at once.
    ///
    /// # Errors
    /// [`Error::Busy`] if the queue towards the peer is full: poll and try a new request. Else what is known at once.
    pub fn submit(mut self, queue: &Arc<Queue>, context: u64) -> Result<OperationId, Error> {
        let order = self.take_order().map_err(|error| error.unwrap_or(Error::Closed))?;
        let mut held = self.engine.hold();
        let core = held.core();
        let result = core.give(&order, Sink::Queue(Arc::clone(queue), context));
        if result.is_ok() {
            core.visit_to_send();
        }
        result
    }

    /// What it asks for, if it is a request of this engine's that has not begun.
    pub(super) fn into_order(mut self, engine: &Arc<Engine>) -> Result<Order<'a>, Error> {
        if !Arc::ptr_eq(&self.engine, engine) {
            return Err(Error::Invalid("the request belongs to another node"));
        }
        self.take_order().map_err(|error| error.unwrap_or(Error::Closed))
    }

    fn take_order(&mut self) -> Result<Order<'a>, Option<Error>> {
        if self.begun.is_some() {
            return Err(Some(Error::Invalid("the request has begun; hint: wait for it, or await it")));
        }
        std::mem::replace(&mut self.order, Err(None))
    }

    /// What is posted is over as soon as the core has it. `None` if it is something else, or if there is no room.
    fn post(&mut self) -> Option<Result<Ended, Error>> {
        let order = self.order.as_ref().ok()?;
        let is_posted =
            order.is_posted || matches!(order.command, Command::Store { completion: Level::Accepted, .. });
        if !is_posted {
            return None;
        }
        match self.engine.hold().core().post(order) {
            Ok(()) => Some(Ok(Ended::default())),
            Err(Error::Busy { .. }) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// Begin if it has not begun, and take the result if there is one.
    fn look(&mut self, core: &mut Core) -> Option<Result<Ended, Error>> {
        if let Some(operation) = self.begun {
            let result = core.table.take(operation)?;
            self.begun = None;
            return Some(result);
        }
        let order = match &mut self.order {
            Ok(order) => order,
            Err(error) => return Some(Err(error.take().unwrap_or(Error::Closed))),
        };
        let sink = if order.is_posted { Sink::Posted } else { Sink::Asker(None) };
        match core.submit(order.command, sink) {
            Ok(_) if order.is_posted => Some(Ok(Ended::default())),
            Ok(operation) => {
                self.begun = Some(operation);
                self.look_again(core)
            }
            Err(Error::Busy { .. }) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// A command may have ended while it was given.
    fn look_again(&mut self, core: &mut Core) -> Option<Result<Ended, Error>> {
        let result = core.table.take(self.begun?)?;
        self.begun = None;
        Some(result)
    }

    fn register(&self, core: &mut Core, waker: &Waker) {
        if let Some(operation) = self.begun {
            core.table.set_waker(operation, waker);
        }
    }
}

impl<T: Outcome> Future for Request<'_, T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Some(result) = this.post() {
            return Poll::Ready(result.map(T::of));
        }
        let engine = Arc::clone(&this.engine);
        let mut held = engine.hold_for_task();
        let core = held.core();
        if let Some(result) = core.visit_for(|core| this.look(core)) {
            return Poll::Ready(result.map(T::of));
        }
        if this.begun.is_none() {
            core.await_room(context.waker());
        }
        this.register(core, context.waker());
        held.entrust();
        Poll::Pending
    }
}

impl<T> Request<'_, T> {
    /// Whether it waits for what others do, and would take it from those that come later.
    fn ends_when_dropped(&self) -> bool {
        let order = self.order.as_ref();
        order.is_ok_and(|Order { command, .. }| {
            matches!(command, Command::Receive { .. } | Command::WaitUntil { .. })
        })
    }
}

impl<T> Drop for Request<'_, T> {
    fn drop(&mut self) {
        let Some(operation) = self.begun else { return };
        let mut held = self.engine.hold();
        let core = held.core();
        core.table.abandon(operation);
        if self.ends_when_dropped() {
            core.cancel(operation);
            // Its end is heard, and its region free.
            core.turn();
        }
    }
}
