//! Regions in the memory of a device. Received data is written there, and acknowledged when it is visible.
//!
//! The core's requests become writes, reads and atomics of one landing ([`rackloom_gpu::landing`]), which performs them in the order of the requests.
//! The core's token is the landing's ticket. Bounds are checked here once more, because a wrong range would be a wild write. Frames in pages that the
//! device can read are not copied by this process at all. Data to send in frames is read synchronously, which waits for the device. The rest of a
//! long transfer is read ahead ([`rackloom_gpu::rows`]).

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

pub(crate) use rackloom_gpu::device::HANDLE_BYTES;
use rackloom_gpu::device::{Address, AtomicKind, Device, Element, Reduction, Shared};
use rackloom_gpu::fake::{Fake, FakePlan};
use rackloom_gpu::landing::{Landed, Landing, WordChange};
use rackloom_gpu::rows::Rows;
use rackloom_gpu::tiers::Tiers;
use rackloom_gpu::{Cuda, Driver, GpuError};
use rackloom_protocol::{
    Arithmetic, Atomic, Combine, Following, MemoryAccess, MemoryDone, MemoryFault, MemoryRequest,
    MemoryToken, Number, RegionId, Width,
};

use super::{DeviceChoice, DeviceKind, PoolUsage, TiersInUse, Usage};

/// Granularity in bytes of regions that other processes may open. They lie in blocks of their own, because a handle opens the whole block.
const BLOCK_BYTES: u64 = 2 << 20;

/// The regions of one member on one device.
#[derive(Debug)]
pub(crate) struct DeviceRegions {
    kind: DeviceKind,
    landing: Landing<dyn Device>,
    /// Read-ahead of long outgoing transfers.
    rows: Rows,
    regions: Vec<DeviceRegion>,
    /// Minimum sizes from which bytes of a frame are read in place, copy engines are used, and long transfers are read ahead.
    tiers: Tiers,
    is_measured: bool,
    /// Pages with frames that the device can read: address of the first byte, and address after the last byte.
    frames: Vec<(usize, usize)>,
}

#[derive(Clone, Copy, Debug)]
struct DeviceRegion {
    region: RegionId,
    address: Address,
    length: u64,
    /// Set if the caller owns the memory and frees it.
    is_borrowed: bool,
    /// Set if a process may have opened the region: it must not be freed.
    is_exported: bool,
}

/// Data with which a process of the same server can use a region of this one.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) kind: DeviceKind,
    pub(crate) handle: [u8; HANDLE_BYTES],
    pub(crate) file: Option<OwnedFd>,
}

impl DeviceRegions {
    pub(crate) fn open(choice: DeviceChoice) -> io::Result<Self> {
        let (device, name) = open(choice).map_err(io::Error::other)?;
        Self::of(device, &name, choice.kind())
    }

    /// Creates the regions of a device that is open.
    fn of(device: Box<dyn Device>, name: &str, kind: DeviceKind) -> io::Result<Self> {
        let mut landing = Landing::new(device).map_err(io::Error::other)?;
        let mut rows = Rows::new(landing.device()).map_err(io::Error::other)?;
        let kept = Tiers::kept(name);
        let (tiers, is_measured) = (kept.unwrap_or_default(), kept.is_some());
        landing.set_tiers(&tiers);
        rows.set_tiers(&tiers);
        Ok(Self { kind, landing, rows, regions: Vec::new(), tiers, is_measured, frames: Vec::new() })
    }

