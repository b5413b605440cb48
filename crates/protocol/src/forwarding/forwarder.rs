//! Forwarder of one member: links, routes and transit. This file handles received frames.
//!
//! A [`crate::Switch`] consists of a forwarder; an [`crate::Endpoint`] contains one.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::arbiter::ChannelOrder;
use super::egress::{Egress, TRANSIT_ACKS_MAX, Transit};
use super::in_order::InOrder;
use super::marks::Marks;
use super::port_set::PortSet;
use super::shared_buffer::SharedBuffer;
use crate::config::{MemberConfig, PathPolicy, TransitQueues};
use crate::event::{DropReason, Event};
use crate::ids::{Channel, Class, NodeId, PortId};
use crate::link::Link;
use crate::link::counters::{MarkCounters, PortCounters};
use crate::memory::LeaseId;
use crate::route::reports::Reports;
use crate::route::table::OwnPort;
use crate::route::tables::Tables;
use crate::time::Instant;
use crate::wire::address::mac;
use crate::wire::frame::{Frame, FrameKind};
use crate::wire::header_prediction::Numbers;

/// Event capacity that is kept. A rack that comes up or falls apart needs an event per member once.
const EVENT_CAPACITY_KEPT: usize = 64;

/// Largest number of waiting events at which a dropped frame is still announced; all are counted.
const DROPS_WAITING_MAX: usize = 16_384;

/// Links, routes and transit of one member.
#[derive(Debug)]
pub struct Forwarder {
    /// Configuration of the member.
    pub config: MemberConfig,
    pub(super) links: Vec<Link>,
    pub(super) egress: Vec<Egress>,
    pub(super) counters: Vec<PortCounters>,
    pub(super) reports: Reports,
    pub(super) table: Tables,
    pub(super) table_is_stale: bool,
    /// Members with reports that the table does not include yet.
    pub(super) reported: Vec<NodeId>,
    /// Members whose reachability the next change of the table checks.
    pub(super) reach_check: ReachCheck,
    pub(super) reached: Vec<bool>,
    pub(super) start: super::start_phase::Start,
    pub(super) own_ports: Vec<OwnPort>,
    pub(super) report_number: u32,
    pub(super) report_due: Option<Instant>,
    /// Time at which the first frame of a neighbour was handled.
    pub(super) began: Option<Instant>,
    pub(super) presence: Presence,
    pub(super) disagreements: Vec<u32>,
    /// Ports that may have something to send, for an owner that does not poll all of them.
    pub(crate) ready: PortSet,
    /// Number of frames for which this member chose among several paths.
    pub(super) choices: u32,
    /// Number of consecutive destinations that take one path of this member, if paths go by destination.
    destinations_per_path: usize,
    /// Order of frames by ingress, if they leave in order of arrival.
    pub(super) in_order: Option<InOrder>,
    /// Queue lengths, if frames that join long queues are marked.
    pub(super) marks: Option<Marks>,
    /// Buffer that the frames of pausing links share.
    pub(super) shared: Option<SharedBuffer>,
    pub(super) releases: VecDeque<LeaseId>,
    pub(super) events: VecDeque<Event>,
    /// True if events about reached or lost members are waiting.
    pub(super) has_reach_events: bool,
    /// True if the table has changed since the owner last read it.
    pub routes_changed: bool,
    /// Members with a new reported incarnation since the owner last read the list.
    pub new_incarnations: Vec<NodeId>,
    pub(super) trust: Trust,
}

/// Members whose reachability is checked when the table changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReachCheck {
    /// Members whose paths the change found or lost.
    #[default]
    Changed,
    /// All members.
    All,
}

/// Presence of this member in the rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// The member takes part.
    Present,
    /// The member has announced its departure.
    Leaving,
}

/// Version of the checks of headers. It changes with every link state change and every new incarnation; header checks
/// from an earlier version no longer hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trust(u32);

impl Trust {
    /// Invalidates all earlier header checks.
    pub(super) const fn reset(&mut self) {
        self.0 = self.0.wrapping_add(1);
    }
}

