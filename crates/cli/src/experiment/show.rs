//! Experiments and their findings as tables and as JSON.

use rackloom_experiments::{Experiment, Findings, Row, Verdict};
use serde_json::json;

use crate::present::table::{Column, Table};

/// Formats the list of experiments as a table.
pub(super) fn list(experiments: &[&Experiment]) -> String {
    let mut table = Table::new(&[
        Column::Right("no."),
        Column::Left("experiment"),
        Column::Left("question"),
        Column::Left("may vary"),
    ]);
    for experiment in experiments {
        let knobs: Vec<_> = experiment.knobs.iter().map(|knob| knob.name).collect();
        table.row([
            experiment.number.to_string(),
            experiment.name.to_owned(),
            experiment.question.to_owned(),
            knobs.join(" "),
        ]);
    }
    table.render()
}

/// Formats the list of experiments as JSON.
pub(super) fn list_as_json(experiments: &[&Experiment]) -> String {
    let listed: Vec<_> = experiments
        .iter()
        .map(|experiment| {
            let knobs: Vec<_> = experiment
                .knobs
                .iter()
                .map(|knob| json!({"name": knob.name, "meaning": knob.description, "usual": knob.usual}))
                .collect();
            json!({
                "number": experiment.number,
                "name": experiment.name,
                "question": experiment.question,
                "formula": experiment.formula,
                "theory": experiment.theory,
                "perturbs": experiment.perturbs,
                "knobs": knobs,
            })
        })
        .collect();
    pretty(&json!(listed))
}

/// Formats findings as JSON.
pub(super) fn as_json(findings: &[Findings]) -> String {
    let hold = findings.iter().all(Findings::hold);
    pretty(&json!({"hold": hold, "experiments": findings}))
}

fn pretty(value: &serde_json::Value) -> String {
    format!("{value:#}")
}

/// Formats one experiment as text: its question, its theory and every row.
pub(super) fn findings(experiment: &Experiment, findings: &Findings) -> String {
    let mut parts = vec![
        format!("{}. {}: {}", experiment.number, experiment.name, experiment.question),
        format!("   {}\n   {}", experiment.formula, experiment.theory),
    ];
    if let Some(input) = findings.perturbed {
        parts.push(format!("   perturbed: {input}, 20 % more than in the formula"));
    }
    let failed = findings.rows.iter().filter(|row| row.verdict != Verdict::Pass).count();
    let count = findings.rows.len();
    parts.push(rows(&findings.rows));
    parts.extend(findings.answer.iter().map(|line| format!("=> {line}")));
    parts.push(match failed {
        0 => format!("pass: {count} of {count} hold (seed {})\n", findings.seed),
        _ => format!("FAIL: {failed} of {count} do not hold (seed {})\n", findings.seed),
    });
    parts.join("\n")
}

fn rows(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        Column::Left("setting"),
        Column::Right("measured"),
        Column::Right("expected"),
        Column::Right("error"),
        Column::Right("tolerance"),
        Column::Left("verdict"),
        Column::Left("note"),
    ]);
    for row in rows {
        table.row([
            row.setting.clone(),
            row.measured.map_or_else(|| "-".to_owned(), number),
            number(row.expected),
            row.error.map_or_else(|| "-".to_owned(), |error| format!("{:+.3} %", error * 100.0)),
            row.tolerance.clone(),
            row.verdict.name().to_owned(),
            row.note.clone(),
        ]);
    }
    table.render()
}

/// Formats all experiments as a table with one row each.
pub(super) fn summary(findings: &[Findings]) -> String {
    let mut table = Table::new(&[Column::Left("experiment"), Column::Right("hold"), Column::Left("verdict")]);
    for found in findings {
        let hold = found.rows.iter().filter(|row| row.verdict == Verdict::Pass).count();
        let verdict = if found.hold() { "pass" } else { "FAIL" };
        table.row([found.name.to_owned(), format!("{hold}/{}", found.rows.len()), verdict.to_owned()]);
    }
    table.render()
}

/// Formats a number with six significant digits, without trailing zeros.
pub(super) fn number(value: f64) -> String {
    let digits = 5 - value.abs().max(1e-9).log10().floor() as i32;
    let text = format!("{value:.*}", digits.clamp(0, 12) as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_have_six_digits_at_most() {
        let shown = [52.459_016_39, 0.970_123_45, 6000.0, 13.65, 1_234_567.0, 0.0].map(number);
        assert_eq!(shown, ["52.459", "0.970123", "6000", "13.65", "1234567", "0"]);
    }
}
