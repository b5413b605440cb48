//! `rackloom-bench`: rackloom's speed beside what this machine can do.
//!
//! Each row alternates between a raw loop (`rackloom_calibrate`) and a run of rackloom with the same work, and is judged by the
//! ratio. Reading order: `row` (one row) · `rows` (all of them) · runs of rackloom: `fabric` (through the public API),
//! `direct` (by mapped memory), `racks`, `idle` and `whole` (through the command, `program`), `simulated` · the raw side: `raw` (each
//! take in a process of its own), `cable` (that of the packet wire) · `measure` (alternations, and obstacles) · `progress` · `report`
//! and `show` (for machines and for people).
//!
//! `docs/measuring.md` defines each figure. The tool is no part of the command, and of no default build.

#![deny(clippy::print_stdout, clippy::print_stderr)] // They panic where the reader has gone.

mod bench;
mod facts;
mod measure;
mod measure_error;
mod output;
mod row;
mod rows;
mod runs;
mod takes;
mod verdict;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use rackloom_calibrate::{Alternations, Machine};

use self::bench::Bench;
use self::output::print::print_line;
use self::output::progress::Progress;
use self::output::report::{Overall, Report, RowReport, RunConditions};
use self::row::Row;
use self::runs::raw_loop::LoopArguments;
use rackloom_runtime::outcome::exit::Exit;
use rackloom_runtime::outcome::failure::Failure;

/// Alternations of each row.
const ROUNDS: u32 = 5;
/// A row that takes longer gets fewer, so that the whole takes two minutes.
const ROW_TIME_LIMIT: Duration = Duration::from_secs(6);
/// Alternations of each row in a quick run, which only tries the machinery.
const ROUNDS_QUICK: u32 = 2;

/// Compare rackloom's speed with what this machine can do: each row alternates between a raw loop and a run of rackloom.
#[derive(Debug, Parser)]
#[command(name = "rackloom-bench", version, max_term_width = 100, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    take: Option<Take>,
    /// Measure only these rows, by their names in the table
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<String>,
    /// Number of alternations between raw loop and rackloom run; 5 if absent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Make each measurement very short, to test that the tool works; the figures mean nothing
    #[arg(long)]
    quick: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Print the rows as the Markdown table of current figures
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Take {
    /// Run one measurement of a raw loop; started by the tool itself
    #[command(hide = true)]
    Loop(LoopArguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ended = match arguments.take {
        Some(Take::Loop(arguments)) => runs::raw::take(arguments),
        None => run(&arguments),
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(failure) => {
            let _ = io::stderr().write_all(format!("{}\n", failure.with_heading()).as_bytes());
            failure.exit.into()
        }
    }
}

/// Measures the rows, and prints the report.
fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let rows = chosen(rows::all(), &arguments.only)?;
    let bench = Bench::new(arguments.quick)
        .map_err(|error| Failure::could_not_start("cannot prepare the measurement", error))?;
    let alternations = alternations(arguments);
    let load_before = rackloom_calibrate::machine::load();
    let progress = Progress::begin(rows.len());
    let facts = if arguments.only.is_empty() { facts::take(&bench, alternations.rounds) } else { Vec::new() };
    let mut measured = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        // Both sides once more than counts, and the preparation.
        progress.row(index, row.name, 2 * u64::from(alternations.rounds) + 3);
        let row = RowReport::new(row, &measure::measure(row, &bench, alternations, &progress));
        progress.done(&row);
        measured.push(row);
    }
    drop(progress);
    let conditions = RunConditions {
        quick: arguments.quick,
        rounds: alternations.rounds,
        interrupted: bench.is_interrupted(),
    };
    let report = Report::new(Machine::here(), load_before, conditions, facts, measured);
    print(&report, arguments)?;
    Ok(match report.verdict {
        _ if report.conditions.interrupted => Exit::Interrupted,
        Overall::Pass => Exit::Pass,
        Overall::Fail => Exit::Fail,
        Overall::NoVerdict => Exit::NoVerdict,
    })
}

