//! What a node's lock protects, and what is done with it in hand: turns and visits.
//!
//! A *turn* takes what has arrived and sends what waits. A *visit* is the turn of somebody who comes and goes, and is none where somebody else
//! is awake and makes one anyway. Operations go in through [`super::order`] and end in [`super::table`].
//!
//! This file knows neither threads nor bells: who may be here, and who is called afterwards, is [`super::held`]'s business.

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

/// A visitor who sends looks for frames as well if nobody has for so long.
const UNHEARD_NS_MAX: u64 = 10_000;

pub(super) type Member = Runtime<Endpoint, RegionMemory>;

/// What the lock protects.
#[derive(Debug)]
pub(super) struct Core {
    /// `None` once the node has left.
    pub(super) member: Option<Box<Member>>,
    pub(super) table: Table,
    /// Somebody drives.
    pub(super) has_driver: bool,
    /// The driver sleeps at the doorbell, since so many operations had ended.
    pub(super) driver_asleep: Option<u64>,
    /// Who waits while somebody else drives.
    pub(super) standby: Vec<Waker>,
    /// Tasks whose operation found no room: woken when something has happened, because that may have made room.
    awaiting_room: Vec<Waker>,
    /// Threads asleep at the doorbell, and until when at most.
    pub(super) asleep: usize,
    pub(super) asleep_until: Instant,
    /// They have been called and have not come yet.
    pub(super) is_called: bool,
    /// The background thread waits to be needed.
    pub(super) is_aside: bool,
    /// The background thread is about to look whether visits go on.
    pub(super) is_resting: bool,
    /// For how long it does so next, if not for the first time in a row.
    pub(super) rest: Duration,
    /// A future is pending, and the background thread has not slept since.
    pub(super) is_entrusted: bool,
    /// Visits since the background thread went to sleep at the doorbell.
    pub(super) visits: u32,
    /// A turn has been made since the lock was taken.
    pub(super) has_turned: bool,
    pub(super) has_left: bool,
    /// A [`super::Driver`] is about.
    pub(super) has_handler: bool,
    /// Since the last turn.
    pub(super) batch: BatchHint,
    pub(super) activities: Activities,
    /// Faults that this seat plays, once there were any.
    pub(super) faults: Option<Box<SeatFaults>>,
    /// Turns so far, and those of the background thread among them.
    pub(super) turns: u64,
    pub(super) background_turns: u64,
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
            has_turned: false,
            has_left: false,
            has_handler: false,
            batch: BatchHint::default(),
            activities: Activities::default(),
            faults: None,
            turns: 0,
            background_turns: 0,
        }
    }

    /// One turn. Returns whether anything happened.
    pub(super) fn turn(&mut self) -> bool {
        self.turns += 1;
        self.has_turned = true;
        self.batch = BatchHint::default();
        let Self { member: Some(member), table, faults, .. } = self else { return false };
        let before = table.ended_count;
        let now = member.look_at_stopwatch();
        let progress = match faults {
            None => member.turn(now, &mut |event| table.hear(event)),
            Some(faults) => faults.poll(now, member, table),
        };
        if table.ended_count != before {
            member.memory_mut().sweep(&table.uses);
        }
        if !self.activities.is_empty() {
            self.advance_activities();
        }
        if progress {
            self.wake_those_awaiting_room();
        }
        progress
    }

    /// Wake this task once something has happened at the node: its operation found no room.
    pub(super) fn await_room(&mut self, waker: &Waker) {
        if !self.awaiting_room.iter().any(|known| known.will_wake(waker)) {
            self.awaiting_room.push(waker.clone());
        }
    }

    /// Wake all tasks that wait for room. Each tries again, and waits again if there is none.
    pub(super) fn wake_those_awaiting_room(&mut self) {
        self.table.to_wake.append(&mut self.awaiting_room);
    }

    /// A turn of somebody who has only come to look, unless somebody else is awake and makes one anyway.
    pub(super) fn visit(&mut self) {
        if !self.is_driven() {
            self.turn();
        }
    }

    /// What a look finds, at once or after a visit.
    pub(super) fn visit_for<T>(&mut self, mut look: impl FnMut(&mut Self) -> Option<T>) -> Option<T> {
        look(self).or_else(|| {
            self.visit();
            look(self)
        })
    }

    /// The same as a visit for somebody who has only come to send: what has arrived in the last few microseconds can wait for the one
    /// who asks for it.
    pub(super) fn visit_to_send(&mut self) {
        if self.is_driven() {
            return;
        }
        self.batch = BatchHint::default();
        let Self { member: Some(member), table, activities, faults, .. } = self else { return };
        self.has_turned = true;
        let now = member.look_at_stopwatch();
        if activities.is_empty() && faults.is_none() && now < member.last_receive() + UNHEARD_NS_MAX {
            if member.finish(now, &mut |event| table.hear(event)) {
                self.wake_those_awaiting_room();
            }
        } else {
            self.turn();
        }
    }

    /// How long this node may be silent without a neighbour or a peer having doubts about it: a quarter of what they wait for at least.
    pub(super) fn patience_of_peers(&self) -> Duration {
        let Some(member) = &self.member else { return Duration::ZERO };
        let config = member.member().config();
        let shortest_ns = config.transport.timeout_min_ns.min(config.timers.heartbeat_interval_ns);
        Duration::from_nanos(shortest_ns / 4)
    }

    /// When so much time will have passed; `None` once the node has left.
    pub(super) fn moment_in(&mut self, patience: Duration) -> Option<Instant> {
        let patience_ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        self.member.as_mut().map(|member| member.look_at_stopwatch() + patience_ns)
    }

    /// Whether there is nothing more to wait for: the node has left, or it is late.
    pub(super) fn is_over(&mut self, until: Instant) -> bool {
        let Some(member) = &mut self.member else { return true };
        self.has_left || until != Instant::NEVER && member.look_at_stopwatch() >= until
    }

    /// What the core waits for, one line each.
    pub(super) fn waiting_for(&self) -> Vec<String> {
        self.member.as_ref().map_or_else(Vec::new, |member| member.member().waiting_for())
    }

    /// Whether a region without a handle is still there, for operations that use it.
    pub(super) fn keeps_retired(&mut self, region: RegionId) -> bool {
        let Self { member: Some(member), table, .. } = self else { return false };
        member.memory_mut().sweep(&table.uses);
        member.memory_mut().is_retired(region)
    }

    pub(super) fn member(&mut self) -> Result<&mut Member, Error> {
        self.member.as_deref_mut().ok_or(Error::Closed)
    }
}
