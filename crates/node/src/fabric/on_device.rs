//! Regions on a GPU: one device per node, opened with the first region on it.
//!
//! The device has a lock of its own, because the owner of a region reads and writes it without the node's lock, and groups do so with it.
//! Lock order: first the node's lock, then the device's. No method of the node is called under the device's lock.
//! [`crate::memory`] does the work on the device, as it does for the nodes of a rack file.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use rackloom_protocol::{
    Arithmetic, Combine, Following, MemoryDone, MemoryFault, MemoryRequest, MemoryToken, Number, RegionId,
};

use super::bytes::{Bytes, RegionMemory};
use super::error::Error;
use super::node::Node;
use super::region::{Region, RegionOptions};
use crate::memory::{DeviceChoice, DeviceRegions, locked, poll_device};
use crate::runtime::Runtime;
use crate::wires::Ports;

/// Device of a node.
#[derive(Debug)]
pub(super) struct DeviceMemory {
    choice: DeviceChoice,
    regions: Mutex<DeviceRegions>,
    /// Next number of a region on the device. It differs from the node's number, which may be used again while the old bytes are being freed.
    next_name: AtomicU32,
    /// Number of open command rings. Kernels ring no doorbell, so the node stays awake while there is one.
    #[cfg(feature = "gpu")]
    watchers: AtomicU32,
    /// Closed rings, kept because a kernel may still read them.
    #[cfg(feature = "gpu")]
    rings: Mutex<Vec<rackloom_gpu::commands::CommandRing>>,
}

impl DeviceMemory {
    fn open(choice: DeviceChoice) -> io::Result<Self> {
        Ok(Self {
            #[cfg(feature = "gpu")]
            rings: Mutex::default(),
            choice,
            regions: Mutex::new(DeviceRegions::open(choice)?),
            next_name: AtomicU32::new(0),
            #[cfg(feature = "gpu")]
            watchers: AtomicU32::new(0),
        })
    }

    #[cfg(feature = "gpu")]
    pub(super) const fn watchers(&self) -> &AtomicU32 {
        &self.watchers
    }

    /// Keeps a closed ring until the device is dropped.
    #[cfg(feature = "gpu")]
    pub(super) fn keep_ring(&self, ring: rackloom_gpu::commands::CommandRing) {
        self.rings.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(ring);
    }

    fn name(&self) -> RegionId {
        RegionId(self.next_name.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, DeviceRegions> {
        locked(&self.regions)
    }

    /// Returns the next answer to a request. Bytes that it has read are copied to `scratch`.
    pub(super) fn poll_done<'s>(&self, scratch: &'s mut [u8]) -> Option<(MemoryToken, MemoryDone<'s>)> {
        poll_device(&self.regions, scratch)
    }

    /// Returns `true` if the node has to poll again soon, because no doorbell will ring.
    pub(super) fn is_busy(&self) -> bool {
        #[cfg(feature = "gpu")]
        if self.watchers.load(Ordering::Acquire) > 0 {
            return true;
        }
        self.lock().is_busy()
    }

    /// Lets the device read frames in the buffers of the ports. Frames of a port where it cannot are copied once more.
    fn take_frames_in_place(&self, ports: &mut Ports) {
        let mut regions = self.lock();
        for (start, bytes) in ports.keep_pages() {
            // SAFETY: needed because Rust does not track the lifetime of these addresses. `keep_pages` promises that the pages stay mapped until
            // the process ends, and that a frame does not change until its lease is released. The core releases it after the request's answer.
            // A refusal is no error: such frames are copied.
            let _ = unsafe { regions.take_frames_in_place(start, bytes) };
        }
    }
}

/// Bytes of one region on a device. Dropping the value frees them.
#[derive(Debug)]
pub(super) struct DeviceBytes {
    memory: Arc<DeviceMemory>,
    /// Number of the region on the device.
    region: RegionId,
}

impl DeviceBytes {
    /// Writes after all earlier requests, without waiting.
    pub(super) fn write_behind(&self, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.memory.lock().write(self.region, offset, bytes)
    }

    /// Writes. The bytes are visible to every kernel when this returns.
    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let mut regions = self.memory.lock();
        regions.write(self.region, offset, bytes)?;
        regions.finish()
    }

    pub(super) fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        self.memory.lock().read(self.region, offset, out)
    }

    pub(super) fn read_in_row(
        &self,
        offset: u64,
        out: &mut [u8],
        following: Following,
    ) -> Result<(), MemoryFault> {
        self.memory.lock().read_in_row(self.region, offset, out, following)
    }

    pub(super) fn execute(&self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryFault> {
        self.memory.lock().execute(&MemoryRequest { region: self.region, ..*request }, frame)
    }

    /// Combines values at `offset` with those of another region, or copies them. Returns `false` if the other region is elsewhere, or the
    /// device does not support the arithmetic.
    pub(super) fn combine(
        &self,
        offset: u64,
        source: (&Self, u64),
        length: u64,
        how: Option<(Arithmetic, Number)>,
    ) -> Result<bool, MemoryFault> {
        let (other, source_offset) = source;
        if !Arc::ptr_eq(&self.memory, &other.memory) {
            return Ok(false);
        }
        let (target, source) = ((self.region, offset), (other.region, source_offset));
        self.memory.lock().combine(&Combine { target, source, length, how })
    }

    /// Waits until all earlier requests are visible.
    pub(super) fn finish(&self) -> Result<(), MemoryFault> {
        self.memory.lock().finish()
    }

    /// Returns the address for kernels.
    pub(super) fn address(&self) -> Option<u64> {
        self.memory.lock().address(self.region)
    }
}

