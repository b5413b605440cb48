//! A guard of the node's lock, and the choice of the thread that gets the next doorbell when it is released.
//!
//! All holders of the lock have a [`Held`]. Its release first chooses the thread that listens from now on, and then wakes the threads that were
//! served, without the lock. All forms of sleep are in this file, because a thread that sleeps releases the lock.
//!
//! The file does not depend on the work that is done under the lock.

use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use rackloom_protocol::Instant;
use rustix::thread::sched_yield;

use super::core::{Background, Core};
use super::node_engine::Engine;
use crate::biased_lock::{BiasToken, Inside};

/// Longest sleep at the doorbell, in nanoseconds. It bounds the delay of events that ring no doorbell, for an idle node.
const SLEEP_NS: u64 = 100_000_000;
/// Time until the background thread first checks that a polled node still is polled. A frame may wait this long when the visits
/// stop. Waking a thread on another processor takes as long.
const REST_MIN: Duration = Duration::from_micros(100);
/// Time between the checks of a node that has been polled for long. Each check takes some 40 us of a processor in a virtual machine, where
/// the host handles timers: mostly of the processor that runs the polling thread.
const REST_MAX: Duration = Duration::from_millis(2);
/// Time after a pause of the polls for which the background thread listens beside further polls. Pauses that follow one another within it cost no
/// wake-up.
const LISTENING_NS: u64 = 10_000_000;
/// Number of visits while the background thread sleeps at the doorbell, after which the thread is woken to see that the node is attended.
const VISITS_UNTIL_POLLED: u32 = 8;

/// Kind of the thread that holds the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fabric) enum Role {
    Visitor,
    /// A task that polls a future.
    Task,
    Background,
}

impl Engine {
    /// Takes the lock. A driver that holds it releases it after its current poll.
    pub(in crate::fabric) fn hold(&self) -> Held<'_> {
        self.hold_as(Role::Visitor)
    }

    /// Takes the lock for the background thread, whose polls are no visits.
    pub(in crate::fabric) fn hold_in_background(&self) -> Held<'_> {
        self.background.get_or_init(std::thread::current);
        self.hold_as(Role::Background)
    }

    /// Takes the lock for the poll of a future, which is no visit.
    pub(in crate::fabric) fn hold_for_task(&self) -> Held<'_> {
        self.hold_as(Role::Task)
    }

    /// Enters as the owner of the bias: without the lock, unless another thread is inside.
    #[inline]
    pub(in crate::fabric) fn hold_as_owner<'e>(&'e self, token: &'e mut BiasToken) -> Held<'e> {
        self.held(Role::Visitor, self.core.enter_as_owner(token))
    }

    pub(in crate::fabric) fn hold_as(&self, role: Role) -> Held<'_> {
        self.held(role, self.lock())
    }

    #[inline(always)]
    fn held<'e>(&'e self, role: Role, core: Inside<'e, Core>) -> Held<'e> {
        if core.sleepers.count > 0 {
            self.bell.disarm();
        }
        Held::new(self, role, core)
    }
}

/// Guard of the lock. It is released only after the choice of the thread that listens.
pub(in crate::fabric) struct Held<'e> {
    engine: &'e Engine,
    role: Role,
    core: Option<Inside<'e, Core>>,
}

impl<'e> Held<'e> {
    #[inline(always)]
    fn new(engine: &'e Engine, role: Role, core: Inside<'e, Core>) -> Self {
        Self { engine, role, core: Some(core) }
    }

    #[inline(always)]
    pub(in crate::fabric) fn core(&mut self) -> &mut Core {
        self.core.as_deref_mut().expect("the lock is held until `self` is dropped")
    }

    /// Releases the lock for a moment, wakes the threads that were served, and takes the lock again.
    pub(in crate::fabric) fn yield_lock(self) -> Self {
        let (engine, role) = (self.engine, self.role);
        let contended = engine.is_wanted();
        drop(self);
        if contended {
            sched_yield();
        }
        engine.hold_as(role)
    }

    /// Hands a pending future over to the background thread, which drives on its behalf at once and not after its next check.
    pub(in crate::fabric) fn delegate(mut self) {
        let engine = self.engine;
        let core = self.core();
        core.is_delegated = true;
        let is_resting = core.background.end_rest();
        let is_asleep = core.sleepers.count > 0 && !core.has_driver;
        drop(self);
        if is_resting {
            engine.wake_from_rest();
        } else if is_asleep {
            engine.bell.arm();
            engine.bell.ring();
        }
    }

