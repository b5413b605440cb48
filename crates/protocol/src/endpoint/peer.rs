//! State that an endpoint keeps for one incarnation of a remote node.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::config::MemberConfig;
use crate::endpoint::operations::failed_operations::FailedOperations;
use crate::endpoint::order::order_oracle::OrderOracle;
use crate::endpoint::order::overlaps::Overlaps;
use crate::endpoint::sending::path_choice::PathChoice;
use crate::error::OperationError;
use crate::forwarding::forwarder::Trust;
use crate::ids::{Class, Incarnation, NodeId, PortId};
use crate::link::credits::is_ahead;
use crate::operation::LocalRange;
use crate::operation::bulk::Bulk;
use crate::operation::outstanding::Outstanding;
use crate::operation::waits::Mark;
use crate::transport::receiver::Receiver;
use crate::transport::sender::{Sender, SenderLimits};
use crate::wire::frame::FabricHeader;
use crate::wire::header_prediction::{FixedFields, Template};
use crate::wire::layout::OPERATIONS;

/// Operations accepted in order that memory has yet to execute. The stream is visible up to `end` once this entry and
/// all before it are done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serving {
    pub first: u32,
    pub end: u32,
    pub is_done: bool,
}

/// Checked header of one stream, valid while the settings that the checks depend on do not change.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownHeader {
    pub header: FixedFields,
    pub port: PortId,
    pub trust: Trust,
}

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

/// State of one remote node.
#[derive(Debug)]
pub(super) struct Peer {
    pub node: NodeId,
    pub incarnation: Incarnation,
    /// Distinguishes answers of memory for this incarnation from those for an earlier one.
    pub generation: u32,
    pub senders: [Sender; Class::COUNT],
    pub receivers: [Receiver; Class::COUNT],
    /// Served operations, ordered by number.
    pub serving: [VecDeque<Serving>; Class::COUNT],
    /// Failed operations.
    pub failed_operations: [FailedOperations; Class::COUNT],
    /// Number of the next operation to serve of the present packet.
    pub serving_from: [u32; Class::COUNT],
    pub outstanding: [Outstanding; Class::COUNT],
    pub bulk: [VecDeque<Bulk>; Class::COUNT],
    pub bulk_requested: u64,
    pub bulk_cut: u64,
    /// Offered messages of this node.
    pub offers: VecDeque<Offer>,
    /// Outstanding pulls: number in the bulk stream, number of the offer, length.
    pub pulls: Vec<(u32, u32, u64)>,
    /// Eager budget in use at the receiver, in bytes.
    pub eager_unmatched: u64,
    pub refusal_holds: VecDeque<RefusalHold>,
    /// Received data of loads and gets that memory has yet to write.
    pub landing: usize,
    /// True if a held packet is next and was not accepted because a queue was at its bound.
    pub is_stalled: bool,
    pub ports: [Option<PortId>; Class::COUNT],
    /// Constant header fields of a class for the two present incarnations.
    pub headers: [FabricHeader; Class::COUNT],
    /// Checked header of the last frame, by class. Frames like it need no full check.
    pub known_headers: [Option<KnownHeader>; Class::COUNT],
    /// Checked header of the last frame that only acknowledges.
    pub known_ack_header: Option<KnownHeader>,
    /// Header of the last frame of a class, and the port through which it left.
    pub templates: [Option<(PortId, Template)>; Class::COUNT],
    pub ack_template: Option<(PortId, Template)>,
    /// Number of entries that each stream has in the queues of ports: one, or one per packet if packets choose paths.
    pub tickets: [u16; Class::COUNT],
    pub path_choice: PathChoice,
    pub is_ack_queued: bool,
    /// True if packets have arrived since a frame to this node last had no acknowledgement to carry. Traffic in one
    /// direction then skips the search of four streams.
    pub may_have_acks_due: bool,
    pub reach: Reach,
    pub order_oracle: OrderOracle,
    pub overlaps: Overlaps,
    pub fence: Option<Mark>,
    /// Last posted store that may not be visible yet.
    pub posted_last: Option<u32>,
    /// Error of posted stores that the next flush reports. It outlives the peer's incarnation, because no flush has
    /// reported it yet.
    pub posted_error: Option<OperationError>,
}

