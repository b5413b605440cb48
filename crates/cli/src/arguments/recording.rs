//! Options of what a run records beside its report: time series, and single operations.

use std::path::PathBuf;

use clap::Args;
use rackloom_control::recorder::Recording;

use super::headings::OUTPUT;
use super::output::{NAME_A_FILE, file_beside};

/// Options of recordings.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RecordingOptions {
    /// Record what links and nodes do over time, and write it as CSV to this file. The JSON report contains it as well
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, value_parser = file_beside(NAME_A_FILE))]
    pub(crate) series: Option<PathBuf>,
    /// First length of an interval of time series. It doubles whenever a run has too many intervals. By default 1us in virtual time and 1ms in processes
    #[arg(long, value_name = "TIME", help_heading = OUTPUT, value_parser = interval)]
    pub(crate) series_interval: Option<u64>,
    /// Record operations, phases, events and time series, and write them to this file as a trace for Perfetto or Chrome
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, value_parser = file_beside(NAME_A_FILE))]
    pub(crate) perfetto: Option<PathBuf>,
    /// Write the verdict, expectations and oracles as cases in JUnit's XML to this file, for continuous integration
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, value_parser = file_beside(NAME_A_FILE))]
    pub(crate) junit: Option<PathBuf>,
}

impl RecordingOptions {
    /// Returns what the engine records. `shows_series` is true if another output shows time series.
    pub(crate) fn recording(&self, shows_series: bool) -> Recording {
        let operations = self.perfetto.is_some();
        let series = shows_series || self.series.is_some() || self.series_interval.is_some() || operations;
        Recording { series, interval_ns: self.series_interval, operations }
    }

    /// Returns the files that are written.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.series.iter().chain(&self.perfetto).chain(&self.junit)
    }
}

/// Least time between two looks at a rack, in nanoseconds. Each look is work for every member.
const LOOK_NS_MIN: u64 = 10_000_000;

/// Parses the time between two looks at a rack.
pub(crate) fn look_interval(text: &str) -> Result<u64, String> {
    match rackloom_plan::units::time_ns(text) {
        Some(time_ns) if time_ns >= LOOK_NS_MIN => Ok(time_ns),
        Some(_) => {
            Err("shorter than 10 ms, the least time between two looks; hint: write 10ms or more".to_owned())
        }
        None => Err("no interval; hint: write a number and ms or s, such as 500ms".to_owned()),
    }
}

/// Parses a time above zero.
pub(crate) fn interval(text: &str) -> Result<u64, String> {
    match rackloom_plan::units::time_ns(text) {
        Some(time_ns) if time_ns > 0 => Ok(time_ns),
        _ => Err("no interval; hint: write a number above 0 and ns, us, ms or s, such as 10us".to_owned()),
    }
}
