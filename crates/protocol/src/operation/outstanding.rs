//! Outstanding operations of one stream.
//!
//! Stores, puts and signals end by the cumulative operation acknowledgement, in order. Loads, atomics and gets end by
//! their replies. An entry refers to a [`super::groups::Groups`] entry if its command may consist of several
//! operations, else it has the command's identifier.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use super::OperationId;
use super::groups::GroupId;
use crate::error::OperationError;
use crate::ids::RegionId;
use crate::inline_queue::InlineQueue;
use crate::link::credits::is_ahead;

/// Command that ends when its operations are visible.
#[derive(Clone, Copy, Debug)]
pub struct VisibleWait {
    /// Number of its first operation.
    pub first: u32,
    /// Number of its last operation.
    pub last: u32,
    /// The command.
    pub command: Waiting,
    /// Refusal that has arrived for one of its operations.
    pub error: Option<OperationError>,
}

/// Command that ends when operations are visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// A command without other operations.
    Command(OperationId),
    /// A part of a command that may have other parts.
    Part(GroupId),
}

/// Purpose of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyKind {
    /// Bytes to write to own memory.
    Bytes {
        /// Region of this node.
        region: RegionId,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes expected.
        length: u64,
    },
    /// Old value of an atomic.
    Value,
    /// Confirmation that the receiver has an offered message.
    Offer,
}

/// Operation that ends by its reply.
#[derive(Clone, Copy, Debug)]
pub struct ReplyWait {
    /// Number of the operation.
    pub number: u32,
    /// The command.
    pub group: GroupId,
    /// Purpose of the reply.
    pub kind: ReplyKind,
    /// Number of bytes still missing.
    pub missing: u64,
    /// True if it has ended and only waits for earlier ones to leave the queue.
    pub is_over: bool,
}

/// All outstanding operations of one stream.
#[derive(Debug, Default)]
pub struct Outstanding {
    /// Entries ordered by number.
    visible: InlineQueue<VisibleWait>,
    /// Created by the first operation that waits for a reply.
    replies: Option<Box<Replies>>,
}

/// Operations that end by their replies.
#[derive(Debug, Default)]
struct Replies {
    /// Entries ordered by number.
    waits: VecDeque<ReplyWait>,
    /// Number of entries that have not ended.
    open: usize,
}

impl Replies {
    fn expect(&mut self, wait: ReplyWait) {
        assert!(
            self.waits.back().is_none_or(|last| is_ahead(wait.number, last.number)),
            "replies are expected in the order of their operations"
        );
        self.waits.push_back(wait);
        self.open += 1;
        self.check();
    }

    fn find(&mut self, number: u32) -> Option<&mut ReplyWait> {
        let first = self.waits.front()?.number;
        let distance = number.wrapping_sub(first);
        let index =
            self.waits.binary_search_by_key(&distance, |wait| wait.number.wrapping_sub(first)).ok()?;
        Some(&mut self.waits[index]).filter(|wait| !wait.is_over)
    }

    fn end(&mut self, number: u32) {
        if let Some(wait) = self.find(number) {
            wait.is_over = true;
            self.open -= 1;
        }
        while self.waits.front().is_some_and(|wait| wait.is_over) {
            self.waits.pop_front();
        }
        self.check();
    }

    /// Asserts what holds after every change. A reply of a peer cannot break it: one for an operation that is not
    /// outstanding finds no entry.
    fn check(&self) {
        assert!(self.open <= self.waits.len(), "more replies are open than are expected");
        if cfg!(debug_assertions) {
            assert_eq!(self.open, self.waits.iter().filter(|wait| !wait.is_over).count());
            assert!(self.waits.front().is_none_or(|wait| !wait.is_over), "an ended reply leaves the front");
        }
    }
}

impl Outstanding {
    /// Adds an operation that waits for a reply.
    pub fn expect_reply(&mut self, wait: ReplyWait) {
        assert!(!wait.is_over, "a reply is expected that has arrived");
        self.replies.get_or_insert_default().expect(wait);
    }

    /// Adds a command that ends when its operations are visible.
    #[inline]
    pub fn expect_visible(&mut self, wait: VisibleWait) {
        assert!(!is_ahead(wait.first, wait.last), "a command ends before it begins");
        assert!(
            self.visible.back().is_none_or(|last| !is_ahead(last.last, wait.last)),
            "commands become visible in the order of their operations"
        );
        self.visible.push_back(wait);
    }

    /// Number of incomplete replies.
    #[must_use]
    pub fn open_replies(&self) -> usize {
        self.replies.as_ref().map_or(0, |replies| replies.open)
    }

    /// Returns true if a reply for an operation before `number` is outstanding.
    #[must_use]
    pub fn has_reply_before(&self, number: u32) -> bool {
        let mut waits = self.replies.iter().flat_map(|replies| &replies.waits);
        waits.any(|wait| !wait.is_over && is_ahead(number, wait.number))
    }

    /// Returns the entry that waits for the reply to this operation.
    pub fn reply(&mut self, number: u32) -> Option<&mut ReplyWait> {
        self.replies.as_mut()?.find(number)
    }

    /// Ends the operation whose reply is complete.
    pub fn end_reply(&mut self, number: u32) {
        if let Some(replies) = &mut self.replies {
            replies.end(number);
        }
    }

    /// Returns the entry that covers this operation by visibility.
    pub fn visible_wait(&mut self, number: u32) -> Option<&mut VisibleWait> {
        self.visible.iter_mut().find(|wait| !is_ahead(wait.first, number) && !is_ahead(number, wait.last))
    }

    /// Removes and returns the next command whose operations before `visible` are complete, and its error.
    #[inline]
    pub fn pop_visible(&mut self, visible: u32) -> Option<(Waiting, Option<OperationError>)> {
        let wait = self.visible.front().filter(|wait| is_ahead(visible, wait.last))?;
        let ended = (wait.command, wait.error);
        self.visible.pop_front();
        Some(ended)
    }

    /// Removes and returns all entries.
    pub fn drain(&mut self) -> (InlineQueue<VisibleWait>, VecDeque<ReplyWait>) {
        let replies = self.replies.take().map_or_else(VecDeque::new, |replies| replies.waits);
        (core::mem::take(&mut self.visible), replies)
    }
}
