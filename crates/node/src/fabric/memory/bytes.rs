//! The bytes of a region, of any origin, and the memory of a node that consists of them.
//!
//! The bytes are pages of an anonymous file, a buffer that the caller registered, or the caller's memory under an `unsafe` promise. The
//! engine uses an address and a length, and never a Rust slice. Bytes on a GPU have no address here: accesses beyond a window go to
//! the device ([`super::device_memory`]). The core checks keys and access rights.

use std::any::Any;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use rackloom_plan::faults::{MemoryConditions, MemoryFaults};
use rackloom_protocol::{
    DirectMemory, Following, FrameRange, Instant, JobMemory, LocalRange, Memory, MemoryAccess, MemoryDone,
    MemoryFault, MemoryRequest, MemoryToken, PayloadPath, PinnedFrames, RegionId,
};

use super::device_memory::{DeviceBytes, DeviceMemory};
use super::element::Element;
use super::pooled::{PooledBytes, Segment};
use crate::fabric::engine::uses::Uses;
use crate::mapping::{Mapping, sealed_memfd, whole_pages};
use crate::memory::{Local, LocalMemory, Offer, SharedDevice};
use crate::sharing::{MemoryOwner, SharedBytes};
use crate::window::Window;

/// Longest read request of the core, in bytes.
const READ_BYTES_MAX: usize = 256;

/// Bytes at a fixed address, kept until the last handle is dropped and the last operation has ended.
#[derive(Debug)]
pub(in crate::fabric) struct Bytes {
    base: *mut u8,
    length: usize,
    /// Number of bytes that have an address here: all or none.
    mapped: usize,
    /// Owner of the address. Nothing for memory of the caller.
    backing: Backing,
}

#[derive(Debug)]
enum Backing {
    Pages(#[expect(dead_code, reason = "kept to be unmapped in time")] Mapping),
    Buffer(Box<dyn Any + Send + Sync>),
    Caller,
    Device(DeviceBytes),
    Pooled(PooledBytes),
}

/// Object by which peers map or open bytes.
#[derive(Debug)]
pub(in crate::fabric) enum Shareable {
    /// File of the pages.
    File(OwnedFd),
    /// Handle of memory on a device.
    OnDevice(Offer),
    /// Address of memory of the program.
    InProgram(u64),
}

impl Shareable {
    /// Returns the object as an export, with the value that peers keep while they have the memory open: the piece of a pool, or memory on a device.
    pub(in crate::fabric) fn kept_by(self, bytes: &Arc<Bytes>) -> (SharedBytes, Option<MemoryOwner>) {
        let piece = |pooled: &PooledBytes| -> MemoryOwner { Arc::<Segment>::clone(pooled.segment()) };
        let owner = bytes.pooled_bytes().map(piece);
        match self {
            Self::File(file) => (SharedBytes::File(file), owner),
            Self::InProgram(address) => (SharedBytes::InProgram(address), Some(Arc::<Bytes>::clone(bytes))),
            Self::OnDevice(offer) => {
                (SharedBytes::OnDevice(offer), owner.or_else(|| Some(Arc::<Bytes>::clone(bytes))))
            }
        }
    }
}

// SAFETY: needed because the engine moves between threads. The address belongs to the process and is only used through
// a `Window`, which forms no references except atomics; `backing` is never touched while the address is in use.
unsafe impl Send for Bytes {}
// SAFETY: as above; concurrent copies are torn at worst, as remote accesses to shared memory are on real hardware.
unsafe impl Sync for Bytes {}

impl Bytes {
    /// Allocates zeroed pages. Returns their file as well, which other processes may map.
    pub(in crate::fabric) fn allocate(length: usize) -> io::Result<(Self, OwnedFd)> {
        let pages = whole_pages(length as u64).filter(|pages| isize::try_from(*pages).is_ok());
        let file = sealed_memfd("rackloom-region", pages.ok_or(io::ErrorKind::OutOfMemory)?)?;
        let pages = Mapping::new(file.as_fd(), length.max(1))?;
        let bytes = Self { base: pages.base(), length, mapped: length, backing: Backing::Pages(pages) };
        Ok((bytes, file))
    }

