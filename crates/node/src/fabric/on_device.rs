//! Regions of the library on a GPU: one device for a node, opened with the first of them.
//!
//! The device has a lock of its own, because the owner of a region reads and writes it without the node's lock, and groups do so
//! with it. So the order is: first the node's lock, then the device's, and under the device's lock nothing of the node is called.
//! What the device does with bytes is [`crate::memory`]'s business, as for the nodes of a rack file.

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

/// The device of a node.
#[derive(Debug)]
pub(super) struct DeviceMemory {
    choice: DeviceChoice,
    regions: Mutex<DeviceRegions>,
    /// How the device's regions are named among themselves: a name of the node's may be taken again while its old bytes are on their way out.
    next_name: AtomicU32,
    /// Rings of commands that are served. Kernels ring no doorbell, so the node stays awake as long as there is one.
    #[cfg(feature = "gpu")]
    watchers: AtomicU32,
    /// Rings that are closed: a kernel that was told may still look.
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

    /// Keep a closed ring as long as the device.
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

    /// The next answer to a request; what it has read is copied to `scratch`.
    pub(super) fn poll_done<'s>(&self, scratch: &'s mut [u8]) -> Option<(MemoryToken, MemoryDone<'s>)> {
        poll_device(&self.regions, scratch)
    }

    /// Whether the node has to look again soon, because nobody will ring.
    pub(super) fn is_busy(&self) -> bool {
        #[cfg(feature = "gpu")]
        if self.watchers.load(Ordering::Acquire) > 0 {
            return true;
        }
        self.lock().is_busy()
    }

    /// Let the device read frames where the ports keep them. Those of a port where it cannot are copied once more.
    fn take_frames_in_place(&self, ports: &mut Ports) {
        let mut regions = self.lock();
        for (start, bytes) in ports.keep_pages() {
            // SAFETY: needed because addresses outlive what Rust knows of them. `keep_pages` promises that the pages stay mapped until the
            // process ends and that a frame stays as it is until its lease is given back; the core does so when the request is answered.
            // A refusal is no failure: such frames take the longer way.
            let _ = unsafe { regions.take_frames_in_place(start, bytes) };
        }
    }
}

/// The bytes of one region on a device, given back with this value.
#[derive(Debug)]
pub(super) struct DeviceBytes {
    memory: Arc<DeviceMemory>,
    /// The device's own name for it.
    region: RegionId,
}

impl DeviceBytes {
    /// Write behind everything that was asked before.
    pub(super) fn write_behind(&self, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.memory.lock().write(self.region, offset, bytes)
    }

    /// Write, visibly for every kernel when this returns.
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

    /// Combine values at `offset` with those of another region, or copy them. False: the other lies elsewhere, or the device does not do
    /// such work.
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

    /// Wait until everything that was asked is visible.
    pub(super) fn finish(&self) -> Result<(), MemoryFault> {
        self.memory.lock().finish()
    }

    /// Where it lies, for kernels.
    pub(super) fn address(&self) -> Option<u64> {
        self.memory.lock().address(self.region)
    }
}

impl Drop for DeviceBytes {
    fn drop(&mut self) {
        // What a device that has failed keeps, the end of the process gives back.
        let _ = self.memory.lock().free(self.region);
    }
}

/// Hand the device to a node whose frames it may read.
fn furnish<M: rackloom_protocol::Member>(
    runtime: &mut Runtime<M, RegionMemory>,
    opened: DeviceMemory,
) -> Arc<DeviceMemory> {
    let (memory, ports) = runtime.memory_and_ports();
    // Somebody else may have been faster.
    if let Some(device) = memory.device() {
        return Arc::clone(device);
    }
    opened.take_frames_in_place(ports);
    let device = Arc::new(opened);
    memory.set_device(Arc::clone(&device));
    device
}

impl Node {
    /// A new region of `length` zeroed bytes in the memory of a device, which is opened with the first region on it. A node has regions
    /// on one device at most, besides those in the memory of the host. What comes from peers lands there and is acknowledged when it is
    /// visible to kernels; [`Region::device_address`] is what kernels take.
    ///
    /// # Errors
    /// As [`Node::allocate`]; [`Error::System`] where there is no such device, or no memory on it, with a hint; [`Error::Invalid`] for a
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

    /// A region made of memory of a device that the caller has allocated.
    ///
    /// # Safety
    /// The `length` bytes at `address` are memory of this device, or memory that it may use, until [`Region::deregister`] has returned
    /// `Ok`, or [`Node::leave`] has returned and no handle is used any more. Kernels may use them meanwhile as the memory model of
    /// `docs/gpu.md` says.
    ///
    /// # Errors
    /// As [`Node::allocate_on_device`].
    pub unsafe fn register_on_device(
        &self,
        options: RegionOptions,
        device: DeviceChoice,
        address: u64,
        length: u64,
    ) -> Result<Region, Error> {
        self.place_on_device(options, device, length, |regions, region| {
            // SAFETY: the caller's promise, which lasts as long as the region does.
            unsafe { regions.borrow(region, address, length) };
            Ok(())
        })
    }

    /// A region of the device's under a new name of the device's own.
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

    /// Do something with the device on which this node's regions lie: memory, streams and kernels of one's own beside the node's.
    /// `None` if it has no region on one. The node waits meanwhile, and nothing of it may be called from within.
    #[cfg(feature = "gpu")]
    pub fn with_device<T>(&self, act: impl FnOnce(&mut dyn rackloom_gpu::device::Device) -> T) -> Option<T> {
        let device = self.with_core(|core| core.member.as_mut()?.memory_mut().device().cloned())?;
        let mut regions = device.lock();
        Some(act(regions.device()))
    }

    /// The node's device, opened if this is the first region on it.
    fn device(&self, choice: DeviceChoice) -> Result<Arc<DeviceMemory>, Error> {
        let known = self.with_core(|core| Ok::<_, Error>(core.member()?.memory_mut().device().cloned()))?;
        let device = match known {
            Some(device) => device,
            None => {
                // Kernels may have to be compiled: not under the node's lock.
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
