//! Links, routes and transit of one member: everything between a wire and "this frame is for me". Here: frames in.
//!
//! A [`super::Switch`] is this and nothing else; an [`crate::Endpoint`] has one inside.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::egress::{Egress, TRANSIT_ACKS_MAX, Transit};
use super::port_set::PortSet;
use crate::config::MemberConfig;
use crate::event::{DropReason, Event};
use crate::ids::{NodeId, PortId};
use crate::link::Link;
use crate::link::counters::PortCounters;
use crate::memory::LeaseId;
use crate::route::reports::Reports;
use crate::route::table::Table;
use crate::time::Instant;
use crate::wire::address::mac;
use crate::wire::frame::{Frame, FrameKind};

/// Links, routes and transit of one member.
#[derive(Debug)]
pub struct Forwarder {
    /// What the member was told at birth.
    pub config: MemberConfig,
    pub(super) links: Vec<Link>,
    pub(super) egress: Vec<Egress>,
    pub(super) counters: Vec<PortCounters>,
    pub(super) reports: Reports,
    pub(super) table: Table,
    pub(super) table_is_stale: bool,
    pub(super) reached: Vec<bool>,
    pub(super) own_ports: Vec<(PortId, u16, NodeId)>,
    pub(super) report_number: u32,
    pub(super) report_due: Option<Instant>,
    pub(super) disagreements: Vec<u32>,
    /// Ports that may have something to send; for an owner that does not look at every one of them.
    pub(super) ready: PortSet,
    pub(super) releases: VecDeque<LeaseId>,
    pub(super) events: VecDeque<Event>,
    /// The table has changed since the owner last looked.
    pub routes_changed: bool,
    /// Members whose reported life is new since the owner last looked.
    pub new_lives: Vec<NodeId>,
}

impl Forwarder {
    /// A member at the beginning of its life.
    #[must_use]
    pub fn new(config: MemberConfig) -> Self {
        let port_count = config.ports.len();
        let own_ports: Vec<_> = config
            .ports
            .iter()
            .enumerate()
            .map(|(port, link)| (PortId(port as u16), link.edge, link.neighbour))
            .collect();
        Self {
            links: config
                .ports
                .iter()
                .map(|port| Link::new(port.clone(), config.timers, config.node, config.frame_bytes_max))
                .collect(),
            egress: config
                .ports
                .iter()
                .map(|port| port.credits.cost(usize::from(config.frame_bytes_max)))
                .map(|bubble| Egress { bubble, ..Egress::default() })
                .collect(),
            counters: alloc::vec![PortCounters::default(); port_count],
            reports: Reports::new(&config.graph, config.node),
            table: Table::new(&config.graph),
            table_is_stale: false,
            reached: alloc::vec![false; config.graph.members.len()],
            own_ports,
            report_number: 0,
            report_due: None,
            disagreements: alloc::vec![0; port_count],
            ready: PortSet::full(port_count),
            releases: VecDeque::new(),
            events: VecDeque::new(),
            routes_changed: false,
            new_lives: Vec::new(),
            config,
        }
    }

    /// Number of ports.
    #[must_use]
    pub fn port_count(&self) -> usize {
        self.links.len()
    }

    /// Counters of a port.
    #[must_use]
    pub fn counters(&self, port: PortId) -> &PortCounters {
        &self.counters[port.index()]
    }

    /// The link at a port.
    #[must_use]
    pub fn link(&self, port: PortId) -> &Link {
        &self.links[port.index()]
    }

    /// Whether a live path leads to the member.
    #[must_use]
    pub fn reaches(&self, member: NodeId) -> bool {
        self.table.reaches(member)
    }

    /// The life that a member last reported.
    #[must_use]
    pub fn life(&self, member: NodeId) -> Option<crate::ids::Incarnation> {
        self.reports.life(member)
    }

    /// The port for a flow.
    #[must_use]
    pub fn route(&self, destination: NodeId, entropy: u16) -> Option<PortId> {
        self.table.pick(destination, entropy, |port| {
            self.links[port.index()].state() == crate::link::state::LinkState::Suspect
        })
    }

