//! Methods of a node for regions on a GPU. A node has one device, which is opened with the first region on it.

use std::sync::Arc;

use rackloom_protocol::RegionId;

use super::error::{Error, Invalid};
use super::node::Node;
use crate::fabric::memory::bytes::{Bytes, RegionMemory};
use crate::fabric::memory::device_memory::{DeviceBytes, DeviceMemory};
use crate::fabric::memory::region::{Region, RegionOptions};
use crate::memory::{DeviceChoice, DeviceRegions};
use crate::runtime::Runtime;

/// Hands the device to a node whose frames it may read.
fn add_device_regions<M: rackloom_protocol::Inspect>(
    runtime: &mut Runtime<M, RegionMemory>,
    opened: DeviceMemory,
) -> Arc<DeviceMemory> {
    let (memory, ports) = runtime.memory_and_ports();
    // A thread that ran at the same time may have opened the device first.
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
        placing: impl FnOnce(&mut DeviceRegions, RegionId) -> Result<(), Error>,
    ) -> Result<Region, Error> {
        let mapped = usize::try_from(length).map_err(|_| Error::Invalid(Invalid::RegionTooLarge))?;
        let memory = self.device(device)?;
        let region = memory.name();
        placing(&mut memory.lock(), region)?;
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
                self.with_core(|core| Ok::<_, Error>(add_device_regions(core.member()?, opened)))?
            }
        };
        if device.choice == choice {
            return Ok(device);
        }
        Err(Error::Invalid(Invalid::OtherDevice))
    }
}
