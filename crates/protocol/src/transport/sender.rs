//! Sending half of a stream: packets queued, in flight and to be retransmitted.
//!
//! `packets[..sent]` are in flight, `packets[sent..]` wait for the window. The first packet has number `base`. With
//! go-back-N a gap at the receiver marks all packets in flight as lost. With selective retransmission only packets
//! that three later transmissions have overtaken are lost. A packet never changes its number.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::congestion::CongestionWindow;
use super::distance;
use super::packet::{Packet, PayloadSource};
use super::queue::PacketQueue;
use super::round_trip::RoundTrip;
use super::settings::{StreamSettings, is_short};
use crate::config::{CongestionControl, PackingMode, RetransmissionMode};
use crate::ids::{Key, RegionId};
use crate::time::Instant;
use crate::wire::packed::{Operation, SELECT_BYTES};

/// Number of later transmissions that must have arrived before a packet counts as lost.
const REORDER_TOLERANCE: u64 = 3;

/// Limit of the packets in flight, beside the window.
#[derive(Debug, Default)]
enum Limit {
    /// None: the window is constant.
    #[default]
    None,
    /// A window that follows marks.
    Marks(CongestionWindow),
    /// The receiver's grant: the number of the first packet that may not be sent. One packet may be in flight without a grant.
    Grant(u32),
}

/// State that few streams need: congestion control, and what only a loss needs.
#[derive(Debug, Default)]
struct Seldom {
    limit: Limit,
    /// Last transmission that a bitmap has reported, by path. A path keeps frames in order.
    newest_arrivals: Vec<u64>,
    rewound_for: Option<u32>,
    /// Number of the packet that the last timeout retransmitted alone.
    probed: Option<u32>,
}

/// Sending half of a stream.
#[derive(Debug)]
pub struct Sender {
    settings: Arc<StreamSettings>,
    packets: PacketQueue,
    base: u32,
    sent: usize,
    lost: usize,
    order: u64,
    next_operation: u32,
    visible: u32,
    round_trip: RoundTrip,
    deadline: Option<Instant>,
    retries: u32,
    /// Created by the first loss, or with the stream if it has congestion control.
    seldom: Option<Box<Seldom>>,
}

/// Content of an acknowledgement beside its numbers. The default is that of one in the header of a data packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckReport<'a> {
    /// True if the receiver reports a gap, with go-back-N.
    pub hole: bool,
    /// True if a packet that it acknowledges had a mark of congestion.
    pub is_marked: bool,
    /// Packets after a gap that have arrived: bit i stands for the packet i + 1 after the expected one.
    pub bitmap: &'a [u8],
}

/// Effect of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckOutcome {
    /// True if the receiver has accepted packets.
    pub packets_taken: bool,
    /// True if operations became visible.
    pub operations_visible: bool,
}

impl Sender {
    /// Returns the sender of a new stream.
    #[must_use]
    pub fn new(settings: Arc<StreamSettings>) -> Self {
        let limit = match settings.transport.congestion {
            CongestionControl::Off => None,
            CongestionControl::Dctcp => {
                Some(Limit::Marks(CongestionWindow::new(settings.transport.window_packets)))
            }
            CongestionControl::Grants => Some(Limit::Grant(0)),
        };
        Self {
            settings,
            seldom: limit.map(|limit| Box::new(Seldom { limit, ..Seldom::default() })),
            round_trip: RoundTrip::default(),
            packets: PacketQueue::default(),
            base: 0,
            sent: 0,
            lost: 0,
            order: 0,
            next_operation: 0,
            visible: 0,
            deadline: None,
            retries: 0,
        }
    }

    /// Returns the settings of the stream.
    #[must_use]
    pub const fn settings(&self) -> &Arc<StreamSettings> {
        &self.settings
    }

    /// Returns true if the stream has carried only a few packets ([`is_short`]).
    #[must_use]
    #[inline]
    pub fn is_short(&self) -> bool {
        is_short(self.base.wrapping_add(self.packets.len() as u32))
    }