    /// Lets the device read frames in these pages directly.
    ///
    /// # Safety
    /// The range is mapped until the process ends, and a frame in it that was given to [`Self::execute`] does not change until that request is
    /// answered.
    pub(crate) unsafe fn take_frames_in_place(&mut self, start: usize, bytes: usize) -> io::Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.landing.device().pin_pages(start as u64, bytes) }.map_err(io::Error::other)?;
        self.frames.push((start, start + bytes));
        Ok(())
    }

    /// Allocates a region that other processes can open without access to other regions: in blocks of its own, or as a part of the pool.
    pub(crate) fn allocate_apart(&mut self, region: RegionId, length: u64, of_pool: bool) -> io::Result<()> {
        if of_pool {
            let address = self.landing.device().allocate_from_pool(length).map_err(refused)?;
            self.add(region, address, length);
            return Ok(());
        }
        let unit = if self.kind == DeviceKind::Cuda { BLOCK_BYTES } else { 1 };
        let whole = length.max(1).checked_next_multiple_of(unit).ok_or(io::ErrorKind::OutOfMemory)?;
        self.allocate(region, whole)?;
        self.regions.last_mut().into_iter().for_each(|added| added.length = length);
        Ok(())
    }

    /// Returns the sizes at which the method of access changes.
    pub(crate) fn tiers(&self) -> TiersInUse {
        let Tiers { in_place_bytes_min, engine_bytes_min, ahead_bytes_min } = self.tiers;
        TiersInUse { in_place_bytes_min, engine_bytes_min, ahead_bytes_min, is_measured: self.is_measured }
    }

    pub(crate) fn allocate(&mut self, region: RegionId, length: u64) -> io::Result<()> {
        let address = self.landing.device().allocate(length).map_err(refused)?;
        self.add(region, address, length);
        Ok(())
    }

    fn add(&mut self, region: RegionId, address: Address, length: u64) {
        self.landing.note_start(address);
        self.regions.push(DeviceRegion { region, address, length, is_borrowed: false, is_exported: false });
    }

    /// Returns the usage of the device's pool, if there is one.
    pub(crate) fn pool(&mut self) -> Option<PoolUsage> {
        // A device that has failed has no statistics.
        let counted = self.landing.device().pool_statistics().ok().flatten()?;
        let usage = |current, high| Usage { current, high };
        Some(PoolUsage {
            reserved: usage(counted.reserved_current, counted.reserved_high),
            used: usage(counted.used_current, counted.used_high),
        })
    }

    /// Adds a region of memory of this device that the caller has allocated and will free.
    ///
    /// # Safety
    /// The range is memory of this device, or memory that the device may use, until the region is freed.
    pub(crate) unsafe fn borrow(&mut self, region: RegionId, address: u64, length: u64) {
        self.landing.note_start(Address(address));
        self.regions.push(DeviceRegion {
            region,
            address: Address(address),
            length,
            is_borrowed: true,
            is_exported: false,
        });
    }

    /// Returns the address of a region, for kernels.
    pub(crate) fn address(&self, region: RegionId) -> Option<u64> {
        self.regions.iter().find(|known| known.region == region).map(|known| known.address.0)
    }

    /// Waits until all requests are performed and visible to all other processes and devices.
    pub(crate) fn finish(&mut self) -> Result<(), MemoryFault> {
        self.landing.finish().map_err(fault)
    }

    /// Returns the device itself.
    pub(crate) fn device(&mut self) -> &mut dyn Device {
        self.landing.device()
    }

    /// Frees a region. Returns its length, or `None` if there is no such region. Returns an error if the device has failed: then nothing is freed
    /// before the process ends, and the region remains.
    pub(crate) fn free(&mut self, region: RegionId) -> Option<Result<u64, MemoryFault>> {
        let index = self.regions.iter().position(|known| known.region == region)?;
        let DeviceRegion { address, length, is_borrowed, .. } = self.regions[index];
        self.rows.forget();
        let freed = self.landing.finish().and_then(|()| match is_borrowed {
            true => Ok(()),
            false => self.landing.device().free(address),
        });
        Some(freed.map_err(fault).map(|()| {
            self.regions.swap_remove(index);
            self.landing.forget_start(address);
            length
        }))
    }

    pub(crate) fn length(&self, region: RegionId) -> Option<u64> {
        self.regions.iter().find(|known| known.region == region).map(|known| known.length)
    }

    pub(crate) fn regions(&self) -> Vec<RegionId> {
        self.regions.iter().map(|known| known.region).collect()
    }

    pub(crate) fn is_exported(&self, region: RegionId) -> bool {
        self.regions.iter().any(|known| known.region == region && known.is_exported)
    }

    pub(crate) fn set_exported(&mut self, region: RegionId, is_exported: bool) {
        let found = self.regions.iter_mut().find(|known| known.region == region);
        found.into_iter().for_each(|found| found.is_exported = is_exported);
    }

    /// Lets other processes open a region.
    pub(crate) fn offer(&mut self, region: RegionId) -> io::Result<Offer> {
        // Bytes written before the offer are visible to every process that opens the region.
        self.landing.finish().map_err(io::Error::other)?;
        let address = self.range(region, 0, 0).map_err(|_| io::ErrorKind::NotFound)?;
        let Shared { handle, file } = self.landing.device().share(address).map_err(io::Error::other)?;
        Ok(Offer { kind: self.kind, handle, file })
    }

    /// Opens memory that another process offers. Returns its address for the functions below.
    pub(crate) fn open_there(
        &mut self,
        kind: DeviceKind,
        handle: &[u8; HANDLE_BYTES],
        file: Option<BorrowedFd<'_>>,
    ) -> io::Result<u64> {
        if kind != self.kind {
            return Err(io::Error::other("it lies on a device of another kind"));
        }
        self.landing.device().open(handle, file).map(|address| address.0).map_err(io::Error::other)
    }

    /// Closes memory that was opened with `open_there`.
    pub(crate) fn close_there(&mut self, address: u64) {
        // A device that has failed releases everything when the process ends.
        let _ = self.landing.finish().and_then(|()| self.landing.device().close(Address(address)));
    }

    /// Writes to opened memory. The bytes are visible when this returns.
    pub(crate) fn write_there(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.landing.write(Address(address), bytes).and_then(|()| self.landing.finish()).map_err(fault)
    }

    pub(crate) fn read_there(&mut self, address: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        self.landing.read_now(Address(address), out).map_err(fault)
    }

    /// Performs an atomic on an aligned word of opened memory. Returns the previous value, or 0 for an 8-byte `Set`.
    pub(crate) fn change_there(&mut self, address: u64, atomic: &Atomic) -> Result<u64, MemoryFault> {
        if atomic.kind == rackloom_protocol::AtomicKind::Set && atomic.width == Width::Eight {
            // The previous value is not needed, so no kernel is needed.
            return self.landing.set_now(Address(address), atomic.operand).map(|()| 0).map_err(fault);
        }
        self.landing.atomic_now(Address(address), change(atomic)).map_err(fault)
    }

    /// Copies a range of a local region to opened memory.
    pub(crate) fn copy_there(
        &mut self,
        address: u64,
        region: RegionId,
        offset: u64,
        length: usize,
    ) -> Result<(), MemoryFault> {
        let own = self.range(region, offset, length)?;
        self.copy_now(Address(address), own, length)
    }

    /// Copies from opened memory into a range of a local region.
    pub(crate) fn copy_here(
        &mut self,
        region: RegionId,
        offset: u64,
        address: u64,
        length: usize,
    ) -> Result<(), MemoryFault> {
        let own = self.range(region, offset, length)?;
        self.copy_now(own, Address(address), length)
    }

    fn copy_now(&mut self, target: Address, source: Address, length: usize) -> Result<(), MemoryFault> {
        let copied = self.landing.copy(target, source, length as u64);
        copied.and_then(|()| self.landing.finish()).map_err(fault)
    }

    /// Begins a request. Its answer is returned by [`Self::poll_done`], unless the request failed at once.
    pub(crate) fn execute(&mut self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryFault> {
        let (region, ticket) = (request.region, request.token.0);
        let begun = match request.access {
            MemoryAccess::Write { ranges, .. } => ranges.iter().try_for_each(|range| {
                let from = range.frame_offset as usize;
                let bytes = from.checked_add(range.length as usize).and_then(|to| frame.get(from..to));
                self.land(region, range.region_offset, bytes.ok_or(MemoryFault::Device)?)
            }),
            MemoryAccess::Read { offset, length } => {
                let length = length as usize;
                let found = self.range(region, offset, length);
                return found.and_then(|at| self.landing.read(ticket, at, length).map_err(fault)).err();
            }
            MemoryAccess::Atomic { offset, atomic } => {
                if atomic.kind == rackloom_protocol::AtomicKind::Set && atomic.width == Width::Eight {
                    // The previous value is not needed.
                    let found = self.range(region, offset, 8).and_then(aligned_to(8));
                    return found
                        .and_then(|at| self.landing.set(ticket, at, atomic.operand).map_err(fault))
                        .err();
                }
                let change = change(&atomic);
                let found = self.range(region, offset, change.width as usize);
                let aligned = found.and_then(aligned_to(change.width));
                return aligned.and_then(|at| self.landing.atomic(ticket, at, change).map_err(fault)).err();
            }
        };
        if begun.is_ok() {
            self.landing.ticket(ticket);
        }
        begun.err()
    }

    /// Returns the next answer, in the order of the requests.
    pub(crate) fn poll_done(&mut self) -> Option<(MemoryToken, MemoryDone<'_>)> {
        let (ticket, landed) = self.landing.poll()?;
        let done = match landed {
            Landed::Written => MemoryDone::Written,
            Landed::Bytes(bytes) => MemoryDone::Bytes(bytes),
            Landed::Value(value) => MemoryDone::Value(value),
            Landed::Failed(_) => MemoryDone::Failed(MemoryFault::Device),
        };
        Some((MemoryToken(ticket), done))
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.landing.is_busy()
    }

    /// Reads synchronously: waits for the device.
    pub(crate) fn read(&mut self, region: RegionId, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        let at = self.range(region, offset, out.len())?;
        self.landing.read_now(at, out).map_err(fault)
    }

    /// Combines values that are all on this device. Returns false if some are not.
    pub(crate) fn combine(&mut self, combine: &Combine) -> Result<bool, MemoryFault> {
        let Combine { target, source, length, how } = *combine;
        if self.length(target.0).is_none() || self.length(source.0).is_none() {
            return Ok(false);
        }
        let bytes = usize::try_from(length).map_err(|_| MemoryFault::NotMapped)?;
        let (to, from) = (self.range(target.0, target.1, bytes)?, self.range(source.0, source.1, bytes)?);
        let Some((arithmetic, number)) = how else {
            return self.landing.copy(to, from, length).map(|()| true).map_err(fault);
        };
        let work = (reduction(arithmetic), element(number));
        let size = work.1.bytes();
        if ![length, to.0, from.0].into_iter().all(|number| number.is_multiple_of(size)) {
            return Ok(false);
        }
        self.landing.reduce(work, to, from, length / size).map(|()| true).map_err(fault)
    }

    /// Reads bytes that are sent in a frame. `following` describes the rest of the transfer, for the read-ahead.
    pub(crate) fn read_ahead(
        &mut self,
        region: RegionId,
        offset: u64,
        out: &mut [u8],
        following: Following,
    ) -> Result<(), MemoryFault> {
        let at = self.range(region, offset, out.len())?;
        let left = self.length(region).unwrap_or(0).saturating_sub(offset + out.len() as u64);
        let row = (following.transfer, u64::from(following.bytes).min(left));
        // Earlier requests are performed first.
        self.landing.start().map_err(fault)?;
        let behind = self.landing.stream();
        let taken = self.rows.take(self.landing.device(), behind, row, at, out).map_err(fault)?;
        if taken { Ok(()) } else { self.landing.read_now(at, out).map_err(fault) }
    }

    /// Writes after all earlier requests. Readers of this value see the bytes at once. If other processes may have opened the region, the bytes are
    /// visible to them when this returns, as they would be in pages.
    pub(crate) fn write(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.write_behind(region, offset, bytes)?;
        if self.is_exported(region) { self.finish() } else { Ok(()) }
    }

    fn write_behind(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let at = self.range(region, offset, bytes.len())?;
        self.landing.write(at, bytes).map_err(fault)
    }

    /// Writes bytes of a frame, which do not change until the request is answered.
    fn land(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let start = bytes.as_ptr().addr();
        let is_within = |(from, to): &(usize, usize)| *from <= start && start + bytes.len() <= *to;
        if (bytes.len() as u64) < self.tiers.in_place_bytes_min || !self.frames.iter().any(is_within) {
            return self.write_behind(region, offset, bytes);
        }
        let at = self.range(region, offset, bytes.len())?;
        self.landing.write_in_place(at, Address(start as u64), bytes.len() as u64).map_err(fault)
    }

    /// Returns the address of a range, if the range lies within its region.
    fn range(&self, region: RegionId, offset: u64, length: usize) -> Result<Address, MemoryFault> {
        let found = self.regions.iter().find(|known| known.region == region).ok_or(MemoryFault::NotMapped)?;
        match offset.checked_add(length as u64) {
            Some(end) if end <= found.length => Ok(found.address.plus(offset)),
            _ => Err(MemoryFault::NotMapped),
        }
    }
}

