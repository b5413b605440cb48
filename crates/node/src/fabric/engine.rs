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
//! Every release of the lock goes through [`Held`], which settles who hears the doorbell next. Wakers run without the
//! lock. This file knows no kinds of operations.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use rackloom_protocol::{Endpoint, Instant, NodeId, RegionId};
use rustix::thread::sched_yield;

use super::activity::Activities;
use super::bytes::RegionMemory;
use super::error::Error;
use super::order::Company;
use super::table::Table;
use crate::clock::Clock;
use crate::favoured::{Favour, Favoured, Inside};
use crate::runtime::Runtime;
use crate::waiting::WaitPolicy;
use crate::wires::Doorbell;

/// Longest time that a thread parks while another drives: only a net, it is woken before.
const PARK: Duration = Duration::from_millis(10);
/// Longest sleep at the doorbell: also how soon a node at rest notices what nobody rings for.
const SLEEP_NS: u64 = 100_000_000;
/// How often the background thread looks whether an attended node still is. This is also how long a frame may wait when the
/// visits stop; waking a thread on another processor takes as long.
const REST: Duration = Duration::from_micros(100);
/// Visits, while the background thread sleeps at the doorbell, after which it is told that the node is attended.
const VISITS_UNTIL_ATTENDED: u32 = 8;
/// A visitor who sends looks for frames as well if nobody has for so long.
const UNHEARD_NS_MAX: u64 = 10_000;

pub(super) type Member = Runtime<Endpoint, RegionMemory>;

/// What the lock protects.
#[derive(Debug)]
pub(super) struct Core {
    /// `None` once the node has left.
    pub(super) member: Option<Box<Member>>,
    pub(super) table: Table,
    /// Somebody drives.
    pub(super) has_driver: bool,
    /// The driver sleeps at the doorbell, since so many operations had ended.
    pub(super) driver_asleep: Option<u64>,
    /// Who waits while somebody else drives.
    pub(super) standby: Vec<Waker>,
    /// Threads asleep at the doorbell, and until when at most.
    asleep: usize,
    asleep_until: Instant,
    /// They have been called and have not come yet.
    is_called: bool,
    /// The background thread waits to be needed.
    pub(super) is_aside: bool,
    /// The background thread is about to look whether visits go on.
    is_resting: bool,
    /// A future is pending, and the background thread has not slept since.
    is_entrusted: bool,
    /// Visits since the background thread went to sleep at the doorbell.
    visits: u32,
    /// A turn has been made since the lock was taken.
    has_turned: bool,
    pub(super) has_left: bool,
    /// A [`super::Driver`] is about.
    pub(super) has_handler: bool,
    /// Since the last turn.
    pub(super) company: Company,
    pub(super) activities: Activities,
    /// Turns so far, and those of the background thread among them.
    pub(super) turns: u64,
    pub(super) background_turns: u64,
}

/// One node.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) node: NodeId,
    core: Favoured<Core>,
    /// Threads that want the lock.
    wanted: AtomicUsize,
    bell: Doorbell,
    /// A visitor has made a turn since the background thread looked last.
    attended: AtomicBool,
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
        let core = Core {
            member: Some(Box::new(member)),
            table: Table::default(),
            has_driver: false,
            driver_asleep: None,
            standby: Vec::new(),
            asleep: 0,
            asleep_until: Instant::NEVER,
            is_called: false,
            is_aside: false,
            is_resting: false,
            is_entrusted: false,
            visits: 0,
            has_turned: false,
            has_left: false,
            has_handler: false,
            company: Company::default(),
            activities: Activities::default(),
            turns: 0,
            background_turns: 0,
        };
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

    /// Take it for one act.
    #[inline(always)]
    pub(super) fn visit_favoured<T>(&self, favour: &mut Favour, act: impl FnOnce(&mut Core) -> T) -> T {
        self.core.visit_favoured(favour, |core| act(self.held(Role::Visitor, core).core()))
    }

    fn hold_as(&self, role: Role) -> Held<'_> {
        self.held(role, self.lock())
    }

    #[inline(always)]
    fn held<'e>(&'e self, role: Role, core: Inside<'e, Core>) -> Held<'e> {
        if core.asleep > 0 {
            self.bell.disarm();
        }
        Held { engine: self, role, core: Some(core) }
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

    fn call_background(&self) {
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
        let activities = core.activities.take_all();
        core.standby.drain(..).for_each(|waker| core.table.to_wake.push(waker));
        self.call_background();
        self.bell.arm();
        self.bell.ring();
        drop(held);
        drop((member, activities));
    }
}

