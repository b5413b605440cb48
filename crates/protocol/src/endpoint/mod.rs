//! GPU node: forwarder, transports, operations, regions.
//!
//! `commands` accepts commands of the caller. `arrivals` accepts received frames, and `fast_path` is its fast path.
//! `serving` executes remote requests; `failed_operations` records those that failed, and `signals_without_data` refuses
//! signals that count them. `completions` ends the caller's operations. `transmit` builds frames, `run` consecutive ones,
//! `cutting` packets of long transfers. `path_choice` and `spreading` choose among several paths. `order` keeps the promised
//! order, with `overlaps`, and `order_oracle` checks it. `bounds` and `admission` limit the work that one remote node may
//! queue. `reach` follows routes, losses and returns. `departure` leaves in order. `undrained` and `withholding` keep
//! credits back as a fault. `granting` limits the packets on their way to this node. A `peer::Peer` is the state of one remote node, and a `stream::Stream` that of one class of it.

mod admission;
mod arrivals;
mod bounds;
mod departure;
mod fast_path;
mod granting;
mod headers;
mod operations;
mod order;
mod peer;
mod reach;
mod sending;
mod stream;
mod streams;
mod undrained;
mod withholding;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::config::{ForwardingPriority, MemberConfig, PathPolicy, PortConfig};
use crate::contract::{DirectMemory, Fill, FrameCompletion, Member, PollSteps, Shortcuts, TimeoutExtensions};
use crate::error::{CommandRefused, InvalidCommand};
use crate::event::Event;
use crate::forwarding::forwarder::Forwarder;
use crate::forwarding::waits::Wait;
use crate::ids::{Channel, Class, Incarnation, NodeId, PortId, RegionId};
use crate::inspect::Inspect;
use crate::link::Link;
use crate::link::counters::PortCounters;
use crate::link::state::LinkState;
use crate::memory::regions::Regions;
use crate::memory::{Access, LeaseId, MemoryDone, MemoryRequest, MemoryToken, RegionConfig};
use crate::operation::Command;
use crate::operation::groups::Groups;
use crate::operation::messages::Matching;
use crate::operation::waits::{Flush, WordWait};
use crate::per_channel::PerChannel;
use crate::time::Instant;
use crate::transmit::Transmit;
use crate::transport::grants::Grants;
use crate::transport::settings::StreamSettings;
use crate::wire::demand::Demand;
use crate::wire::frame::FabricHeader;
use crate::wire::layout::OPERATIONS;
use bounds::Bounds;
pub use departure::Departure;
pub use operations::commands::ListedStore;
use operations::memory_queue::MemoryQueue;
use peer::Peer;
use stream::Stream;
use undrained::Undrained;

/// State machine of a GPU node.
#[derive(Debug)]
pub struct Endpoint {
    forwarder: Forwarder,
    peers: Vec<Option<Box<Peer>>>,
    /// Stream before its first packet, with the settings of all streams.
    blank: Arc<Stream>,
    known: Vec<NodeId>,
    /// For each known node a time that is no later than the deadlines of its streams, beside each other: a scan looks at few peers then.
    deadlines: Vec<Instant>,
    generation: u32,
    regions: Regions,
    groups: Groups,
    words: Vec<WordWait>,
    flushes: Vec<Flush>,
    matching: Matching,
    memory: MemoryQueue,
    /// True if any remote operation has failed, so that signals are checked before they reach memory.
    has_failures: bool,
    ready_data: Vec<PerChannel<VecDeque<(NodeId, Class)>>>,
    ready_acks: Vec<VecDeque<NodeId>>,
    next_deadline: Instant,
    bitmap: Vec<u8>,
    ack_operations: Vec<u8>,
    /// Port through which own data leaves since this poll iteration began. It has one channel, and no other frame
    /// waits there. No frame of higher priority can become due during the iteration: sending causes none, and the
    /// time does not change.
    run: Option<PortId>,
    /// Number of long transfers begun.
    transfers: u32,
    undrained: Undrained,
    bounds: Bounds,
    /// `None` in a rack without grants.
    grants: Option<Box<Grants>>,
}

