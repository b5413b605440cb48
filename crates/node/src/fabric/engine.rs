//! One node's engine: core, wires and memory under one lock, and the choice of the thread that drives them.
//!
//! At most one thread is the *driver*. It waits for a result of its own, and keeps the lock from poll to poll. It releases the lock whenever
//! another thread needs it and whenever it sleeps. Threads that find a driver register a waker and park. Without a driver, the
//! background thread ([`super::background`]) drives.
//!
//! A node is *attended* while threads submit, poll or wait often enough, and thereby poll the node. The background thread then only checks
//! now and then that this continues. Waking it after each visit would cost more than the visit. If it waited for the lock, each release of
//! the lock would have to wake it, which costs as much. A call that only reads known state does not poll, and does not make a node attended.
//!
//! A pending future drives nothing: its task does other work until it is woken. So a poll of a future is no visit. The background thread is
//! *entrusted* with the node and stays awake as long as a blocked thread would.
//!
//! The lock protects a [`Core`]. Every release goes through [`Held`], which chooses the thread that receives the next doorbell. This file
//! does not depend on the kinds of operations.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use rackloom_protocol::{Instant, NodeId};
use rustix::thread::sched_yield;

use super::core::{Core, Member};
use super::held::{Held, Role};
use crate::clock::Clock;
use crate::favoured::{Favour, Favoured, Inside};
use crate::waiting::WaitPolicy;
use crate::wires::Doorbell;

/// Longest time that a thread parks while another one drives. A safety net: the thread is woken earlier.
const PARK: Duration = Duration::from_millis(10);

/// Engine of one node.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) node: NodeId,
    core: Favoured<Core>,
    /// Number of threads that wait for the lock.
    wanted: AtomicUsize,
    pub(super) bell: Doorbell,
    /// A visitor has polled the node since the background thread checked last.
    pub(super) attended: AtomicBool,
    /// The background thread, which waits until it is needed.
    background: OnceLock<Thread>,
    pub(super) clock: Clock,
    policy: WaitPolicy,
}

impl Engine {
    pub(super) fn new(
        node: NodeId,
        member: Member,
        bell: Doorbell,
        clock: Clock,
        policy: WaitPolicy,
    ) -> Self {
        let core = Core::new(member);
        let (core, wanted, attended) = (Favoured::new(core), AtomicUsize::new(0), AtomicBool::new(false));
        Self { node, core, wanted, bell, attended, background: OnceLock::new(), clock, policy }
    }

