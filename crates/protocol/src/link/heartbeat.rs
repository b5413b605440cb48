//! Heartbeat timing: when to send one, and when a neighbour is overdue or dead.
//!
//! A neighbour is late after one and a half intervals, and dead `miss_max` intervals after its last heartbeat. Death
//! is therefore detected within `((k-1)T + d, kT + d]` of the event. A member that was not running when a deadline
//! passed (its host stalled) grants one more interval and reads its queue first. A member whose own heartbeats leave
//! late runs on a busy host: it extends the neighbour's deadline by the lateness of its own heartbeats since the last
//! received one, at most to twice the usual wait. A member that notices an overdue heartbeat late extends the
//! deadline by that lateness, because it cannot have read what arrived meanwhile. In virtual time no member is late.
//!
//! A neighbour on the same host may be alive without a processor. The engine measures the time that it waits for one
//! and passes it to [`Heartbeats::extend_timeout`]; this time is not silence. Such evidence delays a death and never causes
//! one.
//!
//! A link without other traffic may rest: its heartbeats are several intervals apart, and each states when the next
//! one is due. If that one does not come, the neighbour is late as usual and the link becomes suspect. The heartbeats
//! of a suspect link wake a resting neighbour and are answered at once, and the silence that follows must last the
//! usual number of intervals.
//!
//! All links of a member send heartbeats at the same instants, so that an idle member wakes once per interval,
//! however many links it has. The members of a rack use phases of the interval in a fixed order. Members with
//! consecutive numbers, which often are neighbours, are more than a fifth of the interval apart, which is longer than
//! usual scheduling delays. So a neighbour's heartbeat has always, or never yet, arrived when a member polls, and it
//! need not poll again. (Members whose phases were a few microseconds apart overtook one another and polled twice as
//! often: `docs/measuring.md`.)

use crate::config::LinkTimers;
use crate::ids::NodeId;
use crate::time::Instant;

/// Number of phases in the interval: a millisecond apart, or nearly, with the usual interval.
const PHASES: u64 = 96;
/// Phases from one member to the next. It has no divisor in common with `PHASES`, so that all are used. Members whose
/// numbers differ by little, or by a power of two, are far apart.
const PHASES_TO_NEXT: u64 = 37;
/// Parts of the interval by which members of equal phase differ: small enough that the largest rack fits into one
/// phase.
const SHARERS_PER_INTERVAL: u64 = 1 << 18;

/// Heartbeat state of one link.
#[derive(Clone, Copy, Debug)]
pub struct Heartbeats {
    interval_ns: u64,
    /// Offset of this member's heartbeats from multiples of the interval, in nanoseconds.
    phase_ns: u64,
    miss_max: u64,
    next_send: Instant,
    last_received: Instant,
    /// Time of the last heartbeat. Unlike `last_received`, it is not moved after this member itself was not running.
    silent_since: Instant,
    /// Intervals between heartbeats of a resting link.
    rest_max: u64,
    /// Intervals from the last heartbeat sent to the next one, as stated in it.
    resting: u64,
    /// Intervals from the last heartbeat received to the next one, as stated in it.
    promised: u64,
    /// Heartbeats of this link, sent and received.
    heartbeats_sent: u64,
    /// Other frames of this link, sent and received, when the last heartbeat left.
    traffic: u64,
    /// Sum of the lateness of this end's own heartbeats since the last received one, in nanoseconds.
    late_ns: u64,
    /// Part of the silence in which the neighbour had no processor, in nanoseconds.
    extension_ns: u64,
    /// Delay with which this end noticed that a heartbeat is overdue, in nanoseconds. `None` if it has not noticed
    /// yet.
    noticed_late_ns: Option<u64>,
    /// Number of the last heartbeat sent.
    pub sent: u32,
    /// Number of the last heartbeat received.
    pub received_number: u32,
}

/// A neighbour whose heartbeat is overdue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overdue {
    /// Time of its last heartbeat.
    pub since: Instant,
    /// Time from which its silence counts: later than `since` after this member itself was not running.
    pub counted_from: Instant,
    /// Time at which the link goes down without another heartbeat.
    pub dead_at: Instant,
}

/// State of a neighbour by the time since its last heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// No heartbeat is overdue.
    OnTime,
    /// A heartbeat is overdue.
    Late,
    /// The neighbour is considered dead.
    Dead,
}

