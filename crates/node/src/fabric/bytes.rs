//! The bytes behind a region, wherever they come from, and the memory of a node made of them.
//!
//! Ours (pages of an anonymous file), an owned buffer of the caller's, or somebody else's bytes under an `unsafe`
//! promise: the engine sees an address and a length, and never a Rust slice. Bytes on a GPU have no address here: whatever a
//! window does not reach is asked of the device ([`super::on_device`]). Keys and permissions are the core's.

use std::any::Any;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use rackloom_plan::faults::{MemoryConditions, MemoryFaults};
use rackloom_protocol::{
    Following, FrameRange, Instant, Memory, MemoryAccess, MemoryDone, MemoryFault, MemoryRequest,
    MemoryToken, RegionId,
};

use super::element::Element;
use super::on_device::{DeviceBytes, DeviceMemory};
use super::uses::Uses;
use crate::mapping::{Mapping, sealed_memfd, whole_pages};
use crate::window::Window;

/// Most bytes that one read request of the core asks for.
const READ_BYTES_MAX: usize = 256;

/// Bytes at a fixed address, kept until the last handle and the last operation let go.
#[derive(Debug)]
pub(super) struct Bytes {
    base: *mut u8,
    length: usize,
    /// How many of them have an address here: all or none.
    mapped: usize,
    /// What keeps the address valid; nothing for memory of others.
    keeper: Keeper,
}

#[derive(Debug)]
enum Keeper {
    Pages(#[expect(dead_code, reason = "kept to be unmapped in time")] Mapping),
    Buffer(Box<dyn Any + Send + Sync>),
    Caller,
    Device(DeviceBytes),
}

// SAFETY: needed because the engine moves between threads. The address belongs to the process and is only used through
// a `Window`, which forms no references except atomics; `keeper` is never touched while the address is in use.
unsafe impl Send for Bytes {}
// SAFETY: as above; concurrent copies are torn at worst, as remote accesses to shared memory are on real hardware.
unsafe impl Sync for Bytes {}

impl Bytes {
    /// Zeroed pages of our own.
    pub(super) fn allocate(length: usize) -> io::Result<Self> {
        let pages = whole_pages(length as u64).filter(|pages| isize::try_from(*pages).is_ok());
        let file = sealed_memfd("rackloom-region", pages.ok_or(io::ErrorKind::OutOfMemory)?)?;
        let pages = Mapping::new(file.as_fd(), length.max(1))?;
        Ok(Self { base: pages.base(), length, mapped: length, keeper: Keeper::Pages(pages) })
    }

    /// A buffer that the caller hands over.
    pub(super) fn own<T: Element>(mut buffer: Vec<T>) -> Self {
        let (base, length) = (buffer.as_mut_ptr().cast(), size_of_val(buffer.as_slice()));
        Self { base, length, mapped: length, keeper: Keeper::Buffer(Box::new(buffer)) }
    }

    /// Bytes of somebody else.
    ///
    /// # Safety
    /// `base` is valid for reads and writes of `length` bytes as long as the value lives, and nobody holds a Rust
    /// reference to them meanwhile.
    pub(super) unsafe fn borrow(base: *mut u8, length: usize) -> Self {
        Self { base, length, mapped: length, keeper: Keeper::Caller }
    }

    /// Bytes on a device.
    pub(super) fn on_device(bytes: DeviceBytes, length: usize) -> Self {
        Self { base: std::ptr::dangling_mut(), length, mapped: 0, keeper: Keeper::Device(bytes) }
    }

    /// The device that has them, if one does.
    pub(super) const fn device(&self) -> Option<&DeviceBytes> {
        match &self.keeper {
            Keeper::Device(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Copy in, wherever they lie; visible to everybody when this returns.
    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        match self.device() {
            Some(device) => device.write(offset, bytes),
            None => self.window().write(offset, bytes),
        }
    }

    /// Copy out, wherever they lie.
    pub(super) fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        match self.device() {
            Some(device) => device.read(offset, out),
            None => self.window().read(offset, out),
        }
    }

    pub(super) fn length(&self) -> u64 {
        self.length as u64
    }

    pub(super) fn window(&self) -> Window<'_> {
        // SAFETY: needed because the bytes may be touched by several threads. The keeper, or the caller's promise,
        // keeps them valid as long as `self`, which bounds the window.
        unsafe { Window::over(self.base, self.mapped) }
    }

