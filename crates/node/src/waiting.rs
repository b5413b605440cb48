//! What a node does while nothing happens.
//!
//! A frame that comes within microseconds is best met awake: a sleeping CPU takes 75 microseconds to come back, a
//! pause takes 40 nanoseconds. A frame that does not come is best met asleep, because the neighbour may need this
//! very CPU to produce it. So: about 64 pauses, then yields for a bounded time since the last traffic, then sleep on
//! the doorbell or the descriptors. Where more nodes run than there are CPUs, every pause is taken from the one that is
//! waited for, so there are none. A yield is not, unless there are many more: it gives the CPU to whoever wants it, and costs
//! less than going to sleep and being woken, which for a node in the midst of traffic would be once per batch. Who hears a
//! lone heartbeat goes back to sleep at once.
//!
//! Every wait has an end, at most [`SLEEP_NS_MAX`] away.

use std::hint::spin_loop;
use std::os::fd::AsRawFd;
use std::thread::available_parallelism;

use rackloom_protocol::Instant;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::sched_yield;

use crate::clock::Clock;
use crate::slack::Slack;
use crate::wires::{Ports, WakeSource, timespec};

/// Longest sleep: also how soon an idle node notices what nobody rings for. As long as the links of a node at rest are
/// silent, because every wake of 64 idle processes is a switch of processes with cold caches.
pub const SLEEP_NS_MAX: u64 = 500_000_000;

/// Longest time of all pauses together: a look at some devices is a system call, and then few of them are enough.
const PAUSE_NS_MAX: u64 = 3_000;
/// Turns with traffic that lie farther apart do not follow one another.
const LULL_NS: u64 = 1_000_000;
/// Members of a CPU among which going round takes less time than being woken.
const MEMBERS_PER_CPU: usize = 4;
/// Looks between two readings of the clock.
const LOOKS_PER_CLOCK: u32 = 4;

/// How long a node stays awake before it sleeps.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitPolicy {
    /// Looks with a CPU pause in between, before anything else.
    pub pauses: u32,
    /// Then looks with a yield in between, until this long after the last traffic.
    pub yield_ns: u64,
    /// Turns with traffic, each soon after the other, before a node yields at all.
    pub turns_min: u32,
}

impl WaitPolicy {
    /// For nodes that have a CPU each.
    pub const EAGER: Self = Self { pauses: 64, yield_ns: 100_000, turns_min: 0 };
    /// For some nodes more than CPUs.
    pub const SHARED: Self = Self { pauses: 0, yield_ns: 100_000, turns_min: 8 };
    /// For many more nodes than CPUs: a yield then goes round through others that yield.
    pub const CROWDED: Self = Self { pauses: 0, yield_ns: 0, turns_min: 0 };

    /// The policy for this many members (processes or threads that drive one) on this host.
    #[must_use]
    pub fn for_members(members: usize) -> Self {
        let cpus = available_parallelism().map_or(1, usize::from);
        match members {
            _ if members <= cpus => Self::EAGER,
            _ if members <= MEMBERS_PER_CPU * cpus => Self::SHARED,
            _ => Self::CROWDED,
        }
    }
}

/// What has happened lately, as far as it says whether to stay awake.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    last: Instant,
    turns: u32,
}

impl Traffic {
    /// Something happened in the turn of this time.
    pub(crate) fn note(&mut self, now: Instant) {
        let follows = now.since(self.last) <= LULL_NS;
        self.turns = if follows { self.turns.saturating_add(1) } else { 1 };
        self.last = now;
    }

    /// When to go to sleep if nothing more happens.
    pub(crate) fn awake_until(&self, policy: WaitPolicy) -> Instant {
        if self.turns >= policy.turns_min { self.last + policy.yield_ns } else { self.last }
    }
}

/// Return as soon as a port has a frame or `ready` says so, and at the latest at `until`. Returns whether a carrier may have
/// changed meanwhile.
pub(crate) fn wait(
    policy: WaitPolicy,
    clock: &Clock,
    ports: &mut Ports,
    traffic: &Traffic,
    until: Instant,
    ready: &mut dyn FnMut() -> bool,
) -> bool {
    let paused_until = clock.now() + PAUSE_NS_MAX;
    for pause in 1..=policy.pauses {
        if ports.ready() || ready() {
            return false;
        }
        if pause % LOOKS_PER_CLOCK == 0 && clock.now() >= paused_until {
            break;
        }
        spin_loop();
    }
    let awake_until = until.min(traffic.awake_until(policy));
    while clock.now() < awake_until {
        if ports.ready() || ready() {
            return false;
        }
        sched_yield();
    }
    sleep(clock, ports, until, ready)
}

fn sleep(clock: &Clock, ports: &mut Ports, until: Instant, ready: &mut dyn FnMut() -> bool) -> bool {
    let Some(doorbell) = ports.doorbell().cloned() else {
        return poll_descriptors(ports, remaining(clock, until));
    };
    doorbell.arm();
    if !ports.ready() && !ready() {
        let timeout_ns = remaining(clock, until);
        if timeout_ns > 0 {
            doorbell.sleep(timeout_ns);
        }
    }
    doorbell.disarm();
    false
}