impl Peer {
    pub(super) fn new(
        node: NodeId,
        incarnation: Incarnation,
        generation: u32,
        config: &MemberConfig,
    ) -> Self {
        let limits = SenderLimits {
            transport: config.transport,
            packing: config.packing,
            operation_bytes_max: usize::from(config.frame_bytes_max) - OPERATIONS,
        };
        Self {
            node,
            incarnation,
            generation,
            senders: core::array::from_fn(|_| Sender::new(limits)),
            receivers: core::array::from_fn(|_| Receiver::new(&config.transport)),
            serving: Default::default(),
            failed_operations: Default::default(),
            serving_from: [0; Class::COUNT],
            order_oracle: OrderOracle::new(config.paths.order),
            overlaps: Overlaps::default(),
            outstanding: Default::default(),
            bulk: Default::default(),
            bulk_requested: 0,
            bulk_cut: 0,
            offers: VecDeque::new(),
            pulls: Vec::new(),
            eager_unmatched: 0,
            refusal_holds: VecDeque::new(),
            landing: 0,
            is_stalled: false,
            ports: [None; Class::COUNT],
            headers: Class::ALL.map(|class| FabricHeader {
                destination: node,
                source: config.node,
                class,
                operation_count: 0,
                tenant: config.tenants.get(config.node.index()).copied().unwrap_or_default(),
                entropy: 0,
                ack_now: false,
                again: false,
                ack: None,
                source_incarnation: config.incarnation.tag(),
                destination_incarnation: incarnation.tag(),
                psn: 0,
                first_operation: 0,
            }),
            known_headers: [None; Class::COUNT],
            known_ack_header: None,
            templates: [None; Class::COUNT],
            ack_template: None,
            tickets: [0; Class::COUNT],
            path_choice: PathChoice::new(config.node, node),
            is_ack_queued: false,
            may_have_acks_due: false,
            reach: Reach::Reached,
            fence: None,
            posted_last: None,
            posted_error: None,
        }
    }

    /// Returns true if the stream could send a packet now, if the window admits it.
    #[inline]
    pub(super) fn is_sendable(&self, class: Class) -> bool {
        let sender = &self.senders[class.index()];
        sender.next().is_some() || self.has_more_bulk(class) && sender.window_open()
    }

    #[inline]
    pub(super) fn has_more_bulk(&self, class: Class) -> bool {
        // The most frequent case first.
        if self.bulk[class.index()].is_empty() {
            return false;
        }
        !self.overlaps.blocks || class != Class::Bulk
    }

    // W-14
    /// Returns the operation acknowledgement of a class: all visible operations, but not past an unacknowledged
    /// refusal.
    pub(super) fn acknowledged_operation(&self, class: Class) -> u32 {
        let visible = self.receivers[class.index()].visible;
        self.refusal_holds
            .iter()
            .filter(|hold| hold.class == class)
            .fold(visible, |least, hold| if is_ahead(least, hold.number) { hold.number } else { least })
    }

    /// Returns true if an operation of this number follows directly on all accepted ones.
    #[inline]
    pub(super) fn continues(&self, class: Class, number: u32) -> bool {
        let visible = self.receivers[class.index()].visible;
        self.serving[class.index()].back().map_or(visible, |last| last.end) == number
    }

    /// Number of operations that were accepted and are not visible yet.
    #[inline]
    pub(super) fn not_yet_visible(&self, class: Class) -> usize {
        let visible = self.receivers[class.index()].visible;
        self.serving[class.index()].back().map_or(0, |last| last.end.wrapping_sub(visible) as usize)
    }

    /// Records that operations up to `end` were accepted and wait for memory.
    pub(super) fn serve(&mut self, class: Class, end: u32, is_done: bool) {
        let first = core::mem::replace(&mut self.serving_from[class.index()], end);
        let serving = &mut self.serving[class.index()];
        let entry = Serving { first, end, is_done };
        if serving.back().is_some_and(|last| is_ahead(last.first, first)) {
            self.serve_before_others(class, entry);
        } else {
            serving.push_back(entry);
        }
        if is_done {
            self.advance_visible(class);
        }
    }

