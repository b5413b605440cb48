//! IP over the fabric: frames between the interface of the program and messages of the fabric.
//!
//! | step | by |
//! |---|---|
//! | the program sends a frame | read from the interface into a slot of memory, sent as one message to its node |
//! | a message arrives | written to the interface, in the order of the sender |
//! | a destination has many frames in flight | further ones are dropped, as by a full queue of a device |
//! | all slots are in use | the interface is not read, and its kernel queue drops frames |
//!
//! A lost frame of the rack's links is repeated by the fabric, so the program sees a delay and no loss. Frames to a node that is not reached are lost.

mod frames;

use std::collections::{BTreeMap, VecDeque};

use rackloom::ip::{HEADER_BYTES, Interface, MESSAGE_BYTES_MAX};
use rackloom_control::notice::IpCounters;
use rackloom_protocol::{
    Access, Command, CommandRefused, Endpoint, Event, Instant, JobMemory, Key, LocalRange, Member, NodeId,
    OperationId, RegionConfig, RegionId, Tenant,
};

use self::frames::{Destination, destination_of};

/// Tag of messages with a frame.
const TAG: u64 = 0x7263_6b6c_6970_0001;
const OUTGOING: RegionId = RegionId(0x4950_0001);
const INCOMING: RegionId = RegionId(0x4950_0002);
/// Frames that may be on their way to other nodes.
const OUTGOING_SLOTS: u16 = 96;
/// Frames that may be on their way to one node. The others keep some slots.
const PER_NODE_MAX: u16 = 72;
/// Frames that may arrive at a time.
const INCOMING_SLOTS: u16 = 32;
/// Length of a slot: a whole number of cache lines.
const SLOT_BYTES: u64 = MESSAGE_BYTES_MAX.next_multiple_of(64) as u64;
/// Frames read in one poll. Frames of the links are handled in between.
const READS_PER_POLL: usize = 16;
/// Interval between two posts of receives that failed, because no node is reached.
const POST_INTERVAL_NS: u64 = 100_000_000;

/// First operations of outgoing and incoming slots. Jobs use smaller numbers, and the check of the state at rest larger ones.
const FIRST_SENT: u64 = 3 << 61;
const FIRST_RECEIVED: u64 = FIRST_SENT | 1 << 32;

/// Interface of the program on this seat.
pub(super) struct IpPort {
    interface: Interface,
    own: NodeId,
    /// Number of GPU nodes.
    nodes: u16,
    buffer: Vec<u8>,
    /// Slots for frames that the program sends.
    free: Vec<u16>,
    /// Operations that use each slot, and the length of its frame.
    used: Vec<(u16, u64)>,
    /// Frame whose message found a full queue.
    held: Option<(u16, NodeId)>,
    /// Messages on their way, by node.
    in_flight: BTreeMap<NodeId, u16>,
    /// Node of each operation in flight.
    targets: BTreeMap<OperationId, NodeId>,
    last_operation: u64,
    /// Receives that have matched a message, by sender and in order, with the length of the data that are there.
    arriving: BTreeMap<NodeId, VecDeque<(u16, Option<Arrived>)>>,
    /// Slots whose receive is not posted.
    idle: Vec<u16>,
    post_due: Instant,
    counters: IpCounters,
}

/// End of a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrived {
    Frame { length: u64 },
    Lost,
}

/// Returns the regions of an interface. Peers access none of them.
pub(super) fn regions(tenant: Tenant) -> Vec<RegionConfig> {
    let access = Access { read: false, write: false, atomic: false };
    let region = |region, slots: u16| RegionConfig {
        region,
        length: u64::from(slots) * SLOT_BYTES,
        key: Key(0),
        access,
        tenant,
    };
    vec![region(OUTGOING, OUTGOING_SLOTS), region(INCOMING, INCOMING_SLOTS)]
}

