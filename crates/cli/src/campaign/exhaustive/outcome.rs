//! Outcome of a failure: survived, degraded, lost, or wrong.

use rackloom_control::report::{MemberState, NodeReport, Report, Verdict};
use schemars::JsonSchema;
use serde::Serialize;

use crate::campaign::trial::Judged;

/// Ratio of times up to which a job counts as not slower.
const SLOWER_MIN: f64 = 1.005;

/// Kind of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// The job ended right, and as fast as before.
    Survived,
    /// The job ended right, and took longer.
    Degraded,
    /// The job broke off with a clean error.
    Lost,
    /// A check failed, or the rack hung: a bug.
    Wrong,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Survived, Self::Degraded, Self::Lost, Self::Wrong];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Survived => "survived",
            Self::Degraded => "degraded",
            Self::Lost => "lost",
            Self::Wrong => "wrong",
        }
    }
}

/// Outcome of a failure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) kind: Kind,
    /// Time of the job, in nanoseconds; `None` if it did not end right.
    pub(super) time_ns: Option<f64>,
    /// Reason, of a job that did not end right.
    pub(super) reason: String,
}

impl Outcome {
    /// Returns the goodput as a share of that without failures.
    pub(super) fn goodput(&self, healthy_ns: f64) -> f64 {
        self.time_ns.map_or(0.0, |time_ns| (healthy_ns / time_ns).min(1.0))
    }

    /// Returns the outcome of a run of a rack with this many ranks. `healthy_ns` is the time of the job without failures.
    pub(super) fn of(judged: Result<Judged, Vec<String>>, ranks: usize, healthy_ns: f64) -> Self {
        let without = |kind, reason: Option<&String>| Self {
            kind,
            time_ns: None,
            reason: reason.cloned().unwrap_or_default(),
        };
        let Judged { report, unjudged } = match judged {
            Ok(judged) => judged,
            Err(reasons) => return without(Kind::Wrong, reasons.first()),
        };
        if report.verdict != Verdict::Pass {
            return without(Kind::Wrong, report.failures.first());
        }
        if let Some(line) = broken_off(&report, ranks, &unjudged).or_else(|| too_few(&report, ranks)) {
            return without(Kind::Lost, Some(&line));
        }
        let time_ns = time_ns(&report);
        let kind = if time_ns > healthy_ns * SLOWER_MIN { Kind::Degraded } else { Kind::Survived };
        Self { kind, time_ns: Some(time_ns), reason: String::new() }
    }
}

/// Returns the reason of a job that broke off. A job whose remaining ranks form one group has gone on without the others.
fn broken_off(report: &Report, ranks: usize, unjudged: &[String]) -> Option<String> {
    match report.groups.as_slice() {
        [] => {
            let killed = report.nodes.iter().filter(|node| node.state == MemberState::Killed);
            let killed: Vec<_> = killed.map(|node| format!("{}: ", node.name)).collect();
            let of_live = |line: &&String| !killed.iter().any(|name| line.starts_with(name.as_str()));
            let lines = || unjudged.iter().filter(of_live);
            lines().find(|line| line.contains("broke off")).or_else(|| lines().next()).cloned()
        }
        [group] if live(report, ranks).all(|node| group.contains(&node.name)) => None,
        groups => Some(format!("the remaining ranks form {} groups", groups.len())),
    }
}

/// Returns the reason of a job that ended because too few ranks are left to exchange anything.
fn too_few(report: &Report, ranks: usize) -> Option<String> {
    match live(report, ranks).collect::<Vec<_>>()[..] {
        [] => Some("no rank is left".to_owned()),
        [node] if ranks > 1 => Some(format!("{} is the only rank that is left", node.name)),
        _ => None,
    }
}

/// Returns the nodes of the ranks that were not killed.
fn live(report: &Report, ranks: usize) -> impl Iterator<Item = &NodeReport> {
    report.nodes.iter().take(ranks).filter(|node| node.state != MemberState::Killed)
}

/// Returns the time of the job: the sum over all its measurements, the completion of its traffic, or else the whole run.
pub(super) fn time_ns(report: &Report) -> f64 {
    if !report.sweep.is_empty() {
        return report.sweep.iter().map(|row| row.time_us * 1000.0).sum();
    }
    let traffic_ns = report.traffic.as_ref().map(|traffic| traffic.completion_ns);
    traffic_ns.unwrap_or(report.elapsed_ns) as f64
}
