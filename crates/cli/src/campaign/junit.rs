//! Results of a campaign as cases in JUnit's XML: one case per fault script, or per failure of an exhaustive campaign.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rackloom_export::junit::{Case, CaseOutcome};

use super::exhaustive::{DisplayedCase, ExhaustiveResult};
use super::summary::FailedScript;
use crate::failure::Failure;
use crate::recorded::{write_cases, write_parallel_cases};

/// Scripts that ran: those that passed, those for which the host had no processor in time, and those that failed.
pub(super) struct Scripts<'a> {
    pub(super) rack: &'a str,
    pub(super) passed: &'a [u64],
    pub(super) starved: &'a [u64],
    pub(super) failed: &'a [FailedScript],
    /// Duration of each script's run, by its number.
    pub(super) took: &'a BTreeMap<u64, Duration>,
    /// Duration of the campaign, in seconds.
    pub(super) elapsed_s: f64,
}

/// Writes a case per script that ran.
pub(super) fn write_scripts(path: &Path, scripts: &Scripts<'_>) -> Result<(), Failure> {
    let case = |number: u64, outcome: CaseOutcome| {
        let seconds = scripts.took.get(&number).map_or(0.0, Duration::as_secs_f64);
        Case { seconds, ..Case::new(scripts.rack, format!("script {number}"), outcome) }
    };
    let mut cases: BTreeMap<u64, Case> =
        scripts.passed.iter().map(|number| (*number, case(*number, CaseOutcome::Passed))).collect();
    for number in scripts.starved {
        let reason = "the host had no processor for the members in time".to_owned();
        cases.insert(*number, case(*number, CaseOutcome::Skipped { reason }));
    }
    for script in scripts.failed {
        let message = script.reasons.first().cloned().unwrap_or_default();
        let text =
            format!("{}\n\n{}\nrepeat it: {}", script.reasons.join("\n"), script.script, script.repeat);
        let outcome = CaseOutcome::Failed { message, text };
        cases.insert(script.number, case(script.number, outcome));
    }
    let cases: Vec<_> = cases.into_values().collect();
    write_parallel_cases(path, "rackloom campaign", &cases, scripts.elapsed_s)
}

/// Writes a case per failure of parts. A job that breaks off with a clean error passes: nothing was wrong.
pub(super) fn write_failures(path: &Path, result: &ExhaustiveResult) -> Result<(), Failure> {
    let case = |case: DisplayedCase| {
        let DisplayedCase { name, seconds, line, wrong } = case;
        let outcome = match wrong {
            Some((message, text)) => CaseOutcome::Failed { message, text },
            None => CaseOutcome::Passed,
        };
        Case { output: line, seconds, ..Case::new(result.rack_name(), name, outcome) }
    };
    let cases: Vec<_> = result.cases_for_display().map(case).collect();
    write_cases(path, "rackloom campaign --exhaustive", &cases, &BTreeMap::new())
}
