//! What is under way, for those who wait at a terminal: a bar for the row that is being measured, a line above it for each that
//! is done. Elsewhere nothing is said until the end.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::report::RowReport;
use super::show;

const REDRAW: Duration = Duration::from_millis(200);

/// A bar on standard error, if that is a terminal.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    rows: usize,
}

impl Progress {
    /// For so many rows.
    pub(super) fn begin(rows: usize) -> Self {
        // Where nobody looks it draws nothing.
        let bar = ProgressBar::new(0);
        let template = "{spinner} {prefix} [{bar:20}] {msg} · {elapsed}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(REDRAW);
        Self { bar, rows }
    }

    /// The row at this place (from 0) begins; it has so many turns.
    pub(super) fn row(&self, place: usize, name: &str, turns: u64) {
        self.bar.set_prefix(format!("{} of {}: {name}", place + 1, self.rows));
        self.bar.set_length(turns);
        self.bar.set_position(0);
    }

    /// What happens now in that row.
    pub(super) fn turn(&self, done: u64, side: &'static str) {
        self.bar.set_position(done);
        self.bar.set_message(side);
    }

    /// A row is done.
    pub(super) fn done(&self, row: &RowReport) {
        self.bar.println(show::line(row));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
