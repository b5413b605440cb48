//! `rackloom campaign`: thousands of drawn fault scripts against one rack in virtual time; what fails is made small.
//!
//! Every script is to end right or with a clean error, and never in a hang (`docs/fault-scripts.md`). Runs share nothing, so each
//! thread takes the next number until none is left. A script that fails is run again and again with less in it, and told as
//! a file and the exact command that repeats it.

mod diary;
mod trial;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rackloom_plan::faults::{FaultScript, shrink};

use self::diary::Diary;
use self::trial::{Outcome, Range};
use crate::arguments::{CampaignArguments, Output};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::reporting::say;
use crate::source::Source;

/// Runs that making one script small may take.
const ATTEMPTS_MAX: usize = 400;

/// A script that failed, made small.
struct Found {
    number: u64,
    script: FaultScript,
    events_before: usize,
    why: Vec<String>,
}

/// Explore.
pub(crate) fn run(arguments: &CampaignArguments) -> Result<Exit, Failure> {
    let source = Source::read(&arguments.file, &arguments.overrides)?;
    let range = Range::prepare(source.possible_work()?)?;
    if let Some(directory) = &arguments.export {
        crate::reporting::must_be_writable_in(directory)?;
    }
    let (diary, passed) = Diary::open(arguments.resume.as_deref())?;
    let begun = Instant::now();
    let campaign = Campaign { arguments, range: &range, passed, diary, next: AtomicU64::new(0) };
    let threads = arguments.threads.map_or_else(processors, usize::from);
    let found = Mutex::new(Vec::new());
    let ran = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| campaign.work(&found, &ran));
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|one: &Found| one.number);
    for one in &found {
        tell(&campaign.told(one)?)?;
    }
    let (ran, took_s) = (ran.into_inner(), begun.elapsed().as_secs_f64());
    let left_out = campaign.left_out();
    let left_out =
        if left_out > 0 { format!(", {left_out} left out that had passed before") } else { String::new() };
    let per_minute = ran as f64 / took_s.max(1e-9) * 60.0;
    tell(&format!(
        "{ran} fault scripts in {took_s:.1} s ({per_minute:.0} per minute on {threads} threads){left_out}: {} failed",
        found.len()
    ))?;
    Ok(if found.is_empty() { Exit::Pass } else { Exit::Fail })
}

struct Campaign<'a> {
    arguments: &'a CampaignArguments,
    range: &'a Range,
    /// Numbers that have passed in an earlier campaign.
    passed: BTreeSet<u64>,
    diary: Diary,
    next: AtomicU64,
}

impl Campaign<'_> {
    /// One thread's share.
    fn work(&self, found: &Mutex<Vec<Found>>, ran: &AtomicU64) {
        let CampaignArguments { runs, first, failures_max, .. } = *self.arguments;
        loop {
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            let is_enough = found.lock().unwrap_or_else(PoisonError::into_inner).len() as u64 >= failures_max;
            if place >= runs || is_enough {
                return;
            }
            let number = first.wrapping_add(place);
            if self.passed.contains(&number) {
                continue;
            }
            let script = self.range.draw(number);
            let outcome = self.range.run(&script);
            ran.fetch_add(1, Ordering::Relaxed);
            self.diary.note(number, outcome.is_pass());
            if let Outcome::Fail(why) = outcome {
                let small = self.made_small(&script, number, why);
                found.lock().unwrap_or_else(PoisonError::into_inner).push(small);
            }
        }
    }

    fn made_small(&self, script: &FaultScript, number: u64, why: Vec<String>) -> Found {
        let events_before = script.events.len();
        let mut last_words = why;
        let small = shrink(script, ATTEMPTS_MAX, |candidate| match self.range.run(candidate) {
            Outcome::Pass => false,
            Outcome::Fail(why) => {
                last_words = why;
                true
            }
        });
        Found { number, script: small, events_before, why: last_words }
    }

    fn left_out(&self) -> u64 {
        let CampaignArguments { runs, first, .. } = *self.arguments;
        self.passed.range(first..first.saturating_add(runs)).count() as u64
    }

    /// A failing script as a file and a command, and the file written if files are wanted.
    fn told(&self, found: &Found) -> Result<String, Failure> {
        let text = self.range.text(&found.script);
        let name = format!("{}.yaml", found.script.name);
        let path = self.arguments.export.as_ref().map_or_else(|| name.clone().into(), |dir| dir.join(&name));
        if self.arguments.export.is_some() {
            std::fs::write(&path, &text).map_err(|error| cannot_write(error, &path))?;
        }
        let more = self.options();
        let rack = self.arguments.file.display();
        let why: String = found.why.iter().take(5).map(|line| format!("  {line}\n")).collect();
        Ok(format!(
            "script {} fails; made small from {} events to {}:\n{why}\n{text}\n  repeat it:  rackloom sim {rack}{more} --faults {}\n  for real:   rackloom run {rack}{more} --faults {}\n",
            found.number,
            found.events_before,
            found.script.events.len(),
            path.display(),
            path.display()
        ))
    }

    /// What was said on the command line beyond the campaign itself, for the command that repeats a run.
    fn options(&self) -> String {
        let own = ["--runs", "--first", "--threads", "--export", "--resume", "--failures-max"];
        let mut words = std::env::args().skip(2);
        let mut kept = String::new();
        let file = self.arguments.file.display().to_string();
        while let Some(word) = words.next() {
            let option = word.split_once('=').map_or(word.as_str(), |(option, _)| option);
            if own.contains(&option) {
                if !word.contains('=') {
                    words.next();
                }
            } else if word != file {
                kept = format!("{kept} {word}");
            }
        }
        kept
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn cannot_write(error: std::io::Error, path: &Path) -> Failure {
    Failure::bad_input(format!("cannot write here: {error}"))
        .at_path(path)
        .hint("name a directory that you may write to")
}

fn tell(text: &str) -> Result<(), Failure> {
    say(&Output { json: None }, text)
}