impl Heartbeats {
    /// Returns the state of a link of `member` on which no heartbeat was sent or received.
    #[must_use]
    pub fn new(timers: &LinkTimers, member: NodeId) -> Self {
        Self {
            interval_ns: timers.heartbeat_interval_ns,
            phase_ns: phase_ns(timers.heartbeat_interval_ns, member),
            miss_max: timers.heartbeat_miss_max as u64,
            next_send: Instant::ZERO,
            last_received: Instant::ZERO,
            silent_since: Instant::ZERO,
            rest_max: u64::from(timers.rest()),
            resting: 1,
            promised: 1,
            heartbeats_sent: 0,
            traffic: 0,
            late_ns: 0,
            extension_ns: 0,
            noticed_late_ns: None,
            sent: 0,
            received_number: 0,
        }
    }

    /// Starts to measure the silence of a neighbour that has just become known.
    pub const fn start(&mut self, now: Instant) {
        self.last_received = now;
        self.silent_since = now;
        self.promised = 1;
        self.late_ns = 0;
        self.extension_ns = 0;
        self.noticed_late_ns = None;
        self.next_send = now;
    }

    /// Sets the part of the present silence that does not count, in nanoseconds: the neighbour was ready to run
    /// during that time and had no processor. The value is limited to the length of the silence. The next heartbeat
    /// resets it.
    pub fn extend_timeout(&mut self, now: Instant, extension_ns: u64) {
        self.extension_ns = extension_ns.min(now.since(self.last_received));
    }

    /// Returns the times of the present silence.
    #[must_use]
    pub fn overdue(&self) -> Overdue {
        Overdue { since: self.silent_since, counted_from: self.last_received, dead_at: self.dead_at() }
    }

    /// Records a received heartbeat, which states in how many `intervals` the next one follows. The rest of the plan
    /// limits that number.
    pub fn receive(&mut self, now: Instant, number: u32, intervals: u16) {
        self.last_received = now;
        self.silent_since = now;
        // The neighbour's number is input: it is limited, not asserted.
        self.promised = u64::from(intervals).clamp(1, self.rest_max);
        self.late_ns = 0;
        self.extension_ns = 0;
        self.noticed_late_ns = None;
        self.received_number = number;
        self.heartbeats_sent += 1;
    }

    /// Ends the rest of this link and makes a heartbeat due now, because a fault is possible.
    pub fn end_rest(&mut self, now: Instant) {
        if self.resting > 1 {
            self.send_soon(now);
        }
    }

    /// Makes a heartbeat due now, even if the link rests.
    pub fn send_soon(&mut self, now: Instant) {
        self.resting = 1;
        self.next_send = self.next_send.min(now);
    }

    /// Returns true if a heartbeat is due.
    #[must_use]
    pub fn send_due(&self, now: Instant) -> bool {
        now >= self.next_send
    }

    /// Returns true if only heartbeats have passed since the last one left. `frames` counts all frames sent and
    /// received on this link.
    #[must_use]
    pub fn is_quiet(&self, frames: u64) -> bool {
        frames.wrapping_sub(self.heartbeats_sent) == self.traffic
    }

    /// Records that a heartbeat leaves. Returns its number and the intervals until the next one: one, or several if
    /// the link is quiet and `may_rest` is true.
    pub fn send(&mut self, now: Instant, frames: u64, may_rest: bool) -> (u32, u16) {
        self.late_ns = self.late_ns.saturating_add(now.since(self.next_send));
        self.resting = if may_rest { self.rest_max } else { 1 };
        self.traffic = frames.wrapping_sub(self.heartbeats_sent);
        self.heartbeats_sent += 1;
        let span_ns = (self.interval_ns * self.resting).max(1);
        let since_heartbeat_ns = (now.0 + (span_ns - self.phase_ns)) % span_ns;
        self.next_send = now + (span_ns - since_heartbeat_ns);
        assert!(self.next_send > now, "the next heartbeat follows this one");
        self.sent = self.sent.wrapping_add(1);
        (self.sent, self.resting as u16)
    }

    /// Records when this end first notices an overdue heartbeat. Call it before [`Self::judge`], for links that are
    /// up.
    pub fn notice(&mut self, now: Instant) {
        let due = self.deadline(false);
        if now >= due {
            self.noticed_late_ns.get_or_insert(now.since(due));
        }
    }

