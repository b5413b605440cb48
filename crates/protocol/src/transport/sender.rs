//! The sending half of a stream: packets queued, in flight and to be sent again.
//!
//! `packets[..sent]` are in flight, `packets[sent..]` wait for the window; the first has number `base`. Under go-back-N
//! a hole at the receiver marks everything in flight as lost; under selective only what was overtaken by three later
//! transmissions. A packet keeps its number for ever.

use alloc::vec::Vec;

use super::distance;
use super::packet::{Packet, PayloadSource};
use super::queue::PacketQueue;
use super::round_trip::RoundTrip;
use crate::config::{PackingConfig, PackingMode, RetransmissionMode, TransportConfig};
use crate::ids::{Key, RegionId};
use crate::time::Instant;
use crate::wire::packed::{Operation, SELECT_BYTES};

/// A packet counts as lost when this many later transmissions have arrived.
const REORDER_TOLERANCE: u64 = 3;

/// What the sender must obey.
#[derive(Clone, Copy, Debug)]
pub struct SenderLimits {
    /// Retransmission, windows, timeouts.
    pub transport: TransportConfig,
    /// Packing of small operations.
    pub packing: PackingConfig,
    /// Bytes of operations that a frame can hold.
    pub operation_bytes_max: usize,
}

/// The sending half of a stream.
#[derive(Debug)]
pub struct Sender {
    limits: SenderLimits,
    packets: PacketQueue,
    base: u32,
    sent: usize,
    lost: usize,
    order: u64,
    /// By way: the last transmission over it that is known to have arrived. A way keeps the order of what it carries.
    newest_arrivals: Vec<u64>,
    rewound_for: Option<u32>,
    next_operation: u32,
    visible: u32,
    round_trip: RoundTrip,
    deadline: Option<Instant>,
    retries: u32,
}

/// What an acknowledgement changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckOutcome {
    /// Packets were taken by the receiver.
    pub packets_taken: bool,
    /// Operations became visible.
    pub operations_visible: bool,
}

impl Sender {
    /// A stream at its beginning.
    #[must_use]
    pub fn new(limits: SenderLimits) -> Self {
        Self {
            round_trip: RoundTrip::new(&limits.transport),
            limits,
            packets: PacketQueue::default(),
            base: 0,
            sent: 0,
            lost: 0,
            order: 0,
            newest_arrivals: alloc::vec![0],
            rewound_for: None,
            next_operation: 0,
            visible: 0,
            deadline: None,
            retries: 0,
        }
    }

    // ---- filling ---------------------------------------------------------------------------------------------------

