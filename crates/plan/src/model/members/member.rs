//! Members of a rack, their memory, authentication and tenants.

use std::fmt;
use std::path::PathBuf;

use rackloom_protocol::{MemberRole, Tenant};

use crate::model::members::device::DeviceModel;
use crate::setting::complaint::{Complaint, quoted};
use crate::setting::named_value::named_values;
use crate::setting::section::section;
use crate::setting::table::Kind;
use crate::setting::value::{Shown, Value};

const NUMA_NODE_MAX: u64 = 1023;
const POOL_BYTES_MAX: u64 = 64 << 30;

/// Describes one GPU node or switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberPlan {
    /// Name, unique in the rack.
    pub name: String,
    /// Kind of member: GPU node, switch, or process of a GPU node.
    pub role: MemberRole,
    /// Tenant of the member.
    pub tenant: Tenant,
    /// Server that contains the member. Members of one server may share memory. By default each member has a server of its own.
    pub server: String,
    /// Memory of the node in bytes. 0 for a switch.
    pub memory_bytes: u64,
    /// Placement of the memory.
    pub memory: MemoryOptions,
    /// Model of the node's GPU in virtual time. That without limits for a switch.
    pub device: DeviceModel,
}

impl MemberPlan {
    /// Returns the model of a node's GPU if it differs from that of the rack.
    pub(crate) fn own_device(&self, of_rack: &DeviceModel) -> Option<&DeviceModel> {
        (self.role == MemberRole::Endpoint && self.device != *of_rack).then_some(&self.device)
    }
}

named_values! {
    /// Method by which other processes of the server open memory of a device.
    pub enum ShareBy {
        /// Each region has a handle of its own.
        #[default]
        Handle = "handle",
        /// All regions are in one pool, which has one descriptor, and each region has a pointer into it.
        Pool = "pool",
    }
}

named_values! {
    /// Conditions under which a pool hands out memory that other nodes still have mapped.
    pub enum PoolReuse {
        /// All policies hold.
        #[default]
        All = "all",
        /// Other nodes are in no access, as their words in shared memory say.
        FollowEventDependencies = "follow-event-dependencies",
        /// Other nodes have closed the memory.
        Opportunistic = "opportunistic",
        /// The allocation waits for one of the other conditions.
        InternalDependencies = "internal-dependencies",
        /// No policy holds.
        None = "none",
    }
}

section! {
    /// Placement of a node's memory.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct MemoryOptions: MEMORY_OPTIONS = "memory" {
        /// True if huge pages hold the memory.
        huge_pages: bool {
            form = Kind::Flag;
            default = false;
        }
        /// True if the memory is never swapped out.
        locked: bool {
            form = Kind::Flag;
            default = false;
        }
        /// NUMA node of the machine that holds the memory.
        numa_node: Option<u16> {
            form = Kind::Count(0, NUMA_NODE_MAX);
            default = None;
            shown = "any";
            explain = explain_numa_node;
        }
        /// GPU that holds the memory.
        device: Option<MemoryDevice> {
            form = Kind::Device;
            default = None;
            shown = "the host's memory";
        }
        /// Method by which nodes of the same server open memory of a GPU: each region has a handle of its own, or all are in one pool.
        share: ShareBy {
            form = Kind::Choice(ShareBy::NAMES);
            default = ShareBy::Handle;
        }
        /// Size above which the default pools of a node of the library release unused memory.
        pool_release_threshold: u64 {
            form = Kind::Size(0, POOL_BYTES_MAX);
            default = 0;
        }
        /// Policies by which the default pools of a node of the library reuse memory that other nodes still have mapped.
        pool_reuse: PoolReuse {
            form = Kind::Choice(PoolReuse::NAMES);
            default = PoolReuse::All;
        }
        /// GPU whose kernels use memory of the host in place.
        mapped: Option<MemoryDevice> {
            form = Kind::Device;
            default = None;
            shown = "no device";
        }
    }
}

fn explain_numa_node(path: &str, number: u64) -> Option<Complaint> {
    let hint = format!("the machine numbers its NUMA nodes from 0; write at most {NUMA_NODE_MAX}");
    Some(Complaint::about(format!("`{path}`: {number} is more than {NUMA_NODE_MAX}")).hint(hint))
}

impl Shown for MemoryDevice {
    fn encode(&self, kind: &Kind, text: &mut String) {
        text.push_str(&self.shown(kind));
    }

    fn shown(&self, _: &Kind) -> String {
        self.to_string()
    }
}

impl Value for MemoryDevice {
    /// Reads `cuda:0` or `fake:7`.
    fn read(text: &str, _: &Kind) -> Result<Self, Complaint> {
        Self::named(text).ok_or_else(|| {
            let hint = "write `cuda:0` for the first GPU (`rackloom gpu info` lists them), or `fake:7` for a fake one of seed 7";
            Complaint::about(format!("{} is not a device", quoted(text))).hint(hint)
        })
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

section! {
    /// Authentication of the members of a rack.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SecurityPlan: SECURITY = "security" {
        /// File with a secret of 32 bytes or more, which its user alone can read. A relative path starts at the folder of the rack file.
        /// Every process of the rack needs the same content; the path may differ by host. It is not part of the configuration hash.
        key_file: Option<PathBuf> {
            form = Kind::Path;
            default = None;
            shown = "what `RACKLOOM_KEY_FILE` names";
            encoded = false;
        }
    }
}

section! {
    /// Quota of one tenant.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TenantPlan: TENANT = "tenants" {
        /// Memory of all its nodes together. A rack that gives them more is refused.
        memory_max_bytes: u64 {
            key = "memory_max";
            form = Kind::Size(0, u64::MAX);
            default = u64::MAX;
            shown = "unlimited";
        }
    }
    with {
        /// Number of the tenant.
        tenant: Tenant = Tenant(0);
    }
}
