//! Responder: executes requests of peers on the objects of this process.
//!
//! Checks come before the first byte is written, so a refused request changes no memory. A responder that refuses a request of a connection
//! enters the error state itself and reports an event, as devices do.

use super::flights::WINDOW;
use super::memory::{Piece, Region, Remote, copy, total, update};
use super::objects::Objects;
use super::rules::{Service, State};
use super::transport::{
    Address, Arriving, Datagram, Due, MESSAGE_NUMBERS, Notice, Operation, Outcome, Payload, Request, Target,
    port_of,
};
use super::work::{Receive, Status};
use crate::layout::Gid;
use crate::layout::constants::*;
use crate::layout::work::Wc;

/// Bytes of the header in front of each datagram.
const HEADER_BYTES: usize = 40;

/// Time of each code of `min_rnr_timer`, in units of 10 microseconds.
const NOT_READY_WAITS: [u64; 32] = [
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048,
    3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
];

impl Target for Objects {
    fn execute(&mut self, request: &Request) -> Outcome {
        let number = request.to.queue_pair;
        if let Operation::Datagram { payload, immediate, is_solicited, header } = &request.operation {
            self.receive_datagram(request, payload, *immediate, *is_solicited, header);
            return Outcome::Done;
        }
        if let Err(outcome) = self.admit(request.from, number) {
            return outcome;
        }
        match &request.operation {
            Operation::Send { payload, immediate, is_solicited } => {
                let notice = Notice { immediate: *immediate, is_solicited: *is_solicited };
                self.receive(number, &payload.pieces(), notice)
            }
            Operation::Write { payload, remote, immediate, is_solicited } => {
                let notice = Notice { immediate: *immediate, is_solicited: *is_solicited };
                self.write(number, payload, *remote, notice)
            }
            Operation::Read { into, remote } => self.read(number, into, *remote),
            Operation::FetchAdd { into, remote, add } => {
                self.atomic(number, into, *remote, |old| Some(old.wrapping_add(*add)))
            }
            Operation::CompareSwap { into, remote, expected, new } => {
                self.atomic(number, into, *remote, |old| (old == *expected).then_some(*new))
            }
            Operation::Datagram { .. } => unreachable!("a datagram is received above"),
        }
    }

    fn permit(
        &mut self,
        from: Address,
        to: u32,
        remote: Remote,
        length: u64,
        right: u32,
    ) -> Result<Region, Outcome> {
        self.admit(from, to)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        self.remote(to, remote, length, right)?;
        // No bytes are accessed if the region is not there, and any key will do.
        let none = Region { domain: 0, base: 0, virtual_base: remote.address, length: 0, access: right };
        Ok(self.regions.get(remote.key).unwrap_or(none))
    }

    fn begin_message(&mut self, from: Address, to: u32, length: u64) -> Result<Arriving, Outcome> {
        self.admit(from, to)?;
        self.open_receive(to, usize::try_from(length).unwrap_or(usize::MAX))
    }

    fn end_message(&mut self, arriving: Arriving, notice: Notice, is_complete: bool) -> Outcome {
        let Arriving { queue_pair, receive, pieces } = arriving;
        let is_receiving = self.queue_pairs.get(&queue_pair).is_some_and(|pair| pair.state.is_receiving());
        if !is_complete || !is_receiving {
            self.fail_receive(queue_pair, &receive, Status::Flushed);
            return Outcome::NoAnswer;
        }
        self.close_receive(queue_pair, &receive, (WC_RECV, total(&pieces)), notice)
    }

    fn complete_write(&mut self, from: Address, to: u32, length: u64, notice: Notice) -> Outcome {
        if let Err(outcome) = self.admit(from, to) {
            return outcome;
        }
        self.notice_write(to, usize::try_from(length).unwrap_or(usize::MAX), notice)
    }

    fn due(&self, from: Address, to: u32, message: u32) -> Due {
        let Some(pair) = self.queue_pairs.get(&to).filter(|_| self.is_open(from, to)) else {
            return Due::Never;
        };
        let ahead = (message % MESSAGE_NUMBERS + MESSAGE_NUMBERS - pair.next_message) % MESSAGE_NUMBERS;
        match ahead as usize {
            0 => Due::Now,
            ahead if ahead < WINDOW => Due::Later,
            ahead if ahead >= MESSAGE_NUMBERS as usize - WINDOW => Due::Before,
            _ => Due::Never,
        }
    }

