//! Table of the oracles: number of judgements and of violations.

use rackloom_jobs::Verdicts;

use super::table::{Column, Table};
use super::units;

/// Formats one row per oracle that was watched.
pub(super) fn oracles(verdicts: &Verdicts) -> String {
    let mut table = Table::new(&[
        Column::Left("oracle"),
        Column::Right("looked"),
        Column::Right("could not tell"),
        Column::Right("broken"),
    ]);
    for (oracle, tally) in verdicts.iter() {
        let counts = [tally.looked, tally.unjudged, tally.broken].map(units::count);
        let [looked, unjudged, broken] = counts;
        table.row([oracle.name().to_owned(), looked, unjudged, broken]);
    }
    if table.is_empty() { String::new() } else { table.render() }
}
