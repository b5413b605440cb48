//! When to say "I live", and when the neighbour's silence means something.
//!
//! A neighbour is late after one interval and a half, and dead `miss_max` intervals after its last heartbeat; so death is
//! noticed within `((k-1)T + d, kT + d]` of the event. A member that was itself not running when a deadline passed (the
//! host stalled it) does not blame the neighbour: it grants one more interval and reads its queue first. And a member whose
//! own heartbeats leave late knows that its host is busy, so it waits for the neighbour's as much longer as its own were late
//! since the last one heard, at most twice as long in all. In virtual time nobody is late.
//!
//! All links of a member beat at the same instants, so that an idle member wakes once per interval, however many links it has.
//! The members of a rack beat one right after the other: a processor that idle members share is woken once per interval for all
//! of them, and each finds it awake and its caches warm. They do not beat at the very same instant, so that their order is always
//! the same and a neighbour's beat is never there one time and not yet there the next.

use crate::config::LinkTimers;
use crate::ids::NodeId;
use crate::time::Instant;

/// Members beat this part of the interval after one another: a few microseconds, less than one needs for its turn.
const STEPS_PER_INTERVAL: u64 = 1 << 14;
/// So many members follow one another; then it begins anew.
const STEPS: u64 = STEPS_PER_INTERVAL / 8;

/// One link's heartbeat clock.
#[derive(Clone, Copy, Debug)]
pub struct Heartbeats {
    interval_ns: u64,
    /// The member beats whenever the time is this much more than a multiple of the interval.
    phase_ns: u64,
    miss_max: u64,
    next_send: Instant,
    last_heard: Instant,
    /// How late this end's own heartbeats were since then, all together.
    late_ns: u64,
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
    /// Nothing sent or heard, at a port of `member`.
    #[must_use]
    pub const fn new(timers: &LinkTimers, member: NodeId) -> Self {
        let step_ns = timers.heartbeat_interval_ns / STEPS_PER_INTERVAL;
        Self {
            interval_ns: timers.heartbeat_interval_ns,
            phase_ns: step_ns * (member.0 as u64 % STEPS),
            miss_max: timers.heartbeat_miss_max as u64,
            next_send: Instant::ZERO,
            last_heard: Instant::ZERO,
            late_ns: 0,
            sent: 0,
            heard: 0,
        }
    }

    /// The neighbour has just become known: its silence counts from now.
    pub const fn start(&mut self, now: Instant) {
        self.last_heard = now;
        self.late_ns = 0;
        self.next_send = now;
    }

    /// A heartbeat came.
    pub const fn hear(&mut self, now: Instant, number: u32) {
        self.last_heard = now;
        self.late_ns = 0;
        self.heard = number;
    }

    /// Whether a heartbeat is due.
    #[must_use]
    pub fn send_due(&self, now: Instant) -> bool {
        now >= self.next_send
    }

    /// A heartbeat leaves; returns its number. The next one is due at the member's next instant.
    pub fn send(&mut self, now: Instant) -> u32 {
        self.late_ns = self.late_ns.saturating_add(now.since(self.next_send));
        let interval_ns = self.interval_ns.max(1);
        let since_beat_ns = (now.0 + (interval_ns - self.phase_ns)) % interval_ns;
        self.next_send = now + (interval_ns - since_beat_ns);
        self.sent = self.sent.wrapping_add(1);
        self.sent
    }

    /// What the silence means now.
    pub fn judge(&mut self, now: Instant) -> Silence {
        let dead_at = self.dead_at();
        if now < dead_at {
            return if now >= self.late_at() { Silence::Late } else { Silence::OnTime };
        }
        if now.since(dead_at) > self.interval_ns / 2 {
            let excused = self.interval_ns * (self.miss_max - 1);
            self.last_heard = Instant(now.0.saturating_sub(excused));
            self.late_ns = 0;
            return Silence::Late;
        }
        Silence::Dead
    }

    fn dead_at(&self) -> Instant {
        let patience_ns = self.interval_ns * self.miss_max;
        self.last_heard + patience_ns + self.late_ns.min(patience_ns)
    }

    fn late_at(&self) -> Instant {
        self.last_heard + (self.interval_ns + self.interval_ns / 2)
    }

