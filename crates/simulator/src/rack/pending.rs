//! Events of members that run ahead of each other, before and after they are handled.

use std::collections::BTreeMap;

use rackloom_protocol::{Event, Instant, NodeId};

use crate::lists::Lists;
use crate::queue::Scheduled;

/// Pending events of all members within the time that is being handled.
#[derive(Debug)]
pub(super) struct Ahead {
    /// Pending events by member.
    pub(super) lists: Lists<Scheduled>,
    /// Members with an event in their list.
    pub(super) concerned: Vec<NodeId>,
    /// Events that members had scheduled for themselves when they were stopped.
    pub(super) stopped: BTreeMap<NodeId, Vec<Scheduled>>,
    /// Events in order of the polls: time, member, number of the event at that member, event.
    pub(super) events: Vec<(Instant, NodeId, u64, Event)>,
    pub(super) is_running: bool,
    /// Last moment in which a member was polled.
    pub(super) latest: Instant,
    /// True if members always run together: for a test that compares.
    pub(super) is_forbidden: bool,
}

impl Ahead {
    pub(super) fn new(members: usize) -> Self {
        Self {
            lists: Lists::new(members),
            concerned: Vec::new(),
            stopped: BTreeMap::new(),
            events: Vec::new(),
            is_running: false,
            latest: Instant::ZERO,
            is_forbidden: false,
        }
    }

    pub(super) fn add(&mut self, member: NodeId, scheduled: Scheduled) {
        if self.lists.push(member.index(), scheduled) {
            self.concerned.push(member);
        }
    }

    /// Returns the time of a member's next entry.
    pub(super) fn next_at(&self, member: NodeId) -> Instant {
        self.lists.first(member.index()).map_or(Instant::NEVER, |next| next.at)
    }

    /// Iterates over a member's next entries.
    pub(super) fn next(&self, member: NodeId) -> impl Iterator<Item = &Scheduled> + Clone {
        self.lists.iter(member.index())
    }

    pub(super) fn pop(&mut self, member: NodeId) -> Option<Scheduled> {
        self.lists.pop(member.index())
    }

    pub(super) fn trim(&mut self, kept: usize) {
        self.lists.trim(kept);
        self.events.shrink_to(kept);
    }
}
