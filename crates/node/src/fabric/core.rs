//! State under a node's lock, and polling of the node.
//!
//! A *poll* takes frames that have arrived and sends frames that are ready. A *visit* is a poll by a thread that then returns to its own work;
//! it is skipped if a driver thread is awake and polls anyway. Operations enter through [`super::order`] and end in [`super::table`].
//!
//! This file has no threads and no doorbells: [`super::held`] decides which thread holds the lock and which one is woken afterwards.

use std::task::Waker;
use std::time::Duration;

use rackloom_protocol::{Endpoint, Instant, RegionId};

use super::activity::Activities;
use super::bytes::RegionMemory;
use super::error::Error;
use super::faults::SeatFaults;
use super::order::BatchHint;
use super::table::Table;
use crate::runtime::Runtime;

/// Age of the last poll from which a visit that only sends also receives frames, in nanoseconds.
const RECEIVE_AGE_NS_MAX: u64 = 10_000;

pub(super) type Member = Runtime<Endpoint, RegionMemory>;

/// State of a node that its lock protects.
#[derive(Debug)]
pub(super) struct Core {
    /// `None` once the node has left.
    pub(super) member: Option<Box<Member>>,
    pub(super) table: Table,
    /// A driver thread exists.
    pub(super) has_driver: bool,
    /// The driver sleeps at the doorbell; the number of operations that had ended before.
    pub(super) driver_asleep: Option<u64>,
    /// Wakers of threads that wait while another thread drives.
    pub(super) standby: Vec<Waker>,
    /// Wakers of tasks whose operation found no room. They are woken after each poll that changed something, because that may have made room.
    awaiting_room: Vec<Waker>,
    /// Number of threads that sleep at the doorbell, and their latest deadline.
    pub(super) asleep: usize,
    pub(super) asleep_until: Instant,
    /// The sleeping threads have been woken and do not run yet.
    pub(super) is_called: bool,
    /// The background thread waits until it is needed.
    pub(super) is_aside: bool,
    /// The background thread will soon check if visits continue.
    pub(super) is_resting: bool,
    /// Time until that check, if it is not the first one in a row.
    pub(super) rest: Duration,
    /// A future is pending, and the background thread has not slept since it was polled.
    pub(super) is_entrusted: bool,
    /// Number of visits since the background thread began to sleep at the doorbell.
    pub(super) visits: u32,
    /// The node was polled since the lock was taken.
    pub(super) has_polled: bool,
    pub(super) has_left: bool,
    /// A [`super::Driver`] exists.
    pub(super) has_handler: bool,
    /// Batch state since the last poll.
    pub(super) batch: BatchHint,
    pub(super) activities: Activities,
    /// Faults that this seat plays. `None` until the first one is injected.
    pub(super) faults: Option<Box<SeatFaults>>,
    /// Number of polls, and of those the polls by the background thread.
    pub(super) polls: u64,
    pub(super) background_polls: u64,
}

impl Core {
    pub(super) fn new(member: Member) -> Self {
        Self {
            member: Some(Box::new(member)),
            table: Table::default(),
            has_driver: false,
            driver_asleep: None,
            standby: Vec::new(),
            awaiting_room: Vec::new(),
            asleep: 0,
            asleep_until: Instant::NEVER,
            is_called: false,
            is_aside: false,
            is_resting: false,
            rest: Duration::ZERO,
            is_entrusted: false,
            visits: 0,
            has_polled: false,
            has_left: false,
            has_handler: false,
            batch: BatchHint::default(),
            activities: Activities::default(),
            faults: None,
            polls: 0,
            background_polls: 0,
        }
    }

    /// Polls the node once. Returns `true` if something happened.
    pub(super) fn poll(&mut self) -> bool {
        self.polls += 1;
        self.has_polled = true;
        self.batch = BatchHint::default();
        let Self { member: Some(member), table, faults, .. } = self else { return false };
        let before = table.ended_count;
        let now = member.look_at_stopwatch();
        let progress = match faults {
            None => member.turn(now, &mut |event| table.handle_event(event)),
            Some(faults) => faults.poll(now, member, table),
        };
        if table.ended_count != before {
            member.memory_mut().sweep(&table.uses);
        }
        if !self.activities.is_empty() {
            self.advance_activities();
        }
        if progress {
            self.wake_waiting_for_room();
        }
        progress
    }

    /// Wakes `waker` after the next poll that changes something: its operation found no room.
    pub(super) fn await_room(&mut self, waker: &Waker) {
        if !self.awaiting_room.iter().any(|known| known.will_wake(waker)) {
            self.awaiting_room.push(waker.clone());
        }
    }

    /// Wakes all tasks that wait for room. Each tries again, and waits again if there is no room.
    pub(super) fn wake_waiting_for_room(&mut self) {
        self.table.to_wake.append(&mut self.awaiting_room);
    }

    /// Polls the node once, unless a driver thread is awake and polls anyway.
    pub(super) fn visit(&mut self) {
        if !self.is_driven() {
            self.poll();
        }
    }

    /// Returns the first result of `look`, before or after a visit.
    pub(super) fn visit_for<T>(&mut self, mut look: impl FnMut(&mut Self) -> Option<T>) -> Option<T> {
        look(self).or_else(|| {
            self.visit();
            look(self)
        })
    }

    /// Visits the node on behalf of a caller that only sends. Frames that arrived in the last few microseconds are left for a caller that
    /// polls.
    pub(super) fn visit_to_send(&mut self) {
        if self.is_driven() {
            return;
        }
        self.batch = BatchHint::default();
        let Self { member: Some(member), table, activities, faults, .. } = self else { return };
        self.has_polled = true;
        let now = member.look_at_stopwatch();
        if activities.is_empty() && faults.is_none() && now < member.last_receive() + RECEIVE_AGE_NS_MAX {
            if member.finish(now, &mut |event| table.handle_event(event)) {
                self.wake_waiting_for_room();
            }
        } else {
            self.poll();
        }
    }

    /// Returns the time for which this node may be silent before a neighbour or a peer suspects it: a quarter of their timeouts.
    pub(super) fn patience_of_peers(&self) -> Duration {
        let Some(member) = &self.member else { return Duration::ZERO };
        let config = member.member().config();
        let shortest_ns = config.transport.timeout_min_ns.min(config.timers.heartbeat_interval_ns);
        Duration::from_nanos(shortest_ns / 4)
    }

    /// Returns the time after `patience`; `None` once the node has left.
    pub(super) fn moment_in(&mut self, patience: Duration) -> Option<Instant> {
        let patience_ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        self.member.as_mut().map(|member| member.look_at_stopwatch() + patience_ns)
    }

    /// Returns `true` if the node has left, or `until` has passed.
    pub(super) fn is_over(&mut self, until: Instant) -> bool {
        let Some(member) = &mut self.member else { return true };
        self.has_left || until != Instant::NEVER && member.look_at_stopwatch() >= until
    }

    /// Returns the conditions that the core waits for, one line each.
    pub(super) fn waiting_for(&self) -> Vec<String> {
        self.member.as_ref().map_or_else(Vec::new, |member| member.member().waiting_for())
    }

    /// Returns `true` if a region without a handle is kept for operations that use it.
    pub(super) fn keeps_retired(&mut self, region: RegionId) -> bool {
        let Self { member: Some(member), table, .. } = self else { return false };
        member.memory_mut().sweep(&table.uses);
        member.memory_mut().is_retired(region)
    }

    pub(super) fn member(&mut self) -> Result<&mut Member, Error> {
        self.member.as_deref_mut().ok_or(Error::Closed)
    }
}
