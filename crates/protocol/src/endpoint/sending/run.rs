//! Runs: consecutive packets of one own stream through one port.
//!
//! While only one stream's packets leave through a port, each differs from the one before only in its numbers. Frames
//! of higher priority (control frames, acknowledgements, transit) cannot become due before the poll iteration ends:
//! sending causes none, and the time does not change. So the conditions of all these packets are checked once, and
//! they are written one after another into the buffers of the device ([`Endpoint::send_run`]), or singly if memory
//! lends its bytes ([`Endpoint::continue_run`]).
//!
//! A packet unlike the last one, or one without credits, ends the run and takes the general path. `tests/fast_path.rs`
//! verifies that both paths have the same outcome.

use alloc::boxed::Box;

use crate::contract::{DirectMemory, Fill};
use crate::endpoint::Endpoint;
use crate::endpoint::peer::{Peer, Reach};
use crate::endpoint::sending::transmit::{gathered, place_operations};
use crate::endpoint::stream::Stream;
use crate::event::Event;
use crate::forwarding::outgoing::Outgoing;
use crate::ids::{Channel, Class, PortId};
use crate::memory::MemoryFault;
use crate::time::Instant;
use crate::transmit::{Body, Passage, Transmit};
use crate::transport::packet::{Packet, PayloadSource};
use crate::wire::header_prediction::FreshPacket;
use crate::wire::layout::{FABRIC, OPERATIONS};
use crate::wire::packed::make_void;

/// Stream during a run, with its counters.
struct Run {
    port: PortId,
    peer: Box<Peer>,
    class: Class,
    outgoing: Outgoing,
}

/// Packet that was sent for the first time in a run.
#[derive(Clone, Copy)]
struct Fresh {
    length: u32,
    /// True if its payload is still to be read from memory.
    is_gathered: bool,
}

impl Endpoint {
    /// Sends the first own packet of a poll iteration. If a link has several channels or retry, sending may make
    /// another frame due, so every packet there is a first one.
    pub(in crate::endpoint) fn begin_run(
        &mut self,
        now: Instant,
        port: PortId,
        channel: Channel,
        out: &mut [u8],
    ) -> Option<Transmit> {
        let transmit = self.transmit_data(now, port, channel, out)?;
        self.run = self.forwarder.trust(port).map(|_| port);
        Some(transmit)
    }

    /// Writes the packets of a run into the buffers that `fill` provides, including the first if no other frame is
    /// due. Returns true if any packet has left.
    pub(in crate::endpoint) fn send_run(
        &mut self,
        now: Instant,
        port: PortId,
        memory: &mut dyn DirectMemory,
        fill: &mut Fill<'_>,
    ) -> bool {
        if !memory.reads_at_once() || self.run != Some(port) && !self.may_begin_run(now, port) {
            return false;
        }
        let Some(mut run) = self.open_run(port) else { return false };
        fill(&mut |out| {
            let read = |source: &PayloadSource, out: &mut [u8]| {
                let at = OPERATIONS + source.split;
                let slot = out.get_mut(at..at + source.length)?;
                Some(memory.read_ahead(source.region, source.offset, slot, source.following))
            };
            Some(self.send_next(now, &mut run, out, read)?.length as usize)
        });
        let has_sent = self.close_run(run);
        if has_sent {
            self.run = Some(port);
        }
        has_sent
    }

    /// Returns true if no other frame must leave before own data, on a link with predictable headers.
    #[inline]
    fn may_begin_run(&self, now: Instant, port: PortId) -> bool {
        self.forwarder.trust(port).is_some()
            && self.ready_acks[port.index()].is_empty()
            && !self.forwarder.wants_transmit(now, port)
    }

