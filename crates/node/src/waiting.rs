//! What a node does while nothing happens.
//!
//! A frame that comes within microseconds is best met awake: a sleeping CPU takes 75 microseconds to come back, a
//! pause takes 40 nanoseconds. A frame that does not come is best met asleep, because the neighbour may need this
//! very CPU to produce it. So: about 64 pauses, then yields for a bounded time since the last traffic, then sleep on
//! the doorbell or the descriptors. Where more nodes run than there are CPUs, every moment awake is taken from the
//! one that is waited for, and the node goes to sleep at once.
//!
//! Every wait has an end, at most [`SLEEP_NS_MAX`] away.

use std::hint::spin_loop;
use std::os::fd::AsRawFd;
use std::thread::available_parallelism;

use rackloom_protocol::Instant;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::sched_yield;

use crate::clock::Clock;
use crate::wires::{Ports, WakeSource, timespec};

/// Longest sleep: also how soon an idle node notices what nobody rings for.
pub const SLEEP_NS_MAX: u64 = 100_000_000;

/// Longest time of all pauses together: a look at some devices is a system call, and then few of them are enough.
const PAUSE_NS_MAX: u64 = 3_000;
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
}

impl WaitPolicy {
    /// For nodes that have a CPU each.
    pub const EAGER: Self = Self { pauses: 64, yield_ns: 100_000 };
    /// For more nodes than CPUs.
    pub const CROWDED: Self = Self { pauses: 0, yield_ns: 0 };

    /// The policy for this many members (processes or threads that drive one) on this host.
    #[must_use]
    pub fn for_members(members: usize) -> Self {
        let cpus = available_parallelism().map_or(1, usize::from);
        if members <= cpus { Self::EAGER } else { Self::CROWDED }
    }
}

/// Return as soon as a port has a frame or `ready` says so, and at the latest at `until`. Returns whether a carrier may have
/// changed meanwhile.
pub(crate) fn wait(
    policy: WaitPolicy,
    clock: &Clock,
    ports: &mut Ports,
    last_traffic: Instant,
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
    let awake_until = until.min(last_traffic + policy.yield_ns);
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
            wait(WaitPolicy::CROWDED, &clock, &mut ports, Instant::ZERO, Instant::NEVER, &mut || false);
            assert!(clock.now().since(before) < SLEEP_NS_MAX, "woken by the bell and not by the clock");
        }
        sender.join().unwrap();
    }

    #[test]
    fn an_idle_wait_ends_at_its_deadline() {
        let mut ports = Ports::new(Vec::new(), FRAME_BYTES_MAX as u16).unwrap();
        let clock = Clock::begin();
        let until = clock.now() + 2_000_000;
        wait(WaitPolicy::EAGER, &clock, &mut ports, clock.now(), until, &mut || false);
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
        wait(WaitPolicy::CROWDED, &clock, &mut ports, Instant::ZERO, Instant::NEVER, &mut ready);
        assert!(clock.now().since(before) < SLEEP_NS_MAX);
        assert_eq!(asked, 1, "asked after arming, although a crowded node does not look before");
    }
}