impl IpPort {
    pub(super) fn new(interface: Interface, own: NodeId, nodes: usize) -> Self {
        Self {
            interface,
            own,
            nodes: nodes as u16,
            buffer: vec![0; MESSAGE_BYTES_MAX],
            free: (0..OUTGOING_SLOTS).rev().collect(),
            used: vec![(0, 0); usize::from(OUTGOING_SLOTS)],
            held: None,
            in_flight: BTreeMap::new(),
            targets: BTreeMap::new(),
            last_operation: 0,
            arriving: BTreeMap::new(),
            idle: (0..INCOMING_SLOTS).collect(),
            post_due: Instant::ZERO,
            counters: IpCounters::default(),
        }
    }

    pub(super) const fn counters(&self) -> IpCounters {
        self.counters
    }

    /// Returns true if the program has sent a frame that can be read now.
    pub(super) fn is_ready(&self) -> bool {
        self.can_read() && self.interface.frames.is_readable()
    }

    /// Returns a descriptor that is readable when the program has sent a frame.
    pub(super) fn descriptor(&self) -> std::io::Result<std::os::fd::OwnedFd> {
        self.interface.frames.duplicate()
    }

    /// Returns the time of the next poll, if nothing happens before.
    pub(super) fn wake_at(&self) -> Instant {
        if self.idle.is_empty() { Instant::NEVER } else { self.post_due }
    }

    const fn can_read(&self) -> bool {
        self.held.is_none() && !self.free.is_empty()
    }

    /// Handles an event of the endpoint. Returns true if it belongs to the interface alone.
    pub(super) fn handle_event(&mut self, event: &Event) -> bool {
        match *event {
            Event::NodeReached { .. } => {
                self.post_due = Instant::ZERO;
                false
            }
            Event::MessageMatched { operation, source, .. } => {
                let Some(slot) = received_slot(operation) else { return false };
                self.arriving.entry(source).or_default().push_back((slot, None));
                true
            }
            Event::Completed { operation, result } => {
                if let Some(slot) = received_slot(operation) {
                    let arrived = result.map_or(Arrived::Lost, |length| Arrived::Frame { length });
                    self.end_receive(slot, arrived);
                } else if let Some(node) = self.targets.remove(&operation) {
                    self.end_send(sent_slot(operation), node, result.is_ok());
                } else {
                    return false;
                }
                true
            }
            _ => false,
        }
    }

    fn end_receive(&mut self, slot: u16, arrived: Arrived) {
        let mut matched = self.arriving.values_mut().flatten();
        match matched.find(|(its, _)| *its == slot) {
            Some((_, end)) => *end = Some(arrived),
            // No node is reached.
            None => self.idle.push(slot),
        }
    }

    fn end_send(&mut self, slot: u16, node: NodeId, is_done: bool) {
        if let Some(count) = self.in_flight.get_mut(&node) {
            *count = count.saturating_sub(1);
        }
        let length = self.release(slot);
        if is_done {
            self.counters.frames_sent += 1;
            self.counters.bytes_sent += length;
        } else {
            self.counters.unreached += 1;
        }
    }

    /// Gives up one use of a slot. Returns the length of its frame.
    fn release(&mut self, slot: u16) -> u64 {
        let (uses, length) = &mut self.used[usize::from(slot)];
        *uses = uses.saturating_sub(1);
        if *uses == 0 {
            self.free.push(slot);
        }
        *length
    }

