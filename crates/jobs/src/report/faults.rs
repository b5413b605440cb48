//! What the events of a fault script did, read from what members say happened, and held against the script's expectations.
//!
//! Both engines hand in the same lines: who applied which event when, and what their links and paths went through. From these
//! follow, for everything that takes something away, how long nobody noticed and how long it took until the last path was changed
//! (`history`), beside what heartbeats alone must take (`heartbeats`); what the script asks for is in `expected`.

mod expected;
mod heartbeats;
mod history;

use rackloom_plan::faults::{Fault, FaultEvent, FaultScript};
use rackloom_plan::{Clock, Plan};
use rackloom_protocol::{Instant, NodeId, OperationError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::expected::{of_counts, of_ending, of_happening, of_losses, of_times};
use self::heartbeats::of_heartbeats;
use self::history::{
    beginnings_beyond, detection, edges_of, last_beginning, last_switch, recovery, stretches,
};
use super::assemble::{Report, Verdict};
use super::events::EventRecord;
use crate::report::is_zero;

/// Kind of the line that says that an event begins or ends.
const KIND: &str = "fault";

/// What one event of the script did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FaultReport {
    /// Its place in the script, from one.
    pub event: usize,
    /// Its line in the script's file.
    pub line: u32,
    /// What and where, as the file has it.
    pub what: String,
    /// How often it began.
    pub times: u64,
    /// Beginnings that were over before their member looked; none in virtual time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed: u64,
    /// When it began first; absent if it never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ns: Option<u64>,
    /// Longest time from a beginning to the first link that was told to be down because of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detected_after_ns: Option<u64>,
    /// Longest time from a beginning to the last path that was changed because of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switched_after_ns: Option<u64>,
    /// The time within which heartbeats alone find it: the intervals that may be missed, and the way of a frame. A carrier that goes
    /// is faster; processes take as much longer as they wait for a processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detection_bound_ns: Option<u64>,
    /// By how much processes may be beyond that bound for want of a processor: the latest that a timer of a member was served, those that the
    /// script itself stops left out. Nothing in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling_slack_ns: Option<u64>,
    /// Heartbeats alone never find it sooner: one may have left just before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detection_least_ns: Option<u64>,
    /// Longest time from an end to the last link concerned that was up again, before anything else began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered_after_ns: Option<u64>,
    /// Beginnings that nobody noticed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unnoticed: u64,
}

impl EventRecord {
    /// The line that the event with this number begins or ends at `member`, for the time that is counted from one.
    #[must_use]
    pub fn of_fault(
        now: Instant,
        member: &str,
        (number, time): (usize, u64),
        event: &FaultEvent,
        begins: bool,
    ) -> Self {
        let fields = event.line_fields(number, time, begins);
        Self {
            at_ns: now.0,
            member: member.to_owned(),
            kind: KIND.to_owned(),
            text: event.line_text(begins),
            fields: fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        }
    }
}

/// Put what the script did into the report, and judge the run by what the script expects.
pub fn judge(script: &FaultScript, plan: &Plan, report: &mut Report) {
    let clock = heartbeats::clock_of(report);
    report.faults = (0..script.events.len())
        .map(|event| fault_report(script, plan, clock, &report.events, event))
        .collect();
    let slack_ns = scheduling_slack_ns(script, report);
    report
        .faults
        .iter_mut()
        .filter(|fault| fault.detection_bound_ns.is_some())
        .for_each(|fault| fault.scheduling_slack_ns = slack_ns);
    let refused = std::mem::take(&mut report.refused);
    let explained: Vec<_> = refused.iter().filter(|line| explains_refusal(script, plan, line)).collect();
    report.wrong.retain(|line| !explained.contains(&line));
    let mut failures = of_ending(script.expect.ends, report);
    failures.extend(of_losses(script, plan, report));
    failures.extend(of_happening(script, plan, report));
    failures.extend(of_times(script, report));
    failures.extend(of_heartbeats(script, plan, report));
    failures.extend(of_counts(&script.expect, report));
    report.verdict = if failures.is_empty() { Verdict::Pass } else { Verdict::Fail };
    report.failures = failures;
}

/// The latest that a timer was served, of members that the script does not stop.
fn scheduling_slack_ns(script: &FaultScript, report: &Report) -> Option<u64> {
    let stops = |node: NodeId| {
        let mut pauses = script.events.iter().map(|event| &event.fault);
        pauses.any(|fault| matches!(fault, Fault::Pause(members) if members.contains(&node)))
    };
    let members = (0..).map(NodeId).zip(&report.nodes).filter(|(node, _)| !stops(*node));
    members.filter_map(|(_, member)| member.timer_late_max_ns).max()
}

/// Whether the script explains that memory has refused what is right: by memory that fails or keys that are revoked; or by somebody new in
/// a dead member's place, who has none of the job's memory, and to whoever had not met his forebear he is the first to sit there.
fn explains_refusal(script: &FaultScript, plan: &Plan, line: &str) -> bool {
    let Some(said) = line.strip_suffix(&format!(" ended with: {}", OperationError::NoSuchRegion.name()))
    else {
        return script.refuses();
    };
    script.followed().any(|node| said.ends_with(&format!(" to {}", plan.members[node.index()].name)))
}

fn fault_report(
    script: &FaultScript,
    plan: &Plan,
    clock: Clock,
    events: &[EventRecord],
    event: usize,
) -> FaultReport {
    let FaultEvent { fault, label, line, .. } = &script.events[event];
    let stretches = stretches(events, event);
    let times = stretches.len() as u64 + beginnings_beyond(events, event);
    let mut report = FaultReport {
        event: event + 1,
        line: *line,
        what: label.clone(),
        times,
        missed: last_beginning(events, event).saturating_sub(times),
        at_ns: stretches.first().map(|stretch| stretch.from_ns),
        ..FaultReport::default()
    };
    if fault.takes_away() {
        let edges = edges_of(fault, plan);
        report.detection_bound_ns = heartbeats::most_ns(plan, clock, &edges);
        report.detection_least_ns = heartbeats::least_ns(plan, clock, fault, &edges);
        for stretch in stretches {
            let detected_ns = detection(plan, events, &edges, stretch);
            report.unnoticed += u64::from(detected_ns.is_none());
            let switched_ns = detected_ns.and_then(|after_ns| last_switch(events, stretch, after_ns));
            report.detected_after_ns = report.detected_after_ns.max(detected_ns);
            report.switched_after_ns = report.switched_after_ns.max(switched_ns);
            let recovered_ns = recovery(plan, events, &edges, event, stretch);
            report.recovered_after_ns = report.recovered_after_ns.max(recovered_ns);
        }
    }
    report
}

#[cfg(test)]
mod tests;
