//! Comparison of a run with the expectations of its fault script. Each function returns one line per violation.

use rackloom_plan::Plan;
use rackloom_plan::faults::{
    ExpectedEnd, Fault, FaultEvent, FaultExpectations, FaultScript, RequiredEvents, Trigger,
};
use rackloom_protocol::NodeId;

use crate::report::assemble::{Report, Verdict};
use crate::report::fault_report::FaultReport;
use crate::report::member::MemberState;

/// Begin of a note of an error that a fault script permits.
pub const CLEAN_ERROR: &str = "a clean error: ";

/// Compares the end of the job with the expected one. Expected errors become notes.
pub(super) fn of_ending(ends: ExpectedEnd, report: &mut Report) -> Vec<String> {
    let failures = std::mem::take(&mut report.failures);
    match (ends, report.verdict) {
        (ExpectedEnd::Error, Verdict::Pass) => {
            vec!["expected a clean error, and everything was right".to_owned()]
        }
        (ExpectedEnd::Right, _) => failures,
        (ExpectedEnd::Error | ExpectedEnd::Either, _) => {
            let wrong = std::mem::take(&mut report.wrong);
            let clean = failures.into_iter().filter(|failure| !wrong.contains(failure));
            report.notes.extend(clean.map(|failure| format!("{CLEAN_ERROR}{failure}")));
            wrong
        }
    }
}

/// Checks which members are lost, and whether all others ended.
pub(super) fn of_losses(script: &FaultScript, plan: &Plan, report: &Report) -> Vec<String> {
    let expect = &script.expect;
    // A run that may be over before its faults may also be over before a new incarnation has started.
    let may_be_dead = |node: NodeId| {
        let kills =
            |event: &FaultEvent| matches!(&event.fault, Fault::Kill(members) if members.contains(&node));
        expect.happen == RequiredEvents::Any && script.events.iter().any(kills)
    };
    let is_lost =
        |state: MemberState| matches!(state, MemberState::Killed | MemberState::Exited | MemberState::Lost);
    let mut failures = Vec::new();
    for (number, node) in (0..).zip(&report.nodes) {
        let is_expected = expect.lost.contains(&NodeId(number));
        let name = &node.name;
        match (is_lost(node.state), is_expected) {
            (true, false) if !may_be_dead(NodeId(number)) => {
                failures.push(format!("{name} was lost ({}) and should live", node.state.name()))
            }
            // If the run may be over before its faults, members that these would have killed may be live.
            (false, true) if expect.happen == RequiredEvents::All && node.state != MemberState::Elsewhere => {
                failures.push(format!("{name} should have been lost and is {}", node.state.name()));
            }
            _ => {}
        }
        let has_job = usize::from(number) < plan.endpoint_count();
        if has_job && node.state == MemberState::Running {
            failures.push(format!("{name} had not ended when the run was over"));
        }
    }
    failures
}

/// Returns whether this event belongs to another host: no member here applies it, or no member here sees its trigger.
fn is_elsewhere(event: &FaultEvent, plan: &Plan, report: &Report) -> bool {
    let is_away = |node: &NodeId| {
        report.nodes.get(node.index()).is_some_and(|member| member.state == MemberState::Elsewhere)
    };
    let watcher = match event.trigger {
        Trigger::At(_) => None,
        Trigger::Frames { direction, .. } => Some(direction.sender(plan)),
        Trigger::Reached { node, .. } => Some(node),
    };
    let senders = event.fault.directions().iter().map(|direction| direction.sender(plan));
    let mut appliers = senders.chain(event.fault.members().iter().copied());
    watcher.is_some_and(|node| is_away(&node)) || appliers.all(|node| is_away(&node))
}

pub(super) fn of_happening(script: &FaultScript, plan: &Plan, report: &Report) -> Vec<String> {
    if script.expect.happen == RequiredEvents::Any {
        return Vec::new();
    }
    let events = report.faults.iter().zip(&script.events);
    let here = events.filter(|(_, event)| !is_elsewhere(event, plan, report));
    here.filter_map(|(fault, event)| missing_times(fault, event)).collect()
}