    /// Sends the next own packet of a run.
    #[inline]
    pub(in crate::endpoint) fn continue_run(
        &mut self,
        now: Instant,
        port: PortId,
        out: &mut [u8],
    ) -> Option<Transmit> {
        let Some(mut run) = self.open_run(port) else {
            return self.transmit_data(now, port, Channel(0), out);
        };
        let fresh = self.send_next(now, &mut run, out, |_, _| Some(Ok(())));
        let packet = run.peer.streams.of(run.class).sender.last_fresh();
        let source =
            packet.filter(|_| fresh.is_some_and(|fresh| fresh.is_gathered)).and_then(|packet| packet.source);
        self.close_run(run);
        let Some(fresh) = fresh else { return self.transmit_data(now, port, Channel(0), out) };
        let (length, passage) = (fresh.length as usize, Passage::Plain);
        // Built from register values: a value written field by field and then copied as a whole waits for its fields.
        let body = source.as_ref().map_or(Body::Written, gathered);
        Some(Transmit { length, body, end_to_end_check: false, doorbell: true, passage })
    }

    /// Begins a run of the only queued stream, if its last packet left through this port and no exception applies.
    #[inline]
    fn open_run(&mut self, port: PortId) -> Option<Run> {
        if self.keeps_buffers_back() {
            return None;
        }
        let line = self.ready_data[port.index()].of(Channel(0));
        let (node, class) = line.front().copied().filter(|_| line.len() == 1)?;
        let outgoing = self.forwarder.begin_outgoing(port)?;
        let peer = self.peers[node.index()].take()?;
        let is_known = peer.streams.of(class).headers.template(port).is_some();
        if !is_known || peer.may_have_acks_due || peer.reach == Reach::Lost || peer.uses_several_paths() {
            self.put_back(peer);
            return None;
        }
        Some(Run { port, peer, class, outgoing })
    }

    /// Ends a run. Returns true if any packet has left in it.
    #[inline]
    fn close_run(&mut self, run: Run) -> bool {
        let Run { port, mut peer, class, outgoing } = run;
        self.forwarder.end_outgoing(port, &outgoing);
        if outgoing.has_sent() {
            self.arm_stream(&peer, peer.streams.of(class).sender.deadline());
            if !peer.is_sendable(class) {
                self.ready_data[port.index()].of_mut(Channel(0)).pop_front();
                peer.streams.of_mut(class).tickets = 0;
            }
        }
        self.put_back(peer);
        outgoing.has_sent()
    }

    /// Sends the next packet of a run if it is like the last one. `read` writes the payload, or returns nothing if
    /// there is no free space. Returns `None` if nothing has left.
    #[inline(always)]
    fn send_next(
        &mut self,
        now: Instant,
        run: &mut Run,
        out: &mut [u8],
        read: impl FnOnce(&PayloadSource, &mut [u8]) -> Option<Result<(), MemoryFault>>,
    ) -> Option<Fresh> {
        let Run { port, peer, class, outgoing } = run;
        let class = *class;
        let more_bulk = peer.has_more_bulk(class) && {
            self.cut_bulk(peer, class);
            peer.has_more_bulk(class)
        };
        let demand = self.demand(peer, class, peer.streams.of(class).sender.first_unsent());
        let Stream { sender, headers, .. } = peer.streams.of_mut(class);
        let template = headers.template(*port)?;
        let forwarder = &mut self.forwarder;
        sender.send_fresh(now, |packet, psn, is_last| {
            let length = OPERATIONS + packet.length();
            let mut unread = None;
            if let Some(source) = &packet.source {
                // Answers of gets are checked again when they leave.
                if source.answers.is_some() || !outgoing.admits(length) {
                    return None;
                }
                unread = read(source, out)?.err().map(|_| source);
            }
            let link = outgoing.number(length)?;
            // The window was open, so the uncut rest follows.
            let ack_now = is_last && !more_bulk;
            let &Packet { first_operation, operation_count, .. } = packet;
            let fresh = FreshPacket { psn, first_operation, operation_count, ack_now, demand };
            template.write_fresh(out, length - FABRIC, &link, fresh);
            place_operations(packet, out);
            if let Some(source) = unread {
                leave_void(source, &mut out[..length]);
                forwarder.push_event(Event::SourceFailed { region: source.region });
            }
            Some(Fresh { length: length as u32, is_gathered: packet.source.is_some() })
        })
    }
}

// W-52
/// Sends a packet whose bytes could not be read.
#[cold]
fn leave_void(source: &PayloadSource, frame: &mut [u8]) {
    make_void(&mut frame[OPERATIONS..], source.split);
}
