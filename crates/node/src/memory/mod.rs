//! Host memory of one member: one sealed anonymous file per region, mapped, zeroed, first touched when used.
//!
//! A region is a file so that a process of the same server can map it later. It is sealed so that no process can shrink it while it is mapped.
//! Because other processes may map it, its bytes are never a Rust slice: they are copied in and out through raw pointers, and words that a process
//! may wait for are accessed by CPU atomics only.
//!
//! The core decides which peer may access which range before it sends a request. The bounds are checked here once more, because a wrong range would
//! be a wild write. This file does not handle keys, tenants or permissions.

#[cfg(feature = "gpu")]
mod device;
#[cfg(not(feature = "gpu"))]
#[path = "no_device.rs"]
mod device;
mod error;
mod ledger;
mod options;
mod placement;
mod system;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rackloom_plan::faults::{MemoryConditions, MemoryFaults};
use rackloom_protocol::{
    Combine, DirectMemory, Following, FrameRange, Instant, JobMemory, LocalRange, Memory, MemoryAccess,
    MemoryDone, MemoryFault, MemoryRequest, MemoryToken, PayloadPath, PinnedFrames, RegionId,
};

use crate::mapping::whole_pages;
use crate::window::Window;
use crate::wires::Ports;

use device::Mapper;
#[cfg(feature = "gpu")]
pub use device::open as open_device;
pub(crate) use device::{DeviceRegions, HANDLE_BYTES, Offer};
pub use error::{AllocateError, FreeRefused, QuotaExceeded};
use ledger::Ledger;
pub use ledger::{MemoryLimits, Statistics, TenantLimit, Usage};
pub(crate) use options::DeviceKind;
pub use options::{
    DeviceChoice, Granted, MemoryOptions, PagePreference, Pages, Placement, PoolUsage, TiersInUse,
};
use placement::Backing;

/// A device shared by a memory and its imports. One sequence of operations orders the requests of both.
pub(crate) type SharedDevice = Arc<Mutex<DeviceRegions>>;

