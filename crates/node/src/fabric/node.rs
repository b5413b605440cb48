//! A GPU node as programs see it: regions and operations.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rackloom_protocol::{
    Atomic, AtomicKind, Command, Completion as Level, Condition, Departure, Instant, Member, NodeId,
    OperationId, RegionConfig, RegionId, RemoteAddress, Signal, Width,
};

use super::attendant::Attendant;
use super::background;
use super::batch::Batch;
use super::bytes::Bytes;
use super::core::Core;
use super::counters::NodeCounters;
use super::driver::Driver;
use super::element::Element;
use super::engine::Engine;
use super::error::Error;
use super::order::Order;
use super::queue::{Completion, Queue};
use super::rack::Switches;
use super::region::{Inner, Region, RegionOptions, Slice};
use super::request::{Received, Request};

/// A handle to one GPU node of a fabric. Clones are the same node; when the last one goes, the node leaves the fabric.
///
/// `Clone`, `Send` and `Sync`: all methods may be called from any number of threads. Operations of one thread to one
/// peer are given to the core in the order of the calls that begin them; their order at the target is that of the
/// protocol (a fence or a signal orders more).
#[derive(Clone, Debug)]
pub struct Node {
    engine: Arc<Engine>,
    life: Arc<Life>,
}

/// Ends with the last handle.
#[derive(Debug)]
struct Life {
    engine: Arc<Engine>,
    background: Mutex<Option<JoinHandle<()>>>,
    /// Who speaks to the rack, if the node sits in one of other processes.
    attendant: Option<Attendant>,
    /// The switches of a local rack live as long as anybody needs them.
    _switches: Arc<Switches>,
}

impl Life {
    fn end(&self) {
        self.engine.leave();
        let thread = self.background.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A waker may drop the last handle on that very thread; it then ends by itself.
        let thread = thread.filter(|thread| thread.thread().id() != std::thread::current().id());
        // The thread holds nothing but the engine: if it had panicked, there would be nothing left to save.
        thread.map(JoinHandle::join);
        if let Some(attendant) = &self.attendant {
            attendant.end();
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.end();
    }
}

impl Node {
    pub(super) fn start(engine: Engine, switches: &Arc<Switches>) -> Result<Self, Error> {
        Self::seated(Arc::new(engine), switches, None)
    }

    pub(super) fn seated(
        engine: Arc<Engine>,
        switches: &Arc<Switches>,
        attendant: Option<Attendant>,
    ) -> Result<Self, Error> {
        let thread = background::start(&engine).map_err(Error::system("cannot start a node's thread"))?;
        let background = Mutex::new(Some(thread));
        let life =
            Life { engine: Arc::clone(&engine), background, attendant, _switches: Arc::clone(switches) };
        Ok(Self { engine, life: Arc::new(life) })
    }

    /// This node's number in the plan.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.engine.node
    }

    /// Whether a live path leads to this node now.
    #[must_use]
    pub fn reaches(&self, node: NodeId) -> bool {
        self.engine.hold().core().member().is_ok_and(|member| member.member().is_reachable(node))
    }

    /// What the node has done so far.
    #[must_use]
    pub fn counters(&self) -> NodeCounters {
        self.engine.hold().core().counters()
    }

    /// What the node waits for, one line each: for a watchdog.
    #[must_use]
    pub fn waiting_for(&self) -> Vec<String> {
        self.engine.hold().core().waiting_for()
    }

    /// Wait until a live path leads to each of these nodes, at most for `patience`.
    ///
    /// # Errors
    /// [`Error::NotUp`] with what the node waits for; [`Error::NoSuchNode`], at once; [`Error::Closed`].
    pub fn wait_until_reached(&self, peers: &[NodeId], patience: Duration) -> Result<(), Error> {
        self.with_core(|core| core.check_gpu_nodes(peers))?;
        let patience_ns = nanoseconds(patience);
        let until = self.engine.clock.now() + patience_ns;
        let are_reached = |endpoint: &mut rackloom_protocol::Endpoint| {
            peers.iter().all(|peer| *peer == self.id() || endpoint.is_reachable(*peer))
        };
        if self.wait_for(until, are_reached) {
            return Ok(());
        }
        self.with_core(|core| core.member().map(|_| ()))?;
        let missing = peers.iter().filter(|peer| **peer != self.id() && !self.reaches(**peer));
        let missing = missing.map(|peer| format!("a path to {peer}"));
        let waiting_for: Vec<_> = missing.chain(self.waiting_for()).collect();
        Err(Error::NotUp {
            node: self.id(),
            waited_ms: patience_ns / 1_000_000,
            waiting_for: waiting_for.join("; "),
        })
    }

