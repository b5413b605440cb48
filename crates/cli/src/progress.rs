//! A bar for those who wait: after two seconds, on a terminal, and nowhere else.
//!
//! It is drawn by a thread of its own, so that neither engine has to think of it, on standard error, so that what is
//! printed on standard output stays what it is. It knows how many nodes have finished and how often anybody got further; how far
//! a job still has to go, jobs do not say.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter runs show nothing.
const PATIENCE: Duration = Duration::from_secs(2);
const REDRAW: Duration = Duration::from_millis(100);

/// What is known of the run.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    finished: AtomicU64,
    steps: AtomicU64,
}

/// A bar for as long as it lives.
#[derive(Debug)]
pub(crate) struct Bar {
    standing: Arc<Standing>,
    /// Dropped first: its end is the thread's end.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Standing {
    /// How many have finished, and how often anybody got further.
    pub(crate) fn set(&self, finished: usize, steps: u64) {
        self.finished.store(finished as u64, Ordering::Relaxed);
        self.steps.store(steps, Ordering::Relaxed);
    }
}

impl Bar {
    /// To be called once all processes are started: a process with several threads gets no namespace of its own.
    pub(crate) fn begin(job: &str, nodes: usize) -> Self {
        let standing = Arc::new(Standing::default());
        if !io::stderr().is_terminal() {
            return Self { standing, end: None, thread: None };
        }
        let (end, ended) = channel::<()>();
        let (shared, job) = (Arc::clone(&standing), job.to_owned());
        let draw = move || {
            let mut wait = PATIENCE;
            let mut bar = None;
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let bar = bar.get_or_insert_with(|| new_bar(&job, nodes));
                bar.set_position(shared.finished.load(Ordering::Relaxed));
                bar.set_message(format!("{} steps", shared.steps.load(Ordering::Relaxed)));
                bar.tick();
                wait = REDRAW;
            }
            if let Some(bar) = bar {
                bar.finish_and_clear();
            }
        };
        // Without a thread there is no bar, and nothing else is missing.
        let thread = std::thread::Builder::new().name("progress".to_owned()).spawn(draw).ok();
        Self { standing, end: Some(end), thread }
    }

    /// Where to say how far it is.
    pub(crate) fn standing(&self) -> &Standing {
        &self.standing
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

fn new_bar(job: &str, nodes: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(nodes as u64), ProgressDrawTarget::stderr());
    let template = "{spinner} {prefix} [{bar:24}] {pos} of {len} nodes finished · {msg} · {elapsed}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.with_prefix(job.to_owned()).with_elapsed(PATIENCE)
}