    #[cold]
    fn serve_before_others(&mut self, class: Class, entry: Serving) {
        let serving = &mut self.serving[class.index()];
        let slot = serving.partition_point(|other| !is_ahead(other.first, entry.first));
        serving.insert(slot, entry);
    }

    /// Returns the first operation before `number` that was neither served nor given up, if any: operations executed
    /// early are after a gap.
    #[inline]
    pub(super) fn gap_before(&self, class: Class, number: u32) -> Option<u32> {
        let served = match self.serving[class.index()].back() {
            None => self.receivers[class.index()].visible,
            Some(last) if is_ahead(number, last.first) => last.end,
            Some(_) => self.served_before(class, number),
        };
        is_ahead(number, served).then_some(served)
    }

    /// Returns the index before which the entries of served operations before `number` end.
    #[cold]
    fn served_before(&self, class: Class, number: u32) -> u32 {
        let before = self.serving[class.index()].iter().rev().find(|entry| is_ahead(number, entry.first));
        before.map_or(self.receivers[class.index()].visible, |entry| entry.end)
    }

    /// Returns true if all operations from `from` to before `to` were served.
    pub(super) fn has_served(&self, class: Class, from: u32, to: u32) -> bool {
        let visible = self.receivers[class.index()].visible;
        let mut next = if is_ahead(visible, from) { visible } else { from };
        for entry in &self.serving[class.index()] {
            if !is_ahead(entry.first, next) && is_ahead(entry.end, next) {
                next = entry.end;
            }
        }
        !is_ahead(to, next)
    }

    /// Records that memory has executed the operations up to `end`.
    pub(super) fn served(&mut self, class: Class, end: u32) {
        let serving = &mut self.serving[class.index()];
        // Memory answers in order and mostly at once, so this is usually the first entry.
        if let Some(entry) = serving.iter_mut().find(|entry| entry.end == end && !entry.is_done) {
            entry.is_done = true;
        }
        self.advance_visible(class);
    }

    fn advance_visible(&mut self, class: Class) {
        let serving = &mut self.serving[class.index()];
        let visible = &mut self.receivers[class.index()].visible;
        while let Some(first) = serving.front()
            && first.is_done
            && !is_ahead(first.first, *visible)
        {
            *visible = first.end;
            serving.pop_front();
        }
    }

    /// Returns the last posted store, unless it is visible by now.
    pub(super) fn posted_in_flight(&self) -> Option<u32> {
        let visible = self.senders[Class::Request.index()].visible();
        self.posted_last.filter(|last| !is_ahead(visible, *last))
    }

    /// Returns the error of posted stores for a flush, and clears it.
    pub(super) fn take_posted_error(&mut self) -> Option<(NodeId, OperationError)> {
        self.posted_error.take().map(|error| (self.node, error))
    }

    /// Returns a mark of all operations begun towards this node so far.
    pub(super) fn mark(&self) -> Mark {
        let bulk = &self.senders[Class::Bulk.index()];
        Mark {
            node: self.node,
            request: self.senders[Class::Request.index()].next_operation(),
            bulk_requested: self.bulk_requested,
            bulk: (self.bulk_cut >= self.bulk_requested).then(|| bulk.next_operation()),
        }
    }

    /// Returns true if all operations before the mark have ended.
    pub(super) fn has_reached(&self, mark: &mut Mark) -> bool {
        if mark.bulk.is_none() && self.bulk_cut >= mark.bulk_requested {
            mark.bulk = Some(self.senders[Class::Bulk.index()].next_operation());
        }
        let Some(bulk) = mark.bulk else { return false };
        [(Class::Request, mark.request), (Class::Bulk, bulk)].into_iter().all(|(class, number)| {
            !is_ahead(number, self.senders[class.index()].visible())
                && !self.outstanding[class.index()].has_reply_before(number)
        })
    }
}