    /// Takes over a buffer of the caller.
    pub(in crate::fabric) fn own<T: Element>(mut buffer: Vec<T>) -> Self {
        let (base, length) = (buffer.as_mut_ptr().cast(), size_of_val(buffer.as_slice()));
        Self { base, length, mapped: length, backing: Backing::Buffer(Box::new(buffer)) }
    }

    /// Uses memory of the caller.
    ///
    /// # Safety
    /// `base` is valid for reads and writes of `length` bytes while the value exists, and no Rust reference to these bytes
    /// exists meanwhile.
    pub(in crate::fabric) unsafe fn borrow(base: *mut u8, length: usize) -> Self {
        Self { base, length, mapped: length, backing: Backing::Caller }
    }

    /// Uses bytes on a device.
    pub(in crate::fabric) fn on_device(bytes: DeviceBytes, length: usize) -> Self {
        Self { base: std::ptr::dangling_mut(), length, mapped: 0, backing: Backing::Device(bytes) }
    }

    /// Uses a piece of a pool. Returns the object by which peers map it as well, if the system provides one.
    pub(in crate::fabric) fn pooled(pooled: PooledBytes, length: usize) -> (Self, Option<Shareable>) {
        let segment = pooled.segment();
        let unshared = |error: io::Error| tracing::debug!("{error}; peers use frames");
        let (base, shareable) = match segment.pages() {
            Some((mapping, file)) => (Some(mapping.base()), file.try_clone().map(Shareable::File)),
            None => (None, segment.offer().map(Shareable::OnDevice)),
        };
        let mapped = if base.is_some() { length } else { 0 };
        let base = base.unwrap_or_else(std::ptr::dangling_mut);
        let bytes = Self { base, length, mapped, backing: Backing::Pooled(pooled) };
        (bytes, shareable.map_err(unshared).ok())
    }

    /// Returns the piece of a pool, if the bytes are one.
    pub(in crate::fabric) const fn pooled_bytes(&self) -> Option<&PooledBytes> {
        match &self.backing {
            Backing::Pooled(pooled) => Some(pooled),
            _ => None,
        }
    }

    /// Returns the memory of the program, for copies by other processes. `None` for all other memory.
    pub(in crate::fabric) fn in_program(&self) -> Option<Shareable> {
        let is_in_program = matches!(self.backing, Backing::Buffer(_) | Backing::Caller) && self.length > 0;
        is_in_program.then(|| Shareable::InProgram(self.base.expose_provenance() as u64))
    }

    /// Returns the address of the first byte, in this process or on the device.
    pub(in crate::fabric) fn start(&self) -> Option<u64> {
        match self.device() {
            Some(device) => device.address(),
            None => Some(self.base.addr() as u64),
        }
    }

    /// Returns the device of the bytes, if they are on one.
    pub(in crate::fabric) fn device(&self) -> Option<&DeviceBytes> {
        match &self.backing {
            Backing::Device(bytes) => Some(bytes),
            Backing::Pooled(pooled) => pooled.segment().device(),
            _ => None,
        }
    }

    /// Returns the address of the first byte, unless the bytes are on a device.
    pub(in crate::fabric) fn host_address(&self) -> Option<NonNull<u8>> {
        self.device().is_none().then(|| NonNull::new(self.base)).flatten()
    }

    /// Copies bytes in, to the host or the device. They are visible when this returns.
    pub(in crate::fabric) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        match self.device() {
            Some(device) => self.check(offset, bytes.len() as u64).and_then(|()| device.write(offset, bytes)),
            None => self.window().write(offset, bytes),
        }
    }

