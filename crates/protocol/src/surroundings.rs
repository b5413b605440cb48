//! What surrounds a member: its wires and its memory, and the one order in which it is asked what it wants.
//!
//! A real event loop and the simulator both implement [`Wires`] and [`Memory`] and both call [`drain`]. Neither
//! calls `poll_*` itself; that is why they cannot differ.

use alloc::vec::Vec;

use crate::error::CommandRefused;
use crate::event::Event;
use crate::ids::{PortId, RegionId};
use crate::link::Link;
use crate::link::counters::PortCounters;
use crate::memory::{FrameRange, LeaseId, MemoryAccess, MemoryDone, MemoryFault, MemoryRequest, MemoryToken};
use crate::operation::Command;
use crate::switch::waits::Wait;
use crate::time::Instant;
use crate::wire;

/// A member of the fabric: an endpoint or a switch.
pub trait Member {
    /// A frame came in. `bytes` stay readable under `lease` until the member releases it.
    fn handle_frame(&mut self, now: Instant, port: PortId, lease: LeaseId, bytes: &[u8]);
    /// A frame came in, and memory is at hand. True: the member has taken it, memory has done what it asks for, and nothing refers
    /// to it any more. False: nothing has happened, and [`Member::handle_frame`] is to have it. Both ways come to the same; this one
    /// spares a commonplace frame its lease and its place in the queue of memory.
    fn take_at_once(&mut self, now: Instant, port: PortId, bytes: &[u8], memory: &mut dyn Memory) -> bool {
        let _ = (now, port, bytes, memory);
        false
    }
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
    /// Frames of this member's own that differ from the last one through `port` in their numbers only: `fill` is given what
    /// writes them one after another, complete to the last byte. Whether any has left. Frames that are sent by
    /// [`Member::poll_transmit`] are the same; this way spares each of them the questions whose answers are the same for all.
    fn send_run(&mut self, now: Instant, port: PortId, memory: &mut dyn Memory, fill: &mut Fill<'_>) -> bool {
        let _ = (now, port, memory, fill);
        false
    }
    /// A frame that the member wants a copy of is complete but for what the link adds last: seal it and keep it, unless the device
    /// has (`is_kept`). Called between `poll_transmit` and the device, where the frame was [`Passage::Kept`].
    fn keep_sent(&mut self, now: Instant, port: PortId, frame: &mut [u8], is_kept: bool) {
        let _ = (now, port, frame, is_kept);
    }
    /// How many frames of `port` may have to be sent again, the last one included; `None` where the link repeats nothing.
    fn repeatable(&self, port: PortId) -> Option<usize> {
        let _ = port;
        None
    }
    /// A frame that is sent again is in the device's room as it was kept: bring it up to date and seal it. Called where the frame was
    /// [`Passage::Repeated`].
    fn refresh_sent(&mut self, port: PortId, frame: &mut [u8]) {
        let _ = (port, frame);
    }
    /// Bytes of this region were to leave in a frame and could not be read; the frame leaves without them, void.
    fn note_source_failed(&mut self, region: RegionId) {
        let _ = region;
    }
    /// The next lease that nothing refers to any more.
    fn poll_release(&mut self) -> Option<LeaseId>;
    /// The next thing that happened.
    fn poll_event(&mut self) -> Option<Event>;
    /// When `handle_timeout` must be called next; [`Instant::NEVER`] if nothing runs.
    fn poll_timeout(&self) -> Instant;
    /// Whether what was asked for since the last call lets ports send that had been asked before: then all must be asked again.
    fn must_be_asked_again(&mut self) -> bool {
        false
    }
    /// Number of ports.
    fn port_count(&self) -> usize;
    /// What has passed through a port.
    fn port_counters(&self, port: PortId) -> &PortCounters;
    /// Every port at which frames in transit wait for credits, for whoever looks for a circle of waiting.
    fn waits(&self) -> Vec<Wait> {
        Vec::new()
    }
    /// Sets how much of the present silence of the neighbour at `port` does not count, in nanoseconds: the host had no processor for
    /// it. An engine on a real host calls this before [`Member::handle_timeout`]; in virtual time there is no such evidence.
    fn excuse_silence(&mut self, now: Instant, port: PortId, excused_ns: u64) {
        let _ = (now, port, excused_ns);
    }
    /// The link at a port, for observers; `None` of a member that has none.
    fn link(&self, port: PortId) -> Option<&Link> {
        let _ = port;
        None
    }
}

/// Writes the next frame into room for one and says how long it is; `None` if there is no other.
pub type Write<'w> = dyn FnMut(&mut [u8]) -> Option<usize> + 'w;

/// Calls its argument with room for a frame, again and again, as long as there is room and it writes something.
pub type Fill<'f> = dyn FnMut(&mut Write<'_>) + 'f;

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
    /// The member seals the whole frame, and keeps a copy where the link repeats what is lost.
    Kept,
    /// It was kept and leaves again.
    Repeated,
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
        /// What follows them.
        following: Following,
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
    /// All of it, from the frames that the device has kept ([`Wires::keep`]).
    Kept {
        /// Frames that were kept after it.
        behind: usize,
    },
}

