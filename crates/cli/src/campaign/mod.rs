//! `rackloom campaign`: drawn fault scripts against one rack, in virtual time or as processes; what fails is made small.
//!
//! Every script is to end right or with a clean error, and never in a hang (`docs/fault-scripts.md`). Runs share nothing, so each
//! thread takes the next number until none is left. A script that fails is run again and again with less in it, and printed as
//! a file and the exact command that repeats it. A campaign that is interrupted prints what it has found until then.

mod processes;
mod progress_log;
mod trial;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rackloom_plan::faults::{FaultScript, shrink};

use rackloom_runtime::request::work::RackRequest;

use self::processes::Racks;
use self::progress_log::ProgressLog;
use self::trial::{Outcome, Range};
use crate::arguments::{CampaignArguments, Engine, Output};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::reporting::say;
use rackloom_runtime::machine::interruption::Interruption;

/// Runs that making one script small may take.
const ATTEMPTS_MAX: usize = 400;

/// A script that failed, made small.
struct Found {
    number: u64,
    script: FaultScript,
    events_before: usize,
    why: Vec<String>,
    /// How often it fails, where that is not always.
    how_often: Option<String>,
}

/// Explore.
pub(crate) fn run(arguments: &CampaignArguments) -> Result<Exit, Failure> {
    if arguments.engine == Engine::Sim && arguments.time_scale.is_some() {
        return Err(Failure::bad_input("`--time-scale` concerns processes only")
            .hint("add `--engine processes`, or leave it out: virtual time has no scale"));
    }
    let source = RackRequest::read(&arguments.file, &(&arguments.overrides).into())?;
    let range = Range::prepare(source.possible_work()?)?;
    if let Some(directory) = &arguments.export {
        crate::reporting::must_be_writable_in(directory)?;
    }
    let (progress_log, passed) = ProgressLog::open(arguments.resume.as_deref())?;
    let interruption = Interruption::listen()
        .map_err(|error| Failure::could_not_start("cannot listen to signals", error))?;
    let begun = Instant::now();
    let racks = match arguments.engine {
        Engine::Sim => None,
        Engine::Processes => Some(Racks::prepare(arguments, &range, &interruption, options(arguments))?),
    };
    if let Some(racks) = &racks {
        say_line(&racks.scale_in_words())?;
    }
    let threads =
        arguments.threads.map_or_else(|| racks.as_ref().map_or_else(processors, |_| 1), usize::from);
    let campaign = Campaign {
        arguments,
        range: &range,
        racks,
        passed,
        progress_log,
        interruption: &interruption,
        next: AtomicU64::new(0),
        ran: AtomicU64::new(0),
        starved: AtomicU64::new(0),
        found: Mutex::new(Vec::new()),
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| campaign.work());
        }
    });
    campaign.conclude(begun, threads)
}

struct Campaign<'a> {
    arguments: &'a CampaignArguments,
    range: &'a Range,
    /// Where the scripts are played by processes.
    racks: Option<Racks<'a>>,
    /// Numbers that have passed in an earlier campaign.
    passed: BTreeSet<u64>,
    progress_log: ProgressLog,
    interruption: &'a Interruption,
    next: AtomicU64,
    ran: AtomicU64,
    starved: AtomicU64,
    found: Mutex<Vec<Found>>,
}