impl Drop for DeviceBytes {
    fn drop(&mut self) {
        // Memory that a failed device does not free is freed when the process ends.
        let _ = self.memory.lock().free(self.region);
    }
}

/// Hands the device to a node whose frames it may read.
fn furnish<M: rackloom_protocol::Member>(
    runtime: &mut Runtime<M, RegionMemory>,
    opened: DeviceMemory,
) -> Arc<DeviceMemory> {
    let (memory, ports) = runtime.memory_and_ports();
    // Another thread may have been faster.
    if let Some(device) = memory.device() {
        return Arc::clone(device);
    }
    opened.take_frames_in_place(ports);
    let device = Arc::new(opened);
    memory.set_device(Arc::clone(&device));
    device
}

impl Node {
    /// Allocates a region of `length` zeroed bytes in the memory of a device. The first such region opens the device. A node has regions on
    /// one device at most, besides those in the memory of the host. Data of peers is acknowledged when it is visible to kernels.
    /// [`Region::device_address`] is the address for kernels.
    ///
    /// # Errors
    /// Those of [`Node::allocate`]; [`Error::System`] with a hint if there is no such device, or no memory on it; [`Error::Invalid`] for a
    /// second device.
    pub fn allocate_on_device(
        &self,
        options: RegionOptions,
        device: DeviceChoice,
        length: u64,
    ) -> Result<Region, Error> {
        self.place_on_device(options, device, length, |regions, region| {
            regions.allocate(region, length).map_err(Error::system("cannot allocate a region"))
        })
    }

    /// Makes a region of device memory that the caller has allocated.
    ///
    /// # Safety
    /// The `length` bytes at `address` are memory of this device, or memory that it may use, until [`Region::deregister`] has returned
    /// `Ok`, or [`Node::leave`] has returned and no handle is used any more. Kernels may use them meanwhile under the memory model of
    /// `docs/gpu.md`.
    ///
    /// # Errors
    /// Those of [`Node::allocate_on_device`].
    pub unsafe fn register_on_device(
        &self,
        options: RegionOptions,
        device: DeviceChoice,
        address: u64,
        length: u64,
    ) -> Result<Region, Error> {
        self.place_on_device(options, device, length, |regions, region| {
            // SAFETY: the caller's promise, which holds until the region ends.
            unsafe { regions.borrow(region, address, length) };
            Ok(())
        })
    }

    /// Makes a region on the device under a new number of the device.
    fn place_on_device(
        &self,
        options: RegionOptions,
        device: DeviceChoice,
        length: u64,
        place: impl FnOnce(&mut DeviceRegions, RegionId) -> Result<(), Error>,
    ) -> Result<Region, Error> {
        let mapped = usize::try_from(length).map_err(|_| Error::Invalid("the region is too large"))?;
        let memory = self.device(device)?;
        let region = memory.name();
        place(&mut memory.lock(), region)?;
        let bytes = DeviceBytes { memory, region };
        self.announce(options, Bytes::on_device(bytes, mapped))
    }

    /// Calls `act` with the device of this node's regions, for memory, streams and kernels of the caller. `None` if the node has no region on
    /// a device. The node waits meanwhile, and `act` must not call any method of it.
    #[cfg(feature = "gpu")]
    pub fn with_device<T>(&self, act: impl FnOnce(&mut dyn rackloom_gpu::device::Device) -> T) -> Option<T> {
        let device = self.with_core(|core| core.member.as_mut()?.memory_mut().device().cloned())?;
        let mut regions = device.lock();
        Some(act(regions.device()))
    }

    /// Returns the node's device. Opens it for the first region on it.
    fn device(&self, choice: DeviceChoice) -> Result<Arc<DeviceMemory>, Error> {
        let known = self.with_core(|core| Ok::<_, Error>(core.member()?.memory_mut().device().cloned()))?;
        let device = match known {
            Some(device) => device,
            None => {
                // Kernels may have to be compiled, which takes too long under the node's lock.
                let opened = DeviceMemory::open(choice).map_err(Error::system("cannot open the device"))?;
                self.with_core(|core| Ok::<_, Error>(furnish(core.member()?, opened)))?
            }
        };
        if device.choice == choice {
            return Ok(device);
        }
        Err(Error::Invalid("the node has regions on another device; hint: one device per node"))
    }
}