impl Endpoint {
    /// Returns a node at the beginning of its incarnation.
    #[must_use]
    pub fn new(config: MemberConfig) -> Self {
        let ports = config.ports.len();
        let members = config.graph.members.len();
        let count = config.channels.count();
        let line = |port: &PortConfig| PerChannel::new(port.channel_count(count), |_| VecDeque::new());
        let ready_data = config.ports.iter().map(line).collect();
        let undrained = Undrained::new(config.forwarding.drain);
        let bounds = Bounds::of(&config);
        let grants = Grants::of(&config.transport).map(Box::new);
        let settings = StreamSettings {
            transport: config.transport,
            packing: config.packing,
            operation_bytes_max: usize::from(config.frame_bytes_max) - OPERATIONS,
        };
        Self {
            blank: Arc::new(Stream::new(&Arc::new(settings))),
            forwarder: Forwarder::new(config),
            undrained,
            bounds,
            grants,
            peers: (0..members).map(|_| None).collect(),
            known: Vec::new(),
            deadlines: Vec::new(),
            generation: 0,
            regions: Regions::default(),
            groups: Groups::default(),
            words: Vec::new(),
            flushes: Vec::new(),
            matching: Matching::default(),
            memory: MemoryQueue::default(),
            has_failures: false,
            ready_data,
            ready_acks: (0..ports).map(|_| VecDeque::new()).collect(),
            next_deadline: Instant::NEVER,
            bitmap: Vec::new(),
            ack_operations: Vec::new(),
            run: None,
            transfers: 0,
        }
    }

    /// Registers a region. Remote access is possible from now on.
    ///
    /// # Errors
    /// If the region cannot be registered.
    pub fn register(&mut self, region: RegionConfig) -> Result<(), CommandRefused> {
        if self.regions.register(region) {
            Ok(())
        } else {
            Err(CommandRefused::Invalid(InvalidCommand::RegionExists))
        }
    }

    /// Removes a region. No request that arrives later touches it. Memory requests issued before must be answered
    /// before the memory is freed.
    pub fn revoke(&mut self, region: RegionId) {
        self.regions.revoke(region);
    }

    /// Sets the access rights of one member to a region, in place of those that the region was registered with. `None` removes them. They end
    /// when the region is revoked. Requests that arrive later are checked against them.
    pub fn set_access(&mut self, region: RegionId, node: NodeId, access: Option<Access>) {
        self.regions.set_access(region, node, access);
    }

    /// Returns the access rights of one member to a region, or `None` if there is no such region.
    #[must_use]
    pub fn access_of(&self, region: RegionId, node: NodeId) -> Option<Access> {
        self.regions.access_of(region, node)
    }

    /// Returns true if the member is reachable now.
    #[must_use]
    pub fn is_reachable(&self, node: NodeId) -> bool {
        self.forwarder.reaches(node)
    }