    // ---- filling ---------------------------------------------------------------------------------------------------

    /// Number of packets that have not been sent yet.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.packets.len() - self.sent
    }

    /// Number of the next operation.
    #[must_use]
    pub const fn next_operation(&self) -> u32 {
        self.next_operation
    }

    /// Number of the first operation that is not known to be visible.
    #[must_use]
    pub const fn visible(&self) -> u32 {
        self.visible
    }

    /// Number of the first operation that has never been sent.
    #[must_use]
    pub fn first_unsent_operation(&self) -> u32 {
        self.packets.get(self.sent).map_or(self.next_operation, |packet| packet.first_operation)
    }

    /// Appends a small operation, to the open packet if it fits. Returns the number of the operation.
    #[inline(always)]
    pub fn append(&mut self, address: Option<(RegionId, Key)>, operation: &Operation<'_>) -> u32 {
        let bytes = operation.encoded_bytes();
        let number = self.next_operation;
        self.next_operation = number.wrapping_add(1);
        let is_alone = self.settings.packing.mode == PackingMode::Off || !self.fits_with(address, bytes);
        let packet = if is_alone { self.packets.open(number) } else { self.packets.back_or_open(number) };
        packet.add(address, operation);
        number
    }

    /// Appends an operation after the gathered payload of the newest packet if it fits, else in a new packet.
    pub fn append_after_payload(&mut self, address: (RegionId, Key), operation: &Operation<'_>) -> u32 {
        let bytes = operation.encoded_bytes() + SELECT_BYTES;
        let fits = self.packets.len() > self.sent
            && self
                .packets
                .back()
                .is_some_and(|last| last.length() + bytes <= self.settings.operation_bytes_max);
        let number = self.next_operation;
        self.next_operation = number.wrapping_add(1);
        let packet = if fits { self.packets.back_or_open(number) } else { self.packets.open(number) };
        packet.add(Some(address), operation);
        number
    }

    /// Appends an operation whose payload is read at transmission. `write_header` appends the header of the
    /// operation.
    pub fn append_gathered(
        &mut self,
        address: Option<(RegionId, Key)>,
        source: PayloadSource,
        write_header: impl FnOnce(&mut Vec<u8>),
    ) -> u32 {
        let number = self.next_operation;
        self.next_operation = number.wrapping_add(1);
        let packet = self.packets.open(number);
        packet.select(address);
        write_header(&mut packet.body);
        packet.operation_count += 1;
        packet.source = Some(PayloadSource { split: packet.body.len(), ..source });
        number
    }

    /// Returns true if an operation of `bytes` fits into the newest packet.
    #[inline]
    fn fits_with(&self, address: Option<(RegionId, Key)>, bytes: usize) -> bool {
        self.packets.len() > self.sent
            && self.packets.back().is_some_and(|last| {
                let select = if address.is_some() && last.selected != address { SELECT_BYTES } else { 0 };
                last.source.is_none()
                    && u16::from(last.operation_count) < self.settings.packing.operations_max.min(250)
                    && last.body.len() + select + bytes <= self.settings.operation_bytes_max
            })
    }

    #[inline]
    fn push_packet(&mut self) {
        self.packets.open(self.next_operation);
    }

    /// Number of the newest packet.
    #[must_use]
    pub fn last_psn(&self) -> u32 {
        self.base.wrapping_add(self.packets.len() as u32).wrapping_sub(1)
    }

    /// Number of the oldest unacknowledged packet.
    #[must_use]
    pub const fn base(&self) -> u32 {
        self.base
    }

    // ---- sending ---------------------------------------------------------------------------------------------------

    /// Number of packets that may be in flight now.
    #[inline]
    fn window(&self) -> usize {
        match self.seldom.as_ref().map(|seldom| &seldom.limit) {
            None | Some(Limit::None) => self.settings.window(),
            Some(Limit::Marks(window)) => window.packets(),
            Some(Limit::Grant(end)) => granted(self.base, *end).clamp(1, self.settings.window()),
        }
    }

    // W-96
    /// Handles a grant of the receiver: the number of the first packet that may not be sent. A grant never takes an earlier one back.
    pub fn handle_grant(&mut self, grant: u32) {
        let base = self.base;
        if let Some(Limit::Grant(end)) = self.seldom.as_mut().map(|seldom| &mut seldom.limit)
            && granted(base, grant) > granted(base, *end)
        {
            *end = grant;
        }
    }

    /// Forgets what is granted beyond the packets in flight.
    fn return_grant(&mut self) {
        let next = self.base.wrapping_add(self.sent as u32);
        if let Some(Limit::Grant(end)) = self.seldom.as_mut().map(|seldom| &mut seldom.limit) {
            *end = next;
        }
    }

    /// Number of packets that exist behind the one at `index`.
    #[must_use]
    #[inline]
    pub fn behind(&self, index: usize) -> usize {
        self.packets.len().saturating_sub(index + 1)
    }

    /// Index of the first packet that has not been sent.
    #[must_use]
    #[inline]
    pub const fn first_unsent(&self) -> usize {
        self.sent
    }

    /// Returns true if one more packet fits into the window.
    #[must_use]
    #[inline]
    pub fn window_open(&self) -> bool {
        self.sent < self.window()
    }

    /// Returns the index of the next packet to send, lost packets first.
    #[must_use]
    #[inline]
    pub fn next(&self) -> Option<usize> {
        if self.lost > 0 {
            return self.first_lost();
        }
        (self.sent < self.packets.len() && self.window_open()).then_some(self.sent)
    }

    #[cold]
    fn first_lost(&self) -> Option<usize> {
        self.packets.iter().take(self.sent).position(|packet| packet.is_lost)
    }

    /// Returns the packet at an index.
    #[must_use]
    #[inline]
    pub fn packet(&self, index: usize) -> &Packet {
        &self.packets[index]
    }

    /// Returns the number of the packet at an index.
    #[must_use]
    #[inline]
    pub const fn psn(&self, index: usize) -> u32 {
        self.base.wrapping_add(index as u32)
    }

    /// Returns true if nothing more can follow the packet at an index at once.
    #[must_use]
    #[inline]
    pub fn is_last(&self, index: usize) -> bool {
        self.lost <= 1 && index + 1 >= self.packets.len().min(self.window())
    }

    /// Replaces the one operation of the packet at `index`. All numbers stay.
    pub fn replace(&mut self, index: usize, operation: &Operation<'_>) {
        let packet = &mut self.packets[index];
        packet.body.clear();
        packet.source = None;
        packet.selected = None;
        operation.encode(&mut packet.body);
    }

    /// Sends the next packet for the first time, unless an earlier one must be retransmitted. `write` gets the
    /// packet, its number, and true if nothing more can follow at once; the packet counts as sent if `write` returns
    /// a value.
    #[inline]
    pub fn send_fresh<T>(
        &mut self,
        now: Instant,
        write: impl FnOnce(&Packet, u32, bool) -> Option<T>,
    ) -> Option<T> {
        if self.lost > 0 || !self.window_open() {
            return None;
        }
        let (index, window) = (self.sent, self.window());
        let is_last = index + 1 >= self.packets.len().min(window);
        let psn = self.base.wrapping_add(index as u32);
        let packet = self.packets.get_mut(index).filter(|packet| packet.transmissions == 0)?;
        let written = write(packet, psn, is_last)?;
        self.order += 1;
        (packet.order, packet.sent_at, packet.transmissions) = (self.order, now, 1);
        self.sent = index + 1;
        self.check_counts();
        if self.deadline.is_none() {
            self.deadline = Some(now + self.timeout_ns());
        }
        Some(written)
    }

    /// Returns the packet that was last sent for the first time.
    #[must_use]
    #[inline]
    pub fn last_fresh(&self) -> Option<&Packet> {
        self.packets.get(self.sent.wrapping_sub(1))
    }

    /// Records that the packet at `index` leaves on path `path` (0 if there is only one). Returns true if it is a
    /// retransmission.
    pub fn note_sent(&mut self, now: Instant, index: usize, path: u16) -> bool {
        assert!(index <= self.sent, "packets are sent for the first time in the order of their numbers");
        assert!(index < self.sent || self.window_open(), "a new packet is sent beyond the window");
        self.order += 1;
        let packet = &mut self.packets[index];
        packet.order = self.order;
        packet.path = path;
        packet.sent_at = now;
        packet.transmissions += 1;
        if packet.is_lost {
            packet.is_lost = false;
            self.lost -= 1;
        }
        let again = packet.transmissions > 1;
        if index == self.sent {
            self.sent += 1;
        }
        if self.deadline.is_none() {
            self.deadline = Some(now + self.timeout_ns());
        }
        self.check();
        again
    }

    /// Asserts the order of the counters: lost packets are in flight, and packets in flight are within the window.
    #[inline]
    fn check_counts(&self) {
        assert!(self.lost <= self.sent && self.sent <= self.packets.len(), "packets are miscounted");
        assert!(self.sent <= self.settings.window(), "the window is exceeded");
    }

    /// Asserts what holds after every change. Builds with debug assertions also look at every packet.
    ///
    /// An acknowledgement cannot break it. [`Sender::handle_ack`] ignores one that names a packet or an operation
    /// which was never sent, and bits of a bitmap beyond the packets in flight.
    fn check(&self) {
        self.check_counts();
        if cfg!(debug_assertions) {
            let mut lost = 0;
            for (index, packet) in self.packets.iter().enumerate() {
                assert_eq!(index < self.sent, packet.transmissions > 0, "packet {index} of {}", self.sent);
                assert!(!packet.is_lost || index < self.sent, "a packet is lost that was never sent");
                assert!(!packet.is_lost || !packet.is_held_by_receiver, "a packet is lost and has arrived");
                lost += usize::from(packet.is_lost);
            }
            assert_eq!(lost, self.lost, "lost packets");
            assert!(
                distance(self.visible, self.first_unsent_operation()) < 1 << 31,
                "visible before it was sent"
            );
        }
    }

    // ---- acknowledgements ------------------------------------------------------------------------------------------

    /// Handles an acknowledgement: the receiver expects `psn` next, all operations before `operation` are visible,
    /// and it may report a gap or a mark.
    pub fn handle_ack(
        &mut self,
        now: Instant,
        psn: u32,
        operation: u32,
        report: AckReport<'_>,
    ) -> AckOutcome {
        let taken = distance(self.base, psn) as usize;
        if taken > self.sent {
            // An old or forged acknowledgement.
            return AckOutcome { packets_taken: false, operations_visible: false };
        }
        let was_full = self.sent >= self.window();
        for _ in 0..taken {
            self.take_front(now);
        }
        match self.seldom.as_mut().map(|seldom| &mut seldom.limit) {
            None | Some(Limit::None) => {}
            Some(Limit::Marks(window)) => {
                let next = self.base.wrapping_add(self.sent as u32);
                window.acknowledge(taken as u32, report.is_marked, was_full, self.base, next);
            }
            // An old grant never becomes a new one when numbers wrap.
            Some(Limit::Grant(end)) => *end = self.base.wrapping_add(granted(self.base, *end) as u32),
        }
        if taken > 0 {
            self.retries = 0;
            self.round_trip.reset_back_off();
            self.return_buffers();
        }
        let operations_visible = self.advance_visible(operation);
        if report.hole {
            self.rewind(psn);
        }
        if !report.bitmap.is_empty() {
            self.note_bitmap(now, report.bitmap);
        }
        if taken > 0 || self.is_settled() {
            self.deadline = (!self.is_settled()).then(|| now + self.timeout_ns());
        }
        self.check();
        AckOutcome { packets_taken: taken > 0, operations_visible }
    }

    /// Frees the buffers of a short stream that has no packets. They are not few: all nodes of a rack may exchange one
    /// packet with all others, but only some of these packets are in flight at the same time.
    #[inline]
    fn return_buffers(&mut self) {
        if self.packets.is_empty() && self.is_short() {
            self.packets = PacketQueue::default();
        }
    }

    fn take_front(&mut self, now: Instant) {
        let Some(packet) = self.packets.get(0) else { return };
        self.base = self.base.wrapping_add(1);
        self.sent -= 1;
        if packet.is_lost {
            self.lost -= 1;
        }
        if packet.transmissions == 1 && !packet.is_held_by_receiver {
            self.round_trip.measure(now.since(packet.sent_at));
        }
        self.packets.close_front();
    }

    fn advance_visible(&mut self, operation: u32) -> bool {
        let forward = distance(self.visible, operation);
        let possible = distance(self.visible, self.first_unsent_operation());
        if forward == 0 || forward > possible {
            return false;
        }
        self.visible = operation;
        true
    }

    // W-22
    /// Go-back-N: marks all packets in flight as lost, once per gap.
    fn rewind(&mut self, psn: u32) {
        if self.settings.transport.mode != RetransmissionMode::GoBackN {
            return;
        }
        let rewound_for = &mut self.seldom.get_or_insert_default().rewound_for;
        if rewound_for.replace(psn) != Some(psn) {
            self.mark_all_lost();
        }
    }

    fn mark_all_lost(&mut self) {
        for packet in self.packets.iter_mut().take(self.sent) {
            if !packet.is_held_by_receiver && !packet.is_lost {
                packet.is_lost = true;
                self.lost += 1;
            }
        }
    }

    /// Selective retransmission: bit i of the bitmap is set if packet `base + 1 + i` has arrived.
    fn note_bitmap(&mut self, now: Instant, bitmap: &[u8]) {
        let paths = self.packets.iter().take(self.sent).map(|packet| usize::from(packet.path) + 1).max();
        let newest_arrivals = &mut self.seldom.get_or_insert_default().newest_arrivals;
        if paths.is_some_and(|paths| paths > newest_arrivals.len()) {
            newest_arrivals.resize(paths.unwrap_or_default(), 0);
        }
        for index in 1..self.sent {
            let bit = index - 1;
            let here = bitmap.get(bit / 8).is_some_and(|byte| byte & (1 << (bit % 8)) != 0);
            let packet = &mut self.packets[index];
            if here && !packet.is_held_by_receiver {
                packet.is_held_by_receiver = true;
                let newest = &mut newest_arrivals[usize::from(packet.path)];
                *newest = packet.order.max(*newest);
                if packet.transmissions == 1 {
                    self.round_trip.measure(now.since(packet.sent_at));
                }
                if packet.is_lost {
                    packet.is_lost = false;
                    self.lost -= 1;
                }
            }
        }
        for packet in self.packets.iter_mut().take(self.sent) {
            let overtaken = packet.order + REORDER_TOLERANCE <= newest_arrivals[usize::from(packet.path)];
            if overtaken && !packet.is_held_by_receiver && !packet.is_lost {
                packet.is_lost = true;
                self.lost += 1;
            }
        }
    }

    /// Marks all packets in flight on a path as lost, because the path is gone.
    pub fn handle_path_lost(&mut self, now: Instant, path: u16) {
        self.round_trip.reset_back_off();
        for packet in self.packets.iter_mut().take(self.sent) {
            if packet.path == path && !packet.is_held_by_receiver && !packet.is_lost {
                packet.is_lost = true;
                self.lost += 1;
            }
        }
        if self.lost > 0 {
            self.deadline = Some(now + self.timeout_ns());
        }
        self.check();
    }

    /// Number of packets that can be sent now: built, and inside the window.
    #[must_use]
    pub fn ready(&self) -> usize {
        let window = self.window().saturating_sub(self.sent);
        self.lost + self.unsent().min(window)
    }

    /// Number of packets that may still be built before the window closes.
    #[must_use]
    pub fn sendable_max(&self) -> usize {
        self.window().saturating_sub(self.packets.len())
    }

    fn timeout_ns(&self) -> u64 {
        self.round_trip.timeout_ns(&self.settings.transport)
    }

    /// Returns true if nothing is in flight and everything sent is visible.
    fn is_settled(&self) -> bool {
        self.sent == 0 && self.visible == self.first_unsent_operation()
    }

    // ---- time, paths, loss of the peer -----------------------------------------------------------------------------

    /// Returns the time at which `handle_timeout` is due.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Handles the passage of time. Returns false if the retry limit is reached.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return true;
        }
        self.retries += 1;
        let limit = self.settings.transport.retry_count_max;
        if limit != 0 && self.retries > limit {
            self.deadline = None;
            return false;
        }
        self.round_trip.back_off();
        // The receiver has answered the last probe, and nothing that was sent before it has arrived since.
        let probed = self.seldom.as_mut().and_then(|seldom| seldom.probed.take());
        let has_lost_all = probed.is_some_and(|psn| self.base == psn.wrapping_add(1));
        let is_first = self.retries == 1 && self.settings.transport.mode == RetransmissionMode::Selective;
        if is_first && !has_lost_all && self.sent > 0 {
            self.seldom.get_or_insert_default().probed = Some(self.base);
            self.probe(now);
        } else {
            self.resend(now);
        }
        self.check();
        true
    }

    /// Retransmits the oldest packet after a first timeout, which may only mean that a host was slow. The
    /// acknowledgement shows which other packets are missing. A second timeout marks all packets as lost, if it is consecutive, or if the
    /// acknowledgement of this packet was the only one since: then the whole window was lost, and one packet per timeout would take seconds.
    fn probe(&mut self, now: Instant) {
        if let Some(oldest) = self.packets.get_mut(0)
            && !oldest.is_lost
        {
            oldest.is_lost = true;
            self.lost += 1;
        }
        self.deadline = Some(now + self.timeout_ns());
    }

    /// Retransmits all unacknowledged packets at once, because the path changed.
    pub fn handle_path_change(&mut self, now: Instant) {
        self.round_trip.reset_back_off();
        if self.sent > 0 {
            self.resend(now);
        }
        self.check();
    }

    fn resend(&mut self, now: Instant) {
        if let Some(seldom) = &mut self.seldom {
            seldom.rewound_for = None;
        }
        if self.sent > 0 {
            self.mark_all_lost();
        } else if self.visible != self.next_operation && self.packets.is_empty() {
            // Accepted but not reported visible: an empty packet requests a new acknowledgement.
            self.push_packet();
        }
        self.deadline = Some(now + self.timeout_ns());
    }

    // W-23
    /// Voids all packets, because the receiver is lost. Unsent packets are discarded. Sent packets keep their numbers
    /// without content, so that nothing stale is written if this incarnation of the receiver is reached again.
    pub fn void(&mut self) {
        self.next_operation = self.first_unsent_operation();
        self.packets.truncate(self.sent);
        self.packets.iter_mut().for_each(Packet::clear);
        self.visible = self.next_operation;
        self.deadline = None;
        self.retries = 0;
        self.return_grant();
        self.check();
    }

    /// Number of packets in flight.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.sent
    }
}

/// Returns the number of packets from `base` on that a grant up to `end` contains: none if it is older.
const fn granted(base: u32, end: u32) -> usize {
    let ahead = distance(base, end);
    if ahead < 1 << 31 { ahead as usize } else { 0 }
}