impl Core {
    /// One turn. Returns whether anything happened.
    pub(super) fn turn(&mut self) -> bool {
        self.turns += 1;
        self.has_turned = true;
        self.company = Company::default();
        let Self { member: Some(member), table, .. } = self else { return false };
        let before = table.ended_count;
        let now = member.look_at_stopwatch();
        let progress = member.turn(now, &mut |event| table.hear(event));
        if table.ended_count != before {
            member.memory_mut().sweep(&table.uses);
        }
        if !self.activities.is_empty() {
            self.advance_activities();
        }
        progress
    }

    /// A turn of somebody who has only come to look, unless somebody else is awake and makes one anyway.
    pub(super) fn visit(&mut self) {
        if !self.is_driven() {
            self.turn();
        }
    }

    /// What a look finds, at once or after a visit.
    pub(super) fn visit_for<T>(&mut self, mut look: impl FnMut(&mut Self) -> Option<T>) -> Option<T> {
        look(self).or_else(|| {
            self.visit();
            look(self)
        })
    }

    /// The same as a visit for somebody who has only come to send: what has arrived in the last few microseconds can wait for the one
    /// who asks for it.
    pub(super) fn visit_to_send(&mut self) {
        if self.is_driven() {
            return;
        }
        self.company = Company::default();
        let Self { member: Some(member), table, activities, .. } = self else { return };
        self.has_turned = true;
        let now = member.look_at_stopwatch();
        if activities.is_empty() && now < member.last_receive() + UNHEARD_NS_MAX {
            member.finish(now, &mut |event| table.hear(event));
        } else {
            self.turn();
        }
    }

    /// When so much time will have passed; `None` once the node has left.
    pub(super) fn moment_in(&mut self, patience: Duration) -> Option<Instant> {
        let patience_ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        self.member.as_mut().map(|member| member.look_at_stopwatch() + patience_ns)
    }

    /// Whether there is nothing more to wait for: the node has left, or it is late.
    fn is_over(&mut self, until: Instant) -> bool {
        let Some(member) = &mut self.member else { return true };
        self.has_left || until != Instant::NEVER && member.look_at_stopwatch() >= until
    }

    /// What the core waits for, one line each.
    pub(super) fn waiting_for(&self) -> Vec<String> {
        self.member.as_ref().map_or_else(Vec::new, |member| member.member().waiting_for())
    }

    /// Whether a region without a handle is still there, for operations that use it.
    pub(super) fn keeps_retired(&mut self, region: RegionId) -> bool {
        let Self { member: Some(member), table, .. } = self else { return false };
        member.memory_mut().sweep(&table.uses);
        member.memory_mut().is_retired(region)
    }

    pub(super) fn member(&mut self) -> Result<&mut Member, Error> {
        self.member.as_deref_mut().ok_or(Error::Closed)
    }
}

/// Who has the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Visitor,
    /// The poll of a future.
    Task,
    Background,
}

/// The lock, which is only ever released after it is settled who listens.
pub(super) struct Held<'e> {
    engine: &'e Engine,
    role: Role,
    core: Option<Inside<'e, Core>>,
}

impl<'e> Held<'e> {
    #[inline(always)]
    pub(super) fn core(&mut self) -> &mut Core {
        self.core.as_deref_mut().expect("the lock is held until `self` is dropped")
    }

    /// Let others have the lock for a moment, wake whom this one has served, and take it again.
    pub(super) fn give_way(self) -> Self {
        let (engine, role) = (self.engine, self.role);
        let contended = engine.is_wanted();
        drop(self);
        if contended {
            sched_yield();
        }
        engine.hold_as(role)
    }

    /// A future stays pending: the background thread drives on its behalf, at once and not when it next looks.
    pub(super) fn entrust(mut self) {
        let engine = self.engine;
        let core = self.core();
        core.is_entrusted = true;
        let is_resting = std::mem::take(&mut core.is_resting);
        let is_asleep = core.asleep > 0 && !core.has_driver;
        drop(self);
        if is_resting {
            engine.attended.store(false, Ordering::Relaxed);
            engine.call_background();
        } else if is_asleep {
            engine.bell.arm();
            engine.bell.ring();
        }
    }

