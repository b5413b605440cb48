//! Use of real GPUs during a job, as the driver's management library reports it.
//!
//! A node samples the GPU that holds its memory ([`GpuPart`]). The report joins the samples of all nodes of a GPU ([`GpuUse`]). All
//! figures are those of the whole GPU, with the work of other processes. Quantities that a GPU does not report are absent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Count, sum and greatest of a quantity's samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampled {
    /// Number of samples.
    pub count: u64,
    /// Sum of the samples.
    pub sum: u64,
    /// Greatest sample.
    pub max: u64,
}

impl Sampled {
    fn join(&mut self, other: Self) {
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// Returns mean and greatest in a unit that is `per_unit` times as large; `None` without samples.
    fn summary(self, per_unit: f64) -> Option<MeanAndMax> {
        let mean = |count: f64| self.sum as f64 / count / per_unit;
        (self.count > 0)
            .then(|| MeanAndMax { mean: mean(self.count as f64), max: self.max as f64 / per_unit })
    }
}

/// Mean traffic of a GPU's links in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GpuRates {
    /// From the GPU over PCIe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie_sent_bytes_per_s: Option<u64>,
    /// To the GPU over PCIe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie_received_bytes_per_s: Option<u64>,
    /// From the GPU over all of its NVLinks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvlink_sent_bytes_per_s: Option<u64>,
    /// To the GPU over all of its NVLinks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvlink_received_bytes_per_s: Option<u64>,
}

impl GpuRates {
    /// Keeps the greater rate of each kind.
    fn join(&mut self, other: Self) {
        let keep = |rate: &mut Option<u64>, other: Option<u64>| *rate = (*rate).max(other);
        keep(&mut self.pcie_sent_bytes_per_s, other.pcie_sent_bytes_per_s);
        keep(&mut self.pcie_received_bytes_per_s, other.pcie_received_bytes_per_s);
        keep(&mut self.nvlink_sent_bytes_per_s, other.nvlink_sent_bytes_per_s);
        keep(&mut self.nvlink_received_bytes_per_s, other.nvlink_received_bytes_per_s);
    }
}

/// Samples of one node's GPU during its job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuPart {
    /// Unique name of the GPU, or of the part of it that is used (MIG).
    pub uuid: String,
    /// The vendor's name.
    pub name: String,
    /// Bytes of its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Number of times that the GPU was read.
    pub samples: u64,
    /// Percentages of sample periods of the driver in which a kernel ran.
    pub busy_percent: Sampled,
    /// Percentages of sample periods of the driver in which the memory was read or written.
    pub memory_busy_percent: Sampled,
    /// Allocated memory in bytes.
    pub memory_used_bytes: Sampled,
    /// Power in milliwatts.
    pub power_mw: Sampled,
    /// Clock of the multiprocessors in MHz.
    pub sm_clock_mhz: Sampled,
    /// Mean traffic of its links.
    #[serde(default)]
    pub rates: GpuRates,
}

impl GpuPart {
    fn join(&mut self, other: &Self) {
        self.memory_bytes = self.memory_bytes.max(other.memory_bytes);
        self.samples += other.samples;
        self.busy_percent.join(other.busy_percent);
        self.memory_busy_percent.join(other.memory_busy_percent);
        self.memory_used_bytes.join(other.memory_used_bytes);
        self.power_mw.join(other.power_mw);
        self.sm_clock_mhz.join(other.sm_clock_mhz);
        self.rates.join(other.rates);
    }
}

/// Mean and greatest value of a quantity over all samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeanAndMax {
    /// Mean over all samples.
    pub mean: f64,
    /// Greatest sample.
    pub max: f64,
}

/// Use of one real GPU during the job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuUse {
    /// Unique name of the GPU, or of the part of it that is used (MIG).
    pub uuid: String,
    /// The vendor's name.
    pub name: String,
    /// Nodes with memory on the GPU that sampled it, in the order of the plan.
    pub nodes: Vec<String>,
    /// Number of samples of all of these nodes.
    pub samples: u64,
    /// Part of the driver's sample periods in which a kernel ran, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_share: Option<MeanAndMax>,
    /// Part of the driver's sample periods in which the memory was read or written, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_busy_share: Option<MeanAndMax>,
    /// Most memory that was allocated at a sample, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_used_max_bytes: Option<u64>,
    /// Memory of the GPU in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Power in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_w: Option<MeanAndMax>,
    /// Clock of the multiprocessors in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_clock_mhz: Option<MeanAndMax>,
    /// Mean traffic of its links over the job. Of several nodes that sampled the GPU, the greatest.
    #[serde(flatten)]
    pub rates: GpuRates,
}

