//! Progress of the measurement on a terminal: a bar for the row that is measured, and a line for each
//! finished row. Without a terminal nothing is printed until the end.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::report::RowReport;
use crate::output::show;

const REDRAW: Duration = Duration::from_millis(200);

/// Progress bar on standard error, if that is a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    rows: usize,
}

impl Progress {
    /// Starts a bar for this number of rows.
    pub(crate) fn begin(rows: usize) -> Self {
        // Without a terminal it draws nothing.
        let bar = ProgressBar::new(0);
        let template = "{spinner} {prefix} [{bar:20}] {msg} · {elapsed}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(REDRAW);
        Self { bar, rows }
    }

    /// Starts a row. `index` counts from 0; `takes` is its number of takes.
    pub(crate) fn row(&self, index: usize, name: &str, takes: u64) {
        self.bar.set_prefix(format!("{} of {}: {name}", index + 1, self.rows));
        self.bar.set_length(takes);
        self.bar.set_position(0);
    }

    /// Shows the take that begins now.
    pub(crate) fn take(&self, done: u64, side: &'static str) {
        self.bar.set_position(done);
        self.bar.set_message(side);
    }

    /// Shows the line of a finished row.
    pub(crate) fn done(&self, row: &RowReport) {
        self.bar.println(show::line(row));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