    /// Leave the fabric in order: wait until everything that was begun here towards peers has ended and every posted store is visible,
    /// tell all members, and leave. To them this node has left and not died: what they have in flight to it, or begin
    /// later, ends with [`Error::PeerLeft`]. What this node waits for itself, receives and words, ends with [`Error::Closed`].
    /// Regions are open to peers until then. A group that still needs this node loses it all the same: meet in a
    /// barrier first.
    ///
    /// A neighbour that does not hear the departure, on a wire that loses frames, finds a death.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if something has not ended within `patience`, and what [`Node::flush`] says of posted stores; the node
    /// has not left then, and may try again or [`Node::leave`]. [`Error::Closed`] if it has left before.
    pub fn leave_in_order(&self, patience: Duration) -> Result<(), Error> {
        let until = self.engine.clock.now() + nanoseconds(patience);
        self.flush(None).wait_for(patience)?;
        if !self.wait_for(until, |endpoint| endpoint.operations_in_progress() == 0) {
            self.with_core(|core| core.member().map(|_| ()))?;
            let waited_ms = nanoseconds(patience) / 1_000_000;
            return Err(Error::TimedOut { peer: None, waited_ms, goes_on: true });
        }
        let mut departure = Departure::default();
        while let Some(until) = self.with_core(|core| {
            let member = core.member()?;
            let now = member.now();
            let again = departure.advance(now, member.member_mut());
            core.turn();
            Ok::<_, Error>(again)
        })? {
            if self.wait_for(until, |endpoint| endpoint.is_parted()) {
                break;
            }
        }
        self.leave();
        Ok(())
    }

    /// Leave the fabric at once, as if the process had died: no departure, peers find out by themselves. Every operation
    /// of this node ends with [`Error::Closed`].
    pub fn leave(&self) {
        self.life.end();
    }

    pub(super) const fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Do something under the engine's lock.
    pub(super) fn with_core<T>(&self, act: impl FnOnce(&mut Core) -> T) -> T {
        act(self.engine.hold().core())
    }

    pub(super) fn wait_for(
        &self,
        until: Instant,
        mut done: impl FnMut(&mut rackloom_protocol::Endpoint) -> bool,
    ) -> bool {
        let look = |core: &mut Core| match core.member() {
            Ok(member) => done(member.member_mut()).then_some(true),
            Err(_) => Some(false),
        };
        self.engine.wait(until, look, |_, _| {}).unwrap_or(false)
    }

    // ---- regions ---------------------------------------------------------------------------------------------------

    /// A new region of `length` zeroed bytes.
    ///
    /// # Errors
    /// [`Error::RegionExists`], [`Error::RegionInUse`], [`Error::System`] if there is no memory, [`Error::Closed`].
    pub fn allocate(&self, options: RegionOptions, length: u64) -> Result<Region, Error> {
        let length = usize::try_from(length).map_err(|_| Error::Invalid("the region is too large"))?;
        self.announce(options, Bytes::allocate(length).map_err(Error::system("cannot allocate a region"))?)
    }

    /// A region made of numbers that the caller hands over; [`Region::deregister`] gives them back.
    ///
    /// # Errors
    /// [`Error::RegionExists`], [`Error::RegionInUse`], [`Error::Closed`].
    pub fn register<T: Element>(&self, options: RegionOptions, values: Vec<T>) -> Result<Region, Error> {
        self.announce(options, Bytes::own(values))
    }

    /// A region made of memory that somebody else owns.
    ///
    /// # Safety
    /// The `length` bytes at `base` are valid for reads and writes, and nobody holds a Rust reference to them (other
    /// than to atomics), until [`Region::deregister`] has returned `Ok`, or [`Node::leave`] has returned and no handle is used any more. Dropping the
    /// handles is not enough: an operation in flight may still use the bytes.
    ///
    /// # Errors
    /// [`Error::RegionExists`], [`Error::RegionInUse`], [`Error::Closed`].
    pub unsafe fn register_raw(
        &self,
        options: RegionOptions,
        base: *mut u8,
        length: usize,
    ) -> Result<Region, Error> {
        // SAFETY: needed because the bytes are the caller's. The caller's promise covers the life of the value: the
        // region's handle, the node's memory and the operations in flight are all gone by the end of the promise.
        self.announce(options, unsafe { Bytes::borrow(base, length) })
    }

