//! What the caller of one stream still waits for.
//!
//! Stores, puts and signals end by the cumulative operation acknowledgement, in order. Loads, atomics and gets end by
//! their replies. Entries point to a [`super::groups::Groups`] entry where one command may be several operations, and name the command
//! where it is one.

use alloc::collections::VecDeque;

use super::OperationId;
use super::groups::GroupId;
use crate::error::OperationError;
use crate::ids::RegionId;
use crate::link::credits::is_ahead;

/// A command that ends when its operations are visible.
#[derive(Clone, Copy, Debug)]
pub struct VisibleWait {
    /// Number of its first operation.
    pub first: u32,
    /// Number of its last operation.
    pub last: u32,
    /// The command.
    pub command: Waiting,
    /// A refusal that has come for one of its operations.
    pub error: Option<OperationError>,
}

/// Who is told when operations are visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The command that these operations are all of.
    Command(OperationId),
    /// A command that may have other parts.
    Part(GroupId),
}

/// What a reply is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyKind {
    /// Bytes to be put into own memory.
    Bytes {
        /// Own region.
        region: RegionId,
        /// Place of the first byte.
        offset: u64,
        /// Bytes expected.
        length: u64,
    },
    /// An atomic's old value.
    Value,
    /// A message on offer: that the receiver has it.
    Offer,
}

/// An operation that ends by its reply.
#[derive(Clone, Copy, Debug)]
pub struct ReplyWait {
    /// Number of the operation.
    pub number: u32,
    /// The command.
    pub group: GroupId,
    /// What the reply is for.
    pub kind: ReplyKind,
    /// Bytes still missing.
    pub missing: u64,
    /// Ended; waits for earlier ones to leave the queue.
    pub is_over: bool,
}

/// Everything outstanding in one stream.
#[derive(Debug, Default)]
pub struct Outstanding {
    /// In order of number.
    pub visible: VecDeque<VisibleWait>,
    replies: VecDeque<ReplyWait>,
    open_replies: usize,
}

impl Outstanding {
    /// Wait for a reply.
    pub fn expect_reply(&mut self, wait: ReplyWait) {
        self.replies.push_back(wait);
        self.open_replies += 1;
    }

    /// Replies not yet complete.
    #[must_use]
    pub const fn open_replies(&self) -> usize {
        self.open_replies
    }

    /// Whether a reply for an operation before `number` is open.
    #[must_use]
    pub fn has_reply_before(&self, number: u32) -> bool {
        self.replies.iter().any(|wait| !wait.is_over && is_ahead(number, wait.number))
    }

    /// The wait for the reply to this operation.
    pub fn reply(&mut self, number: u32) -> Option<&mut ReplyWait> {
        let first = self.replies.front()?.number;
        let index = self
            .replies
            .binary_search_by_key(&number.wrapping_sub(first), |wait| wait.number.wrapping_sub(first))
            .ok()?;
        Some(&mut self.replies[index]).filter(|wait| !wait.is_over)
    }

    /// The reply to this operation is complete.
    pub fn end_reply(&mut self, number: u32) {
        if let Some(wait) = self.reply(number) {
            wait.is_over = true;
            self.open_replies -= 1;
        }
        while self.replies.front().is_some_and(|wait| wait.is_over) {
            self.replies.pop_front();
        }
    }

    /// The wait that covers this operation by visibility.
    pub fn visible_wait(&mut self, number: u32) -> Option<&mut VisibleWait> {
        self.visible.iter_mut().find(|wait| !is_ahead(wait.first, number) && !is_ahead(number, wait.last))
    }

    /// The next wait that ends because everything before `visible` is visible: whom to tell, and what went wrong.
    #[inline]
    pub fn pop_visible(&mut self, visible: u32) -> Option<(Waiting, Option<OperationError>)> {
        let wait = self.visible.front().filter(|wait| is_ahead(visible, wait.last))?;
        let ended = (wait.command, wait.error);
        self.visible.pop_front();
        Some(ended)
    }

    /// Forget everything; the entries are handed out to be ended.
    pub fn drain(&mut self) -> (VecDeque<VisibleWait>, VecDeque<ReplyWait>) {
        self.open_replies = 0;
        (core::mem::take(&mut self.visible), core::mem::take(&mut self.replies))
    }
}
