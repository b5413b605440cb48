//! Progress bar of a run, on a terminal only, after two seconds.
//!
//! A thread of its own draws the bar on standard error, so that the engines do no work for it and standard
//! output is unchanged. It shows the mean progress of all nodes in the pieces that the job counts (runs of
//! a collective over all sizes, measurements, phases), the number of finished nodes, and the time that is left.
//! A terminal that is too narrow for all of them shows the first ones.
//! Seats report a few times per second with a poll of their control socket, so no frame waits for it.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rackloom_runtime::outcome::progress::RunProgress;

use crate::present::units;
use crate::{terminal, time_limit};

/// Time after which the bar appears. Shorter runs show none.
const DELAY: Duration = Duration::from_secs(2);
const REDRAW: Duration = Duration::from_millis(100);
const REDRAWS_PER_S: u8 = 10;
/// Columns of a line beside its message and the name of the job: the spinner, the bar, the time that has passed, and blanks.
const BAR_COLUMNS: usize = 26;

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
                    let parts = message_parts(progress, &job, nodes, left);
                    show(bar, &terminal::fitting(&parts, columns(&job)), thousandths(progress, nodes));
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
    let template =
        if is_narrow { "{wide_msg}" } else { "{spinner} {prefix} [{bar:12}] {elapsed} · {wide_msg}" };
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

/// Returns the columns that a message may take; `None` if standard error does not know its width.
fn columns(job: &str) -> Option<usize> {
    let columns = terminal::error_columns()?;
    let beside = if terminal::is_too_narrow_for_bars() { 0 } else { BAR_COLUMNS + terminal::width(job) };
    Some(columns.saturating_sub(beside))
}

/// Returns completed thousandths of pieces, or of nodes, and all of them.
fn thousandths(progress: RunProgress, nodes: usize) -> [u64; 2] {
    match progress.counted {
        0 => [progress.finished as u64 * 1000, nodes as u64 * 1000],
        _ => progress.thousandths,
    }
}

/// Returns the parts of the message, with what matters most first.
fn message_parts(progress: RunProgress, job: &str, nodes: usize, left: Option<Duration>) -> Vec<String> {
    let mut parts = Vec::new();
    if progress.counted > 0 {
        let [done, total] = progress.thousandths;
        let percent = if total > 0 { done as f64 / total as f64 * 100.0 } else { 0.0 };
        parts.push(format!("{}%", short(percent)));
        // Without progress since the first look, as in a long computation, nothing is known about the rest.
        parts.push(left.map_or_else(|| "time left unknown".to_owned(), time_limit::time_left_text));
        parts.extend(progress.virtual_ns.map(|at_ns| format!("{} of virtual time", units::time(at_ns))));
        let [done, total] = [done, total].map(|sum| sum as f64 / progress.counted as f64 / 1000.0);
        parts.push(format!("{} of {total:.0} {}", short(done), pieces(job)));
    }
    parts.push(format!("{} of {nodes} nodes finished", progress.finished));
    parts
}

/// Returns a number rounded down, with a tenth if it is below ten and has some.
fn short(number: f64) -> String {
    let tenths = (number * 10.0).floor() / 10.0;
    if tenths < 10.0 && tenths.fract() > 0.0 {
        format!("{tenths:.1}")
    } else {
        format!("{:.0}", tenths.floor())
    }
}

impl Rest {
    /// Returns the time that is left at `now`. Between two changes of the progress it decreases with the time.
    fn left(&mut self, now: Instant, progress: RunProgress) -> Option<Duration> {
        let [done, total] = (progress.counted > 0).then_some(progress.thousandths)?;
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
        "traffic" => "messages per node",
        "trace" => "lines per node",
        "workload" => "operations per node",
        _ => "measurements",
    }
}

#[cfg(test)]
mod tests {
    use rackloom_jobs::Portion;
    use rackloom_runtime::outcome::progress::NodeProgress;

    use super::*;

    /// Progress of one node of two. The other has finished, and has no pieces.
    fn of_portion(portion: Portion) -> RunProgress {
        RunProgress::of([NodeProgress::Working(Some(portion)), NodeProgress::Finished(None)].into_iter())
    }

    fn at(done: u64, total: u64) -> RunProgress {
        of_portion(Portion::new(done, total))
    }

    fn message(progress: RunProgress, job: &str, nodes: usize, left: Option<Duration>) -> String {
        message_parts(progress, job, nodes, left).join(" · ")
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
        let progress = RunProgress { finished: 3, ..of_portion(Portion::new(0, 1).with_parts(1, 4)) };
        assert_eq!(
            message(progress, "collective", 8, Some(Duration::from_secs(90))),
            "25% · about 90 s left · 0.2 of 1 runs · 3 of 8 nodes finished"
        );
        assert_eq!(thousandths(progress, 8), [250, 1000]);
        let virtual_time = RunProgress { virtual_ns: Some(90_000_000_000), ..progress };
        assert_eq!(
            message(virtual_time, "workload", 8, None),
            "25% · time left unknown · 90.0 s of virtual time · 0.2 of 1 operations per node · 3 of 8 nodes finished"
        );
        let without = RunProgress { counted: 0, ..progress };
        assert_eq!(message(without, "litmus", 8, None), "3 of 8 nodes finished");
        assert_eq!(thousandths(without, 8), [3000, 8000]);
    }

    /// Few messages of many nodes are over, and none of the slowest node.
    #[test]
    fn a_large_rack_moves_before_its_slowest_node_does() {
        let (quick, slow) = (Portion::new(4, 100), Portion::new(0, 100));
        let nodes = (0..1024).map(|node| NodeProgress::Working(Some(if node < 200 { quick } else { slow })));
        let progress = RunProgress { virtual_ns: Some(1_170_000), ..RunProgress::of(nodes) };
        let parts = message_parts(progress, "traffic", 1024, None);
        assert_eq!(
            parts,
            [
                "0.7%",
                "time left unknown",
                "1.17 ms of virtual time",
                "0.7 of 100 messages per node",
                "0 of 1024 nodes finished"
            ]
        );
    }
}