    /// Returns the first ports of the shortest live paths to `node`, one port per path; none if no path is alive.
    pub fn paths(&self, node: NodeId) -> impl Iterator<Item = PortId> + '_ {
        self.forwarder.shortest_paths(node)
    }

    /// Returns true if every other GPU node of the rack is reachable now. Processes of GPU nodes do not count.
    #[must_use]
    pub fn reaches_all(&self) -> bool {
        let count = self.config().graph.endpoint_count() as u16;
        (0..count).map(NodeId).all(|node| node == self.config().node || self.is_reachable(node))
    }

    /// Returns the number of further packets for this node that may wait for others. Returns 0 if operations should
    /// leave now: if nothing is in flight that they could follow, or more than `batch` packets are ready. Otherwise
    /// waiting only delays them until the next acknowledgement.
    #[must_use]
    pub fn batch_wanted(&self, node: NodeId, batch: usize) -> usize {
        let Some(Some(peer)) = self.peers.get(node.index()) else { return 0 };
        let wanted = |class: Class| {
            let Stream { sender, bulk, .. } = peer.streams.of(class);
            let unsent = sender.unsent() + bulk.len();
            let may_wait = sender.in_flight() > 0 || unsent == 0;
            if may_wait { (batch + 1).saturating_sub(unsent) } else { 0 }
        };
        wanted(Class::Request).min(wanted(Class::Bulk))
    }

    /// Returns true if the node is reachable and all operations to it that began earlier have ended. Then nothing is in
    /// flight that an access on another path than the wire could overtake.
    #[must_use]
    pub fn is_idle_towards(&self, node: NodeId) -> bool {
        let is_idle = |peer: &Peer| peer.has_reached(&mut peer.mark());
        self.forwarder.reaches(node)
            && self.peers.get(node.index()).is_some_and(|peer| peer.as_deref().is_none_or(is_idle))
    }

    /// Returns true if the caller waits for a word.
    #[must_use]
    pub const fn has_waits(&self) -> bool {
        !self.words.is_empty()
    }

    /// Returns true if a wait for a word would end. `read` returns a word of own memory. For words that other processes
    /// change without a frame.
    pub fn has_satisfied_wait(&self, mut read: impl FnMut(RegionId, u64) -> Option<u64>) -> bool {
        self.words.iter().any(|wait| wait.is_satisfied(&mut read))
    }

    /// Checks the waits for words whose condition holds. Call it before a poll, with a function that returns a word of own
    /// memory. Returns true if there is one.
    pub fn look_at_satisfied_waits(&mut self, mut read: impl FnMut(RegionId, u64) -> Option<u64>) -> bool {
        let mut has_one = false;
        for index in 0..self.words.len() {
            if self.words[index].is_satisfied(&mut read) {
                self.look_at_word(index);
                has_one = true;
            }
        }
        has_one
    }

    /// Number of operations of the caller that will end by themselves. It excludes waits on words, and receives
    /// without a message.
    #[must_use]
    pub const fn operations_in_progress(&self) -> usize {
        self.groups.open_count()
    }

    // W-50
    /// Announces to all members that this one leaves, so that they do not count its loss as a death. Call it when no
    /// operation is in progress, and again while [`Endpoint::has_departed`] is false if wires may lose frames, as a
    /// [`Departure`] does. No operation may be begun afterwards.
    pub fn begin_departure(&mut self, now: Instant) {
        self.forwarder.begin_departure(now);
    }

    /// Returns true if no link carries data. After a departure, this means that every neighbour has received it.
    #[must_use]
    pub fn has_departed(&self) -> bool {
        (0..self.port_count()).all(|port| !self.link_state(PortId(port as u16)).carries_data())
    }

    /// Returns the state of the link at a port.
    #[must_use]
    pub fn link_state(&self, port: PortId) -> LinkState {
        self.forwarder.link(port).state()
    }

    /// Disables or enables a link by user command.
    pub fn administer_link(&mut self, now: Instant, port: PortId, enabled: bool) {
        self.forwarder.administer(now, port, enabled);
    }

    /// Returns the configuration of the endpoint.
    #[must_use]
    pub const fn config(&self) -> &MemberConfig {
        &self.forwarder.config
    }

    /// Returns one line per operation, stream and credit account that waits, for the watchdog.
    #[must_use]
    pub fn waiting_for(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.groups.open_count() > 0 {
            lines.push(format!("{} operations in progress", self.groups.open_count()));
        }
        for wait in &self.words {
            lines.push(format!(
                "operation {} waits for {} offset {:#x} to be {:?} {}",
                wait.operation.0, wait.region, wait.offset, wait.condition, wait.value
            ));
        }
        for posted in &self.matching.posted {
            let from = posted.source.map_or_else(|| String::from("any node"), |node| format!("{node}"));
            lines
                .push(format!("operation {} receives tag {:#x} from {from}", posted.operation.0, posted.tag));
        }
        for peer in self.known.iter().filter_map(|node| self.peers[node.index()].as_deref()) {
            for (class, Stream { sender, .. }) in peer.streams.iter() {
                if sender.in_flight() + sender.unsent() > 0 || peer.has_more_bulk(class) {
                    lines.push(format!(
                        "{} {}: {} packets in flight, {} waiting, next acknowledgement {}",
                        peer.node,
                        class.name(),
                        sender.in_flight(),
                        sender.unsent(),
                        sender.base()
                    ));
                }
            }
        }
        self.forwarder.waiting_for(&mut lines);
        lines
    }

    /// Returns the state of a node and creates it on first use. Returns `None` while no incarnation of the node is
    /// known.
    fn peer_of(&mut self, node: NodeId) -> Option<Box<Peer>> {
        let slot = self.peers.get_mut(node.index())?;
        if let Some(peer) = slot.take() {
            return Some(peer);
        }
        let incarnation = self.forwarder.incarnation(node)?;
        // Each known node has a state, of one incarnation or another.
        debug_assert!(!self.known.contains(&node), "{node} is known and has no state");
        let position = self.known.len() as u16;
        self.known.push(node);
        self.deadlines.push(Instant::NEVER);
        Some(self.fresh_peer(node, position, incarnation))
    }

    fn fresh_peer(&mut self, node: NodeId, position: u16, incarnation: Incarnation) -> Box<Peer> {
        self.generation = self.generation.wrapping_add(1);
        let paths = self.config().paths;
        let mut peer = Box::new(Peer::new(node, incarnation, self.generation, paths, &self.blank));
        self.find_paths(&mut peer);
        peer.position = position;
        peer.ports = Class::ALL.map(|class| self.forwarder.route(node, self.entropy(node, class)));
        peer
    }

    fn put_back(&mut self, peer: Box<Peer>) {
        let index = peer.node.index();
        self.peers[index] = Some(peer);
    }

    /// Returns the header of a packet of this class, with the fields that are equal for all of them.
    fn fixed_header(&self, peer: &Peer, class: Class) -> FabricHeader {
        let config = self.config();
        FabricHeader {
            destination: peer.node,
            source: config.node,
            class,
            operation_count: 0,
            tenant: config.tenants.get(config.node.index()).copied().unwrap_or_default(),
            entropy: self.entropy(peer.node, class),
            ack_now: false,
            again: false,
            demand: Demand::NONE,
            ack: None,
            source_incarnation: config.incarnation.tag(),
            destination_incarnation: peer.incarnation.tag(),
            psn: 0,
            first_operation: 0,
        }
    }

    /// Returns the path entropy of a stream, which never changes.
    fn entropy(&self, node: NodeId, class: Class) -> u16 {
        let pair = u32::from(self.config().node.0) << 16 | u32::from(node.0);
        let class = if self.config().paths.policy == PathPolicy::Address { 0 } else { class as u32 };
        let mut hash = pair.wrapping_mul(0x9e37_79b1) ^ class.wrapping_mul(0x85eb_ca6b);
        hash = (hash ^ (hash >> 15)).wrapping_mul(0x2c1b_3c6d);
        (hash ^ (hash >> 16)) as u16
    }

    fn arm(&mut self, deadline: Option<Instant>) {
        if let Some(deadline) = deadline {
            self.next_deadline = self.next_deadline.min(deadline);
        }
    }

    /// Arms the deadline of a stream of this peer. Call it after each change that may set a deadline.
    fn arm_stream(&mut self, peer: &Peer, deadline: Option<Instant>) {
        if let Some(deadline) = deadline {
            let earliest = &mut self.deadlines[usize::from(peer.position)];
            *earliest = deadline.min(*earliest);
            self.next_deadline = self.next_deadline.min(deadline);
        }
    }
}

