//! The fabric as one member sees it: its own ports, and the frames it holds under lease.
//!
//! A view made for one poll; it owns nothing. A port's device is full while its channel is busy: the member is polled
//! again when the channel opens, so it packs when the link grants.

use rackloom_protocol::{BatchedWires, Instant, KeptFrames, LeaseId, NodeId, PinnedFrames, PortId, Wires};

use crate::fabric::Fabric;
use crate::ids::ChannelId;
use crate::leases::Leases;
use crate::memory::payload::Payload;

/// Wires of one member during one poll.
#[derive(Debug)]
pub(crate) struct MemberWires<'f> {
    pub(crate) fabric: &'f mut Fabric,
    pub(crate) now: Instant,
    pub(crate) node: NodeId,
    /// Channels that leave the ports, by port.
    pub(crate) outgoing: &'f [ChannelId],
    pub(crate) leases: &'f mut Leases,
}

impl MemberWires<'_> {
    /// Returns the bytes of a leased frame, for memory that is about to take its payload.
    pub(crate) fn unload(&mut self, lease: LeaseId) -> &[u8] {
        self.leases.frame(lease).map_or(&[], |frame| self.fabric.unload(frame))
    }

    /// Attaches a reference to payload to the frame in the buffer of a port, in place of `length` bytes at `at`. If
    /// `is_whole`, the frame's bytes are read before it leaves, and these are zeros.
    pub(crate) fn load(&mut self, port: PortId, at: usize, length: usize, reference: u32, is_whole: bool) {
        let payload = Payload { at: at as u16, length: length as u16, source: self.node, reference };
        self.fabric.load(self.outgoing[port.index()], payload, is_whole);
    }
}

impl Wires for MemberWires<'_> {
    fn slot(&mut self, port: PortId) -> Option<&mut [u8]> {
        let frame = self.fabric.write_slot(self.now, *self.outgoing.get(port.index())?)?;
        Some(self.fabric.frames.buffer_mut(frame))
    }

    fn copy_lease(&mut self, port: PortId, lease: LeaseId, at: usize, length: usize) {
        let write_slot = self.fabric.channel(self.outgoing[port.index()]).write_slot;
        if let (Some(write_slot), Some(frame)) = (write_slot, self.leases.frame(lease)) {
            self.fabric.frames.hand_over(frame, write_slot, at, length);
        }
    }

    fn commit(&mut self, port: PortId, length: usize, _doorbell: bool) {
        self.fabric.commit(self.now, self.outgoing[port.index()], length);
    }

    /// Returns the stored bytes, without payload that the frame refers to ([`MemberWires::unload`]).
    fn leased(&self, lease: LeaseId) -> &[u8] {
        self.leases.frame(lease).map_or(&[], |frame| self.fabric.frames.bytes(frame))
    }

    fn release(&mut self, lease: LeaseId) {
        if let Some(frame) = self.leases.take_back(lease) {
            self.fabric.frames.release(frame);
        }
    }
}

impl BatchedWires for MemberWires<'_> {}

impl KeptFrames for MemberWires<'_> {
    fn keep(&mut self, port: PortId, _length: usize, others: usize) -> bool {
        self.fabric.keep(self.outgoing[port.index()], others);
        true
    }

    fn load_kept(&mut self, port: PortId, behind: usize) {
        self.fabric.load_kept(self.outgoing[port.index()], behind);
    }
}

impl PinnedFrames for MemberWires<'_> {}
