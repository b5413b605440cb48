//! State under a node's lock, and polling of the node.
//!
//! A *poll* takes frames that have arrived and sends frames that are ready. A *visit* is a poll by a thread that then returns to its own work;
//! it is skipped if a driver thread is awake and polls anyway. Operations enter through [`super::order`] and end in [`super::table`].
//!
//! This file has no threads and no doorbells: [`super::held`] decides which thread holds the lock and which one is woken afterwards.

use std::task::Waker;
use std::time::Duration;

use rackloom_protocol::{Access, Instant, NodeId, OperationError, OperationId, RegionId};

use super::activity::{Activities, Activity};
use super::member::Member;
use super::table::Table;
use crate::fabric::completion::Ended;
use crate::fabric::error::Error;
use crate::fabric::local::LocalPaths;
use crate::fabric::seat::faults::SeatFaults;

/// Age of the last poll from which a visit that only sends also receives frames, in nanoseconds.
const RECEIVE_AGE_NS_MAX: u64 = 10_000;

/// Peer of the last operations, and the number of further operations that may wait for a frame.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::fabric) struct BatchHint {
    pub(in crate::fabric) peer: Option<NodeId>,
    pub(in crate::fabric) wanted: usize,
}

/// State of a node that its lock protects.
#[derive(Debug)]
pub(in crate::fabric) struct Core {
    /// `None` once the node has left.
    pub(in crate::fabric) member: Option<Box<Member>>,
    pub(in crate::fabric) table: Table,
    /// Memory of other nodes of this server. `None` if no node shares memory with this one.
    pub(in crate::fabric) local: Option<Box<LocalPaths>>,
    /// A driver thread exists.
    pub(in crate::fabric) has_driver: bool,
    /// The driver sleeps at the doorbell; the number of operations that had ended before.
    pub(in crate::fabric) driver_asleep: Option<u64>,
    /// Wakers of threads that wait while another thread drives.
    pub(in crate::fabric) standby: Vec<Waker>,
    /// Wakers of tasks whose operation found no space. They are woken after each poll that changed something, because that may have freed space.
    awaiting_space: Vec<Waker>,
    /// Threads that sleep at the doorbell.
    pub(in crate::fabric) sleepers: Sleepers,
    pub(in crate::fabric) background: Background,
    /// Time until that check, if it is not the first one in a row.
    pub(in crate::fabric) rest: Duration,
    /// A future is pending, and the background thread has not slept since it was polled.
    pub(in crate::fabric) is_delegated: bool,
    /// Time until which the background thread listens also while the application polls. [`Instant::ZERO`] if the application has not paused its polls.
    pub(in crate::fabric) listens_until: Instant,
    /// Number of visits since the background thread began to sleep at the doorbell.
    pub(in crate::fabric) visits: u32,
    /// The node was polled since the lock was taken.
    pub(in crate::fabric) has_polled: bool,
    pub(in crate::fabric) handler: Handler,
    /// Batch state since the last poll.
    pub(in crate::fabric) batch: BatchHint,
    pub(in crate::fabric) activities: Activities<Self>,
    /// Bytes that the regions of the node may have together. No limit unless a submitted job holds the seat.
    pub(in crate::fabric) memory_max_bytes: u64,
    /// Faults that this seat plays. `None` until the first one is injected.
    pub(in crate::fabric) faults: Option<Box<SeatFaults>>,
    /// Number of polls, and of those the polls by the background thread.
    pub(in crate::fabric) polls: u64,
    pub(in crate::fabric) background_polls: u64,
}

/// Threads that sleep at the doorbell.
#[derive(Clone, Copy, Debug)]
pub(in crate::fabric) struct Sleepers {
    /// Number of the threads.
    pub(in crate::fabric) count: usize,
    /// Their earliest deadline.
    pub(in crate::fabric) until: Instant,
    /// True if they have been woken and do not run yet.
    pub(in crate::fabric) is_called: bool,
}

/// State of the background thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fabric) enum Background {
    /// It drives the node, sleeps at the doorbell, or waits for the lock.
    Active,
    /// It waits until it is needed.
    Aside,
    /// It leaves the node to visitors, and will soon check if visits continue.
    Resting,
}

