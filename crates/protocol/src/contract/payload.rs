//! Payload of long transfers between memory and frames.

use super::memory::DirectMemory;
use super::wires::{PinnedFrames, Wires};
use crate::ids::{PortId, RegionId};
use crate::memory::{MemoryAccess, MemoryDone, MemoryFault, MemoryRequest};
use crate::transmit::{Following, Transmit};

/// Bytes of memory that belong into a frame that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeavingPayload {
    /// Region to read.
    pub region: RegionId,
    /// First byte in the region.
    pub offset: u64,
    /// First byte in the frame.
    pub at: usize,
    /// Number of bytes.
    pub length: usize,
    /// Bytes of the transfer that follow.
    pub following: Following,
}

/// Path of payload between a memory and the frames of wires `W`. The defaults copy it.
///
/// Memory and wires that know each other may exchange a reference instead, if nothing can observe the difference.
pub trait PayloadPath<W: Wires + PinnedFrames + ?Sized>: DirectMemory {
    /// Puts bytes into the frame in the buffer of [`Wires::slot`], which leaves as `transmit` describes.
    ///
    /// # Errors
    /// If the bytes cannot be read. The frame then leaves void.
    fn load(
        &mut self,
        wires: &mut W,
        port: PortId,
        transmit: &Transmit,
        source: &LeavingPayload,
    ) -> Result<(), MemoryFault> {
        let _ = transmit;
        let LeavingPayload { region, offset, at, length, following } = *source;
        let Some(out) = wires.slot(port) else { return Ok(()) };
        self.read_ahead(region, offset, &mut out[at..at + length], following)
    }
    /// Executes a request of the member, with the frame that it refers to.
    fn execute_with<'m>(&'m mut self, wires: &mut W, request: &MemoryRequest<'_>) -> Option<MemoryDone<'m>> {
        let frame = match request.access {
            MemoryAccess::Write { lease, .. } => {
                wires.pin(lease);
                wires.leased(lease)
            }
            MemoryAccess::Read { .. } | MemoryAccess::Atomic { .. } => &[],
        };
        self.execute(request, frame)
    }
}
