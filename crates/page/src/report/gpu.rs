//! Use of real GPUs: a row for each GPU.

use rackloom_control::report::{MeanAndMax, Report};

use crate::model::{Block, Cell, Column, Table};
use crate::text;

/// Returns the table of the GPUs, if any was sampled.
pub(super) fn gpus(report: &Report) -> Vec<Block> {
    if report.gpu_use.is_empty() {
        return Vec::new();
    }
    let numbers = [
        "kernels ran, mean",
        "kernels ran, max",
        "memory busy, mean",
        "memory busy, max",
        "memory used, max",
        "memory",
        "PCIe sent",
        "PCIe received",
        "NVLink sent",
        "NVLink received",
        "power, mean (W)",
        "power, max (W)",
        "SM clock, mean (MHz)",
        "SM clock, max (MHz)",
        "samples",
    ];
    let mut columns = vec![Column::text("GPU"), Column::text("unique name"), Column::text("nodes")];
    columns.extend(numbers.map(Column::number));
    let mut table = Table::new("Real GPUs", columns);
    for gpu in &report.gpu_use {
        let shares = |value: Option<MeanAndMax>| pair(value, text::share_cell);
        let decimals = |value: Option<MeanAndMax>| pair(value, |value| text::decimal_cell(Some(value)));
        let bytes = |count: Option<u64>| count.map_or_else(Cell::absent, text::bytes_cell);
        let rate = |rate: Option<u64>| {
            rate.map_or_else(Cell::absent, |rate| Cell::number(text::rate(rate as f64), rate as f64))
        };
        let mut row: Vec<Cell> =
            vec![gpu.name.as_str().into(), gpu.uuid.as_str().into(), gpu.nodes.join(", ").as_str().into()];
        row.extend(shares(gpu.busy_share));
        row.extend(shares(gpu.memory_busy_share));
        row.extend([bytes(gpu.memory_used_max_bytes), bytes(gpu.memory_bytes)]);
        row.extend([rate(gpu.rates.pcie_sent_bytes_per_s), rate(gpu.rates.pcie_received_bytes_per_s)]);
        row.extend([rate(gpu.rates.nvlink_sent_bytes_per_s), rate(gpu.rates.nvlink_received_bytes_per_s)]);
        row.extend(decimals(gpu.power_w));
        row.extend(decimals(gpu.sm_clock_mhz));
        row.push(text::count_cell(gpu.samples));
        table.rows.push(row);
    }
    let meaning = "Figures of real GPUs are those of the whole GPU during the job, with the work of other processes. A share is the \
                   part of the driver's sample periods in which a kernel ran, or the memory was read or written.";
    vec![Block::Text(meaning.to_owned()), Block::Table(table.without_empty_columns())]
}

/// Returns the cells of mean and greatest.
fn pair(value: Option<MeanAndMax>, cell: impl Fn(f64) -> Cell) -> [Cell; 2] {
    value.map_or_else(|| [Cell::absent(), Cell::absent()], |value| [cell(value.mean), cell(value.max)])
}
