//! The poll loop of one member: receive frames, run commands, handle the timeout, drain the member, send frames.
//!
//! The core makes all decisions. This file fixes the order of the steps, which is also the simulator's order. One poll does the following:
//!
//! 1. It passes the frames of port 0 to the member, then those of port 1, and so on.
//! 2. It runs the caller's commands.
//! 3. It handles the timeout if it is due.
//! 4. It calls [`drain`] once.
//!
//! Time is an argument of every poll, so a test can drive a member with its own clock. [`Runtime::now`] and [`Runtime::wait`] are for callers that
//! use the wall clock.
//!
//! This file starts no thread: the thread that calls [`Runtime::wait`] also drives the member.

use rackloom_protocol::{Event, Inspect, Instant, PayloadPath, PortId, Wires, drain};
use rustix::thread::sched_yield;

use crate::arrivals::{ArrivalWatch, Arrivals};
use crate::availability::{Availability, Shortage};
use crate::clock::Clock;
use crate::memory::HostMemory;
use crate::stopwatch::Stopwatch;
use crate::waiting::{self, SLEEP_NS_MAX, Traffic, WaitPolicy};
use crate::wires::Ports;

/// Maximum number of frames taken from one port before the next port is served.
const FRAMES_PER_POLL_MAX: usize = 64;
/// Maximum number of consecutive polls in which a link is not declared down because frames of its neighbour are unread. More polls than any device
/// holds frames.
const POSTPONED_POLLS_MAX: u32 = 256;
/// Interval at which a busy member reads the carrier of its devices, in nanoseconds. Each reading may cost a system call.
const CARRIER_INTERVAL_NS: u64 = 5_000_000;

/// Maximum sleep of a member that has a frame to send and no space in the device, in nanoseconds.
const FULL_DEVICE_SLEEP_NS_MAX: u64 = 1_000_000;

/// A member with its devices, its memory and its clock.
///
/// `Send`, not `Sync`: one thread drives it at a time, and it may move to another.
#[derive(Debug)]
pub struct Runtime<M, R = HostMemory> {
    member: M,
    ports: Ports,
    memory: R,
    clock: Clock,
    stopwatch: Stopwatch,
    policy: WaitPolicy,
    carriers: Vec<bool>,
    carrier_due: Instant,
    traffic: Traffic,
    last_receive: Instant,
    last_poll: Instant,
    /// Time at which the caller wants the next poll.
    alarm: Instant,
    timer_late_max_ns: u64,
    /// Frames have been handled without a drain since the last one, so the drain itself may find nothing to do.
    has_handled: bool,
    arrivals: Option<Arrivals>,
    availability: Availability,
    /// Number of consecutive polls in which a link was not judged because frames of its neighbour were unread.
    postponed_polls: u32,
}

impl<M: Inspect, R: PayloadPath<Ports>> Runtime<M, R> {
    /// Joins a member to its devices and its memory. A carrier counts as present until its device reports otherwise.
    pub fn new(member: M, ports: Ports, memory: R, clock: Clock, policy: WaitPolicy) -> Self {
        let carriers = vec![true; ports.count()];
        Self {
            member,
            ports,
            memory,
            clock,
            stopwatch: Stopwatch::new(clock),
            policy,
            carriers,
            carrier_due: Instant::ZERO,
            traffic: Traffic::default(),
            last_receive: Instant::ZERO,
            last_poll: Instant::ZERO,
            alarm: Instant::NEVER,
            timer_late_max_ns: 0,
            has_handled: false,
            arrivals: None,
            availability: Availability::default(),
            postponed_polls: 0,
        }
    }

    /// Reports every received frame to `watch`, with the reason why the member dropped it, if it did. The fast path for received frames is then off.
    pub fn watch_arrivals(&mut self, watch: ArrivalWatch) {
        self.arrivals.get_or_insert_default().add(watch);
    }

    /// Returns the current wall-clock time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Returns the current wall-clock time from the processor's counter, at about half the cost of [`Self::now`].
    #[inline]
    pub(crate) fn look_at_stopwatch(&mut self) -> Instant {
        self.stopwatch.now()
    }

    /// Runs one poll without commands. Returns whether anything happened.
    pub fn poll(&mut self, now: Instant, events: &mut impl FnMut(Event)) -> bool {
        let received = self.receive(now);
        self.finish(now, events) || received
    }

