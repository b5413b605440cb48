//! State that an endpoint keeps for one incarnation of a remote node.
//!
//! A large rack has a million pairs of nodes, so a peer is small: its streams exist on first use, and fields that few
//! peers need are stored separately ([`Seldom`]).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::config::PathConfig;
use crate::endpoint::headers::Headers;
use crate::endpoint::order::order_oracle::OrderOracle;
use crate::endpoint::order::overlaps::Overlaps;
use crate::endpoint::sending::path_choice::PathChoice;
use crate::endpoint::stream::Stream;
use crate::endpoint::streams::Streams;
use crate::error::OperationError;
use crate::ids::{Class, Incarnation, NodeId, PortId};
use crate::link::credits::is_ahead;
use crate::operation::LocalRange;
use crate::operation::bulk::Bulk;
use crate::operation::waits::Mark;

/// Offered message of this node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    /// Number in the request stream.
    pub number: u32,
    pub source: LocalRange,
    /// True if the receiver has requested the data, which it may do once.
    pub is_pulled: bool,
}

/// Refusal whose delivery is not acknowledged yet. The operation acknowledgement stops before the refused operation
/// until then, because the caller would take the operation for complete otherwise.
#[derive(Clone, Copy, Debug)]
pub(super) struct RefusalHold {
    pub class: Class,
    pub number: u32,
    pub reply_psn: u32,
}

/// Reachability of a remote node, as its streams follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// A path leads to the node.
    Reached,
    /// No path leads to the node. Its operations have failed, and no packet leaves for it.
    Lost,
}

/// State that few peers need.
#[derive(Debug, Default)]
pub(super) struct Seldom {
    /// Offered messages of this node.
    pub offers: VecDeque<Offer>,
    /// Outstanding pulls: number in the bulk stream, number of the offer, length.
    pub pulls: Vec<(u32, u32, u64)>,
    pub refusal_holds: VecDeque<RefusalHold>,
    pub fence: Option<Mark>,
}

/// State of one remote node.
#[derive(Debug)]
pub(super) struct Peer {
    pub streams: Streams,
    /// First port of the path of each class.
    pub ports: [Option<PortId>; Class::COUNT],
    pub node: NodeId,
    /// Index among the known nodes.
    pub position: u16,
    pub reach: Reach,
    /// True if a held packet is next and was not accepted because a queue was at its bound.
    pub is_stalled: bool,
    pub is_ack_queued: bool,
    /// True if packets have arrived since a frame to this node last had no acknowledgement to carry. Traffic in one
    /// direction then skips the search of the streams.
    pub may_have_acks_due: bool,
    /// Error of posted stores that the next flush reports. It outlives the peer's incarnation, because no flush has
    /// reported it yet.
    pub posted_error: Option<OperationError>,
    /// Distinguishes answers of memory for this incarnation from those for an earlier one.
    pub generation: u32,
    /// Received data of loads and gets that memory has yet to write.
    pub landing: u32,
    /// Last posted store that may not be visible yet.
    pub posted_last: Option<u32>,
    pub incarnation: Incarnation,
    pub bulk_requested: u64,
    pub bulk_cut: u64,
    /// Eager budget in use at the receiver, in bytes.
    pub eager_unmatched: u64,
    pub order_oracle: OrderOracle,
    /// Headers of the last frames that only acknowledge.
    pub ack_headers: Headers,
    /// Choice among several paths, if packets of one stream use several.
    pub path_choice: Option<Box<PathChoice>>,
    /// Puts that overlap, if the order scope is *region*.
    pub overlaps: Option<Box<Overlaps>>,
    /// Created on first use.
    seldom: Option<Box<Seldom>>,
}

impl Peer {
    /// Returns the state of a remote node without streams. `blank` is a stream before its first packet.
    pub(super) fn new(
        node: NodeId,
        incarnation: Incarnation,
        generation: u32,
        paths: PathConfig,
        blank: &Arc<Stream>,
    ) -> Self {
        Self {
            streams: Streams::new(blank),
            ports: [None; Class::COUNT],
            node,
            position: 0,
            reach: Reach::Reached,
            is_stalled: false,
            is_ack_queued: false,
            may_have_acks_due: false,
            posted_error: None,
            generation,
            landing: 0,
            posted_last: None,
            incarnation,
            bulk_requested: 0,
            bulk_cut: 0,
            eager_unmatched: 0,
            order_oracle: OrderOracle::new(paths.order),
            ack_headers: Headers::default(),
            path_choice: None,
            overlaps: paths.orders_regions().then(Box::default),
            seldom: None,
        }
    }

    /// Returns the state that few peers need, if this one has it.
    #[inline]
    pub(super) fn seldom(&self) -> Option<&Seldom> {
        self.seldom.as_deref()
    }

    /// Returns the state that few peers need, and creates it on first use.
    pub(super) fn seldom_mut(&mut self) -> &mut Seldom {
        self.seldom.get_or_insert_default()
    }

    /// Removes an offered message.
    pub(super) fn forget_offer(&mut self, number: u32) {
        if let Some(seldom) = &mut self.seldom {
            seldom.offers.retain(|known| known.number != number);
        }
    }

    /// Removes the pull with this number in the bulk stream. Returns the number of its offer, and its length.
    pub(super) fn end_pull(&mut self, number: u32) -> Option<(u32, u64)> {
        let pulls = &mut self.seldom.as_mut()?.pulls;
        let index = pulls.iter().position(|(known, ..)| *known == number)?;
        let (_, offer, length) = pulls.swap_remove(index);
        Some((offer, length))
    }