    pub(super) fn announce(&self, options: RegionOptions, bytes: Bytes) -> Result<Region, Error> {
        let RegionOptions { region, key, access } = options;
        let bytes = Arc::new(bytes);
        let mut held = self.engine.hold();
        let core = held.core();
        if core.keeps_retired(region) {
            // What has ended meanwhile may not have been heard of.
            core.visit();
            if core.keeps_retired(region) {
                return Err(Error::RegionInUse(region));
            }
        }
        let member = core.member()?;
        if member.memory_mut().holds(region) {
            return Err(Error::RegionExists(region));
        }
        let tenant = member.member().config().tenants[self.id().index()];
        let config = RegionConfig { region, length: bytes.length(), key, access, tenant };
        member.member_mut().register(config).map_err(|_| Error::RegionExists(region))?;
        member.memory_mut().add(region, Arc::clone(&bytes));
        drop(held);
        let inner = Inner { engine: Arc::clone(&self.engine), options, bytes };
        Ok(Region { inner: Arc::new(inner) })
    }

    /// Wait until a name whose region has been dropped is free again: until the operations that still use its bytes have ended,
    /// at most for `patience`. At once if there is no such region.
    ///
    /// # Errors
    /// [`Error::RegionExists`] if a handle of the region is alive, [`Error::RegionInUse`] if patience ran out, [`Error::Closed`].
    pub fn wait_until_free(&self, region: RegionId, patience: Duration) -> Result<(), Error> {
        let until = self.engine.clock.now() + nanoseconds(patience);
        let is_free = |core: &mut Core| (!core.keeps_retired(region)).then_some(());
        let ended = self.engine.wait(until, is_free, |_, _| {});
        let mut held = self.engine.hold();
        let is_held = held.core().member()?.memory_mut().holds(region);
        match ended {
            None => Err(Error::RegionInUse(region)),
            Some(()) if is_held => Err(Error::RegionExists(region)),
            Some(()) => Ok(()),
        }
    }

    // ---- operations ------------------------------------------------------------------------------------------------