/// Location of local bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Local<'a> {
    /// Pages, and the offset of the first byte within them.
    Pages(Window<'a>, u64),
    /// A region on a device, and the offset of the first byte within it.
    Device(&'a SharedDevice, RegionId, u64),
}

/// Memory of a member that uses regions of others: the local ends of copies, and the words that it waits for.
pub(crate) trait LocalMemory {
    /// Returns the location of a range, if it lies within its region.
    fn local(&self, range: LocalRange) -> Option<Local<'_>>;

    /// Reads a word of 8 bytes that peers may change.
    ///
    /// # Errors
    /// The word is not within its region, or its device has failed.
    fn word(&self, region: RegionId, offset: u64) -> Result<u64, MemoryFault>;

    /// Returns the device that holds regions, for users of other members' memory on it.
    fn shared_device(&self) -> Option<&SharedDevice>;
}

/// Locks the device. A panic under the lock would be a bug here, so a poisoned lock is entered: the device itself reports operations that it has not
/// performed.
pub(crate) fn locked(device: &Mutex<DeviceRegions>) -> MutexGuard<'_, DeviceRegions> {
    device.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Maximum number of bytes of one read request.
const READ_BYTES_MAX: usize = 256;

/// The regions of one member.
///
/// `Send` and `Sync`. Its changes take `&mut self`, so one thread drives it at a time.
#[derive(Debug)]
pub struct HostMemory {
    /// Device whose kernels use regions in place. Declared before the regions, because fields are dropped in order: its pages must exist until it is
    /// dropped.
    mapper: Option<(DeviceChoice, Mapper)>,
    regions: Regions,
    /// Regions in the memory of a device.
    on_device: Option<SharedDevice>,
    device: Option<DeviceChoice>,
    ledger: Ledger,
    scratch: Box<[u8; READ_BYTES_MAX]>,
    /// Faults of a fault script, and the current time.
    faults: Option<Box<(Instant, MemoryFaults)>>,
}

/// Regions, sorted by number.
#[derive(Debug, Default)]
struct Regions(Vec<Region>);

#[derive(Debug)]
struct Region {
    region: RegionId,
    backing: Backing,
    length: usize,
    options: MemoryOptions,
    /// Set if a process may have mapped the region: it must not be freed.
    is_exported: bool,
}

impl Default for HostMemory {
    fn default() -> Self {
        Self::limited(MemoryLimits::default())
    }
}

impl HostMemory {
    /// Creates a memory with these limits.
    #[must_use]
    pub fn limited(limits: MemoryLimits) -> Self {
        let ledger = Ledger { limits, ..Ledger::default() };
        Self {
            mapper: None,
            regions: Regions::default(),
            on_device: None,
            device: None,
            ledger,
            scratch: Box::new([0; READ_BYTES_MAX]),
            faults: None,
        }
    }

    /// Adds a zeroed region.
    ///
    /// # Errors
    /// [`AllocateError`]: the number is in use, a limit would be exceeded, or the system has no memory. Nothing is changed then.
    pub fn allocate(&mut self, region: RegionId, length: u64) -> Result<(), AllocateError> {
        self.allocate_with(region, length, MemoryOptions::default()).map(|_| ())
    }

    /// Adds a zeroed region with these options. Returns the granted options.
    ///
    /// # Errors
    /// [`AllocateError`] as for [`HostMemory::allocate`]. The system may also refuse a requirement of the options.
    pub fn allocate_with(
        &mut self,
        region: RegionId,
        length: u64,
        options: MemoryOptions,
    ) -> Result<&Granted, AllocateError> {
        let Err(index) = self.position(region) else { return Err(AllocateError::Exists(region)) };
        if self.on_device().is_some_and(|device| device.length(region).is_some()) {
            return Err(AllocateError::Exists(region));
        }
        self.ledger.check(region, length)?;
        if let Some(choice) = options.device {
            return self.allocate_on_device(region, length, choice, options.pool);
        }
        let system = |cause: io::Error| AllocateError::System { region, cause };
        let too_large =
            || system(io::Error::new(io::ErrorKind::OutOfMemory, format!("{length} bytes are too many")));
        whole_pages(length).filter(|length| isize::try_from(*length).is_ok()).ok_or_else(too_large)?;
        let mut backing = Backing::new(length, options).map_err(system)?;
        if let Some(choice) = options.mapped {
            backing.granted.device_address = Some(self.map(&backing, choice).map_err(system)?);
        }
        self.ledger.add(backing.pages.length() as u64, length);
        let added = Region { region, backing, length: length as usize, options, is_exported: false };
        self.regions.0.insert(index, added);
        Ok(&self.regions.0[index].backing.granted)
    }

    /// Lets kernels of a device use pages in place. Returns the address at which kernels find them.
    fn map(&mut self, backing: &Backing, choice: DeviceChoice) -> io::Result<u64> {
        if self.mapper.is_none() {
            self.mapper = Some((choice, Mapper::open(choice)?));
        }
        match &mut self.mapper {
            Some((known, mapper)) if *known == choice => {
                let (start, bytes) = (backing.pages.base().expose_provenance(), backing.pages.length());
                // SAFETY: needed because addresses outlive the borrows that Rust tracks. Pages of a region are unmapped only after `unmap`, or with
                // this value, whose device is dropped first.
                unsafe { mapper.map(start, bytes) }
            }
            _ => {
                let text = format!(
                    "other regions are mapped by another device than {choice}; hint: one device per node"
                );
                Err(io::Error::new(io::ErrorKind::InvalidInput, text))
            }
        }
    }

    /// Ends the use of a region by kernels. After an error its pages must stay.
    fn unmap(&mut self, index: usize) -> io::Result<()> {
        let Backing { pages, granted, .. } = &mut self.regions.0[index].backing;
        if let (Some(_), Some((_, mapper))) = (granted.device_address, &mut self.mapper) {
            mapper.unmap(pages.base().expose_provenance())?;
            granted.device_address = None;
        }
        Ok(())
    }

    /// Returns the device whose kernels use regions in place, if there is one.
    #[must_use]
    pub fn mapped_by(&self) -> Option<DeviceChoice> {
        self.mapper.as_ref().map(|(choice, _)| *choice)
    }

    /// Calls `act` with that device, for streams and kernels that use the regions.
    #[cfg(feature = "gpu")]
    pub fn with_mapper<T>(
        &mut self,
        act: impl FnOnce(&mut dyn rackloom_gpu::device::Device) -> T,
    ) -> Option<T> {
        self.mapper.as_mut().map(|(_, mapper)| act(mapper.device()))
    }

    fn allocate_on_device(
        &mut self,
        region: RegionId,
        length: u64,
        choice: DeviceChoice,
        of_pool: bool,
    ) -> Result<&Granted, AllocateError> {
        let system = |cause: io::Error| AllocateError::System { region, cause };
        if self.on_device.is_none() {
            let opened = DeviceRegions::open(choice).map_err(system)?;
            self.on_device = Some(Arc::new(Mutex::new(opened)));
            self.device = Some(choice);
        }
        if let Some(known) = self.device.filter(|known| *known != choice) {
            let text =
                format!("the other regions lie on {known}, not on {choice}; hint: one device per node");
            return Err(system(io::Error::new(io::ErrorKind::InvalidInput, text)));
        }
        self.on_device()
            .map_or(Ok(()), |mut device| device.allocate_apart(region, length, of_pool))
            .map_err(system)?;
        self.ledger.add(length, length);
        Ok(&ON_DEVICE)
    }

    /// Lets a device that holds regions read frames in the memory of the ports, so that they are copied once. Returns the reason for each port whose
    /// frames it cannot read there; those frames are copied once more. Does nothing for memory without a device.
    pub fn take_frames_in_place(&mut self, ports: &mut Ports) -> Vec<io::Error> {
        let Some(mut device) = self.on_device() else { return Vec::new() };
        let take = |(start, bytes)| {
            // SAFETY: needed because addresses outlive the borrows that Rust tracks. `keep_pages` promises that the pages stay mapped until the
            // process ends, and that frames given to memory do not change until their lease is released. The core releases it when the request is
            // answered.
            unsafe { device.take_frames_in_place(start, bytes) }.err()
        };
        ports.keep_pages().into_iter().filter_map(take).collect()
    }

    fn on_device(&self) -> Option<MutexGuard<'_, DeviceRegions>> {
        self.on_device.as_deref().map(locked)
    }

    /// Waits until this member's accesses to its own memory on a device are visible to all processes that have opened it. Pages do not need this.
    pub fn settle(&self) {
        // A device that has failed reports the error at the next access.
        let _ = self.on_device().map(|mut device| device.finish());
    }

    /// Lets processes of this server open a region on a device. Returns `None` if the region is not on a device.
    pub(crate) fn offer(&self, region: RegionId) -> Option<io::Result<Offer>> {
        let mut device = self.on_device()?;
        device.length(region).is_some().then(|| device.offer(region))
    }

    /// Unmaps and removes a region. Refuses as long as it is exported, because memory that a peer has mapped must not be reused.
    ///
    /// # Errors
    /// [`FreeRefused`]: there is no such region, or it is exported. Nothing is changed then.
    pub fn free(&mut self, region: RegionId) -> Result<(), FreeRefused> {
        if self.on_device().is_some_and(|device| device.is_exported(region)) {
            return Err(FreeRefused::Exported(region));
        }
        let freed = self.on_device().and_then(|mut device| device.free(region));
        if let Some(freed) = freed {
            let length = freed.map_err(|_| FreeRefused::DeviceFailed(region))?;
            self.ledger.remove(length, length);
            return Ok(());
        }
        let index = self.position(region).map_err(|_| FreeRefused::NoSuchRegion(region))?;
        if self.regions.0[index].is_exported {
            return Err(FreeRefused::Exported(region));
        }
        self.unmap(index).map_err(|_| FreeRefused::DeviceFailed(region))?;
        let freed = self.regions.0.remove(index);
        self.ledger.remove(freed.backing.pages.length() as u64, freed.length as u64);
        Ok(())
    }

    /// Returns the device that holds regions of this memory, if there is one.
    #[must_use]
    pub fn device(&self) -> Option<DeviceChoice> {
        self.device
    }

    /// Returns the sizes at which the method of access to regions on a device changes, if there is a device.
    #[must_use]
    pub fn tiers(&self) -> Option<TiersInUse> {
        self.on_device().map(|device| device.tiers())
    }

    /// Returns the usage of the device's pool, if some regions were allocated from it.
    #[must_use]
    pub fn pool(&self) -> Option<PoolUsage> {
        let mut device = self.on_device()?;
        device.pool()
    }

    /// Returns current and maximum usage, and the number of allocations and frees.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.ledger.statistics
    }

    /// Returns the limits of this memory.
    #[must_use]
    pub fn limits(&self) -> MemoryLimits {
        self.ledger.limits
    }

    /// Returns the existing regions, in the order of their numbers.
    pub fn regions(&self) -> impl Iterator<Item = RegionId> {
        let mut regions: Vec<_> = self.regions.0.iter().map(|region| region.region).collect();
        regions.extend(self.on_device().into_iter().flat_map(|device| device.regions()));
        regions.sort_unstable();
        regions.into_iter()
    }

    /// Returns the size of a region in whole pages, in bytes.
    #[must_use]
    pub fn reserved(&self, region: RegionId) -> Option<u64> {
        self.find(region).map(|found| found.backing.pages.length() as u64)
    }

    /// Returns the options that a region was granted.
    #[must_use]
    pub fn granted(&self, region: RegionId) -> Option<&Granted> {
        self.find(region).map(|found| &found.backing.granted)
    }

    /// Returns the kernel's data about the pages of a region. Reads /proc; not for a hot path.
    ///
    /// # Errors
    /// `NotFound` if there is no such region, else the error of reading /proc.
    pub fn placement(&self, region: RegionId) -> io::Result<Placement> {
        let found = self.find(region).ok_or(io::ErrorKind::NotFound)?;
        found.backing.placement()
    }

    /// Protects a region from being freed, or ends the protection.
    pub(crate) fn set_exported(&mut self, region: RegionId, is_exported: bool) {
        if let Ok(index) = self.position(region) {
            self.regions.0[index].is_exported = is_exported;
        } else if let Some(mut device) = self.on_device() {
            device.set_exported(region, is_exported);
        }
    }

    /// Separates a region from every process that has mapped it: the same bytes at the same address in a new file.
    pub(crate) fn move_to_fresh_file(&mut self, region: RegionId) -> io::Result<()> {
        if self.on_device().is_some_and(|device| device.length(region).is_some()) {
            let text = "revocation of memory on a device is cooperative; hint: wait for its importers, or end their processes";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let index = self.position(region).map_err(|_| io::ErrorKind::NotFound)?;
        let was_mapped = self.regions.0[index].backing.granted.device_address.is_some();
        self.unmap(index)?;
        let found = &mut self.regions.0[index];
        found.backing.move_to_fresh_file(found.options)?;
        if let Some(choice) = found.options.mapped.filter(|_| was_mapped) {
            self.map_again(index, choice);
        }
        Ok(())
    }

    /// Maps a region for kernels again after a move. If that fails, the region has no device address any more and records the reason.
    fn map_again(&mut self, index: usize, choice: DeviceChoice) {
        let region = self.regions.0.remove(index);
        let mapped = self.map(&region.backing, choice);
        self.regions.0.insert(index, region);
        let granted = &mut self.regions.0[index].backing.granted;
        match mapped {
            Ok(address) => granted.device_address = Some(address),
            Err(cause) => granted.reasons.push(format!("not mapped by {choice} any more: {cause}")),
        }
    }

    /// Returns access to the bytes of a region.
    pub(crate) fn window(&self, region: RegionId) -> Option<Window<'_>> {
        self.find(region).map(Region::window)
    }

    /// Returns the length of a region, in bytes.
    #[must_use]
    pub fn length(&self, region: RegionId) -> Option<u64> {
        let on_device = || self.on_device().and_then(|device| device.length(region));
        self.find(region).map(|found| found.length as u64).or_else(on_device)
    }

    /// Returns the length of all regions together, in bytes.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.ledger.statistics.used.current
    }

    /// Returns the file of a region, for a process of the same server to map.
    #[must_use]
    pub fn file(&self, region: RegionId) -> Option<BorrowedFd<'_>> {
        self.find(region).map(|found| found.backing.as_fd())
    }

    /// Returns a second view of the memory, for another user within this thread.
    #[must_use]
    pub fn view(&self) -> HostView<'_> {
        HostView { memory: self, scratch: [0; READ_BYTES_MAX] }
    }

    /// Applies the conditions of a fault script to requests of peers and to outgoing data. Afterwards the caller must [set the time](Self::set_time)
    /// regularly.
    pub fn set_faults(
        &mut self,
        now: Instant,
        conditions: &MemoryConditions,
        new: impl FnOnce() -> MemoryFaults,
    ) {
        self.faults.get_or_insert_with(|| Box::new((now, new()))).1.set(conditions);
    }

    /// Sets the current time, for delayed answers.
    pub fn set_time(&mut self, now: Instant) {
        if let Some(faults) = &mut self.faults {
            faults.0 = now;
        }
    }

    /// Returns whether a poll of a word of this memory fails now because of a fault script. It counts as a request.
    pub fn fails_to_look(&mut self) -> bool {
        self.faults.as_mut().is_some_and(|faults| faults.1.fails())
    }

    /// Returns the time of the next delayed answer, or [`Instant::NEVER`] if there is none.
    #[must_use]
    pub fn next_due(&self) -> Instant {
        self.faults.as_ref().map_or(Instant::NEVER, |faults| faults.1.next_due())
    }

    /// Performs a request, without the faults of a fault script.
    fn carry_out<'m>(&'m mut self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryDone<'m>> {
        if self.on_device.is_some()
            && self.find(request.region).is_none()
            && let Some(mut device) = self.on_device()
        {
            return device.execute(request, frame).map(MemoryDone::Failed);
        }
        let Self { regions, scratch, .. } = self;
        Some(regions.answer(request, frame, scratch))
    }

    /// Performs a request under the faults of a fault script.
    fn carry_out_under<'m>(
        &'m mut self,
        mut faults: Box<(Instant, MemoryFaults)>,
        request: &MemoryRequest<'_>,
        frame: &[u8],
    ) -> Option<MemoryDone<'m>> {
        let (now, memory_faults) = &mut *faults;
        let (fails, delays) = (memory_faults.fails(), memory_faults.delays());
        let failed = MemoryDone::Failed(MemoryFault::Device);
        if delays && !fails {
            let done = self.carry_out(request, frame);
            done.into_iter().for_each(|done| memory_faults.keep(*now, request.token, &done));
            self.faults = Some(faults);
            return None;
        }
        self.faults = Some(faults);
        if fails { Some(failed) } else { self.carry_out(request, frame) }
    }

    fn position(&self, region: RegionId) -> Result<usize, usize> {
        self.regions.position(region)
    }

    fn find(&self, region: RegionId) -> Option<&Region> {
        self.regions.find(region)
    }
}

