//! The loop of one member: frames in, time, one drain, frames out.
//!
//! The core decides; this file only keeps the order, which is the order in which the simulator does the same things:
//! within one turn the frames of port 0, of port 1, and so on; then whatever the caller commands; then the timeout, if
//! it is due; then one [`drain`]. Time is an argument of every turn, so a test can drive a member with a clock of its
//! own; [`Runtime::now`] and [`Runtime::wait`] are for those who live in wall time.
//!
//! There is no thread in here: whoever waits drives.

use rackloom_protocol::{Event, Instant, Member, Memory, PortId, Wires, drain};
use rustix::thread::sched_yield;

use crate::arrivals::{ArrivalWatch, Arrivals};
use crate::availability::{Availability, Shortage};
use crate::clock::Clock;
use crate::memory::HostMemory;
use crate::stopwatch::Stopwatch;
use crate::waiting::{self, SLEEP_NS_MAX, Traffic, WaitPolicy};
use crate::wires::Ports;

/// Frames taken from one port before the next port has its turn.
const FRAMES_PER_TURN_MAX: usize = 64;
/// Poll iterations in which a neighbour is not called dead because its frames are still to be read. More frames than any device holds.
const READS_FIRST_MAX: u32 = 256;
/// How often a busy member asks its devices for their carrier, which may cost a system call each.
const CARRIER_INTERVAL_NS: u64 = 5_000_000;

/// How long a member sleeps at most when a frame is due and its device has no room.
const FULL_DEVICE_PATIENCE_NS: u64 = 1_000_000;

/// One member with everything around it.
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
    last_turn: Instant,
    /// When the next turn is due for a reason of the caller's own.
    alarm: Instant,
    timer_late_max_ns: u64,
    /// Frames have been taken at once since the last drain, which then need not have had anything to do with them.
    has_taken: bool,
    arrivals: Option<Arrivals>,
    availability: Availability,
    /// Poll iterations in a row in which a link was not judged because frames of its neighbour were still to be read.
    reads_first: u32,
}

