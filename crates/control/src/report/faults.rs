//! Effects of a fault script's events, computed from the members' lines, and compared with the script's expectations.
//!
//! Both engines pass in the same kinds of lines: which member applied which event at what time, and how its links and
//! paths changed. For every event that takes something away, `history` computes the time until detection and until the
//! last change of a path. `heartbeats` computes the bounds for detection by heartbeats alone. `expected` compares the
//! results with the script.

mod expected;
mod heartbeats;
mod history;

use rackloom_plan::faults::{Fault, FaultEvent, FaultScript};
use rackloom_plan::{Clock, Plan};
use rackloom_protocol::{NodeId, OperationError};

pub use self::expected::CLEAN_ERROR;
use self::expected::{of_counts, of_ending, of_happening, of_losses, of_times};
use self::heartbeats::of_heartbeats;
use self::history::{
    beginnings_beyond, detection, edges_of, last_beginning, last_switch, recovery, stretches,
};
use super::assemble::{Report, Verdict};
use super::events::EventRecord;
use super::fault_report::FaultReport;

/// Adds the effects of the script to the report, and judges the run by the script's expectations.
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

/// Returns the greatest lateness of a timer, over the members that the script does not stop.
fn scheduling_slack_ns(script: &FaultScript, report: &Report) -> Option<u64> {
    let stops = |node: NodeId| {
        let mut pauses = script.events.iter().map(|event| &event.fault);
        pauses.any(|fault| matches!(fault, Fault::Pause(members) if members.contains(&node)))
    };
    let members = (0..).map(NodeId).zip(&report.nodes).filter(|(node, _)| !stops(*node));
    members.filter_map(|(_, member)| member.timer_late_max_ns).max()
}

/// Returns whether the script explains that memory refused a correct access. Failing memory and revoked keys explain
/// it. So does a new incarnation of a lost member, which has none of the job's memory. A rank that had not reached the
/// earlier incarnation cannot know that it is a new one.
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
    if fault.blocks_traffic() {
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
