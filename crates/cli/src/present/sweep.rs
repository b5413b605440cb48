//! Times and bandwidths by size, with the columns of nccl-tests, and a comparison of schedules.

use rackloom_collectives::{Collective, Schedule};
use rackloom_jobs::SweepRow;

use super::table::{Column, Table};
use super::units;

/// Column, and the function that makes its cell for a row.
type Cells = (Column, fn(&SweepRow) -> String);

/// Formats the rows of a sweep; empty if there are none.
pub(super) fn sweep(rows: &[SweepRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let (columns, cells): (Vec<_>, Vec<_>) = columns(rows).into_iter().unzip();
    let mut table = Table::new(&columns);
    for row in rows {
        table.row(cells.iter().map(|cell| cell(row)));
    }
    table.render()
}

/// Returns the columns of all sweeps, and optional ones for which a row has a value.
fn columns(rows: &[SweepRow]) -> Vec<Cells> {
    let has = |has_value: fn(&SweepRow) -> bool| rows.iter().any(has_value);
    let has_algorithms = has(|row| !row.algorithm.is_empty());
    let mut columns: Vec<Cells> = vec![(Column::Left("what"), |row| row.what.clone())];
    if has(|row| !row.pair.is_empty()) {
        columns.push((Column::Left("between"), |row| row.pair.clone()));
    }
    if has_algorithms {
        columns.push((Column::Left("algorithm"), |row| row.algorithm.clone()));
    }
    let of_job: [Cells; 5] = [
        (Column::Right("size (B)"), |row| row.size_bytes.to_string()),
        (Column::Right("count"), |row| row.count.to_string()),
        (Column::Left("type"), |row| row.element.clone()),
        (Column::Left("op"), |row| row.op.clone()),
        (Column::Right("time (us)"), |row| time(Some(row.time_us))),
    ];
    columns.extend(of_job);
    if has(|row| row.time_p99_us.is_some()) {
        let quantiles: [Cells; 3] = [
            (Column::Right("min (us)"), |row| time(row.time_min_us)),
            (Column::Right("p50 (us)"), |row| time(row.time_p50_us)),
            (Column::Right("p99 (us)"), |row| time(row.time_p99_us)),
        ];
        columns.extend(quantiles);
    }
    if has(|row| row.estimate_us.is_some()) {
        columns.push((Column::Right("estimate (us)"), |row| time(row.estimate_us)));
    }
    columns.push((Column::Right("algbw (GB/s)"), |row| bandwidth(row.algorithm_gbps)));
    columns.push((Column::Right("busbw (GB/s)"), |row| bandwidth(row.bus_gbps)));
    if has_algorithms {
        columns.push((Column::Right("of link"), |row| share(row.of_link)));
    }
    columns.push((Column::Right("wrong"), |row| units::count(row.wrong)));
    columns
}

fn time(us: Option<f64>) -> String {
    us.map_or_else(|| "-".to_owned(), |us| format!("{us:.2}"))
}

/// Formats the share of the link rate; a dash without a rate.
fn share(of_link: Option<f64>) -> String {
    of_link.map_or_else(|| "-".to_owned(), |share| format!("{:.1}%", share * 100.0))
}

/// Formats a bandwidth; a dash if there is none.
fn bandwidth(gbps: Option<f64>) -> String {
    gbps.map_or_else(|| "-".to_owned(), |gbps| format!("{gbps:.4}"))
}

/// Formats the cost of each schedule, one row per algorithm. `reason`: text that says how the job chooses an
/// algorithm.
pub(crate) fn schedules(schedules: &[Schedule], element_bytes: u64, reason: &str) -> String {
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
        let mut sent = vec![0; schedule.participants()];
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
    format!("{what}: {reason}; --algorithm shows the schedule of one\n\n{}", table.render())
}