impl Background {
    /// Ends the rest. Returns true if the thread was resting, so that it must be woken.
    pub(in crate::fabric) fn end_rest(&mut self) -> bool {
        let is_resting = *self == Self::Resting;
        if is_resting {
            *self = Self::Active;
        }
        is_resting
    }
}

/// The one place for a [`crate::fabric::Driver`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fabric) enum Handler {
    /// No driver exists.
    Free,
    /// A driver exists.
    Taken,
}

impl Core {
    /// Returns the bytes of all regions of the node.
    pub(in crate::fabric) fn used_bytes(&mut self) -> Result<u64, Error> {
        let member = self.member.as_mut().ok_or(Error::Closed)?;
        Ok(member.memory_mut().account(&self.table.uses).bytes)
    }

    pub(in crate::fabric) fn new(member: Member) -> Self {
        Self {
            member: Some(Box::new(member)),
            table: Table::default(),
            local: None,
            has_driver: false,
            driver_asleep: None,
            standby: Vec::new(),
            awaiting_space: Vec::new(),
            sleepers: Sleepers { count: 0, until: Instant::NEVER, is_called: false },
            background: Background::Active,
            rest: Duration::ZERO,
            is_delegated: false,
            listens_until: Instant::ZERO,
            visits: 0,
            has_polled: false,
            handler: Handler::Free,
            batch: BatchHint::default(),
            activities: Activities::default(),
            memory_max_bytes: u64::MAX,
            faults: None,
            polls: 0,
            background_polls: 0,
        }
    }

    /// Polls the node once. Returns `true` if something happened.
    pub(in crate::fabric) fn poll(&mut self) -> bool {
        self.polls += 1;
        self.has_polled = true;
        self.batch = BatchHint::default();
        let Self { member: Some(member), table, faults, local, .. } = self else { return false };
        let before = table.ended_count;
        let now = member.look_at_stopwatch();
        if let Some(local) = local {
            local.poll(member, &table.deaths);
        }
        let progress = match faults {
            None => member.poll(now, &mut |event| table.handle_event(event)),
            Some(faults) => faults.poll(now, member, table, local.as_deref()),
        };
        if table.ended_count != before {
            member.memory_mut().sweep(&table.uses);
        }
        if !self.activities.is_empty() {
            self.advance_activities();
        }
        if progress {
            self.wake_waiting_for_space();
        }
        progress
    }

    /// Wakes `waker` after the next poll that changes something: its operation found no space.
    pub(in crate::fabric) fn await_space(&mut self, waker: &Waker) {
        if !self.awaiting_space.iter().any(|known| known.will_wake(waker)) {
            self.awaiting_space.push(waker.clone());
        }
    }

    /// Wakes all tasks that wait for space. Each tries again, and waits again if there is none.
    pub(in crate::fabric) fn wake_waiting_for_space(&mut self) {
        self.table.to_wake.append(&mut self.awaiting_space);
    }

    /// Polls the node once, unless a driver thread is awake and polls anyway.
    pub(in crate::fabric) fn visit(&mut self) {
        if !self.is_driven() {
            self.poll();
        }
    }