/// What leaves behind some bytes of memory, in the same long transfer. Until it has left, nobody changes it, or nobody minds which of its
/// values leaves, so that memory which takes its time may read it in advance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Following {
    /// Names the transfer among those of this member; 0 is none.
    pub transfer: u32,
    /// So many bytes of it, or more, lie behind the ones in question.
    pub bytes: u32,
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
    /// Keep a copy of the frame of this length in the room that [`Wires::slot`] gave, beside the `others` that were kept last on this port;
    /// those before them are not needed any more. False: this device never does, and the member keeps bytes itself. A device that is
    /// only a model need not copy them.
    fn keep(&mut self, port: PortId, length: usize, others: usize) -> bool {
        let _ = (port, length, others);
        false
    }
    /// Put a kept frame into the room that [`Wires::slot`] gave: the one after which `behind` were kept on this port.
    fn recall(&mut self, port: PortId, behind: usize) {
        let _ = (port, behind);
    }
    /// Send the first `length` bytes of the room. `doorbell`: wake a sleeping receiver.
    fn commit(&mut self, port: PortId, length: usize, doorbell: bool);
    /// Send frames as `write` writes them, until it writes none or there is no room.
    fn fill(&mut self, port: PortId, write: &mut Write<'_>) {
        while let Some(length) = self.slot(port).and_then(&mut *write) {
            self.commit(port, length, true);
        }
    }
    /// Nothing more leaves through this port for now: the neighbour may be shown what was committed. Who shows it later anyway need not.
    fn show(&mut self, port: PortId) {
        let _ = port;
    }
    /// The bytes of a leased frame.
    fn leased(&self, lease: LeaseId) -> &[u8];
    /// The same, for memory that is about to take what the frame carries.
    fn unload(&mut self, lease: LeaseId) -> &[u8] {
        self.leased(lease)
    }
    /// Let the frame in the room that [`Wires::slot`] gave carry what [`Memory::lend`] gave, in place of so many bytes at `at`.
    /// `is_whole`: the frame's bytes are looked at before it leaves, and these are zeros.
    fn load(&mut self, port: PortId, at: usize, length: usize, loan: Loan, is_whole: bool) {
        let _ = (port, at, length, loan, is_whole);
    }
    /// The member no longer refers to this frame.
    fn release(&mut self, lease: LeaseId);
}

/// Values of one range become those of another, or are combined with them one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combine {
    /// Where the result goes, and the left-hand values lie.
    pub target: (RegionId, u64),
    /// Where the right-hand values lie. The ranges are the same or do not overlap.
    pub source: (RegionId, u64),
    /// Bytes of either.
    pub length: u64,
    /// How; `None` copies.
    pub how: Option<(Arithmetic, Number)>,
}

/// What two values become. What that means to the bit is said where collectives are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum Arithmetic {
    Sum,
    Min,
    Max,
    Product,
}

/// What a value is.
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

/// What memory lends to its own wires: a number that means something to both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loan(pub u32);

/// What came of holding memory against what it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// All bytes are right, or what is known of them is.
    Same,
    /// At least one is wrong. Where single bytes are not known, those that were found mean nothing.
    Different,
    /// The memory keeps no such bytes.
    NotKept,
}

/// The memory of one member.
pub trait Memory {
    /// Carry out a request. `frame` holds the leased frame of a write. `None`: the answer comes later, through
    /// [`Member::handle_memory_done`].
    ///
    /// A signal is asked for right behind its data and must not be raised without it. So a request that fails is answered at once; a
    /// memory that finds out later does nothing of what it was asked after it, and answers that it failed, too.
    fn execute<'m>(&'m mut self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryDone<'m>>;
    /// Copy these ranges of a frame into a region, visibly, before the call ends. False: this memory does not, or could not; then
    /// the same comes as a request.
    fn write_at_once(&mut self, region: RegionId, ranges: &[FrameRange], frame: &[u8]) -> bool {
        let _ = (region, ranges, frame);
        false
    }
    /// The next answer to a request that was not answered at once, in the order of asking.
    fn poll_done(&mut self) -> Option<(MemoryToken, MemoryDone<'_>)> {
        None
    }
    /// Whether such answers are still to come: nobody rings for them, so surroundings ask again soon.
    fn is_busy(&self) -> bool {
        false
    }
    /// Read bytes that are about to be sent. The range lies within a registered region; surroundings revoke a region before
    /// they take its bytes away.
    fn read(&mut self, region: RegionId, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault>;
    /// The same, and what will be read next.
    fn read_in_row(
        &mut self,
        region: RegionId,
        offset: u64,
        out: &mut [u8],
        following: Following,
    ) -> Result<(), MemoryFault> {
        let _ = following;
        self.read(region, offset, out)
    }
    /// Whether bytes that are about to be sent are read, and never lent: then a member may read them by itself.
    fn reads_at_once(&self) -> bool {
        false
    }
    /// Lend bytes that are about to be sent to wires that carry something in their place, if both are of that kind: a device that
    /// is only a model need not move them. `is_whole`: somebody looks at the whole frame before it leaves.
    fn lend(&mut self, region: RegionId, offset: u64, length: usize, is_whole: bool) -> Option<Loan> {
        let _ = (region, offset, length, is_whole);
        None
    }
    /// Hold bytes that came from elsewhere against what they must be. `found` holds at least as many, and afterwards those that
    /// are there.
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
    /// Work on values within this memory, where memory does such work by itself: whatever is asked later finds it done. False: this
    /// memory does not, and nothing has changed.
    fn combine(&mut self, combine: &Combine) -> Result<bool, MemoryFault> {
        let _ = combine;
        Ok(false)
    }
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
            // Borrowed, not moved: its fields have just been written one by one, and a copy of the whole would wait for all of them.
            let Some(transmit) = &member.poll_transmit(now, port, out) else { break };
            complete(member, now, port, transmit, wires, memory);
            progress = true;
        }
        if progress {
            wires.show(port);
        }
        progress |= before;
    }
    progress |= member.must_be_asked_again();
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
            // A fresh value: the answer's memory has just been written in part, behind a copy of the whole frame that may
            // still be on its way to the cache, and would be read back as a whole.
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
        // Room that is asked for and not committed is given again.
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
            if memory.read_in_row(region, offset, &mut out[at..at + length], following).is_err() {
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
