//! Detection of members that are lost or gave up, and the notification that ends a group for all members.
//!
//! A member learns of deaths from its own core, and of members that gave up from its departure word, which they set. A member that fails
//! notifies all others before it returns its error, and records it in its group status for members that join later. So no member waits for one
//! that has abandoned a collective.

use std::sync::atomic::Ordering;
use std::task::Waker;

use rackloom_protocol::{Command, Condition, LocalRange, NodeId, OperationId, Signal};

use super::super::error::{Error, Invalid};
use super::layout::{DEPARTURE, Layout};
use super::query::{Broken, CallName, GroupStatus};
use super::shared::Inner;
use crate::fabric::engine::core::Core;
use crate::fabric::engine::table::Sink;

impl Inner {
    pub(super) fn me(&self) -> NodeId {
        self.membership.members[self.membership.rank]
    }

    fn others(&self) -> impl Iterator<Item = usize> {
        (0..self.membership.members.len()).filter(|rank| *rank != self.membership.rank)
    }

    /// Returns an error if a member is lost or gave up. Called before a call begins.
    pub(super) fn watch(&self, core: &mut Core) -> Result<(), Error> {
        core.member()?;
        self.check_departure()?;
        self.dead(core).map_or(Ok(()), |peer| Err(Error::PeerLost { peer, maybe_done: true }))
    }

    /// Returns an error if a member has broken the group.
    pub(super) fn check_departure(&self) -> Result<(), Error> {
        if let Some(broken) = self.common().broken {
            return Err(broken.error(true));
        }
        match self.membership.memory.words.get::<u64>(DEPARTURE)? {
            0 => Ok(()),
            word => match GroupStatus::of_word(word) {
                GroupStatus::Over(broken) => Err(broken.error(true)),
                // No member writes this value, but any program with the key may.
                GroupStatus::Calls(_) => Err(Error::Invalid(Invalid::GroupOverwritten)),
            },
        }
    }

    /// Returns a member that has died since this one joined.
    pub(super) fn dead(&self, core: &Core) -> Option<NodeId> {
        let total = core.table.deaths.total();
        if total == self.deaths_seen.load(Ordering::Relaxed) {
            return None;
        }
        let dead = self.others().find(|rank| self.membership.has_died(core, *rank));
        if dead.is_none() {
            self.deaths_seen.store(total, Ordering::Relaxed);
        }
        dead.map(|rank| self.membership.members[rank])
    }

    /// Publishes the current call of this member in a lane.
    pub(super) fn announce(&self, layout: Layout, call: CallName) -> Result<(), Error> {
        self.membership.memory.words.write(layout.group_status(), &[GroupStatus::Calls(call).word()])
    }

    /// Breaks the group: records the reason and notifies all other members.
    pub(super) fn break_group(&self, core: &mut Core, error: &Error) {
        let broken = Broken::of(error, self.me());
        {
            let mut common = self.common();
            if common.broken.is_some() {
                return;
            }
            common.broken = Some(broken);
        }
        let departure = GroupStatus::Over(broken).word();
        // The group status is for members that have not joined. It is written first: a member that joins while the others are notified finds
        // one of the two. The word is within the region, so the write cannot fail.
        for lane in &self.lanes {
            let _ = self.membership.memory.words.write(lane.layout.group_status(), &[departure]);
        }
        for rank in self.others() {
            let word = self.membership.word(rank, DEPARTURE);
            let signal = Signal::set(word, departure);
            let source = LocalRange { region: word.region, offset: 0, length: 0 };
            let command =
                Command::Put { operation: OperationId(0), target: word, source, signal: Some(signal) };
            // Members that cannot be reached detect the loss by themselves.
            let _ = core.submit(command, Sink::Discard);
        }
        // Calls of other lanes end as well: the wait that they sleep with ends.
        if let Some(departure) = self.common().departure {
            core.cancel(departure);
        }
        core.poll();
    }

    /// Registers a waker for the death of a member or a break of the group.
    pub(super) fn register(&self, core: &mut Core, waker: &Waker) {
        core.table.deaths.watch(waker);
        let mut common = self.common();
        if common.departure.is_none() {
            let region = self.membership.memory.words.options().region;
            let command = Command::WaitUntil {
                operation: OperationId(0),
                region,
                offset: DEPARTURE,
                condition: Condition::NotEqual,
                value: 0,
                depends_on: None,
            };
            common.departure = core.submit(command, Sink::Request(None)).ok();
        }
        if let Some(departure) = common.departure {
            core.table.set_waker(departure, waker);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let departure = self.common().departure;
        if let Some(departure) = departure {
            let mut held = self.membership.memory.words.engine().hold();
            held.core().cancel(departure);
            held.core().table.abandon(departure);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Wake, Waker};

    use super::super::super::{Fabric, Group, GroupOptions, Node};

    struct Another;

    impl Wake for Another {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn a_future_is_woken_by_deaths_until_it_ends() {
        let plan = rackloom_plan::Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "test").unwrap();
        let fabric = Fabric::local(&plan).unwrap();
        let members: Vec<_> = fabric.nodes().iter().map(Node::id).collect();
        let node = &fabric.nodes()[0];
        let group = Group::join(node, GroupOptions::new(9, 1), &members).unwrap();
        let watchers = || node.with_core(|core| core.table.deaths.watchers());
        {
            let mut barrier = pin!(group.barrier());
            for _ in 0..5 {
                let waker = Waker::from(Arc::new(Another));
                assert!(barrier.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
                assert_eq!(watchers(), 1);
            }
        }
        assert_eq!(watchers(), 0);
    }
}
