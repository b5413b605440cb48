//! Regions in the memory of a device: what comes in frames lands there, and is answered when it is visible.
//!
//! The core's requests become writes, reads and atomics of one landing ([`rackloom_gpu::landing`]), which carries them out in the order of
//! asking; the core's token is the landing's ticket. Bounds are checked here once more, because a wrong range would be a wild
//! write. What leaves in frames is read at once, which waits for the device; frames that go on where the last one ended
//! are served from what was read ahead in the same drain, when nobody could have changed it.

use std::io;

use rackloom_gpu::device::{Address, AtomicKind, Device};
use rackloom_gpu::fake::{Fake, FakePlan};
use rackloom_gpu::landing::{Landed, Landing, WordChange};
use rackloom_gpu::{Cuda, Driver, GpuError};
use rackloom_protocol::{
    Atomic, MemoryAccess, MemoryDone, MemoryFault, MemoryRequest, MemoryToken, RegionId,
};

use super::DeviceChoice;

/// How much is read at once when frames leave in a row.
const AHEAD_BYTES: u64 = 64 << 10;
/// A shorter read is not the first of a row.
const ROW_BYTES_MIN: usize = 512;

/// The regions of one member on one device.
#[derive(Debug)]
pub(super) struct DeviceRegions {
    landing: Landing<dyn Device>,
    regions: Vec<DeviceRegion>,
    ahead: Ahead,
}

#[derive(Clone, Copy, Debug)]
struct DeviceRegion {
    region: RegionId,
    address: Address,
    length: u64,
}

/// Bytes that were read before they were asked for.
#[derive(Debug)]
struct Ahead {
    region: RegionId,
    offset: u64,
    bytes: Vec<u8>,
}

impl DeviceRegions {
    pub(super) fn open(choice: DeviceChoice) -> io::Result<Self> {
        let device: Box<dyn Device> = match choice {
            DeviceChoice::Cuda(index) => {
                let driver = Driver::open().map_err(io::Error::other)?;
                Box::new(Cuda::open(&driver, index).map_err(io::Error::other)?)
            }
            DeviceChoice::Fake(seed) => Box::new(Fake::new(FakePlan::new(seed))),
        };
        let landing = Landing::new(device).map_err(io::Error::other)?;
        let ahead = Ahead { region: RegionId(0), offset: 0, bytes: Vec::new() };
        Ok(Self { landing, regions: Vec::new(), ahead })
    }

    pub(super) fn allocate(&mut self, region: RegionId, length: u64) -> io::Result<()> {
        let address = self.landing.device().allocate(length).map_err(|error| {
            let kind = match &error {
                GpuError::OutOfMemory { .. } => io::ErrorKind::OutOfMemory,
                _ => io::ErrorKind::Other,
            };
            io::Error::new(kind, error)
        })?;
        self.regions.push(DeviceRegion { region, address, length });
        Ok(())
    }

    /// Its length, if there is one of this name.
    pub(super) fn free(&mut self, region: RegionId) -> Option<u64> {
        let place = self.regions.iter().position(|known| known.region == region)?;
        let DeviceRegion { address, length, .. } = self.regions.swap_remove(place);
        self.ahead.bytes.clear();
        // A device that has failed gives nothing back before the process ends; nobody can use the region either way.
        let _ = self.landing.finish().and_then(|()| self.landing.device().free(address));
        Some(length)
    }

    pub(super) fn length(&self, region: RegionId) -> Option<u64> {
        self.regions.iter().find(|known| known.region == region).map(|known| known.length)
    }

    pub(super) fn regions(&self) -> Vec<RegionId> {
        self.regions.iter().map(|known| known.region).collect()
    }

