//! Capabilities of this machine's GPUs: devices, access between devices, shared memory, pools.
//!
//! A probe starts no work and makes no context, so it is cheap and leaves no trace on a device.

use std::ffi::{CStr, c_char};
use std::sync::Arc;

use cudarc::driver::sys::{CUdevice, CUdevice_P2PAttribute, CUdevice_attribute, CUuuid};

use crate::driver::Driver;
use crate::error::GpuError;

/// Capabilities of the driver and of all devices.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Machine {
    /// CUDA version of the driver, as it counts: 12080 is 12.8.
    pub driver_version: i32,
    /// Functions that the driver lacks.
    pub missing: Vec<&'static str>,
    /// Devices, by number.
    pub devices: Vec<DeviceInfo>,
    /// Pairs of different devices.
    pub peers: Vec<PeerInfo>,
}

/// Support of a device for stream-ordered pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolSupport {
    /// The device has no such pools.
    None,
    /// Pools cannot be handed to other processes.
    OwnProcess,
    /// Pools can be handed to other processes as file descriptors.
    Descriptors,
}

impl PoolSupport {
    /// Returns true if the device has pools.
    #[must_use]
    pub const fn has_pools(self) -> bool {
        !matches!(self, Self::None)
    }

    /// Returns true if pools can be handed to other processes as file descriptors.
    #[must_use]
    pub const fn has_descriptors(self) -> bool {
        matches!(self, Self::Descriptors)
    }
}

/// Capabilities of one device.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Index of the device, as in `cuda:INDEX`.
    pub index: u32,
    /// The vendor's name.
    pub name: String,
    /// Unique name, stable across restarts.
    pub uuid: String,
    /// PCI bus address.
    pub pci: String,
    /// Compute capability, major and minor.
    pub compute_capability: (i32, i32),
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// Multiprocessors.
    pub multiprocessors: i32,
    /// Engines that copy while kernels run.
    pub copy_engines: i32,
    /// NUMA node of the host that is closest, if the driver reports it.
    pub numa_node: Option<i32>,
    /// True if kernels can use host memory that was registered with them, at its own address.
    pub maps_host_memory: bool,
    /// True if memory and events can be handed to other processes as legacy handles.
    pub ipc_handles: bool,
    /// Stream-ordered pools of the device.
    pub pools: PoolSupport,
}

/// Access of one device to another's memory.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerInfo {
    /// Index of the device that accesses.
    pub source: u32,
    /// Index of the device whose memory is accessed.
    pub target: u32,
    /// True if access is possible.
    pub access: bool,
    /// True if atomics work on the peer's memory.
    pub atomics: bool,
    /// The driver's rank of the connection: smaller is faster.
    pub performance_rank: i32,
}

/// `CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES` has this bit for file descriptors.
const POSIX_DESCRIPTOR: i32 = 1;

/// Reads the capabilities of all devices from the driver.
///
/// # Errors
/// Any error of the driver while it describes a device that it lists.
pub fn probe(driver: &Arc<Driver>) -> Result<Machine, GpuError> {
    let count = driver.device_count();
    let devices = (0..count).map(|index| device(driver, index)).collect::<Result<_, _>>()?;
    let pairs = (0..count).flat_map(|source| (0..count).map(move |target| (source, target)));
    let peers = pairs
        .filter(|(source, target)| source != target)
        .map(|(source, target)| peer(driver, source, target))
        .collect::<Result<_, _>>()?;
    Ok(Machine { driver_version: driver.version(), missing: driver.missing(), devices, peers })
}

fn device(driver: &Driver, index: u32) -> Result<DeviceInfo, GpuError> {
    use CUdevice_attribute as Attribute;
    let device = driver.device(index)?;
    let functions = driver.functions();
    let read_attribute = |attribute| attribute_of(driver, device, attribute);
    let mut memory_bytes = 0;
    // SAFETY: needed because the driver is C. The device exists, and one number is written.
    unsafe { functions.cuDeviceTotalMem_v2(&raw mut memory_bytes, device)? };
    // SAFETY: needed because the driver is C. No more than the given length is written.
    let pci = text(|out, length| unsafe { functions.cuDeviceGetPCIBusId(out, length, device) })?;
    let numa_node =
        read_attribute(Attribute::CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID).ok().filter(|node| *node >= 0);
    let pool_handles =
        read_attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES).unwrap_or(0);
    Ok(DeviceInfo {
        index,
        name: name(driver, device)?,
        uuid: uuid(driver, device)?,
        pci,
        compute_capability: compute_capability(driver, device)?,
        memory_bytes: memory_bytes as u64,
        multiprocessors: read_attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        copy_engines: read_attribute(Attribute::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT)?,
        numa_node,
        maps_host_memory: read_attribute(Attribute::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY)? != 0,
        ipc_handles: read_attribute(Attribute::CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED)
            .or_else(|_| read_attribute(Attribute::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING))?
            != 0,
        pools: match read_attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0 {
            false => PoolSupport::None,
            true if pool_handles & POSIX_DESCRIPTOR == 0 => PoolSupport::OwnProcess,
            true => PoolSupport::Descriptors,
        },
    })
}