    /// Returns the state of the neighbour at `now`.
    pub fn judge(&mut self, now: Instant) -> Silence {
        let dead_at = self.dead_at();
        if now < dead_at {
            return if self.is_late(now) { Silence::Late } else { Silence::OnTime };
        }
        if now.since(dead_at) > self.interval_ns / 2 {
            let expected_ns = self.interval_ns * (self.promised + self.miss_max - 2);
            self.last_received = Instant(now.0.saturating_sub(expected_ns));
            assert!(self.last_received >= self.silent_since, "a restart of the count only prolongs the wait");
            self.late_ns = 0;
            self.extension_ns = 0;
            self.noticed_late_ns = None;
            return Silence::Late;
        }
        Silence::Dead
    }

    /// Returns the time at which the neighbour is considered dead.
    #[must_use]
    pub fn dead_at(&self) -> Instant {
        let miss_ns = self.interval_ns * self.miss_max;
        let extended_ns =
            self.late_ns.min(miss_ns).max(self.extension_ns) + self.noticed_late_ns.unwrap_or(0);
        self.last_received + (self.rest_ns() + miss_ns + extended_ns)
    }

    /// Returns true if a heartbeat is overdue.
    #[must_use]
    pub fn is_late(&self, now: Instant) -> bool {
        now >= self.late_at()
    }

    fn late_at(&self) -> Instant {
        self.last_received + (self.rest_ns() + self.interval_ns + self.interval_ns / 2)
    }

    /// Returns how much later than usual the neighbour's next heartbeat is due, in nanoseconds.
    fn rest_ns(&self) -> u64 {
        self.interval_ns * (self.promised - 1)
    }

    /// Returns the time at which the result of `judge` next changes. `suspect` is true if lateness was noticed
    /// already.
    #[must_use]
    pub fn deadline(&self, suspect: bool) -> Instant {
        let dead_at = self.dead_at();
        if suspect { dead_at } else { self.late_at().min(dead_at) }
    }

    /// Returns the time at which the next heartbeat must leave.
    #[must_use]
    pub const fn next_send(&self) -> Instant {
        self.next_send
    }
}

