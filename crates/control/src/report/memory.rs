//! Memory of one node: how it was held and used, for people and for programs.
//!
//! Engines with real memory fill it. Virtual time has none. Memory is counted as huge, locked or bound only if the
//! system granted it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Amount in bytes: current and highest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// Amount at the time of the report.
    pub current: u64,
    /// Highest amount so far.
    pub high: u64,
}

/// Region that could not be freed when the job had ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeakedRegion {
    /// Number of the region.
    pub region: u32,
    /// Length of the region in bytes.
    pub bytes: u64,
    /// Reason for which it could not be freed.
    #[serde(rename = "why")]
    pub reason: String,
}

/// Sizes from which bytes of device memory take another path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tiers {
    /// Smallest size of a frame's data that is read where it arrived. Shorter data is staged.
    pub in_place_bytes_min: u64,
    /// Smallest range that the copy engines copy. Shorter ranges share a launch.
    pub engine_bytes_min: u64,
    /// Smallest size from which outgoing data is read ahead.
    pub ahead_bytes_min: u64,
    /// True if the sizes were measured on the device. Otherwise they are estimates.
    pub measured: bool,
}

impl Tiers {
    /// Describes the sizes in one line.
    fn text(&self) -> String {
        let Self { in_place_bytes_min, engine_bytes_min, ahead_bytes_min, measured } = self;
        let origin = if *measured { "measured" } else { "not measured" };
        format!(
            "in place from {in_place_bytes_min} B, engines from {engine_bytes_min} B, ahead from {ahead_bytes_min} B: {origin}"
        )
    }
}

/// Pool of memory on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PoolReport {
    /// Bytes taken from the device.
    pub reserved_bytes: Level,
    /// Bytes of the pool that regions use.
    pub used_bytes: Level,
}

/// Memory of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryReport {
    /// Bytes that the node may use.
    pub limit_bytes: u64,
    /// Bytes taken from the system, in whole pages.
    pub reserved_bytes: Level,
    /// Bytes that regions requested, of the reserved bytes.
    pub used_bytes: Level,
    /// Number of regions allocated.
    pub allocations: u64,
    /// Number of regions freed.
    pub frees: u64,
    /// Reserved bytes of the job in huge pages of the system's pool.
    #[serde(default)]
    pub huge_bytes: u64,
    /// Reserved bytes of the job in pages that the kernel was advised to merge into huge pages.
    #[serde(default)]
    pub advised_bytes: u64,
    /// Reserved bytes of the job that are locked: pages in use are never swapped out.
    #[serde(default)]
    pub locked_bytes: u64,
    /// NUMA node that all reserved bytes are bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u32>,
    /// Device whose memory holds all reserved bytes, as the rack file names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Sizes from which bytes take another path on that device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tiers: Option<Tiers>,
    /// Device whose kernels use all reserved bytes in place, in memory of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapped_by: Option<String>,
    /// Pool on that device that contains the reserved bytes, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolReport>,
    /// Requests that were not granted, and the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ungranted: Vec<String>,
    /// Regions that the job could not free.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaks: Vec<LeakedRegion>,
}

impl MemoryReport {
    /// Describes the device that holds the memory, and whether a pool contains it.
    fn placement(&self) -> Option<String> {
        let device = self.device.as_ref()?;
        Some(if self.pool.is_some() { format!("in a pool on {device}") } else { format!("on {device}") })
    }

    /// Describes how the memory is held; `None` for ordinary memory.
    #[must_use]
    pub fn held(&self) -> Option<String> {
        let part = |bytes: u64, word: &str| match bytes {
            0 => None,
            all if all >= self.reserved_bytes.high => Some(word.to_owned()),
            _ => Some(format!("partly {word}")),
        };
        let bound = self.numa_node.map(|node| format!("NUMA node {node}"));
        let parts = [
            part(self.huge_bytes, "huge pages"),
            part(self.advised_bytes, "huge pages advised"),
            part(self.locked_bytes, "locked"),
            bound,
            self.mapped_by.as_ref().map(|device| format!("mapped by {device}")),
            self.placement().map(|placement| match &self.tiers {
                Some(tiers) => format!("{placement} ({})", tiers.text()),
                None => placement,
            }),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memory_that_is_not_plain_is_described() {
        let reserved_bytes = Level { current: 8192, high: 8192 };
        let plain = MemoryReport { reserved_bytes, ..MemoryReport::default() };
        assert_eq!(plain.held(), None);
        let locked = MemoryReport { locked_bytes: 8192, numa_node: Some(1), ..plain.clone() };
        assert_eq!(locked.held().as_deref(), Some("locked, NUMA node 1"));
        let mixed = MemoryReport { huge_bytes: 4096, advised_bytes: 4096, ..plain };
        assert_eq!(mixed.held().as_deref(), Some("partly huge pages, partly huge pages advised"));
    }
}