impl Forwarder {
    /// Returns a member at the beginning of its incarnation.
    #[must_use]
    pub fn new(config: MemberConfig) -> Self {
        let port_count = config.ports.len();
        let own_ports: Vec<_> = config
            .ports
            .iter()
            .enumerate()
            .map(|(port, link)| OwnPort {
                port: PortId(port as u16),
                edge: link.edge,
                neighbour: link.neighbour,
                dimension: link.dimension,
            })
            .collect();
        Self {
            links: config
                .ports
                .iter()
                .map(|port| {
                    let count = port.channel_count(config.channels.count());
                    let timers = config.timers;
                    Link::new(port.clone(), count, timers, config.node, config.frame_bytes_max)
                })
                .collect(),
            egress: config.ports.iter().map(|port| Egress::new(&config, port)).collect(),
            counters: alloc::vec![PortCounters::default(); port_count],
            reports: Reports::new(config.graph.clone(), config.node, config.incarnation),
            table: Tables::new(&config.graph, config.node),
            table_is_stale: false,
            reported: Vec::new(),
            reach_check: ReachCheck::All,
            reached: alloc::vec![false; config.graph.members.len()],
            start: super::start_phase::Start::default(),
            own_ports,
            report_number: 0,
            report_due: None,
            began: None,
            presence: Presence::Present,
            disagreements: alloc::vec![0; port_count],
            ready: PortSet::full(port_count),
            choices: 0,
            destinations_per_path: destinations_per_path(&config),
            in_order: (config.forwarding.queues == TransitQueues::ByInput).then(|| InOrder::new(&config)),
            marks: Marks::new(&config),
            shared: config.forwarding.shared_buffer.map(SharedBuffer::new),
            releases: VecDeque::new(),
            events: VecDeque::new(),
            has_reach_events: false,
            routes_changed: false,
            new_incarnations: Vec::new(),
            trust: Trust::default(),
            config,
        }
    }

    /// Number of ports.
    #[must_use]
    pub fn port_count(&self) -> usize {
        self.links.len()
    }

    /// Returns the counters of a port.
    #[must_use]
    pub fn counters(&self, port: PortId) -> &PortCounters {
        &self.counters[port.index()]
    }

    /// Returns the number of frames in transit that wait to leave through a port.
    #[must_use]
    pub fn queued_frames(&self, port: PortId) -> usize {
        self.egress[port.index()].len()
    }

    /// Returns the mark counters of a port.
    pub(crate) fn count_marks(&mut self, port: PortId) -> &mut MarkCounters {
        &mut self.counters[port.index()].marks
    }

    /// Returns the link of a port.
    #[must_use]
    pub fn link(&self, port: PortId) -> &Link {
        &self.links[port.index()]
    }

    /// Returns true if a live path leads to the member, or did and may again once the rack is completely up.
    #[must_use]
    pub fn reaches(&self, member: NodeId) -> bool {
        self.reached.get(member.index()).is_some_and(|reached| *reached)
    }

    /// Returns the incarnation that a member last reported.
    #[must_use]
    pub fn incarnation(&self, member: NodeId) -> Option<crate::ids::Incarnation> {
        self.reports.incarnation(member)
    }

    /// Returns the egress port of a flow.
    #[must_use]
    pub fn route(&self, destination: NodeId, entropy: u16) -> Option<PortId> {
        let is_late =
            |port: PortId| self.links[port.index()].state() == crate::link::state::LinkState::Suspect;
        match self.config.paths.policy {
            PathPolicy::Destination => {
                let number = destination.index() / self.destinations_per_path;
                self.table.pick_by_number(destination, number, is_late)
            }
            _ => self.table.pick(destination, entropy, is_late),
        }
    }

