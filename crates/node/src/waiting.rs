//! Waiting for the next frame or timer.
//!
//! A frame that arrives within microseconds is best received by polling: a sleeping CPU takes 75 microseconds to resume, a pause instruction takes 40
//! nanoseconds. A longer wait is best spent asleep, because the neighbour may need the same CPU to produce the frame. A node therefore executes about
//! 64 pauses, then yields for a limited time since the last traffic, and then sleeps on the doorbell or the descriptors.
//!
//! If there are more nodes than CPUs, a pause takes time from the very node that is awaited, so there are no pauses. A yield gives the CPU to another
//! thread, and costs less than a sleep and a wake-up, which would otherwise occur once per batch. With many more nodes than CPUs there are no yields
//! either. A node that receives a single heartbeat goes back to sleep at once.
//!
//! Every wait ends after [`SLEEP_NS_MAX`] nanoseconds at most.

use std::hint::spin_loop;
use std::os::fd::AsRawFd;
use std::thread::available_parallelism;

use rackloom_protocol::Instant;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::sched_yield;

use crate::clock::Clock;
use crate::clock::timespec;
use crate::slack::Slack;
use crate::wires::{Ports, WakeSource};

/// Longest sleep, in nanoseconds. It bounds how late an idle node detects a change that rings no doorbell. It equals the heartbeat interval of an
/// idle node, because every wake-up of 64 idle processes costs a context switch with cold caches.
pub const SLEEP_NS_MAX: u64 = 500_000_000;

/// Longest total time of the pauses, in nanoseconds. Checking some devices is a system call; then fewer pauses are enough.
const PAUSE_NS_MAX: u64 = 3_000;
/// Maximum distance of two polls with traffic that count as consecutive, in nanoseconds.
const TRAFFIC_GAP_NS_MAX: u64 = 1_000_000;
/// Number of members per CPU up to which yielding to one another takes less time than a wake-up.
const MEMBERS_PER_CPU: usize = 4;
/// Number of checks between two readings of the clock.
const CHECKS_PER_CLOCK: u32 = 4;

/// Policy that determines how long a node stays awake before it sleeps.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitPolicy {
    /// Number of checks with a CPU pause between them, before the first yield.
    pub pauses: u32,
    /// Time since the last traffic during which the node checks and yields, in nanoseconds.
    pub yield_ns: u64,
    /// Number of consecutive polls with traffic after which a node begins to yield.
    pub polls_min: u32,
}

impl WaitPolicy {
    /// Policy for at most as many members as CPUs.
    pub const EAGER: Self = Self { pauses: 64, yield_ns: 100_000, polls_min: 0 };
    /// Policy for somewhat more members than CPUs.
    pub const SHARED: Self = Self { pauses: 0, yield_ns: 100_000, polls_min: 8 };
    /// Policy for many more members than CPUs. A yield would only lead to other members that yield.
    pub const CROWDED: Self = Self { pauses: 0, yield_ns: 0, polls_min: 0 };

    /// Returns the policy for a host with this many members. A member is a process or thread that drives a node or switch.
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

/// Recent traffic, as far as it decides whether to stay awake.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    last: Instant,
    polls: u32,
}

impl Traffic {
    /// Records that the poll at this time had traffic.
    pub(crate) const fn note(&mut self, now: Instant) {
        let follows = now.since(self.last) <= TRAFFIC_GAP_NS_MAX;
        self.polls = if follows { self.polls.saturating_add(1) } else { 1 };
        self.last = now;
    }

    /// Returns the time at which to go to sleep if there is no more traffic.
    pub(crate) fn awake_until(&self, policy: WaitPolicy) -> Instant {
        if self.polls >= policy.polls_min { self.last + policy.yield_ns } else { self.last }
    }
}

/// Waits until a port has a frame, `ready` returns `true`, or `until` is reached. Returns whether a carrier may have changed meanwhile.
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
        if pause % CHECKS_PER_CLOCK == 0 && clock.now() >= paused_until {
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
    // The ringer rings once, so the doorbell is armed before it.
    let is_ready = || {
        ports.arm_ringer();
        ports.ready() || ready()
    };
    doorbell.park(is_ready, || remaining(clock, until));
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
    // Ports of one namespace share one descriptor for link events.
    carriers.dedup_by_key(|descriptor| descriptor.as_raw_fd());
    descriptors.extend(carriers.into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    let carriers = descriptors.len();
    descriptors.extend(ports.watched_descriptor().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    let _slack = Slack::for_sleep(timeout_ns);
    // The descriptors are readable, have failed, or the call was interrupted or timed out. The next poll finds out which.
    let _ = poll(&mut descriptors, Some(&timespec(timeout_ns)));
    // A socket whose interface has disappeared fails, which is a carrier change too.
    let (frames, carriers) = descriptors[..carriers].split_at(frames);
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
    fn a_frame_ends_a_sleep_long_before_its_deadline() {
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
            assert!(clock.now().since(before) < SLEEP_NS_MAX, "the doorbell ended the wait, not the timeout");
        }
        sender.join().unwrap();
    }

    #[test]
    fn a_node_that_shares_its_cpu_stays_awake_for_traffic_and_not_for_a_heartbeat() {
        let (policy, mut traffic) = (WaitPolicy::SHARED, Traffic::default());
        let at = |poll: u32, apart_ns: u64| Instant(u64::from(poll) * apart_ns);
        for poll in 1..100 {
            traffic.note(at(poll, 2 * TRAFFIC_GAP_NS_MAX));
            assert_eq!(
                traffic.awake_until(policy),
                at(poll, 2 * TRAFFIC_GAP_NS_MAX),
                "the polls are not consecutive"
            );
        }
        let mut traffic = Traffic::default();
        for poll in 1..100 {
            traffic.note(at(poll, TRAFFIC_GAP_NS_MAX));
            let yields = traffic.awake_until(policy) > at(poll, TRAFFIC_GAP_NS_MAX);
            assert_eq!(yields, poll >= policy.polls_min, "poll {poll}");
        }
        assert!(
            Traffic::default().awake_until(WaitPolicy::EAGER) > Instant::ZERO,
            "a node with its own CPU stays awake"
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
    fn a_change_directly_before_the_sleep_prevents_it() {
        let (mine, theirs) = (Doorbell::create().unwrap(), Doorbell::create().unwrap());
        let (a, _b) = shared_memory::pair(shared_memory::RING_BYTES_MIN, &mine, &theirs).unwrap();
        let mut ports = Ports::new(vec![Box::new(a)], FRAME_BYTES_MAX as u16).unwrap();
        let clock = Clock::begin();
        let before = clock.now();
        let mut checks = 0;
        let mut ready = || {
            checks += 1;
            true
        };
        wait(WaitPolicy::CROWDED, &clock, &mut ports, &Traffic::default(), Instant::NEVER, &mut ready);
        assert!(clock.now().since(before) < SLEEP_NS_MAX);
        assert_eq!(
            checks, 1,
            "checked after the doorbell is armed, although a crowded node does not check before"
        );
    }
}
