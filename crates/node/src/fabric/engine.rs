//! One node's engine: its core, wires and memory under one lock, and the question who drives them.
//!
//! At most one thread is the *driver*: it waits for something of its own and keeps the lock from turn to turn, but gives
//! it up whenever somebody wants it and whenever it sleeps. Threads that find the place taken register a waker and park.
//! The background thread ([`super::background`]) has the place when nobody is the driver.
//!
//! A node is *attended* as long as threads come back again and again and make turns of their own, as who submits, polls or waits
//! does: the background thread then only looks now and then whether that goes on. Calling it after every visit would cost
//! more than the visit, and so would a thread that waits for the lock: who leaves it must then wake that thread. Who only
//! asks for something that is known already makes no turn and attends to nothing, however often it asks.
//!
//! A future that is pending drives nothing: whoever polled it does something else until it is woken. So a poll is no visit, and
//! the background thread is *entrusted* with the node: it stays awake as long as a blocked thread would.
//!
//! What the lock protects is a [`Core`]; every release of it goes through [`Held`], which settles who hears the doorbell next. This
//! file knows no kinds of operations.

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

/// Longest time that a thread parks while another drives: only a net, it is woken before.
const PARK: Duration = Duration::from_millis(10);

/// One node.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) node: NodeId,
    core: Favoured<Core>,
    /// Threads that want the lock.
    wanted: AtomicUsize,
    pub(super) bell: Doorbell,
    /// A visitor has made a turn since the background thread looked last.
    pub(super) attended: AtomicBool,
    /// The thread that stands aside.
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

    /// Take the lock; a driver that holds it gives it up at its next turn.
    pub(super) fn hold(&self) -> Held<'_> {
        self.hold_as(Role::Visitor)
    }

    /// The same for the background thread, whose presence is no visit.
    pub(super) fn hold_in_background(&self) -> Held<'_> {
        self.background.get_or_init(std::thread::current);
        self.hold_as(Role::Background)
    }

    /// The same for the poll of a future, which is no visit either.
    pub(super) fn hold_for_task(&self) -> Held<'_> {
        self.hold_as(Role::Task)
    }

    /// The same for a thread that is favoured: no lock, unless somebody else is inside.
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

    /// Favour one thread. `None` if another one is, or if the kernel does not have what it takes.
    pub(super) fn appoint(&self) -> Option<Favour> {
        self.core.appoint()
    }

    /// Favour it no more.
    pub(super) fn dismiss(&self, favour: Favour) {
        self.core.dismiss(favour);
    }

    /// Whether a visitor has made a turn since the last time that this was asked.
    pub(super) fn is_attended(&self) -> bool {
        self.attended.swap(false, Ordering::Relaxed)
    }

    /// Nobody attends to the node from now on.
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

    /// Live until `look` finds something; `None` once `until` has come or the node has left. `register` leaves a waker with whatever is
    /// waited for.
    pub(super) fn wait<T>(
        &self,
        until: Instant,
        look: impl FnMut(&mut Core) -> Option<T>,
        register: impl FnMut(&mut Core, &Waker),
    ) -> Option<T> {
        self.wait_from(self.hold(), until, look, register)
    }

    /// The same for somebody who has the lock.
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
            // One for the whole wait: whoever knows it already does not keep it twice.
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
            let progress = held.core().turn();
            let found = look(held.core());
            // The time of this turn will do: the next one is not far.
            let is_over = held.core().member.as_ref().is_none_or(|member| member.last_turn() >= until);
            if found.is_some() || is_over {
                return (held, found);
            }
            if !held.core().table.to_wake.is_empty() || self.is_wanted() {
                held = held.give_way();
            } else if !progress && !self.stays_awake(held.core()) {
                held = held.sleep(until, true);
            }
        }
    }

    /// The background thread, which has found nothing to do, on behalf of pending futures: whether to look again at once.
    pub(super) fn stays_awake_for_tasks(&self, core: &mut Core) -> bool {
        core.is_entrusted = core.is_entrusted && self.stays_awake(core);
        core.is_entrusted
    }

    /// Look for a frame for as long as the policy says; true if there is something to do.
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

    /// The node leaves, as abruptly as a process that dies: neighbours see the carrier go, everything here ends.
    pub(super) fn leave(&self) {
        let mut held = self.hold();
        let core = held.core();
        core.has_left = true;
        let member = core.member.take();
        core.table.end_all();
        core.wake_those_awaiting_room();
        let activities = core.activities.take_all();
        core.standby.drain(..).for_each(|waker| core.table.to_wake.push(waker));
        self.wake_from_rest();
        self.bell.arm();
        self.bell.ring();
        drop(held);
        drop((member, activities));
    }
}

/// A parked thread as a waker.
struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