    fn is_open(&self, from: Address, to: u32) -> bool {
        let pair = self.queue_pairs.get(&to);
        pair.is_some_and(|pair| pair.service == Service::Rc && pair.peer == from && pair.state.is_receiving())
    }
}

/// Returns the first bytes of pieces, or `None` if there are too few.
fn first(pieces: Vec<Piece>, length: usize) -> Option<Vec<Piece>> {
    let mut left = length;
    let mut taken = Vec::with_capacity(pieces.len());
    for piece in pieces {
        if left == 0 {
            break;
        }
        let part = piece.part(0..piece.length().min(left));
        left -= part.length();
        taken.push(part);
    }
    (left == 0).then_some(taken)
}

impl Objects {
    /// Checks that a queue pair executes requests of this peer.
    fn admit(&mut self, from: Address, number: u32) -> Result<(), Outcome> {
        if !self.is_open(from, number) {
            return Err(Outcome::NoAnswer);
        }
        let Some(pair) = self.queue_pairs.get_mut(&number) else { return Err(Outcome::NoAnswer) };
        if pair.state == State::Rtr && !std::mem::replace(&mut pair.is_established, true) {
            pair.report_event(EVENT_COMM_EST);
        }
        Ok(())
    }

    /// Answers that no receive is posted.
    fn not_ready(&self, number: u32) -> Outcome {
        let code = self.queue_pairs.get(&number).map_or(0, |pair| pair.attributes.min_rnr_timer);
        Outcome::NotReady { wait_ns: NOT_READY_WAITS[usize::from(code) % NOT_READY_WAITS.len()] * 10_000 }
    }

    /// Refuses a request: the responder reports an event and enters the error state.
    fn refuse(&mut self, number: u32, event: u32, outcome: Outcome) -> Outcome {
        if let Some(pair) = self.queue_pairs.get_mut(&number) {
            pair.report_event(event);
            pair.enter_error();
            self.stalled.remove(&number);
        }
        outcome
    }

    /// Fails a receive: its completion has the status, and the responder enters the error state.
    fn fail_receive(&mut self, number: u32, receive: &Receive, status: Status) {
        if let Some(pair) = self.queue_pairs.get_mut(&number) {
            let completion = Wc { status: status as u32, opcode: WC_RECV, ..Wc::default() };
            pair.report_receive(receive, completion, false);
            pair.enter_error();
            self.stalled.remove(&number);
        }
    }

    /// Takes a receive for a message of the connected peer: the following message is the next one.
    fn accept_message(&mut self, number: u32) -> Option<(Receive, u32)> {
        let taken = self.take_receive(number)?;
        if let Some(pair) = self.queue_pairs.get_mut(&number) {
            pair.next_message = (pair.next_message + 1) % MESSAGE_NUMBERS;
        }
        Some(taken)
    }

    /// Takes a receive for a message, and checks that its memory has the length.
    fn open_receive(&mut self, number: u32, length: usize) -> Result<Arriving, Outcome> {
        let Some((receive, domain)) = self.accept_message(number) else { return Err(self.not_ready(number)) };
        let Some(pieces) = self.pieces(&receive.parts, domain, ACCESS_LOCAL_WRITE) else {
            self.fail_receive(number, &receive, Status::LocalProtection);
            return Err(Outcome::OperationFailed);
        };
        let Some(pieces) = first(pieces, length) else {
            self.fail_receive(number, &receive, Status::LocalLength);
            return Err(Outcome::InvalidRequest);
        };
        Ok(Arriving { queue_pair: number, receive, pieces })
    }

    /// Completes a receive with the operation and the number of bytes.
    fn close_receive(
        &mut self,
        number: u32,
        receive: &Receive,
        (opcode, length): (u32, usize),
        notice: Notice,
    ) -> Outcome {
        let completion = received(opcode, length, notice.immediate);
        if let Some(pair) = self.queue_pairs.get_mut(&number) {
            pair.report_receive(receive, completion, notice.is_solicited);
        }
        Outcome::Done
    }

