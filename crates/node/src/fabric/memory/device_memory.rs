//! Memory of a device for the regions of a node.
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

use crate::memory::{DeviceChoice, DeviceRegions, Local, Offer, SharedDevice, locked, poll_device};
use crate::wires::Ports;

/// Device of a node.
#[derive(Debug)]
pub(in crate::fabric) struct DeviceMemory {
    pub(in crate::fabric) choice: DeviceChoice,
    /// Shared with the imports of the node: one sequence of operations orders the requests of both.
    regions: SharedDevice,
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
    pub(in crate::fabric) fn open(choice: DeviceChoice) -> io::Result<Self> {
        Ok(Self {
            #[cfg(feature = "gpu")]
            rings: Mutex::default(),
            choice,
            regions: Arc::new(Mutex::new(DeviceRegions::open(choice)?)),
            next_name: AtomicU32::new(0),
            #[cfg(feature = "gpu")]
            watchers: AtomicU32::new(0),
        })
    }

    #[cfg(feature = "gpu")]
    pub(in crate::fabric) const fn watchers(&self) -> &AtomicU32 {
        &self.watchers
    }

    /// Keeps a closed ring until the device is dropped.
    #[cfg(feature = "gpu")]
    pub(in crate::fabric) fn keep_ring(&self, ring: rackloom_gpu::commands::CommandRing) {
        self.rings.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(ring);
    }

    pub(in crate::fabric) fn name(&self) -> RegionId {
        RegionId(self.next_name.fetch_add(1, Ordering::Relaxed))
    }

    pub(in crate::fabric) const fn shared(&self) -> &SharedDevice {
        &self.regions
    }

    /// Lets nodes of this server open a region. From now on writes of the owner are visible to them when they return.
    pub(in crate::fabric) fn offer(&self, region: RegionId) -> io::Result<Offer> {
        let mut regions = self.lock();
        let offer = regions.offer(region)?;
        regions.set_exported(region, true);
        Ok(offer)
    }

    pub(in crate::fabric) fn lock(&self) -> MutexGuard<'_, DeviceRegions> {
        locked(&self.regions)
    }

    /// Returns the next answer to a request. Bytes that it has read are copied to `scratch`.
    pub(in crate::fabric) fn poll_done<'s>(
        &self,
        scratch: &'s mut [u8],
    ) -> Option<(MemoryToken, MemoryDone<'s>)> {
        poll_device(&self.regions, scratch)
    }

    /// Returns `true` if the node has to poll again soon, because no doorbell will ring.
    pub(in crate::fabric) fn is_busy(&self) -> bool {
        #[cfg(feature = "gpu")]
        if self.watchers.load(Ordering::Acquire) > 0 {
            return true;
        }
        self.lock().is_busy()
    }

    /// Lets the device read frames in the buffers of the ports. Frames of a port where it cannot are copied once more.
    pub(in crate::fabric) fn take_frames_in_place(&self, ports: &mut Ports) {
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
pub(in crate::fabric) struct DeviceBytes {
    pub(in crate::fabric) memory: Arc<DeviceMemory>,
    /// Number of the region on the device.
    pub(in crate::fabric) region: RegionId,
}

impl DeviceBytes {
    /// Returns the location of the byte at `offset`.
    pub(in crate::fabric) fn location(&self, offset: u64) -> Local<'_> {
        Local::Device(self.memory.shared(), self.region, offset)
    }

    /// Writes after all earlier requests, without waiting.
    pub(in crate::fabric) fn write_behind(&self, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.memory.lock().write(self.region, offset, bytes)
    }

    /// Writes. The bytes are visible to every kernel when this returns.
    pub(in crate::fabric) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let mut regions = self.memory.lock();
        regions.write(self.region, offset, bytes)?;
        regions.finish()
    }

    pub(in crate::fabric) fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        self.memory.lock().read(self.region, offset, out)
    }

    pub(in crate::fabric) fn read_ahead(
        &self,
        offset: u64,
        out: &mut [u8],
        following: Following,
    ) -> Result<(), MemoryFault> {
        self.memory.lock().read_ahead(self.region, offset, out, following)
    }

    pub(in crate::fabric) fn execute(
        &self,
        request: &MemoryRequest<'_>,
        frame: &[u8],
    ) -> Option<MemoryFault> {
        self.memory.lock().execute(&MemoryRequest { region: self.region, ..*request }, frame)
    }

    /// Combines values at `offset` with those of another region, or copies them. Returns `false` if the other region is elsewhere, or the
    /// device does not support the arithmetic.
    pub(in crate::fabric) fn combine(
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
    pub(in crate::fabric) fn finish(&self) -> Result<(), MemoryFault> {
        self.memory.lock().finish()
    }

    /// Returns the address for kernels.
    pub(in crate::fabric) fn address(&self) -> Option<u64> {
        self.memory.lock().address(self.region)
    }
}

impl Drop for DeviceBytes {
    fn drop(&mut self) {
        // Memory that a failed device does not free is freed when the process ends.
        let _ = self.memory.lock().free(self.region);
    }
}