    /// Sleeps at the doorbell without the lock, at most until `until`.
    pub(in crate::fabric) fn sleep(mut self, until: Instant, as_driver: bool) -> Self {
        let (engine, role) = (self.engine, self.role);
        let now = engine.clock.now();
        let core = self.core();
        if core.member.is_none() {
            return self;
        }
        core.prepare_sleep();
        let due = core.next_poll(now).min(until).min(now + SLEEP_NS);
        engine.bell.arm();
        if core.is_ready() || due <= now {
            engine.bell.disarm();
            return self;
        }
        core.sleepers.until = if core.sleepers.count > 0 { core.sleepers.until.min(due) } else { due };
        core.sleepers.count += 1;
        // A thread that was woken before, and does not run yet, may find the doorbell armed and sleep on.
        core.sleepers.is_called = false;
        if as_driver {
            core.driver_asleep = Some(core.table.ended_count);
        }
        drop(self.core.take());
        engine.bell.sleep(due.since(now));
        let mut held = engine.hold_as(role);
        let core = held.core();
        core.sleepers.count -= 1;
        core.sleepers.is_called = false;
        if as_driver {
            core.driver_asleep = None;
        }
        engine.bell.disarm();
        held
    }

    /// Waits until the background thread is woken.
    pub(in crate::fabric) fn stand_aside(mut self) -> Self {
        let (engine, role) = (self.engine, self.role);
        self.core().background = Background::Aside;
        drop(self);
        std::thread::park_timeout(Duration::from_nanos(SLEEP_NS));
        let mut held = engine.hold_as(role);
        held.core().background = Background::Active;
        held
    }

    /// Leaves the node to its visitors while their visits continue, without taking the lock meanwhile. Visits that have gone on for some
    /// time are expected to go on for as long again.
    pub(in crate::fabric) fn rest(mut self) -> Self {
        let (engine, role) = (self.engine, self.role);
        let core = self.core();
        core.background = Background::Resting;
        engine.must_end_rest.store(false, Ordering::Relaxed);
        let longest = core.silence_max().clamp(REST_MIN, REST_MAX);
        let mut rest = core.rest.clamp(REST_MIN, longest);
        drop(self);
        loop {
            std::thread::park_timeout(rest);
            if engine.must_end_rest.load(Ordering::Relaxed) || !engine.take_was_polled() {
                break;
            }
            rest = next_rest(rest, longest);
        }
        let mut held = engine.hold_as(role);
        let core = held.core();
        core.background = Background::Active;
        if core.has_driver {
            // The driver has let this thread in, which looks like a visit. It drove all the time, and wakes this thread when it stops.
            engine.take_was_polled();
            core.rest = rest;
        } else {
            core.rest = REST_MIN;
        }
        held
    }

    /// Releases the lock for a thread that stops polling the node. Wakes the background thread, which need not detect that itself.
    pub(in crate::fabric) fn stop_polling(mut self) {
        let engine = self.engine;
        // The background thread may have been woken by visits and not run yet. It must not rest because of them.
        engine.take_was_polled();
        let is_resting = self.core().background.end_rest();
        drop(self);
        if is_resting {
            engine.wake_from_rest();
        }
    }

    /// Releases the lock for a thread that pauses its polls and will poll again soon.
    pub(in crate::fabric) fn pause_polls(mut self) {
        let engine = self.engine;
        if engine.has_spare_processor {
            self.core().listens_until = engine.clock.now() + LISTENING_NS;
        }
        self.stop_polling();
    }

    /// Chooses the thread that gets the next frame: the driver if it is awake, else a thread that sleeps at the doorbell, else a parked thread.
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
            if core.background == Background::Aside && role != Role::Background {
                core.background = Background::Active;
                engine.call_background();
                return;
            }
        }
        // A thread that was woken checks everything when it runs. Waking it again would cost a system call each time.
        if core.sleepers.count == 0 || core.sleepers.is_called {
            return;
        }
        if role == Role::Visitor && core.has_polled && !core.has_driver {
            core.visits += 1;
            if core.visits > VISITS_UNTIL_POLLED {
                // The thread finds the node polled and does not arm the doorbell.
                core.visits = 0;
                core.sleepers.is_called = true;
                engine.bell.arm();
                engine.bell.ring();
                return;
            }
        }
        engine.bell.arm();
        let (now, until) = (engine.clock.now(), core.sleepers.until);
        if served || core.member.is_none() || core.is_ready() || core.next_poll(now) < until {
            core.sleepers.is_called = true;
            engine.bell.ring();
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.core.is_none() {
            return;
        }
        if self.role == Role::Visitor && self.core().has_polled {
            self.engine.was_polled.store(true, Ordering::Relaxed);
        }
        self.settle();
        let core = self.core();
        core.has_polled = false;
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

/// Returns the time until the next check of a polled node.
fn next_rest(rest: Duration, longest: Duration) -> Duration {
    longest.min(rest * 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_polling_is_checked_rarely_and_never_later_than_its_duration() {
        let (mut was_polled, mut rest, mut looks) = (Duration::ZERO, REST_MIN, 0);
        while was_polled < Duration::from_secs(1) {
            assert!(rest <= was_polled + REST_MIN && rest <= REST_MAX);
            was_polled += rest;
            looks += 1;
            rest = next_rest(rest, REST_MAX);
        }
        assert!(looks <= 510, "{looks} looks in a second");
    }
}
