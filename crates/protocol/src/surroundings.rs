//! What surrounds a member: its wires and its memory, and the one order in which it is asked what it wants.
//!
//! A real event loop and the simulator both implement [`Wires`] and [`Memory`] and both call [`drain`]. Neither
//! calls `poll_*` itself; that is why they cannot differ.

use crate::error::CommandRefused;
use crate::event::Event;
use crate::ids::{PortId, RegionId};
use crate::link::counters::PortCounters;
use crate::memory::{LeaseId, MemoryAccess, MemoryDone, MemoryFault, MemoryRequest, MemoryToken};
use crate::operation::Command;
use crate::time::Instant;
use crate::wire;

/// A member of the fabric: an endpoint or a switch.
pub trait Member {
    /// A frame came in. `bytes` stay readable under `lease` until the member releases it.
    fn handle_frame(&mut self, now: Instant, port: PortId, lease: LeaseId, bytes: &[u8]);
    /// Memory answered.
    fn handle_memory_done(&mut self, now: Instant, token: MemoryToken, done: MemoryDone<'_>);
    /// The caller wants something. A switch takes no commands.
    fn handle_command(&mut self, now: Instant, command: Command<'_>) -> Result<(), CommandRefused>;
    /// The device at `port` lost or regained its carrier.
    fn handle_carrier(&mut self, now: Instant, port: PortId, up: bool);
    /// The time that `poll_timeout` named has come (calling too early is harmless).
    fn handle_timeout(&mut self, now: Instant);
    /// Bring routes up to date with everything heard in this turn; [`drain`] begins with it. A member without routes
    /// has nothing to do.
    fn settle(&mut self, now: Instant) {
        let _ = now;
    }
    /// The next thing that memory must do, in order.
    fn poll_memory(&mut self) -> Option<MemoryRequest<'_>>;
    /// Whether `poll_transmit` would produce a frame for this port now.
    fn wants_transmit(&self, now: Instant, port: PortId) -> bool;
    /// The first port from `from` on for which `poll_transmit` may produce a frame now. A member with many ports knows better
    /// than to name every one.
    fn next_port(&mut self, now: Instant, from: PortId) -> Option<PortId> {
        let _ = now;
        (from.index() < self.port_count()).then_some(from)
    }
    /// Write the next frame for `port` into `out`, which holds at least the largest frame.
    fn poll_transmit(&mut self, now: Instant, port: PortId, out: &mut [u8]) -> Option<Transmit>;
    /// A frame that the member wants a copy of is complete but for what the link adds last: seal it and keep it. Called
    /// between `poll_transmit` and the device, where the frame was [`Passage::Kept`].
    fn keep_sent(&mut self, now: Instant, port: PortId, frame: &mut [u8]) {
        let _ = (now, port, frame);
    }
    /// The next lease that nothing refers to any more.
    fn poll_release(&mut self) -> Option<LeaseId>;
    /// The next thing that happened.
    fn poll_event(&mut self) -> Option<Event>;
    /// When `handle_timeout` must be called next; [`Instant::NEVER`] if nothing runs.
    fn poll_timeout(&self) -> Instant;
    /// Number of ports.
    fn port_count(&self) -> usize;
    /// What has passed through a port.
    fn port_counters(&self, port: PortId) -> &PortCounters;
}

/// A frame that a member wants sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Length of the frame in bytes.
    pub length: usize,
    /// Bytes that the surroundings still have to put into it.
    pub body: Body,
    /// The end-to-end check must be computed once the body is in place.
    pub end_to_end_check: bool,
    /// A sleeping receiver must be woken. Heartbeats do not.
    pub doorbell: bool,
    /// What link-level retry makes of it.
    pub passage: Passage,
}

/// What link-level retry makes of a frame that leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Passage {
    /// Nothing: there is none on this link, or the frame is none of its business.
    #[default]
    Plain,
    /// The member keeps a copy until the neighbour has acknowledged it.
    Kept,
    /// It leaves without protection.
    Unprotected,
    /// It does not leave at all.
    Discarded,
}

/// Where the rest of a frame's bytes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// The frame is complete.
    Written,
    /// Bytes of the member's own memory.
    Memory {
        /// Region to read.
        region: RegionId,
        /// First byte in the region.
        offset: u64,
        /// First byte in the frame.
        at: usize,
        /// Number of bytes.
        length: usize,
    },
    /// Bytes of a received frame that is passed on.
    Lease {
        /// The received frame.
        lease: LeaseId,
        /// First byte in both frames.
        at: usize,
        /// Number of bytes.
        length: usize,
    },
}