    /// Copies bytes out, from the host or the device.
    pub(in crate::fabric) fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        match self.device() {
            Some(device) => self.check(offset, out.len() as u64).and_then(|()| device.read(offset, out)),
            None => self.window().read(offset, out),
        }
    }

    pub(in crate::fabric) fn length(&self) -> u64 {
        self.length as u64
    }

    /// Returns an error for a range that is not within the bytes. Memory of a device checks its own length, and a piece of a pool may be longer.
    pub(in crate::fabric) fn check(&self, offset: u64, length: u64) -> Result<(), MemoryFault> {
        let is_within = offset.checked_add(length).is_some_and(|end| end <= self.length());
        if is_within { Ok(()) } else { Err(MemoryFault::NotMapped) }
    }

    pub(in crate::fabric) fn window(&self) -> Window<'_> {
        // SAFETY: needed because the bytes may be touched by several threads. The keeper, or the caller's promise,
        // keeps them valid as long as `self`, which bounds the window.
        unsafe { Window::over(self.base, self.mapped) }
    }

    /// Returns the buffer of the caller, if its elements have this type.
    pub(in crate::fabric) fn into_buffer<T: Element>(self) -> Option<Vec<T>> {
        match self.backing {
            Backing::Buffer(buffer) => buffer.downcast().ok().map(|buffer| *buffer),
            Backing::Pages(_) | Backing::Caller | Backing::Device(_) | Backing::Pooled(_) => None,
        }
    }
}

/// Regions of one node, as the engine's memory.
#[derive(Debug)]
pub(in crate::fabric) struct RegionMemory {
    /// Sorted by number: a program may register thousands.
    regions: Vec<(RegionId, Arc<Bytes>)>,
    /// Regions without a handle, kept for the operations that still use them.
    retired: Vec<RegionId>,
    /// Device of regions that have no address here. Opened with the first of them.
    device: Option<Arc<DeviceMemory>>,
    account: Account,
    /// Memory faults and the current time. `None` until the first fault.
    faults: Option<Box<(Instant, MemoryFaults)>>,
    scratch: [u8; READ_BYTES_MAX],
}

