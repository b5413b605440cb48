//! The handle to a GPU node: its regions, and the requests that begin operations.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rackloom_plan::faults::QueuePairFault;
use rackloom_protocol::{
    Access, Atomic, AtomicKind, Command, Completion as Level, Condition, Departure, Instant, Member,
    MemberRole, NodeId, OperationId, RegionConfig, RegionId, RemoteAddress, Signal,
};

use super::batch::Batch;
use super::completion::Completion;
use super::counters::NodeCounters;
use super::error::{Error, Invalid};
use super::leak_listener::{LeakListener, allocations_of};
use super::queue::Queue;
use super::request::{Outcome, Received, Request};
use super::seat_control::SeatControlThread;
use super::switches::Switches;
use crate::fabric::engine::background;
use crate::fabric::engine::core::Core;
use crate::fabric::engine::node_engine::Engine;
use crate::fabric::engine::order::{NAMELESS, Order};
use crate::fabric::memory::bytes::{Bytes, Shareable};
use crate::fabric::memory::element::Element;
use crate::fabric::memory::pooled::NodePools;
use crate::fabric::memory::region::{Inner, Region, RegionOptions, Slice};
use crate::fabric::memory::word::{Word, maximum, minimum};
use crate::sharing::ExportTerms;

/// Place of a process seat in the rack. [`Node::seat_before`] returns it.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeatBefore {
    /// GPU node that forwards the frames of the process.
    pub node: NodeId,
    /// Members to which the GPU node has links that the process may use, other than processes, in the order of their numbers.
    pub neighbours: Vec<NodeId>,
}

/// Handle to one GPU node of a fabric. All clones refer to the same node. When the last one is dropped, the node leaves the fabric.
///
/// `Clone`, `Send` and `Sync`: any number of threads may call any method. The core receives the operations of one thread to one peer in the
/// order of the calls that begin them. Their order at the target is that of the protocol (a fence or a signal orders more).
#[derive(Clone, Debug)]
pub struct Node {
    engine: Arc<Engine>,
    shared: Arc<SharedHandle>,
}

/// State that all handles of a node share. Ends with the last handle.
#[derive(Debug)]
struct SharedHandle {
    engine: Arc<Engine>,
    background: Mutex<Option<JoinHandle<()>>>,
    /// Connection to the supervisor, for a node that has joined a rack of other processes.
    seat_control: Option<SeatControlThread>,
    pools: Mutex<NodePools>,
    leak_listener: Mutex<Option<LeakListener>>,
    /// Keeps the switches of a local rack running while one of its nodes needs them.
    _switches: Arc<Switches>,
}

impl SharedHandle {
    fn end(&self) {
        if let Some(seat_control) = &self.seat_control {
            seat_control.send_last_status();
        }
        let listener = self.leak_listener.lock().unwrap_or_else(PoisonError::into_inner).take();
        let leaks = listener.map(|listener| (listener, allocations_of(self.engine.hold().core())));
        self.engine.leave();
        let thread = self.background.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A waker may drop the last handle on this very thread. The thread then ends by itself.
        let thread = thread.filter(|thread| thread.thread().id() != std::thread::current().id());
        // A panic of the thread is not reported: the thread holds nothing but the engine, which ends here.
        thread.map(JoinHandle::join);
        if let Some(seat_control) = &self.seat_control {
            seat_control.end();
        }
        if let Some((listener, report)) = leaks {
            listener.report(&report);
        }
    }
}

