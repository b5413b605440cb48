//! Expectations of the plan, compared with a report.
//!
//! The checks of the job give a verdict. A rack file may expect more than that, or an outage. The run passes
//! then if the expectation holds. Without expectations the verdict of the job remains. The expectations of a
//! fault script replace those of the rack file.

use rackloom_jobs::report::{MemberState, Refusals, Report, Verdict, faults};
use rackloom_plan::faults::FaultScript;
use rackloom_plan::{Expectations, ExpectedVerdict, Plan};
use rackloom_protocol::NodeId;

use crate::units;

/// Replaces the verdict of a report by that of the expectations, if there are any. The run must not have been
/// interrupted.
pub fn judge(plan: &Plan, faults: Option<&FaultScript>, report: &mut Report) {
    if let Some(script) = faults {
        return faults::judge(script, plan, report);
    }
    let expect = &plan.expect;
    if *expect == Expectations::default() {
        return;
    }
    let mut failures = of_verdict(expect, report);
    failures.extend(of_operations(expect, report));
    failures.extend(of_time(expect, report));
    failures.extend(of_retransmissions(expect, report));
    failures.extend(of_nodes(plan, report));
    report.verdict = if failures.is_empty() { Verdict::Pass } else { Verdict::Fail };
    report.failures = failures;
}

/// Returns true if the fault script allows the loss of this node. Without a script the rack file decides.
pub fn may_lose(plan: &Plan, faults: Option<&FaultScript>, node: NodeId) -> bool {
    match faults {
        Some(script) => script.may_lose(node),
        None => plan.expect.nodes_lost.contains(&node),
    }
}

/// Returns the rule for refused accesses: expected if the script provokes them, an error otherwise.
pub fn refusals(script: Option<&FaultScript>) -> Refusals {
    let provokes = |script: &FaultScript| script.refuses() || script.followed().next().is_some();
    if script.is_some_and(provokes) { Refusals::Scripted } else { Refusals::Unexpected }
}

/// Returns the failures that are not expected. An expected failure becomes a note.
fn of_verdict(expect: &Expectations, report: &mut Report) -> Vec<String> {
    match (expect.verdict, report.verdict) {
        (ExpectedVerdict::Pass, _) => std::mem::take(&mut report.failures),
        (ExpectedVerdict::Fail, Verdict::Fail) => {
            let expected = report.failures.drain(..).map(|failure| format!("as expected: {failure}"));
            report.notes.extend(expected);
            Vec::new()
        }
        (ExpectedVerdict::Fail, _) => vec!["expected the job to fail, and it passed".to_owned()],
    }
}

fn of_operations(expect: &Expectations, report: &Report) -> Option<String> {
    let errors: u64 = report.operations.iter().map(|operation| operation.errors).sum();
    (expect.operations_complete && errors > 0)
        .then(|| format!("expected every operation to complete, {errors} did not"))
}

fn of_time(expect: &Expectations, report: &Report) -> Option<String> {
    let most_ns = expect.elapsed_max_ns.filter(|most_ns| report.elapsed_ns > *most_ns)?;
    let (most, took) = (units::time(most_ns), units::time(report.elapsed_ns));
    Some(format!("expected to take at most {most}, took {took}"))
}

fn of_retransmissions(expect: &Expectations, report: &Report) -> Vec<String> {
    let count: u64 = report.links.iter().map(|link| link.retransmitted).sum();
    let too_few = expect.retransmitted_min.filter(|least| count < *least);
    let too_many = expect.retransmitted_max.filter(|most| count > *most);
    let too_few =
        too_few.map(|least| format!("expected at least {least} retransmissions, there were {count}"));
    let too_many =
        too_many.map(|most| format!("expected at most {most} retransmissions, there were {count}"));
    too_few.into_iter().chain(too_many).collect()
}

fn of_nodes(plan: &Plan, report: &Report) -> Option<String> {
    let names = |found: Vec<&str>| if found.is_empty() { "no node".to_owned() } else { found.join(", ") };
    let is_lost =
        |state: MemberState| matches!(state, MemberState::Killed | MemberState::Exited | MemberState::Lost);
    let lost = report.nodes.iter().filter(|node| is_lost(node.state)).map(|node| node.name.as_str());
    let lost: Vec<_> = lost.collect();
    let expected: Vec<_> =
        plan.expect.nodes_lost.iter().map(|node| plan.members[node.index()].name.as_str()).collect();
    (lost != expected).then(|| format!("expected to lose {}, lost {}", names(expected), names(lost)))
}