    /// Runs one poll that calls `commands` once, between reception and the timeout. Returns whether anything happened, and the result of `commands`.
    pub fn poll_with<T>(
        &mut self,
        now: Instant,
        commands: impl FnOnce(Instant, &mut M, &mut R) -> T,
        events: &mut impl FnMut(Event),
    ) -> (bool, T) {
        let received = self.receive(now);
        let result = commands(now, &mut self.member, &mut self.memory);
        (self.finish(now, events) || received, result)
    }

    /// Runs the first half of a poll: passes received frames and carrier changes to the member. Returns whether there were any.
    pub fn receive(&mut self, now: Instant) -> bool {
        self.last_receive = now;
        let reads_carriers = now >= self.carrier_due;
        if reads_carriers {
            self.carrier_due = now + CARRIER_INTERVAL_NS;
        }
        let mut received = false;
        for port in 0..self.ports.count() {
            let port = PortId(port as u16);
            received |= self.receive_frames(now, port);
            if reads_carriers {
                received |= self.check_carrier(now, port);
            }
        }
        received
    }

    /// Runs the second half of a poll, after the commands: handles the timeout if it is due, drains the member and sends frames. Returns whether
    /// anything happened.
    pub fn finish(&mut self, now: Instant, events: &mut impl FnMut(Event)) -> bool {
        let due = self.member.poll_timeout();
        if due <= now && !self.must_read_first(now) {
            self.availability.extend_timeouts(now, &mut self.member);
            self.member.handle_timeout(now);
            // A timeout that was due at the last poll was delayed by a full device and not by the scheduler, so its delay does not count.
            if due > self.last_poll {
                self.timer_late_max_ns = self.timer_late_max_ns.max(now.since(due));
            }
        }
        self.last_poll = now;
        let was_busy = self.memory.is_busy();
        let mut progress = drain(&mut self.member, now, &mut self.ports, &mut self.memory, events);
        // No frame announces that a device has become idle, so this counts as progress.
        progress |= was_busy && !self.memory.is_busy();
        self.ports.flush(now);
        if std::mem::take(&mut self.has_handled) || progress {
            self.traffic.note(now);
        }
        progress
    }

    /// Returns whether a link is about to go down while frames of its neighbour are unread. A heartbeat may be among them.
    fn must_read_first(&mut self, now: Instant) -> bool {
        let Self { member, ports, .. } = self;
        let is_undecided = (0..ports.count()).map(|port| PortId(port as u16)).any(|port| {
            let overdue = member.link(port).and_then(|link| link.overdue(now));
            overdue.is_some_and(|overdue| now >= overdue.dead_at) && ports.port_ready(port)
        });
        let is_postponed = is_undecided && self.postponed_polls < POSTPONED_POLLS_MAX;
        self.postponed_polls = if is_postponed { self.postponed_polls + 1 } else { 0 };
        is_postponed
    }

    /// Records that the caller worked at this time, so that [`Self::wait`] stays awake for a while, as after a frame. A caller that worked for longer
    /// than that would otherwise sleep at once, although its peers are about to answer.
    pub const fn note_work(&mut self, now: Instant) {
        self.traffic.note(now);
    }

    /// Sleeps until a frame arrives, a timer of the member or of a device is due, or `until` is reached; at most [`SLEEP_NS_MAX`] nanoseconds. Call
    /// it after a poll that returned `false`.
    pub fn wait(&mut self, until: Instant) {
        self.wait_unless(until, |_| false);
    }

    /// Sleeps as [`Self::wait`] does, but returns at once if `ready` returns `true`. `ready` is called once more after the doorbell is armed, so a
    /// caller that changes memory and then rings the doorbell always ends the sleep.
    pub fn wait_unless(&mut self, until: Instant, mut ready: impl FnMut(&mut R) -> bool) {
        if self.memory.is_busy() {
            // The GPU does not ring a doorbell, so poll again soon and let other threads use the processor meanwhile.
            sched_yield();
            return;
        }
        let mut soonest = self.member.poll_timeout().min(self.ports.next_due());
        let now = self.clock.now();
        if soonest <= self.last_poll {
            // The timeout could not be handled because a device is full. The neighbour rings the doorbell when there is space.
            soonest = now + FULL_DEVICE_SLEEP_NS_MAX;
        }
        let soonest = soonest.min(until);
        if soonest > now {
            let end = soonest.min(now + SLEEP_NS_MAX);
            let mut is_ready = false;
            let check = &mut || {
                is_ready = ready(&mut self.memory);
                is_ready
            };
            if waiting::wait(self.policy, &self.clock, &mut self.ports, &self.traffic, end, check) {
                self.carrier_due = Instant::ZERO;
            }
            // A change of shared memory is what a frame would have been.
            if is_ready {
                self.traffic.note(self.clock.now());
            }
        }
    }

