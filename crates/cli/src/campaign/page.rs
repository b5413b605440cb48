//! Page of a campaign: counts, and each script that failed.

use rackloom_page::{Block, Cell, Page, Section, Tone, Value, text};

use super::summary::{FailedScript, Summary};
use crate::arguments::command_line;

/// Scripts that have a section at most.
const SCRIPTS_MAX: usize = 100;

/// Returns the page of a campaign.
pub(super) fn page(summary: &Summary) -> Page {
    let tone = match summary.verdict {
        "pass" => Tone::Good,
        "fail" => Tone::Bad,
        _ => Tone::Warning,
    };
    let counts = vec![
        Value::new("scripts requested", text::count(summary.runs)),
        Value::new("first script", summary.first.to_string()),
        Value::new("ran", text::count(summary.ran)),
        Value::new("failed", text::count(summary.failures.len() as u64)),
        Value::new("without a processor in time", text::count(summary.starved)),
        Value::new("left out: passed before", text::count(summary.left_out)),
        Value::new("engine", summary.engine),
        Value::new("duration", format!("{:.1} s on {} threads", summary.elapsed_s, summary.threads)),
    ];
    let mut sections = vec![
        Section::new("Result", vec![Block::Values(counts)]),
        repetition(&summary.config_hash, summary.version, summary.commit),
    ];
    sections.extend(summary.failures.iter().take(SCRIPTS_MAX).map(script));
    let more = summary.failures.len().saturating_sub(SCRIPTS_MAX);
    if more > 0 {
        let note = format!("{more} more scripts failed. The JSON result has them.");
        sections.push(Section::new("Further scripts", vec![Block::Text(note)]));
    }
    Page {
        title: format!("Campaign on {}", summary.rack),
        subtitle: "Random fault scripts. Every run must end right or with a clean error.".to_owned(),
        verdict: Some(Cell::text(format!("verdict: {}", summary.verdict)).with_tone(tone)),
        sections,
    }
}

/// Returns the section with the command of a campaign.
pub(super) fn repetition(config_hash: &str, version: &str, commit: &str) -> Section {
    let values = vec![
        Value::new("version", version),
        Value::new("commit", commit),
        Value::new("hash of the plan", config_hash),
    ];
    Section::new("Repeat this campaign", vec![Block::Command(command_line()), Block::Values(values)])
}

fn script(failed: &FailedScript) -> Section {
    let repeats = failed.repeats.as_deref().unwrap_or("each repeat fails").trim().to_owned();
    let blocks = vec![
        Block::List(failed.reasons.clone()),
        Block::Values(vec![
            Value::new("events drawn", failed.events_drawn.to_string()),
            Value::new("events of the smallest form", failed.events.to_string()),
            Value::new("repeats", repeats),
            Value::new("file", failed.file.as_str()),
        ]),
        Block::Text("Repeat the failure in virtual time:".to_owned()),
        Block::Command(failed.repeat.clone()),
        Block::Text("Smallest form of the script:".to_owned()),
        Block::Listing(failed.script.clone()),
    ];
    Section::new(format!("Script {}", failed.number), blocks)
}
