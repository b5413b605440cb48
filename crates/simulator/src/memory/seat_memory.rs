//! A node's access to memory during its poll.
//!
//! Before bytes are read that were taken and not copied yet, or bytes are written that another node has still to
//! copy, the copies are made. So it cannot be observed that they are made late.

use rackloom_plan::PayloadMode;
use rackloom_plan::faults::MemoryFaults;
use rackloom_protocol::transmit::{Passage, Transmit};
use rackloom_protocol::{
    Comparison, DirectMemory, FrameRange, Instant, JobMemory, LeavingPayload, Memory, MemoryAccess,
    MemoryDone, MemoryFault, MemoryRequest, MemoryToken, NodeId, PayloadPath, PortId, RegionId, Wires, wire,
};

use crate::memory::memories::{Memories, NodeMemory};
use crate::memory::payload::{PAYLOAD_BYTES_MIN, Payload};
use crate::memory::pending_copies::RegionOffset;
use crate::memory::references::range;
use crate::wires::MemberWires;

/// Memory of one node during its poll.
#[derive(Debug)]
pub(crate) struct SeatMemory<'m> {
    /// Time of the poll; zero for an access without one.
    now: Instant,
    pub(crate) node: NodeId,
    pub(crate) memories: &'m mut Memories,
    /// Counts requests for other nodes: the watchdog's measure of progress.
    pub(crate) requests: &'m mut u64,
    /// Memory faults from a fault script, and the time.
    pub(crate) faults: Option<(Instant, &'m mut MemoryFaults)>,
}

impl<'m> SeatMemory<'m> {
    /// Returns a node's memory as the node sees it during its poll.
    pub(crate) fn new(
        memories: &'m mut Memories,
        node: NodeId,
        requests: &'m mut u64,
        faults: Option<(Instant, &'m mut MemoryFaults)>,
    ) -> Self {
        Self { now: Instant::ZERO, node, memories, requests, faults }
    }

    /// Sets the time of the poll, for work of the node.
    pub(crate) const fn at(mut self, now: Instant) -> Self {
        self.now = now;
        self
    }
}

impl SeatMemory<'_> {
    #[inline]
    fn own(&mut self) -> &mut NodeMemory {
        self.memories.node_mut(self.node)
    }

    #[inline]
    fn mode(&self) -> PayloadMode {
        self.memories.payload_table.mode
    }

    /// Must be called before bytes are read.
    #[inline]
    fn before_read(&mut self, region: RegionId, offset: u64, length: u64) {
        if self.own().pending_copies.reach(region, offset, offset.saturating_add(length)) {
            self.memories.settle(self.node);
        }
    }

    /// Must be called before bytes are written.
    #[inline]
    fn before_write(&mut self, region: RegionId, offset: u64, length: u64) {
        match self.mode() {
            PayloadMode::Full => {
                self.before_read(region, offset, length);
                self.before_replacing(region, offset, length);
            }
            PayloadMode::Elided => {}
        }
    }

    /// Must be called before bytes are replaced: nodes that took them copy them first.
    #[inline]
    fn before_replacing(&mut self, region: RegionId, offset: u64, length: u64) {
        if self.own().awaited.reaches(region, offset, offset.saturating_add(length)) {
            self.memories.settle_all();
        }
        let payload_table = &self.memories.payload_table;
        if payload_table.mode == PayloadMode::Full
            && let Some(references) = payload_table.references().get_mut(self.node.index())
        {
            references.before_write(&self.memories.node(self.node).bytes, region, offset, length);
        }
    }

    fn write_ranges(
        &mut self,
        region: RegionId,
        ranges: &[FrameRange],
        frame: &[u8],
    ) -> Result<(), MemoryFault> {
        let payload = self.memories.payload_table.unloaded();
        for range in ranges {
            let (at, length) = (range.frame_offset as usize, range.length as usize);
            let is_payload = !payload.is_none() && at == usize::from(payload.at);
            if is_payload && length == usize::from(payload.length) {
                self.take(region, range.region_offset, &payload)?;
            } else {
                self.put_in(region, range.region_offset, &frame[at..at + length])?;
            }
            let (node, offset, length) = (self.node, range.region_offset, u64::from(range.length));
            if self.mode() == PayloadMode::Elided {
                self.own().add_elided(region, length);
            }
            self.memories.with_ledger(|ledger| ledger.note_write(node, region, offset, length));
        }
        Ok(())
    }

    pub(crate) fn put_in(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.before_write(region, offset, bytes.len() as u64);
        self.own().bytes.write(region, offset, bytes)
    }

    /// Copies a payload from its owner's memory, or notes only that it has arrived.
    fn take(&mut self, region: RegionId, offset: u64, payload: &Payload) -> Result<(), MemoryFault> {
        let length = usize::from(payload.length);
        let is_mapped = |own: &NodeMemory| range(&own.bytes, region, offset, length).is_some();
        match self.mode() {
            PayloadMode::Full => {
                // A payload taken earlier that overlaps this one is copied in its order.
                self.before_replacing(region, offset, length as u64);
                self.memories.take(self.node, RegionOffset { region, offset }, payload)
            }
            PayloadMode::Elided if is_mapped(self.own()) => Ok(()),
            PayloadMode::Elided => Err(MemoryFault::NotMapped),
        }
    }
}