    /// Begin a request. Its answer comes through [`Self::poll_done`], unless it failed at once.
    pub(super) fn execute(&mut self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryFault> {
        self.ahead.bytes.clear();
        let (region, ticket) = (request.region, request.token.0);
        let begun = match request.access {
            MemoryAccess::Write { ranges, .. } => ranges.iter().try_for_each(|range| {
                let from = range.frame_offset as usize;
                let bytes = from.checked_add(range.length as usize).and_then(|to| frame.get(from..to));
                self.write(region, range.region_offset, bytes.ok_or(MemoryFault::Device)?)
            }),
            MemoryAccess::Read { offset, length } => {
                let length = length as usize;
                let found = self.range(region, offset, length);
                return found.and_then(|at| self.landing.read(ticket, at, length).map_err(fault)).err();
            }
            MemoryAccess::Atomic { offset, atomic } => {
                let change = change(&atomic);
                let found = self.range(region, offset, change.width as usize);
                let aligned = found.and_then(|at| {
                    if at.0 % u64::from(change.width) == 0 { Ok(at) } else { Err(MemoryFault::Device) }
                });
                return aligned.and_then(|at| self.landing.atomic(ticket, at, change).map_err(fault)).err();
            }
        };
        if begun.is_ok() {
            self.landing.ticket(ticket);
        }
        begun.err()
    }

    /// The next answer, in the order of asking.
    pub(super) fn poll_done(&mut self) -> Option<(MemoryToken, MemoryDone<'_>)> {
        // A drain begins: what was read ahead belongs to the last one.
        self.ahead.bytes.clear();
        let (ticket, landed) = self.landing.poll()?;
        let done = match landed {
            Landed::Written => MemoryDone::Written,
            Landed::Bytes(bytes) => MemoryDone::Bytes(bytes),
            Landed::Value(value) => MemoryDone::Value(value),
            Landed::Failed(_) => MemoryDone::Failed(MemoryFault::Device),
        };
        Some((MemoryToken(ticket), done))
    }

    pub(super) fn is_busy(&self) -> bool {
        self.landing.is_busy()
    }

    /// Read at once: waits for the device.
    pub(super) fn read(&mut self, region: RegionId, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        let at = self.range(region, offset, out.len())?;
        self.landing.read_now(at, out).map_err(fault)
    }

    /// The same for bytes that leave in a frame, probably in a row with the next ones.
    pub(super) fn read_ahead(
        &mut self,
        region: RegionId,
        offset: u64,
        out: &mut [u8],
    ) -> Result<(), MemoryFault> {
        if let Some(found) = self.ahead.find(region, offset, out.len()) {
            out.copy_from_slice(found);
            return Ok(());
        }
        let length = self.length(region).ok_or(MemoryFault::NotMapped)?;
        let bytes = AHEAD_BYTES.min(length.saturating_sub(offset)) as usize;
        if out.len() < ROW_BYTES_MIN || bytes <= out.len() {
            return self.read(region, offset, out);
        }
        let mut row = std::mem::take(&mut self.ahead.bytes);
        row.resize(bytes, 0);
        self.read(region, offset, &mut row)?;
        out.copy_from_slice(&row[..out.len()]);
        self.ahead = Ahead { region, offset, bytes: row };
        Ok(())
    }

    /// Write behind everything that was asked before. Whoever reads through this value sees it.
    pub(super) fn write(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.ahead.bytes.clear();
        let at = self.range(region, offset, bytes.len())?;
        self.landing.write(at, bytes).map_err(fault)
    }

    /// Address of a range, if it lies within its region.
    fn range(&self, region: RegionId, offset: u64, length: usize) -> Result<Address, MemoryFault> {
        let found = self.regions.iter().find(|known| known.region == region).ok_or(MemoryFault::NotMapped)?;
        match offset.checked_add(length as u64) {
            Some(end) if end <= found.length => Ok(found.address.plus(offset)),
            _ => Err(MemoryFault::NotMapped),
        }
    }
}

impl Ahead {
    fn find(&self, region: RegionId, offset: u64, length: usize) -> Option<&[u8]> {
        let from = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        self.bytes.get(from..from.checked_add(length)?).filter(|_| self.region == region)
    }
}

/// The device says more than the core can pass on; the first failure stays in the landing.
fn fault(_error: GpuError) -> MemoryFault {
    MemoryFault::Device
}

fn change(atomic: &Atomic) -> WordChange {
    use rackloom_protocol::AtomicKind as Kind;
    let kind = match atomic.kind {
        Kind::FetchAdd => AtomicKind::Add,
        Kind::CompareSwap => AtomicKind::CompareSwap,
        Kind::Swap | Kind::Set => AtomicKind::Swap,
    };
    let Atomic { width, operand, compare, .. } = *atomic;
    WordChange { kind, width: width.bytes() as u32, operand, compare }
}
