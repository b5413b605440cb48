//! Page of an exhaustive campaign: counts, the outcome of each failure, and the parts that matter most.

use rackloom_drawing::chart::{Axis, BarSeries, Bars};
use rackloom_page::{Block, Cell, Column, Figure, Page, Section, Table, Tone, Value, text};

use super::super::page::repetition;
use super::outcome::Kind;
use super::result::{CaseResult, ExhaustiveResult, ExpectedResult};

/// Rows and bars at most.
const ROWS_MAX: usize = 1000;
const BARS_MAX: usize = 24;

/// Returns the page of an exhaustive campaign.
pub(super) fn page(result: &ExhaustiveResult) -> Page {
    let (verdict, tone) = if result.wrong == 0 { ("pass", Tone::Good) } else { ("fail", Tone::Bad) };
    let counts = [result.survived, result.degraded, result.lost, result.wrong];
    let mut values = vec![
        Value::new("failures that ran", format!("{} of {}", result.outcomes.len(), result.cases)),
        Value::new("job without failures", text::time(result.healthy_ns)),
    ];
    values.extend(Kind::ALL.into_iter().zip(counts).map(|(kind, count)| {
        let cell = Cell::text(count.to_string());
        Value::new(kind.name(), if count > 0 { cell.with_tone(tone_of(kind)) } else { cell })
    }));
    let notes = result.notes.iter().cloned().map(Block::Text);
    let mut sections = vec![
        Section::new("Result", std::iter::once(Block::Values(values)).chain(notes).collect()),
        repetition(&result.config_hash, result.version, rackloom_runtime::outcome::meta::COMMIT),
    ];
    sections.extend(result.expected.as_ref().map(expected));
    sections.push(Section::new("Outcomes", vec![Block::Table(outcomes(&result.outcomes))]));
    Page {
        title: format!("Every failure of {}", result.rack),
        subtitle: "Each row is a run in virtual time in which these parts fail".to_owned(),
        verdict: Some(Cell::text(format!("verdict: {verdict}")).with_tone(tone)),
        sections,
    }
}

const fn tone_of(kind: Kind) -> Tone {
    match kind {
        Kind::Survived => Tone::Good,
        Kind::Degraded | Kind::Lost => Tone::Warning,
        Kind::Wrong => Tone::Bad,
    }
}

/// Returns the table of outcomes. Of too many, the worst are kept.
fn outcomes(cases: &[CaseResult]) -> Table {
    let columns = vec![
        Column::text("failed"),
        Column::text("kind"),
        Column::text("outcome"),
        Column::number("time"),
        Column::number("goodput"),
        Column::text("reason"),
    ];
    let mut order: Vec<&CaseResult> = cases.iter().collect();
    if cases.len() > ROWS_MAX {
        order.sort_by(|one, other| {
            other.outcome.cmp(&one.outcome).then(one.goodput.total_cmp(&other.goodput))
        });
    }
    let row = |case: &&CaseResult| {
        vec![
            case.parts.join(" + ").into(),
            case.kind.as_str().into(),
            Cell::text(case.outcome.name()).with_tone(tone_of(case.outcome)),
            case.time_ns.map_or_else(Cell::absent, |ns| Cell::number(text::time(ns), ns)),
            text::share_cell(case.goodput),
            case.reason.as_str().into(),
        ]
    };
    let table = Table { rows: order.iter().map(row).collect(), ..Table::new("Outcomes", columns) };
    table.without_empty_columns().bounded(ROWS_MAX, "the worst outcomes")
}

fn expected(expected: &ExpectedResult) -> Section {
    let percent = |share: f64| format!("{:.4} %", share * 100.0);
    let parts = &expected.parts[..expected.parts.len().min(BARS_MAX)];
    let more = expected.parts.len() - parts.len();
    let note = if more > 0 {
        format!("The first {BARS_MAX} parts; {more} more matter less.")
    } else {
        String::new()
    };
    let bars = Bars {
        title: "Parts that matter most".to_owned(),
        note,
        value: Axis::linear("expected loss of goodput (%)"),
        names: parts.iter().map(|part| part.part.clone()).collect(),
        series: vec![BarSeries {
            name: String::new(),
            values: parts.iter().map(|part| Some(part.loss * 100.0)).collect(),
        }],
    };
    let values = vec![
        Value::new("expected goodput, at least", percent(expected.goodput_least)),
        Value::new("expected goodput, at most", percent(expected.goodput_most)),
        Value::new("time in which nothing is down", percent(expected.healthy)),
        Value::new("time in states that were run", percent(expected.covered)),
    ];
    Section::new("Expected goodput", vec![Block::Values(values), Block::figure(Figure::Bars(bars))])
}
