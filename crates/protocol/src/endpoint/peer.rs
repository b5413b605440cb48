//! What an endpoint keeps for one remote node and one life of it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::failed_operations::FailedOperations;
use super::order::{Overlaps, Witness};
use super::ways::Ways;
use crate::config::MemberConfig;
use crate::error::OperationError;
use crate::ids::{Class, Incarnation, NodeId, PortId};
use crate::link::credits::is_ahead;
use crate::operation::LocalRange;
use crate::operation::bulk::Bulk;
use crate::operation::outstanding::Outstanding;
use crate::operation::waits::Mark;
use crate::switch::forwarder::Trust;
use crate::transport::receiver::Receiver;
use crate::transport::sender::{Sender, SenderLimits};
use crate::wire::familiar::{Familiar, Template};
use crate::wire::frame::FabricHeader;
use crate::wire::layout::OPERATIONS;

/// Operations taken in order that memory has yet to do: the stream is visible up to `end` once this and all before are
/// done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serving {
    pub first: u32,
    pub end: u32,
    pub is_done: bool,
}

/// Headers of one stream that have passed every check, for as long as what the checks depend on stays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acquaintance {
    pub header: Familiar,
    pub port: PortId,
    pub trust: Trust,
}

/// An own message on offer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    /// Number in the request stream.
    pub number: u32,
    pub source: LocalRange,
    /// The receiver has asked for the data. It may do so once.
    pub is_pulled: bool,
}

/// A refusal on its way to the caller. The caller's operation acknowledgement stops before the refused operation until
/// the refusal has arrived, else the caller would take it for done.
#[derive(Clone, Copy, Debug)]
pub(super) struct RefusalHold {
    pub class: Class,
    pub number: u32,
    pub reply_psn: u32,
}

/// One remote node.
#[derive(Debug)]
pub(super) struct Peer {
    pub node: NodeId,
    pub life: Incarnation,
    /// Tells answers of memory for this life from those for an earlier one.
    pub generation: u32,
    pub senders: [Sender; Class::COUNT],
    pub receivers: [Receiver; Class::COUNT],
    /// In the order of their numbers.
    pub serving: [VecDeque<Serving>; Class::COUNT],
    /// Operations that did not happen.
    pub failed_operations: [FailedOperations; Class::COUNT],
    /// The operation that is to be served next of the packet at hand.
    pub serving_from: [u32; Class::COUNT],
    pub outstanding: [Outstanding; Class::COUNT],
    pub bulk: [VecDeque<Bulk>; Class::COUNT],
    pub bulk_asked: u64,
    pub bulk_cut: u64,
    /// Own messages on offer.
    pub offers: VecDeque<Offer>,
    /// Pulls under way: number in the bulk stream, number of the offer, length.
    pub pulls: Vec<(u32, u32, u64)>,
    /// Eager budget in use at the receiver, in bytes.
    pub eager_unmatched: u64,
    pub refusal_holds: VecDeque<RefusalHold>,
    /// Answers to own loads and gets that memory has yet to write.
    pub landing: usize,
    /// A held packet is next and was not taken, because a queue was at its bound.
    pub is_stalled: bool,
    pub ports: [Option<PortId>; Class::COUNT],
    /// What the header of every frame of a class says for as long as both lives last.
    pub headers: [FabricHeader; Class::COUNT],
    /// What frames of a class looked like when they last came; they need not be checked again in full.
    pub acquaintances: [Option<Acquaintance>; Class::COUNT],
    /// The same of frames that only acknowledge.
    pub ack_acquaintance: Option<Acquaintance>,
    /// What a frame of a class looked like when it last left through this port.
    pub templates: [Option<(PortId, Template)>; Class::COUNT],
    pub ack_template: Option<(PortId, Template)>,
    /// Places that each stream has in the lines of ports: one, or one per packet that is to take a way of its own.
    pub tickets: [u16; Class::COUNT],
    pub ways: Ways,
    pub is_ack_queued: bool,
    /// Packets have come since a frame to this node last found no acknowledgement to take along: traffic that goes one way need not
    /// look at four streams for every frame.
    pub may_owe_acks: bool,
    pub is_lost: bool,
    pub witness: Witness,
    pub overlaps: Overlaps,
    pub fence: Option<Mark>,
    /// The last posted store that may not be visible yet.
    pub posted_last: Option<u32>,
    /// What the next flush says of posted stores that have failed or were lost. Outlives the peer's life: nobody has been told.
    pub posted_error: Option<OperationError>,
}

