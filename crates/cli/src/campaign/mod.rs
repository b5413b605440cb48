//! `rackloom campaign`: runs drawn fault scripts against one rack, in virtual time or as processes, and
//! reduces those that fail.
//!
//! Every script must end correctly or with a clean error, and never in a hang (`docs/fault-scripts.md`). Runs
//! share nothing, so they run in parallel. A script that fails is repeated
//! with fewer and simpler events, and printed as a file with the command that repeats it. An interrupted
//! campaign prints its results so far. With `--exhaustive` it fails every part, or every pair of parts, in place of drawn scripts.

mod exhaustive;
mod junit;
mod page;
mod processes;
mod progress_log;
mod summary;
mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rackloom_control::source::Overrides;
use rackloom_experiments::parallel::{self, processors};
use rackloom_plan::Plan;
use rackloom_plan::faults::{FaultScript, shrink};
use rackloom_runtime::machine::interruption::Interruption;

use rackloom_runtime::request::work::RackRequest;

pub(crate) use self::exhaustive::ExhaustiveResult;
use self::junit::Scripts;
use self::processes::Racks;
use self::progress_log::ProgressLog;
pub(crate) use self::summary::Summary;
use self::summary::{FailedScript, verdict};
use self::trial::{Outcome, Range};
use crate::arguments::{CampaignArguments, Engine, passed_on};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::files::Files;
use crate::reporting::print_text;
use crate::tally::Tally;

/// Maximum number of runs that the reduction of one script takes.
const ATTEMPTS_MAX: usize = 400;

/// Script that failed, in its reduced form.
struct Found {
    number: u64,
    script: FaultScript,
    events_before: usize,
    reasons: Vec<String>,
    /// Number of failures in repeats, as text; `None` in virtual time, where each repeat fails.
    repeats: Option<String>,
}

/// Runs a campaign.
pub(crate) fn run(arguments: &CampaignArguments) -> Result<Exit, Failure> {
    if arguments.engine == Engine::Sim && arguments.time_scale.is_some() {
        return Err(Failure::bad_input("`--time-scale` concerns processes only")
            .hint("add `--engine processes`, or leave it out: virtual time has no scale"));
    }
    if arguments.engine == Engine::Processes && arguments.payload.is_some() {
        return Err(Failure::bad_input("`--payload` concerns virtual time only")
            .hint("leave it out: processes move all bytes"));
    }
    Files::default()
        .reads("the rack file", [&arguments.file])
        .writes("--json", &arguments.output.json)
        .writes("--html", &arguments.page.html)
        .writes("--junit", &arguments.junit)
        .writes("--resume", &arguments.resume)
        .must_differ()?;
    crate::reporting::must_be_writable(&arguments.output)?;
    crate::reporting::page_must_be_writable(&arguments.page)?;
    if let Some(path) = &arguments.junit {
        crate::reporting::must_be_writable_at(path)?;
    }
    let overrides = Overrides { payload: arguments.payload, ..(&arguments.overrides).into() };
    let source = RackRequest::read(&arguments.file, &overrides)?;
    let work = source.possible_work()?;
    if !arguments.exhaustive.is_empty() {
        return exhaustive::run(arguments, work);
    }
    let range = Range::prepare(work)?;
    if let Some(directory) = &arguments.export {
        crate::reporting::must_be_writable_in(directory)?;
    }
    let (progress_log, passed) =
        ProgressLog::open(arguments.resume.as_deref(), &identity(arguments, range.plan()))?;
    let interruption = Interruption::listen()
        .map_err(|error| Failure::could_not_start("cannot listen to signals", error))?;
    let begun = Instant::now();
    let racks = match arguments.engine {
        Engine::Sim => None,
        Engine::Processes => Some(Racks::prepare(arguments, &range, &interruption, options())?),
    };
    if let Some(racks) = &racks {
        print_text(&arguments.output, &racks.describe_scale())?;
    }
    let threads =
        arguments.threads.map_or_else(|| racks.as_ref().map_or_else(processors, |_| 1), usize::from);
    let campaign =
        Campaign { arguments, range: &range, racks, passed, progress_log, interruption: &interruption };
    let results = campaign.run_all(threads);
    campaign.conclude(results, begun, threads)
}

/// Returns a line with everything on which the results of scripts depend, beside their numbers.
fn identity(arguments: &CampaignArguments, plan: &Plan) -> String {
    let engine = arguments.engine.name();
    let time_scale = arguments.time_scale.map(|scale| format!(" time-scale={scale}")).unwrap_or_default();
    format!(
        "{}of rack {}: config_hash={:016x} seed={} payload={} engine={engine}{time_scale}",
        progress_log::BEGIN,
        plan.name,
        plan.config_hash,
        plan.settings.seed,
        plan.settings.payload.name(),
    )
}

