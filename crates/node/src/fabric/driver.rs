//! A node in the hands of one thread that is busy with it: no lock, no shared handle, completions by the batch.
//!
//! A request that any thread may end in any way pays for that: the node's lock, a count of handles, the lock of a queue. A thread
//! that issues operations in a loop and polls in between needs none of it. A [`Driver`] is such a thread's way to the node.
//! It goes to the core as requests do ([`super::order`]), so operations behave the same; what differs is the price, and when an
//! operation leaves: at once if nothing is on its way to that peer, else with the next poll or when enough wait.
//!
//! Nobody is shut out. Other threads may use the node meanwhile, and the background thread serves it whenever the driver
//! has not come by for a while, 2 ms at most, so that peers are answered and heartbeats go out ([`crate::favoured`]).

use std::ops::Range;
use std::time::Duration;

use rackloom_protocol::{Command, LocalRange, NodeId, OperationId, RemoteAddress};

use super::core::Core;
use super::engine::Engine;
use super::error::Error;
use super::held::Held;
use super::node::{NAMELESS, Node};
use super::order::Order;
use super::queue::Completion;
use super::region::Region;
use super::request::{Outcome, Request};
use super::table::Sink;
use crate::favoured::Favour;

/// Acknowledged operations that wait for company while others are on their way.
const COMPANY: usize = 32;
/// The same of long transfers: the far side copies the first ones while the next ones are copied here.
const LONG_COMPANY: usize = 8;

/// Stores of a list that are given to the core before it is asked whether they should leave.
const AT_A_TIME: usize = 32;

/// One of several stores that are given together: see [`Driver::stores`].
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Store<'a> {
    /// Where to.
    pub target: RemoteAddress,
    /// 1 to 16384 bytes.
    pub data: &'a [u8],
    /// What the completion is marked with; a posted store has none.
    pub context: u64,
}

impl<'a> Store<'a> {
    /// `data` to `target`; the completion is marked with `context`.
    #[must_use]
    #[inline]
    pub const fn new(target: RemoteAddress, data: &'a [u8], context: u64) -> Self {
        Self { target, data, context }
    }
}

/// One thread's way to a node that it is busy with. Dropping it gives the node back at once; operations under way go on, and nobody
/// hears of their end. Peers of a node whose driver only stays away are served after 0.1 to 2 ms, the later the longer it has come.
///
/// `Send` and `Sync`: whatever changes the node takes `&mut self`, so one thread at a time uses it, and it may move to
/// another. A node has one driver at a time. Its other handles work as ever, in this thread as in others, at the price of a
/// few microseconds for each call.
///
/// ```
/// # use rackloom::fabric::{Fabric, RegionOptions};
/// # let plan = rackloom::fabric::Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "example")?;
/// # let fabric = Fabric::local(&plan)?;
/// # let [near, far] = fabric.nodes() else { unreachable!() };
/// let target = far.allocate(RegionOptions::new(1, 0x5eed), 4096)?;
/// let mut driver = near.drive()?;
/// for line in 0..64 {
///     driver.store(target.address(line * 64), &[line as u8; 64], line)?;
/// }
/// let (mut ended, mut completions) = (0, Vec::new());
/// while ended < 64 {
///     ended += driver.poll(&mut completions);
///     for completion in completions.drain(..) {
///         completion.result?; // `completion.context` is the number of the line
///     }
/// }
/// assert_eq!(target.get::<u8>(63 * 64)?, 63);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Driver {
    node: Node,
    /// `None` where the kernel does not have what it takes; then each call takes the lock.
    favour: Option<Favour>,
}

impl Driver {
    pub(super) fn begin(node: Node) -> Result<Self, Error> {
        let engine = node.engine();
        let taken = std::mem::replace(&mut engine.hold().core().has_handler, true);
        if taken {
            return Err(Error::Invalid("the node has a driver already; hint: drop it first"));
        }
        let favour = engine.appoint();
        Ok(Self { node, favour })
    }

    /// The node.
    #[must_use]
    pub const fn node(&self) -> &Node {
        &self.node
    }

    // ---- operations ------------------------------------------------------------------------------------------------

