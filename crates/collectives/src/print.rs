//! A schedule as text: for each round and rank what is awaited, done and sent.
//!
//! `#2` is the number of a transfer among those of its pair. `a op= b` reduces `b` into `a` from the right; `a = b op c op d`
//! folds from the left and rounds once, and of many operands the middle ones are counted. For people; a program reads the
//! [`Schedule`] itself.

use core::fmt::Write;

use crate::collective::Collective;
use crate::schedule::{Local, Program, Schedule, Step, TransferId};

/// Maximum number of operands of a fold that are printed.
const OPERANDS_MAX: usize = 4;
const HEADINGS: [&str; 5] = ["round", "rank", "awaits", "then", "sends"];

/// Returns the whole schedule as a table, at most `rounds_max` rounds of it.
#[must_use]
pub fn table(schedule: &Schedule, rounds_max: u32) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    for round in 0..schedule.rounds().min(rounds_max) {
        for (rank, program) in schedule.programs.iter().enumerate() {
            for step in program.steps.iter().filter(|step| step.round == round) {
                rows.extend(lines(schedule, rank, step));
            }
        }
    }
    let mut text = heading(schedule);
    align(&rows, &mut text);
    if let Some(more) = schedule.rounds().checked_sub(rounds_max).filter(|&more| more > 0) {
        _ = writeln!(text, "... and {more} more rounds");
    }
    text
}

fn heading(schedule: &Schedule) -> String {
    let ranks = schedule.ranks();
    let scratch = schedule.programs.iter().map(|program| program.scratch).max().unwrap_or(0);
    let moved: usize = schedule.transfers.iter().map(|transfer| transfer.source.length).sum();
    if schedule.collective == Collective::Barrier {
        return format!(
            "{} by {}: {}\n{}, {} without data\n",
            schedule.collective,
            schedule.algorithm,
            counted(ranks, "rank"),
            counted(schedule.rounds() as usize, "round"),
            counted(schedule.transfers.len(), "signal"),
        );
    }
    let participants = match schedule.participants() - ranks {
        0 => counted(ranks, "rank"),
        units => format!("{} and {} behind them", counted(ranks, "rank"), counted(units, "unit")),
    };
    format!(
        "{} by {}: {}, {}\n{}, {} that move {}, scratch of at most {} per rank\n",
        schedule.collective,
        schedule.algorithm,
        participants,
        counted(schedule.elements, "element"),
        counted(schedule.rounds() as usize, "round"),
        counted(schedule.transfers.len(), "transfer"),
        counted(moved, "element"),
        counted(scratch, "element"),
    )
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Returns one step, as many lines as its longest column needs.
fn lines(schedule: &Schedule, rank: usize, step: &Step) -> Vec<[String; 5]> {
    let waits: Vec<_> = step.waits.iter().map(|&id| awaited(schedule, id)).collect();
    let work: Vec<_> = step.work.iter().map(|work| done(&schedule.programs[rank], work)).collect();
    let sends: Vec<_> = step.sends.iter().map(|&id| sent(schedule, id)).collect();
    let cell = |column: &[String], line: usize| column.get(line).cloned().unwrap_or_default();
    (0..waits.len().max(work.len()).max(sends.len()))
        .map(|line| {
            let name = |number: String| if line == 0 { number } else { String::new() };
            let (round, rank) = (name(step.round.to_string()), name(rank.to_string()));
            [round, rank, cell(&waits, line), cell(&work, line), cell(&sends, line)]
        })
        .collect()
}

fn awaited(schedule: &Schedule, id: TransferId) -> String {
    let transfer = schedule.transfer(id);
    format!("#{} from {}", transfer.number, transfer.from)
}

fn sent(schedule: &Schedule, id: TransferId) -> String {
    let transfer = schedule.transfer(id);
    let name = format!("#{} to {}", transfer.number, transfer.to);
    if transfer.source.length == 0 {
        return format!("{name}: signal");
    }
    format!("{name}: {} -> {}", transfer.source, transfer.target)
}

fn done(program: &Program, work: &Local) -> String {
    match work {
        Local::Copy { source, target } => format!("{target} = {source}"),
        Local::Reduce { source, target } => format!("{target} op= {source}"),
        Local::Fold { target, .. } => format!("{target} = {}", operands(program, work)),
    }
}

fn operands(program: &Program, work: &Local) -> String {
    let mut names: Vec<_> = program.sources(work).iter().map(ToString::to_string).collect();
    if names.len() > OPERANDS_MAX {
        let left_out = names.len() - 3;
        names.splice(2..names.len() - 1, [format!("({left_out} more)")]);
    }
    names.join(" op ")
}

fn align(rows: &[[String; 5]], text: &mut String) {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: [usize; 5] = core::array::from_fn(width);
    for row in rows {
        let cells: Vec<_> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
}