impl Memory for HostMemory {
    fn execute<'m>(&'m mut self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryDone<'m>> {
        match self.faults.take() {
            Some(faults) => self.carry_out_under(faults, request, frame),
            None => self.carry_out(request, frame),
        }
    }

    fn poll_done(&mut self) -> Option<(MemoryToken, MemoryDone<'_>)> {
        let Self { faults, on_device, scratch, .. } = self;
        if let Some(faults) = faults
            && faults.1.next_due() <= faults.0
        {
            let (now, memory_faults) = &mut **faults;
            return memory_faults.poll(*now);
        }
        poll_device(on_device.as_ref()?, &mut scratch[..])
    }

    fn is_busy(&self) -> bool {
        self.on_device().is_some_and(|device| device.is_busy())
    }

    fn read(&mut self, region: RegionId, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        match self.regions.found(region) {
            Ok(found) => found.window().read(offset, out),
            Err(fault) => self.on_device().ok_or(fault)?.read(region, offset, out),
        }
    }
}

impl LocalMemory for HostMemory {
    fn local(&self, range: LocalRange) -> Option<Local<'_>> {
        let length = usize::try_from(range.length).ok()?;
        if let Some(window) = self.window(range.region) {
            window.range(range.offset, length).ok()?;
            return Some(Local::Pages(window, range.offset));
        }
        let region_length = self.on_device()?.length(range.region)?;
        let is_within = range.offset.checked_add(range.length)? <= region_length;
        self.on_device
            .as_ref()
            .filter(|_| is_within)
            .map(|device| Local::Device(device, range.region, range.offset))
    }

    fn word(&self, region: RegionId, offset: u64) -> Result<u64, MemoryFault> {
        let mut word = [0; 8];
        match self.regions.found(region) {
            Ok(found) => found.window().read(offset, &mut word)?,
            Err(fault) => self.on_device().ok_or(fault)?.read(region, offset, &mut word)?,
        }
        Ok(u64::from_le_bytes(word))
    }

    fn shared_device(&self) -> Option<&SharedDevice> {
        self.on_device.as_ref()
    }
}