    /// Completes a receive for the immediate data of a write.
    fn notice_write(&mut self, number: u32, length: usize, notice: Notice) -> Outcome {
        let Some((receive, _)) = self.accept_message(number) else { return self.not_ready(number) };
        self.close_receive(number, &receive, (WC_RECV_RDMA_WITH_IMM, length), notice)
    }

    /// Puts a message of the connected peer into a receive.
    fn receive(&mut self, number: u32, parts: &[Piece], notice: Notice) -> Outcome {
        let arriving = match self.open_receive(number, total(parts)) {
            Ok(arriving) => arriving,
            Err(outcome) => return outcome,
        };
        let length = copy(parts, &arriving.pieces);
        self.close_receive(number, &arriving.receive, (WC_RECV, length), notice)
    }

    /// Checks that a queue pair accepts an operation and that remote memory allows it. Nothing is checked for no bytes.
    fn remote(
        &mut self,
        number: u32,
        remote: Remote,
        length: usize,
        right: u32,
    ) -> Result<Vec<Piece>, Outcome> {
        let Some(pair) = self.queue_pairs.get(&number) else { return Err(Outcome::NoAnswer) };
        let lacks_depth = right != ACCESS_REMOTE_WRITE && pair.attributes.max_dest_rd_atomic == 0;
        if pair.attributes.qp_access_flags & right == 0 || lacks_depth {
            return Err(self.refuse(number, EVENT_QP_REQ_ERR, Outcome::InvalidRequest));
        }
        if length == 0 {
            return Ok(Vec::new());
        }
        let piece = self.regions.piece(remote.key, pair.domain, remote.address, length as u64, right);
        match piece {
            Some(piece) => Ok(vec![piece]),
            None => Err(self.refuse(number, EVENT_QP_ACCESS_ERR, Outcome::AccessDenied)),
        }
    }

    fn write(&mut self, number: u32, payload: &Payload, remote: Remote, notice: Notice) -> Outcome {
        let length = payload.length();
        let target = match self.remote(number, remote, length, ACCESS_REMOTE_WRITE) {
            Ok(target) => target,
            Err(outcome) => return outcome,
        };
        if notice.immediate.is_some() && !self.has_receive(number) {
            return self.not_ready(number);
        }
        copy(&payload.pieces(), &target);
        if notice.immediate.is_some() { self.notice_write(number, length, notice) } else { Outcome::Done }
    }

    fn read(&mut self, number: u32, into: &[Piece], remote: Remote) -> Outcome {
        match self.remote(number, remote, total(into), ACCESS_REMOTE_READ) {
            Ok(source) => {
                copy(&source, into);
                Outcome::Done
            }
            Err(outcome) => outcome,
        }
    }

    fn atomic(
        &mut self,
        number: u32,
        into: &[Piece],
        remote: Remote,
        change: impl Fn(u64) -> Option<u64>,
    ) -> Outcome {
        let value = match self.remote(number, remote, 8, ACCESS_REMOTE_ATOMIC) {
            Ok(pieces) => pieces[0],
            Err(outcome) => return outcome,
        };
        let Some(old) = update(value, change) else {
            return self.refuse(number, EVENT_QP_REQ_ERR, Outcome::InvalidRequest);
        };
        copy(&[Piece::of_bytes(&old.to_ne_bytes())], into);
        Outcome::Done
    }

