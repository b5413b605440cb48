//! Table of the events of a fault script and their consequences.

use rackloom_jobs::report::FaultReport;

use super::table::{Column, Table};
use super::units;

/// Formats one row per event of the script; empty without a script.
pub(super) fn faults(faults: &[FaultReport]) -> String {
    let mut table = Table::new(&[
        Column::Left("fault"),
        Column::Right("line"),
        Column::Right("times"),
        Column::Right("first at"),
        Column::Right("detected after"),
        Column::Right("at least"),
        Column::Right("bound"),
        Column::Right("slack"),
        Column::Right("switched after"),
        Column::Right("recovered after"),
    ]);
    let time = |time_ns: Option<u64>| time_ns.map_or_else(|| "-".to_owned(), units::time);
    for fault in faults {
        table.row([
            fault.what.clone(),
            fault.line.to_string(),
            units::count(fault.times),
            time(fault.at_ns),
            time(fault.detected_after_ns),
            time(fault.detection_least_ns),
            time(fault.detection_bound_ns),
            time(fault.scheduling_slack_ns),
            time(fault.switched_after_ns),
            time(fault.recovered_after_ns),
        ]);
    }
    if table.is_empty() { String::new() } else { table.render() }
}
