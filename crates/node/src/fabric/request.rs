//! One operation that has not begun, and the ways to complete it: [`Request::wait`], `.await`, [`Request::submit`].
//!
//! A request does nothing until one of these calls ([`Request::wait_for`] is `wait` with a deadline). All of them go through
//! [`Core::submit`], which gives the core one command.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rackloom_protocol::{Command, Completion as Level, Instant, NodeId, OperationError, OperationId};

use super::completion::Ended;
use super::error::{Error, Invalid};
use super::queue::Queue;
use crate::fabric::engine::core::Core;
use crate::fabric::engine::held::Held;
use crate::fabric::engine::node_engine::Engine;
use crate::fabric::engine::order::Order;
use crate::fabric::engine::table::Sink;

mod sealed {
    pub trait Sealed {}
}

/// Result of a request that completes successfully: nothing, a word, a [`Received`] message, or an [`Ended`] for all of them. Sealed.
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

impl sealed::Sealed for Ended {}
impl Outcome for Ended {
    fn of(ended: Ended) -> Self {
        ended
    }
}

macro_rules! words {
    ($($word:ty),+) => { $(
        impl sealed::Sealed for $word {}
        impl Outcome for $word {
            fn of(ended: Ended) -> Self {
                ended.value as Self
            }
        }
    )+ };
}

words!(u32, i32, u64, i64);

/// Description of a received message. The bytes are in the slice of the receive.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Received {
    /// Sender.
    pub source: NodeId,
    /// Tag.
    pub tag: u64,
    /// Length in bytes.
    pub length: u64,
}

impl sealed::Sealed for Received {}
impl Outcome for Received {
    fn of(ended: Ended) -> Self {
        let (source, tag) = ended.matched.unwrap_or_default();
        Self { source, tag, length: ended.value }
    }
}

