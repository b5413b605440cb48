//! The lock in somebody's hands, and who hears the doorbell when it is released.
//!
//! Whoever has the lock has it as a [`Held`], which is released in one way only: it is settled who listens from now on, and then those who have been
//! served are woken, without the lock. All ways to sleep are here, because who sleeps releases the lock.
//!
//! It decides nothing about what is done with the lock in hand.

use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use rackloom_protocol::Instant;
use rustix::thread::sched_yield;

use super::core::{Core, Member};
use super::engine::Engine;
use crate::favoured::Inside;

/// Longest sleep at the doorbell: also how soon a node at rest notices what nobody rings for.
const SLEEP_NS: u64 = 100_000_000;
/// How often the background thread looks whether an attended node still is. This is also how long a frame may wait when the
/// visits stop; waking a thread on another processor takes as long.
const REST: Duration = Duration::from_micros(100);
/// Visits, while the background thread sleeps at the doorbell, after which it is told that the node is attended.
const VISITS_UNTIL_ATTENDED: u32 = 8;

/// Who has the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
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
    pub(super) fn new(engine: &'e Engine, role: Role, core: Inside<'e, Core>) -> Self {
        Self { engine, role, core: Some(core) }
    }

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