fn peer(driver: &Driver, source: u32, target: u32) -> Result<PeerInfo, GpuError> {
    use CUdevice_P2PAttribute as Attribute;
    let (from, to) = (driver.device(source)?, driver.device(target)?);
    let functions = driver.functions();
    let mut access = 0;
    // SAFETY: needed because the driver is C. Both devices exist, and one number is written.
    unsafe { functions.cuDeviceCanAccessPeer(&raw mut access, from, to)? };
    let read_attribute = |attribute| {
        let mut value = 0;
        // SAFETY: as above.
        unsafe { functions.cuDeviceGetP2PAttribute(&raw mut value, attribute, from, to) }.map(|()| value)
    };
    Ok(PeerInfo {
        source,
        target,
        access: access != 0,
        atomics: read_attribute(Attribute::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED)? != 0,
        performance_rank: read_attribute(Attribute::CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK)?,
    })
}

pub(crate) fn attribute_of(
    driver: &Driver,
    device: CUdevice,
    attribute: CUdevice_attribute,
) -> Result<i32, GpuError> {
    let mut value = 0;
    // SAFETY: needed because the driver is C. The device exists, and one number is written.
    unsafe { driver.functions().cuDeviceGetAttribute(&raw mut value, attribute, device)? };
    Ok(value)
}

pub(crate) fn compute_capability(driver: &Driver, device: CUdevice) -> Result<(i32, i32), GpuError> {
    use CUdevice_attribute as Attribute;
    let major = attribute_of(driver, device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute_of(driver, device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Ok((major, minor))
}

/// Returns a device's unique name.
///
/// # Errors
/// [`GpuError::NoSuchDevice`], and errors of the driver.
pub fn uuid_of(driver: &Driver, index: u32) -> Result<String, GpuError> {
    uuid(driver, driver.device(index)?)
}

/// Returns the vendor's name of a device.
///
/// # Errors
/// [`GpuError::NoSuchDevice`], and errors of the driver.
pub fn name_of(driver: &Driver, index: u32) -> Result<String, GpuError> {
    name(driver, driver.device(index)?)
}

fn name(driver: &Driver, device: CUdevice) -> Result<String, GpuError> {
    // SAFETY: needed because the driver is C. No more than the given length is written.
    text(|out, length| unsafe { driver.functions().cuDeviceGetName(out, length, device) })
}

/// Returns a device's unique name as `nvidia-smi` writes it.
fn uuid(driver: &Driver, device: CUdevice) -> Result<String, GpuError> {
    let mut uuid = CUuuid { bytes: [0; 16] };
    // SAFETY: needed because the driver is C. The device exists, and 16 bytes are written.
    unsafe { driver.functions().cuDeviceGetUuid_v2(&raw mut uuid, device)? };
    let hex: Vec<_> = uuid.bytes.iter().map(|byte| format!("{:02x}", *byte as u8)).collect();
    let parts: Vec<_> =
        [0..4, 4..6, 6..8, 8..10, 10..16].into_iter().map(|part| hex[part].concat()).collect();
    Ok(format!("GPU-{}", parts.join("-")))
}

/// Returns a zero-terminated text that the driver writes.
fn text(write: impl FnOnce(*mut c_char, i32) -> Result<(), GpuError>) -> Result<String, GpuError> {
    let mut bytes = [0_u8; 256];
    write(bytes.as_mut_ptr().cast(), bytes.len() as i32 - 1)?;
    let text = CStr::from_bytes_until_nul(&bytes)
        .map_or_else(|_| String::new(), |text| text.to_string_lossy().into_owned());
    Ok(text)
}
