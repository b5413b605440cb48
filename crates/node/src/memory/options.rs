//! Options for the pages of a region, the options granted, and the kernel's data about them.
//!
//! Requested and granted options differ. Huge pages are a preference that falls back, with a reason. Locking and binding are requirements that fail.
//! [`Placement`] is read back from the kernel, so an option is never reported as granted only because it was requested. No option changes the meaning
//! of the bytes.

use super::ledger::Usage;

/// Preferences and requirements for the pages of one region. By default there are none: ordinary pages, touched when used.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryOptions {
    /// Preference for the size of pages.
    pub pages: PagePreference,
    /// Requirement: pages that are never swapped out, from the time at which they are first touched. An error if the limit on locked memory forbids
    /// it.
    pub lock: bool,
    /// Requirement: pages on this NUMA node only.
    pub numa_node: Option<u32>,
    /// Requirement: every page is allocated before the first access.
    pub touch: bool,
    /// Requirement: kernels of this device read and write the pages in place, at the address [`Granted::device_address`].
    pub mapped: Option<DeviceChoice>,
    /// Requirement: memory of this device. The options above do not apply to it.
    pub device: Option<DeviceChoice>,
    /// Requirement: memory from the device's pool. Other processes open a part of the pool through the pool's descriptor. Does not apply to host
    /// memory.
    pub pool: bool,
}

/// A device that holds memory or maps it.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceChoice {
    /// The GPU with this number.
    Cuda(u32),
    /// A fake device. Its delays and the order of its operations depend on this seed.
    Fake(u64),
}

/// Kind of a device. Devices of one kind can use each other's memory within one server.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceKind {
    Cuda,
    Fake,
}

impl From<rackloom_plan::MemoryDevice> for DeviceChoice {
    fn from(device: rackloom_plan::MemoryDevice) -> Self {
        match device {
            rackloom_plan::MemoryDevice::Cuda(index) => Self::Cuda(index.into()),
            rackloom_plan::MemoryDevice::Fake(seed) => Self::Fake(seed.into()),
        }
    }
}

#[cfg(feature = "gpu")]
impl DeviceChoice {
    pub(crate) const fn kind(self) -> DeviceKind {
        match self {
            Self::Cuda(_) => DeviceKind::Cuda,
            Self::Fake(_) => DeviceKind::Fake,
        }
    }
}

impl std::fmt::Display for DeviceChoice {
    /// Formats the device as rack files name it.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cuda(index) => write!(formatter, "cuda:{index}"),
            Self::Fake(seed) => write!(formatter, "fake:{seed}"),
        }
    }
}

impl MemoryOptions {
    /// Sets or removes the preference for huge pages.
    #[must_use]
    pub const fn huge_pages(self, huge_pages: bool) -> Self {
        Self { pages: if huge_pages { PagePreference::Huge } else { PagePreference::Ordinary }, ..self }
    }

    /// Sets or removes the requirement that pages are never swapped out.
    #[must_use]
    pub const fn lock(self, lock: bool) -> Self {
        Self { lock, ..self }
    }

    /// Sets or removes the NUMA node of the pages.
    #[must_use]
    pub const fn numa_node(self, numa_node: Option<u32>) -> Self {
        Self { numa_node, ..self }
    }

    /// Sets the device that holds the memory, or `None` for host memory.
    #[must_use]
    pub const fn device(self, device: Option<DeviceChoice>) -> Self {
        Self { device, ..self }
    }

    /// Sets or removes the device whose kernels use the pages in place.
    #[must_use]
    pub const fn mapped(self, mapped: Option<DeviceChoice>) -> Self {
        Self { mapped, ..self }
    }

    /// Sets or removes the requirement that memory comes from the device's pool.
    #[must_use]
    pub const fn pool(self, pool: bool) -> Self {
        Self { pool, ..self }
    }

    /// Sets or removes the requirement that every page is allocated before the first access.
    #[must_use]
    pub const fn touch(self, touch: bool) -> Self {
        Self { touch, ..self }
    }
}

/// Sizes at which the method of access to a region on a device changes.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TiersInUse {
    /// Minimum size in bytes at which the device reads bytes of a frame in place. Smaller ones are staged.
    pub in_place_bytes_min: u64,
    /// Minimum size in bytes at which the copy engines copy ranges. Smaller ones share a launch, where there are many.
    pub engine_bytes_min: u64,
    /// Minimum size in bytes at which outgoing data is read ahead in chunks.
    pub ahead_bytes_min: u64,
    /// Set if `rackloom calibrate --gpu` has measured these sizes on this device.
    pub is_measured: bool,
}

/// Usage of a device's pool, in bytes.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolUsage {
    /// Bytes that the pool has taken from the device.
    pub reserved: Usage,
    /// Bytes of the pool that are allocated.
    pub used: Usage,
}

/// Preferred size of pages.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PagePreference {
    /// The system's ordinary pages.
    #[default]
    Ordinary,
    /// Huge pages from the system's pool, else transparent ones if the kernel provides them.
    Huge,
}

/// Kinds of pages.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pages {
    /// The system's ordinary pages.
    #[default]
    Ordinary,
    /// Huge pages reserved from the system's pool.
    Huge,
    /// Ordinary pages that the kernel has been advised to merge into huge ones.
    Advised,
}

/// Options granted to a region.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Granted {
    /// Kind of pages.
    pub pages: Pages,
    /// Set if touched pages stay in memory.
    pub locked: bool,
    /// NUMA node that the pages are bound to.
    pub numa_node: Option<u32>,
    /// Address of the first byte for kernels of the device that has the pages mapped.
    pub device_address: Option<u64>,
    /// Description and reason of every preference that was not granted.
    pub reasons: Vec<String>,
}

/// The kernel's data about the pages of a region.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placement {
    /// Size of one page of the mapping, in bytes.
    pub page_bytes: u64,
    /// Bytes that have a page now.
    pub resident_bytes: u64,
    /// Bytes that cannot be swapped out.
    pub locked_bytes: u64,
    /// Set if the kernel has been advised to use transparent huge pages.
    pub huge_advised: bool,
    /// NUMA nodes that the pages are bound to. Empty if they are not bound.
    pub numa_nodes: Vec<u32>,
}
