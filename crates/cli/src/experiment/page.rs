//! Page of experiments: a section for each, with its figure and its rows.

use rackloom_experiments::{Experiment, Findings, Row, Verdict, chart};
use rackloom_page::{Block, Cell, Column, Figure, Page, Section, Table, Tone, Value, text};

use crate::arguments::command_line;

/// Rows of a table at most.
const ROWS_MAX: usize = 1000;

/// Returns the page of experiments that ran.
pub(super) fn page(name: &str, findings: &[Findings], sections: Vec<Section>) -> Page {
    let holding = findings.iter().filter(|found| found.hold()).count();
    let tone = if holding == findings.len() { Tone::Good } else { Tone::Bad };
    let verdict = if holding == findings.len() { "pass" } else { "fail" };
    let share = match findings.len() {
        1 => String::new(),
        count => format!(" ({holding} of {count} experiments hold)"),
    };
    let mut all = Vec::new();
    if findings.len() > 1 {
        all.push(Section::new("Result", vec![Block::Table(summary(findings))]));
    }
    all.extend(sections);
    all.push(Section::new(
        "Repeat this run",
        vec![
            Block::Command(command_line()),
            Block::Values(vec![
                Value::new("seed", findings.first().map_or_else(String::new, |found| found.seed.to_string())),
                Value::new("version", env!("CARGO_PKG_VERSION")),
                Value::new("commit", rackloom_runtime::outcome::meta::COMMIT),
            ]),
        ],
    ));
    Page {
        title: if findings.len() == 1 { format!("Experiment {name}") } else { "Experiments".to_owned() },
        subtitle: "Runs in virtual time, compared with closed forms".to_owned(),
        verdict: Some(Cell::text(format!("verdict: {verdict}{share}")).with_tone(tone)),
        sections: all,
    }
}

fn summary(findings: &[Findings]) -> Table {
    let columns = vec![
        Column::text("experiment"),
        Column::text("verdict"),
        Column::number("rows that hold"),
        Column::number("rows"),
    ];
    let mut table = Table::new("Experiments", columns);
    for found in findings {
        let holding = found.rows.iter().filter(|row| row.verdict == Verdict::Pass).count();
        table.rows.push(vec![
            found.name.into(),
            verdict(if found.hold() { Verdict::Pass } else { Verdict::Fail }),
            text::count_cell(holding as u64),
            text::count_cell(found.rows.len() as u64),
        ]);
    }
    table
}

fn verdict(verdict: Verdict) -> Cell {
    let tone = if verdict == Verdict::Pass { Tone::Good } else { Tone::Bad };
    Cell::text(verdict.name().to_lowercase()).with_tone(tone)
}

/// Returns the section of one experiment.
pub(super) fn section(experiment: &Experiment, found: &Findings) -> Section {
    let mut blocks = vec![
        Block::Text(experiment.question.to_owned()),
        Block::Values(vec![
            Value::new("closed form", experiment.formula),
            Value::new("derivation", experiment.theory),
        ]),
    ];
    blocks.extend(found.perturbed.map(|input| {
        Block::Text(format!("Perturbed: {input}, 20 % more than in the formula. The rows must not hold."))
    }));
    blocks.push(Block::figure(Figure::Chart(chart::chart(experiment, found))));
    blocks.push(Block::List(found.answer.clone()));
    blocks.push(Block::Table(rows(&found.rows)));
    Section::new(format!("{}. {}", experiment.number, experiment.name), blocks)
}

fn rows(rows: &[Row]) -> Table {
    let columns = vec![
        Column::text("setting"),
        Column::text("verdict"),
        Column::number("measured"),
        Column::number("expected"),
        Column::number("error"),
        Column::text("tolerance"),
        Column::text("note"),
    ];
    let number = |value: f64| Cell::number(super::show::number(value), value);
    let mut table = Table::new("Rows", columns);
    for row in rows {
        table.rows.push(vec![
            row.setting.as_str().into(),
            verdict(row.verdict),
            row.measured.map_or_else(Cell::absent, number),
            number(row.expected),
            row.error
                .map_or_else(Cell::absent, |error| Cell::number(format!("{:+.3} %", error * 100.0), error)),
            row.tolerance.as_str().into(),
            row.note.as_str().into(),
        ]);
    }
    table.without_empty_columns().bounded(ROWS_MAX, "the first ones")
}
