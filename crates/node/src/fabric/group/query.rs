//! The call that each member is in, published in one word, and queries of that word by other members.
//!
//! Every member has a status word: its current or last call, or the reason why the group is over. Others read it without help of its owner. So a
//! query also finds cases in which no message could be sent: a member gave up before the initiator joined, is in a different call, has
//! not arrived, or is lost.
//!
//! The reaction to an answer is not here (`join_check`, `peer_check`).

use rackloom_protocol::{Atomic, AtomicKind, Command, Instant, NodeId, OperationError, OperationId, Width};

use super::super::error::Error;
use super::layout::Layout;
use super::membership::Membership;
use crate::fabric::engine::core::Core;
use crate::fabric::engine::table::Sink;

/// Interval between queries of a member that has no region yet.
pub(super) const RETRY_NS: u64 = 5_000_000;
/// High half of a group status of a group that is over. No call has this number.
const OVER: u32 = u32::MAX;
/// Bit in the low half of such a group status: a member was lost. Otherwise one gave up.
const LOST: u32 = 1 << 31;

/// Reason why a group is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    peer: NodeId,
    is_lost: bool,
}

impl Broken {
    pub(super) fn of(error: &Error, me: NodeId) -> Self {
        match error {
            Error::PeerLost { peer, .. } | Error::PeerLeft { peer, .. } => {
                Self { peer: *peer, is_lost: true }
            }
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
}

/// Number and hash of a call, equal on all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallName {
    /// Number of the call, from 1.
    pub(super) number: u32,
    /// Hash of the call's arguments.
    pub(super) kind: u32,
}

/// Returns a hash (FNV-1a) that differs, in most cases, for different bytes. `from` is the hash of preceding bytes.
pub(super) fn hash(from: u32, bytes: impl IntoIterator<Item = u8>) -> u32 {
    bytes.into_iter().fold(from, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

impl CallName {
    /// Returns the number of the next call.
    pub(super) const fn after(number: u32) -> u32 {
        let next = number.wrapping_add(1);
        if next == OVER { 0 } else { next }
    }

    /// Compares this call with that of a member whose group status is `other`.
    pub(super) const fn compare(self, other: Self) -> RelativePosition {
        let ahead = other.number.wrapping_sub(self.number).cast_signed();
        match ahead {
            ..0 => RelativePosition::Behind,
            0 if other.kind == self.kind => RelativePosition::Equal,
            _ => RelativePosition::Diverged,
        }
    }
}

/// Position of another member relative to this member's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelativePosition {
    /// The member has not reached this call.
    Behind,
    /// The member is in the same call, or it was its last one.
    Equal,
    /// The member is in a different call, or has gone on without doing its part.
    Diverged,
}

/// Content of a status word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupStatus {
    Calls(CallName),
    Over(Broken),
}

impl GroupStatus {
    pub(super) fn word(self) -> u64 {
        let (high, low) = match self {
            Self::Calls(CallName { number, kind }) => (number, kind),
            Self::Over(Broken { peer, is_lost }) => {
                (OVER, u32::from(peer.0) | if is_lost { LOST } else { 0 })
            }
        };
        u64::from(high) << 32 | u64::from(low)
    }

    pub(super) const fn of_word(word: u64) -> Self {
        let (high, low) = ((word >> 32) as u32, word as u32);
        match high {
            OVER => Self::Over(Broken { peer: NodeId(low as u16), is_lost: low & LOST != 0 }),
            number => Self::Calls(CallName { number, kind: low }),
        }
    }
}

/// Query of one member's group status.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) rank: usize,
    /// Lane of the group status.
    layout: Layout,
    operation: Option<OperationId>,
    not_before: Instant,
    /// Deadline until which the member may be without its region.
    deadline: Instant,
}

impl Query {
    pub(super) const fn new(rank: usize, layout: Layout, deadline: Instant) -> Self {
        Self { rank, layout, operation: None, not_before: Instant::ZERO, deadline }
    }

    /// Sends the query if it is due, and takes the answer. Sets `issued` if the core has a command to send.
    pub(super) fn advance(
        &mut self,
        core: &mut Core,
        membership: &Membership,
        issued: &mut bool,
    ) -> Option<Result<GroupStatus, Error>> {
        let now = match core.member() {
            Ok(member) => member.now(),
            Err(error) => return Some(Err(error)),
        };
        let Some(operation) = self.operation else {
            return self.send(core, membership, now, issued).err().map(Err);
        };
        let ended = core.table.take(operation)?;
        self.operation = None;
        match ended {
            Ok(ended) => Some(Ok(GroupStatus::of_word(ended.value))),
            Err(Error::Refused { reason: OperationError::NoSuchRegion, .. }) if now < self.deadline => {
                self.not_before = now + RETRY_NS;
                None
            }
            Err(error) => Some(Err(error)),
        }
    }

    fn send(
        &mut self,
        core: &mut Core,
        membership: &Membership,
        now: Instant,
        issued: &mut bool,
    ) -> Result<(), Error> {
        if now < self.not_before {
            return Ok(());
        }
        // An atomic that adds nothing is a read that needs no local buffer.
        let atomic = Atomic { kind: AtomicKind::FetchAdd, width: Width::Eight, operand: 0, compare: 0 };
        let target = membership.word(self.rank, self.layout.group_status());
        match core.submit(Command::Atomic { operation: OperationId(0), target, atomic }, Sink::Request(None))
        {
            Ok(operation) => self.operation = Some(operation),
            Err(Error::Busy { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
        *issued = true;
        Ok(())
    }

    pub(super) const fn operation(&self) -> Option<OperationId> {
        self.operation
    }

    /// Drops the query.
    pub(super) fn abandon(&mut self, core: &mut Core) {
        if let Some(operation) = self.operation.take() {
            core.table.abandon(operation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_status_is_restored_from_its_word() {
        let calls = |number, kind| GroupStatus::Calls(CallName { number, kind });
        let over = |peer, is_lost| GroupStatus::Over(Broken { peer: NodeId(peer), is_lost });
        for group_status in
            [calls(0, 0), calls(1, u32::MAX), calls(OVER - 1, 7), over(0, false), over(u16::MAX, true)]
        {
            assert_eq!(GroupStatus::of_word(group_status.word()), group_status);
        }
        assert_eq!(calls(0, 0).word(), 0, "a region that was never written means no call");
    }

    #[test]
    fn calls_are_compared_across_the_wrap_of_their_numbers() {
        let call = |number| CallName { number, kind: 5 };
        assert_eq!(CallName::after(OVER - 1), 0);
        let steps = [OVER - 2, OVER - 1, 0, 1];
        for pair in steps.windows(2) {
            assert_eq!(call(pair[1]).compare(call(pair[0])), RelativePosition::Behind);
            assert_eq!(call(pair[0]).compare(call(pair[1])), RelativePosition::Diverged);
            assert_eq!(call(pair[0]).compare(call(pair[0])), RelativePosition::Equal);
        }
        assert_eq!(call(9).compare(CallName { number: 9, kind: 6 }), RelativePosition::Diverged);
    }
}
