//! Tagged messages, and their matching with receives.
//!
//! A short message travels with its data (eager) while the sender's budget for unmatched data lasts. A long one, or
//! one beyond the budget, sends an offer, and the receiver pulls the data once a receive matches (rendezvous). So a
//! missing receive does not stall other traffic. Matching is in order: a message matches the oldest fitting receive,
//! and a receive the oldest fitting message.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::{LocalRange, OperationId};
use crate::ids::NodeId;
use crate::memory::LeaseId;

/// Largest message that may travel with its data, in bytes (own choice).
pub const EAGER_BYTES_MAX: u64 = 4096;
/// Unmatched data that one sender may have at one receiver, in bytes (own choice). A message costs at least
/// [`EAGER_COST_MIN`].
pub const EAGER_BUDGET_BYTES: u64 = 64 << 10;
/// Smallest cost of a message, in bytes of the budget (own choice).
pub const EAGER_COST_MIN: u64 = 64;

/// Returns the cost of an eager message, in bytes of the budget.
#[must_use]
pub const fn eager_cost(length: u64) -> u64 {
    if length < EAGER_COST_MIN { EAGER_COST_MIN } else { length }
}

/// Receive that waits for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted {
    /// Identifier chosen by the caller.
    pub operation: OperationId,
    /// Sender of the message; `None` accepts any.
    pub source: Option<NodeId>,
    /// Tag of the message.
    pub tag: u64,
    /// Bits of the tag that are ignored.
    pub ignore: u64,
    /// Destination of the data.
    pub into: LocalRange,
}

impl Posted {
    /// Returns true if a message matches this receive.
    #[must_use]
    pub fn takes(&self, source: NodeId, tag: u64) -> bool {
        self.source.is_none_or(|wanted| wanted == source) && (self.tag ^ tag) & !self.ignore == 0
    }
}

/// Location of a message's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The data is in a received frame.
    Eager {
        /// Lease of the frame.
        lease: LeaseId,
        /// First byte in the frame.
        frame_offset: u32,
    },
    /// The data is still at the sender.
    Offered,
}

/// Message that arrived before its receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexpected {
    /// Sender of the message.
    pub source: NodeId,
    /// Tag of the message.
    pub tag: u64,
    /// Length of the data, in bytes.
    pub length: u64,
    /// Number of its operation in the sender's request stream.
    pub number: u32,
    /// Location of the data.
    pub content: Content,
}

/// Receives without a message, and messages without a receive.
#[derive(Debug, Default)]
pub struct Matching {
    /// Receives in the order in which they were posted.
    pub posted: VecDeque<Posted>,
    /// Messages in order of arrival.
    unexpected: VecDeque<Unexpected>,
    /// Waiting messages by sender.
    waiting: Vec<WaitingFrom>,
}

/// Messages of one sender that wait for receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitingFrom {
    /// Cost of its eager messages, in bytes of the budget.
    pub eager_cost: u64,
    /// Number of offered messages.
    pub offers: usize,
}

impl Matching {
    /// Returns true if no receive and no message waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.posted.is_empty() && self.unexpected.is_empty()
    }

    // W-24
    /// Removes and returns the oldest receive that matches this message.
    pub fn take_posted(&mut self, source: NodeId, tag: u64) -> Option<Posted> {
        let index = self.posted.iter().position(|posted| posted.takes(source, tag))?;
        self.posted.remove(index)
    }

    /// Removes and returns the oldest message that matches this receive.
    pub fn take_unexpected(&mut self, posted: &Posted) -> Option<Unexpected> {
        let index = self.unexpected.iter().position(|message| posted.takes(message.source, message.tag))?;
        let message = self.unexpected.remove(index)?;
        let waiting = &mut self.waiting[message.source.index()];
        match message.content {
            Content::Eager { .. } => {
                assert!(
                    waiting.eager_cost >= eager_cost(message.length),
                    "a message costs more than was counted"
                );
                waiting.eager_cost -= eager_cost(message.length);
            }
            Content::Offered => {
                assert!(waiting.offers > 0, "an offer is taken that was not counted");
                waiting.offers -= 1;
            }
        }
        self.check(message.source);
        Some(message)
    }

    /// Adds a message that arrived before its receive.
    pub fn push_unexpected(&mut self, message: Unexpected) {
        let index = message.source.index();
        if self.waiting.len() <= index {
            self.waiting.resize(index + 1, WaitingFrom::default());
        }
        match message.content {
            Content::Eager { .. } => self.waiting[index].eager_cost += eager_cost(message.length),
            Content::Offered => self.waiting[index].offers += 1,
        }
        let source = message.source;
        self.unexpected.push_back(message);
        self.check(source);
    }

    /// Asserts that what is counted of a sender is what waits. It walks all messages, so only builds with debug
    /// assertions do it.
    fn check(&self, source: NodeId) {
        if cfg!(debug_assertions) {
            let mut waiting = WaitingFrom::default();
            for message in self.unexpected.iter().filter(|message| message.source == source) {
                match message.content {
                    Content::Eager { .. } => waiting.eager_cost += eager_cost(message.length),
                    Content::Offered => waiting.offers += 1,
                }
            }
            assert_eq!(self.waiting_from(source), waiting, "messages of {source:?}");
        }
    }

    /// Removes the offers of a sender.
    pub fn forget_offers(&mut self, source: NodeId) {
        self.unexpected.retain(|message| message.source != source || message.content != Content::Offered);
        if let Some(waiting) = self.waiting.get_mut(source.index()) {
            waiting.offers = 0;
        }
        self.check(source);
    }

    /// Returns the messages of a sender that wait for receives.
    #[must_use]
    #[inline]
    pub fn waiting_from(&self, source: NodeId) -> WaitingFrom {
        self.waiting.get(source.index()).copied().unwrap_or_default()
    }
}
