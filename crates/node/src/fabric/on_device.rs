//! Methods of a node for regions on a GPU. A node has one device, which is opened with the first region on it.

use std::sync::Arc;

use rackloom_protocol::RegionId;

use super::error::{Error, Invalid};
use super::node::{Node, announce};
use crate::fabric::engine::node_engine::Engine;
use crate::fabric::memory::bytes::{Bytes, RegionMemory, Shareable};
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
    /// Nodes of the same server and tenant with a device of this kind open the region: their operations on it need no frame, unless the rack has
    /// `force_wire`. On a GPU, nodes in the same process use frames, and a region that peers may open takes whole blocks of 2 MiB. The memory is
    /// freed when the last handle and all peers' mappings of it are dropped.
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
        let is_shared = self.with_core(|core| core.local.is_some());
        let placing = |regions: &mut DeviceRegions, region| {
            // A handle opens the whole block of an allocation, so a region that peers may open has blocks of its own.
            let allocated = match is_shared {
                true => regions.allocate_apart(region, length, false),
                false => regions.allocate(region, length),
            };
            allocated.map_err(Error::system("cannot allocate a region"))
        };
        let mapped = usize::try_from(length).map_err(|_| Error::Invalid(Invalid::RegionTooLarge))?;
        let bytes = place(self.engine(), device, placing)?;
        let offer = is_shared.then(|| bytes.memory.offer(bytes.region)).and_then(|offered| {
            offered.inspect_err(|error| tracing::debug!("{error}; peers use frames")).ok()
        });
        let bytes = Bytes::on_device(bytes, mapped);
        announce(self.engine(), options, (bytes, offer.map(Shareable::OnDevice)), &[])
    }

    /// Makes a region of device memory that the caller has allocated. Peers reach it in frames.
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
        let placing = |regions: &mut DeviceRegions, region| {
            // SAFETY: the caller's promise, which holds until the region ends.
            unsafe { regions.borrow(region, address, length) };
            Ok(())
        };
        let mapped = usize::try_from(length).map_err(|_| Error::Invalid(Invalid::RegionTooLarge))?;
        let bytes = place(self.engine(), device, placing)?;
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
}

/// Makes bytes on the device under a new number of the device.
pub(super) fn place(
    engine: &Arc<Engine>,
    device: DeviceChoice,
    placing: impl FnOnce(&mut DeviceRegions, RegionId) -> Result<(), Error>,
) -> Result<DeviceBytes, Error> {
    let memory = device_of(engine, device)?;
    let region = memory.name();
    placing(&mut memory.lock(), region)?;
    Ok(DeviceBytes { memory, region })
}

/// Returns the node's device. Opens it for the first region on it.
pub(super) fn device_of(engine: &Engine, choice: DeviceChoice) -> Result<Arc<DeviceMemory>, Error> {
    let known = engine.hold().core().member()?.memory_mut().device().cloned();
    let device = match known {
        Some(device) => device,
        None => {
            // Kernels may have to be compiled, which takes too long under the node's lock.
            let opened = DeviceMemory::open(choice).map_err(Error::system("cannot open the device"))?;
            let mut held = engine.hold();
            let core = held.core();
            let device = add_device_regions(core.member()?, opened);
            core.local.iter_mut().for_each(|local| local.set_device(device.shared()));
            device
        }
    };
    if device.choice == choice { Ok(device) } else { Err(Error::Invalid(Invalid::OtherDevice)) }
}
