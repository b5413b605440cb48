//! `rackloom calibrate`: how far we are from what this machine can do.
//!
//! Each row takes turns between a raw loop (`rackloom_calibrate`) and our own run of the same work, and is judged by the
//! ratio. Reading order: `row` (what a row is) · `rows` (all of them) · our own runs: `fabric` (through the public API),
//! `direct` (by mapped memory), `racks` and `idle` (through the command itself, `program`), `simulated` · the raw side: `raw` (each
//! take a command of its own), `cable` (that of the packet wire) · `measure` (turns, and what hinders) · `progress` (for those who wait) · `report` and `show`
//! (for machines and for people).
//!
//! `gpu` is apart: it finds the sizes at which bytes take another way on a device, and keeps them.
//!
//! What a figure means and which of our runs stands for the product is said in `docs/measuring.md`.

mod bench;
mod cable;
mod core;
mod direct;
mod fabric;
mod facts;
mod gpu;
mod idle;
mod load;
mod measure;
mod obstacle;
mod program;
mod progress;
mod racks;
mod raw;
mod report;
mod row;
mod rows;
mod show;
mod simulated;
mod takes;
mod verdict;
mod whole;

use std::time::Duration;

use rackloom_calibrate::{Alternations, Machine};

use self::bench::Bench;
use self::progress::Progress;
pub(crate) use self::raw::take as take_loop;
use self::report::{Circumstances, Overall, Report, RowReport};
use self::row::Row;
use crate::arguments::{CalibrateArguments, Output};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::reporting;

/// Alternations of each row.
const ROUNDS: u32 = 5;
/// A row that takes longer gets fewer, so that the whole takes two minutes.
const ROW_TIME_LIMIT: Duration = Duration::from_secs(6);
/// The same where only the machinery is tried.
const ROUNDS_QUICK: u32 = 2;

/// Measure, and say what came of it.
pub(crate) fn run(arguments: &CalibrateArguments) -> Result<Exit, Failure> {
    if let Some(device) = &arguments.gpu {
        return gpu::run(device, arguments.json);
    }
    let rows = chosen(rows::all(), &arguments.only)?;
    let bench = Bench::new(arguments.quick)
        .map_err(|error| Failure::could_not_start("cannot prepare the measurement", error))?;
    let turns = turns(arguments);
    let load_before = rackloom_calibrate::machine::load();
    let progress = Progress::begin(rows.len());
    let facts = if arguments.only.is_empty() { facts::take(&bench, turns.rounds) } else { Vec::new() };
    let mut measured = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        // Both sides once more than counts, and the preparation.
        progress.row(place, row.name, 2 * u64::from(turns.rounds) + 3);
        let row = RowReport::new(row, &measure::measure(row, &bench, turns, &progress));
        progress.done(&row);
        measured.push(row);
    }
    drop(progress);
    let circumstances =
        Circumstances { quick: arguments.quick, rounds: turns.rounds, interrupted: bench.is_interrupted() };
    let report = Report::new(Machine::here(), load_before, circumstances, facts, measured);
    say(&report, arguments.json)?;
    Ok(match report.verdict {
        _ if report.circumstances.interrupted => Exit::Interrupted,
        Overall::Pass => Exit::Pass,
        Overall::Fail => Exit::Fail,
        Overall::NoVerdict => Exit::NoVerdict,
    })
}

/// How often the sides take turns: as often as was asked for, else as often as a row's time allows.
fn turns(arguments: &CalibrateArguments) -> Alternations {
    match (arguments.rounds, arguments.quick) {
        (Some(rounds), _) => Alternations::exactly(rounds),
        (None, true) => Alternations::exactly(ROUNDS_QUICK),
        (None, false) => Alternations { rounds: ROUNDS, time_limit: Some(ROW_TIME_LIMIT) },
    }
}

/// The rows that were asked for, in their own order; all if none was.
fn chosen(rows: Vec<Row>, only: &[String]) -> Result<Vec<Row>, Failure> {
    if let Some(unknown) = only.iter().find(|name| rows.iter().all(|row| row.name != name.as_str())) {
        let names: Vec<_> = rows.iter().map(|row| row.name).collect();
        return Err(Failure::bad_input(format!("there is no row {unknown}"))
            .at("--only")
            .hint(format!("the rows are {}", names.join(", "))));
    }
    let is_asked = |row: &Row| only.is_empty() || only.iter().any(|name| name == row.name);
    Ok(rows.into_iter().filter(is_asked).collect())
}

fn say(report: &Report, json: bool) -> Result<(), Failure> {
    let text = if json {
        serde_json::to_string_pretty(report)
            .map_err(|error| Failure::could_not_start("cannot write the JSON report", error))?
    } else {
        show::table(report)
    };
    reporting::say(&Output { json: None }, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_names_of_their_own_and_are_chosen_by_them() {
        let names: Vec<_> = rows::all().iter().map(|row| row.name).collect();
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
        let chosen = chosen(rows::all(), &["put-4096".to_owned()]).unwrap();
        assert_eq!(chosen.iter().map(|row| row.name).collect::<Vec<_>>(), ["put-4096"]);
    }

    #[test]
    fn an_unknown_row_is_bad_input_that_names_the_known_ones() {
        let failure = chosen(rows::all(), &["put".to_owned()]).err().expect("there is no such row");
        assert_eq!(failure.exit, Exit::BadInput);
        assert!(failure.to_string().contains("put-4096"), "{failure}");
    }
}
