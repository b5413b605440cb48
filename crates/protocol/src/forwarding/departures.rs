//! Frames that leave through a port: control frames first, then acknowledgements and data in transit. The member's
//! own data is last; its link header is written here too.

use super::egress::Transit;
use super::forwarder::Forwarder;
use crate::config::ForwardingPriority;
use crate::ids::{Channel, PortId};
use crate::link::state::LinkState;
use crate::time::Instant;
use crate::transmit::{Body, Passage, Transmit};
use crate::wire::address::mac;
use crate::wire::control::{HEARTBEAT_BYTES, HELLO_BYTES};
use crate::wire::frame::{FrameKind, HopCheck, LinkHeader};
use crate::wire::header_prediction::LinkNumbers;
use crate::wire::layout::{FABRIC, HOP_LIMIT_START};

/// Link header fields of a frame, by its sort.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) channel: Channel,
    pub(super) sequence: u32,
    pub(super) consumed: u32,
    /// True if the sequence and credits are the frame's own; false if the last ones are filled in.
    pub(super) is_numbered: bool,
    pub(super) passage: Passage,
    /// True if the frame was marked because of congestion.
    pub(super) is_marked: bool,
}

impl Numbers {
    /// Returns the fields of a frame without a number of its own: the last ones, with the counters of a channel.
    const fn last(channel: Channel) -> Self {
        let passage = Passage::Plain;
        Self { channel, sequence: 0, consumed: 0, is_numbered: false, passage, is_marked: false }
    }
}