    /// Returns when the next poll is due without a frame. For a caller that sleeps by itself, after a poll that did nothing.
    pub(crate) fn next_poll(&self, now: Instant) -> Instant {
        let soonest = self.member.poll_timeout().min(self.ports.next_due());
        let soonest = if soonest <= self.last_poll { now + FULL_DEVICE_SLEEP_NS_MAX } else { soonest };
        soonest.min(self.alarm)
    }

    /// Sets the time of the next poll that the caller wants. [`Self::next_poll`] takes it into account.
    pub(crate) const fn set_alarm(&mut self, at: Instant) {
        self.alarm = at;
    }

    /// Returns whether a frame waits at a port, or the memory has an operation in progress, whose end rings no doorbell.
    pub(crate) fn ready(&mut self) -> bool {
        // The operation in progress may need this processor.
        self.ports.ready()
            || self.memory.is_busy() && {
                sched_yield();
                true
            }
    }

    /// Returns the time at which to stop polling for frames and to go to sleep.
    pub(crate) fn awake_until(&self) -> Instant {
        self.traffic.awake_until(self.policy)
    }

    /// Returns the policy of its waits.
    #[must_use]
    pub const fn policy(&self) -> WaitPolicy {
        self.policy
    }

    /// Returns the time of the last poll.
    pub(crate) const fn last_poll(&self) -> Instant {
        self.last_poll
    }

    /// Returns the time at which the ports were last checked for frames.
    pub(crate) const fn last_receive(&self) -> Instant {
        self.last_receive
    }

    /// Returns the member.
    #[must_use]
    pub fn member(&self) -> &M {
        &self.member
    }

    /// Returns the member for commands between [`Runtime::receive`] and [`Runtime::finish`].
    pub fn member_mut(&mut self) -> &mut M {
        &mut self.member
    }

    /// Returns the member's memory.
    pub fn memory_mut(&mut self) -> &mut R {
        &mut self.memory
    }

    /// Returns the member and its memory together.
    pub fn parts_mut(&mut self) -> (&mut M, &mut R) {
        (&mut self.member, &mut self.memory)
    }

    /// Returns the memory, and the ports whose frames it reads.
    pub(crate) fn memory_and_ports(&mut self) -> (&mut R, &mut Ports) {
        (&mut self.memory, &mut self.ports)
    }

    /// Returns the ports for fault injection.
    pub fn ports_mut(&mut self) -> &mut Ports {
        &mut self.ports
    }

    /// Returns the greatest delay with which a timer of the member was handled, in nanoseconds. A busy host adds this much to each time that the
    /// protocol guarantees.
    #[must_use]
    pub const fn timer_late_max_ns(&self) -> u64 {
        self.timer_late_max_ns
    }

    /// Sets which process of this host is at the other end of a port, so that a lack of processor time is not counted as silence.
    pub fn watch_process(&mut self, port: PortId, process: Option<u32>) {
        self.availability.set_process(port, process);
    }

    /// Returns how long this member's neighbours lacked processor time.
    #[must_use]
    pub const fn shortage(&self) -> Shortage {
        self.availability.shortage()
    }

    /// Handles the exchange of the cable at a port.
    pub fn handle_new_cable(&mut self, port: PortId) {
        let now = self.now();
        self.member.handle_new_cable(now, port);
    }

    /// Returns the ports, for their counters.
    #[must_use]
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    fn receive_frames(&mut self, now: Instant, port: PortId) -> bool {
        for taken in 0..FRAMES_PER_POLL_MAX {
            let Self { member, ports, memory, arrivals, .. } = self;
            if let Some(arrivals) = arrivals {
                let Some(lease) = ports.receive(port) else { return taken > 0 };
                arrivals.handle_frame(member, now, port, lease, ports.leased(lease));
                continue;
            }
            let mut take = |bytes: &[u8]| member.take_at_once(now, port, bytes, memory);
            match ports.offer(port, &mut take) {
                None => return taken > 0,
                Some(None) => self.has_handled = true,
                Some(Some(lease)) => member.handle_frame(now, port, lease, ports.leased(lease)),
            }
        }
        true
    }

    /// Reports a carrier change to the member. A loss is reported after the neighbour's last frames have been read.
    fn check_carrier(&mut self, now: Instant, port: PortId) -> bool {
        let up = self.ports.carrier(port);
        let known = &mut self.carriers[port.index()];
        if up == *known || (!up && self.ports.port_ready(port)) {
            return false;
        }
        *known = up;
        self.member.handle_carrier(now, port, up);
        true
    }
}