impl Campaign<'_> {
    /// One thread's share.
    fn work(&self) {
        let CampaignArguments { runs, first, failures_max, .. } = *self.arguments;
        loop {
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            let is_enough =
                self.found.lock().unwrap_or_else(PoisonError::into_inner).len() as u64 >= failures_max;
            if place >= runs || is_enough || self.interruption.is_asked() {
                return;
            }
            let number = first.wrapping_add(place);
            if self.passed.contains(&number) {
                continue;
            }
            let script = self.draw(number);
            let outcome = self.play(&script);
            if matches!(outcome, Outcome::Cut) {
                return;
            }
            self.ran.fetch_add(1, Ordering::Relaxed);
            match outcome {
                Outcome::Pass => self.progress_log.note(number, true),
                Outcome::Starved => _ = self.starved.fetch_add(1, Ordering::Relaxed),
                Outcome::Fail(why) => {
                    self.progress_log.note(number, false);
                    let small = self.made_small(&script, number, why);
                    self.found.lock().unwrap_or_else(PoisonError::into_inner).push(small);
                }
                Outcome::Cut => {}
            }
        }
    }

    fn draw(&self, number: u64) -> FaultScript {
        let script = self.range.draw(number);
        self.racks.as_ref().map_or(script.clone(), |racks| racks.stretched(&script))
    }

    fn play(&self, script: &FaultScript) -> Outcome {
        self.racks.as_ref().map_or_else(|| self.range.run(script), |racks| racks.run(script))
    }

    fn made_small(&self, script: &FaultScript, number: u64, why: Vec<String>) -> Found {
        let (events_before, mut last_words) = (script.events.len(), why);
        let mut fails = |candidate: &FaultScript| {
            if self.interruption.is_asked() {
                return false;
            }
            let why = match &self.racks {
                Some(racks) => racks.fails_often(candidate).0,
                None => match self.range.run(candidate) {
                    Outcome::Fail(why) => Some(why),
                    _ => None,
                },
            };
            why.is_some_and(|why| {
                last_words = why;
                true
            })
        };
        let (mut small, mut how_often) = (script.clone(), None);
        match &self.racks {
            None => small = shrink(script, ATTEMPTS_MAX, &mut fails),
            Some(racks) => {
                let (is_failing, in_words) = racks.fails_often(script);
                how_often = Some(in_words);
                if is_failing.is_some() {
                    small = shrink(script, processes::ATTEMPTS_MAX, &mut fails);
                }
            }
        }
        Found { number, script: small, events_before, why: last_words, how_often }
    }

    /// What was found, and how it ends.
    fn conclude(self, begun: Instant, threads: usize) -> Result<Exit, Failure> {
        let mut found = std::mem::take(&mut *self.found.lock().unwrap_or_else(PoisonError::into_inner));
        found.sort_by_key(|one: &Found| one.number);
        for one in &found {
            say_line(&self.in_words(one)?)?;
        }
        let ran = self.ran.load(Ordering::Relaxed);
        let starved = self.starved.load(Ordering::Relaxed);
        let took_s = begun.elapsed().as_secs_f64();
        let per_minute = ran as f64 / took_s.max(1e-9) * 60.0;
        let mut more = String::new();
        if self.left_out() > 0 {
            more = format!(", {} left out that had passed before", self.left_out());
        }
        if starved > 0 {
            more = format!("{more}, {starved} starved of a processor");
        }
        if self.interruption.is_asked() {
            more = format!("{more}, interrupted before the other {}", self.not_run(ran));
        }
        say_line(&format!(
            "{ran} fault scripts in {took_s:.1} s ({per_minute:.0} per minute on {threads} threads){more}: {} failed",
            found.len()
        ))?;
        Ok(match found.is_empty() {
            _ if self.interruption.is_asked() => Exit::Interrupted,
            false => Exit::Fail,
            true if starved > 0 => Exit::Starved,
            true => Exit::Pass,
        })
    }

    fn not_run(&self, ran: u64) -> u64 {
        self.arguments.runs.saturating_sub(ran + self.left_out())
    }

    fn left_out(&self) -> u64 {
        let CampaignArguments { runs, first, .. } = *self.arguments;
        self.passed.range(first..first.saturating_add(runs)).count() as u64
    }

    /// A failing script as a file and a command, and the file written if files are wanted.
    fn in_words(&self, found: &Found) -> Result<String, Failure> {
        let text = self.range.text(&found.script);
        let name = format!("{}.yaml", found.script.name);
        let path = self.arguments.export.as_ref().map_or_else(|| name.clone().into(), |dir| dir.join(&name));
        if self.arguments.export.is_some() {
            std::fs::write(&path, &text).map_err(|error| cannot_write(error, &path))?;
        }
        let more =
            options(self.arguments).into_iter().fold(String::new(), |all, word| format!("{all} {word}"));
        let rack = self.arguments.file.display();
        let why: String = found.why.iter().take(5).map(|line| format!("  {line}\n")).collect();
        Ok(format!(
            "script {} fails{}; made small from {} events to {}:\n{why}\n{text}\n  repeat it:  rackloom sim {rack}{more} --faults {}\n  for real:   rackloom run {rack}{more} --faults {}\n",
            found.number,
            found.how_often.as_deref().unwrap_or_default(),
            found.events_before,
            found.script.events.len(),
            path.display(),
            path.display()
        ))
    }
}

/// What was said on the command line beyond the campaign itself, for the command that repeats a run.
fn options(arguments: &CampaignArguments) -> Vec<String> {
    let own = [
        "--runs",
        "--first",
        "--threads",
        "--export",
        "--resume",
        "--failures-max",
        "--engine",
        "--time-scale",
    ];
    let mut words = std::env::args().skip(2);
    let mut kept = Vec::new();
    let file = arguments.file.display().to_string();
    while let Some(word) = words.next() {
        let option = word.split_once('=').map_or(word.as_str(), |(option, _)| option);
        if own.contains(&option) {
            if !word.contains('=') {
                words.next();
            }
        } else if word != file {
            kept.push(word);
        }
    }
    kept
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn cannot_write(error: std::io::Error, path: &Path) -> Failure {
    Failure::bad_input(format!("cannot write here: {error}"))
        .at_path(path)
        .hint("name a directory that you may write to")
}

fn say_line(text: &str) -> Result<(), Failure> {
    say(&Output { json: None }, text)
}