    /// When `judge` next changes its mind. `suspect`: lateness has been noticed already.
    #[must_use]
    pub fn deadline(&self, suspect: bool) -> Instant {
        let dead_at = self.dead_at();
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
    use alloc::vec::Vec;

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
        let mut heartbeats = Heartbeats::new(&TIMERS, NodeId(3));
        heartbeats.hear(Instant(1000), 1);
        assert_eq!(heartbeats.judge(Instant(1149)), Silence::OnTime);
        assert_eq!(heartbeats.judge(Instant(1150)), Silence::Late);
        assert_eq!(heartbeats.judge(Instant(1499)), Silence::Late);
        assert_eq!(heartbeats.judge(Instant(1500)), Silence::Dead);
    }

    #[test]
    fn a_member_that_stalled_does_not_blame_its_neighbour() {
        let mut heartbeats = Heartbeats::new(&TIMERS, NodeId(3));
        heartbeats.hear(Instant(1000), 1);
        assert_eq!(heartbeats.judge(Instant(9000)), Silence::Late);
        assert_eq!(heartbeats.judge(Instant(9099)), Silence::Late);
        assert_eq!(heartbeats.judge(Instant(9100)), Silence::Dead);
    }

    #[test]
    fn a_member_whose_own_beats_are_late_waits_as_much_longer() {
        let mut heartbeats = Heartbeats::new(&TIMERS, NodeId(0));
        heartbeats.start(Instant(1000));
        heartbeats.hear(Instant(1000), 1);
        for due in [1000, 1100, 1200, 1300, 1400] {
            assert_eq!(heartbeats.next_send(), Instant(due));
            assert_ne!(heartbeats.judge(Instant(due + 30)), Silence::Dead);
            heartbeats.send(Instant(due + 30));
        }
        assert_eq!(heartbeats.deadline(true), Instant(1650));
        assert_eq!(heartbeats.judge(Instant(1649)), Silence::Late);
        assert_eq!(heartbeats.judge(Instant(1650)), Silence::Dead);
        heartbeats.hear(Instant(1660), 2);
        assert_eq!(heartbeats.deadline(true), Instant(2160), "what was late before does not count");
    }

    #[test]
    fn however_late_its_own_beats_are_nobody_waits_longer_than_twice() {
        let mut heartbeats = Heartbeats::new(&TIMERS, NodeId(0));
        heartbeats.start(Instant(1000));
        heartbeats.hear(Instant(1000), 1);
        heartbeats.send(Instant(1900));
        assert_eq!(heartbeats.deadline(true), Instant(2000));
    }

    #[test]
    fn links_that_come_up_at_different_times_beat_together_and_never_too_rarely() {
        let beats = |started: u64| {
            let mut heartbeats = Heartbeats::new(&TIMERS, NodeId(3));
            heartbeats.start(Instant(started));
            let mut instants = Vec::new();
            while instants.len() < 5 {
                let at = heartbeats.next_send();
                assert!(heartbeats.send_due(at));
                heartbeats.send(at);
                assert!(heartbeats.next_send().since(at) <= TIMERS.heartbeat_interval_ns);
                instants.push(at.0);
            }
            instants.split_off(2)
        };
        let (first, second) = (beats(1003), beats(1071));
        assert_eq!(first, second);
        assert!(first.windows(2).all(|pair| pair[1] - pair[0] == 100), "{first:?}");
    }

    #[test]
    fn a_late_beat_does_not_move_the_next_one() {
        let mut heartbeats = Heartbeats::new(&TIMERS, NodeId(3));
        heartbeats.start(Instant(1000));
        heartbeats.send(Instant(1000));
        let due = heartbeats.next_send();
        heartbeats.send(due + 30);
        assert_eq!(heartbeats.next_send(), due + 100);
        heartbeats.send(heartbeats.next_send() + 250);
        assert_eq!(heartbeats.next_send(), due + 400, "what was slept through is not made up for");
    }

    #[test]
    fn members_beat_one_right_after_the_other() {
        let timers = LinkTimers { heartbeat_interval_ns: 100_000_000, ..TIMERS };
        let instant = |member| {
            let mut heartbeats = Heartbeats::new(&timers, NodeId(member));
            heartbeats.start(Instant(1000));
            heartbeats.send(Instant(99_000_000));
            heartbeats.next_send().0
        };
        let instants: Vec<_> = (0..1024).map(instant).collect();
        assert!(instants.windows(2).all(|pair| (1..20_000).contains(&(pair[1] - pair[0]))), "{instants:?}");
        assert!(instants[1023] - instants[0] < timers.heartbeat_interval_ns / 8);
    }
}