/// Returns a line if an event began fewer times than it should: once, or as often as the script requests.
fn missing_times(fault: &FaultReport, event: &FaultEvent) -> Option<String> {
    let FaultReport { event: number, line, what, times, missed, .. } = fault;
    let wanted = event.timing.times.unwrap_or(1);
    let begun = times + missed;
    if begun >= wanted {
        return None;
    }
    let happened = match begun {
        0 => "did not happen: the run was over first, and shows nothing about it".to_owned(),
        _ => format!(
            "happened {begun} of {wanted} times: the run was over first, and shows nothing about the others"
        ),
    };
    Some(format!("event {number} ({what}, line {line}) {happened}"))
}

pub(super) fn of_times(script: &FaultScript, report: &Report) -> Vec<String> {
    let expect = &script.expect;
    let mut failures = Vec::new();
    for (fault, event) in report.faults.iter().zip(&script.events) {
        let what = format!("event {} ({})", fault.event, fault.what);
        let mut judge = |verb: &str, took_ns: Option<u64>, most_ns: Option<u64>| {
            if let (Some(took_ns), Some(most_ns)) = (took_ns, most_ns)
                && took_ns > most_ns
            {
                failures.push(format!("{what} was {verb} after {took_ns} ns, expected within {most_ns} ns"));
            }
        };
        judge("detected", fault.detected_after_ns, expect.detected_within_ns);
        judge("switched", fault.switched_after_ns, expect.switched_within_ns);
        judge("recovered", fault.recovered_after_ns, expect.recovered_within_ns);
        // An event that was over before it had to be detected need not have been detected.
        let lasted = |most_ns: u64| event.timing.for_ns.is_none_or(|for_ns| for_ns > most_ns);
        if fault.unnoticed > 0
            && event.fault.blocks_traffic()
            && expect.detected_within_ns.is_some_and(lasted)
        {
            failures.push(format!("{what} was not noticed {} times", fault.unnoticed));
        }
    }
    let most_ns = expect.elapsed_max_ns.filter(|most_ns| report.elapsed_ns > *most_ns);
    failures.extend(
        most_ns
            .map(|most_ns| format!("expected to take at most {most_ns} ns, took {} ns", report.elapsed_ns)),
    );
    failures
}

pub(super) fn of_counts(expect: &FaultExpectations, report: &Report) -> Vec<String> {
    let count: u64 = report.links.iter().map(|link| link.retransmitted).sum();
    let too_few = expect.retransmitted_min.filter(|least| count < *least);
    let too_many = expect.retransmitted_max.filter(|most| count > *most);
    let bits_per_s = goodput_bits_per_s(report);
    let too_slow = expect.goodput_min_bits_per_s.filter(|least| bits_per_s < *least);
    let lines = [
        too_few.map(|least| format!("expected at least {least} retransmissions, there were {count}")),
        too_many.map(|most| format!("expected at most {most} retransmissions, there were {count}")),
        too_slow.map(|least| format!("expected a goodput of {least} bit/s at least, it was {bits_per_s}")),
    ];
    lines.into_iter().flatten().collect()
}

/// Returns the goodput of the slowest size of the sweep in bits per second. Without a sweep, returns that of the
/// slowest kind of operation that has a goodput.
fn goodput_bits_per_s(report: &Report) -> u64 {
    let of_sweep = report.sweep.iter().filter_map(|row| Some((row.algorithm_gbps? * 8e9) as u64)).min();
    let operations = report.operations.iter().map(|operation| operation.goodput_bytes_per_s);
    let of_operations = operations.filter(|goodput| *goodput > 0).map(|goodput| goodput * 8).min();
    of_sweep.or(of_operations).unwrap_or(0)
}
