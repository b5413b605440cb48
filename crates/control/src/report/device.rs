//! Use of the GPUs in a run: parts of the device model, and computations of a workload.
//!
//! A share is a part of the whole run. A path with 64 slots, of which 16 were occupied all the time, has a share of a quarter.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Use of a node's GPU in virtual time. A part is absent if no key limits it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceUse {
    /// Units that load, store and perform atomics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_store: Option<PathUse>,
    /// Engines that perform puts, gets and messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk: Option<PathUse>,
    /// Time in nanoseconds of reductions and copies in the node's own memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_ns: Option<u64>,
}

/// Use of one path of a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathUse {
    /// Sum over all operations of the time in nanoseconds for which each occupied the path.
    pub occupied_ns: u64,
    /// Most operations at once.
    pub most: u64,
    /// Operations that the path admits at once.
    pub slots: u64,
}

/// Use of one part of the GPUs, over all nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DevicePart {
    /// The part: `load/store units`, `bulk engines`, `own memory` or `computations`.
    pub part: String,
    /// Mean share over the nodes that have the part, from 0 to 1.
    pub share_mean: f64,
    /// Greatest share of a node.
    pub share_max: f64,
    /// Node with the greatest share.
    pub busiest: String,
    /// Most operations at once at one node; absent if the part performs one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u64>,
    /// Operations that a node's part admits at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u64>,
}

/// Use of one node's GPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NodeUse<'a> {
    /// Name of the node.
    pub(super) name: &'a str,
    pub(super) device: Option<DeviceUse>,
    /// Time in which the node computed, if its job is a workload.
    pub(super) compute_ns: Option<u64>,
}

/// Time over all slots of a part, and the slots if the part has them.
struct Occupied {
    total_ns: u64,
    path: Option<PathUse>,
}

type PartOf = fn(&NodeUse<'_>) -> Option<Occupied>;

/// The parts, in the order of the report.
const PARTS: [(&str, PartOf); 4] = [
    ("load/store units", |node| node.device?.load_store.map(Occupied::of_path)),
    ("bulk engines", |node| node.device?.bulk.map(Occupied::of_path)),
    ("own memory", |node| node.device?.work_ns.map(Occupied::of_time)),
    ("computations", |node| node.compute_ns.map(Occupied::of_time)),
];

impl Occupied {
    const fn of_path(path: PathUse) -> Self {
        Self { total_ns: path.occupied_ns, path: Some(path) }
    }

    const fn of_time(total_ns: u64) -> Self {
        Self { total_ns, path: None }
    }

    fn share(&self, elapsed_ns: u64) -> f64 {
        let slots = self.path.map_or(1, |path| path.slots.max(1));
        self.total_ns as f64 / (elapsed_ns.max(1) as f64 * slots as f64)
    }
}

/// Returns the use of each part that a node has.
pub(super) fn device_use(nodes: &[NodeUse<'_>], elapsed_ns: u64) -> Vec<DevicePart> {
    PARTS.iter().filter_map(|(name, part)| part_of_all(name, *part, nodes, elapsed_ns)).collect()
}

fn part_of_all(name: &str, part: PartOf, nodes: &[NodeUse<'_>], elapsed_ns: u64) -> Option<DevicePart> {
    let mut result = DevicePart { part: name.to_owned(), ..DevicePart::default() };
    let mut count = 0;
    for node in nodes {
        let Some(occupied) = part(node) else { continue };
        let share = occupied.share(elapsed_ns);
        if count == 0 || share > result.share_max {
            (result.share_max, result.busiest) = (share, node.name.to_owned());
        }
        if let Some(path) = occupied.path {
            result.most = Some(result.most.unwrap_or(0).max(path.most));
            result.slots = Some(result.slots.unwrap_or(0).max(path.slots));
        }
        result.share_mean += share;
        count += 1;
    }
    result.share_mean /= f64::from(count.max(1));
    (count > 0).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_over_slots_and_the_whole_run() {
        let node = |name, occupied_ns, work_ns| NodeUse {
            name,
            device: Some(DeviceUse {
                load_store: Some(PathUse { occupied_ns, most: 3, slots: 4 }),
                bulk: None,
                work_ns: Some(work_ns),
            }),
            compute_ns: Some(500),
        };
        let switch = NodeUse { name: "s", ..NodeUse::default() };
        let parts = device_use(&[node("a", 1000, 0), node("b", 3000, 250), switch], 1000);
        assert_eq!(
            parts.iter().map(|part| part.part.as_str()).collect::<Vec<_>>(),
            ["load/store units", "own memory", "computations"]
        );
        let units = &parts[0];
        assert_eq!((units.share_mean, units.share_max, units.busiest.as_str()), (0.5, 0.75, "b"));
        assert_eq!((units.most, units.slots), (Some(3), Some(4)));
        assert_eq!((parts[1].share_mean, parts[1].share_max, parts[1].most), (0.125, 0.25, None));
        assert_eq!((parts[2].share_mean, parts[2].busiest.as_str()), (0.5, "a"));
        assert_eq!(device_use(&[], 1000), []);
    }
}
