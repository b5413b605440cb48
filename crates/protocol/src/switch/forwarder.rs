//! Links, routes and transit of one member: everything between a wire and "this frame is for me".
//!
//! A [`super::Switch`] is this and nothing else; an [`crate::Endpoint`] has one inside.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::egress::{Egress, TRANSIT_ACKS_MAX, Transit};
use crate::config::MemberConfig;
use crate::event::{DropReason, Event};
use crate::ids::{NodeId, PortId};
use crate::link::counters::PortCounters;
use crate::link::{Greeting, Link, Move};
use crate::memory::LeaseId;
use crate::route::reports::{News, Reports};
use crate::route::table::Table;
use crate::surroundings::{Body, Transmit};
use crate::time::Instant;
use crate::wire::address::mac;
use crate::wire::control::{HEARTBEAT_BYTES, HELLO_BYTES, Heartbeat, Hello, LinkReport};
use crate::wire::frame::{Frame, FrameKind, LinkHeader};
use crate::wire::layout::{FABRIC, HOP_LIMIT_START};

/// Links, routes and transit of one member.
#[derive(Debug)]
pub struct Forwarder {
    /// What the member was told at birth.
    pub config: MemberConfig,
    links: Vec<Link>,
    egress: Vec<Egress>,
    counters: Vec<PortCounters>,
    reports: Reports,
    table: Table,
    reached: Vec<bool>,
    own_ports: Vec<(PortId, u16, NodeId)>,
    report_number: u32,
    report_due: Option<Instant>,
    disagreements: Vec<u32>,
    releases: VecDeque<LeaseId>,
    events: VecDeque<Event>,
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
            links: config.ports.iter().map(|port| Link::new(port.clone(), config.timers)).collect(),
            egress: (0..port_count).map(|_| Egress::default()).collect(),
            counters: alloc::vec![PortCounters::default(); port_count],
            reports: Reports::new(&config.graph, port_count),
            table: Table::new(&config.graph),
            reached: alloc::vec![false; config.graph.members.len()],
            own_ports,
            report_number: 0,
            report_due: None,
            disagreements: alloc::vec![0; port_count],
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
        if !matches!(reason, DropReason::Duplicate | DropReason::OutOfOrder) {
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
        if frame.link.kind == FrameKind::Hello {
            self.take_hello(now, port, &frame)?;
            return Ok(Taken::Used);
        }
        let link = &mut self.links[port.index()];
        // W-6
        if !link.knows(frame.link.session) {
            return Err(DropReason::StaleLink);
        }
        link.credits.hear(frame.link.consumed, frame.link.freed);
        match frame.link.kind {
            FrameKind::Hello => {}
            FrameKind::Heartbeat => self.take_heartbeat(now, port, &frame)?,
            FrameKind::Report => self.take_report(now, port, &frame)?,
            FrameKind::Credit => {
                link.credit_wanted |= frame.body().first().is_some_and(|asks| *asks != 0);
            }
            FrameKind::Data | FrameKind::Ack => return self.take_routed(port, lease, frame),
        }
        Ok(Taken::Used)
    }

