//! Progress of many runs: how many are done, how many run at once, and the time that is left.
//!
//! It is a bar on standard error, on a terminal only. [`crate::progress`] has the bar of one run.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::time_limit;

const REDRAWS_PER_S: u8 = 4;

/// Count of finished runs. The bar disappears on drop.
#[derive(Debug)]
pub(crate) struct Tally {
    bar: Option<ProgressBar>,
    begun: Instant,
    done: AtomicU64,
    total: u64,
    at_once: usize,
}

impl Tally {
    /// Begins to count `total` runs, of which `at_once` run in parallel.
    pub(crate) fn begin(what: &'static str, total: u64, at_once: usize) -> Self {
        let bar = io::stderr().is_terminal().then(|| new_bar(what, total));
        Self { bar, begun: Instant::now(), done: AtomicU64::new(0), total, at_once }
    }

    /// Counts a finished run.
    pub(crate) fn add(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(bar) = &self.bar {
            bar.set_position(done);
            bar.set_message(self.message(done));
        }
    }

    /// Prints something above the bar.
    pub(crate) fn above<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Removes the bar before other output.
    pub(crate) fn hide(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn message(&self, done: u64) -> String {
        let left = time_limit::time_left(self.begun.elapsed(), done, self.total);
        let left = left.map_or_else(String::new, |left| format!(" · about {} left", time_limit::shown(left)));
        format!("{done} of {} · {} at once{left}", self.total, self.at_once)
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.hide();
    }
}

fn new_bar(what: &'static str, total: u64) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_S);
    let bar = ProgressBar::with_draw_target(Some(total), target);
    if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:24}] {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.with_prefix(what)
}

/// Number of pieces of work that run at once unless an option says otherwise: one per processor of this machine.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_says_how_many_run_at_once_and_what_is_left() {
        let tally = Tally { bar: None, begun: Instant::now(), done: AtomicU64::new(0), total: 8, at_once: 2 };
        let message = tally.message(4);
        assert!(
            message.starts_with("4 of 8 · 2 at once · about ") && message.ends_with(" left"),
            "{message}"
        );
    }
}
