//! One node's engine: core, wires and memory under one lock, and the choice of the thread that drives them.
//!
//! At most one thread is the *driver*. It waits for a result of its own, and keeps the lock from poll to poll. It releases the lock whenever
//! another thread needs it and whenever it sleeps. Threads that find a driver register a waker and park. Without a driver, the
//! background thread ([`super::background`]) drives.
//!
//! A node is *polled* by the application while threads submit, poll or wait often enough, and thereby poll the node. The background thread then only checks
//! now and then that this continues. Waking it after each visit would cost more than the visit. If it waited for the lock, each release of
//! the lock would have to wake it, which costs as much. A call that only reads known state does not poll, and does not count as such a poll.
//!
//! A pending future drives nothing: its task does other work until it is woken. So a poll of a future is no visit. The node is then
//! *delegated* to the background thread, which stays awake as long as a blocked thread would.
//!
//! A program may poll in turns: until an operation ends, and then it waits for data in its memory, which a peer writes. It says so with each pause
//! ([`super::held::Held::pause_polls`]), and the background thread listens at once. For a while it then also listens beside the polls, if the machine has a
//! processor for it: a thread that rests or sleeps is woken only after some 50 us, several times the duration of a store.
//!
//! The lock protects a [`Core`]. Every release goes through [`super::held::Held`], which chooses the thread that receives the next doorbell. This file
//! does not depend on the kinds of operations.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Thread;

use rackloom_plan::{MemoryOptions, Plan};
use rackloom_protocol::{Instant, MemberRole, NodeId};
use rustix::thread::sched_yield;

use super::core::Core;
use super::member::Member;
use crate::biased_lock::{BiasToken, BiasedLock, Inside};
use crate::clock::Clock;
use crate::waiting::WaitPolicy;
use crate::wires::Doorbell;

/// Engine of one node.
#[derive(Debug)]
pub(in crate::fabric) struct Engine {
    pub(in crate::fabric) node: NodeId,
    pub(in crate::fabric) core: BiasedLock<Core>,
    /// Number of threads that wait for the lock.
    wanted: AtomicUsize,
    pub(in crate::fabric) bell: Doorbell,
    /// A visitor has polled the node since the background thread checked last.
    pub(in crate::fabric) was_polled: AtomicBool,
    /// The background thread must end its rest, although the node may be polled again before it runs.
    pub(in crate::fabric) must_end_rest: AtomicBool,
    /// The background thread, which waits until it is needed.
    pub(in crate::fabric) background: OnceLock<Thread>,
    pub(in crate::fabric) clock: Clock,
    /// Server of each member.
    servers: Vec<usize>,
    /// Nodes of one server use each other's memory without a frame.
    share_memory: bool,
    /// Options of this node's memory in the plan.
    pub(in crate::fabric) memory: MemoryOptions,
    policy: WaitPolicy,
    /// The background thread has a processor of its own while the application polls.
    pub(in crate::fabric) has_spare_processor: bool,
}

impl Engine {
    pub(in crate::fabric) fn new(
        node: NodeId,
        member: Member,
        bell: Doorbell,
        clock: Clock,
        policy: WaitPolicy,
    ) -> Self {
        let core = Core::new(member);
        let (core, wanted, was_polled) = (BiasedLock::new(core), AtomicUsize::new(0), AtomicBool::new(false));
        Self {
            node,
            core,
            wanted,
            bell,
            was_polled,
            must_end_rest: AtomicBool::new(false),
            background: OnceLock::new(),
            clock,
            servers: Vec::new(),
            share_memory: false,
            memory: MemoryOptions::default(),
            policy,
            has_spare_processor: false,
        }
    }

    /// Sets the servers of the GPU nodes, the options of this node's memory, and the use of processors, from the plan.
    pub(in crate::fabric) fn set_servers(&mut self, plan: &Plan) {
        self.servers = vec![0; plan.members.len()];
        for (index, (_, members)) in plan.servers().into_iter().enumerate() {
            members.into_iter().for_each(|member| self.servers[member.index()] = index);
        }
        self.share_memory = plan.has_local_paths();
        // Each program of a seat occupies a processor with its polls, and a second one with the background thread.
        let programs = plan.members.iter().filter(|member| member.role == MemberRole::Endpoint).count();
        let members = plan.count_without_processes() + 2 * programs;
        self.has_spare_processor = WaitPolicy::for_members(members) == WaitPolicy::EAGER;
        if let Some(member) = plan.members.get(self.node.index()) {
            self.memory = member.memory;
        }
    }

