//! Use of real GPUs, a row per GPU.

use std::fmt::Display;

use rackloom_jobs::report::{GpuUse, MeanAndMax};

use super::percent::percent;
use super::table::{Column, Table};
use super::units;

/// Characters of a unique name that distinguish the GPUs of a rack: `GPU-` or `MIG-`, and eight digits.
const UUID_SHOWN: usize = 12;
/// Maximum number of names of nodes in a row.
const NODES_SHOWN: usize = 4;
/// Cell of a quantity that the GPU does not report.
const ABSENT: &str = "-";

/// Formats the use of each GPU; empty if none was sampled. A column in which no GPU has a value is left out.
pub(super) fn gpu_use(uses: &[GpuUse]) -> String {
    if uses.is_empty() {
        return String::new();
    }
    let rows: Vec<_> = uses.iter().map(cells).collect();
    let is_kept: Vec<_> =
        (0..TITLES.len()).map(|column| rows.iter().any(|row| row[column] != ABSENT)).collect();
    let kept = |column: &usize| is_kept[*column];
    let columns: Vec<_> = (0..TITLES.len()).filter(kept).map(|column| TITLES[column]).collect();
    let mut table = Table::new(&columns);
    for row in rows {
        table.row((0..TITLES.len()).filter(kept).map(|column| row[column].clone()));
    }
    table.render()
}

const TITLES: [Column; 13] = [
    Column::Left("use of the real GPUs"),
    Column::Left("nodes"),
    Column::Right("kernels ran"),
    Column::Right("at most"),
    Column::Right("memory busy"),
    Column::Right("at most"),
    Column::Right("memory used at most"),
    Column::Right("of"),
    Column::Right("PCIe sent"),
    Column::Right("PCIe received"),
    Column::Right("NVLink sent"),
    Column::Right("NVLink received"),
    Column::Right("power"),
];

/// Returns a cell for each title.
fn cells(gpu: &GpuUse) -> [String; TITLES.len()] {
    let uuid: String = gpu.uuid.chars().take(UUID_SHOWN).collect();
    let mean = |share: Option<MeanAndMax>| text(share.map(|share| percent(share.mean)));
    let max = |share: Option<MeanAndMax>| text(share.map(|share| percent(share.max)));
    let bytes = |count: Option<u64>| text(count.map(units::bytes));
    let rate = |rate: Option<u64>| text(rate.map(units::rate));
    [
        format!("{} {uuid}", gpu.name),
        names(&gpu.nodes),
        mean(gpu.busy_share),
        max(gpu.busy_share),
        mean(gpu.memory_busy_share),
        max(gpu.memory_busy_share),
        bytes(gpu.memory_used_max_bytes),
        bytes(gpu.memory_bytes),
        rate(gpu.rates.pcie_sent_bytes_per_s),
        rate(gpu.rates.pcie_received_bytes_per_s),
        rate(gpu.rates.nvlink_sent_bytes_per_s),
        rate(gpu.rates.nvlink_received_bytes_per_s),
        text(gpu.power_w.map(|power| format!("{:.0} W", power.mean))),
    ]
}

fn text(value: Option<impl Display>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |value| value.to_string())
}

fn names(nodes: &[String]) -> String {
    let shown = nodes.iter().take(NODES_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match nodes.len().saturating_sub(NODES_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use rackloom_jobs::report::GpuRates;

    use super::*;

    fn gpu() -> GpuUse {
        GpuUse {
            uuid: "GPU-1b2c3d4e-0000".to_owned(),
            name: "NVIDIA H200".to_owned(),
            nodes: ["n0", "n1", "n2", "n3", "n4", "n5"].map(str::to_owned).to_vec(),
            samples: 20,
            busy_share: Some(MeanAndMax { mean: 0.25, max: 0.97 }),
            memory_used_max_bytes: Some(3 << 30),
            memory_bytes: Some(140 << 30),
            power_w: Some(MeanAndMax { mean: 217.4, max: 300.0 }),
            rates: GpuRates { nvlink_received_bytes_per_s: Some(2_500_000_000), ..GpuRates::default() },
            ..GpuUse::default()
        }
    }

    #[test]
    fn a_row_has_the_values_and_columns_without_values_are_left_out() {
        let part = GpuUse { uuid: "MIG-9".to_owned(), power_w: None, ..gpu() };
        let text = gpu_use(&[gpu(), part]);
        let rows: Vec<_> = text.lines().collect();
        assert_eq!(rows.len(), 3, "{text}");
        for cell in
            ["NVIDIA H200 GPU-1b2c3d4e  ", "n0, n1, n2, n3 and 2 more", " 25.0 %", " 97.0 %", " 3.00 GiB"]
        {
            assert!(rows[1].contains(cell), "{cell}: {text}");
        }
        assert!(rows[1].contains(" 140 GiB") && rows[1].contains(" 2.50 GB/s"), "{text}");
        assert!(rows[0].contains("NVLink received") && !rows[0].contains("NVLink sent"), "{text}");
        assert!(rows[1].ends_with(" 217 W") && rows[2].ends_with(" -"), "{text}");
        assert!(!text.contains("memory busy") && !text.contains("PCIe"), "no GPU has them: {text}");
    }

    #[test]
    fn without_a_gpu_there_is_no_table() {
        assert_eq!(gpu_use(&[]), "");
    }
}
