//! Balance of the load over the links: a row for each phase, and the use of the busiest directions.

use rackloom_control::report::{PhaseBalance, Report};
use rackloom_drawing::chart::{Axis, BarSeries, Bars};

use crate::model::{Block, Cell, Column, Figure, Table};
use crate::text;

/// Rows and bars at most.
const ROWS_MAX: usize = 300;
const BARS_MAX: usize = 32;

/// Returns the use of the busiest directions and the table of phases.
pub(super) fn load(report: &Report) -> Vec<Block> {
    let Some(whole) = report.balance.first() else { return Vec::new() };
    let mut blocks = vec![Block::Text(
        "Imbalance is the bytes of the direction that sent most over the mean: 1 is even. A share is the part of the link's rate that was used. \
         Bytes are those that count against the rate: in virtual time with the headers of the link's profile, and always with preambles and gaps."
            .to_owned(),
    )];
    blocks.extend(shares(report, whole));
    blocks.push(Block::Table(phases(&report.balance)));
    blocks
}

fn phases(balance: &[PhaseBalance]) -> Table {
    let numbers = ["from", "duration", "bytes", "imbalance", "mean share", "greatest share"];
    let columns = [Column::text("phase")].into_iter().chain(numbers.map(Column::number));
    // Without rates there are no shares. With equal rates both names are equal, and one is enough.
    let has_shares = balance.iter().any(|phase| phase.share_max.is_some());
    let has_two = has_shares && balance.iter().any(|phase| phase.fullest != phase.busiest);
    let most = has_two.then(|| Column::text("most bytes"));
    let columns = columns.chain([Column::text("busiest direction")]).chain(most).collect();
    let mut table = Table::new("Balance by phase", columns);
    let share = |share: Option<f64>| {
        share.filter(|share| share.is_finite()).map_or_else(Cell::absent, text::share_cell)
    };
    let name = |name: &Option<String>| name.as_deref().unwrap_or("-").into();
    for phase in balance {
        let mut row = vec![
            phase.name.as_str().into(),
            text::time_cell(phase.began_ns),
            text::time_cell(phase.ended_ns.saturating_sub(phase.began_ns)),
            text::bytes_cell(phase.bytes.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))),
            text::decimal_cell(Some(phase.imbalance)),
            share(phase.share_mean),
            share(phase.share_max),
            name(if has_shares { &phase.fullest } else { &phase.busiest }),
        ];
        row.extend(has_two.then(|| name(&phase.busiest)));
        table.rows.push(row);
    }
    table.without_empty_columns().bounded(ROWS_MAX, "the first ones in time")
}

/// Returns the rate of a direction in bits per second.
pub(super) fn rate_of(report: &Report, direction: usize) -> Option<u64> {
    report.topology.as_ref()?.links.get(direction / 2)?.rate_bits_per_s.filter(|rate| *rate > 0)
}

/// Draws the directions that were used most in the whole run. Shares need the rates of all directions; otherwise bytes are drawn.
fn shares(report: &Report, whole: &PhaseBalance) -> Option<Block> {
    let seconds = whole.ended_ns.saturating_sub(whole.began_ns) as f64 / 1e9;
    let directions = whole.bytes.len().min(report.links.len());
    let share = |direction: usize| {
        let possible = rate_of(report, direction)? as f64 / 8.0 * seconds;
        (possible > 0.0).then(|| whole.bytes[direction] as f64 / possible * 100.0)
    };
    let shares: Option<Vec<f64>> = (0..directions).map(share).collect();
    let (values, axis) = match shares {
        Some(shares) => (shares, Axis::linear("share of the rate over the whole run (%)")),
        None => (
            whole.bytes.iter().take(directions).map(|bytes| *bytes as f64).collect(),
            Axis::linear("bytes with preambles and gaps (B)"),
        ),
    };
    let mut order: Vec<usize> = (0..directions).filter(|direction| whole.bytes[*direction] > 0).collect();
    order.sort_by(|one, other| values[*other].total_cmp(&values[*one]).then(one.cmp(other)));
    let used = order.len();
    order.truncate(BARS_MAX);
    if order.is_empty() {
        return None;
    }
    let note = match used.saturating_sub(BARS_MAX) {
        0 => format!("All {used} directions that sent."),
        more => format!(
            "The {BARS_MAX} busiest of {used} directions that sent; the other {more} used no more than these."
        ),
    };
    Some(Block::figure(Figure::Bars(Bars {
        title: "Use of the links".to_owned(),
        note,
        value: axis,
        names: order.iter().map(|direction| report.links[*direction].name.clone()).collect(),
        series: vec![BarSeries {
            name: String::new(),
            values: order.iter().map(|direction| Some(values[*direction])).collect(),
        }],
    })))
}