    /// Returns the first result of `look`, before or after a visit.
    pub(in crate::fabric) fn visit_for<T>(
        &mut self,
        mut look: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<T> {
        look(self).or_else(|| {
            self.visit();
            look(self)
        })
    }

    /// Visits the node on behalf of a caller that only sends. Frames that arrived in the last few microseconds are left for a caller that
    /// polls.
    pub(in crate::fabric) fn visit_to_send(&mut self) {
        if self.is_driven() {
            return;
        }
        self.batch = BatchHint::default();
        let Self { member: Some(member), table, activities, faults, .. } = self else { return };
        self.has_polled = true;
        let now = member.look_at_stopwatch();
        if activities.is_empty() && faults.is_none() && now < member.last_receive() + RECEIVE_AGE_NS_MAX {
            if member.finish(now, &mut |event| table.handle_event(event)) {
                self.wake_waiting_for_space();
            }
        } else {
            self.poll();
        }
    }

    /// Returns `true` if a frame waits at a port, or a peer has changed an awaited word.
    pub(in crate::fabric) fn is_ready(&mut self) -> bool {
        let Self { member: Some(member), local, .. } = self else { return false };
        member.ready() || local.is_some() && LocalPaths::is_ready(member)
    }

    /// Prepares a sleep at the doorbell.
    pub(in crate::fabric) fn prepare_sleep(&mut self) {
        if let Self { member: Some(member), local: Some(local), .. } = self {
            local.prepare_sleep(member);
        }
    }

    /// Returns when the next poll is due without a frame; [`Instant::NEVER`] once the node has left.
    pub(in crate::fabric) fn next_poll(&self, now: Instant) -> Instant {
        let Some(member) = &self.member else { return Instant::NEVER };
        member.next_poll(now).min(self.local.as_ref().map_or(Instant::NEVER, |local| local.next_poll()))
    }

    /// Returns the time for which this node may be silent before a neighbour or a peer suspects it: a quarter of their timeouts.
    pub(in crate::fabric) fn silence_max(&self) -> Duration {
        let Some(member) = &self.member else { return Duration::ZERO };
        let config = member.member().config();
        let shortest_ns = config.transport.timeout_min_ns.min(config.timers.heartbeat_interval_ns);
        Duration::from_nanos(shortest_ns / 4)
    }

    /// Returns the time after `timeout`; `None` once the node has left.
    pub(in crate::fabric) fn moment_in(&mut self, timeout: Duration) -> Option<Instant> {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        self.member.as_mut().map(|member| member.look_at_stopwatch() + timeout_ns)
    }

    /// Returns `true` if the node has left, or `until` has passed.
    pub(in crate::fabric) fn is_over(&mut self, until: Instant) -> bool {
        let Some(member) = &mut self.member else { return true };
        until != Instant::NEVER && member.look_at_stopwatch() >= until
    }

    /// Returns the conditions that the core waits for, one line each.
    pub(in crate::fabric) fn waiting_for(&self) -> Vec<String> {
        self.member.as_ref().map_or_else(Vec::new, |member| member.member().waiting_for())
    }

    /// Returns `true` if a region without a handle is kept for operations that use it, or a peer still copies from or to it.
    pub(in crate::fabric) fn keeps_retired(&mut self, region: RegionId) -> bool {
        let Self { member: Some(member), table, local, .. } = self else { return false };
        member.memory_mut().sweep(&table.uses);
        member.memory_mut().is_retired(region) || local.as_ref().is_some_and(|local| local.is_copied(region))
    }

    pub(in crate::fabric) fn member(&mut self) -> Result<&mut Member, Error> {
        self.member.as_deref_mut().ok_or(Error::Closed)
    }

    /// Sets the access rights of one node to a region of this node; `None` removes them. All mappings of the region end, and may be requested again.
    pub(in crate::fabric) fn set_access(
        &mut self,
        region: RegionId,
        node: NodeId,
        access: Option<Access>,
    ) -> Result<(), Error> {
        self.member()?.member_mut().set_access(region, node, access);
        if let Some(local) = &self.local {
            local.set_access(region, node, access);
        }
        Ok(())
    }

    /// Begins an activity. Its end completes `operation`.
    pub(in crate::fabric) fn begin(&mut self, operation: OperationId, activity: Box<dyn Activity<Self>>) {
        self.activities.running.push((operation, activity));
        self.advance_activities();
    }

    /// Ends an activity that has not ended. It is dropped when the lock is released.
    pub(in crate::fabric) fn cancel_activity(&mut self, operation: OperationId) {
        let running = &mut self.activities.running;
        let Some(index) = running.iter().position(|(known, _)| *known == operation) else { return };
        let (_, activity) = running.remove(index);
        self.table.conclude(operation, Err(Error::Failed(OperationError::Cancelled)));
        self.activities.ended.push(activity);
    }

    /// Advances every activity.
    pub(in crate::fabric) fn advance_activities(&mut self) {
        // The list is empty meanwhile, so polls by an activity find none.
        let mut running = std::mem::take(&mut self.activities.running);
        let mut index = 0;
        while index < running.len() {
            match running[index].1.advance(self) {
                None => index += 1,
                Some(result) => {
                    let (operation, activity) = running.remove(index);
                    self.table.conclude(operation, result.map(|()| Ended::default()));
                    self.activities.ended.push(activity);
                }
            }
        }
        running.append(&mut self.activities.running);
        self.activities.running = running;
    }
}