impl Member for Endpoint {
    fn handle_frame(&mut self, now: Instant, port: PortId, lease: LeaseId, bytes: &[u8]) {
        if self.take_fast_path(now, port, lease, bytes) {
            return;
        }
        if let Some(frame) = self.forwarder.handle_frame(now, port, lease, bytes) {
            self.take_routed(now, port, lease, &frame);
        }
    }

    fn handle_memory_done(&mut self, now: Instant, token: MemoryToken, done: MemoryDone<'_>) {
        self.finish_memory(now, token, done);
    }

    fn handle_command(&mut self, _now: Instant, command: Command<'_>) -> Result<(), CommandRefused> {
        self.take_command(command)
    }

    fn handle_carrier(&mut self, now: Instant, port: PortId, up: bool) {
        self.forwarder.handle_carrier(now, port, up);
    }

    fn handle_new_cable(&mut self, now: Instant, port: PortId) {
        self.forwarder.handle_new_cable(now, port);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.forwarder.handle_timeout(now);
        if now >= self.next_deadline {
            self.handle_stream_timeouts(now);
        }
    }

    fn poll_memory(&mut self) -> Option<MemoryRequest<'_>> {
        if self.has_failures {
            self.refuse_signals_without_data();
        }
        self.memory.poll()
    }

    fn poll_transmit(&mut self, now: Instant, port: PortId, out: &mut [u8]) -> Option<Transmit> {
        if self.run == Some(port) {
            let transmit = self.continue_run(now, port, out);
            if transmit.is_some() {
                return transmit;
            }
            self.run = None;
        }
        if let Some(transmit) = self.forwarder.transmit_control(now, port, out) {
            return Some(transmit);
        }
        if let Some(transmit) = self.transmit_ack(port, out) {
            return Some(transmit);
        }
        for channel in self.forwarder.channel_order(port) {
            let is_own_turn = self.forwarder.config.forwarding.priority == ForwardingPriority::Own;
            if is_own_turn && let Some(transmit) = self.begin_run(now, port, channel, out) {
                return Some(transmit);
            }
            if self.forwarder.has_transit(port, channel)
                && let Some(transmit) = self.forwarder.transmit_transit(now, port, channel, out)
            {
                return Some(transmit);
            }
            if let Some(transmit) = self.begin_run(now, port, channel, out) {
                return Some(transmit);
            }
        }
        self.forwarder.transmit_link_ack(now, port, out)
    }

    fn poll_release(&mut self) -> Option<LeaseId> {
        self.forwarder.poll_release()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.forwarder.poll_event()
    }

    fn poll_timeout(&self) -> Instant {
        self.forwarder.deadline().min(self.next_deadline)
    }

    fn port_count(&self) -> usize {
        self.forwarder.port_count()
    }
}

