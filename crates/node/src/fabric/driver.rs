//! A node that one thread drives in a loop: no lock, no shared handle, completions in batches.
//!
//! Any thread may end a request in several ways. That costs the node's lock, a reference count and the lock of a queue. A thread that issues
//! operations in a loop and polls in between needs none of these, and uses a [`Driver`]. It gives operations to the core like all requests
//! ([`crate::fabric::engine::order`]), so they behave the same. The cost differs, and so does the time at which an operation is sent: at once if no other
//! operation to that peer is in flight, else with the next poll or when enough operations wait.
//!
//! Other threads may use the node meanwhile. The background thread polls it when the driver has not done so for some time, 2 ms at most,
//! so that peers receive answers and heartbeats ([`crate::biased_lock`]).

use std::ops::Range;
use std::time::Duration;

use rackloom_protocol::{Command, LocalRange, NodeId, OperationId, RemoteAddress};

use super::completion::Completion;
use super::error::{Error, Invalid};
use super::node::Node;
use super::request::{Outcome, Request};
use crate::biased_lock::BiasToken;
use crate::fabric::engine::core::{Core, Handler};
use crate::fabric::engine::held::Held;
use crate::fabric::engine::node_engine::Engine;
use crate::fabric::engine::order::{NAMELESS, Order, Store};
use crate::fabric::engine::table::Sink;
use crate::fabric::memory::region::Region;

/// Number of accepted operations that wait for one frame while others are in flight.
const BATCHED_OPERATIONS: usize = 32;
/// Number of accepted long transfers that wait. It is small, so that the target copies the first ones while the initiator copies the next.
const BATCHED_TRANSFERS: usize = 8;

/// Number of stores of a list that the core receives before it is checked if they are to be sent.
const AT_A_TIME: usize = 32;

/// Exclusive use of a node by one thread that issues and polls in a loop.
///
/// Dropping the driver releases the node at once: operations in flight continue, without a completion. If the driver exists but does not
/// poll, the background thread serves peers after 0.1 to 2 ms, the later the longer the driver has polled before.
///
/// `Send` and `Sync`: methods that change the node take `&mut self`, so one thread at a time uses the driver, and it may move to another
/// thread. A node has at most one driver. Other handles of the node still work, in this thread and in others; each call costs a few
/// microseconds more.
///
/// ```
/// # use rackloom::fabric::{Fabric, RegionOptions};
/// # let plan = rackloom::fabric::Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "example")?;
/// # let fabric = Fabric::local(&plan)?;
/// # let [initiator, target] = fabric.nodes() else { unreachable!() };
/// let region = target.allocate(RegionOptions::new(1, 0x5eed), 4096)?;
/// let mut driver = initiator.drive()?;
/// for line in 0..64 {
///     driver.store(region.address(line * 64), &[line as u8; 64], line)?;
/// }
/// let (mut ended, mut completions) = (0, Vec::new());
/// while ended < 64 {
///     ended += driver.poll(&mut completions);
///     for completion in completions.drain(..) {
///         completion.result?; // `completion.context` is the number of the line
///     }
/// }
/// assert_eq!(region.get::<u8>(63 * 64)?, 63);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Driver {
    node: Node,
    /// `None` if the kernel does not support it. Then each call takes the lock.
    token: Option<BiasToken>,
}

impl Node {
    /// Gives the node to one thread that issues operations in a loop and polls in between.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the node has a driver already.
    pub fn drive(&self) -> Result<Driver, Error> {
        Driver::begin(self.clone())
    }
}

impl Driver {
    pub(super) fn begin(node: Node) -> Result<Self, Error> {
        let engine = node.engine();
        let taken = std::mem::replace(&mut engine.hold().core().handler, Handler::Taken) == Handler::Taken;
        if taken {
            return Err(Error::Invalid(Invalid::DriverExists));
        }
        let token = engine.bias();
        Ok(Self { node, token })
    }

    /// Returns the node.
    #[must_use]
    pub const fn node(&self) -> &Node {
        &self.node
    }

    // ---- operations ------------------------------------------------------------------------------------------------

    /// Writes 1 to 16384 bytes at `target`. Completes with `context` when they are visible there. The bytes are copied now.
    ///
    /// # Errors
    /// [`Error::Busy`] if the queue towards the peer is full: poll and try again. Other errors of [`Node::store`] that are known at once.
    #[inline]
    pub fn store(&mut self, target: RemoteAddress, data: &[u8], context: u64) -> Result<OperationId, Error> {
        self.act(|core| {
            let operation = core.submit_store(&target, data, context)?;
            if core.is_next_worth_sending(target.node, BATCHED_OPERATIONS) {
                core.visit_to_send();
            }
            Ok(operation)
        })
    }

    /// Writes 1 to 16384 bytes at `target`, without a completion. The next flush reports a failure.
    ///
    /// # Errors
    /// Those of [`Driver::store`].
    #[inline]
    pub fn store_posted(&mut self, target: RemoteAddress, data: &[u8]) -> Result<(), Error> {
        self.act(|core| core.post_store(&target, data))
    }

