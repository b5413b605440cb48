//! Effects of a link state change: reports, a new table, and new paths for frames in transit.

use alloc::vec::Vec;

use super::egress::Transit;
use super::forwarder::{Forwarder, Presence, ReachCheck};
use crate::event::{DropReason, Event};
use crate::ids::{Incarnation, NodeId, Plane, PortId};
use crate::link::credits::is_ahead;
use crate::link::state::LinkState;
use crate::link::{HelloOutcome, Link, Move};
use crate::route::reports::ReportEffect;
use crate::route::table::{Found, OwnPort};
use crate::time::Instant;
use crate::wire::control::{Heartbeat, Hello, IncarnationMark, LinkReport};
use crate::wire::frame::Frame;

/// Largest difference between the clocks of two hosts: a day, in nanoseconds.
const CLOCK_SKEW_MAX_NS: u64 = 86_400 * 1_000_000_000;

impl Forwarder {
    pub(super) fn take_hello(
        &mut self,
        now: Instant,
        port: PortId,
        frame: &Frame<'_>,
    ) -> Result<(), DropReason> {
        let hello = Hello::read(frame.body()).ok_or(DropReason::Malformed)?;
        let mine = self.own_hello();
        if hello.node == self.links[port.index()].config.neighbour
            && self.is_implausible(now, hello.incarnation)
        {
            return Err(DropReason::ImplausibleIncarnation);
        }
        self.trust.reset();
        match self.links[port.index()].receive_hello(now, &hello, &mine) {
            HelloOutcome::Unexpected => Err(DropReason::UnknownSender),
            HelloOutcome::Stale => Err(DropReason::StaleLink),
            HelloOutcome::Accepted(moved) => {
                if let Some(moved) = moved {
                    self.note_move(now, port, moved);
                }
                Ok(())
            }
        }
    }

    // W-87
    /// Returns true if no correct clock can have given this incarnation yet. Incarnations are clock times in
    /// nanoseconds; this member's own gives the present time.
    fn is_implausible(&mut self, now: Instant, incarnation: Incarnation) -> bool {
        let began = *self.began.get_or_insert(now);
        let elapsed_ns = now.0.saturating_sub(began.0);
        let latest = self.config.incarnation.0.saturating_add(elapsed_ns).saturating_add(CLOCK_SKEW_MAX_NS);
        incarnation.0 > latest
    }

    // W-88
    /// Returns true if a report names an incarnation of a neighbour that no link of this member has accepted, while a
    /// link to that neighbour is up with an earlier one. The link is more reliable: a restarted neighbour sends
    /// Hellos here too.
    fn contradicts_link(&self, report: &LinkReport) -> bool {
        let mut is_up = false;
        for link in self.links.iter().filter(|link| link.config.neighbour == report.origin) {
            let Some(met) = link.neighbour_incarnation() else { continue };
            if met >= report.incarnation {
                return false;
            }
            is_up |= link.state() == LinkState::Up;
        }
        is_up
    }

    pub(super) fn take_heartbeat(
        &mut self,
        now: Instant,
        port: PortId,
        frame: &Frame<'_>,
    ) -> Result<(), DropReason> {
        let heartbeat = Heartbeat::read(frame.body()).ok_or(DropReason::Malformed)?;
        let link = &mut self.links[port.index()];
        let was_whole = link.is_whole();
        let moved = link.receive_heartbeat(now, &heartbeat);
        let (carries_data, is_whole) = (link.state().carries_data(), link.is_whole());
        // One difference may be a report in flight; two in a row are a lost report.
        let disagreements = &mut self.disagreements[port.index()];
        *disagreements = if heartbeat.digest == self.reports.digest() { 0 } else { *disagreements + 1 };
        if *disagreements >= 2 && carries_data {
            *disagreements = 0;
            self.reports.queue_all(port);
        }
        let begins_or_ends =
            moved.as_ref().is_some_and(|moved| moved.from.carries_data() != moved.to.carries_data());
        if let Some(moved) = moved {
            self.note_move(now, port, moved);
        }
        if is_whole && !was_whole && !begins_or_ends {
            // W-64: the heartbeat that ends a suspicion may also be the first to report that the neighbour carries
            // data.
            self.report_due = Some(now);
            self.report_if_due(now);
            self.table_is_stale = true;
        }
        Ok(())
    }

    /// Handles the reports of a frame. An error of one does not concern the others.
    pub(super) fn take_reports(
        &mut self,
        now: Instant,
        port: PortId,
        frame: &Frame<'_>,
    ) -> Result<(), DropReason> {
        let reports = LinkReport::read_all(frame.body()).ok_or(DropReason::Malformed)?;
        let mut result = Ok(());
        for report in reports {
            result = self.take_report(now, port, report).and(result);
        }
        result
    }

