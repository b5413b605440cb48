//! Tables of an exhaustive campaign.

use super::outcome::Kind;
use super::result::{CaseResult, ExhaustiveResult, ExpectedResult};
use crate::present::table::{Column, Table};
use crate::present::units;

/// Maximum number of cases that a table lists; JSON has all.
const LISTED_MAX: usize = 200;
/// Number of parts that are listed as those that matter most.
const PARTS_MAX: usize = 10;

/// Returns the tables and the counts.
pub(super) fn text(result: &ExhaustiveResult) -> String {
    let mut text = cases(&result.outcomes);
    text += &format!(
        "\n\n{} of {} failures ran: {}\njob without failures: {}",
        result.outcomes.len(),
        result.cases,
        counts(result),
        units::time(result.healthy_ns.round() as u64)
    );
    for note in &result.notes {
        text += &format!("\nnote: {note}");
    }
    if let Some(expected) = &result.expected {
        text += &format!("\n\n{}", of_expected(expected));
    }
    text
}

fn counts(result: &ExhaustiveResult) -> String {
    let counts = [result.survived, result.degraded, result.lost, result.wrong];
    let counts = Kind::ALL.into_iter().zip(counts).map(|(kind, count)| format!("{count} {}", kind.name()));
    counts.collect::<Vec<_>>().join(", ")
}

fn cases(outcomes: &[CaseResult]) -> String {
    let mut table = Table::new(&[
        Column::Left("failed"),
        Column::Left("outcome"),
        Column::Right("time"),
        Column::Right("goodput"),
        Column::Left("reason"),
    ]);
    for case in outcomes.iter().take(LISTED_MAX) {
        table.row([
            case.parts.join(" + "),
            shown(case),
            case.time_ns.map_or_else(|| "-".to_owned(), |time_ns| units::time(time_ns.round() as u64)),
            format!("{:.1}%", case.goodput * 100.0),
            case.reason.clone(),
        ]);
    }
    let more = outcomes.len().saturating_sub(LISTED_MAX);
    let more = if more == 0 { String::new() } else { format!("\n... and {more} more, in the JSON result") };
    format!("{}{more}", table.render())
}

fn shown(case: &CaseResult) -> String {
    match case.outcome {
        Kind::Degraded => format!("degraded by {:.1}%", (1.0 - case.goodput) * 100.0),
        kind => kind.name().to_owned(),
    }
}

fn of_expected(expected: &ExpectedResult) -> String {
    let percent = |share: f64| format!("{:.4}%", share * 100.0);
    let (least, most) = (percent(expected.goodput_least), percent(expected.goodput_most));
    let goodput = if least == most { least } else { format!("{least} to {most}") };
    let mut table = Table::new(&[Column::Left("matters most"), Column::Right("loss of goodput")]);
    for part in expected.parts.iter().filter(|part| part.loss > 0.0).take(PARTS_MAX) {
        table.row([part.part.clone(), format!("{:.6}%", part.loss * 100.0)]);
    }
    format!(
        "expected goodput: {goodput} of that without failures; nothing is down in {} of the time, and {} of it is in the table\n\n{}",
        percent(expected.healthy),
        percent(expected.covered),
        table.render()
    )
}
