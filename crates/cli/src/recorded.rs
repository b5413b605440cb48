//! Files that a run writes beside its report: time series as CSV, a trace for viewers, and cases for continuous integration.

use std::collections::BTreeMap;
use std::path::Path;

use rackloom_export::{junit, perfetto, series_csv};
use rackloom_jobs::report::{Report, Series};

use crate::arguments::RecordingOptions;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::reporting::{must_be_writable_at, print_to_stderr, settle};

/// Checks, before a run, that its files can be written.
pub(crate) fn must_be_writable(options: &RecordingOptions) -> Result<(), Failure> {
    options.files().try_for_each(|path| must_be_writable_at(path))
}

/// Writes the files that are requested. Returns the exit of the run as [`settle`] does.
pub(crate) fn write(report: &Report, options: &RecordingOptions, exit: Exit) -> Result<Exit, Failure> {
    settle(write_all(report, options), exit)
}

fn write_all(report: &Report, options: &RecordingOptions) -> Result<(), Failure> {
    if let Some(path) = &options.series {
        let mut text = String::new();
        let none = Series::default();
        series_csv::write(report.series.as_ref().unwrap_or(&none), &mut text).map_err(cannot_format)?;
        write_file(path, &text)?;
    }
    if let Some(path) = &options.perfetto {
        let mut text = String::new();
        let trace = perfetto::Trace { report, events_max: perfetto::EVENTS_MAX };
        let counts = perfetto::write(&trace, &mut text).map_err(cannot_format)?;
        if counts.left_out > 0 {
            print_to_stderr(&format!(
                "the trace has the first {} events; {} are left out",
                counts.written, counts.left_out
            ));
        }
        write_file(path, &text)?;
    }
    if let Some(path) = &options.junit {
        let rack = report.meta.as_ref().map_or("rack", |meta| meta.rack.as_str());
        write_cases(path, rack, &junit::cases_of(report, rack), &properties(report))?;
    }
    Ok(())
}

/// Writes cases as JUnit's XML.
pub(crate) fn write_cases(
    path: &Path,
    name: &str,
    cases: &[junit::Case],
    properties: &BTreeMap<String, String>,
) -> Result<(), Failure> {
    write_file(path, &junit::document(name, cases, properties))
}

fn properties(report: &Report) -> BTreeMap<String, String> {
    let command = report.meta.as_ref().map(|meta| ("command", meta.command.clone()));
    let values = [
        ("seed", report.seed.to_string()),
        ("clock", report.clock.clone()),
        ("version", report.manifest.version.clone()),
        ("commit", report.manifest.commit.clone()),
    ];
    values.into_iter().chain(command).map(|(name, value)| (name.to_owned(), value)).collect()
}

fn cannot_format(error: std::fmt::Error) -> Failure {
    Failure::could_not_start("cannot format a recording", error)
}

fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::could_not_start("cannot write this file", error).at_path(path))
}