impl Peer {
    pub(super) fn new(node: NodeId, life: Incarnation, generation: u32, config: &MemberConfig) -> Self {
        let limits = SenderLimits {
            transport: config.transport,
            packing: config.packing,
            operation_bytes_max: usize::from(config.frame_bytes_max) - OPERATIONS,
        };
        Self {
            node,
            life,
            generation,
            senders: core::array::from_fn(|_| Sender::new(limits)),
            receivers: core::array::from_fn(|_| Receiver::new(&config.transport)),
            serving: Default::default(),
            failed_operations: Default::default(),
            serving_from: [0; Class::COUNT],
            witness: Witness::new(config.paths.order),
            overlaps: Overlaps::default(),
            outstanding: Default::default(),
            bulk: Default::default(),
            bulk_asked: 0,
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
                destination_incarnation: life.tag(),
                psn: 0,
                first_operation: 0,
            }),
            acquaintances: [None; Class::COUNT],
            ack_acquaintance: None,
            templates: [None; Class::COUNT],
            ack_template: None,
            tickets: [0; Class::COUNT],
            ways: Ways::new(config.node, node),
            is_ack_queued: false,
            may_owe_acks: false,
            is_lost: false,
            fence: None,
            posted_last: None,
            posted_error: None,
        }
    }

    /// Whether the stream could send a packet now, window permitting.
    #[inline]
    pub(super) fn is_sendable(&self, class: Class) -> bool {
        let sender = &self.senders[class.index()];
        sender.next().is_some() || self.has_more_bulk(class) && sender.window_open()
    }

    #[inline]
    pub(super) fn has_more_bulk(&self, class: Class) -> bool {
        // The usual answer first.
        if self.bulk[class.index()].is_empty() {
            return false;
        }
        !self.overlaps.blocks || class != Class::Bulk
    }

    // W-14
    /// The operation acknowledgement of a class: everything visible, but not past a refusal under way.
    pub(super) fn acknowledged_operation(&self, class: Class) -> u32 {
        let visible = self.receivers[class.index()].visible;
        self.refusal_holds
            .iter()
            .filter(|hold| hold.class == class)
            .fold(visible, |least, hold| if is_ahead(least, hold.number) { hold.number } else { least })
    }

    /// Whether an operation of this number comes right behind all that were taken before.
    #[inline]
    pub(super) fn continues(&self, class: Class, number: u32) -> bool {
        let visible = self.receivers[class.index()].visible;
        self.serving[class.index()].back().map_or(visible, |last| last.end) == number
    }

    /// Operations that were taken and are not visible yet.
    #[inline]
    pub(super) fn not_yet_visible(&self, class: Class) -> usize {
        let visible = self.receivers[class.index()].visible;
        self.serving[class.index()].back().map_or(0, |last| last.end.wrapping_sub(visible) as usize)
    }

    /// Operations up to `end` were taken and await memory.
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
        let place = serving.partition_point(|other| !is_ahead(other.first, entry.first));
        serving.insert(place, entry);
    }

    /// The first operation before `number` that has neither been served nor given up, if there is one: what was taken before
    /// its turn lies behind a gap.
    #[inline]
    pub(super) fn gap_before(&self, class: Class, number: u32) -> Option<u32> {
        let served = match self.serving[class.index()].back() {
            None => self.receivers[class.index()].visible,
            Some(last) if is_ahead(number, last.first) => last.end,
            Some(_) => self.served_before(class, number),
        };
        is_ahead(number, served).then_some(served)
    }

    /// Where the operations before `number` that have been served end, among others that were taken before their turn.
    #[cold]
    fn served_before(&self, class: Class, number: u32) -> u32 {
        let before = self.serving[class.index()].iter().rev().find(|entry| is_ahead(number, entry.first));
        before.map_or(self.receivers[class.index()].visible, |entry| entry.end)
    }

    /// Whether everything from `from` to before `to` has been served.
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

    /// Memory has done the operations up to `end`.
    pub(super) fn served(&mut self, class: Class, end: u32) {
        let serving = &mut self.serving[class.index()];
        // Memory answers in order, mostly at once: it is the first.
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

    /// The last posted store, unless it is visible by now.
    pub(super) fn posted_in_flight(&self) -> Option<u32> {
        let visible = self.senders[Class::Request.index()].visible();
        self.posted_last.filter(|last| !is_ahead(visible, *last))
    }

    /// What a flush has to say of posted stores; it is said once.
    pub(super) fn take_posted_error(&mut self) -> Option<(NodeId, OperationError)> {
        self.posted_error.take().map(|error| (self.node, error))
    }

    /// A mark of everything asked of this node so far.
    pub(super) fn mark(&self) -> Mark {
        let bulk = &self.senders[Class::Bulk.index()];
        Mark {
            node: self.node,
            request: self.senders[Class::Request.index()].next_operation(),
            bulk_asked: self.bulk_asked,
            bulk: (self.bulk_cut >= self.bulk_asked).then(|| bulk.next_operation()),
        }
    }

    /// Whether everything before the mark has ended.
    pub(super) fn has_reached(&self, mark: &mut Mark) -> bool {
        if mark.bulk.is_none() && self.bulk_cut >= mark.bulk_asked {
            mark.bulk = Some(self.senders[Class::Bulk.index()].next_operation());
        }
        let Some(bulk) = mark.bulk else { return false };
        [(Class::Request, mark.request), (Class::Bulk, bulk)].into_iter().all(|(class, number)| {
            !is_ahead(number, self.senders[class.index()].visible())
                && !self.outstanding[class.index()].has_reply_before(number)
        })
    }
}
