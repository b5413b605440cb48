//! Memory of plain vectors, for the simulator and the tests. Answers at once.

use alloc::vec;
use alloc::vec::Vec;

use super::{FrameRange, MemoryAccess, MemoryDone, MemoryFault, MemoryRequest};
use crate::contract::{DirectMemory, JobMemory, Memory, PayloadPath, PinnedFrames};
use crate::ids::RegionId;
use crate::operation::Width;

/// Regions as vectors of bytes.
#[derive(Clone, Debug, Default)]
pub struct VectorMemory {
    regions: Vec<(RegionId, Vec<u8>)>,
    scratch: Vec<u8>,
}

impl VectorMemory {
    /// Adds a zeroed region, or replaces it.
    pub fn add(&mut self, region: RegionId, length: usize) {
        self.regions.retain(|(known, _)| *known != region);
        self.regions.push((region, vec![0; length]));
    }

    /// Returns the bytes of a region; empty if there is none.
    #[must_use]
    pub fn bytes(&self, region: RegionId) -> &[u8] {
        self.regions.iter().find(|(known, _)| *known == region).map_or(&[], |(_, bytes)| bytes)
    }

    /// Returns the bytes of a region for changes; empty if there is none.
    pub fn bytes_mut(&mut self, region: RegionId) -> &mut [u8] {
        self.regions.iter_mut().find(|(known, _)| *known == region).map_or(&mut [], |(_, bytes)| bytes)
    }

    fn range_mut(&mut self, region: RegionId, offset: u64, length: usize) -> Option<&mut [u8]> {
        let start = usize::try_from(offset).ok()?;
        self.bytes_mut(region).get_mut(start..start.checked_add(length)?)
    }
}

impl Memory for VectorMemory {
    fn execute<'m>(&'m mut self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryDone<'m>> {
        let region = request.region;
        let failed = Some(MemoryDone::Failed(MemoryFault::NotMapped));
        match request.access {
            MemoryAccess::Write { ranges, .. } => {
                if self.write_at_once(region, ranges, frame) {
                    Some(MemoryDone::Written)
                } else {
                    failed
                }
            }
            MemoryAccess::Read { offset, length } => {
                let mut scratch = core::mem::take(&mut self.scratch);
                scratch.resize(length as usize, 0);
                let result = self.read(region, offset, &mut scratch);
                self.scratch = scratch;
                match result {
                    Ok(()) => Some(MemoryDone::Bytes(&self.scratch)),
                    Err(fault) => Some(MemoryDone::Failed(fault)),
                }
            }
            MemoryAccess::Atomic { offset, atomic } => {
                let length = atomic.width.bytes() as usize;
                let Some(word) = self.range_mut(region, offset, length) else { return failed };
                let mut wide = [0; 8];
                wide[..length].copy_from_slice(word);
                let old = u64::from_le_bytes(wide);
                word.copy_from_slice(&atomic.apply(old).to_le_bytes()[..length]);
                debug_assert!(atomic.width == Width::Eight || old <= u64::from(u32::MAX));
                Some(MemoryDone::Value(old))
            }
        }
    }

    fn read(&mut self, region: RegionId, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        let source = self.range_mut(region, offset, out.len()).ok_or(MemoryFault::NotMapped)?;
        out.copy_from_slice(source);
        Ok(())
    }
}

impl DirectMemory for VectorMemory {
    fn write_at_once(&mut self, region: RegionId, ranges: &[FrameRange], frame: &[u8]) -> bool {
        for range in ranges {
            let (from, length) = (range.frame_offset as usize, range.length as usize);
            let Some(target) = self.range_mut(region, range.region_offset, length) else { return false };
            target.copy_from_slice(&frame[from..from + length]);
        }
        true
    }

    fn reads_at_once(&self) -> bool {
        true
    }
}

impl JobMemory for VectorMemory {
    fn write(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.range_mut(region, offset, bytes.len()).ok_or(MemoryFault::NotMapped)?.copy_from_slice(bytes);
        Ok(())
    }
}

impl<W: PinnedFrames + ?Sized> PayloadPath<W> for VectorMemory {}