    /// Tell the owner's caller something.
    pub fn push_event(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Nothing refers to this frame any more.
    pub fn release(&mut self, lease: LeaseId) {
        self.releases.push_back(lease);
    }

    /// The next lease to give back.
    pub fn poll_release(&mut self) -> Option<LeaseId> {
        self.releases.pop_front()
    }

    /// Count and announce a received frame that is not used.
    pub fn drop_frame(&mut self, port: PortId, reason: DropReason) {
        self.counters[port.index()].dropped[reason as usize] += 1;
        // Duplicates and holes are the daily bread of a lossy link: counted, not announced one by one.
        let is_common = matches!(
            reason,
            DropReason::Duplicate
                | DropReason::OutOfOrder
                | DropReason::LinkDuplicate
                | DropReason::LinkOutOfSequence
        );
        if !is_common {
            self.events.push_back(Event::FrameDropped { port, reason });
        }
    }

    // ---- frames in -------------------------------------------------------------------------------------------------

    /// A frame came in. `Some`: it is routed and for this member; the caller now owns the lease.
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
        let counters = &mut self.counters[port.index()];
        counters.frames_received += 1;
        counters.bytes_received += bytes.len() as u64;
        let link = &self.links[port.index()].config;
        let (address, neighbour) = (mac(self.config.node, link.plane), mac(link.neighbour, link.plane));
        let frame = Frame::parse(bytes, self.config.ether_type, address, neighbour, self.config.epoch)?;
        if self.config.end_to_end_check && !frame.link.has_hop_check {
            return Err(DropReason::CheckMissing);
        }
        if frame.link.kind == FrameKind::Hello {
            self.take_hello(now, port, &frame)?;
            return Ok(Taken::Used);
        }
        let link = &mut self.links[port.index()];
        // W-6
        if !link.knows(frame.link.session) {
            return Err(DropReason::StaleLink);
        }
        if link.retry.is_some() {
            // What is consumed counts once it is taken: what is missing will come again.
            link.credits.hear_freed(frame.link.freed);
        } else {
            link.credits.hear(frame.link.consumed, frame.link.freed);
        }
        match frame.link.kind {
            FrameKind::Hello => {}
            FrameKind::Heartbeat => self.take_heartbeat(now, port, &frame)?,
            FrameKind::Report => self.take_report(now, port, &frame)?,
            FrameKind::Credit => {
                link.credit_wanted |= frame.body().first().is_some_and(|asks| *asks != 0);
            }
            FrameKind::LinkAck | FrameKind::LinkNack | FrameKind::LinkInit | FrameKind::LinkInitEcho => {
                self.take_retry(now, port, &frame)?;
            }
            FrameKind::Data | FrameKind::Ack => return self.take_routed(now, port, lease, frame),
        }
        Ok(Taken::Used)
    }

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
            self.counters[port.index()].missing += u64::from(link.note_sequence(frame.link.sequence));
        }
        if !link.state().carries_data() {
            return Err(DropReason::LinkDown);
        }
        if link.retry.is_some() {
            self.judge_repeated(now, port, &frame)?;
        }
        let link = &mut self.links[port.index()];
        if frame.destination() == self.config.node {
            return Ok(Taken::Mine(frame));
        }
        // W-5
        if frame.link.hop_limit <= 1 {
            return Err(DropReason::HopLimit);
        }
        let length = frame.bytes().len();
        let transit = Transit {
            lease,
            length,
            ingress: port,
            generation: link.generation,
            held: if is_data { link.credits.cost(length) } else { 0 },
            destination: frame.destination(),
            entropy: frame.entropy(),
            hop_limit: frame.link.hop_limit - 1,
            has_end_to_end_check: frame.link.has_end_to_end_check,
            is_data,
        };
        self.keep(transit)?;
        self.links[port.index()].credits.hold(transit.held);
        Ok(Taken::Kept)
    }

    pub(super) fn keep(&mut self, transit: Transit) -> Result<(), DropReason> {
        let port = self.route(transit.destination, transit.entropy).ok_or(DropReason::NoRoute)?;
        let egress = &mut self.egress[port.index()];
        if transit.is_data {
            egress.data.push_back(transit);
        } else if egress.acks.len() < TRANSIT_ACKS_MAX {
            egress.acks.push_back(transit);
        } else {
            return Err(DropReason::BufferFull);
        }
        self.ready.insert(port);
        Ok(())
    }

    /// One line per port where something waits.
    pub fn waiting_for(&self, lines: &mut Vec<alloc::string::String>) {
        for (index, (link, egress)) in self.links.iter().zip(&self.egress).enumerate() {
            if !egress.data.is_empty() || link.is_stalled() {
                lines.push(alloc::format!(
                    "port{index} ({}): {} frames in transit, {} credits available",
                    link.state().name(),
                    egress.data.len(),
                    link.credits.available()
                ));
            }
        }
    }
}

enum Taken<'a> {
    /// For this member's endpoint.
    Mine(Frame<'a>),
    /// Kept for passing on; the lease stays.
    Kept,
    /// Nothing refers to it any more.
    Used,
}