    /// Begins several stores in order, like calls of [`Driver::store`], with one check per peer and not per store. Returns the number of
    /// stores that were accepted. It is smaller than their total if the queue towards a peer is full: poll, and continue from there.
    ///
    /// # Errors
    /// Those of [`Driver::store`], if the first store is not accepted.
    ///
    /// ```
    /// # use rackloom::fabric::{Fabric, RegionOptions, Store};
    /// # let plan = rackloom::fabric::Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "example")?;
    /// # let fabric = Fabric::local(&plan)?;
    /// # let [initiator, target] = fabric.nodes() else { unreachable!() };
    /// let table = target.allocate(RegionOptions::new(1, 0x5eed), 4096)?;
    /// let mut driver = initiator.drive()?;
    /// let rows: Vec<[u8; 64]> = (0..16).map(|row| [row; 64]).collect();
    /// let stores: Vec<Store> = (0..)
    ///     .zip(&rows)
    ///     .map(|(row, data)| Store::new(table.address(row * 7 % 16 * 64), data, row))
    ///     .collect();
    /// let (mut taken, mut none) = (0, Vec::new());
    /// while taken < stores.len() {
    ///     taken += driver.stores_posted(&stores[taken..])?;
    ///     driver.poll(&mut none);
    /// }
    /// let flush = initiator.flush(None);
    /// driver.wait(flush)?;
    /// assert_eq!(table.get::<u8>(7 * 64)?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stores(&mut self, stores: &[Store<'_>]) -> Result<usize, Error> {
        self.give_by_peer(stores, |core, peer, stores| {
            let taken = core.submit_stores(peer, stores);
            if core.is_worth_sending(Some(peer), BATCHED_OPERATIONS) {
                core.visit_to_send();
            }
            taken
        })
    }

    /// Begins several posted stores in order, without completions. Returns the number of stores that were accepted, like
    /// [`Driver::stores`]. The next flush reports a failure.
    ///
    /// # Errors
    /// Those of [`Driver::store`], if the first store is not accepted.
    pub fn stores_posted(&mut self, stores: &[Store<'_>]) -> Result<usize, Error> {
        self.give_by_peer(stores, |core, peer, stores| {
            let taken = core.post_stores(peer, stores);
            if core.is_worth_sending(Some(peer), 1) {
                core.visit_to_send();
            }
            taken
        })
    }

    /// Copies bytes of a region of this node to `target`. Completes with `context` when they are visible there.
    ///
    /// # Errors
    /// Those of [`Driver::store`].
    #[inline]
    pub fn put(
        &mut self,
        source: &Region,
        bytes: Range<u64>,
        target: RemoteAddress,
        context: u64,
    ) -> Result<OperationId, Error> {
        let source = self.local(source, bytes)?;
        self.start_plain(
            Command::Put { operation: NAMELESS, target, source, signal: None },
            target.node,
            context,
        )
    }

    /// Copies bytes of a region of this node to `target`, without a completion. The source must not change until a flush has ended. The
    /// flush reports a failure.
    ///
    /// # Errors
    /// Those of [`Driver::store`].
    #[inline]
    pub fn put_posted(
        &mut self,
        source: &Region,
        bytes: Range<u64>,
        target: RemoteAddress,
    ) -> Result<(), Error> {
        let source = self.local(source, bytes)?;
        let command = Command::Put { operation: NAMELESS, target, source, signal: None };
        self.act(|core| {
            let operation = core.submit_plain(command, target.node, 0)?;
            core.table.plain.post(operation);
            if core.is_next_worth_sending(target.node, BATCHED_TRANSFERS) {
                core.visit_to_send();
            }
            Ok(())
        })
    }

    /// Copies bytes at `source` into a region of this node, up to 4 GiB - 1.
    ///
    /// # Errors
    /// Those of [`Driver::store`].
    #[inline]
    pub fn get(
        &mut self,
        source: RemoteAddress,
        into: &Region,
        bytes: Range<u64>,
        context: u64,
    ) -> Result<OperationId, Error> {
        let into = self.local(into, bytes)?;
        self.start_plain(Command::Get { operation: NAMELESS, target: source, into }, source.node, context)
    }

    /// Begins a request of this node.
    ///
    /// # Errors
    /// Those of [`Driver::store`]; [`Error::Invalid`] if the request belongs to another node.
    pub fn submit<T: Outcome>(
        &mut self,
        request: Request<'_, T>,
        context: u64,
    ) -> Result<OperationId, Error> {
        let order = request.into_order(self.node.engine())?;
        self.start(&order, context)
    }

    /// Begins a request of this node and drives the node until it has ended. The next poll returns completions that arrive meanwhile.
    ///
    /// # Errors
    /// Any [`Error`] except [`Error::Busy`].
    pub fn wait<T: Outcome>(&mut self, request: Request<'_, T>) -> Result<T, Error> {
        let (held, engine) = self.enter();
        request.wait_in(engine, held)
    }

    // ---- progress --------------------------------------------------------------------------------------------------

    /// Polls the node once: receives frames that have arrived and sends frames that are ready. Appends completions to `completions` and
    /// returns their number. Never sleeps. An empty vector with capacity is filled without a copy.
    #[inline]
    pub fn poll(&mut self, completions: &mut Vec<Completion>) -> usize {
        self.act(|core| {
            core.visit();
            core.table.take_handled(completions)
        })
    }

    /// Polls until there is a completion, at most for `timeout`, and sleeps like a blocking operation. Appends completions to `completions`
    /// and returns their number: 0 at the deadline, or if the node has left.
    pub fn poll_wait(&mut self, completions: &mut Vec<Completion>, timeout: Duration) -> usize {
        let (mut held, engine) = self.enter();
        let core = held.core();
        let Some(until) = core.moment_in(timeout) else { return core.table.take_handled(completions) };
        if core.table.has_handled() || timeout.is_zero() {
            core.visit();
            return core.table.take_handled(completions);
        }
        // `wait_from` polls before it waits.
        let taken = engine.wait_from(
            held,
            until,
            |core| Some(core.table.take_handled(completions)).filter(|count| *count > 0),
            |core, waker| core.table.handled_waker = Some(waker.clone()),
        );
        taken.unwrap_or(0)
    }

    /// Calls `act` with the core.
    #[inline(always)]
    fn act<T>(&mut self, act: impl FnOnce(&mut Core) -> T) -> T {
        let engine: &Engine = self.node.engine();
        match &mut self.token {
            Some(token) => act(engine.hold_as_owner(token).core()),
            None => act(engine.hold().core()),
        }
    }

    /// Gives stores to the core, those of one peer at a time, until one is not accepted.
    #[inline]
    fn give_by_peer<'a>(
        &mut self,
        stores: &[Store<'a>],
        mut give: impl FnMut(&mut Core, NodeId, &[Store<'a>]) -> (usize, Option<Error>),
    ) -> Result<usize, Error> {
        self.act(|core| {
            let mut taken = 0;
            for to_one in stores.chunk_by(|left, right| left.target.node == right.target.node) {
                for some in to_one.chunks(AT_A_TIME) {
                    let (count, refused) = give(core, some[0].target.node, some);
                    taken += count;
                    match refused {
                        Some(error) if taken == 0 => return Err(error),
                        Some(_) => return Ok(taken),
                        None => {}
                    }
                }
            }
            Ok(taken)
        })
    }

    fn enter(&mut self) -> (Held<'_>, &Engine) {
        let engine: &Engine = self.node.engine();
        let held = match &mut self.token {
            Some(token) => engine.hold_as_owner(token),
            None => engine.hold(),
        };
        (held, engine)
    }

    // Inlined for the same reason as `Core::submit`.
    #[inline(always)]
    fn start_plain(
        &mut self,
        command: Command<'_>,
        peer: NodeId,
        context: u64,
    ) -> Result<OperationId, Error> {
        self.act(|core| {
            let operation = core.submit_plain(command, peer, context)?;
            if core.is_next_worth_sending(peer, BATCHED_TRANSFERS) {
                core.visit_to_send();
            }
            Ok(operation)
        })
    }

    fn start(&mut self, order: &Order<'_>, context: u64) -> Result<OperationId, Error> {
        let (mut held, _) = self.enter();
        let core = held.core();
        let operation = core.give(order, Sink::Driver(context))?;
        if core.is_worth_sending(order.peer(), BATCHED_OPERATIONS) {
            core.visit_to_send();
        }
        Ok(operation)
    }

    fn local(&self, region: &Region, bytes: Range<u64>) -> Result<LocalRange, Error> {
        if !std::ptr::eq(&**region.engine(), &**self.node.engine()) {
            return Err(Error::Invalid(Invalid::OtherNode));
        }
        let length = bytes.end.saturating_sub(bytes.start);
        Ok(LocalRange { region: region.options().region, offset: bytes.start, length })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let engine = self.node.engine();
        if let Some(token) = self.token.take() {
            engine.end_bias(token);
        }
        let mut held = engine.hold();
        let Core { table, handler, .. } = held.core();
        *handler = Handler::Free;
        table.abandon_handled();
        held.stop_polling();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use crate::fabric::engine::core::Background;
    use crate::fabric::{Fabric, Plan};

    /// The test reads the engine's state, because timing from outside would need milliseconds. A background thread that polls of the next driver keep
    /// from its wake-up would stay at rest in the state of an active one, for as long as the polls go on.
    #[test]
    fn a_dropped_driver_wakes_the_background_thread() {
        let plan = Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "test").unwrap();
        let fabric = Fabric::local(&plan).unwrap();
        let node = &fabric.nodes()[0];
        let is_resting = || node.engine().hold_for_task().core().background == Background::Resting;
        for _ in 0..20 {
            let mut driver = node.drive().unwrap();
            let begun = Instant::now();
            while !is_resting() {
                driver.poll(&mut Vec::new());
                assert!(begun.elapsed() < Duration::from_secs(10), "it does not leave the node to the polls");
            }
            drop(driver);
            assert!(!is_resting(), "the background thread drives the node again");
        }
    }
}
