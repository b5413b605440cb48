//! Progress bar of a run, on a terminal only, after two seconds.
//!
//! A thread of its own draws the bar on standard error, so that the engines do no work for it and standard
//! output is unchanged. It shows the progress of the slowest node in the pieces that the job counts (runs of
//! a collective over all sizes, measurements, phases), the number of finished nodes, and the time that is left.
//! Seats report a few times per second with a poll of their control socket, so no frame waits for it.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rackloom_jobs::Portion;
use rackloom_runtime::outcome::progress::RunProgress;

use crate::{terminal, time_limit};

/// Time after which the bar appears. Shorter runs show none.
const DELAY: Duration = Duration::from_secs(2);
const REDRAW: Duration = Duration::from_millis(100);
const REDRAWS_PER_S: u8 = 10;

/// Progress of the run, shared with the thread that draws.
#[derive(Debug, Default)]
pub(crate) struct SharedProgress(Mutex<RunProgress>);

/// Estimate of the time that is left. It begins with the first progress that a look shows, because nodes connect before that.
#[derive(Debug, Default)]
struct Rest {
    /// Time of the first look at a job that runs, with the thousandths that were completed then.
    first: Option<(Instant, u64)>,
    /// Thousandths at the last change, and the end of the run as expected then.
    last: Option<(u64, Instant)>,
}

/// Progress bar. It disappears on drop.
#[derive(Debug)]
pub(crate) struct Bar {
    progress: Arc<SharedProgress>,
    /// Dropped before the thread is joined: the closed channel ends the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SharedProgress {
    /// Sets the progress.
    pub(crate) fn set(&self, progress: RunProgress) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }

    fn get(&self) -> RunProgress {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bar {
    /// Starts the thread. Call it once all processes are started: a process with several threads gets no
    /// namespace of its own.
    pub(crate) fn begin(job: &str, nodes: usize) -> Self {
        let progress = Arc::new(SharedProgress::default());
        if !io::stderr().is_terminal() {
            return Self { progress, end: None, thread: None };
        }
        let (end, ended) = channel::<()>();
        let (shared, job) = (Arc::clone(&progress), job.to_owned());
        let draw = move || {
            let begun = Instant::now();
            let (mut bar, mut rest) = (None, Rest::default());
            while ended.recv_timeout(REDRAW) == Err(RecvTimeoutError::Timeout) {
                let (now, progress) = (Instant::now(), shared.get());
                let left = rest.left(now, progress);
                if now.duration_since(begun) >= DELAY {
                    let bar = bar.get_or_insert_with(|| new_bar(&job));
                    show(bar, &message(progress, &job, nodes, left), thousandths(progress, nodes));
                }
            }
            if let Some(bar) = bar {
                bar.finish_and_clear();
            }
        };
        // If the thread cannot be started, the run has no bar.
        let thread = std::thread::Builder::new().name("progress".to_owned()).spawn(draw).ok();
        Self { progress, end: Some(end), thread }
    }

    /// Returns a bar that is not shown, for one of several runs at once.
    pub(crate) fn hidden() -> Self {
        Self { progress: Arc::default(), end: None, thread: None }
    }

    /// Sets the progress that the bar shows. `look` is called if it is shown.
    pub(crate) fn update(&self, look: impl FnOnce() -> RunProgress) {
        if self.thread.is_some() {
            self.progress.set(look());
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn new_bar(job: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_S));
    let is_narrow = terminal::is_too_narrow_for_bars();
    let template = if is_narrow { "{wide_msg}" } else { "{spinner} {prefix} [{bar:24}] {msg} · {elapsed}" };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.with_prefix(job.to_owned()).with_elapsed(DELAY)
}

fn show(bar: &ProgressBar, message: &str, [done, total]: [u64; 2]) {
    bar.set_length(total);
    bar.set_position(done);
    bar.set_message(message.to_owned());
    bar.tick();
}

/// Returns the completed thousandths of a piece, or of a node, and all of them.
fn thousandths(progress: RunProgress, nodes: usize) -> [u64; 2] {
    progress.portion.unwrap_or_else(|| Portion::new(progress.finished as u64, nodes as u64)).thousandths()
}

fn message(progress: RunProgress, job: &str, nodes: usize, left: Option<Duration>) -> String {
    let mut message = String::new();
    if let Some(portion) = progress.portion {
        let [done, total] = portion.thousandths();
        let percent = (done * 100).checked_div(total).unwrap_or(0);
        message = format!("{} of {} {} · {percent}% · ", portion.done, portion.total, pieces(job));
    }
    format!("{message}{} of {nodes} nodes finished{}", progress.finished, time_limit::shown_left(left))
}

impl Rest {
    /// Returns the time that is left at `now`. Between two changes of the progress it decreases with the time.
    fn left(&mut self, now: Instant, progress: RunProgress) -> Option<Duration> {
        let [done, total] = progress.portion?.thousandths();
        let (begun, before) = *self.first.get_or_insert((now, done));
        if self.last.is_none_or(|(at, _)| at != done) {
            let elapsed = now.duration_since(begun);
            let left =
                time_limit::time_left(elapsed, done.saturating_sub(before), total.saturating_sub(before))?;
            self.last = Some((done, now + left));
        }
        self.last.map(|(_, end)| end.saturating_duration_since(now))
    }
}

/// Returns the name of the pieces that a job counts ([`rackloom_jobs::Job::portion`]).
fn pieces(job: &str) -> &'static str {
    match job {
        "collective" => "runs",
        "litmus" => "phases",
        _ => "measurements",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(done: u64, total: u64) -> RunProgress {
        RunProgress { finished: 1, portion: Some(Portion::new(done, total)) }
    }

    #[test]
    fn the_time_left_follows_from_the_progress_since_the_first_look_and_counts_down() {
        let (mut rest, begun) = (Rest::default(), Instant::now());
        let seconds = Duration::from_secs;
        assert_eq!(rest.left(begun, at(2, 10)), None, "nothing was done since the first look");
        assert_eq!(
            rest.left(begun + seconds(4), at(4, 10)),
            Some(seconds(12)),
            "two pieces took 4 s, six are left"
        );
        assert_eq!(rest.left(begun + seconds(9), at(4, 10)), Some(seconds(7)));
        assert_eq!(rest.left(begun + seconds(60), at(4, 10)), Some(Duration::ZERO));
        assert_eq!(
            rest.left(begun + seconds(66), at(8, 10)),
            Some(seconds(22)),
            "six pieces took 66 s, two are left"
        );
    }

    #[test]
    fn a_message_has_pieces_percent_nodes_and_the_time_left() {
        let progress = RunProgress { finished: 3, portion: Some(Portion::new(0, 1).with_parts(1, 4)) };
        assert_eq!(
            message(progress, "collective", 8, Some(Duration::from_secs(90))),
            "0 of 1 runs · 25% · 3 of 8 nodes finished · about 90 s left"
        );
        assert_eq!(thousandths(progress, 8), [250, 1000]);
        let without = RunProgress { finished: 3, portion: None };
        assert_eq!(message(without, "litmus", 8, None), "3 of 8 nodes finished");
        assert_eq!(thousandths(without, 8), [3000, 8000]);
    }
}
