//! Interfaces between a member and its engine: the member, its wires and its memory, and the order of polling.
//!
//! A real event loop and the simulator both implement [`Wires`] and [`Memory`] and both call [`drain`]. Neither calls
//! `poll_*` itself, so they cannot differ.

use crate::error::CommandRefused;
use crate::event::Event;
use crate::ids::{PortId, RegionId};
use crate::memory::{FrameRange, LeaseId, MemoryAccess, MemoryDone, MemoryFault, MemoryRequest, MemoryToken};
use crate::operation::Command;
use crate::time::Instant;
use crate::transmit::{Body, Following, Passage, Transmit};
use crate::wire;

/// Member of the fabric: an endpoint or a switch.
pub trait Member {
    /// Handles a received frame. `bytes` stay readable under `lease` until the member releases it.
    fn handle_frame(&mut self, now: Instant, port: PortId, lease: LeaseId, bytes: &[u8]);
    /// Handles a received frame completely, with direct access to memory. Returns true if the frame is finished and
    /// needs no lease. Returns false if nothing was changed; call [`Member::handle_frame`] then. The outcome is the
    /// same as that of `handle_frame`, without the cost of a lease and a memory request.
    fn take_at_once(&mut self, now: Instant, port: PortId, bytes: &[u8], memory: &mut dyn Memory) -> bool {
        let _ = (now, port, bytes, memory);
        false
    }
    /// Handles an answer of memory.
    fn handle_memory_done(&mut self, now: Instant, token: MemoryToken, done: MemoryDone<'_>);
    /// Handles a command of the caller. A switch refuses all commands.
    ///
    /// # Errors
    /// If the command is refused; nothing was done then.
    fn handle_command(&mut self, now: Instant, command: Command<'_>) -> Result<(), CommandRefused>;
    /// Handles a loss or return of the carrier of the device at `port`.
    fn handle_carrier(&mut self, now: Instant, port: PortId, up: bool);
    /// Handles the passage of time, when the time of `poll_timeout` has come. An early call is harmless.
    fn handle_timeout(&mut self, now: Instant);
    /// Updates routes with all reports received in this poll iteration; [`drain`] begins with it. A member without
    /// routes does nothing.
    fn settle(&mut self, now: Instant) {
        let _ = now;
    }
    /// Returns the next memory request, in order.
    fn poll_memory(&mut self) -> Option<MemoryRequest<'_>>;
    /// Returns true if `poll_transmit` would produce a frame for this port now.
    fn wants_transmit(&self, now: Instant, port: PortId) -> bool;
    /// Returns the first port from `from` on for which `poll_transmit` may produce a frame now. A member with many
    /// ports overrides this to skip idle ones.
    fn next_port(&mut self, now: Instant, from: PortId) -> Option<PortId> {
        let _ = now;
        (from.index() < self.port_count()).then_some(from)
    }
    /// Writes the next frame for `port` into `out`, which has room for the largest frame.
    fn poll_transmit(&mut self, now: Instant, port: PortId, out: &mut [u8]) -> Option<Transmit>;
    /// Sends own frames that differ from the last one through `port` in their numbers only. `fill` gets a function
    /// that writes them one after another, complete. Returns true if any has left. The frames are those that
    /// [`Member::poll_transmit`] would send, without the repeated checks.
    fn send_run(&mut self, now: Instant, port: PortId, memory: &mut dyn Memory, fill: &mut Fill<'_>) -> bool {
        let _ = (now, port, memory, fill);
        false
    }
    /// Completes and keeps a copy of a frame with [`Passage::Kept`], unless the device has one (`is_kept`). Called
    /// between `poll_transmit` and the device.
    fn keep_sent(&mut self, now: Instant, port: PortId, frame: &mut [u8], is_kept: bool) {
        let _ = (now, port, frame, is_kept);
    }
    /// Returns the number of frames of `port` that may have to be replayed, the last one included, or `None` without
    /// link-level retry.
    fn repeatable(&self, port: PortId) -> Option<usize> {
        let _ = port;
        None
    }
    /// Updates a replayed frame ([`Passage::Repeated`]) in the device's slot, which contains it as it was kept.
    fn refresh_sent(&mut self, port: PortId, frame: &mut [u8]) {
        let _ = (port, frame);
    }
    /// Records that bytes of this region could not be read for a frame, which leaves void.
    fn note_source_failed(&mut self, region: RegionId) {
        let _ = region;
    }
    /// Returns the next lease that nothing refers to any more.
    fn poll_release(&mut self) -> Option<LeaseId>;
    /// Returns the next event.
    fn poll_event(&mut self) -> Option<Event>;
    /// Returns the time of the next `handle_timeout`, or [`Instant::NEVER`] if no timer runs.
    fn poll_timeout(&self) -> Instant;
    /// Returns true if ports that were polled before may have something to send since the last call; all must be
    /// polled again.
    fn must_poll_again(&mut self) -> bool {
        false
    }
    /// Number of ports.
    fn port_count(&self) -> usize;
    /// Sets the part of the present silence of the neighbour at `port` that does not count, in nanoseconds, because
    /// its host had no processor for it. An engine on a real host calls this before [`Member::handle_timeout`]; in
    /// virtual time no such evidence exists.
    fn excuse_silence(&mut self, now: Instant, port: PortId, excused_ns: u64) {
        let _ = (now, port, excused_ns);
    }
}

/// Writes the next frame into the buffer and returns its length, or `None` if there is no further frame.
pub type Write<'w> = dyn FnMut(&mut [u8]) -> Option<usize> + 'w;

/// Calls its argument with a buffer per frame, as long as there are buffers and it writes frames.
pub type Fill<'f> = dyn FnMut(&mut Write<'_>) + 'f;

/// Frame devices of one member. A device may drop, duplicate, reorder and corrupt frames; it never blocks and never
/// invents frames.
pub trait Wires {
    /// Returns a buffer for one frame of the largest size on `port`, or `None` while the device is full. Repeated
    /// calls without a commit return the same buffer.
    fn slot(&mut self, port: PortId) -> Option<&mut [u8]>;
    /// Copies `length` bytes at `at` of a leased frame to the same offset in the buffer of [`Wires::slot`]. The frame
    /// is not read again under this lease, so a device may move its bytes instead.
    fn copy_lease(&mut self, port: PortId, lease: LeaseId, at: usize, length: usize);
    /// Keeps a copy of the frame in the buffer of [`Wires::slot`], in addition to the last `others` kept frames of
    /// this port; older ones may be discarded. Returns false if the device never keeps frames, so that the member
    /// does. A device that is only a model need not copy them.
    fn keep(&mut self, port: PortId, length: usize, others: usize) -> bool {
        let _ = (port, length, others);
        false
    }
    /// Writes a kept frame into the buffer of [`Wires::slot`]: the one after which `behind` were kept on this port.
    fn recall(&mut self, port: PortId, behind: usize) {
        let _ = (port, behind);
    }
    /// Sends the first `length` bytes of the buffer. `doorbell` wakes a sleeping receiver.
    fn commit(&mut self, port: PortId, length: usize, doorbell: bool);
    /// Sends frames as `write` writes them, until it writes none or there is no buffer.
    fn fill(&mut self, port: PortId, write: &mut Write<'_>) {
        while let Some(length) = self.slot(port).and_then(&mut *write) {
            self.commit(port, length, true);
        }
    }
    /// Ends a sequence of commits on this port: makes them visible to the neighbour, for devices that delay that.
    fn show(&mut self, port: PortId) {
        let _ = port;
    }
    /// Returns the bytes of a leased frame.
    fn leased(&self, lease: LeaseId) -> &[u8];
    /// Returns the bytes of a leased frame, for memory that is about to take its payload.
    fn unload(&mut self, lease: LeaseId) -> &[u8] {
        self.leased(lease)
    }
    /// Attaches a loan of [`Memory::lend`] to the frame in the buffer of [`Wires::slot`], in place of `length` bytes
    /// at `at`. If `is_whole`, the frame's bytes are read before it leaves, and these are zeros.
    fn load(&mut self, port: PortId, at: usize, length: usize, loan: Loan, is_whole: bool) {
        let _ = (port, at, length, loan, is_whole);
    }
    /// Releases a frame to which the member no longer refers.
    fn release(&mut self, lease: LeaseId);
}

/// Copy of one range of values to another, or an element-wise combination of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combine {
    /// Address of the result and of the left operands.
    pub target: (RegionId, u64),
    /// Address of the right operands. The ranges are equal or do not overlap.
    pub source: (RegionId, u64),
    /// Length of either range, in bytes.
    pub length: u64,
    /// Operation and number format; `None` copies.
    pub how: Option<(Arithmetic, Number)>,
}

