//! When to say "I live", and when the neighbour's silence means something.
//!
//! A neighbour is late after one interval and a half, and dead `miss_max` intervals after its last heartbeat; so death is
//! noticed within `((k-1)T + d, kT + d]` of the event. A member that was itself not running when a deadline passed (the
//! host stalled it) does not blame the neighbour: it grants one more interval and reads its queue first.

use crate::config::LinkTimers;
use crate::time::Instant;

/// One link's heartbeat clock.
#[derive(Clone, Copy, Debug)]
pub struct Heartbeats {
    interval_ns: u64,
    miss_max: u64,
    next_send: Instant,
    last_heard: Instant,
    /// Number of the last heartbeat sent.
    pub sent: u32,
    /// Number of the last heartbeat heard.
    pub heard: u32,
}

/// What the silence means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Nothing yet.
    OnTime,
    /// A heartbeat is overdue.
    Late,
    /// The neighbour is gone.
    Dead,
}

impl Heartbeats {
    /// Nothing sent or heard.
    #[must_use]
    pub const fn new(timers: &LinkTimers) -> Self {
        Self {
            interval_ns: timers.heartbeat_interval_ns,
            miss_max: timers.heartbeat_miss_max as u64,
            next_send: Instant::ZERO,
            last_heard: Instant::ZERO,
            sent: 0,
            heard: 0,
        }
    }

    /// The neighbour has just become known: its silence counts from now.
    pub const fn start(&mut self, now: Instant) {
        self.last_heard = now;
        self.next_send = now;
    }

    /// A heartbeat came.
    pub const fn hear(&mut self, now: Instant, number: u32) {
        self.last_heard = now;
        self.heard = number;
    }

    /// Whether a heartbeat is due.
    #[must_use]
    pub fn send_due(&self, now: Instant) -> bool {
        now >= self.next_send
    }

    /// A heartbeat leaves; returns its number. The rhythm is kept unless the member stalled.
    pub fn send(&mut self, now: Instant) -> u32 {
        let kept = self.next_send + self.interval_ns;
        self.next_send = if kept > now { kept } else { now + self.interval_ns };
        self.sent = self.sent.wrapping_add(1);
        self.sent
    }

    /// What the silence means now.
    pub fn judge(&mut self, now: Instant) -> Silence {
        let dead_at = self.last_heard + self.interval_ns * self.miss_max;
        if now < dead_at {
            return if now >= self.late_at() { Silence::Late } else { Silence::OnTime };
        }
        if now.since(dead_at) > self.interval_ns / 2 {
            let excused = self.interval_ns * (self.miss_max - 1);
            self.last_heard = Instant(now.0.saturating_sub(excused));
            return Silence::Late;
        }
        Silence::Dead
    }

    fn late_at(&self) -> Instant {
        self.last_heard + (self.interval_ns + self.interval_ns / 2)
    }

    /// When `judge` next changes its mind. `suspect`: lateness has been noticed already.
    #[must_use]
    pub fn deadline(&self, suspect: bool) -> Instant {
        let dead_at = self.last_heard + self.interval_ns * self.miss_max;
        if suspect { dead_at } else { self.late_at().min(dead_at) }
    }

    /// When the next heartbeat must leave.
    #[must_use]
    pub const fn next_send(&self) -> Instant {
        self.next_send
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMERS: LinkTimers = LinkTimers {
        heartbeat_interval_ns: 100,
        heartbeat_miss_max: 5,
        hold_down_ns: 1000,
        up_count: 3,
        hello_interval_ns: 10,
    };

    #[test]
    fn silence_is_late_after_one_and_a_half_and_dead_after_k_intervals() {
        let mut heartbeats = Heartbeats::new(&TIMERS);
        heartbeats.hear(Instant(1000), 1);
        assert_eq!(heartbeats.judge(Instant(1149)), Silence::OnTime);
        assert_eq!(heartbeats.judge(Instant(1150)), Silence::Late);
        assert_eq!(heartbeats.judge(Instant(1499)), Silence::Late);
        assert_eq!(heartbeats.judge(Instant(1500)), Silence::Dead);
    }

    #[test]
    fn a_member_that_stalled_does_not_blame_its_neighbour() {
        let mut heartbeats = Heartbeats::new(&TIMERS);
        heartbeats.hear(Instant(1000), 1);
        assert_eq!(heartbeats.judge(Instant(9000)), Silence::Late);
        assert_eq!(heartbeats.judge(Instant(9099)), Silence::Late);
        assert_eq!(heartbeats.judge(Instant(9100)), Silence::Dead);
    }
}
