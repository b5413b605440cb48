//! Progress bar of a run, on a terminal only, after two seconds.
//!
//! A thread of its own draws the bar on standard error, so that the engines do no work for it and standard
//! output is unchanged. It shows the progress of the slowest node in the pieces that the job counts (runs of
//! a collective over all sizes, measurements, phases), and the number of finished nodes. Seats report a few
//! times per second with a poll of their control socket, so no frame waits for it.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rackloom_jobs::Portion;
use rackloom_runtime::outcome::progress::RunProgress;

use crate::terminal;

/// Time after which the bar appears. Shorter runs show none.
const DELAY: Duration = Duration::from_secs(2);
const REDRAW: Duration = Duration::from_millis(100);
const REDRAWS_PER_S: u8 = 10;

/// Progress of the run, shared with the thread that draws.
#[derive(Debug, Default)]
pub(crate) struct SharedProgress(Mutex<RunProgress>);

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
            let mut wait = DELAY;
            let mut bar = None;
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                show(bar.get_or_insert_with(|| new_bar(&job)), shared.get(), &job, nodes);
                wait = REDRAW;
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

    /// Returns the progress that the bar shows.
    pub(crate) fn progress(&self) -> &SharedProgress {
        &self.progress
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

fn show(bar: &ProgressBar, progress: RunProgress, job: &str, nodes: usize) {
    let nodes_finished = format!("{} of {nodes} nodes finished", progress.finished);
    let (position, length, message) = match progress.portion {
        Some(Portion { done, total }) => {
            (done, total, format!("{done} of {total} {} · {nodes_finished}", pieces(job)))
        }
        None => (progress.finished as u64, nodes as u64, nodes_finished),
    };
    bar.set_length(length);
    bar.set_position(position);
    bar.set_message(message);
    bar.tick();
}

/// Returns the name of the pieces that a job counts ([`rackloom_jobs::Job::portion`]).
fn pieces(job: &str) -> &'static str {
    match job {
        "collective" => "runs",
        "litmus" => "phases",
        _ => "measurements",
    }
}