impl Drop for SharedHandle {
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
        seat_control: Option<SeatControlThread>,
    ) -> Result<Self, Error> {
        let thread = background::start(&engine).map_err(Error::system("cannot start a node's thread"))?;
        let background = Mutex::new(Some(thread));
        let shared = SharedHandle {
            engine: Arc::clone(&engine),
            background,
            seat_control,
            pools: Mutex::default(),
            leak_listener: Mutex::default(),
            _switches: Arc::clone(switches),
        };
        Ok(Self { engine, shared: Arc::new(shared) })
    }

    /// Returns the node's number in the plan.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.engine.node
    }

    /// Returns `true` if a live path leads to `node` now.
    #[must_use]
    pub fn reaches(&self, node: NodeId) -> bool {
        self.engine.hold().core().member().is_ok_and(|member| member.member().is_reachable(node))
    }

    /// Returns `true` if puts to one node take effect in the order in which they began: the rack promises the order `pair` or `class`, and keeps it.
    #[must_use]
    pub fn keeps_order_of_puts(&self) -> bool {
        self.with_core(|core| core.member().is_ok_and(|member| !member.member().config().paths.takes_early()))
    }

    /// Returns the faults of queue pairs that scripts and injections have set on this process now, for a verbs library to apply. Empty without any.
    #[must_use]
    pub fn queue_pair_faults(&self) -> Vec<QueuePairFault> {
        self.with_core(|core| {
            core.faults.as_ref().map_or_else(Vec::new, |faults| faults.of_queue_pairs().to_vec())
        })
    }

    /// Returns the process seats of each GPU node, by the number of the GPU node: those of [`Node::join_process`], taken or vacant. Each list is in
    /// the order of the numbers, and empty in a rack without process seats. With a port per plane ([`Node::join_process_ports`]) the ports of a process
    /// follow each other, in the order of the planes.
    #[must_use]
    pub fn process_seats(&self) -> Vec<Vec<NodeId>> {
        self.with_core(|core| {
            let Ok(member) = core.member() else { return Vec::new() };
            let graph = &member.member().config().graph;
            let numbers = (0..graph.members.len()).map(|index| NodeId(index as u16));
            let ports = |node: NodeId| graph.ports(node).into_iter().map(|port| port.neighbour);
            let is_process = |node: &NodeId| graph.members[node.index()].is_process();
            let gpu_nodes = numbers.filter(|node| graph.members[node.index()] == MemberRole::Endpoint);
            gpu_nodes
                .map(|node| {
                    let mut seats: Vec<_> = ports(node).filter(is_process).collect();
                    seats.sort_unstable();
                    seats
                })
                .collect()
        })
    }

    /// Returns the GPU node before this process seat, and the members to which that GPU node has links: those of the plane of the seat, if it has one.
    /// `None` on a GPU node.
    #[must_use]
    pub fn seat_before(&self) -> Option<SeatBefore> {
        self.with_core(|core| {
            let graph = &core.member().ok()?.member().config().graph;
            let ports = |node: NodeId| graph.ports(node).into_iter().map(|port| port.neighbour);
            let is_process = |node: &NodeId| graph.members[node.index()].is_process();
            let node = Some(self.id()).filter(is_process).and_then(|own| ports(own).next())?;
            let plane = graph.pinned_planes().get(self.id().index()).copied().flatten();
            let used =
                graph.ports(node).into_iter().filter(|port| plane.is_none_or(|plane| port.plane == plane));
            let mut neighbours: Vec<_> =
                used.map(|port| port.neighbour).filter(|member| !is_process(member)).collect();
            neighbours.sort_unstable();
            neighbours.dedup();
            Some(SeatBefore { node, neighbours })
        })
    }

    /// Returns the node's counters.
    #[must_use]
    pub fn counters(&self) -> NodeCounters {
        self.engine.hold().core().counters()
    }

    /// Returns the conditions that the node waits for, one line each, for a watchdog.
    #[must_use]
    pub fn waiting_for(&self) -> Vec<String> {
        self.engine.hold().core().waiting_for()
    }

    /// Waits until a live path leads to each of `peers`, at most for `timeout`.
    ///
    /// # Errors
    /// [`Error::NotUp`] with the conditions that the node waits for; [`Error::NoSuchNode`], at once; [`Error::Closed`].
    pub fn wait_until_reached(&self, peers: &[NodeId], timeout: Duration) -> Result<(), Error> {
        self.with_core(|core| core.check_endpoints(peers))?;
        let timeout_ns = nanoseconds(timeout);
        let until = self.engine.clock.now() + timeout_ns;
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
            waited_ms: timeout_ns / 1_000_000,
            waiting_for: waiting_for.join("; "),
        })
    }

    /// Leaves the fabric in order: waits for all operations of this node towards peers and for all posted stores, sends a departure
    /// to all members, and leaves.
    ///
    /// Peers see a departure and not a death: their operations on this node, in flight or later, end with [`Error::PeerLeft`]. Receives of
    /// this node and its waits on words end with [`Error::Closed`]. Regions stay accessible to peers until then. A group that still
    /// needs this node breaks all the same: call a barrier first. A neighbour that loses the departure, on a wire that loses frames,
    /// detects a death.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if an operation has not ended within `timeout`, and the errors of [`Node::flush`] for posted stores. The node has
    /// then not left: call this method again, or [`Node::leave`]. [`Error::Closed`] if the node has left before.
    pub fn leave_in_order(&self, timeout: Duration) -> Result<(), Error> {
        let until = self.engine.clock.now() + nanoseconds(timeout);
        self.flush(None).wait_for(timeout)?;
        if !self.wait_for(until, |endpoint| endpoint.operations_in_progress() == 0) {
            self.with_core(|core| core.member().map(|_| ()))?;
            let waited_ms = nanoseconds(timeout) / 1_000_000;
            return Err(Error::TimedOut { peer: None, waited_ms, continues: true });
        }
        let mut departure = Departure::default();
        while let Some(until) = self.with_core(|core| {
            let member = core.member()?;
            let now = member.now();
            let again = departure.advance(now, member.member_mut());
            core.poll();
            Ok::<_, Error>(again)
        })? {
            if self.wait_for(until, |endpoint| endpoint.has_departed()) {
                break;
            }
        }
        self.leave();
        Ok(())
    }

    /// Leaves the fabric at once, as if the process had died. No departure is sent: peers detect the loss by themselves. Every operation
    /// of this node ends with [`Error::Closed`].
    pub fn leave(&self) {
        self.shared.end();
    }

    pub(super) fn pools(&self) -> &Mutex<NodePools> {
        &self.shared.pools
    }

    pub(super) fn leak_listener(&self) -> &Mutex<Option<LeakListener>> {
        &self.shared.leak_listener
    }

    pub(super) const fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Calls `act` under the engine's lock.
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

    /// Allocates a region of `length` zeroed bytes. Nodes of the same server and tenant may map it: their operations on it need no frame, unless the
    /// rack has `force_wire`. Other regions are reached in frames.
    ///
    /// # Errors
    /// [`Error::RegionExists`], [`Error::RegionInUse`], [`Error::OverQuota`] on the seat of a job, [`Error::System`] if the system has no
    /// memory, [`Error::Closed`].
    pub fn allocate(&self, options: RegionOptions, length: u64) -> Result<Region, Error> {
        let length = usize::try_from(length).map_err(|_| Error::Invalid(Invalid::RegionTooLarge))?;
        let (bytes, file) = Bytes::allocate(length).map_err(Error::system("cannot allocate a region"))?;
        announce(&self.engine, options, (bytes, Some(Shareable::File(file))), &[])
    }

    /// Makes a region of `values`. [`Region::deregister`] returns them. Nodes of the same server and tenant in other processes put and get without a frame,
    /// if the system permits copies between processes. All other operations use frames.
    ///
    /// # Errors
    /// [`Error::RegionExists`], [`Error::RegionInUse`], [`Error::OverQuota`] on the seat of a job, [`Error::Closed`].
    pub fn register<T: Element>(&self, options: RegionOptions, values: Vec<T>) -> Result<Region, Error> {
        self.announce(options, Bytes::own(values))
    }

    /// Makes a region of memory that the caller owns, at any address. Peers reach it like one of [`Node::register`].
    ///
    /// # Safety
    /// The `length` bytes at `base` are valid for reads and writes, and no Rust reference to them exists (except to atomics), until
    /// [`Region::deregister`] has returned `Ok`, or until [`Node::leave`] has returned and no handle is used any more. Dropping the
    /// handles is not enough: an operation in flight, or a copy by another process, may still use the bytes.
    ///
    /// # Errors
    /// [`Error::RegionExists`], [`Error::RegionInUse`], [`Error::Closed`].
    pub unsafe fn register_raw(
        &self,
        options: RegionOptions,
        base: *mut u8,
        length: usize,
    ) -> Result<Region, Error> {
        // SAFETY: needed because the bytes are the caller's. The caller's promise covers the lifetime of the value: the
        // region's handle, the node's memory and the operations in flight all end before the promise does.
        self.announce(options, unsafe { Bytes::borrow(base, length) })
    }

    pub(super) fn announce(&self, options: RegionOptions, bytes: Bytes) -> Result<Region, Error> {
        announce(&self.engine, options, (bytes, None), &[])
    }

    /// Waits until the number of a dropped region is free again, at most for `timeout`: until the operations that still use its bytes have
    /// ended. Returns at once if there is no such region.
    ///
    /// # Errors
    /// [`Error::RegionExists`] if a handle of the region exists, [`Error::RegionInUse`] at the deadline, [`Error::Closed`].
    pub fn wait_until_free(&self, region: RegionId, timeout: Duration) -> Result<(), Error> {
        let until = self.engine.clock.now() + nanoseconds(timeout);
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

    fn request<'a, T: Outcome>(&self, command: Command<'a>, local: Option<&Region>) -> Request<'a, T> {
        let is_ours = local.is_none_or(|region| Arc::ptr_eq(&region.inner.engine, &self.engine));
        let order = Order { command, hold: local.cloned(), is_posted: false };
        let order = is_ours.then_some(order).ok_or(Error::Invalid(Invalid::OtherNode));
        Request::new(&self.engine, order)
    }

    /// Writes 1 to 16384 bytes at `target`. Completes when they are visible there. They are copied when the request begins.
    ///
    /// # Errors
    /// On completion: [`Error::Invalid`] for another length, [`Error::NoSuchNode`], [`Error::Refused`] by the target,
    /// [`Error::PeerLost`], [`Error::PeerLeft`], [`Error::Closed`]. [`Error::Busy`] from calls that do not wait for space
    /// ([`Request::submit`]). All operations on a remote address have these errors.
    pub fn store<'a>(&self, target: RemoteAddress, data: &'a [u8]) -> Request<'a, ()> {
        self.store_at_level(target, data, Level::Visible)
    }

    /// Writes 1 to 16384 bytes at `target`, and completes when the core has accepted the store. The next [`Node::flush`] reports a
    /// failure. Equals [`Node::store`] with [`Request::posted`], which other operations have too.
    ///
    /// # Errors
    /// On completion: [`Error::Invalid`], [`Error::NoSuchNode`], [`Error::PeerLost`] or [`Error::PeerLeft`] if the peer is already known
    /// to be lost, [`Error::Closed`]. [`Error::Busy`] from calls that do not wait for space. [`Node::flush`] reports later failures.
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

    /// Reads 1 to 16384 bytes at `source` into a slice of this node.
    ///
    /// # Errors
    /// Those of [`Node::store`]; [`Error::Invalid`] for a slice outside of its region.
    pub fn load(&self, source: RemoteAddress, into: &Slice) -> Request<'static, ()> {
        let command = Command::Load { operation: NAMELESS, target: source, into: into.range };
        self.request(command, Some(&into.region))
    }

    /// Copies a slice of this node to `target`. Completes when it is visible there. The length is at least one byte and at most that of
    /// the regions. The bytes are read when they are sent, and again for a retransmission: they must not change until the operation has
    /// ended, or the target may see a mixture of old and new bytes.
    ///
    /// # Errors
    /// Those of [`Node::store`].
    pub fn put(&self, source: &Slice, target: RemoteAddress) -> Request<'static, ()> {
        self.put_and(source, target, None)
    }

    /// Copies a slice of this node to `target`, and then updates a word of 8 bytes at the target, aligned to 8. A reader that sees the
    /// new value of the word sees the data. The slice may be empty.
    ///
    /// # Errors
    /// Those of [`Node::store`]; [`Error::Refused`] for a misaligned signal.
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

    /// Copies bytes at `source` to a slice of this node, up to 4 GiB - 1.
    ///
    /// # Errors
    /// Those of [`Node::store`]; [`Error::Invalid`] for a slice outside of its region.
    pub fn get(&self, source: RemoteAddress, into: &Slice) -> Request<'static, ()> {
        let command = Command::Get { operation: NAMELESS, target: source, into: into.range };
        self.request(command, Some(&into.region))
    }

    /// Adds to a word of 4 or 8 bytes, wrapping, and returns the old value. The type of the word is that of the addend. The offset is a multiple of
    /// the width, for this and all other atomics.
    ///
    /// # Errors
    /// Those of [`Node::store`]; [`Error::Refused`] for a misaligned word.
    pub fn fetch_add<W: Word + Outcome>(&self, target: RemoteAddress, addend: W) -> Request<'static, W> {
        self.atomic(AtomicKind::FetchAdd, target, addend, 0)
    }

    /// Keeps the bits of a word that `operand` has as well. Returns the old value.
    ///
    /// # Errors
    /// Those of [`Node::fetch_add`].
    pub fn fetch_and<W: Word + Outcome>(&self, target: RemoteAddress, operand: W) -> Request<'static, W> {
        self.atomic(AtomicKind::And, target, operand, 0)
    }

    /// Sets the bits of `operand` in a word. Returns the old value.
    ///
    /// # Errors
    /// Those of [`Node::fetch_add`].
    pub fn fetch_or<W: Word + Outcome>(&self, target: RemoteAddress, operand: W) -> Request<'static, W> {
        self.atomic(AtomicKind::Or, target, operand, 0)
    }

    /// Inverts the bits of `operand` in a word. Returns the old value.
    ///
    /// # Errors
    /// Those of [`Node::fetch_add`].
    pub fn fetch_xor<W: Word + Outcome>(&self, target: RemoteAddress, operand: W) -> Request<'static, W> {
        self.atomic(AtomicKind::Xor, target, operand, 0)
    }

    /// Replaces a word by `operand` if that is smaller. Types with a sign compare in two's complement. Returns the old value.
    ///
    /// # Errors
    /// Those of [`Node::fetch_add`].
    pub fn fetch_min<W: Word + Outcome>(&self, target: RemoteAddress, operand: W) -> Request<'static, W> {
        self.atomic(minimum::<W>(), target, operand, 0)
    }

    /// Replaces a word by `operand` if that is larger. Types with a sign compare in two's complement. Returns the old value.
    ///
    /// # Errors
    /// Those of [`Node::fetch_add`].
    pub fn fetch_max<W: Word + Outcome>(&self, target: RemoteAddress, operand: W) -> Request<'static, W> {
        self.atomic(maximum::<W>(), target, operand, 0)
    }

    /// Replaces a word if it equals `expected`. Returns the old value, which equals `expected` if the word was replaced.
    ///
    /// # Errors
    /// Those of [`Node::fetch_add`].
    pub fn compare_swap<W: Word + Outcome>(
        &self,
        target: RemoteAddress,
        expected: W,
        new: W,
    ) -> Request<'static, W> {
        self.atomic(AtomicKind::CompareSwap, target, new, expected.to_bits())
    }

    /// Replaces a word and returns the old value.
    ///
    /// # Errors
    /// Those of [`Node::fetch_add`].
    pub fn swap<W: Word + Outcome>(&self, target: RemoteAddress, new: W) -> Request<'static, W> {
        self.atomic(AtomicKind::Swap, target, new, 0)
    }

    fn atomic<W: Word + Outcome>(
        &self,
        kind: AtomicKind,
        target: RemoteAddress,
        operand: W,
        compare: u64,
    ) -> Request<'static, W> {
        let atomic = Atomic { kind, width: W::WIDTH, operand: operand.to_bits(), compare };
        self.request(Command::Atomic { operation: NAMELESS, target, atomic }, None)
    }

    /// Waits until the 8-byte word at `offset`, a multiple of 8, of a region of this node satisfies the condition. Returns the word.
    ///
    /// The word is checked now and after each change of the region by a peer. A write by the owner, with [`Region::write`], causes no
    /// check. The loss of `from` ends the wait, unless a last check finds the condition satisfied.
    ///
    /// # Errors
    /// On completion: [`Error::Invalid`] for a word outside of the region or not at a multiple of 8, [`Error::PeerLost`] or
    /// [`Error::PeerLeft`] for `from`, [`Error::Failed`] after [`Node::cancel`], [`Error::Closed`].
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

    /// Orders operations to `peer` (to all peers if `None`): those that begin later become visible only after those that began before.
    /// Completes as soon as the core has accepted it.
    ///
    /// # Errors
    /// On completion: [`Error::NoSuchNode`], [`Error::Closed`].
    pub fn fence(&self, peer: Option<NodeId>) -> Request<'static, ()> {
        self.request(Command::Fence { target: peer }, None)
    }

    /// Completes when all operations to `peer` (to all peers if `None`) that began before are visible, and the bytes that they read have
    /// arrived.
    ///
    /// Fails if an earlier posted operation was refused ([`Error::Refused`]) or is lost with its target ([`Error::PeerLost`]), and no flush
    /// has reported that yet. The error names the target. Each flush reports one failure, the next flush the next one.
    ///
    /// # Errors
    /// On completion: [`Error::Refused`], [`Error::PeerLost`] or [`Error::PeerLeft`] with the target of a posted operation that failed,
    /// [`Error::NoSuchNode`], [`Error::Closed`].
    pub fn flush(&self, peer: Option<NodeId>) -> Request<'static, ()> {
        self.request(Command::Flush { operation: NAMELESS, target: peer }, None)
    }

    /// Sends a slice of this node, of up to 4 GiB - 1 bytes, as a tagged message.
    ///
    /// A short message completes when the peer holds it, with or without a matching receive. A long one completes when the peer has received
    /// it. A message is short if it fits into a frame, has at most 4096 bytes, and few short messages wait at the peer for a receive. The
    /// bytes must not change until the operation has ended.
    ///
    /// # Errors
    /// Those of [`Node::store`]. A receive buffer that is too short is an error of the receiver, not of the sender.
    pub fn send(&self, peer: NodeId, tag: u64, source: &Slice) -> Request<'static, ()> {
        let command = Command::Send { operation: NAMELESS, target: peer, tag, source: source.range };
        self.request(command, Some(&source.region))
    }

    /// Receives the oldest message whose tag equals `tag` in all bits that `ignore` does not set, from `source`, or from any node if `None`.
    ///
    /// The loss of a named source ends the receive. Without a source, the loss of the last other node that was reached ends it
    /// ([`Error::Failed`]). A message that is longer than the slice ends the receive with [`Error::Failed`] and
    /// [`super::OperationError::MessageTruncated`]: nothing is written, and the message is dropped.
    ///
    /// # Errors
    /// On completion: [`Error::PeerLost`] or [`Error::PeerLeft`] for a named source, [`Error::Failed`] as described or after
    /// [`Node::cancel`], [`Error::Invalid`] for a slice outside of its region, [`Error::Closed`].
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

    /// Ends a submitted wait, or a submitted receive that has not matched a message. Its completion reports that it was cancelled. A request
    /// that is awaited is cancelled by dropping it.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no such operation, or it has ended.
    pub fn cancel(&self, operation: OperationId) -> Result<(), Error> {
        let mut held = self.engine.hold();
        let core = held.core();
        let member = core.member()?;
        let now = member.now();
        let result = member.member_mut().handle_command(now, Command::Cancel { operation });
        result.map_err(|refused| Error::from_refusal(refused, None))?;
        core.poll();
        Ok(())
    }

    /// Returns an empty batch, for requests that begin together so that they share frames.
    #[must_use]
    pub fn batch<'a>(&self) -> Batch<'a> {
        Batch::new(Arc::clone(&self.engine))
    }

    // ---- completion queues -----------------------------------------------------------------------------------------

    /// Returns the oldest completion of `queue`. If there is none, polls this node once and checks again. Never sleeps.
    pub fn poll(&self, queue: &Queue) -> Option<Completion> {
        queue.pop().or_else(|| {
            self.engine.hold().core().visit();
            queue.pop()
        })
    }

    /// Says that the program pauses its polls of this node ([`Self::poll`] and the like), and perhaps waits for data in its memory. The background thread
    /// listens at once, and not only after 0.1 to 2 ms. For 10 ms it also listens beside polls, if the machine has processors for all members of the
    /// rack and two for each program. Call it after the last completion of several, when a peer's data come next. It costs about a microsecond, and a
    /// wake-up of the background thread if that rests.
    pub fn pause_polls(&self) {
        self.engine.hold().pause_polls();
    }

    /// Drives this node and sleeps like a blocking operation until `queue` has a completion, at most for `timeout`. Returns `true` if it has one,
    /// which another thread may take first.
    pub fn wait_until_filled(&self, queue: &Queue, timeout: Duration) -> bool {
        let until = self.engine.clock.now() + nanoseconds(timeout);
        let filled =
            self.engine.wait(until, |_| (!queue.is_empty()).then_some(()), |_, waker| queue.set_waker(waker));
        filled.is_some()
    }

    /// Returns the oldest completion of `queue`. While there is none, drives this node and sleeps like a blocking operation, at most for
    /// `timeout`.
    pub fn poll_wait(&self, queue: &Queue, timeout: Duration) -> Option<Completion> {
        let until = self.engine.clock.now() + nanoseconds(timeout);
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

/// Registers a region, and exports it if peers can map or open its bytes. `rights` are those of single nodes.
pub(super) fn announce(
    engine: &Arc<Engine>,
    options: RegionOptions,
    (bytes, shareable): (Bytes, Option<Shareable>),
    rights: &[(NodeId, Access)],
) -> Result<Region, Error> {
    let RegionOptions { region, key, access } = options;
    let bytes = Arc::new(bytes);
    let mut held = engine.hold();
    let core = held.core();
    if core.keeps_retired(region) {
        // An operation that uses the region may have ended, and its event may not have been handled yet.
        core.visit();
        if core.keeps_retired(region) {
            return Err(Error::RegionInUse(region));
        }
    }
    let (used_bytes, limit_bytes) = (core.used_bytes()?, core.memory_max_bytes);
    let member = core.member()?;
    if member.memory_mut().holds(region) {
        return Err(Error::RegionExists(region));
    }
    if used_bytes.saturating_add(bytes.length()) > limit_bytes {
        return Err(Error::OverQuota { bytes: bytes.length(), used_bytes, limit_bytes });
    }
    let tenant = member.member().config().tenants[engine.node.index()];
    let config = RegionConfig { region, length: bytes.length(), key, access, tenant };
    member.member_mut().register(config).map_err(|_| Error::RegionExists(region))?;
    rights.iter().for_each(|(peer, access)| member.member_mut().set_access(region, *peer, Some(*access)));
    member.memory_mut().add(region, Arc::clone(&bytes));
    if let (Some(local), Some(shareable)) = (&core.local, shareable.or_else(|| bytes.in_program())) {
        let (shared, owner) = shareable.kept_by(&bytes);
        local.export(config, shared, ExportTerms { owner, rights: rights.to_vec() });
    }
    drop(held);
    let inner = Inner { engine: Arc::clone(engine), options, bytes };
    Ok(Region { inner: Arc::new(inner) })
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