/// Size counters of a node's regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::fabric) struct Account {
    /// Bytes of all regions now.
    pub(in crate::fabric) bytes: u64,
    /// Largest number of bytes so far.
    pub(in crate::fabric) bytes_high: u64,
    /// Number of regions that were added.
    pub(in crate::fabric) added: u64,
    /// Number of regions that were removed.
    pub(in crate::fabric) removed: u64,
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
    pub(in crate::fabric) const fn new() -> Self {
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

    /// Returns the device, once it is open.
    pub(in crate::fabric) const fn device(&self) -> Option<&Arc<DeviceMemory>> {
        self.device.as_ref()
    }

    /// Sets the device for regions.
    pub(in crate::fabric) fn set_device(&mut self, device: Arc<DeviceMemory>) {
        self.device = Some(device);
    }

    /// Returns the bytes of a region on the device, if it is there.
    fn on_device(&self, region: RegionId) -> Option<&DeviceBytes> {
        self.device.as_ref()?;
        self.get(region).and_then(|bytes| bytes.device())
    }

    /// Returns `true` if the bytes of a region are on the device.
    pub(in crate::fabric) fn is_on_device(&self, region: RegionId) -> bool {
        self.on_device(region).is_some()
    }

    /// Returns all regions, also those without a handle that an operation still uses.
    pub(in crate::fabric) fn regions(&self) -> impl Iterator<Item = (RegionId, &Bytes)> {
        self.regions.iter().map(|(region, bytes)| (*region, &**bytes))
    }

    /// Returns the regions with a handle.
    pub(in crate::fabric) fn regions_in_use(&self) -> impl Iterator<Item = (RegionId, &Bytes)> {
        self.regions().filter(|(region, _)| !self.retired.contains(region))
    }

    /// Returns the numbers of all regions.
    pub(in crate::fabric) fn names(&self) -> Vec<RegionId> {
        self.regions.iter().map(|(region, _)| *region).collect()
    }

    /// Applies memory faults of a fault script to requests of peers. [`Self::set_time`] has to be called from then on.
    pub(in crate::fabric) fn set_faults(
        &mut self,
        now: Instant,
        conditions: &MemoryConditions,
        new: impl FnOnce() -> MemoryFaults,
    ) {
        self.faults.get_or_insert_with(|| Box::new((now, new()))).1.set(conditions);
    }

    /// Returns `true` once a fault script has struck this memory.
    pub(in crate::fabric) const fn has_faults(&self) -> bool {
        self.faults.is_some()
    }

    /// Sets the current time, for delayed answers.
    pub(in crate::fabric) fn set_time(&mut self, now: Instant) {
        if let Some(faults) = &mut self.faults {
            faults.0 = now;
        }
    }

    /// Returns the time of the next delayed answer, or [`Instant::NEVER`].
    pub(in crate::fabric) fn next_due(&self) -> Instant {
        self.faults.as_ref().map_or(Instant::NEVER, |faults| faults.1.next_due())
    }

    pub(in crate::fabric) fn add(&mut self, region: RegionId, bytes: Arc<Bytes>) {
        self.account.added += 1;
        self.account.bytes += bytes.length();
        self.account.bytes_high = self.account.bytes_high.max(self.account.bytes);
        match self.position(region) {
            Ok(index) => self.regions[index] = (region, bytes),
            Err(index) => self.regions.insert(index, (region, bytes)),
        }
    }

    fn position(&self, region: RegionId) -> Result<usize, usize> {
        self.regions.binary_search_by_key(&region, |(known, _)| *known)
    }

    fn get(&self, region: RegionId) -> Option<&Arc<Bytes>> {
        self.position(region).ok().map(|index| &self.regions[index].1)
    }

    pub(in crate::fabric) fn account(&mut self, uses: &Uses) -> Account {
        // A region whose last handle was just dropped does not count.
        self.sweep(uses);
        self.account
    }

    /// Removes a region as soon as no operation of this node uses it.
    pub(in crate::fabric) fn retire(&mut self, region: RegionId, uses: &Uses) {
        self.retired.push(region);
        self.sweep(uses);
    }

    /// Removes retired regions that are no longer used.
    pub(in crate::fabric) fn sweep(&mut self, uses: &Uses) {
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

    pub(in crate::fabric) fn holds(&self, region: RegionId) -> bool {
        self.position(region).is_ok()
    }

    /// Returns `true` if a region of this number is only kept for operations that still use it.
    pub(in crate::fabric) fn is_retired(&self, region: RegionId) -> bool {
        self.retired.contains(&region)
    }

    pub(in crate::fabric) fn remove(&mut self, region: RegionId) {
        let Self { regions, account, .. } = self;
        regions.retain(|(known, bytes)| {
            account.keep(*known != region, bytes);
            *known != region
        });
    }

    fn window(&self, region: RegionId) -> Result<Window<'_>, MemoryFault> {
        self.get(region).map(|bytes| bytes.window()).ok_or(MemoryFault::NotMapped)
    }

    fn write_ranges(&self, region: RegionId, ranges: &[FrameRange], frame: &[u8]) -> Result<(), MemoryFault> {
        let window = self.window(region)?;
        if ranges.len() > 1 {
            // Small stores have scattered targets. Their cache lines are fetched in parallel while the first of them are written.
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
    /// Executes a request, without faults.
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
}

impl LocalMemory for RegionMemory {
    fn local(&self, range: LocalRange) -> Option<Local<'_>> {
        let length = usize::try_from(range.length).ok()?;
        let bytes = self.get(range.region)?;
        if let Some(on_device) = bytes.device() {
            return bytes.check(range.offset, range.length).ok().map(|()| on_device.location(range.offset));
        }
        let window = bytes.window();
        window.range(range.offset, length).ok()?;
        Some(Local::Pages(window, range.offset))
    }

    fn word(&self, region: RegionId, offset: u64) -> Result<u64, MemoryFault> {
        let mut word = [0; 8];
        self.get(region).ok_or(MemoryFault::NotMapped)?.read(offset, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    fn shared_device(&self) -> Option<&SharedDevice> {
        self.device.as_ref().map(|device| device.shared())
    }
}

impl DirectMemory for RegionMemory {
    fn write_at_once(&mut self, region: RegionId, ranges: &[FrameRange], frame: &[u8]) -> bool {
        self.faults.is_none() && self.write_ranges(region, ranges, frame).is_ok()
    }

    fn reads_at_once(&self) -> bool {
        true
    }

    fn read_ahead(
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
            Some(bytes) => bytes.read_ahead(offset, out, following),
            None => self.window(region)?.read(offset, out),
        }
    }
}

impl JobMemory for RegionMemory {
    fn write(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        match self.on_device(region) {
            Some(device) => device.write_behind(offset, bytes),
            None => self.window(region)?.write(offset, bytes),
        }
    }
}

impl<W: PinnedFrames + ?Sized> PayloadPath<W> for RegionMemory {}
