//! Results of a campaign as cases in JUnit's XML: one case per fault script, or per failure of an exhaustive campaign.

use std::collections::BTreeMap;
use std::path::Path;

use rackloom_export::junit::{Case, CaseOutcome};

use super::exhaustive::ExhaustiveResult;
use super::summary::FailedScript;
use crate::failure::Failure;
use crate::recorded::write_cases;

/// Writes a case per script that ran: those that passed, those for which the host had no processor in time, and those that failed.
pub(super) fn write_scripts(
    path: &Path,
    rack: &str,
    passed: &[u64],
    starved: &[u64],
    failed: &[FailedScript],
) -> Result<(), Failure> {
    let name = |number: u64| format!("script {number}");
    let mut cases: BTreeMap<u64, Case> =
        passed.iter().map(|number| (*number, Case::new(rack, name(*number), CaseOutcome::Passed))).collect();
    for number in starved {
        let reason = "the host had no processor for the members in time".to_owned();
        cases.insert(*number, Case::new(rack, name(*number), CaseOutcome::Skipped { reason }));
    }
    for script in failed {
        let message = script.reasons.first().cloned().unwrap_or_default();
        let text =
            format!("{}\n\n{}\nrepeat it: {}", script.reasons.join("\n"), script.script, script.repeat);
        let outcome = CaseOutcome::Failed { message, text };
        cases.insert(script.number, Case::new(rack, name(script.number), outcome));
    }
    let cases: Vec<_> = cases.into_values().collect();
    write_cases(path, "rackloom campaign", &cases, &BTreeMap::new())
}

/// Writes a case per failure of parts. A job that breaks off with a clean error passes: nothing was wrong.
pub(super) fn write_failures(path: &Path, result: &ExhaustiveResult) -> Result<(), Failure> {
    let case = |(name, output, wrong): (String, String, Option<(String, String)>)| {
        let outcome = match wrong {
            Some((message, text)) => CaseOutcome::Failed { message, text },
            None => CaseOutcome::Passed,
        };
        Case { output, ..Case::new(result.rack_name(), name, outcome) }
    };
    let cases: Vec<_> = result.cases_for_display().map(case).collect();
    write_cases(path, "rackloom campaign --exhaustive", &cases, &BTreeMap::new())
}
