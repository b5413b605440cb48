//! Progress of many runs: how many are done, how many run at once, and the time that is left.
//!
//! It is a bar on standard error, on a terminal only, and appears after two seconds. A thread of its own draws it, so that the time left
//! counts down between the ends of runs. [`crate::progress`] has the bar of one run.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{terminal, time_limit};

/// Time after which the bar appears. Shorter work shows none.
const DELAY: Duration = Duration::from_secs(2);
const REDRAW: Duration = Duration::from_millis(250);
const REDRAWS_PER_S: u8 = 4;

/// Count of finished runs. The bar disappears on drop.
#[derive(Debug)]
pub(crate) struct Tally {
    counts: Arc<Mutex<Counts>>,
    bar: Arc<Mutex<Option<ProgressBar>>>,
    /// Dropped before the thread is joined: the closed channel ends the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Numbers that the bar shows.
#[derive(Debug)]
struct Counts {
    begun: Instant,
    done: u64,
    total: u64,
    at_once: usize,
    /// Work that is done, and all work, in units of the caller.
    work: [u64; 2],
    /// Time that was left at a moment.
    left: Option<(Instant, Duration)>,
    /// True if that time follows from the runs that are done.
    is_measured: bool,
}

impl Tally {
    /// Begins to count `total` runs of equal length, of which `at_once` run in parallel.
    pub(crate) fn begin(what: &'static str, total: u64, at_once: usize) -> Self {
        Self::weighted(what, total, at_once, total)
    }

    /// Begins to count `total` runs that have this work together, in any unit.
    pub(crate) fn weighted(what: &'static str, total: u64, at_once: usize, work: u64) -> Self {
        let counts = Counts {
            begun: Instant::now(),
            done: 0,
            total,
            at_once,
            work: [0, work],
            left: None,
            is_measured: true,
        };
        let (counts, bar) = (Arc::new(Mutex::new(counts)), Arc::new(Mutex::new(None)));
        if !io::stderr().is_terminal() {
            return Self { counts, bar, end: None, thread: None };
        }
        let (end, ended) = channel::<()>();
        let (shared, drawn) = (Arc::clone(&counts), Arc::clone(&bar));
        let draw = move || {
            let mut wait = DELAY;
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let mut drawn = locked(&drawn);
                let counts = locked(&shared);
                let bar = drawn.get_or_insert_with(|| new_bar(what, counts.total));
                bar.set_position(counts.done);
                bar.set_message(counts.message());
                bar.tick();
                wait = REDRAW;
            }
        };
        // If the thread cannot be started, the work has no bar.
        let thread = std::thread::Builder::new().name("tally".to_owned()).spawn(draw).ok();
        Self { counts, bar, end: Some(end), thread }
    }

    /// Counts a finished run, one of runs of equal length.
    pub(crate) fn add(&self) {
        self.add_work(1);
    }

    /// Counts a finished run with its work.
    pub(crate) fn add_work(&self, work: u64) {
        let mut counts = locked(&self.counts);
        counts.done += 1;
        counts.work[0] += work;
        let left = time_limit::time_left(counts.begun.elapsed(), counts.work[0], counts.work[1]);
        counts.left = left.map(|left| (Instant::now(), left));
        counts.is_measured = true;
    }

    /// Sets the time that is left, as estimated otherwise than from the runs that are done.
    pub(crate) fn expect(&self, left: Duration) {
        let mut counts = locked(&self.counts);
        counts.left = Some((Instant::now(), left));
        counts.is_measured = false;
    }

    /// Prints something above the bar.
    pub(crate) fn above<T>(&self, print: impl FnOnce() -> T) -> T {
        match &*locked(&self.bar) {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Removes the bar before other output.
    pub(crate) fn hide(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let Some(bar) = locked(&self.bar).take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.hide();
    }
}

impl Counts {
    /// Returns the time that is left at `now`. It counts down after each run, but not below what the time since the last end of a run suggests.
    fn left(&self, now: Instant) -> Option<Duration> {
        let (at, left) = self.left?;
        let since = now.saturating_duration_since(at);
        let counted_down = left.saturating_sub(since);
        if !self.is_measured || self.done == 0 || self.done >= self.total {
            return Some(counted_down);
        }
        let [done, all] = self.work;
        // As if a run of mean work ended now.
        let one = all.checked_div(self.total).unwrap_or(0);
        let elapsed = now.saturating_duration_since(self.begun);
        let of_rest =
            time_limit::time_left(elapsed, done.saturating_add(one).min(all), all).unwrap_or_default();
        // A run that takes longer than the mean takes as much longer again, at least.
        let mean = at.saturating_duration_since(self.begun) / u32::try_from(self.done).unwrap_or(u32::MAX);
        Some(counted_down.max(of_rest).max(since.saturating_sub(mean)))
    }

    fn message(&self) -> String {
        let left = self.left(Instant::now());
        format!("{} of {} · {} at once{}", self.done, self.total, self.at_once, time_limit::shown_left(left))
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn new_bar(what: &'static str, total: u64) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_S);
    let bar = ProgressBar::with_draw_target(Some(total), target);
    let is_narrow = terminal::is_too_narrow_for_bars();
    let template = if is_narrow { "{wide_msg}" } else { "{prefix} [{bar:24}] {msg}" };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.with_prefix(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(done: u64, work: [u64; 2], left: Option<Duration>) -> String {
        let left = left.map(|left| (Instant::now(), left));
        let begun = Instant::now();
        Counts { begun, done, total: 8, at_once: 2, work, left, is_measured: true }.message()
    }

    #[test]
    fn a_tally_says_how_many_run_at_once_and_what_is_left() {
        assert_eq!(message(0, [0, 8], None), "0 of 8 · 2 at once");
        let message = message(4, [4, 8], Some(Duration::from_secs(7000)));
        assert_eq!(message, "4 of 8 · 2 at once · about 117 min left");
    }

    /// A first point takes a second, and the others are longer.
    #[test]
    fn a_long_run_raises_the_time_left() {
        let (begun, seconds) = (Instant::now(), Duration::from_secs);
        let counts = |done: u64, at: u64| {
            let left = time_limit::time_left(seconds(at), done, 15).map(|left| (begun + seconds(at), left));
            Counts { begun, done, total: 15, at_once: 1, work: [done, 15], left, is_measured: true }
        };
        assert_eq!(counts(1, 1).left(begun + seconds(1)), Some(seconds(14)));
        assert_eq!(counts(1, 1).left(begun + seconds(2)), Some(seconds(13)), "it counts down");
        let left = counts(1, 1).left(begun + seconds(40)).map(|left| left.as_secs_f64().round());
        assert_eq!(left, Some(260.0), "two runs would have taken 40 s, and 13 are left");
        let last = counts(14, 28).left(begun + seconds(60));
        assert_eq!(last, Some(seconds(30)), "the last run has taken 32 s in place of 2");
        let expected = Counts { is_measured: false, ..counts(1, 1) };
        assert_eq!(expected.left(begun + seconds(40)), Some(Duration::ZERO), "a model knows better");
    }

    #[test]
    fn the_time_left_follows_from_the_work_that_is_done() {
        let tally = Tally::weighted("runs", 2, 1, 100);
        locked(&tally.counts).begun = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        tally.add_work(10);
        let left = locked(&tally.counts).left.unwrap().1.as_secs_f64();
        assert!((90.0..91.0).contains(&left), "ten of a hundred parts took ten seconds: {left}");
    }
}