    fn request<'a, T: super::request::Outcome>(
        &self,
        command: Command<'a>,
        local: Option<&Region>,
    ) -> Request<'a, T> {
        let is_ours = local.is_none_or(|region| Arc::ptr_eq(&region.inner.engine, &self.engine));
        let order = Order { command, hold: local.cloned(), is_posted: false };
        let order = is_ours.then_some(order).ok_or(Error::Invalid("the region belongs to another node"));
        Request::new(&self.engine, order)
    }

    /// Write 1 to 16384 bytes at `target`; ends when they are visible there. They are copied when the request begins.
    ///
    /// # Errors
    /// When it ends: [`Error::Invalid`] for another length, [`Error::NoSuchNode`], [`Error::Refused`] by the target,
    /// [`Error::PeerLost`], [`Error::PeerLeft`], [`Error::Closed`]; [`Error::Busy`] where nothing waits for room ([`Request::submit`]).
    /// All operations that name an address end in these errors.
    pub fn store<'a>(&self, target: RemoteAddress, data: &'a [u8]) -> Request<'a, ()> {
        self.store_at_level(target, data, Level::Visible)
    }

    /// The same, but it ends when the core has accepted it. A failure shows in the next [`Node::flush`]. Short for
    /// [`Node::store`] and [`Request::posted`], which does the same to other operations.
    ///
    /// # Errors
    /// When it ends: [`Error::Invalid`], [`Error::NoSuchNode`], [`Error::PeerLost`] or [`Error::PeerLeft`] if the peer is known to be gone, [`Error::Closed`];
    /// [`Error::Busy`] where nothing waits for room. Whatever goes wrong later, [`Node::flush`] says.
    pub fn store_posted<'a>(&self, target: RemoteAddress, data: &'a [u8]) -> Request<'a, ()> {
        self.store_at_level(target, data, Level::Accepted)
    }

    fn store_at_level<'a>(
        &self,
        target: RemoteAddress,
        data: &'a [u8],
        completion: Level,
    ) -> Request<'a, ()> {
        let command = Command::Store { operation: NAMELESS, target, data, completion };
        self.request(command, None)
    }

    /// Read 1 to 16384 bytes at `source` into a slice of one's own.
    ///
    /// # Errors
    /// As for [`Node::store`]; a slice that does not lie in its region is [`Error::Invalid`].
    pub fn load(&self, source: RemoteAddress, into: &Slice) -> Request<'static, ()> {
        let command = Command::Load { operation: NAMELESS, target: source, into: into.range };
        self.request(command, Some(&into.region))
    }

    /// Copy a slice of one's own to `target`; ends when it is visible there. Any length from one byte up to that of the
    /// regions. The bytes are read when they are sent, and again after a loss: they must stay as they are until the operation
    /// has ended, else the target may see old and new ones mixed.
    ///
    /// # Errors
    /// As for [`Node::store`].
    pub fn put(&self, source: &Slice, target: RemoteAddress) -> Request<'static, ()> {
        self.put_and(source, target, None)
    }

    /// The same, and then update a word of 8 bytes at the target, aligned to 8: whoever sees the word's new value sees the
    /// data. The slice may be empty.
    ///
    /// # Errors
    /// As for [`Node::store`]; a misaligned signal is [`Error::Refused`].
    pub fn put_with_signal(
        &self,
        source: &Slice,
        target: RemoteAddress,
        signal: Signal,
    ) -> Request<'static, ()> {
        self.put_and(source, target, Some(signal))
    }

    fn put_and(&self, source: &Slice, target: RemoteAddress, signal: Option<Signal>) -> Request<'static, ()> {
        let command = Command::Put { operation: NAMELESS, target, source: source.range, signal };
        self.request(command, Some(&source.region))
    }

    /// Copy bytes at `source` to a slice of one's own. Up to 4 GiB - 1.
    ///
    /// # Errors
    /// As for [`Node::store`]; a slice that does not lie in its region is [`Error::Invalid`].
    pub fn get(&self, source: RemoteAddress, into: &Slice) -> Request<'static, ()> {
        let command = Command::Get { operation: NAMELESS, target: source, into: into.range };
        self.request(command, Some(&into.region))
    }

    /// Add to a word of 4 or 8 bytes, wrapping; yields the old value. The offset is a multiple of the width, here and for the
    /// other atomics.
    ///
    /// # Errors
    /// As for [`Node::store`]; a misaligned word is [`Error::Refused`].
    pub fn fetch_add(&self, target: RemoteAddress, width: Width, addend: u64) -> Request<'static, u64> {
        self.atomic(target, Atomic { kind: AtomicKind::FetchAdd, width, operand: addend, compare: 0 })
    }

    /// Replace a word if it equals `expected`; yields the old value, which equals `expected` if it was replaced.
    ///
    /// # Errors
    /// As for [`Node::fetch_add`].
    pub fn compare_swap(
        &self,
        target: RemoteAddress,
        width: Width,
        expected: u64,
        new: u64,
    ) -> Request<'static, u64> {
        self.atomic(target, Atomic { kind: AtomicKind::CompareSwap, width, operand: new, compare: expected })
    }

    /// Replace a word; yields the old value.
    ///
    /// # Errors
    /// As for [`Node::fetch_add`].
    pub fn swap(&self, target: RemoteAddress, width: Width, new: u64) -> Request<'static, u64> {
        self.atomic(target, Atomic { kind: AtomicKind::Swap, width, operand: new, compare: 0 })
    }

    fn atomic(&self, target: RemoteAddress, atomic: Atomic) -> Request<'static, u64> {
        self.request(Command::Atomic { operation: NAMELESS, target, atomic }, None)
    }

    /// End when the 8-byte word at `offset`, a multiple of 8, of a region of one's own satisfies the condition; yields the word. It is
    /// looked at now and whenever a peer has changed the region; a write of the owner's own, by [`Region::write`], wakes
    /// nobody. The loss of `from` ends the wait, unless a last look finds the condition satisfied.
    ///
    /// # Errors
    /// When it ends: [`Error::Invalid`] for a word that does not lie in the region, or not at a multiple of 8, [`Error::PeerLost`] or
    /// [`Error::PeerLeft`] for `from`, [`Error::Failed`] if it was cancelled, [`Error::Closed`].
    pub fn wait_until(
        &self,
        region: &Region,
        offset: u64,
        condition: Condition,
        value: u64,
        from: NodeId,
    ) -> Request<'static, u64> {
        let (id, depends_on) = (region.inner.options.region, Some(from));
        let command =
            Command::WaitUntil { operation: NAMELESS, region: id, offset, condition, value, depends_on };
        self.request(command, Some(region))
    }

    /// Whatever is begun later towards `peer` (all if `None`) becomes visible only after what was begun before. Ends as
    /// soon as the core knows.
    ///
    /// # Errors
    /// When it ends: [`Error::NoSuchNode`], [`Error::Closed`].
    pub fn fence(&self, peer: Option<NodeId>) -> Request<'static, ()> {
        self.request(Command::Fence { target: peer }, None)
    }

    /// End when everything that was begun before towards `peer` (all if `None`) is visible there, and what was read from there is here.
    /// Fails if a posted operation before it was refused ([`Error::Refused`]), or is lost with its target
    /// ([`Error::PeerLost`]), and no flush has said so yet. The error names the target; a flush says one failure, the next flush the next.
    ///
    /// # Errors
    /// When it ends: [`Error::Refused`], [`Error::PeerLost`] or [`Error::PeerLeft`] with the target of a posted operation that failed,
    /// [`Error::NoSuchNode`], [`Error::Closed`].
    pub fn flush(&self, peer: Option<NodeId>) -> Request<'static, ()> {
        self.request(Command::Flush { operation: NAMELESS, target: peer }, None)
    }

    /// Send a slice of one's own, of up to 4 GiB - 1 bytes, as a tagged message. A short one ends when the peer holds it, whether
    /// or not it has asked for it; a long one when the peer has received it. Short is what fits a frame, at most 4096
    /// bytes, as long as few short ones wait there unasked for. The bytes must stay as they are until the operation has ended.
    ///
    /// # Errors
    /// As for [`Node::store`]. A place too short for it is the receiver's error, not the sender's.
    pub fn send(&self, peer: NodeId, tag: u64, source: &Slice) -> Request<'static, ()> {
        let command = Command::Send { operation: NAMELESS, target: peer, tag, source: source.range };
        self.request(command, Some(&source.region))
    }

    /// Receive the oldest message whose tag equals `tag` in all bits but those of `ignore`, from `source` or, if `None`,
    /// from anybody. The loss of a named source ends the receive, and so does, if none is named, the loss of the last other
    /// node that was reached ([`Error::Failed`]). A message that is longer than the slice ends the receive with
    /// [`Error::Failed`] and [`super::OperationError::MessageTruncated`]; nothing is written, and the message is
    /// dropped.
    ///
    /// # Errors
    /// When it ends: [`Error::PeerLost`] or [`Error::PeerLeft`] for a named source, [`Error::Failed`] as said above or if it was cancelled,
    /// [`Error::Invalid`] for a slice that does not lie in its region, [`Error::Closed`].
    pub fn receive(
        &self,
        source: Option<NodeId>,
        tag: u64,
        ignore: u64,
        into: &Slice,
    ) -> Request<'static, Received> {
        let command = Command::Receive { operation: NAMELESS, source, tag, ignore, into: into.range };
        self.request(command, Some(&into.region))
    }

    /// End a submitted wait or a submitted receive that has not met its message; its completion says cancelled. One that is
    /// awaited ends when its request is dropped.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no such operation any more.
    pub fn cancel(&self, operation: OperationId) -> Result<(), Error> {
        let mut held = self.engine.hold();
        let core = held.core();
        let member = core.member()?;
        let now = member.now();
        let result = member.member_mut().handle_command(now, Command::Cancel { operation });
        result.map_err(|refused| Error::from_refusal(refused, None))?;
        core.turn();
        Ok(())
    }

    /// Room for requests that are to begin together, so that they share frames.
    #[must_use]
    pub fn batch<'a>(&self) -> Batch<'a> {
        Batch::new(Arc::clone(&self.engine))
    }

    /// Take the node into one thread's hands: for a thread that issues operations in a loop and polls in between.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the node has a driver already.
    pub fn drive(&self) -> Result<Driver, Error> {
        Driver::begin(self.clone())
    }

    // ---- completion queues -----------------------------------------------------------------------------------------

    /// The oldest completion of `queue`; if there is none, one turn of this node and another look. Never sleeps.
    pub fn poll(&self, queue: &Queue) -> Option<Completion> {
        queue.pop().or_else(|| {
            self.engine.hold().core().visit();
            queue.pop()
        })
    }

    /// The oldest completion of `queue`; while there is none, drive this node and sleep as a blocking operation does,
    /// at most for `patience`.
    pub fn poll_wait(&self, queue: &Queue, patience: Duration) -> Option<Completion> {
        let until = self.engine.clock.now() + nanoseconds(patience);
        let mut left = None;
        let taken = self.engine.wait(
            until,
            |_| queue.pop(),
            |_, waker| {
                queue.set_waker(waker);
                left.get_or_insert_with(|| waker.clone());
            },
        );
        if let Some(another) = left.and_then(|waker| queue.forget(&waker)) {
            another.wake();
        }
        taken
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The name of a request that has not begun.
pub(super) const NAMELESS: OperationId = OperationId(0);