    /// Under *region*: records that all of a put is in packets.
    pub(super) fn note_cut(&mut self, put: Bulk) {
        if let Some(overlaps) = &mut self.overlaps {
            overlaps.note_cut(put, self.streams.of(Class::Bulk));
        }
    }

    /// Under *region*: decides again if the next put must wait, after packets were cut, queued or became visible.
    #[inline]
    pub(super) fn judge_overlap(&mut self) {
        if let Some(overlaps) = &mut self.overlaps {
            overlaps.judge(self.streams.of(Class::Bulk));
        }
    }

    /// Number of refusals whose delivery is not acknowledged yet.
    #[inline]
    pub(super) fn refusals_held(&self) -> usize {
        self.seldom().map_or(0, |seldom| seldom.refusal_holds.len())
    }

    /// Largest number of tickets of one stream.
    #[inline]
    pub(super) fn tickets_max(&self) -> u16 {
        self.path_choice.as_ref().map_or(1, |choice| choice.tickets_max)
    }

    /// Returns true if packets of one stream use several paths.
    #[inline]
    pub(super) fn uses_several_paths(&self) -> bool {
        self.tickets_max() > 1
    }

    /// Returns true if the stream could send a packet now, if the window admits it.
    #[inline]
    pub(super) fn is_sendable(&self, class: Class) -> bool {
        self.streams.get(class).is_some_and(|stream| {
            let sender = &stream.sender;
            sender.next().is_some() || self.has_more_bulk(class) && sender.window_open()
        })
    }

    #[inline]
    pub(super) fn has_more_bulk(&self, class: Class) -> bool {
        // The most frequent case first.
        if self.streams.of(class).bulk.is_empty() {
            return false;
        }
        class != Class::Bulk || self.overlaps.as_ref().is_none_or(|overlaps| !overlaps.blocks)
    }

    // W-14
    /// Returns the operation acknowledgement of a class: all visible operations, but not past an unacknowledged
    /// refusal.
    pub(super) fn acknowledged_operation(&self, class: Class) -> u32 {
        let visible = self.streams.of(class).receiver.visible;
        let holds = self.seldom().into_iter().flat_map(|seldom| &seldom.refusal_holds);
        holds
            .filter(|hold| hold.class == class)
            .fold(visible, |least, hold| if is_ahead(least, hold.number) { hold.number } else { least })
    }

    /// Records that operations of a class up to `end` were accepted and wait for memory.
    #[inline]
    pub(super) fn serve(&mut self, class: Class, end: u32, is_done: bool) {
        self.streams.of_mut(class).serve(end, is_done);
    }

    /// Records that memory has executed the operations of a class up to `end`.
    #[inline]
    pub(super) fn served(&mut self, class: Class, end: u32) {
        self.streams.of_mut(class).served(end);
    }

    /// Returns the last posted store, unless it is visible by now.
    pub(super) fn posted_in_flight(&self) -> Option<u32> {
        let visible = self.streams.of(Class::Request).sender.visible();
        self.posted_last.filter(|last| !is_ahead(visible, *last))
    }

    /// Returns the error of posted stores for a flush, and clears it.
    pub(super) fn take_posted_error(&mut self) -> Option<(NodeId, OperationError)> {
        self.posted_error.take().map(|error| (self.node, error))
    }

    /// Forgets the operations of this node that have ended because the peer is lost. `is_over` is true if its incarnation
    /// has ended.
    pub(super) fn forget_operations(&mut self, is_over: bool) {
        if let Some(overlaps) = &mut self.overlaps {
            overlaps.clear();
        }
        if let Some(seldom) = &mut self.seldom {
            seldom.offers.clear();
            seldom.pulls.clear();
            seldom.fence = None;
            if is_over {
                seldom.refusal_holds.clear();
            }
        }
        self.eager_unmatched = 0;
        self.bulk_cut = self.bulk_requested;
        self.posted_last = None;
    }

    /// Returns a mark of all operations begun towards this node so far.
    pub(super) fn mark(&self) -> Mark {
        let next = |class: Class| self.streams.of(class).sender.next_operation();
        Mark {
            node: self.node,
            request: next(Class::Request),
            bulk_requested: self.bulk_requested,
            bulk: (self.bulk_cut >= self.bulk_requested).then(|| next(Class::Bulk)),
        }
    }

    /// Returns true if all operations before the mark have ended.
    pub(super) fn has_reached(&self, mark: &mut Mark) -> bool {
        if mark.bulk.is_none() && self.bulk_cut >= mark.bulk_requested {
            mark.bulk = Some(self.streams.of(Class::Bulk).sender.next_operation());
        }
        let Some(bulk) = mark.bulk else { return false };
        [(Class::Request, mark.request), (Class::Bulk, bulk)].into_iter().all(|(class, number)| {
            let stream = self.streams.of(class);
            !is_ahead(number, stream.sender.visible()) && !stream.outstanding.has_reply_before(number)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rack of 1024 nodes has a million peers with a stream each, so their sizes decide the memory of a run.
    #[test]
    fn a_peer_and_a_stream_are_small() {
        assert!(size_of::<Peer>() <= 184, "{}", size_of::<Peer>());
        assert!(size_of::<Stream>() <= 296, "{}", size_of::<Stream>());
    }
}