    /// Returns the index of a node's server.
    pub(in crate::fabric) fn server_of(&self, node: NodeId) -> usize {
        self.servers.get(node.index()).copied().unwrap_or(node.index())
    }

    /// Returns the servers of these nodes, or `None` if nodes of one server exchange frames.
    pub(in crate::fabric) fn servers_with_shared_memory(&self, nodes: &[NodeId]) -> Option<Vec<usize>> {
        self.share_memory.then(|| nodes.iter().map(|node| self.server_of(*node)).collect())
    }

    /// Biases the lock to the calling thread. `None` if another thread owns the bias, or the kernel does not support it.
    pub(in crate::fabric) fn bias(&self) -> Option<BiasToken> {
        self.core.bias()
    }

    /// Ends the bias to a thread.
    pub(in crate::fabric) fn end_bias(&self, token: BiasToken) {
        self.core.end_bias(token);
    }

    /// Returns `true` if a visitor has polled the node since the last call.
    pub(in crate::fabric) fn take_was_polled(&self) -> bool {
        self.was_polled.swap(false, Ordering::Relaxed)
    }

    /// Wakes the background thread: the application does not poll the node any more.
    pub(in crate::fabric) fn wake_from_rest(&self) {
        self.was_polled.store(false, Ordering::Relaxed);
        self.must_end_rest.store(true, Ordering::Relaxed);
        self.call_background();
    }

    pub(in crate::fabric) fn call_background(&self) {
        if let Some(thread) = self.background.get() {
            thread.unpark();
        }
    }

    pub(in crate::fabric) fn lock(&self) -> Inside<'_, Core> {
        if let Some(core) = self.core.try_enter() {
            return core;
        }
        self.wanted.fetch_add(1, Ordering::AcqRel);
        let core = self.core.enter();
        self.wanted.fetch_sub(1, Ordering::AcqRel);
        core
    }

    pub(in crate::fabric) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire) > 0
    }

    /// Returns `true` if the background thread, which found no work, polls again at once for pending futures.
    pub(in crate::fabric) fn stays_awake_for_tasks(&self, core: &mut Core) -> bool {
        core.is_delegated = core.is_delegated && self.stays_awake(core);
        core.is_delegated
    }

    /// Returns `true` if the background thread listens although the application polls.
    pub(in crate::fabric) fn listens_beside_polls(&self, core: &Core) -> bool {
        core.listens_until > Instant::ZERO && self.clock.now() < core.listens_until
    }

    /// Polls the wires for as long as the policy allows. Returns `true` if there is work.
    pub(in crate::fabric) fn stays_awake(&self, core: &mut Core) -> bool {
        for _ in 0..self.policy.pauses {
            if core.is_ready() || self.is_wanted() {
                return true;
            }
            std::hint::spin_loop();
        }
        let Some(member) = &mut core.member else { return false };
        let (now, awake_until) = (member.look_at_stopwatch(), member.awake_until());
        if now < awake_until && now < core.next_poll(now) {
            sched_yield();
        }
        now < awake_until || core.is_ready()
    }

    /// Leaves the fabric as abruptly as a process that dies: neighbours lose the carrier, and all operations end.
    pub(in crate::fabric) fn leave(&self) {
        let mut held = self.hold();
        let core = held.core();
        if let Some(local) = &core.local {
            // Under the lock: a program frees its memory after another thread has seen that the node has left.
            local.end();
        }
        let (member, local) = (core.member.take(), core.local.take());
        core.table.end_all();
        core.wake_waiting_for_space();
        let activities = core.activities.take_all();
        core.standby.drain(..).for_each(|waker| core.table.to_wake.push(waker));
        self.wake_from_rest();
        self.bell.arm();
        self.bell.ring();
        drop(held);
        drop((member, local, activities));
    }
}