    fn take_routed<'a>(
        &mut self,
        port: PortId,
        lease: LeaseId,
        frame: Frame<'a>,
    ) -> Result<Taken<'a>, DropReason> {
        let link = &mut self.links[port.index()];
        let is_data = frame.link.kind == FrameKind::Data;
        if is_data {
            self.counters[port.index()].missing += u64::from(link.note_sequence(frame.link.sequence));
        }
        if !link.state().carries_data() {
            return Err(DropReason::LinkDown);
        }
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

    fn keep(&mut self, transit: Transit) -> Result<(), DropReason> {
        let port = self.route(transit.destination, transit.entropy).ok_or(DropReason::NoRoute)?;
        let egress = &mut self.egress[port.index()];
        if transit.is_data {
            egress.data.push_back(transit);
        } else if egress.acks.len() < TRANSIT_ACKS_MAX {
            egress.acks.push_back(transit);
        } else {
            return Err(DropReason::BufferFull);
        }
        Ok(())
    }

    fn take_hello(&mut self, now: Instant, port: PortId, frame: &Frame<'_>) -> Result<(), DropReason> {
        let hello = Hello::read(frame.body()).ok_or(DropReason::Malformed)?;
        let mine = self.own_hello();
        match self.links[port.index()].hear_hello(now, &hello, &mine) {
            Greeting::Stranger => Err(DropReason::Stranger),
            Greeting::Stale => Err(DropReason::StaleLink),
            Greeting::Accepted(moved) => {
                if let Some(moved) = moved {
                    self.note_move(now, port, moved);
                }
                Ok(())
            }
        }
    }

    fn take_heartbeat(&mut self, now: Instant, port: PortId, frame: &Frame<'_>) -> Result<(), DropReason> {
        let heartbeat = Heartbeat::read(frame.body()).ok_or(DropReason::Malformed)?;
        let link = &mut self.links[port.index()];
        let moved = link.hear_heartbeat(now, &heartbeat);
        let carries_data = link.state().carries_data();
        // Once may be a report still under way; twice in a row is a lost one.
        let disagreements = &mut self.disagreements[port.index()];
        *disagreements = if heartbeat.digest == self.reports.digest() { 0 } else { *disagreements + 1 };
        if *disagreements >= 2 && carries_data {
            *disagreements = 0;
            self.reports.queue_all(port);
        }
        if let Some(moved) = moved {
            self.note_move(now, port, moved);
        }
        Ok(())
    }

    fn take_report(&mut self, now: Instant, port: PortId, frame: &Frame<'_>) -> Result<(), DropReason> {
        let report = LinkReport::read(frame.body()).ok_or(DropReason::Malformed)?;
        if report.origin == self.config.node {
            // Our own words, back from afar: if they are of a life that we have outlived or a number that we have not
            // reached, the rack has not heard our newest report yet.
            if (report.incarnation, report.number) > (self.config.incarnation, self.report_number) {
                self.report_number = report.number;
                self.report_due = Some(now);
            }
            return Ok(());
        }
        let origin = report.origin;
        let live = live_ports(&self.links);
        match self.reports.hear(report, Some(port), live.into_iter()) {
            News::Malformed => return Err(DropReason::Malformed),
            News::Old => {}
            News::NewLife => {
                self.new_lives.push(origin);
                self.recompute();
            }
            News::Changed => self.recompute(),
        }
        Ok(())
    }

    // ---- links and routes ------------------------------------------------------------------------------------------

    fn own_hello(&self) -> Hello {
        Hello {
            node: self.config.node,
            port: PortId(0),
            plane: crate::ids::Plane(0),
            answer_wanted: false,
            frame_bytes_max: self.config.frame_bytes_max,
            incarnation: self.config.incarnation,
            heard: crate::ids::Incarnation(0),
            options: u32::from(self.config.end_to_end_check),
        }
    }

    fn note_move(&mut self, now: Instant, port: PortId, moved: Move) {
        self.events.push_back(Event::LinkChanged {
            port,
            from: moved.from,
            to: moved.to,
            cause: moved.cause,
        });
        if moved.from.carries_data() == moved.to.carries_data() {
            return;
        }
        if moved.to.carries_data() {
            self.reports.queue_all(port);
            // Links come up one after the other at the start: one report for all of them.
            let patience = if self.links.iter().all(|link| link.state().carries_data()) {
                0
            } else {
                self.config.timers.hello_interval_ns
            };
            self.report_due = Some(self.report_due.map_or(now + patience, |due| due.min(now + patience)));
        } else {
            self.reports.clear(port);
            self.report_due = Some(now);
        }
        self.report_if_due(now);
        self.recompute();
    }

    fn report_if_due(&mut self, now: Instant) {
        if self.report_due.is_none_or(|due| now < due) {
            return;
        }
        self.report_due = None;
        self.report_number += 1;
        let edges = self
            .own_ports
            .iter()
            .map(|(port, edge, _)| (*edge, self.links[port.index()].state().carries_data()))
            .collect();
        let report = LinkReport {
            origin: self.config.node,
            incarnation: self.config.incarnation,
            number: self.report_number,
            edges,
        };
        let live = live_ports(&self.links);
        self.reports.hear(report, None, live.into_iter());
    }

    fn recompute(&mut self) {
        let Self { table, reports, links, config, own_ports, .. } = self;
        let graph = &config.graph;
        let own = config.node;
        table.compute(own, own_ports, |edge| {
            let ends = &graph.edges[usize::from(edge)];
            let up = |member: NodeId| {
                if member == own {
                    own_ports
                        .iter()
                        .any(|(port, known, _)| *known == edge && links[port.index()].state().carries_data())
                } else {
                    reports.says_up(member, edge)
                }
            };
            up(ends.a) && up(ends.b)
        });
        self.routes_changed = true;
        self.note_reach();
        self.redirect_transit();
    }

    fn note_reach(&mut self) {
        for index in 0..self.reached.len() {
            let node = NodeId(index as u16);
            if node == self.config.node {
                continue;
            }
            let reaches = self.table.reaches(node);
            if reaches != self.reached[index] {
                self.reached[index] = reaches;
                let event = if reaches { Event::NodeReached { node } } else { Event::NodeLost { node } };
                self.events.push_back(event);
            }
        }
    }

    /// Frames in transit that waited for a dead port look for another.
    fn redirect_transit(&mut self) {
        for port in 0..self.egress.len() {
            if self.links[port].state().carries_data() {
                continue;
            }
            let waiting = core::mem::take(&mut self.egress[port]);
            for transit in waiting.acks.into_iter().chain(waiting.data) {
                if let Err(reason) = self.keep(transit) {
                    self.drop_frame(transit.ingress, reason);
                    self.let_go(&transit);
                }
            }
        }
    }

    fn let_go(&mut self, transit: &Transit) {
        let link = &mut self.links[transit.ingress.index()];
        if link.generation == transit.generation {
            link.credits.unhold(transit.held);
        }
        self.release(transit.lease);
    }

    // ---- time ------------------------------------------------------------------------------------------------------

    /// The carrier at a port changed.
    pub fn handle_carrier(&mut self, now: Instant, port: PortId, up: bool) {
        if let Some(moved) = self.links[port.index()].hear_carrier(now, up) {
            self.note_move(now, port, moved);
        }
    }

    /// The user switches a link off or on.
    pub fn administer(&mut self, now: Instant, port: PortId, enabled: bool) {
        if let Some(moved) = self.links[port.index()].administer(now, enabled) {
            self.note_move(now, port, moved);
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        for index in 0..self.links.len() {
            if let Some(moved) = self.links[index].hear_time(now) {
                self.note_move(now, PortId(index as u16), moved);
            }
        }
        self.report_if_due(now);
    }

    /// When `handle_timeout` or a control frame is next due.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        let links = self.links.iter().map(Link::deadline).min().unwrap_or(Instant::NEVER);
        links.min(self.report_due.unwrap_or(Instant::NEVER))
    }

    // ---- frames out ------------------------------------------------------------------------------------------------

    /// Whether a control frame or a frame in transit can leave through `port`.
    #[must_use]
    pub fn wants_transmit(&self, now: Instant, port: PortId) -> bool {
        let link = &self.links[port.index()];
        let egress = &self.egress[port.index()];
        link.hello_due(now)
            || link.heartbeat_due(now)
            || link.credit_due(now)
            || (link.state().carries_data()
                && (self.reports.is_waiting(port)
                    || !egress.acks.is_empty()
                    || egress.data.front().is_some_and(|next| {
                        link.admits(link.credits.cost(next.length)) || !link.is_stalled()
                    })))
    }

    /// Whether this member's own data of `bytes` may leave: nothing in transit waits, and a bubble stays.
    #[must_use]
    pub fn admits_own(&self, port: PortId, bytes: usize) -> bool {
        let link = &self.links[port.index()];
        let bubble = link.credits.cost(usize::from(self.config.frame_bytes_max));
        self.egress[port.index()].data.is_empty() && link.admits(link.credits.cost(bytes) + bubble)
    }

    /// Whether frames without credits may leave.
    #[must_use]
    pub fn carries(&self, port: PortId) -> bool {
        self.links[port.index()].state().carries_data()
    }

    /// Data waits at this port for lack of credits.
    pub fn note_stall(&mut self, now: Instant, port: PortId) {
        if self.carries(port) && self.links[port.index()].note_stall(now) {
            self.counters[port.index()].credit_stalls += 1;
        }
    }

    /// The next control frame or acknowledgement in transit.
    pub fn transmit_control(&mut self, now: Instant, port: PortId, out: &mut [u8]) -> Option<Transmit> {
        let link = &mut self.links[port.index()];
        if link.hello_due(now) {
            let template = self.own_hello();
            let link = &mut self.links[port.index()];
            let mut hello = link.hello(template, port);
            (hello.heard, hello.answer_wanted) = link.send_hello(now);
            hello.write(&mut out[FABRIC..FABRIC + HELLO_BYTES]);
            return Some(self.finish_control(port, out, FrameKind::Hello, HELLO_BYTES, true));
        }
        if link.heartbeat_due(now) {
            let heartbeat = link.send_heartbeat(now, self.reports.digest());
            heartbeat.write(&mut out[FABRIC..FABRIC + HEARTBEAT_BYTES]);
            return Some(self.finish_control(port, out, FrameKind::Heartbeat, HEARTBEAT_BYTES, false));
        }
        if link.credit_due(now) {
            out[FABRIC] = u8::from(link.send_credit(now));
            return Some(self.finish_control(port, out, FrameKind::Credit, 1, true));
        }
        if !link.state().carries_data() {
            return None;
        }
        if let Some(report) = self.reports.next(port) {
            let length = report.write(&mut out[FABRIC..]);
            return Some(self.finish_control(port, out, FrameKind::Report, length, true));
        }
        let transit = self.egress[port.index()].acks.pop_front()?;
        Some(self.pass_on(port, &transit, out))
    }

    fn finish_control(
        &mut self,
        port: PortId,
        out: &mut [u8],
        kind: FrameKind,
        body: usize,
        doorbell: bool,
    ) -> Transmit {
        let length = FABRIC + body;
        self.write_link(port, out, kind, body, 1, false, (0, 0));
        self.count_sent(port, length, false);
        Transmit { length, body: Body::Written, end_to_end_check: false, doorbell }
    }

    /// The next data frame in transit.
    pub fn transmit_transit(&mut self, now: Instant, port: PortId, out: &mut [u8]) -> Option<Transmit> {
        let next = self.egress[port.index()].data.front()?;
        let link = &self.links[port.index()];
        if !link.admits(link.credits.cost(next.length)) {
            self.note_stall(now, port);
            return None;
        }
        let transit = self.egress[port.index()].data.pop_front()?;
        Some(self.pass_on(port, &transit, out))
    }

    fn pass_on(&mut self, port: PortId, transit: &Transit, out: &mut [u8]) -> Transmit {
        let kind = if transit.is_data { FrameKind::Data } else { FrameKind::Ack };
        let numbers = self.number(port, transit.is_data, transit.length);
        let body = transit.length - FABRIC;
        self.write_link(port, out, kind, body, transit.hop_limit, transit.has_end_to_end_check, numbers);
        self.count_sent(port, transit.length, transit.is_data);
        self.counters[port.index()].forwarded += 1;
        self.let_go(transit);
        Transmit {
            length: transit.length,
            body: Body::Lease { lease: transit.lease, at: FABRIC, length: body },
            end_to_end_check: false,
            doorbell: true,
        }
    }

    /// Finish a routed frame of this member's own, whose fabric header and operations are in place up to `written`;
    /// `length` counts bytes that are still to be gathered as well.
    pub fn finish_own(&mut self, port: PortId, out: &mut [u8], is_data: bool, length: usize) {
        let kind = if is_data { FrameKind::Data } else { FrameKind::Ack };
        let numbers = self.number(port, is_data, length);
        let check = self.config.end_to_end_check;
        self.write_link(port, out, kind, length - FABRIC, HOP_LIMIT_START, check, numbers);
        self.count_sent(port, length, is_data);
    }

    /// A packet is sent again through `port`.
    pub fn count_retransmission(&mut self, port: PortId) {
        self.counters[port.index()].retransmitted += 1;
    }

    fn number(&mut self, port: PortId, is_data: bool, length: usize) -> (u32, u32) {
        if !is_data {
            return (0, 0);
        }
        let link = &mut self.links[port.index()];
        let cost = link.credits.cost(length);
        link.number_data(cost)
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of one header, each from another place")]
    fn write_link(
        &mut self,
        port: PortId,
        out: &mut [u8],
        kind: FrameKind,
        body: usize,
        hop_limit: u8,
        has_end_to_end_check: bool,
        (sequence, consumed): (u32, u32),
    ) {
        let link = &mut self.links[port.index()];
        let mut header = LinkHeader {
            kind,
            epoch: self.config.epoch,
            length: body as u16,
            hop_limit,
            session: self.config.incarnation.tag() as u16,
            sequence,
            link_ack: 0,
            consumed,
            freed: 0,
            has_end_to_end_check,
        };
        link.complete(&mut header);
        let plane = link.config.plane;
        let target = mac(link.config.neighbour, plane);
        header.write(out, self.config.ether_type, mac(self.config.node, plane), target);
    }

    fn count_sent(&mut self, port: PortId, length: usize, is_data: bool) {
        let counters = &mut self.counters[port.index()];
        counters.frames_sent += 1;
        counters.bytes_sent += length as u64;
        if is_data {
            counters.data_frames_sent += 1;
            counters.data_bytes_sent += length as u64;
        }
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

fn live_ports(links: &[Link]) -> Vec<PortId> {
    links
        .iter()
        .enumerate()
        .filter(|(_, link)| link.state().carries_data())
        .map(|(port, _)| PortId(port as u16))
        .collect()
}