    /// Write 1 to 16384 bytes at `target`; ends when they are visible there. They are copied now. The completion
    /// is marked with `context`.
    ///
    /// # Errors
    /// [`Error::Busy`] if the queue towards the peer is full: poll and try again. Else what is known at once.
    #[inline]
    pub fn store(&mut self, target: RemoteAddress, data: &[u8], context: u64) -> Result<OperationId, Error> {
        self.act(|core| {
            let operation = core.submit_store(&target, data, context)?;
            if core.is_next_worth_sending(target.node, COMPANY) {
                core.visit_to_send();
            }
            Ok(operation)
        })
    }

    /// The same, but it is over as soon as the core has it: there is no completion. A failure shows in the next flush.
    ///
    /// # Errors
    /// As for [`Driver::store`].
    #[inline]
    pub fn store_posted(&mut self, target: RemoteAddress, data: &[u8]) -> Result<(), Error> {
        self.act(|core| core.post_store(&target, data))
    }

    /// Several stores as if each were given to [`Driver::store`], in this order, and for less: what is asked for each peer is asked once, not for
    /// each store. Returns how many were taken, fewer than all where the queue towards a peer is full: poll, and go on from there.
    ///
    /// # Errors
    /// As for [`Driver::store`], if the first one is not taken.
    ///
    /// ```
    /// # use rackloom::fabric::{Fabric, RegionOptions, Store};
    /// # let plan = rackloom::fabric::Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "example")?;
    /// # let fabric = Fabric::local(&plan)?;
    /// # let [near, far] = fabric.nodes() else { unreachable!() };
    /// let places = far.allocate(RegionOptions::new(1, 0x5eed), 4096)?;
    /// let mut driver = near.drive()?;
    /// let rows: Vec<[u8; 64]> = (0..16).map(|row| [row; 64]).collect();
    /// let stores: Vec<Store> = (0..)
    ///     .zip(&rows)
    ///     .map(|(row, data)| Store::new(places.address(row * 7 % 16 * 64), data, row))
    ///     .collect();
    /// let (mut taken, mut none) = (0, Vec::new());
    /// while taken < stores.len() {
    ///     taken += driver.stores_posted(&stores[taken..])?;
    ///     driver.poll(&mut none);
    /// }
    /// let flush = near.flush(None);
    /// driver.wait(flush)?;
    /// assert_eq!(places.get::<u8>(7 * 64)?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stores(&mut self, stores: &[Store<'_>]) -> Result<usize, Error> {
        self.in_turn(stores, |core, peer, stores| {
            let taken = core.submit_stores(peer, stores);
            if core.is_worth_sending(Some(peer), COMPANY) {
                core.visit_to_send();
            }
            taken
        })
    }

    /// The same for stores that are over as soon as the core has them: there are no completions. A failure shows in the next flush.
    ///
    /// # Errors
    /// As for [`Driver::store`], if the first one is not taken.
    pub fn stores_posted(&mut self, stores: &[Store<'_>]) -> Result<usize, Error> {
        self.in_turn(stores, |core, peer, stores| {
            let taken = core.post_stores(peer, stores);
            if core.is_worth_sending(Some(peer), 1) {
                core.visit_to_send();
            }
            taken
        })
    }

    /// Copy some bytes of a region of one's own to `target`; ends when they are visible there.
    ///
    /// # Errors
    /// As for [`Driver::store`].
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

    /// The same, but it is over as soon as the core has it: there is no completion. The source must stay as it is until a flush has
    /// ended, which also tells of a failure.
    ///
    /// # Errors
    /// As for [`Driver::store`].
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
            if core.is_next_worth_sending(target.node, LONG_COMPANY) {
                core.visit_to_send();
            }
            Ok(())
        })
    }

    /// Copy bytes at `source` into a region of one's own. Up to 4 GiB - 1.
    ///
    /// # Errors
    /// As for [`Driver::store`].
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

    /// Begin any request of this node.
    ///
    /// # Errors
    /// As for [`Driver::store`]; [`Error::Invalid`] if the request is another node's.
    pub fn submit<T: Outcome>(
        &mut self,
        request: Request<'_, T>,
        context: u64,
    ) -> Result<OperationId, Error> {
        let order = request.into_order(self.node.engine())?;
        self.start(&order, context)
    }

    /// Begin any request of this node, and drive until it has ended. Other completions are kept for the next poll.
    ///
    /// # Errors
    /// Any of [`Error`] except [`Error::Busy`].
    pub fn wait<T: Outcome>(&mut self, request: Request<'_, T>) -> Result<T, Error> {
        let (held, engine) = self.enter();
        request.wait_in(engine, held)
    }

    // ---- progress --------------------------------------------------------------------------------------------------

    /// One turn: what waits leaves, what has come is taken. Appends what has ended to `completions` and returns how many those
    /// are. Never sleeps. A vector that is used again, and was emptied, costs no copy.
    #[inline]
    pub fn poll(&mut self, completions: &mut Vec<Completion>) -> usize {
        self.act(|core| {
            core.visit();
            core.table.take_handled(completions)
        })
    }

    /// The same, but while nothing has ended, go on, and sleep as a blocking operation does, at most for `patience`. Zero if it
    /// ran out, or if the node has left.
    pub fn poll_wait(&mut self, completions: &mut Vec<Completion>, patience: Duration) -> usize {
        let (mut held, engine) = self.enter();
        let core = held.core();
        let Some(until) = core.moment_in(patience) else { return core.table.take_handled(completions) };
        if core.table.has_handled() || patience.is_zero() {
            core.visit();
            return core.table.take_handled(completions);
        }
        // Whoever waits makes a turn first.
        let taken = engine.wait_from(
            held,
            until,
            |core| Some(core.table.take_handled(completions)).filter(|count| *count > 0),
            |core, waker| core.table.handled_waker = Some(waker.clone()),
        );
        taken.unwrap_or(0)
    }

    /// One visit.
    #[inline(always)]
    fn act<T>(&mut self, act: impl FnOnce(&mut Core) -> T) -> T {
        let engine: &Engine = self.node.engine();
        match &mut self.favour {
            Some(favour) => act(engine.hold_favoured(favour).core()),
            None => act(engine.hold().core()),
        }
    }

    /// Some stores to one peer at a time, as long as they are taken.
    #[inline]
    fn in_turn<'a>(
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
        let held = match &mut self.favour {
            Some(favour) => engine.hold_favoured(favour),
            None => engine.hold(),
        };
        (held, engine)
    }

    // Inlined for the reason that `submit` is.
    #[inline(always)]
    fn start_plain(
        &mut self,
        command: Command<'_>,
        peer: NodeId,
        context: u64,
    ) -> Result<OperationId, Error> {
        self.act(|core| {
            let operation = core.submit_plain(command, peer, context)?;
            if core.is_next_worth_sending(peer, LONG_COMPANY) {
                core.visit_to_send();
            }
            Ok(operation)
        })
    }

    fn start(&mut self, order: &Order<'_>, context: u64) -> Result<OperationId, Error> {
        let (mut held, _) = self.enter();
        let core = held.core();
        let operation = core.give(order, Sink::Driver(context))?;
        if core.is_worth_sending(order.peer(), COMPANY) {
            core.visit_to_send();
        }
        Ok(operation)
    }

    fn local(&self, region: &Region, bytes: Range<u64>) -> Result<LocalRange, Error> {
        if !std::ptr::eq(&**region.engine(), &**self.node.engine()) {
            return Err(Error::Invalid("the region belongs to another node"));
        }
        let length = bytes.end.saturating_sub(bytes.start);
        Ok(LocalRange { region: region.options().region, offset: bytes.start, length })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let engine = self.node.engine();
        if let Some(favour) = self.favour.take() {
            engine.dismiss(favour);
        }
        let mut held = engine.hold();
        let Core { table, has_handler, .. } = held.core();
        *has_handler = false;
        table.abandon_handled();
        held.part();
    }
}

#[cfg(test)]
mod tests {
    use crate::fabric::{Fabric, Plan};

    /// Only its engine knows that the background thread rests; seen from outside it would be a matter of milliseconds.
    #[test]
    fn a_driver_that_goes_says_so_to_the_background_thread() {
        let plan = Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "test").unwrap();
        let fabric = Fabric::local(&plan).unwrap();
        let node = &fabric.nodes()[0];
        let is_resting = || node.engine().hold_for_task().core().is_resting;
        for _ in 0..20 {
            let mut driver = node.drive().unwrap();
            while !is_resting() {
                driver.poll(&mut Vec::new());
            }
            drop(driver);
            assert!(!is_resting(), "nobody attends to the node any more");
        }
    }
}
