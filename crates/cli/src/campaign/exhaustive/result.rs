//! Result of an exhaustive campaign, as `--json` writes it.

use schemars::JsonSchema;
use serde::Serialize;

use super::outcome::Kind;

/// Result of `rackloom campaign --exhaustive`.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct ExhaustiveResult {
    /// Version of rackloom that ran the campaign.
    pub(super) version: &'static str,
    /// Rack file, as given on the command line.
    pub(super) rack: String,
    /// Hash of the rack's configuration, as 16 hexadecimal digits.
    pub(super) config_hash: String,
    /// Options of the command line that concern the rack and its job.
    pub(super) options: Vec<String>,
    /// Time of the job without failures, in nanoseconds of virtual time.
    pub(super) healthy_ns: f64,
    /// Cases that were to run.
    pub(super) cases: usize,
    /// Cases in which the job ended right, and as fast as before.
    pub(super) survived: usize,
    /// Cases in which the job ended right, and took longer.
    pub(super) degraded: usize,
    /// Cases in which the job broke off with a clean error.
    pub(super) lost: usize,
    /// Cases in which a check failed, or the rack hung.
    pub(super) wrong: usize,
    /// Cases that ran, those of one part first.
    pub(super) outcomes: Vec<CaseResult>,
    /// Expected goodput, if failure rates are given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expected: Option<ExpectedResult>,
    /// Notes about the times.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
}

impl ExhaustiveResult {
    /// Returns the rack file.
    pub(in crate::campaign) fn rack_name(&self) -> &str {
        &self.rack
    }

    /// Returns the cases that ran, for a list of them.
    pub(in crate::campaign) fn cases_for_display(&self) -> impl Iterator<Item = DisplayedCase> {
        self.outcomes.iter().map(|case| DisplayedCase {
            name: format!("{} {}", case.kind, case.parts.join(" and ")),
            seconds: case.time_ns.unwrap_or(0.0) / 1e9,
            line: format!("{}: goodput {:.1} %", case.outcome.name(), case.goodput * 100.0),
            wrong: (case.outcome == Kind::Wrong).then(|| (case.reason.clone(), case.script.clone())),
        })
    }
}

/// Case that ran, in the form in which it is listed.
pub(in crate::campaign) struct DisplayedCase {
    /// Parts that fail.
    pub(in crate::campaign) name: String,
    /// Time of the job in seconds of virtual time; 0 if it did not end right.
    pub(in crate::campaign) seconds: f64,
    /// Outcome in one line.
    pub(in crate::campaign) line: String,
    /// Reason and the script that repeats the case, if a check failed.
    pub(in crate::campaign) wrong: Option<(String, String)>,
}

/// Outcome of one case.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(super) struct CaseResult {
    /// Names of the parts that fail.
    pub(super) parts: Vec<String>,
    /// Kind of these parts: `links`, `switches` or `nodes`; of parts of different kinds both, such as `links+switches`.
    pub(super) kind: String,
    /// Outcome.
    pub(super) outcome: Kind,
    /// Time of the job in nanoseconds; `null` if it did not end right.
    pub(super) time_ns: Option<f64>,
    /// Goodput as a share of that without failures.
    pub(super) goodput: f64,
    /// Reason, of a job that did not end right.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
    /// Fault script that repeats the case.
    pub(super) script: String,
}

/// Expected goodput of the rack.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(super) struct ExpectedResult {
    /// Lower bound, as a share of the goodput without failures.
    pub(super) goodput_least: f64,
    /// Upper bound.
    pub(super) goodput_most: f64,
    /// Share of the time in states that were run.
    pub(super) covered: f64,
    /// Share of the time in which nothing is down.
    pub(super) healthy: f64,
    /// Parts, the most important first.
    pub(super) parts: Vec<PartResult>,
}

/// Importance of one part.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(super) struct PartResult {
    /// Name of the part.
    pub(super) part: String,
    /// Kind of the part.
    pub(super) kind: &'static str,
    /// Expected loss of goodput while the part is down.
    pub(super) loss: f64,
}
