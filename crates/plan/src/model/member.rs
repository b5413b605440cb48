//! Members of a rack, their memory, authentication and tenants.

use std::fmt;
use std::path::PathBuf;

use rackloom_protocol::{MemberRole, Tenant};

use crate::setting::word::words;

/// Describes one GPU node or switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberPlan {
    /// Name, unique in the rack.
    pub name: String,
    /// Kind of member: GPU node or switch.
    pub role: MemberRole,
    /// Tenant of the member.
    pub tenant: Tenant,
    /// Server that contains the member. Members of one server may share memory. By default each member has a server of its own.
    pub server: String,
    /// Memory of the node in bytes. 0 for a switch.
    pub memory_bytes: u64,
    /// Placement of the memory.
    pub memory: MemoryOptions,
}

/// Placement of a node's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryOptions {
    /// True if the memory is in huge pages.
    pub huge_pages: bool,
    /// True if the memory is never swapped out.
    pub locked: bool,
    /// NUMA node of the machine that holds the memory. `None` is any.
    pub numa_node: Option<u16>,
    /// Device that holds the memory. `None` is memory of the host.
    pub device: Option<MemoryDevice>,
    /// Method by which other processes open memory of a device.
    pub share: ShareBy,
    /// Device whose kernels use memory of the host in place. `None` if no device does.
    pub mapped: Option<MemoryDevice>,
}

words! {
    /// Method by which other processes of the server open memory of a device.
    pub enum ShareBy {
        /// Each region has a handle of its own.
        #[default]
        Handle = "handle",
        /// All regions are in one pool, which has one descriptor, and each region has a pointer into it.
        Pool = "pool",
    }
}

/// Device that holds a node's memory in place of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryDevice {
    /// GPU with this number.
    Cuda(u16),
    /// Fake device. The seed determines how late and in which order its copies end.
    Fake(u32),
}

impl MemoryDevice {
    /// Returns the device that `cuda:0` or `fake:7` names in rack files and command lines, or `None` if the text names none.
    #[must_use]
    pub fn named(text: &str) -> Option<Self> {
        match text.split_once(':')? {
            ("cuda", index) => index.parse().ok().map(Self::Cuda),
            ("fake", seed) => seed.parse().ok().map(Self::Fake),
            _ => None,
        }
    }
}

impl fmt::Display for MemoryDevice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cuda(index) => write!(formatter, "cuda:{index}"),
            Self::Fake(seed) => write!(formatter, "fake:{seed}"),
        }
    }
}

/// Authentication of the members of a rack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityPlan {
    /// Path of the file with the secret. `None` is a rack without authentication. The path is as written in the file until the
    /// program that starts the rack resolves it.
    pub key_file: Option<PathBuf>,
}

/// Quota of one tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantPlan {
    /// Number of the tenant.
    pub tenant: Tenant,
    /// Largest sum of the memory of all its nodes, in bytes.
    pub memory_bytes_max: u64,
}