impl GpuUse {
    fn of(nodes: Vec<String>, part: GpuPart) -> Self {
        Self {
            nodes,
            samples: part.samples,
            busy_share: part.busy_percent.summary(100.0),
            memory_busy_share: part.memory_busy_percent.summary(100.0),
            memory_used_max_bytes: (part.memory_used_bytes.count > 0).then_some(part.memory_used_bytes.max),
            memory_bytes: part.memory_bytes,
            power_w: part.power_mw.summary(1000.0),
            sm_clock_mhz: part.sm_clock_mhz.summary(1.0),
            rates: part.rates,
            uuid: part.uuid,
            name: part.name,
        }
    }
}

/// Joins the samples of all nodes by GPU, in the order of the first node of each GPU.
pub(super) fn gpu_use<'a>(parts: impl IntoIterator<Item = (&'a str, &'a GpuPart)>) -> Vec<GpuUse> {
    let mut joined: Vec<(Vec<String>, GpuPart)> = Vec::new();
    for (node, part) in parts {
        match joined.iter_mut().find(|(_, known)| known.uuid == part.uuid) {
            Some((nodes, known)) => {
                nodes.push(node.to_owned());
                known.join(part);
            }
            None => joined.push((vec![node.to_owned()], part.clone())),
        }
    }
    joined.into_iter().map(|(nodes, part)| GpuUse::of(nodes, part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(values: &[u64]) -> Sampled {
        let max = values.iter().copied().max().unwrap_or(0);
        Sampled { count: values.len() as u64, sum: values.iter().sum(), max }
    }

    #[test]
    fn samples_of_the_nodes_of_one_gpu_are_joined_and_others_are_apart() {
        let first = GpuPart {
            uuid: "GPU-a".to_owned(),
            name: "one".to_owned(),
            memory_bytes: Some(1000),
            samples: 3,
            busy_percent: sampled(&[10, 20, 90]),
            memory_used_bytes: sampled(&[300, 500, 400]),
            power_mw: sampled(&[100_000, 250_000, 100_000]),
            rates: GpuRates { nvlink_sent_bytes_per_s: Some(7), ..GpuRates::default() },
            ..GpuPart::default()
        };
        let second = GpuPart {
            samples: 1,
            busy_percent: sampled(&[40]),
            memory_used_bytes: sampled(&[600]),
            power_mw: sampled(&[]),
            rates: GpuRates {
                nvlink_sent_bytes_per_s: Some(5),
                pcie_received_bytes_per_s: Some(9),
                ..GpuRates::default()
            },
            ..first.clone()
        };
        let apart = GpuPart { uuid: "MIG-b".to_owned(), samples: 2, ..GpuPart::default() };
        let uses = gpu_use([("n0", &first), ("n1", &apart), ("n2", &second)]);
        assert_eq!(uses.len(), 2);
        let joined = &uses[0];
        assert_eq!(
            (joined.uuid.as_str(), joined.nodes.join(" "), joined.samples),
            ("GPU-a", "n0 n2".into(), 4)
        );
        assert_eq!(joined.busy_share, Some(MeanAndMax { mean: 0.4, max: 0.9 }));
        assert_eq!((joined.memory_used_max_bytes, joined.memory_bytes), (Some(600), Some(1000)));
        assert_eq!(joined.power_w, Some(MeanAndMax { mean: 150.0, max: 250.0 }));
        let rates = joined.rates;
        assert_eq!((rates.nvlink_sent_bytes_per_s, rates.pcie_received_bytes_per_s), (Some(7), Some(9)));
        assert_eq!((joined.memory_busy_share, rates.pcie_sent_bytes_per_s), (None, None));
        let json = serde_json::to_value(&uses[1]).expect("a report is JSON");
        let expected = serde_json::json!({"uuid": "MIG-b", "name": "", "nodes": ["n1"], "samples": 2});
        assert_eq!(json, expected, "what a GPU does not report has no field");
    }
}
