//! What an endpoint keeps for one remote node and one life of it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::config::MemberConfig;
use crate::error::OperationError;
use crate::ids::{Class, Incarnation, NodeId, PortId};
use crate::link::credits::is_ahead;
use crate::operation::LocalRange;
use crate::operation::bulk::Bulk;
use crate::operation::outstanding::Outstanding;
use crate::operation::waits::Mark;
use crate::transport::receiver::Receiver;
use crate::transport::sender::{Sender, SenderLimits};
use crate::wire::frame::FabricHeader;
use crate::wire::layout::OPERATIONS;

/// Operations taken in order that memory has yet to do: the stream is visible up to `end` once this and all before are
/// done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serving {
    pub end: u32,
    pub is_done: bool,
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
    pub serving: [VecDeque<Serving>; Class::COUNT],
    pub outstanding: [Outstanding; Class::COUNT],
    pub bulk: [VecDeque<Bulk>; Class::COUNT],
    pub bulk_asked: u64,
    pub bulk_cut: u64,
    /// Own messages on offer: number in the request stream, and the data.
    pub offers: VecDeque<(u32, LocalRange)>,
    /// Pulls under way: number in the bulk stream, number of the offer, length.
    pub pulls: Vec<(u32, u32, u64)>,
    /// Eager budget in use at the receiver, in bytes.
    pub eager_unmatched: u64,
    pub refusal_holds: VecDeque<RefusalHold>,
    pub ports: [Option<PortId>; Class::COUNT],
    /// What the header of every frame of a class says for as long as both lives last.
    pub headers: [FabricHeader; Class::COUNT],
    pub is_data_queued: [bool; Class::COUNT],
    pub is_ack_queued: bool,
    /// Packets have come since a frame to this node last found no acknowledgement to take along: traffic that goes one way need not
    /// look at four streams for every frame.
    pub may_owe_acks: bool,
    pub is_lost: bool,
    pub fence: Option<Mark>,
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
            outstanding: Default::default(),
            bulk: Default::default(),
            bulk_asked: 0,
            bulk_cut: 0,
            offers: VecDeque::new(),
            pulls: Vec::new(),
            eager_unmatched: 0,
            refusal_holds: VecDeque::new(),
            ports: [None; Class::COUNT],
            headers: Class::ALL.map(|class| FabricHeader {
                destination: node,
                source: config.node,
                class,
                operation_count: 0,
                tenant: config.tenants.get(config.node.index()).copied().unwrap_or_default(),
                entropy: 0,
                ack_now: false,
                ack: None,
                source_incarnation: config.incarnation.tag(),
                destination_incarnation: life.tag(),
                psn: 0,
                first_operation: 0,
            }),
            is_data_queued: [false; Class::COUNT],
            is_ack_queued: false,
            may_owe_acks: false,
            is_lost: false,
            fence: None,
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
        !self.bulk[class.index()].is_empty()
    }

    // W-14
    /// The operation acknowledgement of a class: everything visible, but not past a refusal under way.
    pub(super) fn acknowledged_operation(&self, class: Class) -> u32 {
        let visible = self.receivers[class.index()].visible;
        self.refusal_holds
            .iter()
            .find(|hold| hold.class == class)
            .map_or(visible, |hold| if is_ahead(visible, hold.number) { hold.number } else { visible })
    }

    /// Operations up to `end` were taken and await memory.
    pub(super) fn serve(&mut self, class: Class, end: u32, is_done: bool) {
        self.serving[class.index()].push_back(Serving { end, is_done });
        self.advance_visible(class);
    }

    /// Memory has done the operations up to `end`.
    pub(super) fn served(&mut self, class: Class, end: u32) {
        let serving = &mut self.serving[class.index()];
        if let Some(entry) = serving.iter_mut().find(|entry| entry.end == end && !entry.is_done) {
            entry.is_done = true;
        }
        self.advance_visible(class);
    }

    fn advance_visible(&mut self, class: Class) {
        let serving = &mut self.serving[class.index()];
        while let Some(first) = serving.front()
            && first.is_done
        {
            self.receivers[class.index()].visible = first.end;
            serving.pop_front();
        }
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
