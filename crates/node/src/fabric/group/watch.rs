//! Whether all members are alive and go on, and how a group ends for all of them.
//!
//! A member hears of deaths from its own core, and of those who give up by a word of its own that they set. Whoever fails says
//! so to all others before it returns its error, so nobody waits for a member that has left a collective behind.

use std::sync::atomic::Ordering;
use std::task::Waker;

use rackloom_protocol::{Command, Condition, LocalRange, NodeId, OperationId, Signal, SignalKind};

use super::super::engine::Core;
use super::super::error::Error;
use super::super::table::Sink;
use super::Inner;
use super::ground::FAREWELL;

/// Set in the farewell word if a member was lost; else it gave up.
const LOST: u64 = 1 << 32;

/// Why a group is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    peer: NodeId,
    is_lost: bool,
}

impl Broken {
    pub(super) fn of(error: &Error, me: NodeId) -> Self {
        match error {
            Error::PeerLost { peer, .. } => Self { peer: *peer, is_lost: true },
            Error::GroupBroken { peer } => Self { peer: *peer, is_lost: false },
            _ => Self { peer: me, is_lost: false },
        }
    }

    pub(super) const fn error(self, maybe_done: bool) -> Error {
        match self {
            Self { peer, is_lost: true } => Error::PeerLost { peer, maybe_done },
            Self { peer, is_lost: false } => Error::GroupBroken { peer },
        }
    }

    fn word(self) -> u64 {
        u64::from(self.peer.0) + 1 + if self.is_lost { LOST } else { 0 }
    }

    const fn of_word(word: u64) -> Self {
        Self { peer: NodeId((word as u16).wrapping_sub(1)), is_lost: word & LOST != 0 }
    }
}

impl Inner {
    pub(super) fn me(&self) -> NodeId {
        self.place.members[self.place.rank]
    }

    fn others(&self) -> impl Iterator<Item = (usize, NodeId)> {
        self.place.members.iter().copied().enumerate().filter(|(rank, _)| *rank != self.place.rank)
    }

    /// Whether every member is alive and goes on.
    pub(super) fn watch(&self, core: &mut Core) -> Result<(), Error> {
        core.member()?;
        let total = core.table.deaths.total();
        if total != self.deaths_seen.load(Ordering::Relaxed) {
            let dead = self.others().find(|(rank, node)| core.table.deaths.of(*node) != self.deaths[*rank]);
            if let Some((_, peer)) = dead {
                return Err(Error::PeerLost { peer, maybe_done: true });
            }
            self.deaths_seen.store(total, Ordering::Relaxed);
        }
        match self.place.region.get::<u64>(FAREWELL)? {
            0 => Ok(()),
            word => Err(Broken::of_word(word).error(true)),
        }
    }

    /// The group is over: remember why, and tell everybody who may not know.
    pub(super) fn break_off(&self, core: &mut Core, error: &Error) {
        let broken = Broken::of(error, self.me());
        {
            let mut state = self.state();
            state.is_busy = false;
            if state.broken.is_some() {
                return;
            }
            state.broken = Some(broken);
        }
        for (rank, _) in self.others() {
            let word = self.place.address(rank, FAREWELL);
            let signal = Signal {
                region: word.region,
                offset: word.offset,
                key: word.key,
                kind: SignalKind::Set,
                value: broken.word(),
            };
            let source = LocalRange { region: word.region, offset: 0, length: 0 };
            let command =
                Command::Put { operation: OperationId(0), target: word, source, signal: Some(signal) };
            // Who cannot be reached finds out by himself that members are lost.
            let _ = core.submit(command, Sink::Nobody);
        }
        core.turn();
    }

    /// Wake this one when a member dies or breaks the group.
    pub(super) fn register(&self, core: &mut Core, waker: &Waker) {
        core.table.deaths.watch(waker);
        let mut state = self.state();
        if state.farewell.is_none() {
            let region = self.place.region.options().region;
            let command = Command::WaitUntil {
                operation: OperationId(0),
                region,
                offset: FAREWELL,
                condition: Condition::NotEqual,
                value: 0,
                depends_on: None,
            };
            state.farewell = core.submit(command, Sink::Asker(None)).ok();
        }
        if let Some(farewell) = state.farewell {
            core.table.set_waker(farewell, waker);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(farewell) = self.state().farewell {
            let mut held = self.place.region.engine().hold();
            held.core().cancel(farewell);
            held.core().table.abandon(farewell);
        }
    }
}