    fn take_report(&mut self, now: Instant, port: PortId, report: LinkReport) -> Result<(), DropReason> {
        if report.origin == self.config.node {
            // W-86
            // A number beyond this member's own is forged: a newer report corrects the rack.
            let is_of_this_incarnation = report.incarnation == self.config.incarnation;
            if is_of_this_incarnation && is_ahead(report.number, self.report_number) {
                self.report_number = report.number;
                self.report_due = Some(now);
                self.report_if_due(now);
            }
            return Ok(());
        }
        if self.is_implausible(now, report.incarnation) || self.contradicts_link(&report) {
            return Err(DropReason::ImplausibleIncarnation);
        }
        let (origin, is_departure) = (report.origin, report.is_departure);
        let live = live_ports(&self.links);
        self.ready.fill();
        match self.reports.receive(report, Some(port), live.into_iter()) {
            ReportEffect::Malformed => return Err(DropReason::Malformed),
            ReportEffect::Old => return Ok(()),
            ReportEffect::NewIncarnation => {
                self.trust.reset();
                self.new_incarnations.push(origin);
            }
            ReportEffect::Changed => {}
        }
        self.table_is_stale = true;
        self.reported.push(origin);
        if is_departure {
            self.handle_departure(now, origin);
        }
        Ok(())
    }

    // W-50
    /// Handles the departure of a member: links to it go down, and its loss is not a death.
    fn handle_departure(&mut self, now: Instant, leaver: NodeId) {
        self.table.stop_awaiting(leaver);
        if self.reached[leaver.index()] {
            self.events.push_back(Event::NodeLeft { node: leaver });
        }
        for index in 0..self.own_ports.len() {
            let OwnPort { port, neighbour, .. } = self.own_ports[index];
            if neighbour == leaver
                && let Some(moved) = self.links[port.index()].receive_departure(now)
            {
                self.note_move(now, port, moved);
            }
        }
    }

    // W-50
    /// Announces to all members that this one leaves; may be repeated. From now on its reports contain nothing else.
    pub fn begin_departure(&mut self, now: Instant) {
        self.presence = Presence::Leaving;
        self.report_due = Some(now);
        self.report_if_due(now);
    }

    pub(super) fn own_hello(&self) -> Hello {
        Hello {
            node: self.config.node,
            port: PortId(0),
            plane: Plane(0),
            requests_answer: false,
            frame_bytes_max: self.config.frame_bytes_max,
            incarnation: self.config.incarnation,
            received_incarnation: Incarnation(0),
            options: u32::from(self.config.end_to_end_check),
        }
    }

    pub(super) fn note_move(&mut self, now: Instant, port: PortId, moved: Move) {
        self.trust.reset();
        self.events.push_back(Event::LinkChanged {
            port,
            from: moved.from,
            to: moved.to,
            cause: moved.cause,
        });
        if moved.from.carries_data() == moved.to.carries_data() {
            return;
        }
        self.counters[port.index()].retry.tx_flushed += self.links[port.index()].take_given_up();
        if moved.to.carries_data() {
            self.reports.report_all_to(port);
            // Links come up one after the other at the start: one report covers all of them.
            let delay_ns = if self.links.iter().all(|link| link.state().carries_data()) {
                0
            } else {
                self.config.timers.hello_interval_ns
            };
            self.report_due = Some(self.report_due.map_or(now + delay_ns, |due| due.min(now + delay_ns)));
        } else {
            self.reports.clear(port);
            self.report_due = Some(now);
            self.end_pauses(now, port);
        }
        self.report_if_due(now);
        self.table_is_stale = true;
    }

    pub(super) fn report_if_due(&mut self, now: Instant) {
        if self.report_due.is_none_or(|due| now < due) {
            return;
        }
        self.report_due = None;
        self.report_number = self.report_number.wrapping_add(1);
        let edges = self
            .own_ports
            .iter()
            .map(|OwnPort { port, edge, .. }| {
                let link = &self.links[port.index()];
                let is_whole = self.presence == Presence::Present && link.is_whole();
                (*edge, link.neighbour_incarnation().filter(|_| is_whole).map(IncarnationMark::of))
            })
            .collect();
        let report = LinkReport {
            origin: self.config.node,
            incarnation: self.config.incarnation,
            number: self.report_number,
            edges,
            is_departure: self.presence == Presence::Leaving,
        };
        let live = live_ports(&self.links);
        self.reports.receive(report, None, live.into_iter());
        self.ready.fill();
    }