    /// The buffer that was handed over, if one of this type was.
    pub(super) fn into_buffer<T: Element>(self) -> Option<Vec<T>> {
        match self.keeper {
            Keeper::Buffer(buffer) => buffer.downcast().ok().map(|buffer| *buffer),
            Keeper::Pages(_) | Keeper::Caller | Keeper::Device(_) => None,
        }
    }
}

/// The regions of one node, as the engine's memory.
#[derive(Debug)]
pub(super) struct RegionMemory {
    regions: Vec<(RegionId, Arc<Bytes>)>,
    /// Regions without a handle, kept for the operations that still use them.
    retired: Vec<RegionId>,
    /// Where regions lie that have no address here; opened with the first of them.
    device: Option<Arc<DeviceMemory>>,
    account: Account,
    /// Faults of memory, once there were any, and what time it is.
    faults: Option<Box<(Instant, MemoryFaults)>>,
    scratch: [u8; READ_BYTES_MAX],
}

/// How much memory the regions of one node are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Account {
    /// Bytes of all regions now.
    pub(super) bytes: u64,
    /// The same, at most so far.
    pub(super) bytes_high: u64,
    /// Regions that were added.
    pub(super) added: u64,
    /// Regions that have gone.
    pub(super) removed: u64,
}

impl Account {
    fn keep(&mut self, stays: bool, bytes: &Bytes) {
        if !stays {
            self.removed += 1;
            self.bytes -= bytes.length();
        }
    }
}

impl RegionMemory {
    pub(super) const fn new() -> Self {
        let account = Account { bytes: 0, bytes_high: 0, added: 0, removed: 0 };
        Self {
            regions: Vec::new(),
            retired: Vec::new(),
            device: None,
            account,
            faults: None,
            scratch: [0; READ_BYTES_MAX],
        }
    }

    /// The device, once there is one.
    pub(super) const fn device(&self) -> Option<&Arc<DeviceMemory>> {
        self.device.as_ref()
    }

    /// From now on regions may lie there.
    pub(super) fn set_device(&mut self, device: Arc<DeviceMemory>) {
        self.device = Some(device);
    }

    /// What of a region lies on the device.
    fn on_device(&self, region: RegionId) -> Option<&DeviceBytes> {
        self.device.as_ref()?;
        self.regions.iter().find(|(known, _)| *known == region).and_then(|(_, bytes)| bytes.device())
    }

    /// Names of all regions.
    pub(super) fn names(&self) -> Vec<RegionId> {
        self.regions.iter().map(|(region, _)| *region).collect()
    }

    /// Answer requests of others as a fault script says from now on. [`Self::set_time`] has to follow from then on.
    pub(super) fn set_faults(
        &mut self,
        now: Instant,
        conditions: &MemoryConditions,
        new: impl FnOnce() -> MemoryFaults,
    ) {
        self.faults.get_or_insert_with(|| Box::new((now, new()))).1.set(conditions);
    }

    /// Set what time it is, for answers that come late.
    pub(super) fn set_time(&mut self, now: Instant) {
        if let Some(faults) = &mut self.faults {
            faults.0 = now;
        }
    }

    /// When the next late answer is due; [`Instant::NEVER`] if none is.
    pub(super) fn next_due(&self) -> Instant {
        self.faults.as_ref().map_or(Instant::NEVER, |faults| faults.1.next_due())
    }

    pub(super) fn add(&mut self, region: RegionId, bytes: Arc<Bytes>) {
        self.account.added += 1;
        self.account.bytes += bytes.length();
        self.account.bytes_high = self.account.bytes_high.max(self.account.bytes);
        self.regions.push((region, bytes));
    }

    pub(super) fn account(&mut self, uses: &Uses) -> Account {
        // A region whose last handle has just gone counts no more.
        self.sweep(uses);
        self.account
    }

    /// Remove a region as soon as no operation of this node uses it.
    pub(super) fn retire(&mut self, region: RegionId, uses: &Uses) {
        self.retired.push(region);
        self.sweep(uses);
    }

    /// Remove what was retired and is no longer used.
    pub(super) fn sweep(&mut self, uses: &Uses) {
        if self.retired.is_empty() {
            return;
        }
        let Self { regions, retired, account, .. } = self;
        regions.retain(|(known, bytes)| {
            let stays = !retired.contains(known) || uses.of(*known);
            account.keep(stays, bytes);
            stays
        });
        retired.retain(|region| regions.iter().any(|(known, _)| known == region));
    }

    pub(super) fn holds(&self, region: RegionId) -> bool {
        self.regions.iter().any(|(known, _)| *known == region)
    }

    /// Whether a region of this name is only kept for operations that still use it.
    pub(super) fn is_retired(&self, region: RegionId) -> bool {
        self.retired.contains(&region)
    }

