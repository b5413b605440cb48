//! Files that a run writes: its report and its page, time series as CSV, a trace for viewers, and cases for continuous integration.

use std::collections::BTreeMap;
use std::path::Path;

use rackloom_control::recorder::Recording;
use rackloom_export::{junit, perfetto, series_csv};
use rackloom_jobs::report::{Report, Series};

use crate::arguments::{Output, PageOutput, RecordingOptions};
use crate::exit::Exit;
use crate::failure::{Failure, cannot_write};
use crate::files::Files;
use crate::reporting::{self, must_be_writable_at, print_to_stderr, settle};

/// Outputs of a run beside the terminal: its report, its page, and its recordings.
pub(crate) struct Outputs<'a> {
    pub(crate) report: &'a Output,
    pub(crate) page: &'a PageOutput,
    pub(crate) recording: &'a RecordingOptions,
}

impl Outputs<'_> {
    /// Returns what the engine records.
    pub(crate) fn recording(&self) -> Recording {
        self.recording.recording(self.page.html.is_some())
    }

    /// Adds the files that are written.
    pub(crate) fn files(&self, files: Files) -> Files {
        let RecordingOptions { series, series_interval: _, perfetto, junit } = self.recording;
        files
            .writes("--json", &self.report.json)
            .writes("--html", &self.page.html)
            .writes("--series", series)
            .writes("--perfetto", perfetto)
            .writes("--junit", junit)
    }

    /// Refuses an interval of time series if no output has them.
    pub(crate) fn must_have_series(&self) -> Result<(), Failure> {
        let RecordingOptions { series, series_interval, perfetto, junit: _ } = self.recording;
        let is_shown =
            [&self.report.json, &self.page.html, series, perfetto].into_iter().any(Option::is_some);
        if series_interval.is_none() || is_shown {
            return Ok(());
        }
        let hint = "leave it out, or add --series, --perfetto, --html or --json";
        Err(Failure::bad_input("--series-interval has no effect: no output has time series").hint(hint))
    }

    /// Checks, before a run, that its files can be written.
    pub(crate) fn must_be_writable(&self) -> Result<(), Failure> {
        reporting::must_be_writable(self.report)?;
        reporting::page_must_be_writable(self.page)?;
        self.recording.files().try_for_each(|path| must_be_writable_at(path))
    }

    /// Prints the report and writes all outputs. Returns the exit of the run as [`settle`] does.
    pub(crate) fn deliver(&self, report: &Report, exit: Exit) -> Result<Exit, Failure> {
        let exit = reporting::deliver(report, self.report, self.page, exit)?;
        settle(write_all(report, self.recording), exit)
    }
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

/// Writes cases that ran at the same time as JUnit's XML, with the duration of all of them together.
pub(crate) fn write_parallel_cases(
    path: &Path,
    name: &str,
    cases: &[junit::Case],
    elapsed_s: f64,
) -> Result<(), Failure> {
    write_file(path, &junit::document_of_parallel(name, cases, &BTreeMap::new(), elapsed_s))
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
    std::fs::write(path, text).map_err(|error| cannot_write("this file", &error, path))
}