/// The device whose kernels use pages of the host in place.
#[derive(Debug)]
pub(crate) struct Mapper(Mutex<Box<dyn Device>>);

impl Mapper {
    pub(crate) fn open(choice: DeviceChoice) -> io::Result<Self> {
        open(choice).map(|(device, _)| Self(Mutex::new(device))).map_err(io::Error::other)
    }

    /// Maps pages for kernels. Returns the address at which kernels find them.
    ///
    /// # Safety
    /// The pages are mapped until [`Self::unmap`] has returned, or this value is dropped.
    pub(crate) unsafe fn map(&mut self, start: usize, bytes: usize) -> io::Result<u64> {
        // SAFETY: the caller's promise.
        unsafe { self.device().pin_pages(start as u64, bytes) }.map_err(io::Error::other)?;
        Ok(start as u64)
    }

    pub(crate) fn unmap(&mut self, start: usize) -> io::Result<()> {
        self.device().unpin_pages(start as u64).map_err(io::Error::other)
    }

    pub(crate) fn device(&mut self) -> &mut dyn Device {
        &mut **self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a device. Returns it with the name under which its measurements are kept.
///
/// # Errors
/// [`GpuError`]: there is no such device, or it cannot be used, with a hint.
pub fn open(choice: DeviceChoice) -> Result<(Box<dyn Device>, String), GpuError> {
    match choice {
        DeviceChoice::Cuda(index) => {
            let driver = Driver::open()?;
            let device = Cuda::open(&driver, index)?;
            Ok((Box::new(device), rackloom_gpu::probe::uuid_of(&driver, index)?))
        }
        DeviceChoice::Fake(seed) => Ok((Box::new(Fake::new(FakePlan::new(seed))), "fake".to_owned())),
    }
}

/// Converts an error, and distinguishes a lack of memory from all others.
fn refused(error: GpuError) -> io::Error {
    let kind = match &error {
        GpuError::OutOfMemory { .. } => io::ErrorKind::OutOfMemory,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

fn aligned_to(width: u32) -> impl Fn(Address) -> Result<Address, MemoryFault> {
    move |at| if at.0.is_multiple_of(u64::from(width)) { Ok(at) } else { Err(MemoryFault::Device) }
}

const fn reduction(arithmetic: Arithmetic) -> Reduction {
    match arithmetic {
        Arithmetic::Sum => Reduction::Sum,
        Arithmetic::Min => Reduction::Min,
        Arithmetic::Max => Reduction::Max,
        Arithmetic::Product => Reduction::Product,
    }
}

const fn element(number: Number) -> Element {
    match number {
        Number::F32 => Element::F32,
        Number::F64 => Element::F64,
        Number::F16 => Element::F16,
        Number::Bf16 => Element::Bf16,
        Number::I32 => Element::I32,
        Number::I64 => Element::I64,
    }
}

/// Converts an error of the device. The core cannot pass on the details; the landing keeps the first failure.
fn fault(_error: GpuError) -> MemoryFault {
    MemoryFault::Device
}

fn change(atomic: &Atomic) -> WordChange {
    use rackloom_protocol::AtomicKind as Kind;
    let kind = match atomic.kind {
        Kind::FetchAdd => AtomicKind::Add,
        Kind::CompareSwap => AtomicKind::CompareSwap,
        Kind::Swap | Kind::Set => AtomicKind::Swap,
        Kind::And => AtomicKind::And,
        Kind::Or => AtomicKind::Or,
        Kind::Xor => AtomicKind::Xor,
        Kind::Min => AtomicKind::Min,
        Kind::Max => AtomicKind::Max,
        Kind::MinSigned => AtomicKind::MinSigned,
        Kind::MaxSigned => AtomicKind::MaxSigned,
    };
    let Atomic { width, operand, compare, .. } = *atomic;
    WordChange { kind, width: width.bytes() as u32, operand, compare }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that a failed device does not free is reported as an error, and still counted as used.
    #[test]
    fn a_region_that_the_device_does_not_give_back_is_still_there() {
        let plan = FakePlan { fails_after: Some(1), ..FakePlan::new(1) };
        let mut regions = DeviceRegions::of(Box::new(Fake::new(plan)), "fake", DeviceKind::Fake).unwrap();
        let region = RegionId(1);
        regions.allocate_apart(region, 4096, true).unwrap();
        assert!(regions.write(region, 0, &[1; 64]).and_then(|()| regions.finish()).is_err());
        assert_eq!(regions.free(region), Some(Err(MemoryFault::Device)));
        assert_eq!(regions.length(region), Some(4096));
        assert!(regions.pool().is_some_and(|pool| pool.used.current == 4096), "the pool counts it");
    }
}