    pub(super) fn remove(&mut self, region: RegionId) {
        let Self { regions, account, .. } = self;
        regions.retain(|(known, bytes)| {
            account.keep(*known != region, bytes);
            *known != region
        });
    }

    fn window(&self, region: RegionId) -> Result<Window<'_>, MemoryFault> {
        let found = self.regions.iter().find(|(known, _)| *known == region);
        found.map(|(_, bytes)| bytes.window()).ok_or(MemoryFault::NotMapped)
    }

    fn write_ranges(&self, region: RegionId, ranges: &[FrameRange], frame: &[u8]) -> Result<(), MemoryFault> {
        let window = self.window(region)?;
        if ranges.len() > 1 {
            // Small stores go anywhere: their lines come while the first of them are written, instead of one after another.
            ranges.iter().for_each(|range| window.fetch(range.region_offset));
        }
        for range in ranges {
            let from = range.frame_offset as usize;
            let bytes = from.checked_add(range.length as usize).and_then(|to| frame.get(from..to));
            window.write(range.region_offset, bytes.ok_or(MemoryFault::Device)?)?;
        }
        Ok(())
    }

    fn fetch(&mut self, region: RegionId, offset: u64, length: usize) -> Result<&[u8], MemoryFault> {
        let mut scratch = self.scratch;
        let out = scratch.get_mut(..length).ok_or(MemoryFault::Device)?;
        self.window(region)?.read(offset, out)?;
        self.scratch = scratch;
        Ok(&self.scratch[..length])
    }
}

impl RegionMemory {
    /// Answer a request, without faults.
    fn carry_out<'m>(&'m mut self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryDone<'m>> {
        let region = request.region;
        if let Some(bytes) = self.on_device(region) {
            return bytes.execute(request, frame).map(MemoryDone::Failed);
        }
        let done = match request.access {
            MemoryAccess::Write { ranges, .. } => {
                self.write_ranges(region, ranges, frame).map(|()| MemoryDone::Written)
            }
            MemoryAccess::Read { offset, length } => {
                self.fetch(region, offset, length as usize).map(MemoryDone::Bytes)
            }
            MemoryAccess::Atomic { offset, atomic } => {
                self.window(region).and_then(|window| window.atomic(offset, &atomic)).map(MemoryDone::Value)
            }
        };
        Some(done.unwrap_or_else(MemoryDone::Failed))
    }
}

impl Memory for RegionMemory {
    fn execute<'m>(&'m mut self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryDone<'m>> {
        let Some(mut faults) = self.faults.take() else { return self.carry_out(request, frame) };
        let (now, memory_faults) = &mut *faults;
        let (fails, delays) = (memory_faults.fails(), memory_faults.delays());
        if delays && !fails {
            let done = self.carry_out(request, frame);
            done.into_iter().for_each(|done| memory_faults.keep(*now, request.token, &done));
            self.faults = Some(faults);
            return None;
        }
        self.faults = Some(faults);
        if fails { Some(MemoryDone::Failed(MemoryFault::Device)) } else { self.carry_out(request, frame) }
    }

    fn write_at_once(&mut self, region: RegionId, ranges: &[FrameRange], frame: &[u8]) -> bool {
        self.faults.is_none() && self.write_ranges(region, ranges, frame).is_ok()
    }

    fn reads_at_once(&self) -> bool {
        true
    }

    fn poll_done(&mut self) -> Option<(MemoryToken, MemoryDone<'_>)> {
        let Self { faults, device, scratch, .. } = self;
        if let Some(faults) = faults
            && faults.1.next_due() <= faults.0
        {
            let (now, memory_faults) = &mut **faults;
            return memory_faults.poll(*now);
        }
        device.as_ref()?.poll_done(scratch)
    }

    fn is_busy(&self) -> bool {
        self.device.as_ref().is_some_and(|device| device.is_busy())
    }

    fn read(&mut self, region: RegionId, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        match self.on_device(region) {
            Some(bytes) => bytes.read(offset, out),
            None => self.window(region)?.read(offset, out),
        }
    }

    fn read_in_row(
        &mut self,
        region: RegionId,
        offset: u64,
        out: &mut [u8],
        following: Following,
    ) -> Result<(), MemoryFault> {
        if let Some(faults) = &mut self.faults
            && faults.1.fails_to_read()
        {
            return Err(MemoryFault::Device);
        }
        match self.on_device(region) {
            Some(bytes) => bytes.read_in_row(offset, out, following),
            None => self.window(region)?.read(offset, out),
        }
    }

    fn write(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        match self.on_device(region) {
            Some(device) => device.write_behind(offset, bytes),
            None => self.window(region)?.write(offset, bytes),
        }
    }
}