impl DirectMemory for HostMemory {
    fn write_at_once(&mut self, region: RegionId, ranges: &[FrameRange], frame: &[u8]) -> bool {
        self.faults.is_none() && self.regions.write_ranges(region, ranges, frame).is_ok()
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
        match self.regions.found(region) {
            Ok(found) => found.window().read(offset, out),
            Err(fault) => self.on_device().ok_or(fault)?.read_ahead(region, offset, out, following),
        }
    }
}

impl JobMemory for HostMemory {
    fn combine(&mut self, combine: &Combine) -> Result<bool, MemoryFault> {
        self.on_device().map_or(Ok(false), |mut device| device.combine(combine))
    }

    fn write(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        match self.regions.found(region) {
            Ok(found) => found.window().write(offset, bytes),
            Err(fault) => self.on_device().ok_or(fault)?.write(region, offset, bytes),
        }
    }
}

impl<W: PinnedFrames + ?Sized> PayloadPath<W> for HostMemory {}

/// Returns the next answer of a device. Bytes that it has read are copied to `scratch`, because other users access the device meanwhile.
pub(crate) fn poll_device<'s>(
    device: &Mutex<DeviceRegions>,
    scratch: &'s mut [u8],
) -> Option<(MemoryToken, MemoryDone<'s>)> {
    let mut regions = locked(device);
    let (token, done) = regions.poll_done()?;
    let done = match done {
        MemoryDone::Bytes(bytes) => match scratch.get_mut(..bytes.len()) {
            Some(kept) => {
                kept.copy_from_slice(bytes);
                MemoryDone::Bytes(kept)
            }
            None => MemoryDone::Failed(MemoryFault::Device),
        },
        MemoryDone::Written => MemoryDone::Written,
        MemoryDone::Value(value) => MemoryDone::Value(value),
        MemoryDone::Failed(fault) => MemoryDone::Failed(fault),
    };
    Some((token, done))
}

