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
/// After how long the background thread looks for the first time whether an attended node still is. This is also how long a frame may
/// wait when the visits stop; waking a thread on another processor takes as long.
const REST_MIN: Duration = Duration::from_micros(100);
/// The same for a node that has been attended for long. Each look takes some 40 us of a processor in a virtual machine, where a timer is a
/// matter for the host: mostly of the very processor of the thread that attends to the node.
const REST_MAX: Duration = Duration::from_millis(2);
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
            engine.wake_from_rest();
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

    /// Leave the node to those who visit it, as long as they do, and do not touch the lock meanwhile. Who has come for some time is
    /// believed to come for as long again.
    pub(super) fn rest(mut self) -> Self {
        let (engine, role) = (self.engine, self.role);
        let core = self.core();
        core.is_resting = true;
        let longest = core.patience_of_peers().clamp(REST_MIN, REST_MAX);
        let mut rest = core.rest.clamp(REST_MIN, longest);
        drop(self);
        loop {
            std::thread::park_timeout(rest);
            if !engine.is_attended() {
                break;
            }
            rest = next_rest(rest, longest);
        }
        let mut held = engine.hold_as(role);
        let core = held.core();
        core.is_resting = false;
        if core.has_driver {
            // He has let this thread in, which looks like a visit; but he has been here all the time, and says when he goes.
            engine.is_attended();
            core.rest = rest;
        } else {
            core.rest = REST_MIN;
        }
        held
    }

    /// Who has attended to the node goes, and says so: the background thread need not find it out.
    pub(super) fn part(mut self) {
        let engine = self.engine;
        let is_resting = std::mem::take(&mut self.core().is_resting);
        drop(self);
        if is_resting {
            engine.wake_from_rest();
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

/// For how long an attended node is left alone next.
fn next_rest(rest: Duration, longest: Duration) -> Duration {
    longest.min(rest * 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_attends_for_long_is_looked_at_rarely_and_believed_for_no_longer_than_he_has_come() {
        let (mut attended, mut rest, mut looks) = (Duration::ZERO, REST_MIN, 0);
        while attended < Duration::from_secs(1) {
            assert!(rest <= attended + REST_MIN && rest <= REST_MAX);
            attended += rest;
            looks += 1;
            rest = next_rest(rest, REST_MAX);
        }
        assert!(looks <= 510, "{looks} looks in a second");
    }
}