    /// Iterates over the ports of the lowest dimension on shortest paths to the member.
    pub fn shortest_paths(&self, destination: NodeId) -> impl Iterator<Item = PortId> + '_ {
        self.table.ports(destination)
    }

    /// Returns the queue length of a channel of a port: frames in transit, the owner's `streams`, and one more if the
    /// neighbour has no free space. Credits in use are a worse measure: they are returned in batches, so that an idle link
    /// may seem the fuller one.
    #[must_use]
    pub fn backlog(&self, port: PortId, channel: Channel, streams: usize) -> usize {
        let (link, egress) = (&self.links[port.index()], &self.egress[port.index()]);
        egress.data.of(channel).len() + streams + usize::from(link.accounts.is_stalled(channel))
    }

    /// Returns the channel on which own frames of a class leave through a port.
    #[must_use]
    pub fn own_channel(&self, port: PortId, class: Class) -> Channel {
        self.config.channels.first(class, self.config.ports[port.index()].is_dateline)
    }

    /// Returns true if transit waits on a channel of a port.
    #[inline]
    #[must_use]
    pub fn has_transit(&self, port: PortId, channel: Channel) -> bool {
        !self.egress[port.index()].data.of(channel).is_empty()
    }

    /// Returns the channels of a port in the order in which they may send.
    #[inline]
    #[must_use]
    pub fn channel_order(&self, port: PortId) -> ChannelOrder {
        self.egress[port.index()].arbiter.channel_order()
    }

    /// Queues an event for the owner's caller.
    pub fn push_event(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Number of events that the owner's caller has not polled yet.
    #[must_use]
    #[inline]
    pub fn events_waiting(&self) -> usize {
        self.events.len()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        if event.is_none() && core::mem::take(&mut self.has_reach_events) {
            self.events.shrink_to(EVENT_CAPACITY_KEPT);
        }
        event
    }

    /// Releases a frame that nothing refers to any more.
    pub fn release(&mut self, lease: LeaseId) {
        self.releases.push_back(lease);
    }

    /// Returns the next lease to release.
    pub fn poll_release(&mut self) -> Option<LeaseId> {
        self.releases.pop_front()
    }

    /// Counts and announces a received frame that is dropped.
    pub fn drop_frame(&mut self, port: PortId, reason: DropReason) {
        self.counters[port.index()].dropped[reason as usize] += 1;
        // Duplicates and gaps are frequent on a lossy link: they are counted, not announced one by one.
        let is_common = matches!(
            reason,
            DropReason::Duplicate
                | DropReason::OutOfOrder
                | DropReason::LinkDuplicate
                | DropReason::LinkOutOfSequence
                | DropReason::ServingFull
                | DropReason::ImplausibleIncarnation
        );
        if !is_common && self.events.len() < DROPS_WAITING_MAX {
            self.events.push_back(Event::FrameDropped { port, reason });
        }
    }

    // ---- frames in -------------------------------------------------------------------------------------------------

    /// Handles a received frame. Returns it if it is routed and for this member; the caller then owns the lease.
    pub fn handle_frame<'a>(
        &mut self,
        now: Instant,
        port: PortId,
        lease: LeaseId,
        bytes: &'a [u8],
    ) -> Option<Frame<'a>> {
        match self.take(now, port, lease, bytes) {
            Ok(Taken::Mine(frame)) => return Some(frame),
            Ok(Taken::Kept) => return None,
            Ok(Taken::Used) => {}
            Err(reason) => self.drop_frame(port, reason),
        }
        self.release(lease);
        None
    }

    fn take<'a>(
        &mut self,
        now: Instant,
        port: PortId,
        lease: LeaseId,
        bytes: &'a [u8],
    ) -> Result<Taken<'a>, DropReason> {
        self.count_received(port, bytes.len());
        let link = &self.links[port.index()].config;
        let (address, neighbour) = (mac(self.config.node, link.plane), mac(link.neighbour, link.plane));
        let frame = Frame::parse(bytes, self.config.ether_type, address, neighbour, self.config.epoch)?;
        if self.config.end_to_end_check && !frame.link.hop_check.is_present() {
            return Err(DropReason::CheckMissing);
        }
        // W-33, W-44
        let channel = frame.link.channel;
        if channel.index() >= self.config.channels.count() {
            return Err(DropReason::Malformed);
        }
        if frame.link.kind == FrameKind::Hello {
            self.take_hello(now, port, &frame)?;
            return Ok(Taken::Used);
        }
        let link = &mut self.links[port.index()];
        // W-6
        if !link.accepts_session(frame.link.session) {
            return Err(DropReason::StaleLink);
        }
        let before = link.credits(channel).violations();
        if link.retry.is_some() {
            // Consumed credits count when the frame is accepted, because a missing frame will be replayed.
            link.credits_mut(channel).update_freed(frame.link.freed);
        } else {
            link.credits_mut(channel).receive(frame.link.consumed, frame.link.freed);
        }
        let violations = link.credits(channel).violations() - before;
        self.counters[port.index()].credit_violations += violations;
        match frame.link.kind {
            FrameKind::Hello => {}
            FrameKind::Heartbeat => self.take_heartbeat(now, port, &frame)?,
            FrameKind::Report => self.take_reports(now, port, &frame)?,
            FrameKind::Credit => {
                if frame.body().first().is_some_and(|requests_answer| *requests_answer != 0) {
                    link.accounts.request(channel);
                }
            }
            FrameKind::Pause => self.take_pause(now, port, &frame)?,
            FrameKind::LinkAck | FrameKind::LinkNack | FrameKind::LinkInit | FrameKind::LinkInitEcho => {
                self.take_retry(now, port, &frame)?;
            }
            FrameKind::Data | FrameKind::Ack => return self.take_routed(now, port, lease, frame),
        }
        Ok(Taken::Used)
    }

    #[inline]
    fn count_received(&mut self, port: PortId, bytes: usize) {
        let counters = &mut self.counters[port.index()];
        counters.frames_received += 1;
        counters.bytes_received += bytes as u64;
    }

    /// Records the sequence number of a data frame of this length, on a link without retry.
    #[inline]
    fn note_sequence(&mut self, port: PortId, channel: Channel, sequence: u32, length: usize) {
        let link = &mut self.links[port.index()];
        let Some(missing) = link.note_sequence(sequence) else { return };
        self.counters[port.index()].missing += u64::from(missing);
        if !link.accounts.resync() {
            let credits = link.credits_mut(channel);
            credits.count_arrival(credits.cost(length));
        }
    }

    // ---- frames with predicted headers
    // -----------------------------------------------------------------------------

    /// Returns the present version of header checks, or `None` if every frame of this port must be checked
    /// completely: if frames have checks, or the link has retry or several channels.
    #[must_use]
    pub fn trust(&self, port: PortId) -> Option<Trust> {
        let link = &self.links[port.index()];
        let is_plain = link.retry.is_none() && link.accounts.count() == 1 && !self.config.end_to_end_check;
        is_plain.then_some(self.trust)
    }

    /// Returns true if checks of this version still hold.
    #[must_use]
    #[inline]
    pub fn still_trusts(&self, trust: Trust) -> bool {
        self.trust == trust
    }

    /// Records a data frame for this member with a predicted header, as [`Forwarder::handle_frame`] would. `received`
    /// bytes came from the device, of which `length` are the frame.
    #[inline]
    pub fn note_predicted(&mut self, port: PortId, received: usize, length: usize, numbers: &Numbers) {
        self.count_received(port, received);
        // Only links of one channel use predicted headers.
        let channel = Channel(0);
        let credits = self.links[port.index()].credits_mut(channel);
        self.counters[port.index()].credit_violations +=
            credits.receive(numbers.link.consumed, numbers.link.freed);
        self.note_sequence(port, channel, numbers.link.sequence, length);
    }

    /// Records a frame with a predicted header that only acknowledges and has no link sequence of its own.
    #[inline]
    pub fn note_predicted_ack(&mut self, port: PortId, received: usize, numbers: &Numbers) {
        self.count_received(port, received);
        let credits = self.links[port.index()].credits_mut(Channel(0));
        self.counters[port.index()].credit_violations +=
            credits.receive(numbers.link.consumed, numbers.link.freed);
    }

    // ---- routed frames ---------------------------------------------------------------------------------------------

    fn take_routed<'a>(
        &mut self,
        now: Instant,
        port: PortId,
        lease: LeaseId,
        frame: Frame<'a>,
    ) -> Result<Taken<'a>, DropReason> {
        let link = &mut self.links[port.index()];
        let is_data = frame.link.kind == FrameKind::Data;
        if is_data && link.retry.is_none() {
            self.note_sequence(port, frame.link.channel, frame.link.sequence, frame.bytes().len());
        }
        let link = &mut self.links[port.index()];
        if !link.state().carries_data() {
            return Err(DropReason::LinkDown);
        }
        if link.retry.is_some() {
            self.judge_repeated(now, port, &frame)?;
        }
        if frame.destination() == self.config.node {
            return Ok(Taken::Mine(frame));
        }
        // W-5
        if frame.link.hop_limit <= 1 {
            return Err(DropReason::HopLimit);
        }
        let length = frame.bytes().len();
        if is_data && !self.has_space(port, frame.link.channel, length) {
            return Err(DropReason::BufferFull);
        }
        let link = &mut self.links[port.index()];
        let transit = Transit {
            lease,
            length,
            ingress: port,
            channel: frame.link.channel,
            generation: link.generation,
            held: if is_data { link.credits(frame.link.channel).cost(length) } else { 0 },
            destination: frame.destination(),
            entropy: frame.entropy(),
            hop_limit: frame.link.hop_limit - 1,
            has_end_to_end_check: frame.link.has_end_to_end_check,
            is_data,
            is_marked: frame.link.is_marked,
        };
        self.keep(transit)?;
        if is_data {
            self.hold(port, transit.channel, transit.held, length);
            if let Some(lines) = &mut self.in_order {
                lines.join(&transit);
            }
        }
        Ok(Taken::Kept)
    }

    fn onward(&mut self, transit: &Transit) -> Option<PortId> {
        if transit.is_data && self.config.paths.relays_choose {
            self.choose(transit.destination, transit.channel)
        } else {
            self.route(transit.destination, transit.entropy)
        }
    }

    fn leads_back(&self, transit: &Transit, port: PortId) -> bool {
        let neighbour = |port: PortId| self.links[port.index()].config.neighbour;
        neighbour(port) == neighbour(transit.ingress)
    }

    pub(super) fn keep(&mut self, mut transit: Transit) -> Result<(), DropReason> {
        let mut port = self.onward(&transit);
        // W-51
        if port.is_some_and(|port| self.leads_back(&transit, port)) {
            // Reports received in this poll iteration may give a better path.
            self.settle();
            port = self.onward(&transit).filter(|port| !self.leads_back(&transit, *port));
        }
        let port = port.ok_or(DropReason::NoRoute)?;
        let egress = &mut self.egress[port.index()];
        if transit.is_data {
            let over_dateline = self.config.ports[port.index()].is_dateline;
            let channel = self.config.channels.next(transit.channel, over_dateline);
            if let Some(marks) = &mut self.marks
                && marks.join(port, channel, transit.length)
            {
                transit.is_marked = true;
                self.counters[port.index()].marks.marked += 1;
            }
            egress.data.of_mut(channel).push_back(transit);
        } else if egress.acks.len() < TRANSIT_ACKS_MAX {
            egress.acks.push_back(transit);
        } else {
            return Err(DropReason::BufferFull);
        }
        self.ready.insert(port);
        Ok(())
    }

    /// Appends one line per port and channel where something waits.
    pub fn waiting_for(&self, lines: &mut Vec<alloc::string::String>) {
        for (index, (link, egress)) in self.links.iter().zip(&self.egress).enumerate() {
            for channel in self.channels(PortId(index as u16)) {
                let queue = egress.data.of(channel);
                if queue.is_empty() && !link.accounts.is_stalled(channel) {
                    continue;
                }
                let of_channel = match link.accounts.count() {
                    1 => alloc::string::String::new(),
                    _ => alloc::format!(" {channel}"),
                };
                lines.push(alloc::format!(
                    "port{index}{of_channel} ({}): {} frames in transit, {} credits available",
                    link.state().name(),
                    queue.len(),
                    link.credits(channel).available()
                ));
            }
        }
    }

    /// Keeps back the credits of an accepted frame.
    pub(crate) fn withhold(&mut self, port: PortId, channel: Channel, bytes: usize) -> Withheld {
        let link = &self.links[port.index()];
        let (cost, generation) = (link.credits(channel).cost(bytes), link.generation);
        self.hold(port, channel, cost, bytes);
        Withheld { port, channel, generation, cost, bytes }
    }

    /// Frees kept-back credits, unless the neighbour has reset its counters, and the space in any case.
    pub(crate) fn give_back(&mut self, withheld: &Withheld) {
        let is_known = self.links[withheld.port.index()].generation == withheld.generation;
        let cost = if is_known { withheld.cost } else { 0 };
        self.end_hold(withheld.port, withheld.channel, cost, withheld.bytes);
        self.ready.insert(withheld.port);
    }

    /// Returns the link and channel of such a frame.
    pub(crate) fn arrived_over(&self, withheld: &Withheld) -> (u16, Channel) {
        let accounts = &self.links[withheld.port.index()].accounts;
        (self.config.ports[withheld.port.index()].edge, accounts.kept_under(withheld.channel))
    }

    /// Iterates over all channels of the link at a port.
    pub(crate) fn channels(&self, port: PortId) -> impl Iterator<Item = Channel> + use<> {
        (0..self.links[port.index()].accounts.count() as u8).map(Channel)
    }
}

/// Returns 1 for an endpoint, whose links may lead to several planes. A switch gets the destinations of one plane only, which are
/// that far apart.
fn destinations_per_path(config: &MemberConfig) -> usize {
    let is_switch = config.graph.members.get(config.node.index()).is_some_and(|role| role.is_switch());
    let planes = config.graph.edges.iter().map(|edge| usize::from(edge.plane.0) + 1).max();
    planes.filter(|_| is_switch).unwrap_or(1)
}

/// Credits of an accepted frame that counts as not drained.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Withheld {
    port: PortId,
    channel: Channel,
    /// Generation of the link at arrival.
    generation: u32,
    cost: u32,
    bytes: usize,
}

enum Taken<'a> {
    /// The frame is for this member's endpoint.
    Mine(Frame<'a>),
    /// The frame is kept for forwarding, with its lease.
    Kept,
    /// The frame is finished; its lease can be released.
    Used,
}