    /// Puts a datagram into a receive, behind a header. It is lost if no queue pair takes it.
    fn receive_datagram(
        &mut self,
        request: &Request,
        payload: &Payload,
        immediate: Option<u32>,
        is_solicited: bool,
        header: &Datagram,
    ) {
        let number = request.to.queue_pair;
        let takes = self.queue_pairs.get(&number).is_some_and(|pair| {
            let is_open = pair.service == Service::Ud && pair.state.is_receiving();
            is_open
                && pair.attributes.qkey == header.key
                && request.to.node.map(port_of) == Some(pair.attributes.port_num)
        });
        if !takes {
            return;
        }
        let Some((receive, domain)) = self.take_receive(number) else { return };
        let Some(target) = self.pieces(&receive.parts, domain, ACCESS_LOCAL_WRITE) else {
            self.fail_receive(number, &receive, Status::LocalProtection);
            return;
        };
        let length = HEADER_BYTES + payload.length();
        if length > total(&target) {
            self.fail_receive(number, &receive, Status::LocalLength);
            return;
        }
        let is_ipv4 = mapped(&header.destination).is_some();
        let route = route_header(header, payload.length());
        let mut parts = vec![Piece::of_bytes(&route)];
        parts.extend(payload.pieces());
        copy(&parts, &target);
        let mut completion = received(WC_RECV, length, immediate);
        completion.src_qp = request.from.queue_pair;
        completion.wc_flags |= WC_GRH;
        // Clients read the kind of header here: 10 is IPv4, 9 is IPv6.
        completion.sl = if is_ipv4 { 10 } else { 9 };
        if let Some(pair) = self.queue_pairs.get_mut(&number) {
            pair.report_receive(&receive, completion, is_solicited);
        }
    }
}

/// Returns the completion of a receive with data.
fn received(opcode: u32, length: usize, immediate: Option<u32>) -> Wc {
    Wc {
        opcode,
        byte_len: u32::try_from(length).unwrap_or(u32::MAX),
        imm_data: immediate.unwrap_or_default(),
        wc_flags: if immediate.is_some() { WC_WITH_IMM } else { 0 },
        ..Wc::default()
    }
}

/// Returns the IPv4 address in an address, or `None`.
fn mapped(address: &Gid) -> Option<[u8; 4]> {
    let prefix = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    address.strip_prefix(&prefix[..]).and_then(|rest| rest.try_into().ok())
}

/// Returns the header of a datagram: an IPv6 header, or an IPv4 header in the last 20 bytes.
fn route_header(header: &Datagram, length: usize) -> [u8; HEADER_BYTES] {
    /// Bytes of the headers of UDP and of the transport, and of the check value behind the data.
    const OTHER_HEADERS: usize = 8 + 12 + 8 + 4;
    const UDP: u8 = 17;
    let mut bytes = [0; HEADER_BYTES];
    let size = |extra: usize| u16::try_from(length + OTHER_HEADERS + extra).unwrap_or(u16::MAX).to_be_bytes();
    if let (Some(source), Some(destination)) = (mapped(&header.source), mapped(&header.destination)) {
        let ip = &mut bytes[20..];
        (ip[0], ip[1]) = (0x45, header.traffic_class);
        ip[2..4].copy_from_slice(&size(20));
        (ip[8], ip[9]) = (header.hop_limit, UDP);
        ip[12..16].copy_from_slice(&source);
        ip[16..20].copy_from_slice(&destination);
        let sum: u32 = ip.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        let check = !u16::try_from((folded & 0xffff) + (folded >> 16)).unwrap_or(u16::MAX);
        bytes[30..32].copy_from_slice(&check.to_be_bytes());
    } else {
        let first = 6 << 28 | u32::from(header.traffic_class) << 20 | header.flow_label & 0xf_ffff;
        bytes[..4].copy_from_slice(&first.to_be_bytes());
        bytes[4..6].copy_from_slice(&size(0));
        (bytes[6], bytes[7]) = (UDP, header.hop_limit);
        bytes[8..24].copy_from_slice(&header.source);
        bytes[24..].copy_from_slice(&header.destination);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv4_header_has_a_right_check_sum_and_both_addresses() {
        let mut header = Datagram {
            key: 0,
            source: [0; 16],
            destination: [0; 16],
            traffic_class: 7,
            flow_label: 0,
            hop_limit: 64,
        };
        header.source[10..].copy_from_slice(&[0xff, 0xff, 10, 82, 0, 1]);
        header.destination[10..].copy_from_slice(&[0xff, 0xff, 10, 82, 0, 2]);
        let bytes = route_header(&header, 100);
        assert_eq!(bytes[..20], [0; 20]);
        assert_eq!(bytes[32..], [10, 82, 0, 1, 10, 82, 0, 2]);
        let sum: u32 = bytes[20..].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        header.destination[10] = 0;
        let bytes = route_header(&header, 100);
        assert_eq!(
            (bytes[0] >> 4, &bytes[8..24], &bytes[24..]),
            (6, &header.source[..], &header.destination[..])
        );
    }
}