    /// Updates the table with all reports received since the last call.
    pub fn settle(&mut self) {
        if !core::mem::take(&mut self.table_is_stale) {
            return;
        }
        let Self { table, reports, links, config, own_ports, reported, .. } = self;
        let (own, edges) = (config.node, &config.graph.edges);
        table.compute(own, own_ports, reported, |edge| {
            let ends = &edges[usize::from(edge)];
            let own_port = if ends.a == own {
                ends.a_port
            } else if ends.b == own {
                ends.b_port
            } else {
                return reports.both_report_up(edge);
            };
            let link = &links[own_port.index()];
            link.is_whole() && reports.neighbour_reports_up(edge, link.neighbour_incarnation())
        });
        self.reported.clear();
        self.routes_changed = true;
        let found = self.table.take_found();
        let must_check_all =
            core::mem::take(&mut self.reach_check) == ReachCheck::All || self.start.is_awaiting();
        match found {
            // A rack that comes up loses no member, and receives a thousand reports about each.
            Found::Only(members) if !must_check_all => {
                members.into_iter().for_each(|node| self.note_reach_of(node, None));
            }
            _ => {
                let may_come_up = self.may_still_reach();
                let members = 0..self.reached.len() as u16;
                members.for_each(|node| self.note_reach_of(NodeId(node), may_come_up.as_deref()));
            }
        }
        self.redirect_transit();
    }

    /// Announces a change of a member's reachability. Members whose path may still come up (`may_come_up`) are not
    /// announced as lost.
    fn note_reach_of(&mut self, node: NodeId, may_come_up: Option<&[bool]>) {
        let (index, reaches) = (node.index(), self.table.reaches(node));
        let is_undecided = !reaches && may_come_up.is_some_and(|may_come_up| may_come_up[index]);
        if node == self.config.node || reaches == self.reached[index] || is_undecided {
            return;
        }
        self.reached[index] = reaches;
        self.has_reach_events = true;
        let event = if reaches { Event::NodeReached { node } } else { Event::NodeLost { node } };
        self.events.push_back(event);
    }

    /// Routes frames in transit again that waited for a dead port.
    pub(super) fn redirect_transit(&mut self) {
        for port in 0..self.egress.len() {
            if self.links[port].state().carries_data() {
                continue;
            }
            self.end_leaving(PortId(port as u16));
            if let Some(marks) = &mut self.marks {
                marks.leave_all(PortId(port as u16));
            }
            for transit in self.egress[port].take_all() {
                if let Err(reason) = self.keep(transit) {
                    self.drop_frame(transit.ingress, reason);
                    self.let_go(&transit);
                }
            }
        }
    }

    pub(super) fn let_go(&mut self, transit: &Transit) {
        let is_known = self.links[transit.ingress.index()].generation == transit.generation;
        if transit.is_data {
            let held = if is_known { transit.held } else { 0 };
            self.end_hold(transit.ingress, transit.channel, held, transit.length);
        }
        self.ready.insert(transit.ingress);
        self.move_up(transit);
        self.release(transit.lease);
    }

    /// Sets the part of the silence of the neighbour at a port that does not count, in nanoseconds.
    pub fn extend_timeout(&mut self, now: Instant, port: PortId, extension_ns: u64) {
        self.links[port.index()].extend_timeout(now, extension_ns);
    }

    /// Handles a carrier change at a port.
    pub fn handle_carrier(&mut self, now: Instant, port: PortId, up: bool) {
        if let Some(moved) = self.links[port.index()].handle_carrier(now, up) {
            self.note_move(now, port, moved);
        }
    }

    /// Handles a new cable at a port.
    pub fn handle_new_cable(&mut self, now: Instant, port: PortId) {
        for moved in self.links[port.index()].handle_new_cable(now).into_iter().flatten() {
            self.note_move(now, port, moved);
        }
    }

    /// Disables or enables a link by user command.
    pub fn administer(&mut self, now: Instant, port: PortId, enabled: bool) {
        if let Some(moved) = self.links[port.index()].administer(now, enabled) {
            self.note_move(now, port, moved);
        }
    }

    /// Handles the passage of time.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.end_start(now);
        for index in 0..self.links.len() {
            if let Some(moved) = self.links[index].handle_time(now) {
                self.note_move(now, PortId(index as u16), moved);
            }
            if self.links[index].retry.is_some() {
                self.handle_retry_timeout(now, PortId(index as u16));
            }
            if self.links[index].pause.is_some() {
                self.handle_pause_timeout(now, PortId(index as u16));
            }
        }
        self.report_if_due(now);
    }

    /// Returns the time at which `handle_timeout` or a control frame is next due.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        let links = self.links.iter().map(Link::deadline).min().unwrap_or(Instant::NEVER);
        links.min(self.report_due()).min(self.start.deadline())
    }

    /// Returns the time at which this member reports its own links next.
    pub(crate) fn report_due(&self) -> Instant {
        self.report_due.unwrap_or(Instant::NEVER)
    }
}

fn live_ports(links: &[Link]) -> Vec<PortId> {
    links
        .iter()
        .enumerate()
        .filter(|(_, link)| link.state().carries_data())
        .map(|(port, _)| PortId(port as u16))
        .collect()
}