    /// Sleep at the doorbell without the lock, at most until `until`.
    pub(super) fn sleep(mut self, until: Instant, as_driver: bool) -> Self {
        let (engine, role) = (self.engine, self.role);
        let now = engine.clock.now();
        let core = self.core();
        let Some(member) = &mut core.member else { return self };
        let due = member.next_turn(now).min(until).min(now + SLEEP_NS);
        engine.bell.arm();
        if member.ready() || due <= now {
            engine.bell.disarm();
            return self;
        }
        core.asleep_until = if core.asleep > 0 { core.asleep_until.min(due) } else { due };
        core.asleep += 1;
        // Who was called before and has not quite woken may find the bell armed, and sleep on.
        core.is_called = false;
        if as_driver {
            core.driver_asleep = Some(core.table.ended_count);
        }
        drop(self.core.take());
        engine.bell.sleep(due.since(now));
        let mut held = engine.hold_as(role);
        let core = held.core();
        core.asleep -= 1;
        core.is_called = false;
        if as_driver {
            core.driver_asleep = None;
        }
        engine.bell.disarm();
        held
    }

    /// Wait until the background thread is called.
    pub(super) fn stand_aside(mut self) -> Self {
        let (engine, role) = (self.engine, self.role);
        self.core().is_aside = true;
        drop(self);
        std::thread::park_timeout(Duration::from_nanos(SLEEP_NS));
        let mut held = engine.hold_as(role);
        held.core().is_aside = false;
        held
    }

    /// Leave the node to those who visit it, as long as they do, and do not touch the lock meanwhile.
    pub(super) fn rest(mut self) -> Self {
        let (engine, role) = (self.engine, self.role);
        self.core().is_resting = true;
        drop(self);
        loop {
            std::thread::park_timeout(REST);
            if !engine.is_attended() {
                let mut held = engine.hold_as(role);
                held.core().is_resting = false;
                return held;
            }
        }
    }

    /// Who hears the next frame? The driver, if it is awake; else who sleeps at the doorbell; else somebody is called.
    fn settle(&mut self) {
        let (engine, role) = (self.engine, self.role);
        let core = self.core();
        let served = core.driver_asleep.is_some_and(|count| count != core.table.ended_count);
        if core.has_driver && core.driver_asleep.is_none() {
            return;
        }
        if !core.has_driver {
            if let Some(next) = core.standby.pop() {
                core.table.to_wake.push(next);
                return;
            }
            if core.is_aside && role != Role::Background {
                core.is_aside = false;
                engine.call_background();
                return;
            }
        }
        // Who has been called comes when it gets a processor, and looks at everything; calling again would cost a system call each time.
        if core.asleep == 0 || core.is_called {
            return;
        }
        if role == Role::Visitor && core.has_turned && !core.has_driver {
            core.visits += 1;
            if core.visits > VISITS_UNTIL_ATTENDED {
                // It finds the node attended and lets the bell be.
                core.visits = 0;
                core.is_called = true;
                engine.bell.arm();
                engine.bell.ring();
                return;
            }
        }
        engine.bell.arm();
        let (now, until) = (engine.clock.now(), core.asleep_until);
        let is_early = |member: &mut Box<Member>| member.ready() || member.next_turn(now) < until;
        if served || core.member.as_mut().is_none_or(is_early) {
            core.is_called = true;
            engine.bell.ring();
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.core.is_none() {
            return;
        }
        if self.role == Role::Visitor && self.core().has_turned {
            self.engine.attended.store(true, Ordering::Relaxed);
        }
        self.settle();
        let core = self.core();
        core.has_turned = false;
        if core.table.to_wake.is_empty() && !core.activities.has_ended() {
            self.core = None;
            return;
        }
        let to_wake = std::mem::take(&mut core.table.to_wake);
        let ended = core.activities.take_ended();
        self.core = None;
        drop(ended);
        to_wake.into_iter().for_each(Waker::wake);
    }
}

/// A parked thread as a waker.
struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
