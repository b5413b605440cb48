//! Drawn scripts on racks of processes. Each run is a `rackloom run` with a time limit.
//!
//! The scripts are those of virtual time. Only the times at which faults begin are scaled, because a job
//! takes longer on processes. Frames, steps of the job, durations, periods and delays are equal in both
//! engines. A run of processes is not deterministic: a candidate counts as failing if it fails in three of
//! ten repeats.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rackloom_plan::faults::{FaultScript, Trigger};
use rackloom_runtime::machine::interruption::Interruption;
use serde_json::Value;

use super::trial::{Outcome, Range};
use crate::arguments::CampaignArguments;
use crate::exit::Exit;
use crate::failure::Failure;

/// Maximum number of candidates that the reduction of one script tries.
pub(super) const ATTEMPTS_MAX: usize = 40;
const REPEATS: u32 = 10;
const FAILING_REPEATS: u32 = 3;
/// Time between two polls of a run.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Longest time of a run beyond its plan's watchdog, the faults and the healing.
const SLACK: Duration = Duration::from_secs(120);
/// Longest time for an interrupted run to end.
const END_TIMEOUT: Duration = Duration::from_secs(20);
/// Number of lines of a failure that are kept.
const LINES_MAX: usize = 20;

/// Runs on racks of processes, one after the other.
pub(super) struct Racks<'a> {
    arguments: &'a CampaignArguments,
    range: &'a Range,
    interruption: &'a Interruption,
    /// Options of the command line, for each run.
    options: Vec<String>,
    scale: u64,
    /// Directory of scripts and reports, removed on drop.
    directory: PathBuf,
    next: AtomicU64,
}

impl Drop for Racks<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl<'a> Racks<'a> {
    /// Runs the rack once without faults. The run must pass. Its duration gives the time scale.
    pub(super) fn prepare(
        arguments: &'a CampaignArguments,
        range: &'a Range,
        interruption: &'a Interruption,
        options: Vec<String>,
    ) -> Result<Self, Failure> {
        let directory = std::env::temp_dir().join(format!("rackloom-campaign-{}", std::process::id()));
        std::fs::create_dir(&directory).map_err(|error| {
            Failure::could_not_start("cannot make a directory", error).at_path(&directory)
        })?;
        let scale = arguments.time_scale.unwrap_or(1);
        let next = AtomicU64::new(0);
        let mut racks = Self { arguments, range, interruption, options, scale, directory, next };
        let (outcome, report) = racks.run_once(None);
        match outcome {
            Outcome::Fail(reasons) => {
                return Err(Failure::new(
                    Exit::Fail,
                    format!("the rack fails without any fault: {}", reasons.join("; ")),
                )
                .hint("`rackloom run` shows the whole report"));
            }
            Outcome::Cut => {
                return Err(Failure::new(Exit::Interrupted, "interrupted before the first script"));
            }
            Outcome::Pass | Outcome::Starved => {}
        }
        if arguments.time_scale.is_none() {
            racks.scale = (job_took_ns(&report) / range.took_ns()).max(1);
        }
        Ok(racks)
    }

    pub(super) fn describe_scale(&self) -> String {
        let Self { scale, .. } = self;
        format!(
            "faults that begin at a time begin {scale} times later than in virtual time (`--time-scale {scale}`)"
        )
    }

    /// Returns the script with the times of its faults scaled for processes.
    pub(super) fn scaled(&self, script: &FaultScript) -> FaultScript {
        scaled(script, self.scale)
    }

    /// Runs the script once.
    pub(super) fn run(&self, script: &FaultScript) -> Outcome {
        self.run_once(Some(script)).0
    }

    /// Runs the script up to ten times. Returns the reasons if it fails three times, and a text with the
    /// counts.
    pub(super) fn repeat(&self, script: &FaultScript) -> (Option<Vec<String>>, String) {
        judged(|| self.run(script))
    }