struct Campaign<'a> {
    arguments: &'a CampaignArguments,
    range: &'a Range,
    /// Racks of processes, with that engine.
    racks: Option<Racks<'a>>,
    /// Numbers that have passed in an earlier campaign.
    passed: BTreeSet<u64>,
    progress_log: ProgressLog,
    interruption: &'a Interruption,
}

/// Results of all scripts that ran.
#[derive(Default)]
struct Results {
    passed: Vec<u64>,
    starved: Vec<u64>,
    found: Vec<Found>,
    /// Duration of each script's run, by its number.
    took: BTreeMap<u64, Duration>,
}

/// End of one script.
enum End {
    Pass,
    Starved,
    Fail(Box<Found>),
    /// The campaign was interrupted while it ran.
    Cut,
}

impl Campaign<'_> {
    /// Runs scripts until none is left, or until enough have failed.
    fn run_all(&self, threads: usize) -> Results {
        let CampaignArguments { runs, first, failures_max, .. } = *self.arguments;
        let tally = Tally::begin("campaign", runs.saturating_sub(self.left_out()), threads);
        let numbers = (0..runs).map(|index| first.wrapping_add(index));
        let open = numbers.filter(|number| !self.passed.contains(number));
        let (mut results, failed) = (Results::default(), AtomicU64::new(0));
        let is_over = || failed.load(Ordering::Relaxed) >= failures_max || self.interruption.is_requested();
        let run = |number| {
            let (end, took) = self.run_number(number);
            if matches!(end, End::Fail(_)) {
                failed.fetch_add(1, Ordering::Relaxed);
            }
            (number, end, took)
        };
        parallel::for_each(open, threads, is_over, run, |_, (number, end, took)| {
            results.took.insert(number, took);
            match end {
                End::Cut => return,
                End::Pass => results.passed.push(number),
                End::Starved => results.starved.push(number),
                End::Fail(found) => results.found.push(*found),
            }
            tally.add();
        });
        results
    }

    /// Runs the script with this number, and reduces it if it fails. Returns the duration of the run as well, without the reduction.
    fn run_number(&self, number: u64) -> (End, Duration) {
        let script = self.draw(number);
        let begun = Instant::now();
        let outcome = self.run_script(&script);
        let took = begun.elapsed();
        let end = match outcome {
            Outcome::Cut => End::Cut,
            Outcome::Starved => End::Starved,
            Outcome::Pass => {
                self.progress_log.note(number, true);
                End::Pass
            }
            Outcome::Fail(reasons) => {
                self.progress_log.note(number, false);
                End::Fail(Box::new(self.reduce(&script, number, reasons)))
            }
        };
        (end, took)
    }

    fn draw(&self, number: u64) -> FaultScript {
        let script = self.range.draw(number);
        self.racks.as_ref().map_or(script.clone(), |racks| racks.scaled(&script))
    }

    fn run_script(&self, script: &FaultScript) -> Outcome {
        self.racks.as_ref().map_or_else(|| self.range.run(script), |racks| racks.run(script))
    }

    fn reduce(&self, script: &FaultScript, number: u64, mut reasons: Vec<String>) -> Found {
        let events_before = script.events.len();
        let mut fails = |candidate: &FaultScript| {
            if self.interruption.is_requested() {
                return false;
            }
            let failures = match &self.racks {
                Some(racks) => racks.repeat(candidate).0,
                None => match self.range.run(candidate) {
                    Outcome::Fail(failures) => Some(failures),
                    _ => None,
                },
            };
            failures.is_some_and(|failures| {
                reasons = failures;
                true
            })
        };
        let (mut reduced, mut repeats) = (script.clone(), None);
        match &self.racks {
            None => reduced = shrink(script, ATTEMPTS_MAX, &mut fails),
            Some(racks) => {
                let (is_failing, text) = racks.repeat(script);
                repeats = Some(text);
                if is_failing.is_some() {
                    reduced = shrink(script, processes::ATTEMPTS_MAX, &mut fails);
                }
            }
        }
        Found { number, script: reduced, events_before, reasons, repeats }
    }

    /// Prints and writes the results. Returns the exit.
    fn conclude(self, results: Results, begun: Instant, threads: usize) -> Result<Exit, Failure> {
        let Results { passed, starved: starved_scripts, mut found, took } = results;
        let starved = starved_scripts.len() as u64;
        let ran = (passed.len() + found.len()) as u64 + starved;
        found.sort_by_key(|one: &Found| one.number);
        let failures =
            found.iter().map(|one| self.failed_script(one)).collect::<Result<Vec<_>, Failure>>()?;
        let output = &self.arguments.output;
        for one in &failures {
            print_text(output, &self.describe(one))?;
        }
        let took_s = begun.elapsed().as_secs_f64();
        let per_minute = ran as f64 / took_s.max(1e-9) * 60.0;
        let mut more = String::new();
        if self.left_out() > 0 {
            more = format!(", {} left out that had passed before", self.left_out());
        }
        if starved > 0 {
            more = format!("{more}, {starved} without a processor in time");
        }
        if self.interruption.is_requested() {
            more = format!("{more}, interrupted before the other {}", self.not_run(ran));
        }
        let line = format!(
            "{ran} fault scripts in {took_s:.1} s ({per_minute:.0} per minute on {threads} threads){more}: {} failed",
            failures.len()
        );
        print_text(output, &line)?;
        let exit = match failures.is_empty() {
            _ if self.interruption.is_requested() => Exit::Interrupted,
            false => Exit::Fail,
            true if starved > 0 => Exit::Starved,
            true => Exit::Pass,
        };
        let summary = Summary {
            version: env!("CARGO_PKG_VERSION"),
            commit: rackloom_runtime::outcome::meta::COMMIT,
            rack: self.arguments.file.display().to_string(),
            config_hash: format!("{:016x}", self.range.plan().config_hash),
            options: options(),
            engine: self.arguments.engine.name(),
            first: self.arguments.first,
            runs: self.arguments.runs,
            ran,
            starved,
            left_out: self.left_out(),
            threads,
            elapsed_s: took_s,
            verdict: verdict(exit),
            failures,
        };
        if let Some(path) = &self.arguments.junit {
            let scripts = Scripts {
                rack: &summary.rack,
                passed: &passed,
                starved: &starved_scripts,
                failed: &summary.failures,
                took: &took,
                elapsed_s: took_s,
            };
            junit::write_scripts(path, &scripts)?;
        }
        crate::reporting::write_json(output, &summary)?;
        crate::reporting::write_page(&self.arguments.page, || page::page(&summary))?;
        Ok(exit)
    }

    fn not_run(&self, ran: u64) -> u64 {
        self.arguments.runs.saturating_sub(ran + self.left_out())
    }

    fn left_out(&self) -> u64 {
        let CampaignArguments { runs, first, .. } = *self.arguments;
        self.passed.range(first..first.saturating_add(runs)).count() as u64
    }

    /// Returns a failing script as text and as the command that repeats it. Writes its file if `--export` is given.
    fn failed_script(&self, found: &Found) -> Result<FailedScript, Failure> {
        let script = self.range.text(&found.script);
        let name = format!("{}.yaml", found.script.name);
        let path = self.arguments.export.as_ref().map_or_else(|| name.clone().into(), |dir| dir.join(&name));
        if self.arguments.export.is_some() {
            std::fs::write(&path, &script).map_err(|error| cannot_write(error, &path))?;
        }
        let file = path.display().to_string();
        Ok(FailedScript {
            number: found.number,
            reasons: found.reasons.clone(),
            repeats: found.repeats.clone(),
            events_drawn: found.events_before,
            events: found.script.events.len(),
            script,
            repeat: format!("rackloom sim {} --faults {file}", self.rack_with(&options())),
            file,
        })
    }

    fn rack_with(&self, options: &[String]) -> String {
        let rack = self.arguments.file.display().to_string();
        options.iter().fold(rack, |line, option| format!("{line} {option}"))
    }

    /// Formats a failing script for people.
    fn describe(&self, failed: &FailedScript) -> String {
        let FailedScript { number, repeats, events_drawn, events, script, file, repeat, .. } = failed;
        let repeats = repeats.as_deref().unwrap_or_default();
        let reasons: String = failed.reasons.iter().take(5).map(|line| format!("  {line}\n")).collect();
        let rack = self.rack_with(&options_of_processes());
        format!(
            "script {number} fails{repeats}; reduced from {events_drawn} events to {events}:\n{reasons}\n{script}\n  repeat it:     {repeat}\n  on processes:  rackloom run {rack} --faults {file}\n"
        )
    }
}

/// Returns the options of the command line that concern the rack and its job, for the command that repeats a
/// run.
fn options() -> Vec<String> {
    passed_on(CampaignArguments::OWN, &[])
}

/// Returns those options without the ones that processes do not have.
fn options_of_processes() -> Vec<String> {
    passed_on(&[CampaignArguments::OWN, &["--payload"]].concat(), &[])
}

fn cannot_write(error: std::io::Error, path: &Path) -> Failure {
    Failure::bad_input(format!("cannot write here: {error}"))
        .at_path(path)
        .hint("name a directory that you may write to")
}