/// Granted options of a region in the memory of a device: no page option applies, and there are no reasons.
static ON_DEVICE: Granted = Granted {
    pages: Pages::Ordinary,
    locked: false,
    numa_node: None,
    device_address: None,
    reasons: Vec::new(),
};

/// A second view of a memory, for a job whose commands need it at the same time. Shared pages have several writers in any case. Only the buffer for
/// the bytes of a read must not be shared.
///
/// `Send` and `Sync`. Its changes take `&mut self`, so one thread drives it at a time.
#[derive(Debug)]
pub struct HostView<'a> {
    memory: &'a HostMemory,
    scratch: [u8; READ_BYTES_MAX],
}

impl Memory for HostView<'_> {
    fn execute<'m>(&'m mut self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryDone<'m>> {
        Some(self.memory.regions.answer(request, frame, &mut self.scratch))
    }

    fn read(&mut self, region: RegionId, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        match self.memory.regions.found(region) {
            Ok(found) => found.window().read(offset, out),
            Err(fault) => self.memory.on_device().ok_or(fault)?.read(region, offset, out),
        }
    }

    fn is_busy(&self) -> bool {
        Memory::is_busy(self.memory)
    }
}

impl JobMemory for HostView<'_> {
    fn combine(&mut self, combine: &Combine) -> Result<bool, MemoryFault> {
        self.memory.on_device().map_or(Ok(false), |mut device| device.combine(combine))
    }

    fn write(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        match self.memory.regions.found(region) {
            Ok(found) => found.window().write(offset, bytes),
            Err(fault) => self.memory.on_device().ok_or(fault)?.write(region, offset, bytes),
        }
    }
}