/// Operation that has not begun. `'a` is the lifetime of the bytes of a store. Other requests borrow nothing.
///
/// `Send` and `Sync`. As a future it works on any executor. If a request is dropped after it has begun, an operation to a peer continues
/// without a completion, and its memory is kept until it ends. A receive or a wait on a word is cancelled, so that it takes nothing from
/// later ones; a message that a receive has matched already is lost.
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

    /// Blocks until the operation has ended. The calling thread drives the node meanwhile. If the queue towards the peer is full, the call
    /// waits for space.
    ///
    /// # Errors
    /// Any [`Error`] except [`Error::Busy`].
    pub fn wait(mut self) -> Result<T, Error> {
        if let Some(result) = self.post() {
            return result.map(T::of);
        }
        let engine = Arc::clone(&self.engine);
        self.wait_in(&engine, engine.hold())
    }

    /// Blocks until the operation has ended, at most for `timeout`. At the deadline, a receive or a wait on a word is cancelled and has
    /// taken nothing. An operation to a peer continues without a completion, and its memory is kept until it ends.
    ///
    /// # Errors
    /// Any [`Error`] except [`Error::Busy`]; [`Error::TimedOut`] contains whether the operation continues.
    pub fn wait_for(mut self, timeout: Duration) -> Result<T, Error> {
        if let Some(result) = self.post() {
            return result.map(T::of);
        }
        let engine = Arc::clone(&self.engine);
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let until = engine.clock.now() + timeout_ns;
        let ended = self.end_in(&engine, engine.hold(), until);
        ended.unwrap_or_else(|| self.give_up(timeout_ns / 1_000_000)).map(T::of)
    }

    /// Blocks like [`Request::wait`], for a caller that holds the engine's lock.
    pub(super) fn wait_in(mut self, engine: &Engine, held: Held<'_>) -> Result<T, Error> {
        if !std::ptr::eq(&*self.engine, engine) {
            // The lock is released first, because dropping a request takes the lock of its node.
            drop(held);
            return Err(Error::Invalid(Invalid::OtherNode));
        }
        self.end_in(engine, held, Instant::NEVER).unwrap_or(Err(Error::Closed)).map(T::of)
    }

    /// Returns `None` if `until` passed first, or if the node has left.
    fn end_in(&mut self, engine: &Engine, held: Held<'_>, until: Instant) -> Option<Result<Ended, Error>> {
        let this = std::cell::RefCell::new(self);
        engine.wait_from(
            held,
            until,
            |core| this.borrow_mut().look(core),
            |core, waker| this.borrow().register(core, waker),
        )
    }

    /// Ends the request at its deadline.
    fn give_up(&mut self, waited_ms: u64) -> Result<Ended, Error> {
        let peer = self.order.as_ref().ok().and_then(|order| order.peer());
        let timed_out = |continues| Err(Error::TimedOut { peer, waited_ms, continues });
        let engine = Arc::clone(&self.engine);
        let mut held = engine.hold();
        let core = held.core();
        core.member()?;
        let Some(operation) = self.begun else { return timed_out(false) };
        if self.ends_when_dropped() {
            core.cancel(operation);
            core.poll();
        }
        match self.look_again(core) {
            Some(Err(Error::Failed(OperationError::Cancelled))) => timed_out(false),
            Some(result) => result,
            None => timed_out(true),
        }
    }

    /// Returns a request for the same operation, posted: it completes when the core has accepted the operation, and returns nothing.
    ///
    /// The next [`super::Node::flush`] reports a failure, and completes after the operation. Until then, memory that the operation reads
    /// must not change, and memory that it writes must not be read. The bytes of a store are copied at once.
    ///
    /// Operations to a peer can be posted: stores, puts with and without a signal, gets, loads, sends, and atomics whose old value is not
    /// needed. Other libraries call this an operation without completion, or an implicit one.
    ///
    /// ```
    /// # use rackloom::fabric::{Fabric, Plan, RegionOptions};
    /// # let fabric = Fabric::local(&Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "example")?)?;
    /// # let [initiator, target] = fabric.nodes() else { unreachable!() };
    /// let rows = initiator.register(RegionOptions::new(1, 1), vec![7_u64; 512])?;
    /// let table = target.allocate(RegionOptions::new(1, 2), 8192)?;
    /// for half in [0, 4096] {
    ///     initiator.put(&rows.slice(..), table.address(half)).posted().wait()?;
    /// }
    ///     initiator.flush(Some(target.id())).wait()?; // both are visible, or the error names the cause
    /// assert_eq!(table.get::<u64>(8184)?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// On completion: the errors of the operation that are known at once. [`Error::Invalid`] for a request that waits for other nodes: a
    /// receive, a wait on a word, a flush.
    pub fn posted(mut self) -> Request<'a, ()> {
        let order = self.take_order().and_then(|order| order.posted().map_err(Some));
        Request { engine: Arc::clone(&self.engine), order, begun: None, outcome: PhantomData }
    }

    /// Returns a request for the same operation whose result is an [`Ended`], so that operations of several kinds can be in one list.
    ///
    /// ```
    /// # use rackloom::fabric::{Fabric, Plan, RegionOptions, wait_any};
    /// # let fabric = Fabric::local(&Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "example")?)?;
    /// # let [initiator, target] = fabric.nodes() else { unreachable!() };
    /// let table = target.allocate(RegionOptions::new(1, 2), 64)?;
    /// let store = initiator.store(table.address(0), &[1; 8]).untyped().start()?;
    /// let add = initiator.fetch_add::<u64>(table.address(8), 5).untyped().start()?;
    /// let mut pending = vec![store, add];
    /// let first = wait_any(&mut pending)?;
    /// assert_eq!(pending.swap_remove(first).wait()?.value, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// On completion: those of the request.
    pub fn untyped(mut self) -> Request<'a, Ended> {
        let order = self.take_order();
        Request { engine: Arc::clone(&self.engine), order, begun: None, outcome: PhantomData }
    }

    /// Begins the operation. Its completion, with `context`, arrives in `queue`. Does not block, except for the node's lock. A posted
    /// operation completes at once.
    ///
    /// # Errors
    /// [`Error::Busy`] if the queue towards the peer is full: poll and try again with a new request. Other errors that are known at once.
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

    pub(super) const fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Returns the order, if it is a request of this engine that has not begun.
    pub(super) fn into_order(mut self, engine: &Arc<Engine>) -> Result<Order<'a>, Error> {
        if !Arc::ptr_eq(&self.engine, engine) {
            return Err(Error::Invalid(Invalid::OtherNode));
        }
        self.take_order().map_err(|error| error.unwrap_or(Error::Closed))
    }

    fn take_order(&mut self) -> Result<Order<'a>, Option<Error>> {
        if self.begun.is_some() {
            return Err(Some(Error::Invalid(Invalid::HasBegun)));
        }
        std::mem::replace(&mut self.order, Err(None))
    }

    /// Posts the operation, which ends when the core accepts it. `None` if it is not posted, or if there is no space.
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

    /// Begins the operation if it has not begun, and takes the result if there is one.
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
        let sink = if order.is_posted { Sink::Posted } else { Sink::Request(None) };
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

    /// Takes the result of a command that may have ended while it was submitted.
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
            core.await_space(context.waker());
        }
        this.register(core, context.waker());
        held.delegate();
        Poll::Pending
    }
}

impl<T> Request<'_, T> {
    /// Returns `true` if the operation waits for other nodes, and could take a message or a word from later operations.
    fn ends_when_dropped(&self) -> bool {
        self.order.as_ref().is_ok_and(Order::waits_for_others)
    }
}

impl<T> Drop for Request<'_, T> {
    fn drop(&mut self) {
        let Some(operation) = self.begun else { return };
        self.engine.hold().core().abandon(operation, self.ends_when_dropped());
    }
}