    /// Runs `rackloom run` once. Returns the outcome and the report that it wrote.
    fn run_once(&self, script: Option<&FaultScript>) -> (Outcome, Value) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let at = |what: &str| self.directory.join(format!("{number}.{what}"));
        let (json, script_file, output) = (at("json"), at("yaml"), at("txt"));
        let started = self.start(script, &script_file, &json, &output);
        let outcome = match started.map(|child| self.wait_for(child, self.limit(script))) {
            Err(error) => (Outcome::Fail(vec![format!("cannot start a run: {error}")]), Value::Null),
            Ok(None) if self.interruption.is_requested() => (Outcome::Cut, Value::Null),
            Ok(None) => (Outcome::Fail(vec!["the run did not end, and was killed".to_owned()]), Value::Null),
            Ok(Some(code)) => {
                let text = std::fs::read_to_string(&json).unwrap_or_default();
                let report = serde_json::from_str(&text).unwrap_or(Value::Null);
                (self.judge(code, &report, &output), report)
            }
        };
        for file in [json, script_file, output] {
            let _ = std::fs::remove_file(file);
        }
        outcome
    }

    fn start(
        &self,
        script: Option<&FaultScript>,
        script_file: &Path,
        json: &Path,
        output: &Path,
    ) -> std::io::Result<Child> {
        let output = File::create(output)?;
        let mut command = Command::new("/proc/self/exe");
        command.arg("run").arg(&self.arguments.file).args(&self.options).arg("--json").arg(json);
        if let Some(script) = script {
            std::fs::write(script_file, self.range.text(script))?;
            command.arg("--faults").arg(script_file);
        }
        // The run has a process group of its own: Ctrl-C reaches only the campaign, which then interrupts the
        // run.
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).process_group(0).spawn()
    }

    /// Returns the time within which a run ends by itself.
    fn limit(&self, script: Option<&FaultScript>) -> Duration {
        let faults_ns = script.map_or(0, FaultScript::longest_pause_ns);
        let plan = self.range.plan();
        let ns = faults_ns
            .saturating_add(plan.settings.watchdog_ns)
            .saturating_add(4 * plan.timers.detection_ns());
        Duration::from_nanos(ns) + SLACK
    }

    /// Waits for the end of a run. Returns its exit code; `None` if it was ended, because it took too long or
    /// the campaign was interrupted.
    fn wait_for(&self, mut child: Child, limit: Duration) -> Option<i32> {
        let mut until = Instant::now() + limit;
        let mut is_interrupted = false;
        loop {
            if let Ok(Some(status)) = child.try_wait() {
                return status.code().filter(|_| !is_interrupted);
            }
            let is_late = Instant::now() >= until;
            if is_late && is_interrupted {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
            if !is_interrupted && (is_late || self.interruption.is_requested()) {
                (is_interrupted, until) = (true, Instant::now() + END_TIMEOUT);
                if let Ok(handle) = rustix::process::pidfd_open(
                    rustix::process::Pid::from_child(&child),
                    rustix::process::PidfdFlags::empty(),
                ) {
                    // Fails if the process has just ended.
                    let _ = rustix::process::pidfd_send_signal(&handle, rustix::process::Signal::TERM);
                }
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn judge(&self, code: i32, report: &Value, output: &Path) -> Outcome {
        if code == i32::from(Exit::Pass.code()) {
            return Outcome::Pass;
        }
        if code == i32::from(Exit::Starved.code()) {
            return Outcome::Starved;
        }
        let listed = report["failures"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut reasons: Vec<_> = listed.take(LINES_MAX).map(str::to_owned).collect();
        if reasons.is_empty() {
            let text = std::fs::read_to_string(output).unwrap_or_default();
            let lines: Vec<_> = text.lines().map(str::to_owned).collect();
            reasons = lines[lines.len().saturating_sub(LINES_MAX)..].to_vec();
        }
        reasons.insert(0, format!("`rackloom run` ended with exit code {code}"));
        Outcome::Fail(reasons)
    }
}

/// Repeats a run until three of ten repeats have failed or can no longer fail. A run that was starved counts
/// as one that did not fail.
fn judged(mut run: impl FnMut() -> Outcome) -> (Option<Vec<String>>, String) {
    let (mut failed, mut runs, mut last) = (0, 0, Vec::new());
    while runs < REPEATS && failed < FAILING_REPEATS && failed + REPEATS - runs >= FAILING_REPEATS {
        match run() {
            Outcome::Fail(reasons) => (failed, last) = (failed + 1, reasons),
            Outcome::Cut => break,
            Outcome::Pass | Outcome::Starved => {}
        }
        runs += 1;
    }
    let is_failing = failed >= FAILING_REPEATS;
    (is_failing.then_some(last), format!(" (and in {failed} of {runs} repeats)"))
}

/// Returns the time from the last link that came up to the end of the run.
fn job_took_ns(report: &Value) -> u64 {
    let elapsed_ns = report["elapsed_ns"].as_u64().unwrap_or(0);
    let events = report["events"].as_array().into_iter().flatten();
    let ups = events.filter(|event| event["kind"] == "link-changed" && event["fields"]["to"] == "up");
    elapsed_ns.saturating_sub(ups.filter_map(|event| event["at_ns"].as_u64()).max().unwrap_or(0))
}

/// Multiplies the times at which events begin. Other triggers and durations stay.
fn scaled(script: &FaultScript, scale: u64) -> FaultScript {
    let mut script = script.clone();
    for event in &mut script.events {
        if let Trigger::At(at_ns) = &mut event.trigger {
            *at_ns = at_ns.saturating_mul(scale);
        }
    }
    script
}

#[cfg(test)]
mod tests {
    use rackloom_plan::Plan;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_times_at_which_events_begin_are_scaled() {
        let plan = Plan::parse("{name: r, shape: {ring: {nodes: 4}}, job: {collective: {}}}", "r").unwrap();
        let text = "name: s\nevents:\n  - {what: down, where: n0->n1, at: 3us, for: 5us, every: 50us, times: 2}\n  \
                    - {what: revoke, where: n1, after: {frames: 3, direction: n0->n1}}\n";
        let script = FaultScript::parse(text, "s", &plan).unwrap();
        let long = scaled(&script, 7);
        assert_eq!(long.events[0].trigger, Trigger::At(21_000));
        assert_eq!(long.events[0].timing, script.events[0].timing);
        assert_eq!(long.events[1], script.events[1]);
        assert_eq!(scaled(&script, 1).to_text(&plan), script.to_text(&plan));
    }

    #[test]
    fn a_candidate_fails_if_it_fails_in_three_of_ten_repeats() {
        let judged_of = |fails: &[bool]| {
            let mut repeats = fails.iter();
            let mut run = || {
                if *repeats.next().expect("no more than ten") {
                    Outcome::Fail(vec!["x".into()])
                } else {
                    Outcome::Pass
                }
            };
            let (reasons, text) = judged(&mut run);
            (reasons.is_some(), text, repeats.count())
        };
        let (yes, no) = (true, false);
        assert_eq!(judged_of(&[yes; 10]), (true, " (and in 3 of 3 repeats)".to_owned(), 7));
        assert_eq!(judged_of(&[no; 10]), (false, " (and in 0 of 8 repeats)".to_owned(), 2));
        let late = [no, no, no, no, no, no, no, yes, yes, yes];
        assert_eq!(judged_of(&late), (true, " (and in 3 of 10 repeats)".to_owned(), 0));
        let rare = [yes, no, no, no, no, yes, no, no, no, no];
        assert_eq!(judged_of(&rare), (false, " (and in 2 of 10 repeats)".to_owned(), 0));
    }

    #[test]
    fn a_job_takes_from_the_last_link_that_comes_up_to_the_end() {
        let up = |at_ns: u64| json!({"at_ns": at_ns, "kind": "link-changed", "fields": {"to": "up"}});
        let down = json!({"at_ns": 90, "kind": "link-changed", "fields": {"to": "down"}});
        assert_eq!(job_took_ns(&json!({"elapsed_ns": 100, "events": [up(10), up(30), down]})), 70);
        assert_eq!(job_took_ns(&Value::Null), 0);
    }
}
