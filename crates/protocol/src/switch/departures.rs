//! Frames that leave through a port: control frames first, then acknowledgements and data in transit. The member's own
//! data comes last and is finished here too, because its link header is.

use super::egress::Transit;
use super::forwarder::Forwarder;
use crate::ids::PortId;
use crate::surroundings::{Body, Passage, Transmit};
use crate::time::Instant;
use crate::wire::address::mac;
use crate::wire::control::{HEARTBEAT_BYTES, HELLO_BYTES};
use crate::wire::frame::{FrameKind, LinkHeader};
use crate::wire::layout::{FABRIC, HOP_LIMIT_START};

/// What the header of a frame says of its place among those of the link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) sequence: u32,
    pub(super) consumed: u32,
    /// Whether these are the frame's own, or to be filled in with the last ones.
    pub(super) is_numbered: bool,
    pub(super) passage: Passage,
}

impl Numbers {
    const NONE: Self = Self { sequence: 0, consumed: 0, is_numbered: false, passage: Passage::Plain };
}

impl Forwarder {
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
                    || link.retry.as_ref().is_some_and(|retry| retry.wants_transmit(now))
                    || (!egress.acks.is_empty() && link.carries())
                    || egress.data.front().is_some_and(|next| {
                        let cost = link.credits.cost(next.length);
                        link.admits(cost, next.length) || (!link.is_stalled() && link.carries())
                    })))
    }

    /// Whether this member's own data of `bytes` may leave: nothing in transit waits, and a bubble stays.
    #[must_use]
    pub fn admits_own(&self, port: PortId, bytes: usize) -> bool {
        let (link, egress) = (&self.links[port.index()], &self.egress[port.index()]);
        egress.data.is_empty() && link.admits(link.credits.cost(bytes) + egress.bubble, bytes)
    }

    /// Whether it is worth trying: the largest frame may leave, or nothing is known to wait.
    #[must_use]
    pub fn may_admit_own(&self, port: PortId) -> bool {
        let (link, egress) = (&self.links[port.index()], &self.egress[port.index()]);
        if !link.carries() {
            return false;
        }
        (egress.data.is_empty() && link.credits.available() >= 2 * egress.bubble) || !link.is_stalled()
    }

    /// Whether frames without credits may leave.
    #[must_use]
    pub fn carries(&self, port: PortId) -> bool {
        self.links[port.index()].carries()
    }

    /// Data of so many bytes waits at this port: for room among the unacknowledged frames, or else for credits.
    pub fn note_stall(&mut self, now: Instant, port: PortId, bytes: usize) {
        let (link, counters) = (&mut self.links[port.index()], &mut self.counters[port.index()]);
        if !link.state().carries_data() {
            return;
        }
        if let Some(retry) = &mut link.retry
            && !retry.sender.admits(bytes)
        {
            retry.sender.note_wait(bytes);
            counters.retry.window_stalls += 1;
        } else if link.note_stall(now) {
            counters.credit_stalls += 1;
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
        if link.retry.is_some()
            && let Some(transmit) = self.transmit_retry(now, port, out)
        {
            return Some(transmit);
        }
        if let Some(report) = self.reports.next(port) {
            let length = report.write(&mut out[FABRIC..]);
            return Some(self.finish_control(port, out, FrameKind::Report, length, true));
        }
        if !self.carries(port) {
            return None;
        }
        let transit = self.egress[port.index()].acks.pop_front()?;
        Some(self.pass_on(port, &transit, out))
    }

    pub(super) fn finish_control(
        &mut self,
        port: PortId,
        out: &mut [u8],
        kind: FrameKind,
        body: usize,
        doorbell: bool,
    ) -> Transmit {
        let length = FABRIC + body;
        self.write_link(port, out, kind, body, 1, false, Numbers::NONE);
        self.count_sent(port, length, false);
        let passage = Passage::Plain;
        Transmit { length, body: Body::Written, end_to_end_check: false, doorbell, passage }
    }

    /// The next data frame in transit.
    pub fn transmit_transit(&mut self, now: Instant, port: PortId, out: &mut [u8]) -> Option<Transmit> {
        let next = self.egress[port.index()].data.front()?;
        let link = &self.links[port.index()];
        let (cost, length) = (link.credits.cost(next.length), next.length);
        if !link.admits(cost, length) {
            self.note_stall(now, port, length);
            return None;
        }
        let transit = self.egress[port.index()].data.pop_front()?;
        Some(self.pass_on(port, &transit, out))
    }

    pub(super) fn pass_on(&mut self, port: PortId, transit: &Transit, out: &mut [u8]) -> Transmit {
        let kind = if transit.is_data { FrameKind::Data } else { FrameKind::Ack };
        let numbers = self.number(port, transit.is_data, transit.length);
        let body = transit.length - FABRIC;
        self.write_link(port, out, kind, body, transit.hop_limit, transit.has_end_to_end_check, numbers);
        if numbers.passage != Passage::Discarded {
            self.count_sent(port, transit.length, transit.is_data);
            self.counters[port.index()].forwarded += 1;
        }
        self.let_go(transit);
        Transmit {
            length: transit.length,
            body: Body::Lease { lease: transit.lease, at: FABRIC, length: body },
            end_to_end_check: false,
            doorbell: true,
            passage: numbers.passage,
        }
    }

    /// Finish a routed frame of this member's own, whose fabric header and operations are in place up to `written`;
    /// `length` counts bytes that are still to be gathered as well.
    pub fn finish_own(&mut self, port: PortId, out: &mut [u8], is_data: bool, length: usize) -> Passage {
        let kind = if is_data { FrameKind::Data } else { FrameKind::Ack };
        let numbers = self.number(port, is_data, length);
        let check = self.config.end_to_end_check;
        self.write_link(port, out, kind, length - FABRIC, HOP_LIMIT_START, check, numbers);
        if numbers.passage != Passage::Discarded {
            self.count_sent(port, length, is_data);
        }
        numbers.passage
    }

    /// A packet is sent again through `port`.
    pub fn count_retransmission(&mut self, port: PortId) {
        self.counters[port.index()].retransmitted += 1;
    }

    /// Number a routed frame: with retry every one, without it only data.
    pub(super) fn number(&mut self, port: PortId, is_data: bool, length: usize) -> Numbers {
        let link = &mut self.links[port.index()];
        if link.retry.is_some() {
            return self.number_repeatable(port, is_data, length);
        }
        if !is_data {
            return Numbers::NONE;
        }
        let cost = link.credits.cost(length);
        let (sequence, consumed) = link.number_data(cost);
        Numbers { sequence, consumed, is_numbered: true, passage: Passage::Plain }
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of one header, each from another place")]
    pub(super) fn write_link(
        &mut self,
        port: PortId,
        out: &mut [u8],
        kind: FrameKind,
        body: usize,
        hop_limit: u8,
        has_end_to_end_check: bool,
        numbers: Numbers,
    ) {
        let link = &mut self.links[port.index()];
        let mut header = LinkHeader {
            kind,
            epoch: self.config.epoch,
            length: body as u16,
            hop_limit,
            session: self.config.incarnation.tag() as u16,
            sequence: numbers.sequence,
            link_ack: 0,
            consumed: numbers.consumed,
            freed: 0,
            has_end_to_end_check,
            has_hop_check: self.config.end_to_end_check,
            hop_check_covers_all: numbers.passage == Passage::Kept,
            is_unprotected: numbers.passage == Passage::Unprotected,
        };
        link.complete(&mut header, numbers.is_numbered);
        let plane = link.config.plane;
        let target = mac(link.config.neighbour, plane);
        header.write(out, self.config.ether_type, mac(self.config.node, plane), target);
    }

    pub(super) fn count_sent(&mut self, port: PortId, length: usize, is_data: bool) {
        let counters = &mut self.counters[port.index()];
        counters.frames_sent += 1;
        counters.bytes_sent += length as u64;
        if is_data {
            counters.data_frames_sent += 1;
            counters.data_bytes_sent += length as u64;
        }
    }
}
