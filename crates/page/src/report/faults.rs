//! Events of a fault script with their effects, and the oracles.

use rackloom_control::oracle::Verdicts;
use rackloom_control::report::FaultReport;

use crate::model::{Block, Cell, Column, Table, Tone};
use crate::text;

/// Rows at most.
const ROWS_MAX: usize = 500;

/// Returns the table of the script's events.
pub(super) fn faults(faults: &[FaultReport]) -> Vec<Block> {
    let numbers = [
        "line",
        "times",
        "first at",
        "detected after",
        "at least",
        "bound",
        "slack",
        "switched after",
        "recovered after",
    ];
    let columns =
        [Column::text("fault"), Column::text("detection")].into_iter().chain(numbers.map(Column::number));
    let mut table = Table::new("Faults of the script", columns.collect());
    for fault in faults {
        table.rows.push(vec![
            fault.what.as_str().into(),
            detection(fault),
            Cell::number(fault.line.to_string(), f64::from(fault.line)),
            text::count_cell(fault.times),
            text::optional_time_cell(fault.at_ns),
            text::optional_time_cell(fault.detected_after_ns),
            text::optional_time_cell(fault.detection_least_ns),
            text::optional_time_cell(fault.detection_bound_ns),
            text::optional_time_cell(fault.scheduling_slack_ns),
            text::optional_time_cell(fault.switched_after_ns),
            text::optional_time_cell(fault.recovered_after_ns),
        ]);
    }
    if !faults.is_empty() {
        table.note = "The bound is that of detection by heartbeats alone. The verdict of the run follows from the script's expectations.".to_owned();
    }
    vec![Block::Table(table.without_empty_columns().bounded(ROWS_MAX, "the first ones of the script"))]
}

/// Compares the detection of a fault with its bound.
fn detection(fault: &FaultReport) -> Cell {
    let limit_ns =
        fault.detection_bound_ns.map(|bound| bound.saturating_add(fault.scheduling_slack_ns.unwrap_or(0)));
    match (fault.times, fault.detected_after_ns, limit_ns) {
        (0, ..) => Cell::text("it never began").with_tone(Tone::Warning),
        _ if fault.unnoticed > 0 => {
            // A fault that is shorter than the bound may end before it is detected.
            Cell::text(format!(
                "not detected {} of {} times",
                text::count(fault.unnoticed),
                text::count(fault.times)
            ))
            .with_tone(Tone::Warning)
        }
        (_, Some(after), Some(limit)) if after > limit => {
            Cell::text("later than the bound").with_tone(Tone::Bad)
        }
        (_, Some(_), Some(_)) => Cell::text("within the bound").with_tone(Tone::Good),
        (_, Some(_), None) => Cell::text("detected").with_tone(Tone::Good),
        (_, None, _) => Cell::text("no link goes down by it"),
    }
}

/// Returns the table of the oracles.
pub(super) fn oracles(verdicts: &Verdicts) -> Vec<Block> {
    let columns = vec![
        Column::text("oracle"),
        Column::text("result"),
        Column::number("checks"),
        Column::number("without a result"),
        Column::number("violations"),
        Column::text("first violations"),
    ];
    let mut table = Table::new("Oracles: properties that must always hold", columns);
    for (oracle, tally) in verdicts.iter() {
        let result = match (tally.broken, tally.looked) {
            (0, 0) => Cell::text("no check had a result").with_tone(Tone::Warning),
            (0, _) => Cell::text("holds").with_tone(Tone::Good),
            _ => Cell::text("violated").with_tone(Tone::Bad),
        };
        table.rows.push(vec![
            oracle.name().into(),
            result,
            text::count_cell(tally.looked),
            text::count_cell(tally.unjudged),
            text::count_cell(tally.broken),
            tally.first.join("; ").into(),
        ]);
    }
    vec![Block::Table(table.without_empty_columns())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detection_is_compared_with_bound_and_slack() {
        let fault = |detected_after_ns, detection_bound_ns| FaultReport {
            times: 1,
            detected_after_ns,
            detection_bound_ns,
            scheduling_slack_ns: Some(5),
            ..FaultReport::default()
        };
        let tone = |fault: &FaultReport| detection(fault).tone;
        assert_eq!(tone(&fault(Some(105), Some(100))), Tone::Good);
        assert_eq!(tone(&fault(Some(106), Some(100))), Tone::Bad);
        assert_eq!(tone(&fault(None, None)), Tone::Plain);
        assert_eq!(tone(&FaultReport { unnoticed: 1, ..fault(Some(1), Some(100)) }), Tone::Warning);
        assert_eq!(tone(&FaultReport::default()), Tone::Warning);
    }
}
