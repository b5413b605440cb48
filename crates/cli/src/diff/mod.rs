//! `rackloom diff`: what changed between two runs, or between two sides of repeated runs.

mod show;

use std::path::PathBuf;

use rackloom_compare::{Limits, Outcome, Thresholds, compare};
use rackloom_jobs::report::Report;

use crate::arguments::DiffArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::files::Files;
use crate::{report_file, reporting};

/// Compares reports, and prints and writes the result.
pub(crate) fn run(arguments: &DiffArguments) -> Result<Exit, Failure> {
    let (before, after) = arguments.sides();
    let files = Files::default().reads("a report", before.iter().chain(&after).copied());
    files.writes("--json", &arguments.output.json).must_differ()?;
    reporting::must_be_writable(&arguments.output)?;
    let thresholds = Thresholds::parse(arguments.fail_over.iter().map(String::as_str)).map_err(|error| {
        let hint = "`rackloom diff --help` says what --fail-over takes";
        Failure::bad_input(format!("--fail-over: {error}")).hint(hint)
    })?;
    let (before, after) = (read(&before)?, read(&after)?);
    let comparison = compare(&before, &after, &Limits { thresholds, rows_max: arguments.rows });
    reporting::print_text(&arguments.output, &show::comparison(&comparison))?;
    reporting::write_json(&arguments.output, &comparison)?;
    Ok(match comparison.outcome {
        _ if arguments.fail_over.is_empty() => Exit::Pass,
        Outcome::Within => Exit::Pass,
        Outcome::Over => Exit::Fail,
        Outcome::CouldNotTell => Exit::NoVerdict,
    })
}

fn read(files: &[&PathBuf]) -> Result<Vec<Report>, Failure> {
    files.iter().map(|file| report_file::read(file)).collect()
}
