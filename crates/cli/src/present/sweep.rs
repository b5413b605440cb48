//! Times and bandwidths by size, in the columns that nccl-tests made common, and schedules side by side.

use rackloom_collectives::{Collective, Schedule};
use rackloom_jobs::SweepRow;

use super::table::{Column, Table};
use super::units;

/// The rows of a sweep; nothing if there are none.
pub(super) fn sweep(rows: &[SweepRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let has_pairs = rows.iter().any(|row| !row.pair.is_empty());
    let has_algorithms = rows.iter().any(|row| !row.algorithm.is_empty());
    let mut columns = vec![Column::Left("what")];
    columns.extend(has_pairs.then_some(Column::Left("between")));
    columns.extend(has_algorithms.then_some(Column::Left("algorithm")));
    let has_estimates = rows.iter().any(|row| row.estimate_us.is_some());
    columns.extend([
        Column::Right("size (B)"),
        Column::Right("count"),
        Column::Left("type"),
        Column::Left("op"),
        Column::Right("time (us)"),
    ]);
    columns.extend(has_estimates.then_some(Column::Right("estimate (us)")));
    columns.extend([Column::Right("algbw (GB/s)"), Column::Right("busbw (GB/s)"), Column::Right("wrong")]);
    let mut table = Table::new(&columns);
    for row in rows {
        let mut cells = vec![row.what.clone()];
        cells.extend(has_pairs.then(|| row.pair.clone()));
        cells.extend(has_algorithms.then(|| row.algorithm.clone()));
        cells.extend([
            row.size_bytes.to_string(),
            row.count.to_string(),
            row.element.clone(),
            row.op.clone(),
            format!("{:.2}", row.time_us),
        ]);
        let estimate =
            |row: &SweepRow| row.estimate_us.map_or_else(|| "-".to_owned(), |us| format!("{us:.2}"));
        cells.extend(has_estimates.then(|| estimate(row)));
        cells.extend([bandwidth(row.algorithm_gbps), bandwidth(row.bus_gbps), units::count(row.wrong)]);
        table.row(cells);
    }
    table.render()
}

/// Nothing is no bandwidth, and not a bandwidth of zero.
fn bandwidth(gbps: Option<f64>) -> String {
    gbps.map_or_else(|| "-".to_owned(), |gbps| format!("{gbps:.4}"))
}

/// What each schedule costs, one line per algorithm.
pub(crate) fn schedules(schedules: &[Schedule], element_bytes: u64) -> String {
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
    format!(
        "{what}: chosen while the rack runs, by trial runs of each (in virtual time by closed forms); --algorithm shows the \
         schedule of one\n\n{}",
        table.render()
    )
}
