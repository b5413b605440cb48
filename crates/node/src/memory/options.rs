//! What a caller may ask of the pages of a region, what it got, and what the kernel says about them.
//!
//! Asking and getting differ: huge pages are a wish that falls back (with a reason), locking and binding are demands
//! that fail. [`Placement`] is read back from the kernel, so an option is never reported as done because it was asked
//! for. None of this changes what the bytes mean.

use super::ledger::Usage;

/// Wishes and demands for the pages of one region. Nothing by default: ordinary pages, touched when used.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryOptions {
    /// Wish: huge pages from the system's pool; else transparent ones, if the kernel pleases.
    pub huge_pages: bool,
    /// Demand: pages that are never swapped out, from the moment they are first touched. An error if the limit on
    /// locked memory forbids it.
    pub lock: bool,
    /// Demand: pages on this NUMA node only.
    pub numa_node: Option<u32>,
    /// Demand: every page in place before the first access.
    pub touch: bool,
    /// Demand: kernels of this device read and write the pages in place, by the address that [`Granted::device_address`] tells.
    pub mapped: Option<DeviceChoice>,
    /// Demand: memory of this device, to which everything above means nothing.
    pub device: Option<DeviceChoice>,
    /// Demand: out of the device's pool, of which others open a part by the pool's descriptor. Means nothing to memory of the host.
    pub pool: bool,
}

/// What holds memory in place of the host.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceChoice {
    /// The GPU of this number.
    Cuda(u32),
    /// A fake one, which is late and in odd order as this seed says.
    Fake(u64),
}

/// Devices of one kind can use each other's memory, in one server.
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
    /// As rack files name it.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cuda(index) => write!(formatter, "cuda:{index}"),
            Self::Fake(seed) => write!(formatter, "fake:{seed}"),
        }
    }
}

impl MemoryOptions {
    /// The same with or without the wish for huge pages.
    #[must_use]
    pub const fn huge_pages(self, huge_pages: bool) -> Self {
        Self { huge_pages, ..self }
    }

    /// The same with or without the demand that pages are never swapped out.
    #[must_use]
    pub const fn lock(self, lock: bool) -> Self {
        Self { lock, ..self }
    }

    /// The same on this NUMA node only, or on any.
    #[must_use]
    pub const fn numa_node(self, numa_node: Option<u32>) -> Self {
        Self { numa_node, ..self }
    }

    /// The same in memory of a device, or of the host.
    #[must_use]
    pub const fn device(self, device: Option<DeviceChoice>) -> Self {
        Self { device, ..self }
    }

    /// The same in pages that kernels of a device use in place, or that none does.
    #[must_use]
    pub const fn mapped(self, mapped: Option<DeviceChoice>) -> Self {
        Self { mapped, ..self }
    }

    /// The same out of the device's pool, or each by itself.
    #[must_use]
    pub const fn pool(self, pool: bool) -> Self {
        Self { pool, ..self }
    }

    /// The same with or without the demand that every page is in place before the first access.
    #[must_use]
    pub const fn touch(self, touch: bool) -> Self {
        Self { touch, ..self }
    }
}

/// From which sizes on bytes of a region on a device take another way.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TiersInUse {
    /// Bytes of a frame are read by the device where they came in; shorter ones are staged.
    pub in_place_bytes_min: u64,
    /// Ranges are copied by the engines; shorter ones share a launch, where there are many.
    pub engine_bytes_min: u64,
    /// What leaves is read ahead in chunks.
    pub ahead_bytes_min: u64,
    /// Whether `rackloom calibrate --gpu` has found them on this device.
    pub is_measured: bool,
}

/// What a pool of a device holds, in bytes.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolUsage {
    /// Taken from the device.
    pub reserved: Usage,
    /// Of that: handed out.
    pub used: Usage,
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

/// What a region got.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Granted {
    /// Kind of pages.
    pub pages: Pages,
    /// Whether touched pages stay in memory.
    pub locked: bool,
    /// The node they are bound to.
    pub numa_node: Option<u32>,
    /// Where kernels of the device that has them mapped find the first byte.
    pub device_address: Option<u64>,
    /// For every wish that was not granted: what, and why.
    pub reasons: Vec<String>,
}

/// What the kernel says about the pages of a region.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placement {
    /// Size of one page of the mapping.
    pub page_bytes: u64,
    /// Bytes that have a page at the moment.
    pub resident_bytes: u64,
    /// Bytes that cannot be swapped out.
    pub locked_bytes: u64,
    /// Whether the kernel has been advised to use transparent huge pages.
    pub huge_advised: bool,
    /// The nodes that the pages are bound to; empty if they are not bound.
    pub numa_nodes: Vec<u32>,
}