/// Returns the number of alternations: the requested number, or as many as the time of a row allows.
fn alternations(arguments: &Arguments) -> Alternations {
    match (arguments.rounds, arguments.quick) {
        (Some(rounds), _) => Alternations::exactly(rounds),
        (None, true) => Alternations::exactly(ROUNDS_QUICK),
        (None, false) => Alternations { rounds: ROUNDS, time_limit: Some(ROW_TIME_LIMIT) },
    }
}

/// Returns the requested rows, in their own order; all if none was.
fn chosen(rows: Vec<Row>, only: &[String]) -> Result<Vec<Row>, Failure> {
    if let Some(unknown) = only.iter().find(|name| rows.iter().all(|row| row.name != name.as_str())) {
        let names: Vec<_> = rows.iter().map(|row| row.name).collect();
        return Err(Failure::bad_input(format!("there is no row {unknown}"))
            .at("--only")
            .hint(format!("the rows are {}", names.join(", "))));
    }
    let is_requested = |row: &Row| only.is_empty() || only.iter().any(|name| name == row.name);
    Ok(rows.into_iter().filter(is_requested).collect())
}

fn print(report: &Report, arguments: &Arguments) -> Result<(), Failure> {
    let text = if arguments.json {
        serde_json::to_string_pretty(report)
            .map_err(|error| Failure::could_not_start("cannot write the JSON report", error))?
    } else if arguments.markdown {
        output::show::markdown(report)
    } else {
        output::show::table(report)
    };
    print_line(&text)
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

    /// Returns the cells of the rows of the table below this heading in the document of this tool.
    fn documented(heading: &str) -> Vec<Vec<&'static str>> {
        let page = include_str!("../../../docs/measuring.md");
        let (_, below) = page.split_once(heading).expect("the document has the table");
        let rows = below.lines().skip(1).skip_while(|line| line.starts_with("|---"));
        let rows = rows.take_while(|line| line.starts_with('|'));
        rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
    }

    #[test]
    fn the_documented_figures_have_the_rows_order_and_units_of_this_tool() {
        let documented = documented(crate::output::show::MARKDOWN_HEADING);
        let rows = rows::all();
        let names: Vec<_> = documented.iter().map(|cells| cells[0].trim_matches('`')).collect();
        assert_eq!(names, rows.iter().map(|row| row.name).collect::<Vec<_>>());
        for (row, cells) in rows.iter().zip(&documented) {
            assert_eq!(
                cells.len(),
                crate::output::show::MARKDOWN_HEADING.matches('|').count() - 1,
                "{cells:?}"
            );
            for figure in &cells[1..3] {
                let unit = figure.split_once(' ').map(|(_, unit)| unit);
                assert!(unit.is_none_or(|unit| row.unit.symbols().contains(&unit)), "{}: {figure}", row.name);
                assert!(unit.is_some() || *figure == "-", "{}: {figure} has no unit", row.name);
            }
            assert!(!row.raw.is_empty() || cells[1] == "-", "{} has no raw loop", row.name);
        }
    }

    #[test]
    fn the_document_defines_every_row_once() {
        let documented = documented("| row | rackloom | raw loop | floor | good |");
        let cells = documented.iter().flat_map(|cells| cells[0].split(", "));
        let mut names: Vec<_> = cells.map(|cell| cell.trim_matches('`')).collect();
        let mut rows: Vec<_> = rows::all().iter().map(|row| row.name).collect();
        names.sort_unstable();
        rows.sort_unstable();
        assert_eq!(names, rows);
    }

    #[test]
    fn an_unknown_row_is_bad_input_that_names_the_known_ones() {
        let failure = chosen(rows::all(), &["put".to_owned()]).err().expect("there is no such row");
        assert_eq!(failure.exit, Exit::BadInput);
        assert!(failure.to_string().contains("put-4096"), "{failure}");
    }
}