/// Returns the offset of a member's heartbeats within an interval, in nanoseconds.
const fn phase_ns(interval_ns: u64, member: NodeId) -> u64 {
    let member = member.0 as u64;
    let phase = member * PHASES_TO_NEXT % PHASES;
    interval_ns / PHASES * phase + interval_ns / SHARERS_PER_INTERVAL * (member / PHASES)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const TIMERS: LinkTimers = LinkTimers {
        heartbeat_interval_ns: 100,
        heartbeat_miss_max: 5,
        heartbeat_rest: 4,
        hold_down_ns: 1000,
        up_count: 3,
        hello_interval_ns: 10,
    };

    #[test]
    fn silence_is_late_after_one_and_a_half_and_dead_after_k_intervals() {
        let mut heartbeats = Heartbeats::new(&TIMERS, NodeId(3));
        heartbeats.receive(Instant(1000), 1, 1);
        assert_eq!(heartbeats.judge(Instant(1149)), Silence::OnTime);
        assert_eq!(heartbeats.judge(Instant(1150)), Silence::Late);
        assert_eq!(heartbeats.judge(Instant(1499)), Silence::Late);
        assert_eq!(heartbeats.judge(Instant(1500)), Silence::Dead);
    }

    #[test]
    fn a_member_that_stalled_does_not_suspect_its_neighbour() {
        let mut heartbeats = Heartbeats::new(&TIMERS, NodeId(3));
        heartbeats.receive(Instant(1000), 1, 1);
        assert_eq!(heartbeats.judge(Instant(9000)), Silence::Late);
        assert_eq!(heartbeats.judge(Instant(9099)), Silence::Late);
        assert_eq!(heartbeats.judge(Instant(9100)), Silence::Dead);
    }

    #[test]
    fn a_member_that_notices_an_overdue_heartbeat_late_waits_as_much_longer() {
        let mut heartbeats = Heartbeats::new(&TIMERS, NodeId(3));
        heartbeats.receive(Instant(1000), 1, 1);
        heartbeats.notice(Instant(1149));
        heartbeats.notice(Instant(1510));
        assert_eq!(heartbeats.judge(Instant(1510)), Silence::Late, "350 late at noticing");
        heartbeats.notice(Instant(1849));
        assert_eq!(heartbeats.judge(Instant(1859)), Silence::Late, "only the first notice counts");
        assert_eq!(heartbeats.judge(Instant(1860)), Silence::Dead);
        heartbeats.receive(Instant(2000), 2, 1);
        heartbeats.notice(Instant(2150));
        assert_eq!(heartbeats.judge(Instant(2500)), Silence::Dead, "noticed in time");
    }

    #[test]
    fn time_without_a_processor_is_no_silence_and_evidence_never_shortens_the_wait() {
        let mut heartbeats = Heartbeats::new(&TIMERS, NodeId(3));
        heartbeats.receive(Instant(1000), 1, 1);
        heartbeats.extend_timeout(Instant(1400), 250);
        assert_eq!(heartbeats.judge(Instant(1749)), Silence::Late);
        heartbeats.extend_timeout(Instant(1700), 0);
        assert_eq!(heartbeats.dead_at(), Instant(1500), "without evidence the usual time holds");
        heartbeats.extend_timeout(Instant(1740), u64::MAX);
        assert_eq!(heartbeats.dead_at(), Instant(2240), "never more than the silence has lasted");
        heartbeats.receive(Instant(2000), 2, 1);
        assert_eq!(heartbeats.dead_at(), Instant(2500));
    }

    #[test]
    fn a_member_that_did_not_run_restarts_its_count_and_keeps_the_last_heartbeat() {
        let mut heartbeats = Heartbeats::new(&TIMERS, NodeId(3));
        heartbeats.receive(Instant(1000), 1, 1);
        assert_eq!(heartbeats.judge(Instant(1160)), Silence::Late);
        assert_eq!(heartbeats.judge(Instant(5800)), Silence::Late);
        let overdue = heartbeats.overdue();
        assert_eq!(
            (overdue.since, overdue.counted_from, overdue.dead_at),
            (Instant(1000), Instant(5400), Instant(5900))
        );
        heartbeats.receive(Instant(6000), 2, 1);
        assert_eq!(
            (heartbeats.overdue().since, heartbeats.overdue().counted_from),
            (Instant(6000), Instant(6000))
        );
    }

    #[test]
    fn a_member_whose_own_heartbeats_are_late_extends_its_timeout_as_much() {
        let mut heartbeats = Heartbeats::new(&TIMERS, NodeId(0));
        heartbeats.start(Instant(1000));
        heartbeats.receive(Instant(1000), 1, 1);
        for due in [1000, 1100, 1200, 1300, 1400] {
            assert_eq!(heartbeats.next_send(), Instant(due));
            assert_ne!(heartbeats.judge(Instant(due + 30)), Silence::Dead);
            heartbeats.send(Instant(due + 30), 0, false);
        }
        assert_eq!(heartbeats.deadline(true), Instant(1650));
        assert_eq!(heartbeats.judge(Instant(1649)), Silence::Late);
        assert_eq!(heartbeats.judge(Instant(1650)), Silence::Dead);
        heartbeats.receive(Instant(1660), 2, 1);
        assert_eq!(heartbeats.deadline(true), Instant(2160), "what was late before does not count");
    }

    #[test]
    fn lateness_of_its_own_heartbeats_at_most_doubles_the_wait() {
        let mut heartbeats = Heartbeats::new(&TIMERS, NodeId(0));
        heartbeats.start(Instant(1000));
        heartbeats.receive(Instant(1000), 1, 1);
        heartbeats.send(Instant(1900), 0, false);
        assert_eq!(heartbeats.deadline(true), Instant(2000));
    }

    #[test]
    fn links_that_come_up_at_different_times_send_heartbeats_together_and_in_time() {
        let heartbeats_sent = |started: u64| {
            let mut heartbeats = Heartbeats::new(&TIMERS, NodeId(3));
            heartbeats.start(Instant(started));
            let mut instants = Vec::new();
            while instants.len() < 5 {
                let at = heartbeats.next_send();
                assert!(heartbeats.send_due(at));
                heartbeats.send(at, 0, false);
                assert!(heartbeats.next_send().since(at) <= TIMERS.heartbeat_interval_ns);
                instants.push(at.0);
            }
            instants.split_off(2)
        };
        let (first, second) = (heartbeats_sent(1003), heartbeats_sent(1071));
        assert!(first.iter().chain(&second).all(|at| at % 100 == first[0] % 100), "{first:?}, {second:?}");
        assert!(first.windows(2).all(|pair| pair[1] - pair[0] == 100), "{first:?}");
    }

    #[test]
    fn a_late_heartbeat_does_not_move_the_next_one() {
        let mut heartbeats = Heartbeats::new(&TIMERS, NodeId(3));
        heartbeats.start(Instant(1000));
        heartbeats.send(Instant(1000), 0, false);
        let due = heartbeats.next_send();
        heartbeats.send(due + 30, 0, false);
        assert_eq!(heartbeats.next_send(), due + 100);
        heartbeats.send(heartbeats.next_send() + 250, 0, false);
        assert_eq!(heartbeats.next_send(), due + 400, "what was slept through is not made up for");
    }

    #[test]
    fn a_link_at_rest_sends_fewer_heartbeats_and_its_loss_is_detected_as_much_later() {
        let (mut sleeper, mut waiter) =
            (Heartbeats::new(&TIMERS, NodeId(0)), Heartbeats::new(&TIMERS, NodeId(0)));
        sleeper.start(Instant(1000));
        assert_eq!(sleeper.send(Instant(1000), 7, false), (1, 1));
        assert!(!sleeper.is_quiet(9), "one frame was the heartbeat, the other was not");
        assert!(sleeper.is_quiet(8));
        assert_eq!(sleeper.send(Instant(1100), 8, true), (2, 4));
        assert_eq!(sleeper.next_send(), Instant(1200), "the members of a rack rest together");
        assert_eq!(sleeper.send(Instant(1200), 9, true), (3, 4));
        assert_eq!(sleeper.next_send(), Instant(1600));
        waiter.receive(Instant(1200), 3, 4);
        assert_eq!(waiter.judge(Instant(1649)), Silence::OnTime);
        assert_eq!(waiter.judge(Instant(1650)), Silence::Late);
        assert_eq!(waiter.judge(Instant(1999)), Silence::Late);
        assert_eq!(waiter.judge(Instant(2000)), Silence::Dead);
        assert_eq!(TIMERS.detection_ns(), 800);
    }

    #[test]
    fn a_link_that_leaves_rest_sends_a_heartbeat_at_once() {
        let mut heartbeats = Heartbeats::new(&TIMERS, NodeId(0));
        heartbeats.start(Instant(1200));
        heartbeats.send(Instant(1200), 0, true);
        heartbeats.end_rest(Instant(1300));
        assert!(heartbeats.send_due(Instant(1300)));
        assert_eq!(heartbeats.send(Instant(1300), 0, false), (2, 1));
        heartbeats.end_rest(Instant(1310));
        assert_eq!(heartbeats.next_send(), Instant(1400), "who does not rest cannot be roused");
    }

    #[test]
    fn a_promised_interval_beyond_the_plan_is_ignored() {
        let mut heartbeats = Heartbeats::new(&TIMERS, NodeId(0));
        heartbeats.receive(Instant(1000), 1, 60_000);
        assert_eq!(heartbeats.judge(Instant(1800)), Silence::Dead);
        heartbeats.receive(Instant(2000), 2, 0);
        assert_eq!(heartbeats.judge(Instant(2500)), Silence::Dead);
    }

    #[test]
    fn usual_lateness_does_not_change_the_order_of_heartbeats() {
        let timers = LinkTimers { heartbeat_interval_ns: 100_000_000, ..TIMERS };
        let instant = |member| {
            let mut heartbeats = Heartbeats::new(&timers, NodeId(member));
            heartbeats.start(Instant(1000));
            heartbeats.send(Instant(1000), 0, false);
            // All are in one interval, the second.
            100_000_000 + heartbeats.next_send().0 % 100_000_000
        };
        let apart = |first, second| {
            let apart_ns = instant(first).abs_diff(instant(second));
            apart_ns.min(timers.heartbeat_interval_ns - apart_ns)
        };
        for member in 0..256 {
            assert!(apart(member, member + 1) > 20_000_000, "{member}");
            for distance in [2, 4, 8, 16, 63] {
                assert!(apart(member, member + distance) > 5_000_000, "{member} and {distance} further");
            }
        }
        let mut rack: Vec<_> = (0..65).map(instant).collect();
        rack.sort_unstable();
        assert!(rack.windows(2).all(|pair| pair[1] - pair[0] >= 500_000), "{rack:?}");
        let mut instants: Vec<_> = (0..=u16::MAX).map(instant).collect();
        instants.sort_unstable();
        assert!(instants.windows(2).all(|pair| pair[0] != pair[1]), "no two at one instant");
    }
}