impl Regions {
    fn position(&self, region: RegionId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&region, |known| known.region)
    }

    fn find(&self, region: RegionId) -> Option<&Region> {
        self.position(region).ok().map(|index| &self.0[index])
    }

    fn found(&self, region: RegionId) -> Result<&Region, MemoryFault> {
        self.find(region).ok_or(MemoryFault::NotMapped)
    }

    fn answer<'m>(
        &self,
        request: &MemoryRequest<'_>,
        frame: &[u8],
        scratch: &'m mut [u8; READ_BYTES_MAX],
    ) -> MemoryDone<'m> {
        let region = request.region;
        let done = match request.access {
            MemoryAccess::Write { ranges, .. } => {
                self.write_ranges(region, ranges, frame).map(|()| MemoryDone::Written)
            }
            MemoryAccess::Read { offset, length } => self.read_into(region, offset, length, scratch),
            MemoryAccess::Atomic { offset, atomic } => self
                .found(region)
                .and_then(|found| found.window().atomic(offset, &atomic))
                .map(MemoryDone::Value),
        };
        done.unwrap_or_else(MemoryDone::Failed)
    }

    fn read_into<'m>(
        &self,
        region: RegionId,
        offset: u64,
        length: u32,
        scratch: &'m mut [u8; READ_BYTES_MAX],
    ) -> Result<MemoryDone<'m>, MemoryFault> {
        let found = self.found(region)?;
        let out = scratch.get_mut(..length as usize).ok_or(MemoryFault::Device)?;
        found.window().read(offset, out)?;
        Ok(MemoryDone::Bytes(out))
    }

    fn write_ranges(&self, region: RegionId, ranges: &[FrameRange], frame: &[u8]) -> Result<(), MemoryFault> {
        let region = self.found(region)?;
        for range in ranges {
            let from = range.frame_offset as usize;
            let bytes = from.checked_add(range.length as usize).and_then(|to| frame.get(from..to));
            region.window().write(range.region_offset, bytes.ok_or(MemoryFault::Device)?)?;
        }
        Ok(())
    }
}

impl Region {
    fn window(&self) -> Window<'_> {
        Window::new(&self.backing.pages, self.length)
    }
}

#[cfg(test)]
mod tests;
