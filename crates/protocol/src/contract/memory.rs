//! Memory of one member: requests and answers, and what memory of a host does within a call.

use crate::ids::RegionId;
use crate::memory::{FrameRange, MemoryDone, MemoryFault, MemoryRequest, MemoryToken};
use crate::transmit::Following;

/// Memory of one member.
pub trait Memory {
    /// Executes a request. `frame` is the leased frame of a write. Returns `None` if the answer follows later, for
    /// [`super::Member::handle_memory_done`].
    ///
    /// A signal is issued directly after its data and must not be executed without it. So a request that fails is
    /// answered at once. A memory that detects a failure later fails all requests issued after it, too.
    fn execute<'m>(&'m mut self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryDone<'m>>;
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
}

/// Optional: memory that answers within the call, so that [`super::Shortcuts`] can use it.
pub trait DirectMemory: Memory {
    /// Copies ranges of a frame into a region, visibly, before the call ends. Returns false if this memory does not
    /// or could not; the write then follows as a request.
    fn write_at_once(&mut self, region: RegionId, ranges: &[FrameRange], frame: &[u8]) -> bool {
        let _ = (region, ranges, frame);
        false
    }
    /// Returns true if bytes to send are always copied into the frame, so that a member may read them itself.
    fn reads_at_once(&self) -> bool {
        false
    }
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
}

/// Access to memory by the member's own caller: a job. The core does not use it.
pub trait JobMemory: Memory {
    /// Writes bytes.
    ///
    /// # Errors
    /// If the memory failed.
    fn write(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault>;
    /// Compares received bytes with the expected ones. `found` has at least as many bytes; the bytes present are
    /// written to it.
    ///
    /// # Errors
    /// If the memory failed.
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
    /// Returns the bytes that other members have written into a region so far, if this memory counts them in place of keeping long payloads. What is
    /// read of such a memory is not what was written.
    fn elided_bytes(&self, region: RegionId) -> Option<u64> {
        let _ = region;
        None
    }
    /// Notes work of the job in its own memory: it has read and written `moved_bytes` together, and computed `reduced_bytes` of
    /// results. For engines that model the time of work; then [`Memory::is_busy`] holds until its end.
    fn note_work(&mut self, moved_bytes: u64, reduced_bytes: u64) {
        let _ = (moved_bytes, reduced_bytes);
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

/// Result of a comparison of memory with expected bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// All bytes are equal.
    Same,
    /// At least one byte differs.
    Different,
    /// The memory does not store these bytes.
    NotKept,
}