impl<M: Member, R: Memory> Runtime<M, R> {
    /// Join a member to its devices and its memory. Carriers count as present until a device says otherwise.
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
            last_turn: Instant::ZERO,
            alarm: Instant::NEVER,
            timer_late_max_ns: 0,
            has_taken: false,
            arrivals: None,
            availability: Availability::default(),
            reads_first: 0,
        }
    }

    /// Show every received frame to `watch`, and why it was not used, if it was not. Frames are not taken at once then.
    pub fn watch_arrivals(&mut self, watch: ArrivalWatch) {
        self.arrivals.get_or_insert_default().add(watch);
    }

    /// Now, in wall time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The same for who looks often, at half the price.
    #[inline]
    pub(crate) fn look_at_stopwatch(&mut self) -> Instant {
        self.stopwatch.now()
    }

    /// One turn without commands. Returns whether anything happened.
    pub fn turn(&mut self, now: Instant, events: &mut impl FnMut(Event)) -> bool {
        let received = self.receive(now);
        self.finish(now, events) || received
    }

    /// One turn in which `commands` is called once, at the place where commands belong. Returns whether anything
    /// happened, and what `commands` returned.
    pub fn turn_with<T>(
        &mut self,
        now: Instant,
        commands: impl FnOnce(Instant, &mut M, &mut R) -> T,
        events: &mut impl FnMut(Event),
    ) -> (bool, T) {
        let received = self.receive(now);
        let answer = commands(now, &mut self.member, &mut self.memory);
        (self.finish(now, events) || received, answer)
    }

    /// First half of a turn: hand the member what has arrived. Returns whether anything had.
    pub fn receive(&mut self, now: Instant) -> bool {
        self.last_receive = now;
        let ask_carriers = now >= self.carrier_due;
        if ask_carriers {
            self.carrier_due = now + CARRIER_INTERVAL_NS;
        }
        let mut received = false;
        for port in 0..self.ports.count() {
            let port = PortId(port as u16);
            received |= self.receive_frames(now, port);
            if ask_carriers {
                received |= self.check_carrier(now, port);
            }
        }
        received
    }

    /// Second half of a turn, after the commands: the timeout if it is due, one drain, frames out.
    pub fn finish(&mut self, now: Instant, events: &mut impl FnMut(Event)) -> bool {
        let due = self.member.poll_timeout();
        if due <= now && !self.must_read_first(now) {
            self.availability.excuse(now, &mut self.member);
            self.member.handle_timeout(now);
            // What was due before could not be done then, for want of room and not of a processor.
            if due > self.last_turn {
                self.timer_late_max_ns = self.timer_late_max_ns.max(now.since(due));
            }
        }
        self.last_turn = now;
        let was_busy = self.memory.is_busy();
        let mut progress = drain(&mut self.member, now, &mut self.ports, &mut self.memory, events);
        // Whoever waits for a device to have nothing to do is not told by a frame.
        progress |= was_busy && !self.memory.is_busy();
        self.ports.flush(now);
        if std::mem::take(&mut self.has_taken) || progress {
            self.traffic.note(now);
        }
        progress
    }

    /// Whether a link is about to go down while frames of its neighbour wait to be read: a heartbeat may be among them.
    fn must_read_first(&mut self, now: Instant) -> bool {
        let Self { member, ports, .. } = self;
        let is_undecided = (0..ports.count()).map(|port| PortId(port as u16)).any(|port| {
            let overdue = member.link(port).and_then(|link| link.overdue(now));
            overdue.is_some_and(|overdue| now >= overdue.dead_at) && ports.port_ready(port)
        });
        let reads = is_undecided && self.reads_first < READS_FIRST_MAX;
        self.reads_first = if reads { self.reads_first + 1 } else { 0 };
        reads
    }

    /// Sleep until a frame comes, a timer of the member or a device is due, or `until` has come; at most
    /// [`SLEEP_NS_MAX`]. For a caller whose last turn returned `false`.
    pub fn wait(&mut self, until: Instant) {
        self.wait_unless(until, |_| false);
    }

    /// The same, but do not sleep if `ready` says that the caller has something to do. It is asked once more after the
    /// doorbell is armed, so that whoever changes memory and then rings is never slept through.
    pub fn wait_unless(&mut self, until: Instant, mut ready: impl FnMut(&mut R) -> bool) {
        if self.memory.is_busy() {
            // A device rings no doorbell: look again soon, and let others have the processor meanwhile.
            sched_yield();
            return;
        }
        let mut soonest = self.member.poll_timeout().min(self.ports.next_due());
        let now = self.clock.now();
        if soonest <= self.last_turn {
            // What was due then could not be done: a device is full. Its neighbour rings when there is room.
            soonest = now + FULL_DEVICE_PATIENCE_NS;
        }
        let soonest = soonest.min(until);
        if soonest > now {
            let end = soonest.min(now + SLEEP_NS_MAX);
            let ready = &mut || ready(&mut self.memory);
            if waiting::wait(self.policy, &self.clock, &mut self.ports, &self.traffic, end, ready) {
                self.carrier_due = Instant::ZERO;
            }
        }
    }

    /// For a driver that sleeps by itself, after a turn that did nothing: when the next turn is due without a frame.
    pub(crate) fn next_turn(&self, now: Instant) -> Instant {
        let soonest = self.member.poll_timeout().min(self.ports.next_due());
        let soonest = if soonest <= self.last_turn { now + FULL_DEVICE_PATIENCE_NS } else { soonest };
        soonest.min(self.alarm)
    }

    /// Make a turn due at this time, for a reason of the caller's own; for [`Self::next_turn`].
    pub(crate) const fn set_alarm(&mut self, at: Instant) {
        self.alarm = at;
    }

    /// Whether a frame waits at a port, or memory has an answer to come, for which nobody rings.
    pub(crate) fn ready(&mut self) -> bool {
        // Somebody else may be what it waits for.
        self.ports.ready()
            || self.memory.is_busy() && {
                sched_yield();
                true
            }
    }

    /// When to stop looking for frames and go to sleep.
    pub(crate) fn awake_until(&self) -> Instant {
        self.traffic.awake_until(self.policy)
    }

    /// The time of the last turn.
    pub(crate) const fn last_turn(&self) -> Instant {
        self.last_turn
    }

    /// When it was last looked whether anything had arrived.
    pub(crate) const fn last_receive(&self) -> Instant {
        self.last_receive
    }

    /// The member.
    #[must_use]
    pub fn member(&self) -> &M {
        &self.member
    }

    /// The member, to command it between [`Runtime::receive`] and [`Runtime::finish`].
    pub fn member_mut(&mut self) -> &mut M {
        &mut self.member
    }

    /// The member's memory.
    pub fn memory_mut(&mut self) -> &mut R {
        &mut self.memory
    }

    /// The member and its memory at once.
    pub fn parts_mut(&mut self) -> (&mut M, &mut R) {
        (&mut self.member, &mut self.memory)
    }

    /// The memory and the ports whose frames it is to read.
    pub(crate) fn memory_and_ports(&mut self) -> (&mut R, &mut Ports) {
        (&mut self.memory, &mut self.ports)
    }

    /// The ports, for a fault script to change.
    pub fn ports_mut(&mut self) -> &mut Ports {
        &mut self.ports
    }

    /// How late a timer of the member was served at the most: what a busy host adds to every time that the protocol promises.
    #[must_use]
    pub const fn timer_late_max_ns(&self) -> u64 {
        self.timer_late_max_ns
    }

    /// Sets which process of this host is at the other end of a port, so that its silence is told from a busy host.
    pub fn watch_process(&mut self, port: PortId, process: Option<u32>) {
        self.availability.set_process(port, process);
    }

    /// How much the host kept its processors from this member's neighbours.
    #[must_use]
    pub const fn shortage(&self) -> Shortage {
        self.availability.shortage()
    }

    /// The ports, for their counters.
    #[must_use]
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    fn receive_frames(&mut self, now: Instant, port: PortId) -> bool {
        for taken in 0..FRAMES_PER_TURN_MAX {
            let Self { member, ports, memory, arrivals, .. } = self;
            if let Some(arrivals) = arrivals {
                let Some(lease) = ports.receive(port) else { return taken > 0 };
                arrivals.handle_frame(member, now, port, lease, ports.leased(lease));
                continue;
            }
            let mut take = |bytes: &[u8]| member.take_at_once(now, port, bytes, memory);
            match ports.offer(port, &mut take) {
                None => return taken > 0,
                Some(None) => self.has_taken = true,
                Some(Some(lease)) => member.handle_frame(now, port, lease, ports.leased(lease)),
            }
        }
        true
    }

    /// Tell the member if a carrier has changed. A loss waits until the neighbour's last frames have been read.
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
