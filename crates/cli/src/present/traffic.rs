//! Result of a traffic pattern, in one row.

use rackloom_jobs::report::TrafficReport;

use super::table::{Column, Table};
use super::units;

/// Formats the row of a pattern; empty if the job was another one.
pub(super) fn traffic(report: Option<&TrafficReport>) -> String {
    let Some(report) = report else { return String::new() };
    let mut table = Table::new(&[
        Column::Left("traffic"),
        Column::Right("messages"),
        Column::Right("bytes"),
        Column::Right("completion"),
        Column::Right("goodput (GB/s)"),
        Column::Right("fairness"),
    ]);
    table.row([
        report.pattern.clone(),
        units::count(report.messages),
        units::bytes(report.bytes),
        units::time(report.completion_ns),
        format!("{:.3}", report.goodput_gbps),
        format!("{:.3}", report.fairness),
    ]);
    table.render()
}