fn poll_descriptors(ports: &Ports, timeout_ns: u64) -> bool {
    let frames = ports.devices().iter().filter_map(|device| match device.wake_source() {
        WakeSource::Descriptor(descriptor) => Some(descriptor),
        WakeSource::Doorbell(_) => None,
    });
    let mut descriptors: Vec<PollFd<'_>> =
        frames.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)).collect();
    let frames = descriptors.len();
    let mut carriers: Vec<_> = ports.devices().iter().filter_map(|device| device.carrier_source()).collect();
    // Ports of one namespace share their news.
    carriers.dedup_by_key(|descriptor| descriptor.as_raw_fd());
    descriptors.extend(carriers.into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    let _slack = Slack::for_sleep(timeout_ns);
    // Readable, failed, interrupted or timed out: the next turn finds out which.
    let _ = poll(&mut descriptors, Some(&timespec(timeout_ns)));
    // A socket whose interface has gone fails, and that is news too.
    let (frames, carriers) = descriptors.split_at(frames);
    let fails = |descriptor: &PollFd<'_>| descriptor.revents().intersects(PollFlags::ERR | PollFlags::HUP);
    carriers.iter().any(|descriptor| !descriptor.revents().is_empty()) || frames.iter().any(fails)
}

fn remaining(clock: &Clock, until: Instant) -> u64 {
    until.since(clock.now()).min(SLEEP_NS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wires::{Device, Doorbell, FRAME_BYTES_MAX, shared_memory};

    #[test]
    fn a_sleeper_wakes_for_a_frame_long_before_its_deadline() {
        let (mine, theirs) = (Doorbell::create().unwrap(), Doorbell::create().unwrap());
        let (a, mut b) = shared_memory::pair(shared_memory::RING_BYTES_MIN, &mine, &theirs).unwrap();
        let mut ports = Ports::new(vec![Box::new(a)], FRAME_BYTES_MAX as u16).unwrap();
        let clock = Clock::begin();
        let sender = std::thread::spawn(move || {
            b.slot().unwrap()[..64].fill(7);
            b.commit(64, true);
            b.flush(Instant::ZERO);
            b
        });
        while !ports.ready() {
            let before = clock.now();
            wait(WaitPolicy::CROWDED, &clock, &mut ports, &Traffic::default(), Instant::NEVER, &mut || false);
            assert!(clock.now().since(before) < SLEEP_NS_MAX, "woken by the bell and not by the clock");
        }
        sender.join().unwrap();
    }

    #[test]
    fn a_node_that_shares_its_cpu_stays_awake_in_the_midst_of_traffic_and_not_for_a_heartbeat() {
        let (policy, mut traffic) = (WaitPolicy::SHARED, Traffic::default());
        let at = |turn: u32, apart_ns: u64| Instant(u64::from(turn) * apart_ns);
        for turn in 1..100 {
            traffic.note(at(turn, 2 * LULL_NS));
            assert_eq!(traffic.awake_until(policy), at(turn, 2 * LULL_NS), "each is alone");
        }
        let mut traffic = Traffic::default();
        for turn in 1..100 {
            traffic.note(at(turn, LULL_NS));
            let yields = traffic.awake_until(policy) > at(turn, LULL_NS);
            assert_eq!(yields, turn >= policy.turns_min, "turn {turn}");
        }
        assert!(
            Traffic::default().awake_until(WaitPolicy::EAGER) > Instant::ZERO,
            "a CPU of its own is nobody else's"
        );
    }

    #[test]
    fn an_idle_wait_ends_at_its_deadline() {
        let mut ports = Ports::new(Vec::new(), FRAME_BYTES_MAX as u16).unwrap();
        let clock = Clock::begin();
        let until = clock.now() + 2_000_000;
        let mut traffic = Traffic::default();
        traffic.note(clock.now());
        wait(WaitPolicy::EAGER, &clock, &mut ports, &traffic, until, &mut || false);
        assert!(clock.now() >= until);
    }

    #[test]
    fn what_happens_right_before_the_sleep_is_not_slept_through() {
        let (mine, theirs) = (Doorbell::create().unwrap(), Doorbell::create().unwrap());
        let (a, _b) = shared_memory::pair(shared_memory::RING_BYTES_MIN, &mine, &theirs).unwrap();
        let mut ports = Ports::new(vec![Box::new(a)], FRAME_BYTES_MAX as u16).unwrap();
        let clock = Clock::begin();
        let before = clock.now();
        let mut asked = 0;
        let mut ready = || {
            asked += 1;
            true
        };
        wait(WaitPolicy::CROWDED, &clock, &mut ports, &Traffic::default(), Instant::NEVER, &mut ready);
        assert!(clock.now().since(before) < SLEEP_NS_MAX);
        assert_eq!(asked, 1, "asked after arming, although a crowded node does not look before");
    }
}