    /// Takes the lock. A driver that holds it releases it after its current poll.
    pub(super) fn hold(&self) -> Held<'_> {
        self.hold_as(Role::Visitor)
    }

    /// Takes the lock for the background thread, whose polls are no visits.
    pub(super) fn hold_in_background(&self) -> Held<'_> {
        self.background.get_or_init(std::thread::current);
        self.hold_as(Role::Background)
    }

    /// Takes the lock for the poll of a future, which is no visit.
    pub(super) fn hold_for_task(&self) -> Held<'_> {
        self.hold_as(Role::Task)
    }

    /// Enters as the favoured thread: without the lock, unless another thread is inside.
    #[inline]
    pub(super) fn hold_favoured<'e>(&'e self, favour: &'e mut Favour) -> Held<'e> {
        self.held(Role::Visitor, self.core.enter_favoured(favour))
    }

    pub(super) fn hold_as(&self, role: Role) -> Held<'_> {
        self.held(role, self.lock())
    }

    #[inline(always)]
    fn held<'e>(&'e self, role: Role, core: Inside<'e, Core>) -> Held<'e> {
        if core.asleep > 0 {
            self.bell.disarm();
        }
        Held::new(self, role, core)
    }

    /// Favours the calling thread. `None` if another thread is favoured, or the kernel does not support it.
    pub(super) fn appoint(&self) -> Option<Favour> {
        self.core.appoint()
    }

    /// Ends the favour of a thread.
    pub(super) fn dismiss(&self, favour: Favour) {
        self.core.dismiss(favour);
    }

    /// Returns `true` if a visitor has polled the node since the last call.
    pub(super) fn is_attended(&self) -> bool {
        self.attended.swap(false, Ordering::Relaxed)
    }

    /// Wakes the background thread: the node is not attended any more.
    pub(super) fn wake_from_rest(&self) {
        self.attended.store(false, Ordering::Relaxed);
        self.call_background();
    }

    pub(super) fn call_background(&self) {
        if let Some(thread) = self.background.get() {
            thread.unpark();
        }
    }

    fn lock(&self) -> Inside<'_, Core> {
        if let Some(core) = self.core.try_enter() {
            return core;
        }
        self.wanted.fetch_add(1, Ordering::AcqRel);
        let core = self.core.enter();
        self.wanted.fetch_sub(1, Ordering::AcqRel);
        core
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire) > 0
    }

    /// Drives the node, or waits for its driver, until `look` returns a result. `None` at `until`, or when the node has left. `register`
    /// stores a waker with the object that is waited for.
    pub(super) fn wait<T>(
        &self,
        until: Instant,
        look: impl FnMut(&mut Core) -> Option<T>,
        register: impl FnMut(&mut Core, &Waker),
    ) -> Option<T> {
        self.wait_from(self.hold(), until, look, register)
    }

    /// Waits like [`Engine::wait`], for a caller that has the lock.
    pub(super) fn wait_from<'e, T>(
        &'e self,
        mut held: Held<'e>,
        until: Instant,
        mut look: impl FnMut(&mut Core) -> Option<T>,
        mut register: impl FnMut(&mut Core, &Waker),
    ) -> Option<T> {
        let mut parked = None;
        loop {
            if let Some(found) = look(held.core()) {
                return Some(found);
            }
            if held.core().is_over(until) {
                return None;
            }
            if !held.core().has_driver {
                held.core().has_driver = true;
                let (mut held, found) = self.drive(held, until, &mut look);
                held.core().has_driver = false;
                return found;
            }
            // One waker for the whole wait: lists that hold it already recognise it, and do not store it twice.
            let waker = parked.get_or_insert_with(|| Waker::from(Arc::new(Parked(std::thread::current()))));
            register(held.core(), waker);
            held.core().standby.push(waker.clone());
            drop(held);
            std::thread::park_timeout(PARK);
            held = self.hold();
            held.core().standby.retain(|known| !known.will_wake(waker));
        }
    }

    fn drive<'e, T>(
        &'e self,
        mut held: Held<'e>,
        until: Instant,
        look: &mut impl FnMut(&mut Core) -> Option<T>,
    ) -> (Held<'e>, Option<T>) {
        loop {
            let progress = held.core().poll();
            let found = look(held.core());
            // The time of this poll is precise enough: the next poll follows soon.
            let is_over = held.core().member.as_ref().is_none_or(|member| member.last_turn() >= until);
            if found.is_some() || is_over {
                return (held, found);
            }
            if !held.core().table.to_wake.is_empty() || self.is_wanted() {
                held = held.yield_lock();
            } else if !progress && !self.stays_awake(held.core()) {
                held = held.sleep(until, true);
            }
        }
    }

    /// Returns `true` if the background thread, which found no work, polls again at once for pending futures.
    pub(super) fn stays_awake_for_tasks(&self, core: &mut Core) -> bool {
        core.is_entrusted = core.is_entrusted && self.stays_awake(core);
        core.is_entrusted
    }

    /// Polls the wires for as long as the policy allows. Returns `true` if there is work.
    fn stays_awake(&self, core: &mut Core) -> bool {
        let Some(member) = &mut core.member else { return false };
        for _ in 0..self.policy.pauses {
            if member.ready() || self.is_wanted() {
                return true;
            }
            std::hint::spin_loop();
        }
        let now = member.look_at_stopwatch();
        let is_recent = now < member.awake_until();
        if is_recent && now < member.next_turn(now) {
            sched_yield();
        }
        is_recent || member.ready()
    }

    /// Leaves the fabric as abruptly as a process that dies: neighbours lose the carrier, and all operations end.
    pub(super) fn leave(&self) {
        let mut held = self.hold();
        let core = held.core();
        core.has_left = true;
        let member = core.member.take();
        core.table.end_all();
        core.wake_waiting_for_room();
        let activities = core.activities.take_all();
        core.standby.drain(..).for_each(|waker| core.table.to_wake.push(waker));
        self.wake_from_rest();
        self.bell.arm();
        self.bell.ring();
        drop(held);
        drop((member, activities));
    }
}

/// A parked thread that a waker wakes.
struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
