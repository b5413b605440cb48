//! How one node's memory was held and used, for people and for programs.
//!
//! Engines with real memory fill it; virtual time has none. What is said to be huge, locked or bound was granted by the
//! system and not merely asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An amount in bytes, now and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// At the time of the report.
    pub current: u64,
    /// At most so far.
    pub high: u64,
}

/// A region that could not be given back when the job had ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeakedRegion {
    /// Which.
    pub region: u32,
    /// Its bytes.
    pub bytes: u64,
    /// What stood in the way.
    pub why: String,
}

/// From which sizes on bytes of memory on a device take another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tiers {
    /// Bytes of a frame are read where they came in; shorter ones are staged.
    pub in_place_bytes_min: u64,
    /// Ranges are copied by the engines; many shorter ones share a launch.
    pub engine_bytes_min: u64,
    /// What leaves is read ahead.
    pub ahead_bytes_min: u64,
    /// Whether they were measured on the device, and not only expected.
    pub measured: bool,
}

impl Tiers {
    /// In a few words.
    fn told(&self) -> String {
        let Self { in_place_bytes_min, engine_bytes_min, ahead_bytes_min, measured } = self;
        let origin = if *measured { "measured" } else { "not measured" };
        format!(
            "in place from {in_place_bytes_min} B, engines from {engine_bytes_min} B, ahead from {ahead_bytes_min} B: {origin}"
        )
    }
}

/// A pool of memory on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PoolReport {
    /// Taken from the device.
    pub reserved_bytes: Level,
    /// Of that: handed out.
    pub used_bytes: Level,
}

/// The memory of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryReport {
    /// What the node may use.
    pub limit_bytes: u64,
    /// Taken from the system, in whole pages.
    pub reserved_bytes: Level,
    /// Of that: what regions asked for.
    pub used_bytes: Level,
    /// Regions handed out.
    pub allocations: u64,
    /// Regions given back.
    pub frees: u64,
    /// Of the job's reserved bytes: in huge pages of the system's pool.
    #[serde(default)]
    pub huge_bytes: u64,
    /// Of the job's reserved bytes: in pages that the kernel has been advised to merge into huge ones.
    #[serde(default)]
    pub advised_bytes: u64,
    /// Of the job's reserved bytes: locked, so that what has been touched is never swapped out.
    #[serde(default)]
    pub locked_bytes: u64,
    /// The NUMA node that all of them are bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u32>,
    /// The device in whose memory all of them lie, as the rack file names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// From which sizes on bytes take another way on that device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tiers: Option<Tiers>,
    /// The device whose kernels use all of them in place, in memory of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapped_by: Option<String>,
    /// The pool on that device that they are parts of, if they are of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolReport>,
    /// Wishes that were not granted, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ungranted: Vec<String>,
    /// What the job left behind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaks: Vec<LeakedRegion>,
}

impl MemoryReport {
    /// On which device it lies, and whether as parts of a pool.
    fn place(&self) -> Option<String> {
        let device = self.device.as_ref()?;
        Some(if self.pool.is_some() { format!("in a pool on {device}") } else { format!("on {device}") })
    }

    /// How the memory is held, in a few words; `None` if it is as memory usually is.
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
            self.place().map(|place| match &self.tiers {
                Some(tiers) => format!("{place} ({})", tiers.told()),
                None => place,
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
