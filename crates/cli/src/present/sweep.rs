//! Times and bandwidths by size, in the columns that nccl-tests made common, and schedules side by side.

use rackloom_collectives::{Collective, Schedule};
use rackloom_jobs::SweepRow;

use super::table::{Column, Table};
use super::units;

/// Groups of columns that stand only where rows have them.
struct Groups {
    has_pairs: bool,
    has_algorithms: bool,
    has_quantiles: bool,
    has_estimates: bool,
}

/// The rows of a sweep; nothing if there are none.
pub(super) fn sweep(rows: &[SweepRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let has = |is_there: fn(&SweepRow) -> bool| rows.iter().any(is_there);
    let groups = Groups {
        has_pairs: has(|row| !row.pair.is_empty()),
        has_algorithms: has(|row| !row.algorithm.is_empty()),
        has_quantiles: has(|row| row.time_p99_us.is_some()),
        has_estimates: has(|row| row.estimate_us.is_some()),
    };
    let mut table = Table::new(&groups.columns());
    rows.iter().for_each(|row| table.row(groups.cells(row)));
    table.render()
}

impl Groups {
    fn columns(&self) -> Vec<Column> {
        let mut columns = vec![Column::Left("what")];
        columns.extend(self.has_pairs.then_some(Column::Left("between")));
        columns.extend(self.has_algorithms.then_some(Column::Left("algorithm")));
        columns.extend([
            Column::Right("size (B)"),
            Column::Right("count"),
            Column::Left("type"),
            Column::Left("op"),
            Column::Right("time (us)"),
        ]);
        if self.has_quantiles {
            columns.extend(["min (us)", "p50 (us)", "p99 (us)"].map(Column::Right));
        }
        columns.extend(self.has_estimates.then_some(Column::Right("estimate (us)")));
        columns.extend([Column::Right("algbw (GB/s)"), Column::Right("busbw (GB/s)")]);
        columns.extend(self.has_algorithms.then_some(Column::Right("of link")));
        columns.push(Column::Right("wrong"));
        columns
    }

    fn cells(&self, row: &SweepRow) -> Vec<String> {
        let mut cells = vec![row.what.clone()];
        cells.extend(self.has_pairs.then(|| row.pair.clone()));
        cells.extend(self.has_algorithms.then(|| row.algorithm.clone()));
        cells.extend([
            row.size_bytes.to_string(),
            row.count.to_string(),
            row.element.clone(),
            row.op.clone(),
            format!("{:.2}", row.time_us),
        ]);
        if self.has_quantiles {
            cells.extend([row.time_min_us, row.time_p50_us, row.time_p99_us].map(time));
        }
        cells.extend(self.has_estimates.then(|| time(row.estimate_us)));
        cells.extend([bandwidth(row.algorithm_gbps), bandwidth(row.bus_gbps)]);
        cells.extend(self.has_algorithms.then(|| share(row.of_link)));
        cells.push(units::count(row.wrong));
        cells
    }
}

fn time(us: Option<f64>) -> String {
    us.map_or_else(|| "-".to_owned(), |us| format!("{us:.2}"))
}

/// Without a rate there is no share of it.
fn share(of_link: Option<f64>) -> String {
    of_link.map_or_else(|| "-".to_owned(), |share| format!("{:.1}%", share * 100.0))
}

/// Nothing is no bandwidth, and not a bandwidth of zero.
fn bandwidth(gbps: Option<f64>) -> String {
    gbps.map_or_else(|| "-".to_owned(), |gbps| format!("{gbps:.4}"))
}

/// What each schedule costs, one line per algorithm.
/// `why` says how the job takes one of them.
pub(crate) fn schedules(schedules: &[Schedule], element_bytes: u64, why: &str) -> String {
    let mut table = Table::new(&[
        Column::Left("algorithm"),
        Column::Right("rounds"),
        Column::Right("transfers"),
        Column::Right("moved"),
        Column::Right("most sent by a rank"),
        Column::Right("scratch"),
    ]);
    for schedule in schedules {
        let bytes = |elements: usize| units::bytes(elements as u64 * element_bytes);
        let mut sent = vec![0; schedule.ranks()];
        schedule.transfers.iter().for_each(|transfer| sent[transfer.from] += transfer.source.length);
        let scratch = schedule.programs.iter().map(|program| program.scratch).max().unwrap_or(0);
        table.row([
            schedule.algorithm.to_string(),
            schedule.rounds().to_string(),
            schedule.transfers.len().to_string(),
            bytes(sent.iter().sum()),
            bytes(sent.iter().copied().max().unwrap_or(0)),
            bytes(scratch),
        ]);
    }
    let first = schedules.first();
    let what = first.map_or_else(String::new, |schedule| {
        let elements = match schedule.collective {
            Collective::Barrier => String::new(),
            _ => format!(" of {} elements", schedule.elements),
        };
        format!("{}{elements} over {} ranks", schedule.collective, schedule.ranks())
    });
    format!("{what}: {why}; --algorithm shows the schedule of one\n\n{}", table.render())
}
