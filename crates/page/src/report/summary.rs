//! Verdict, reasons and values of a run, the command that repeats it, and its settings.

use rackloom_control::report::{Report, Verdict};

use crate::model::{Block, Cell, Tone, Value};
use crate::text;

/// Reasons and notes at most.
const LINES_MAX: usize = 100;

/// Returns the verdict with its tone.
pub(super) fn verdict(verdict: Verdict) -> Cell {
    let tone = match verdict {
        Verdict::Pass => Tone::Good,
        Verdict::Fail => Tone::Bad,
        Verdict::CouldNotTell | Verdict::Starved => Tone::Warning,
    };
    Cell::text(format!("verdict: {}", verdict.name())).with_tone(tone)
}

/// Returns the line below the title.
pub(super) fn subtitle(report: &Report) -> String {
    let date = report.meta.as_ref().map(|meta| format!(" · {} · {}", meta.date, meta.host.name));
    let elapsed = text::time(report.elapsed_ns as f64);
    format!("{elapsed} of {} time · wire {}{}", report.clock, report.wire, date.unwrap_or_default())
}

/// Returns reasons, values and notes.
pub(super) fn result(report: &Report) -> Vec<Block> {
    let mut blocks = Vec::new();
    if report.failures.is_empty() {
        let note = if report.verdict == Verdict::Pass {
            "Every check passed."
        } else {
            "The report names no reason."
        };
        blocks.push(Block::Text(note.to_owned()));
    } else {
        blocks.push(Block::Text(format!(
            "Reasons of the verdict ({}):",
            text::count(report.failures.len() as u64)
        )));
        blocks.push(Block::List(bounded(&report.failures)));
    }
    let mut values = vec![
        Value::new("job", report.job.as_str()),
        Value::new("seed", report.seed.to_string()),
        Value::new("duration", format!("{} ({} time)", text::time(report.elapsed_ns as f64), report.clock)),
        Value::new("verified bytes", text::bytes(report.verified_bytes)),
        Value::new("members", text::count(report.nodes.len() as u64)),
        Value::new("wire", report.wire.as_str()),
    ];
    if let Some(bytes) = report.wire_bytes {
        values.push(Value::new("bytes on all links", text::bytes(bytes.sent)));
        values.push(Value::new("of these, by the links' profiles", text::bytes(bytes.accounted)));
    }
    if !report.groups.is_empty() {
        let groups: Vec<String> = report.groups.iter().map(|group| group.join(" ")).collect();
        values.push(Value::new("ranks that completed the job together", groups.join("; ")));
    }
    blocks.push(Block::Values(values));
    if !report.notes.is_empty() {
        blocks.push(Block::Text("Notes:".to_owned()));
        blocks.push(Block::List(bounded(&report.notes)));
    }
    blocks
}

/// Returns the first lines, and the number of the others.
fn bounded(lines: &[String]) -> Vec<String> {
    let more = lines.len().saturating_sub(LINES_MAX);
    let more = (more > 0).then(|| format!("and {more} more, in the JSON report"));
    lines.iter().take(LINES_MAX).cloned().chain(more).collect()
}

/// Returns the command of the run, and what decides that it gives the same result.
pub(super) fn repetition(report: &Report) -> Vec<Block> {
    let mut blocks = Vec::new();
    match report.meta.as_ref().filter(|meta| !meta.command.is_empty()) {
        Some(meta) => {
            blocks.push(Block::Command(meta.command.clone()));
            let text = match report.trace_hash.is_some() {
                true => "Virtual time: the same files, seed and version give the same trace hash.",
                false => "Processes: the same files and seed give the same plan and data. Times differ.",
            };
            blocks.push(Block::Text(text.to_owned()));
        }
        None => blocks.push(Block::Text("The report does not name its command.".to_owned())),
    }
    let mut values = vec![
        Value::new("seed", report.seed.to_string()),
        Value::new("version", report.manifest.version.as_str()),
        Value::new("commit", report.manifest.commit.as_str()),
        Value::new("hash of the plan", report.manifest.config_hash.as_str()),
    ];
    values.extend(report.trace_hash.as_ref().map(|hash| Value::new("trace hash", hash.as_str())));
    blocks.push(Block::Values(values));
    blocks
}

/// Returns the options in effect and the machine.
pub(super) fn settings(report: &Report) -> Vec<Block> {
    let Some(meta) = &report.meta else { return Vec::new() };
    let options = meta.options.iter().map(|(name, value)| Value::new(name.as_str(), value.as_str()));
    vec![
        Block::Text("Options in effect, from the file, the command line and the defaults:".to_owned()),
        Block::Values(options.collect()),
        Block::Text("Machine and program:".to_owned()),
        Block::Values(vec![
            Value::new("date", meta.date.as_str()),
            Value::new("host", meta.host.name.as_str()),
            Value::new("kernel", meta.host.kernel.as_str()),
            Value::new("processors", meta.host.processors.to_string()),
            Value::new("rackloom", meta.versions.rackloom.as_str()),
            Value::new("wire format", meta.versions.wire.to_string()),
            Value::new("commit", meta.commit.as_str()),
        ]),
    ]
}