    /// Moves frames in both directions. Returns true if there were any.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        memory: &mut dyn JobMemory,
    ) -> bool {
        let delivered = self.deliver(memory);
        self.post_receives(now, endpoint);
        if let Some((slot, node)) = self.held.take()
            && !self.send(now, endpoint, slot, node)
        {
            self.held = Some((slot, node));
            return delivered;
        }
        let mut has_read = false;
        for _ in 0..READS_PER_POLL {
            if !self.can_read() || !self.read(now, endpoint, memory) {
                break;
            }
            has_read = true;
        }
        delivered || has_read
    }

    /// Writes frames that have arrived to the interface. Those of one node keep their order.
    fn deliver(&mut self, memory: &mut dyn JobMemory) -> bool {
        let mut any = false;
        for waiting in self.arriving.values_mut() {
            while let Some(&(slot, Some(arrived))) = waiting.front() {
                waiting.pop_front();
                self.idle.push(slot);
                self.post_due = Instant::ZERO;
                any = true;
                let Arrived::Frame { length } = arrived else { continue };
                let frame = &mut self.buffer[..length as usize];
                let is_read = memory.read(INCOMING, offset_of(slot), frame).is_ok();
                if is_read && frame.len() > HEADER_BYTES && self.interface.frames.send(frame) {
                    self.counters.frames_received += 1;
                    self.counters.bytes_received += length;
                } else {
                    self.counters.refused += 1;
                }
            }
        }
        any
    }

    fn post_receives(&mut self, now: Instant, endpoint: &mut Endpoint) {
        if self.idle.is_empty() || now < self.post_due {
            return;
        }
        self.post_due = now + POST_INTERVAL_NS;
        while let Some(slot) = self.idle.pop() {
            let receive = Command::Receive {
                operation: OperationId(FIRST_RECEIVED + u64::from(slot)),
                source: None,
                tag: TAG,
                ignore: 0,
                into: LocalRange { region: INCOMING, offset: offset_of(slot), length: SLOT_BYTES },
            };
            if endpoint.handle_command(now, receive).is_err() {
                self.idle.push(slot);
                return;
            }
        }
    }

    /// Reads a frame from the interface, and sends it. Returns false if there is none.
    fn read(&mut self, now: Instant, endpoint: &mut Endpoint, memory: &mut dyn JobMemory) -> bool {
        // The kernel reports an error of the interface once. Later reads find no frame.
        let Ok(Some(length)) = self.interface.frames.receive(&mut self.buffer) else { return false };
        let message = &self.buffer[..length];
        let destination = message.get(HEADER_BYTES..).map_or(Destination::Nowhere, destination_of);
        let Some(slot) = self.free.pop() else { return false };
        if memory.write(OUTGOING, offset_of(slot), message).is_err() {
            self.free.push(slot);
            return true;
        }
        // This use ends below, so that a frame without a destination frees its slot.
        self.used[usize::from(slot)] = (1, length as u64);
        match destination {
            Destination::Node(node) => {
                if !self.send(now, endpoint, slot, NodeId(node)) {
                    self.held = Some((slot, NodeId(node)));
                    return true;
                }
            }
            Destination::Others => {
                let own = self.own;
                for node in (0..self.nodes).map(NodeId) {
                    if node != own && endpoint.is_reachable(node) {
                        self.used[usize::from(slot)].0 += 1;
                        if !self.send(now, endpoint, slot, node) {
                            self.counters.queue_full += 1;
                            self.release(slot);
                        }
                    }
                }
                self.release(slot);
            }
            Destination::Nowhere => {
                self.counters.unreached += 1;
                self.release(slot);
            }
        }
        true
    }

    /// Sends the frame of a slot to a node, which ends this use of the slot later, or drops it. Returns false if the queue of the endpoint is full.
    fn send(&mut self, now: Instant, endpoint: &mut Endpoint, slot: u16, node: NodeId) -> bool {
        if self.in_flight.get(&node).is_some_and(|count| *count >= PER_NODE_MAX) {
            self.counters.queue_full += 1;
            self.release(slot);
            return true;
        }
        self.last_operation = (self.last_operation + 1) % (1 << 16);
        let operation = OperationId(FIRST_SENT | self.last_operation << 16 | u64::from(slot));
        let length = self.used[usize::from(slot)].1;
        let source = LocalRange { region: OUTGOING, offset: offset_of(slot), length };
        match endpoint.handle_command(now, Command::Send { operation, target: node, tag: TAG, source }) {
            Ok(()) => {
                *self.in_flight.entry(node).or_default() += 1;
                self.targets.insert(operation, node);
                true
            }
            Err(CommandRefused::Busy) => false,
            Err(_) => {
                self.counters.unreached += 1;
                self.release(slot);
                true
            }
        }
    }
}

const fn offset_of(slot: u16) -> u64 {
    slot as u64 * SLOT_BYTES
}

/// Returns the slot of a receive, or `None` for other operations.
fn received_slot(operation: OperationId) -> Option<u16> {
    let slot = operation.0.checked_sub(FIRST_RECEIVED)?;
    (slot < u64::from(INCOMING_SLOTS)).then_some(slot as u16)
}

const fn sent_slot(operation: OperationId) -> u16 {
    operation.0 as u16
}