/// The frame devices of one member. A device may drop, duplicate, reorder and corrupt; it never blocks and never
/// invents.
pub trait Wires {
    /// Room for one frame of the largest size on `port`; `None` while the device is full. Asking twice without a
    /// commit gives the same room.
    fn slot(&mut self, port: PortId) -> Option<&mut [u8]>;
    /// Copy `length` bytes at `at` of a leased frame to the same place in the room that [`Wires::slot`] gave. The frame is
    /// not read again under this lease, so a device may move its bytes instead.
    fn copy_lease(&mut self, port: PortId, lease: LeaseId, at: usize, length: usize);
    /// Send the first `length` bytes of the room. `doorbell`: wake a sleeping receiver.
    fn commit(&mut self, port: PortId, length: usize, doorbell: bool);
    /// The bytes of a leased frame.
    fn leased(&self, lease: LeaseId) -> &[u8];
    /// The member no longer refers to this frame.
    fn release(&mut self, lease: LeaseId);
}

/// The memory of one member.
pub trait Memory {
    /// Carry out a request. `frame` holds the leased frame of a write. `None`: the answer comes later, through
    /// [`Member::handle_memory_done`].
    fn execute<'m>(&'m mut self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryDone<'m>>;
    /// Read bytes that are about to be sent. The range lies within a registered region; surroundings revoke a region before
    /// they take its bytes away.
    fn read(&mut self, region: RegionId, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault>;
    /// Write bytes on behalf of the member's own caller.
    fn write(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault>;
}

/// Ask a member for everything it wants, in the one fixed order: routes, memory, frames port by port, leases,
/// events.
///
/// Returns whether anything happened.
pub fn drain<M, W, R>(
    member: &mut M,
    now: Instant,
    wires: &mut W,
    memory: &mut R,
    events: &mut impl FnMut(Event),
) -> bool
where
    M: Member + ?Sized,
    W: Wires + ?Sized,
    R: Memory + ?Sized,
{
    member.settle(now);
    let mut progress = drain_memory(member, now, wires, memory);
    let mut from = PortId(0);
    while let Some(port) = member.next_port(now, from) {
        from = PortId(port.0 + 1);
        while member.wants_transmit(now, port) {
            let Some(out) = wires.slot(port) else { break };
            let Some(transmit) = member.poll_transmit(now, port, out) else { break };
            complete(member, now, port, &transmit, wires, memory);
            progress = true;
        }
    }
    while let Some(lease) = member.poll_release() {
        wires.release(lease);
    }
    while let Some(event) = member.poll_event() {
        events(event);
        progress = true;
    }
    progress
}

fn drain_memory<M, W, R>(member: &mut M, now: Instant, wires: &W, memory: &mut R) -> bool
where
    M: Member + ?Sized,
    W: Wires + ?Sized,
    R: Memory + ?Sized,
{
    let mut progress = false;
    while let Some(request) = member.poll_memory() {
        let token = request.token;
        let frame = match request.access {
            MemoryAccess::Write { lease, .. } => wires.leased(lease),
            MemoryAccess::Read { .. } | MemoryAccess::Atomic { .. } => &[],
        };
        if let Some(done) = memory.execute(&request, frame) {
            // A fresh value: the answer's memory has just been written in part, behind a copy of the whole frame that may
            // still be on its way to the cache, and would be read back as a whole.
            let done = if matches!(done, MemoryDone::Written) { MemoryDone::Written } else { done };
            member.handle_memory_done(now, token, done);
        }
        progress = true;
    }
    progress
}

fn complete<M, W, R>(
    member: &mut M,
    now: Instant,
    port: PortId,
    transmit: &Transmit,
    wires: &mut W,
    memory: &mut R,
) where
    M: Member + ?Sized,
    W: Wires + ?Sized,
    R: Memory + ?Sized,
{
    if let Body::Lease { lease, at, length } = transmit.body {
        wires.copy_lease(port, lease, at, length);
    }
    if let Body::Memory { region, offset, at, length } = transmit.body
        && let Some(out) = wires.slot(port)
    {
        // Only memory that is taken away before its region is revoked comes here: gets are refused by then, and a put's own
        // caller has broken his promise to keep the source.
        if memory.read(region, offset, &mut out[at..at + length]).is_err() {
            out[at..at + length].fill(0);
        }
    }
    if transmit.end_to_end_check
        && let Some(out) = wires.slot(port)
    {
        wire::seal_end_to_end(&mut out[..transmit.length]);
    }
    match transmit.passage {
        Passage::Plain | Passage::Unprotected => {}
        Passage::Kept => {
            if let Some(out) = wires.slot(port) {
                member.keep_sent(now, port, &mut out[..transmit.length]);
            }
        }
        // Room that is asked for and not committed is given again.
        Passage::Discarded => return,
    }
    wires.commit(port, transmit.length, transmit.doorbell);
}