impl Forwarder {
    /// Returns true if a control frame or a frame in transit can leave through `port`.
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
                    || link.pause.as_ref().is_some_and(|pause| pause.is_due(now))
                    || (!egress.acks.is_empty() && link.carries())
                    || egress.data.any(|channel, queue| {
                        self.next_index(port, channel).is_some_and(|slot| {
                            let length = queue[slot].length;
                            link.admits(channel, link.credits(channel).cost(length), length)
                                || (!link.accounts.is_stalled(channel) && link.carries())
                        })
                    })))
            || self.in_order.as_ref().is_some_and(|lines| lines.is_leaving(port))
    }

    /// Returns true if own data of `bytes` may leave: no transit waits, and the bubble stays free.
    #[inline]
    #[must_use]
    pub fn admits_own(&self, port: PortId, channel: Channel, bytes: usize) -> bool {
        let (link, egress) = (&self.links[port.index()], &self.egress[port.index()]);
        (egress.data.of(channel).is_empty() || self.config.forwarding.priority == ForwardingPriority::Own)
            && link.admits(channel, link.credits(channel).cost(bytes) + egress.bubble, bytes)
    }

    /// Returns true if own data may have become sendable: the waiting frame now has credits, or none is known to
    /// wait.
    #[must_use]
    pub fn may_admit_own(&self, port: PortId, channel: Channel) -> bool {
        let (link, egress) = (&self.links[port.index()], &self.egress[port.index()]);
        if !link.carries() {
            return false;
        }
        let has_turn =
            egress.data.of(channel).is_empty() || self.config.forwarding.priority == ForwardingPriority::Own;
        (has_turn && link.credits(channel).available() >= link.accounts.awaited(channel) + egress.bubble)
            || !link.accounts.is_stalled(channel)
    }

    /// Returns true if frames that need no credits may leave.
    #[must_use]
    pub fn carries(&self, port: PortId) -> bool {
        self.links[port.index()].carries()
    }

    /// Records that data of `bytes` waits at this port: for the retry window, or else for credits of its channel.
    pub fn note_stall(&mut self, now: Instant, port: PortId, channel: Channel, bytes: usize) {
        let (link, counters) = (&mut self.links[port.index()], &mut self.counters[port.index()]);
        if !link.state().carries_data() {
            return;
        }
        if let Some(retry) = &mut link.retry
            && !retry.sender.admits(bytes)
        {
            retry.sender.note_wait(bytes);
            counters.retry.window_stalls += 1;
        } else if link.accounts.note_stall(now, channel, bytes) {
            counters.credit_stalls += 1;
        }
    }

    /// Returns the next control frame or acknowledgement in transit.
    pub fn transmit_control(&mut self, now: Instant, port: PortId, out: &mut [u8]) -> Option<Transmit> {
        self.end_leaving(port);
        let link = &mut self.links[port.index()];
        if link.hello_due(now) {
            let template = self.own_hello();
            let link = &mut self.links[port.index()];
            let mut hello = link.hello(template, port);
            (hello.received_incarnation, hello.requests_answer) = link.send_hello(now);
            hello.write(&mut out[FABRIC..FABRIC + HELLO_BYTES]);
            return Some(self.finish_control(port, Channel(0), out, FrameKind::Hello, HELLO_BYTES, true));
        }
        if link.heartbeat_due(now) {
            let channel = link.heartbeat_channel();
            let counters = &self.counters[port.index()];
            let frames = counters.frames_sent + counters.frames_received;
            let agrees = self.disagreements[port.index()] == 0;
            let heartbeat = link.send_heartbeat(now, frames, agrees, self.reports.digest());
            heartbeat.write(&mut out[FABRIC..FABRIC + HEARTBEAT_BYTES]);
            // A heartbeat wakes a resting neighbour, which then answers at once.
            let rings = link.state() == LinkState::Suspect;
            let kind = FrameKind::Heartbeat;
            return Some(self.finish_control(port, channel, out, kind, HEARTBEAT_BYTES, rings));
        }
        if link.credit_due(now) {
            let (channel, requests_answer) = link.send_credit(now);
            out[FABRIC] = u8::from(requests_answer);
            self.counters[port.index()].credit_updates += 1;
            return Some(self.finish_control(port, channel, out, FrameKind::Credit, 1, true));
        }
        if !link.state().carries_data() {
            return None;
        }
        if link.pause.is_some()
            && let Some(transmit) = self.transmit_pause(now, port, out)
        {
            return Some(transmit);
        }
        let link = &self.links[port.index()];
        if link.retry.is_some()
            && let Some(transmit) = self.transmit_retry(now, port, out)
        {
            return Some(transmit);
        }
        if self.reports.is_waiting(port) {
            let length = self.write_reports(port, out);
            return Some(self.finish_control(port, Channel(0), out, FrameKind::Report, length, true));
        }
        if !self.carries(port) {
            return None;
        }
        let transit = self.egress[port.index()].acks.pop_front()?;
        Some(self.pass_on(port, Channel(0), &transit, out))
    }

    /// Writes waiting reports, as many as a frame holds. Returns their length in bytes.
    fn write_reports(&mut self, port: PortId, out: &mut [u8]) -> usize {
        let frame_bytes_max = out.len().min(usize::from(self.config.frame_bytes_max));
        let mut length = 0;
        while let Some(report) = self.reports.next_within(port, frame_bytes_max - FABRIC - length) {
            length += report.write(&mut out[FABRIC + length..]);
        }
        assert!(length > 0, "a member has more links than a frame can report");
        length
    }

    pub(super) fn finish_control(
        &mut self,
        port: PortId,
        channel: Channel,
        out: &mut [u8],
        kind: FrameKind,
        body: usize,
        doorbell: bool,
    ) -> Transmit {
        let length = FABRIC + body;
        self.write_link(port, out, kind, body, 1, false, Numbers::last(channel));
        self.count_sent(port, length, false);
        let passage = Passage::Plain;
        Transmit { length, body: Body::Written, end_to_end_check: false, doorbell, passage }
    }

    /// Returns the next data frame in transit on a channel.
    pub fn transmit_transit(
        &mut self,
        now: Instant,
        port: PortId,
        channel: Channel,
        out: &mut [u8],
    ) -> Option<Transmit> {
        let slot = self.next_index(port, channel)?;
        let length = self.egress[port.index()].data.of(channel)[slot].length;
        let link = &self.links[port.index()];
        let cost = link.credits(channel).cost(length);
        if !link.admits(channel, cost, length) {
            self.note_stall(now, port, channel, length);
            return None;
        }
        let transit = self.egress[port.index()].data.of_mut(channel).remove(slot)?;
        if let Some(marks) = &mut self.marks {
            marks.leave(port, channel, transit.length);
        }
        // W-44
        let over_dateline = self.config.ports[port.index()].is_dateline;
        let channel = self.config.channels.next(transit.channel, over_dateline);
        Some(self.pass_on(port, channel, &transit, out))
    }

    fn pass_on(&mut self, port: PortId, channel: Channel, transit: &Transit, out: &mut [u8]) -> Transmit {
        let kind = if transit.is_data { FrameKind::Data } else { FrameKind::Ack };
        let numbers = Numbers {
            is_marked: transit.is_marked,
            ..self.number(port, channel, transit.is_data, transit.length)
        };
        let body = transit.length - FABRIC;
        self.write_link(port, out, kind, body, transit.hop_limit, transit.has_end_to_end_check, numbers);
        if numbers.passage != Passage::Discarded {
            self.count_sent(port, transit.length, transit.is_data);
            self.counters[port.index()].forwarded += 1;
        }
        self.begin_leaving(port, transit);
        self.let_go(transit);
        Transmit {
            length: transit.length,
            body: Body::Lease { lease: transit.lease, at: FABRIC, length: body },
            end_to_end_check: false,
            doorbell: true,
            passage: numbers.passage,
        }
    }

    /// Completes a routed frame of this member, whose fabric header and operations are in `out` up to `written`.
    /// `length` includes bytes that are still to be gathered.
    pub fn finish_own(
        &mut self,
        port: PortId,
        channel: Channel,
        out: &mut [u8],
        is_data: bool,
        length: usize,
    ) -> Passage {
        let kind = if is_data { FrameKind::Data } else { FrameKind::Ack };
        let numbers = self.number(port, channel, is_data, length);
        let check = self.config.end_to_end_check;
        self.write_link(port, out, kind, length - FABRIC, HOP_LIMIT_START, check, numbers);
        if numbers.passage != Passage::Discarded {
            self.count_sent(port, length, is_data);
        }
        numbers.passage
    }

    /// Numbers and counts an own data frame with a predicted header, on a link of one channel without retry. Inlined,
    /// so that the numbers stay in registers and are not read back right after they were written one by one.
    #[inline(always)]
    pub fn number_plain(&mut self, port: PortId, length: usize) -> LinkNumbers {
        let channel = Channel(0);
        self.egress[port.index()].arbiter.grant(channel, length);
        let link = &mut self.links[port.index()];
        let (sequence, consumed) = link.number_data(channel, length);
        let (link_ack, freed) = link.reverse_state();
        self.count_sent(port, length, true);
        LinkNumbers { sequence, link_ack, consumed, freed }
    }

    /// Returns the link fields of an own frame that only acknowledges and has no number, on a link of one channel
    /// without retry.
    #[inline(always)]
    pub fn number_ack_plain(&mut self, port: PortId, length: usize) -> LinkNumbers {
        let link = &mut self.links[port.index()];
        let (sequence, consumed) = link.last_numbers(Channel(0));
        let (link_ack, freed) = link.reverse_state();
        self.count_sent(port, length, false);
        LinkNumbers { sequence, link_ack, consumed, freed }
    }

    /// Counts a retransmission through `port`.
    pub fn count_retransmission(&mut self, port: PortId) {
        self.counters[port.index()].retransmitted += 1;
    }

    /// Numbers a routed frame: all of them with retry, only data without.
    fn number(&mut self, port: PortId, channel: Channel, is_data: bool, length: usize) -> Numbers {
        if is_data {
            self.egress[port.index()].arbiter.grant(channel, length);
        }
        let link = &mut self.links[port.index()];
        if link.retry.is_some() {
            return self.number_repeatable(port, channel, is_data, length);
        }
        if !is_data {
            return Numbers::last(channel);
        }
        let (sequence, consumed) = link.number_data(channel, length);
        // If lost frames leak their credits, a corrupted frame counts as lost.
        let passage = if link.accounts.resync() { Passage::Plain } else { Passage::Kept };
        Numbers { channel, sequence, consumed, is_numbered: true, passage, is_marked: false }
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
            channel: numbers.channel,
            session: self.config.incarnation.tag() as u16,
            sequence: numbers.sequence,
            link_ack: 0,
            consumed: numbers.consumed,
            freed: 0,
            has_end_to_end_check,
            hop_check: HopCheck::new(self.config.end_to_end_check, numbers.passage == Passage::Kept),
            is_unprotected: numbers.passage == Passage::Unprotected,
            is_marked: numbers.is_marked,
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