impl SeatMemory<'_> {
    /// Returns a reference to bytes that are about to leave, which a frame carries in their place, or `None` if it must
    /// carry the bytes. `is_whole`: the whole frame is read before it leaves.
    fn reference(&mut self, region: RegionId, offset: u64, length: usize, is_whole: bool) -> Option<u32> {
        if length < PAYLOAD_BYTES_MIN {
            return None;
        }
        self.before_read(region, offset, length as u64);
        let (own, payload_table) = (self.memories.node(self.node), &self.memories.payload_table);
        let bytes = range(&own.bytes, region, offset, length)?;
        match payload_table.mode {
            PayloadMode::Full
                if is_whole || payload_table.is_watched.get() || payload_table.is_summed.get() =>
            {
                None
            }
            PayloadMode::Full => {
                let mut references = payload_table.references();
                let references = references.get_mut(self.node.index())?;
                let reference = references.add(region, offset, length);
                if payload_table.is_observed.get() {
                    references.keep_one(reference, bytes);
                }
                Some(reference)
            }
            PayloadMode::Elided => Some(0),
        }
    }

    /// Carries out the request without faults of a script.
    fn carry_out<'m>(&'m mut self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryDone<'m>> {
        match request.access {
            MemoryAccess::Write { ranges, .. } => {
                Some(match self.write_ranges(request.region, ranges, frame) {
                    Ok(()) => MemoryDone::Written,
                    Err(fault) => MemoryDone::Failed(fault),
                })
            }
            MemoryAccess::Atomic { offset, atomic } => {
                self.before_write(request.region, offset, atomic.width.bytes());
                self.memories.with_ledger(|ledger| ledger.note_applied(self.node, request.region, offset));
                self.own().bytes.execute(request, frame)
            }
            MemoryAccess::Read { offset, length } => {
                self.before_read(request.region, offset, u64::from(length));
                self.own().bytes.execute(request, frame)
            }
        }
    }
}

impl Memory for SeatMemory<'_> {
    fn execute<'m>(&'m mut self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryDone<'m>> {
        *self.requests += 1;
        let Some((now, memory_faults)) = self.faults.take() else { return self.carry_out(request, frame) };
        let (fails, delays) = (memory_faults.fails(), memory_faults.delays());
        let failed = MemoryDone::Failed(MemoryFault::Device);
        if delays && !fails {
            let done = self.carry_out(request, frame);
            done.into_iter().for_each(|done| memory_faults.keep(now, request.token, &done));
            self.faults = Some((now, memory_faults));
            return None;
        }
        self.faults = Some((now, memory_faults));
        if fails { Some(failed) } else { self.carry_out(request, frame) }
    }

    fn poll_done(&mut self) -> Option<(MemoryToken, MemoryDone<'_>)> {
        let (now, memory_faults) = self.faults.as_mut()?;
        memory_faults.poll(*now)
    }

    fn is_busy(&self) -> bool {
        self.memories.node(self.node).work.as_ref().is_some_and(|work| work.is_busy(self.now))
    }

    fn read(&mut self, region: RegionId, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        self.before_read(region, offset, out.len() as u64);
        self.own().bytes.read(region, offset, out)
    }
}

impl DirectMemory for SeatMemory<'_> {}

impl JobMemory for SeatMemory<'_> {
    fn write(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let length = bytes.len() as u64;
        self.memories.with_ledger(|ledger| ledger.note_own_write(self.node, region, offset, length));
        self.put_in(region, offset, bytes)
    }

    fn note_work(&mut self, moved_bytes: u64, reduced_bytes: u64) {
        if let Some(work) = &self.memories.node(self.node).work {
            work.add(self.now, moved_bytes, reduced_bytes);
        }
    }

    fn elided_bytes(&self, region: RegionId) -> Option<u64> {
        (self.mode() == PayloadMode::Elided).then(|| self.memories.node(self.node).elided(region))
    }

    fn compare(
        &mut self,
        region: RegionId,
        offset: u64,
        expected: &[u8],
        found: &mut [u8],
    ) -> Result<Comparison, MemoryFault> {
        let found = &mut found[..expected.len()];
        self.read(region, offset, found)?;
        match self.mode() {
            PayloadMode::Full if found == expected => Ok(Comparison::Same),
            PayloadMode::Full => Ok(Comparison::Different),
            PayloadMode::Elided => Ok(Comparison::NotKept),
        }
    }
}

impl<'w> PayloadPath<MemberWires<'w>> for SeatMemory<'_> {
    fn load(
        &mut self,
        wires: &mut MemberWires<'w>,
        port: PortId,
        transmit: &Transmit,
        source: &LeavingPayload,
    ) -> Result<(), MemoryFault> {
        let LeavingPayload { region, offset, at, length, .. } = *source;
        if self.faults.as_mut().is_some_and(|(_, memory_faults)| memory_faults.fails_to_read()) {
            return Err(MemoryFault::Device);
        }
        let is_kept = transmit.passage == Passage::Kept;
        let is_whole = transmit.end_to_end_check
            || (is_kept && wires.slot(port).is_some_and(|out| wire::is_sealed_as_a_whole(out)));
        if let Some(reference) = self.reference(region, offset, length, is_whole) {
            wires.load(port, at, length, reference, is_whole);
            return Ok(());
        }
        let Some(out) = wires.slot(port) else { return Ok(()) };
        self.read(region, offset, &mut out[at..at + length])
    }

    fn execute_with<'m>(
        &'m mut self,
        wires: &mut MemberWires<'w>,
        request: &MemoryRequest<'_>,
    ) -> Option<MemoryDone<'m>> {
        let frame = match request.access {
            MemoryAccess::Write { lease, .. } => wires.unload(lease),
            MemoryAccess::Read { .. } | MemoryAccess::Atomic { .. } => &[],
        };
        self.execute(request, frame)
    }
}
