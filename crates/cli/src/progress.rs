//! A bar for those who wait: after two seconds, on a terminal, and nowhere else.
//!
//! It is drawn by a thread of its own, so that neither engine has to think of it, on standard error, so that what is
//! printed on standard output stays what it is. It shows how far the slowest node is, in the pieces that the job counts (runs of
//! a collective over all sizes, measurements, phases), and how many nodes have finished. Seats tell a few times per second with a
//! look at their control socket; nothing is on the path of a frame.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rackloom_jobs::Portion;
use rackloom_runtime::outcome::headway::Headway;

/// Shorter runs show nothing.
const PATIENCE: Duration = Duration::from_secs(2);
const REDRAW: Duration = Duration::from_millis(100);
const REDRAWS_PER_S: u8 = 10;

/// What is known of the run.
#[derive(Debug, Default)]
pub(crate) struct Standing(Mutex<Headway>);

/// A bar for as long as it lives.
#[derive(Debug)]
pub(crate) struct Bar {
    standing: Arc<Standing>,
    /// Dropped first: its end is the thread's end.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Standing {
    /// How far the run is now.
    pub(crate) fn set(&self, headway: Headway) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = headway;
    }

    fn get(&self) -> Headway {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
                show(bar.get_or_insert_with(|| new_bar(&job)), shared.get(), (&job, nodes));
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

fn new_bar(job: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_S));
    let template = "{spinner} {prefix} [{bar:24}] {msg} · {elapsed}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.with_prefix(job.to_owned()).with_elapsed(PATIENCE)
}

fn show(bar: &ProgressBar, headway: Headway, (job, nodes): (&str, usize)) {
    let nodes_finished = format!("{} of {nodes} nodes finished", headway.finished);
    let (position, length, message) = match headway.portion {
        Some(Portion { done, total }) => {
            (done, total, format!("{done} of {total} {} · {nodes_finished}", pieces(job)))
        }
        None => (headway.finished as u64, nodes as u64, nodes_finished),
    };
    bar.set_length(length);
    bar.set_position(position);
    bar.set_message(message);
    bar.tick();
}

/// What a job counts ([`rackloom_jobs::Job::portion`]).
fn pieces(job: &str) -> &'static str {
    match job {
        "collective" => "runs",
        "litmus" => "phases",
        _ => "measurements",
    }
}