impl PollSteps for Endpoint {
    fn settle(&mut self, now: Instant) {
        self.run = None;
        self.forwarder.settle();
        self.follow_routes(now);
    }

    fn wants_transmit(&self, now: Instant, port: PortId) -> bool {
        // Credits are checked when the packet leaves.
        self.run == Some(port) && !self.ready_data[port.index()].of(Channel(0)).is_empty()
            || self.wants_own(port)
            || self.forwarder.wants_transmit(now, port)
    }

    fn must_poll_again(&mut self) -> bool {
        self.forwarder.has_moved()
    }
}

impl Shortcuts for Endpoint {
    fn take_at_once(
        &mut self,
        now: Instant,
        port: PortId,
        bytes: &[u8],
        memory: &mut dyn DirectMemory,
    ) -> bool {
        self.take_fast_path_at_once(now, port, bytes, memory)
    }

    fn send_run(
        &mut self,
        now: Instant,
        port: PortId,
        memory: &mut dyn DirectMemory,
        fill: &mut Fill<'_>,
    ) -> bool {
        self.send_run(now, port, memory, fill)
    }
}

impl FrameCompletion for Endpoint {
    fn keep_sent(&mut self, now: Instant, port: PortId, frame: &mut [u8], is_kept: bool) {
        self.forwarder.keep_sent(now, port, frame, is_kept);
    }

    fn repeatable(&self, port: PortId) -> Option<usize> {
        self.forwarder.repeatable(port)
    }

    fn refresh_sent(&mut self, port: PortId, frame: &mut [u8]) {
        self.forwarder.refresh_sent(port, frame);
    }

    fn note_source_failed(&mut self, region: RegionId) {
        self.forwarder.push_event(Event::SourceFailed { region });
    }
}

impl TimeoutExtensions for Endpoint {
    fn extend_timeout(&mut self, now: Instant, port: PortId, extension_ns: u64) {
        self.forwarder.extend_timeout(now, port, extension_ns);
    }
}

impl Inspect for Endpoint {
    fn port_counters(&self, port: PortId) -> &PortCounters {
        self.forwarder.counters(port)
    }

    fn queued_frames(&self, port: PortId) -> usize {
        self.forwarder.queued_frames(port)
    }

    fn waits(&self) -> Vec<Wait> {
        let mut waits = self.forwarder.waits();
        waits.extend(self.own_waits());
        waits
    }

    fn link(&self, port: PortId) -> Option<&Link> {
        Some(self.forwarder.link(port))
    }

    fn granted_packets(&self) -> Option<u32> {
        self.grants.as_ref().map(|grants| grants.in_use())
    }
}