/// Operation on two values. The collectives crate defines its exact results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum Arithmetic {
    Sum,
    Min,
    Max,
    Product,
}

/// Number format of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum Number {
    F32,
    F64,
    F16,
    Bf16,
    I32,
    I64,
}

/// Loan of memory to its own wires: a number with a meaning to both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loan(pub u32);

/// Result of a comparison of memory with expected bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// All bytes are equal, as far as they are stored.
    Same,
    /// At least one byte differs. If single bytes are not stored, the bytes found have no meaning.
    Different,
    /// The memory does not store these bytes.
    NotKept,
}

/// Memory of one member.
pub trait Memory {
    /// Executes a request. `frame` is the leased frame of a write. Returns `None` if the answer follows later, for
    /// [`Member::handle_memory_done`].
    ///
    /// A signal is issued directly after its data and must not be executed without it. So a request that fails is
    /// answered at once. A memory that detects a failure later fails all requests issued after it, too.
    fn execute<'m>(&'m mut self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryDone<'m>>;
    /// Copies ranges of a frame into a region, visibly, before the call ends. Returns false if this memory does not
    /// or could not; the write then follows as a request.
    fn write_at_once(&mut self, region: RegionId, ranges: &[FrameRange], frame: &[u8]) -> bool {
        let _ = (region, ranges, frame);
        false
    }
    /// Returns the next answer to a request that was not answered at once, in order of issue.
    fn poll_done(&mut self) -> Option<(MemoryToken, MemoryDone<'_>)> {
        None
    }
    /// Returns true if such answers are outstanding. No event announces them, so the engine polls again soon.
    fn is_busy(&self) -> bool {
        false
    }
    /// Reads bytes that are about to be sent. The range is inside a registered region; the engine revokes a region
    /// before it frees its bytes.
    ///
    /// # Errors
    /// If the bytes cannot be read.
    fn read(&mut self, region: RegionId, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault>;
    /// Reads bytes that are about to be sent, with a hint of the bytes that are read next.
    ///
    /// # Errors
    /// If the bytes cannot be read.
    fn read_ahead(
        &mut self,
        region: RegionId,
        offset: u64,
        out: &mut [u8],
        following: Following,
    ) -> Result<(), MemoryFault> {
        let _ = following;
        self.read(region, offset, out)
    }
    /// Returns true if bytes to send are always read and never lent, so that a member may read them itself.
    fn reads_at_once(&self) -> bool {
        false
    }
    /// Lends bytes that are about to be sent to wires that carry a reference instead, if both support it: a device
    /// that is only a model need not move them. `is_whole`: the whole frame is read before it leaves.
    fn lend(&mut self, region: RegionId, offset: u64, length: usize, is_whole: bool) -> Option<Loan> {
        let _ = (region, offset, length, is_whole);
        None
    }
    /// Compares received bytes with the expected ones. `found` has at least as many bytes; the bytes present are
    /// written to it.
    fn compare(
        &mut self,
        region: RegionId,
        offset: u64,
        expected: &[u8],
        found: &mut [u8],
    ) -> Result<Comparison, MemoryFault> {
        let found = &mut found[..expected.len()];
        self.read(region, offset, found)?;
        Ok(if found == expected { Comparison::Same } else { Comparison::Different })
    }
    /// Combines values within this memory, if the memory does such work itself; later requests see the result.
    /// Returns false if it does not, and nothing has changed.
    ///
    /// # Errors
    /// If the memory failed.
    fn combine(&mut self, combine: &Combine) -> Result<bool, MemoryFault> {
        let _ = combine;
        Ok(false)
    }
    /// Writes bytes on behalf of the member's own caller.
    ///
    /// # Errors
    /// If the memory failed.
    fn write(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault>;
}

/// Polls a member for all its output, in the one fixed order: routes, memory, frames port by port, leases, events.
///
/// Returns true if there was any.
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
    R: Memory,
{
    member.settle(now);
    let mut progress = drain_memory(member, now, wires, memory);
    let mut from = PortId(0);
    while let Some(port) = member.next_port(now, from) {
        from = PortId(port.0 + 1);
        let before = core::mem::take(&mut progress);
        while member.wants_transmit(now, port) {
            if member.send_run(now, port, memory, &mut |write| wires.fill(port, write)) {
                progress = true;
                continue;
            }
            let Some(out) = wires.slot(port) else { break };
            // Borrowed, not moved: its fields were just written one by one, and a copy of the whole would wait for
            // all of them.
            let Some(transmit) = &member.poll_transmit(now, port, out) else { break };
            complete(member, now, port, transmit, wires, memory);
            progress = true;
        }
        if progress {
            wires.show(port);
        }
        progress |= before;
    }
    progress |= member.must_poll_again();
    while let Some(lease) = member.poll_release() {
        wires.release(lease);
    }
    while let Some(event) = member.poll_event() {
        events(event);
        progress = true;
    }
    progress
}

fn drain_memory<M, W, R>(member: &mut M, now: Instant, wires: &mut W, memory: &mut R) -> bool
where
    M: Member + ?Sized,
    W: Wires + ?Sized,
    R: Memory + ?Sized,
{
    let mut progress = false;
    while let Some(request) = member.poll_memory() {
        let token = request.token;
        let frame = match request.access {
            MemoryAccess::Write { lease, .. } => wires.unload(lease),
            MemoryAccess::Read { .. } | MemoryAccess::Atomic { .. } => &[],
        };
        if let Some(done) = memory.execute(&request, frame) {
            // A fresh value: the answer was just written in part, after a copy of the whole frame that may still be
            // on its way to the cache, and would be read back as a whole.
            let done = if matches!(done, MemoryDone::Written) { MemoryDone::Written } else { done };
            member.handle_memory_done(now, token, done);
        }
        progress = true;
    }
    while let Some((token, done)) = memory.poll_done() {
        member.handle_memory_done(now, token, done);
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
    if transmit.passage == Passage::Discarded {
        // An uncommitted buffer is returned again by the next call.
        return;
    }
    if let Body::Lease { lease, at, length } = transmit.body {
        wires.copy_lease(port, lease, at, length);
    }
    if let Body::Kept { behind } = transmit.body {
        wires.recall(port, behind);
    }
    if let Body::Memory { region, offset, at, length, following } = transmit.body {
        let is_kept = transmit.passage == Passage::Kept;
        let is_whole = transmit.end_to_end_check
            || (is_kept && wires.slot(port).is_some_and(|out| wire::is_sealed_as_a_whole(out)));
        if let Some(loan) = memory.lend(region, offset, length, is_whole) {
            wires.load(port, at, length, loan, is_whole);
        } else if let Some(out) = wires.slot(port) {
            // W-52
            if memory.read_ahead(region, offset, &mut out[at..at + length], following).is_err() {
                wire::packed::make_void(
                    &mut out[wire::layout::OPERATIONS..transmit.length],
                    at - wire::layout::OPERATIONS,
                );
                member.note_source_failed(region);
            }
        }
    }
    if transmit.end_to_end_check
        && let Some(out) = wires.slot(port)
    {
        wire::seal_end_to_end(&mut out[..transmit.length]);
    }
    match transmit.passage {
        Passage::Plain | Passage::Unprotected | Passage::Discarded => {}
        Passage::Kept => {
            let is_kept = member
                .repeatable(port)
                .is_some_and(|frames| wires.keep(port, transmit.length, frames.saturating_sub(1)));
            if let Some(out) = wires.slot(port) {
                member.keep_sent(now, port, &mut out[..transmit.length], is_kept);
            }
        }
        Passage::Repeated => {
            if let Some(out) = wires.slot(port) {
                member.refresh_sent(port, &mut out[..transmit.length]);
            }
        }
    }
    wires.commit(port, transmit.length, transmit.doorbell);
}