    /// Packets that have not been sent yet.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.packets.len() - self.sent
    }

    /// Number of the next operation.
    #[must_use]
    pub const fn next_operation(&self) -> u32 {
        self.next_operation
    }

    /// The first operation that is not known to be visible.
    #[must_use]
    pub const fn visible(&self) -> u32 {
        self.visible
    }

    /// Number of the first operation that has never been sent.
    #[must_use]
    pub fn first_unsent_operation(&self) -> u32 {
        self.packets.get(self.sent).map_or(self.next_operation, |packet| packet.first_operation)
    }

    /// Append a small operation, in the open packet if it fits. Returns its number.
    // Inlined, as what it calls is: who appends one kind of operation need not ask which kind it is, and the address goes from registers to
    // where it stays.
    #[inline(always)]
    pub fn append(&mut self, address: Option<(RegionId, Key)>, operation: &Operation<'_>) -> u32 {
        let bytes = operation.encoded_bytes();
        let number = self.next_operation;
        self.next_operation = number.wrapping_add(1);
        let is_alone = self.limits.packing.mode == PackingMode::Off || !self.has_room_for(address, bytes);
        let packet = if is_alone { self.packets.open(number) } else { self.packets.back_or_open(number) };
        packet.add(address, operation);
        number
    }

    /// Append an operation behind gathered payload of the packet opened last, if there is room; else in a new one.
    pub fn append_after_payload(&mut self, address: (RegionId, Key), operation: &Operation<'_>) -> u32 {
        let bytes = operation.encoded_bytes() + SELECT_BYTES;
        let fits = self.packets.len() > self.sent
            && self
                .packets
                .back()
                .is_some_and(|last| last.length() + bytes <= self.limits.operation_bytes_max);
        let number = self.next_operation;
        self.next_operation = number.wrapping_add(1);
        let packet = if fits { self.packets.back_or_open(number) } else { self.packets.open(number) };
        packet.add(Some(address), operation);
        number
    }

    /// Append an operation whose payload is gathered at transmission: `write_header` appends its header.
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

    /// Whether an operation of so many bytes fits the packet opened last.
    #[inline]
    fn has_room_for(&self, address: Option<(RegionId, Key)>, bytes: usize) -> bool {
        self.packets.len() > self.sent
            && self.packets.back().is_some_and(|last| {
                let select = if address.is_some() && last.selected != address { SELECT_BYTES } else { 0 };
                last.source.is_none()
                    && u16::from(last.operation_count) < self.limits.packing.operations_max.min(250)
                    && last.body.len() + select + bytes <= self.limits.operation_bytes_max
            })
    }

    #[inline]
    fn push_packet(&mut self) {
        self.packets.open(self.next_operation);
    }

    /// Number of the packet that was opened last.
    #[must_use]
    pub fn last_psn(&self) -> u32 {
        self.base.wrapping_add(self.packets.len() as u32).wrapping_sub(1)
    }

    /// Number of the oldest packet that the receiver has not acknowledged.
    #[must_use]
    pub const fn base(&self) -> u32 {
        self.base
    }

    // ---- sending ---------------------------------------------------------------------------------------------------

    /// Whether one more packet fits the window.
    #[must_use]
    #[inline]
    pub fn window_open(&self) -> bool {
        self.sent < self.limits.transport.window_packets as usize
    }

    /// Index of the next packet to send, if any: lost ones first.
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

    /// The packet at an index, its number, and whether nothing more can follow at once.
    #[must_use]
    pub fn packet(&self, index: usize) -> (&Packet, u32, bool) {
        let last = self.lost <= 1
            && index + 1 >= self.packets.len().min(self.limits.transport.window_packets as usize);
        (&self.packets[index], self.base.wrapping_add(index as u32), last)
    }

    /// The one operation of the packet at `index` becomes another, under the same numbers.
    pub fn replace(&mut self, index: usize, operation: &Operation<'_>) {
        let packet = &mut self.packets[index];
        packet.body.clear();
        packet.source = None;
        packet.selected = None;
        operation.encode(&mut packet.body);
    }

    /// Send the next packet if none of those before it has to be sent again: `write` is given the packet, its number, and whether nothing more
    /// can follow at once; if it writes the packet somewhere, that has been sent, for the first time.
    #[inline]
    pub fn send_fresh<T>(
        &mut self,
        now: Instant,
        write: impl FnOnce(&Packet, u32, bool) -> Option<T>,
    ) -> Option<T> {
        if self.lost > 0 || !self.window_open() {
            return None;
        }
        let (index, window) = (self.sent, self.limits.transport.window_packets as usize);
        let is_last = index + 1 >= self.packets.len().min(window);
        let psn = self.base.wrapping_add(index as u32);
        let packet = self.packets.get_mut(index).filter(|packet| packet.transmissions == 0)?;
        let written = write(packet, psn, is_last)?;
        self.order += 1;
        (packet.order, packet.sent_at, packet.transmissions) = (self.order, now, 1);
        self.sent = index + 1;
        if self.deadline.is_none() {
            self.deadline = Some(now + self.round_trip.timeout_ns());
        }
        Some(written)
    }

    /// The packet that was sent last for the first time.
    #[must_use]
    #[inline]
    pub fn last_fresh(&self) -> Option<&Packet> {
        self.packets.get(self.sent.wrapping_sub(1))
    }

    /// The packet at `index` leaves over this way (always the first where there is one at a time). Returns whether it had
    /// been sent before.
    pub fn note_sent(&mut self, now: Instant, index: usize, way: u16) -> bool {
        self.order += 1;
        let packet = &mut self.packets[index];
        packet.order = self.order;
        packet.way = way;
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
            self.deadline = Some(now + self.round_trip.timeout_ns());
        }
        again
    }

    // ---- acknowledgements ------------------------------------------------------------------------------------------

    /// The receiver expects `psn` next, has everything before operation `operation` visible, and may have seen a hole.
    pub fn handle_ack(
        &mut self,
        now: Instant,
        psn: u32,
        operation: u32,
        hole: bool,
        bitmap: &[u8],
    ) -> AckOutcome {
        let taken = distance(self.base, psn) as usize;
        if taken > self.sent {
            // Older than what is known, or forged.
            return AckOutcome { packets_taken: false, operations_visible: false };
        }
        for _ in 0..taken {
            self.take_front(now);
        }
        if taken > 0 {
            self.retries = 0;
            self.round_trip.reset_back_off();
        }
        let operations_visible = self.advance_visible(operation);
        if hole {
            self.rewind(psn);
        }
        if !bitmap.is_empty() {
            self.note_bitmap(now, bitmap);
        }
        if taken > 0 || self.is_settled() {
            self.deadline = (!self.is_settled()).then(|| now + self.round_trip.timeout_ns());
        }
        AckOutcome { packets_taken: taken > 0, operations_visible }
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
    /// Go-back-N: once per hole everything in flight is sent again.
    fn rewind(&mut self, psn: u32) {
        if self.limits.transport.mode != RetransmissionMode::GoBackN || self.rewound_for == Some(psn) {
            return;
        }
        self.rewound_for = Some(psn);
        self.mark_all_lost();
    }

    fn mark_all_lost(&mut self) {
        for packet in self.packets.iter_mut().take(self.sent) {
            if !packet.is_held_by_receiver && !packet.is_lost {
                packet.is_lost = true;
                self.lost += 1;
            }
        }
    }

    /// Selective: bit i says that packet `base + 1 + i` is there.
    fn note_bitmap(&mut self, now: Instant, bitmap: &[u8]) {
        let ways = self.packets.iter().take(self.sent).map(|packet| usize::from(packet.way) + 1).max();
        if ways.is_some_and(|ways| ways > self.newest_arrivals.len()) {
            self.newest_arrivals.resize(ways.unwrap_or_default(), 0);
        }
        for index in 1..self.sent {
            let bit = index - 1;
            let here = bitmap.get(bit / 8).is_some_and(|byte| byte & (1 << (bit % 8)) != 0);
            let packet = &mut self.packets[index];
            if here && !packet.is_held_by_receiver {
                packet.is_held_by_receiver = true;
                let newest = &mut self.newest_arrivals[usize::from(packet.way)];
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
            let overtaken = packet.order + REORDER_TOLERANCE <= self.newest_arrivals[usize::from(packet.way)];
            if overtaken && !packet.is_held_by_receiver && !packet.is_lost {
                packet.is_lost = true;
                self.lost += 1;
            }
        }
    }

    /// One of several ways is gone: what went over it is sent again at once.
    pub fn handle_way_lost(&mut self, now: Instant, way: u16) {
        self.round_trip.reset_back_off();
        for packet in self.packets.iter_mut().take(self.sent) {
            if packet.way == way && !packet.is_held_by_receiver && !packet.is_lost {
                packet.is_lost = true;
                self.lost += 1;
            }
        }
        if self.lost > 0 {
            self.deadline = Some(now + self.round_trip.timeout_ns());
        }
    }

    /// Packets to send now, as far as they have been made and the window is open.
    #[must_use]
    pub fn ready(&self) -> usize {
        let window = (self.limits.transport.window_packets as usize).saturating_sub(self.sent);
        self.lost + self.unsent().min(window)
    }

    /// Packets that may still be made before the window closes.
    #[must_use]
    pub fn room(&self) -> usize {
        (self.limits.transport.window_packets as usize).saturating_sub(self.packets.len())
    }

    /// Nothing in flight, and everything sent is visible.
    fn is_settled(&self) -> bool {
        self.sent == 0 && self.visible == self.first_unsent_operation()
    }

    // ---- time, paths, loss of the peer -----------------------------------------------------------------------------

    /// When `handle_timeout` is due.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Time has passed. Returns false when the retry limit is reached.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return true;
        }
        self.retries += 1;
        let limit = self.limits.transport.retry_count_max;
        if limit != 0 && self.retries > limit {
            self.deadline = None;
            return false;
        }
        self.round_trip.back_off();
        let is_probe = self.retries == 1 && self.limits.transport.mode == RetransmissionMode::Selective;
        if is_probe && self.sent > 0 {
            self.probe(now);
        } else {
            self.resend(now);
        }
        true
    }

    /// The first timeout may only mean that a host was slow: the oldest packet asks, and its acknowledgement tells what
    /// else is missing. A second one in a row means that everything is.
    fn probe(&mut self, now: Instant) {
        if let Some(oldest) = self.packets.get_mut(0)
            && !oldest.is_lost
        {
            oldest.is_lost = true;
            self.lost += 1;
        }
        self.deadline = Some(now + self.round_trip.timeout_ns());
    }

    /// The path changed: send again at once what is not acknowledged.
    pub fn handle_path_change(&mut self, now: Instant) {
        self.round_trip.reset_back_off();
        if self.sent > 0 {
            self.resend(now);
        }
    }

    fn resend(&mut self, now: Instant) {
        self.rewound_for = None;
        if self.sent > 0 {
            self.mark_all_lost();
        } else if self.visible != self.next_operation && self.packets.is_empty() {
            // Taken but not reported visible: an empty packet asks again.
            self.push_packet();
        }
        self.deadline = Some(now + self.round_trip.timeout_ns());
    }

    // W-23
    /// The receiver is lost. What was never sent is forgotten; what was sent keeps its numbers and says nothing, so
    /// that nothing stale is written should the same life of the receiver come back.
    pub fn void(&mut self) {
        self.next_operation = self.first_unsent_operation();
        self.packets.truncate(self.sent);
        self.packets.iter_mut().for_each(Packet::clear);
        self.visible = self.next_operation;
        self.deadline = None;
        self.retries = 0;
    }

    /// Packets in flight.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.sent
    }
}
