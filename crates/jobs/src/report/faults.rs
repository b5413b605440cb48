//! What the events of a fault script did, read from what members say happened, and held against the script's expectations.
//!
//! Both engines hand in the same lines: who applied which event when, and what their links and paths went through. From these
//! follow, for everything that takes something away, how long nobody noticed and how long it took until the last path was changed.

use rackloom_plan::Plan;
use rackloom_plan::faults::{Ending, Fault, FaultEvent, FaultExpectations, FaultScript, Happen};
use rackloom_protocol::{Instant, NodeId, OperationError};
use serde::{Deserialize, Serialize};

use super::assemble::{Report, Verdict};
use super::events::EventRecord;
use super::fault_lines::STANDS_FOR;
use super::member::MemberState;

/// What a heartbeat takes on the wire behind another frame: its own 84 bytes, and the gap and checksum of the other.
const HEARTBEAT_WIRE_BYTES: u64 = 84 + 24;
/// The clock of simulated racks in reports, and why a link is told to be down there where only heartbeats tell.
const VIRTUAL: &str = "virtual";
const BY_HEARTBEATS: &str = rackloom_protocol::LinkCause::HeartbeatDead.name();
/// Kind of the line that says that an event begins or ends.
const KIND: &str = "fault";

/// What one event of the script did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultReport {
    /// Its place in the script, from one.
    pub event: usize,
    /// Its line in the script's file.
    pub line: u32,
    /// What and where, as the file has it.
    pub what: String,
    /// How often it began.
    pub times: u64,
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
    /// Heartbeats alone never find it sooner: one may have come just before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detection_least_ns: Option<u64>,
    /// Longest time from an end to the last link concerned that was up again, before anything else began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered_after_ns: Option<u64>,
    /// Beginnings that nobody noticed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unnoticed: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl EventRecord {
    /// The line that the event with this number begins or ends at `member`.
    #[must_use]
    pub fn of_fault(now: Instant, member: &str, number: usize, event: &FaultEvent, begins: bool) -> Self {
        let FaultEvent { label, line, .. } = event;
        let verb = if begins { "begins" } else { "ends" };
        let fields = [("event", (number + 1).to_string()), ("begins", begins.to_string())];
        Self {
            at_ns: now.0,
            member: member.to_owned(),
            kind: KIND.to_owned(),
            text: format!("{label} {verb} (line {line})"),
            fields: fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        }
    }
}

/// One time that an event was on.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from_ns: u64,
    /// When something else began, or this ended.
    to_ns: u64,
}

/// Put what the script did into the report, and judge the run by what the script expects.
pub fn judge(script: &FaultScript, plan: &Plan, report: &mut Report) {
    report.faults =
        (0..script.events.len()).map(|event| fault_report(script, plan, &report.events, event)).collect();
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
    failures.extend(of_happening(script, report));
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

fn fault_report(script: &FaultScript, plan: &Plan, events: &[EventRecord], event: usize) -> FaultReport {
    let FaultEvent { fault, label, line, .. } = &script.events[event];
    let stretches = stretches(events, event);
    let mut report = FaultReport {
        event: event + 1,
        line: *line,
        what: label.clone(),
        times: stretches.len() as u64 + beginnings_beyond(events, event),
        at_ns: stretches.first().map(|stretch| stretch.from_ns),
        ..FaultReport::default()
    };
    if fault.takes_away() {
        let edges = edges_of(fault, plan);
        let ways_ns = || edges.iter().map(|edge| way_ns(plan, *edge));
        report.detection_bound_ns = ways_ns().max().map(|way_ns| plan.timers.detection_ns() + way_ns);
        report.detection_least_ns = Some(least_silence_ns(plan));
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

/// The times that an event was on: each from its first member's beginning to the next change of anything.
fn stretches(events: &[EventRecord], event: usize) -> Vec<Stretch> {
    let number = (event + 1).to_string();
    let faults =
        || events.iter().filter(|record| record.kind == KIND && !record.fields.contains_key(STANDS_FOR));
    let is_own = |record: &&EventRecord| record.fields.get("event") == Some(&number);
    let begins = |record: &&EventRecord| record.fields.get("begins").is_some_and(|begins| begins == "true");
    let Some(first) = faults().filter(is_own).find(begins) else { return Vec::new() };
    // Every member that applies an event says so; one of them is enough to count.
    let own = faults().filter(is_own).filter(begins).filter(|record| record.member == first.member);
    own.map(|record| {
        let others = faults().filter(|other| !(is_own(other) && begins(other)));
        let next = others.map(|other| other.at_ns).find(|at_ns| *at_ns > record.at_ns);
        Stretch { from_ns: record.at_ns, to_ns: next.unwrap_or(u64::MAX) }
    })
    .collect()
}

/// The longest way of a heartbeat: behind the longest frame.
fn way_ns(plan: &Plan, edge: u16) -> u64 {
    let profile = &plan.links[usize::from(edge)].profile;
    let bits = 8 * (u64::from(plan.frame_bytes_max) + HEARTBEAT_WIRE_BYTES);
    let on_wire = |rate: u64| (u128::from(bits) * 1_000_000_000).div_ceil(u128::from(rate)) as u64;
    profile.latency_ns() + profile.rate_bits_per_s.map_or(0, on_wire)
}

/// The last heartbeat may have come just before the fault, or be on its way: what follows it is missed.
const fn least_silence_ns(plan: &Plan) -> u64 {
    let timers = &plan.timers;
    timers.heartbeat_interval_ns.saturating_mul(timers.heartbeat_miss_max.saturating_sub(1) as u64)
}

/// In virtual time a fault that only heartbeats can find is found neither sooner nor later than they must; judged where it is all that
/// happens.
fn of_heartbeats(script: &FaultScript, plan: &Plan, report: &Report) -> Option<String> {
    let ([event], [fault]) = (&script.events[..], &report.faults[..]) else { return None };
    let is_plain = event.fault.takes_away() && event.timing.every_ns.is_none();
    if report.clock != VIRTUAL || !is_plain {
        return None;
    }
    let (least_ns, most_ns) = (fault.detection_least_ns?, fault.detection_bound_ns?);
    let (begun_ns, took_ns) = (fault.at_ns?, fault.detected_after_ns?);
    let edges = edges_of(&event.fault, plan);
    let first = changes_to(plan, &report.events, &edges, "down").find(|record| record.at_ns >= begun_ns)?;
    let is_by_heartbeats = first.fields.get("cause").is_some_and(|cause| cause == BY_HEARTBEATS);
    let holds = least_ns < took_ns && took_ns <= most_ns;
    (is_by_heartbeats && !holds).then(|| {
        let what = format!("event 1 ({})", fault.what);
        format!("{what} was detected after {took_ns} ns; heartbeats alone take more than {least_ns} and at most {most_ns} ns")
    })
}

/// How often it began beyond the lines that are kept one by one.
fn beginnings_beyond(events: &[EventRecord], event: usize) -> u64 {
    let number = (event + 1).to_string();
    let begins = |record: &&EventRecord| {
        record.kind == KIND
            && record.fields.get("event") == Some(&number)
            && record.fields.get("begins").is_some_and(|begins| begins == "true")
    };
    let Some(first) = events.iter().find(begins) else { return 0 };
    let own = events.iter().filter(begins).filter(|record| record.member == first.member);
    own.filter_map(|record| record.fields.get(STANDS_FOR)?.parse::<u64>().ok()).sum()
}

fn edges_of(fault: &Fault, plan: &Plan) -> Vec<u16> {
    let struck = |node: NodeId| fault.members().contains(&node);
    let links = (0..).zip(&plan.links);
    let links = links.filter(|(edge, link)| {
        fault.ways().iter().any(|way| way.edge == *edge) || struck(link.edge.a) || struck(link.edge.b)
    });
    links.map(|(edge, _)| edge).collect()
}

/// How long it took until the first link concerned was told to be down.
fn detection(plan: &Plan, events: &[EventRecord], edges: &[u16], stretch: Stretch) -> Option<u64> {
    let mut downs = changes_to(plan, events, edges, "down");
    downs.find(|record| record.at_ns >= stretch.from_ns).map(|record| record.at_ns - stretch.from_ns)
}

/// How long it took from the end of this time until the last link concerned was up again.
fn recovery(
    plan: &Plan,
    events: &[EventRecord],
    edges: &[u16],
    event: usize,
    stretch: Stretch,
) -> Option<u64> {
    let number = (event + 1).to_string();
    let says = |record: &&EventRecord, begins: &str| {
        record.kind == KIND && record.fields.get("begins").is_some_and(|word| word == begins)
    };
    let next = events.iter().filter(|record| says(record, "true") && record.at_ns > stretch.to_ns);
    let next_ns = next.map(|record| record.at_ns).min().unwrap_or(u64::MAX);
    let ends = events.iter().filter(|record| {
        says(record, "false")
            && record.fields.get("event") == Some(&number)
            && record.at_ns >= stretch.from_ns
    });
    let end_ns = ends.map(|record| record.at_ns).filter(|at_ns| *at_ns < next_ns).max()?;
    let ups = changes_to(plan, events, edges, "up");
    ups.map(|record| record.at_ns)
        .filter(|at_ns| (end_ns..next_ns).contains(at_ns))
        .max()
        .map(|at_ns| at_ns - end_ns)
}

/// What the ends of these links told of a change to this state.
fn changes_to<'e>(
    plan: &'e Plan,
    events: &'e [EventRecord],
    edges: &'e [u16],
    state: &'e str,
) -> impl Iterator<Item = &'e EventRecord> {
    let graph = plan.graph();
    let is_concerned = move |record: &EventRecord| {
        let member = plan.node_named(&record.member)?;
        let port: usize = record.fields.get("port")?.strip_prefix("port")?.parse().ok()?;
        graph.ports(member).get(port).map(|(edge, ..)| edges.contains(edge))
    };
    let changes = events.iter().filter(move |record| {
        record.kind == "link-changed" && record.fields.get("to").is_some_and(|to| to == state)
    });
    changes.filter(move |record| is_concerned(record).unwrap_or(false))
}

/// How long it took until the last path was changed, if any was.
fn last_switch(events: &[EventRecord], stretch: Stretch, detected_after_ns: u64) -> Option<u64> {
    let from_ns = stretch.from_ns + detected_after_ns;
    let changes = events.iter().filter(|record| record.kind == "path-changed");
    let changes = changes.filter(|record| (from_ns..stretch.to_ns).contains(&record.at_ns));
    changes.map(|record| record.at_ns - stretch.from_ns).max()
}

/// Whether the job ended as it was to. What was expected is said all the same.
fn of_ending(ends: Ending, report: &mut Report) -> Vec<String> {
    let failures = std::mem::take(&mut report.failures);
    match (ends, report.verdict) {
        (Ending::Error, Verdict::Pass) => vec!["expected a clean error, and everything was right".to_owned()],
        (Ending::Right, _) => failures,
        (Ending::Error | Ending::Either, _) => {
            let wrong = std::mem::take(&mut report.wrong);
            let excused = failures.into_iter().filter(|failure| !wrong.contains(failure));
            report.notes.extend(excused.map(|failure| format!("a clean error: {failure}")));
            wrong
        }
    }
}

/// Who is lost, and whether everybody else got to an end.
fn of_losses(script: &FaultScript, plan: &Plan, report: &Report) -> Vec<String> {
    let expect = &script.expect;
    // A run that may be over before its faults may also be over before a new life has come.
    let may_be_dead = |node: NodeId| {
        let kills =
            |event: &FaultEvent| matches!(&event.fault, Fault::Kill(members) if members.contains(&node));
        expect.happen == Happen::Any && script.events.iter().any(kills)
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
            // A script that may be over before its faults may also spare those that these would have killed.
            (false, true) if expect.happen == Happen::All => {
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

fn of_happening(script: &FaultScript, report: &Report) -> Vec<String> {
    if script.expect.happen == Happen::Any {
        return Vec::new();
    }
    let missing = report.faults.iter().filter(|fault| fault.times == 0);
    let line = |fault: &FaultReport| {
        let FaultReport { event, line, what, .. } = fault;
        format!(
            "event {event} ({what}, line {line}) did not happen: the run was over first, and shows nothing about it"
        )
    };
    missing.map(line).collect()
}

fn of_times(script: &FaultScript, report: &Report) -> Vec<String> {
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
        // What was over again before it had to be noticed need not have been.
        let lasted = |most_ns: u64| event.timing.for_ns.is_none_or(|for_ns| for_ns > most_ns);
        if fault.unnoticed > 0 && event.fault.takes_away() && expect.detected_within_ns.is_some_and(lasted) {
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

fn of_counts(expect: &FaultExpectations, report: &Report) -> Vec<String> {
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

/// Of the slowest size of the sweep; without one, of the slowest kind of operation that has a goodput.
fn goodput_bits_per_s(report: &Report) -> u64 {
    let of_sweep = report.sweep.iter().filter_map(|row| Some((row.algorithm_gbps? * 8e9) as u64)).min();
    let operations = report.operations.iter().map(|operation| operation.goodput_bytes_per_s);
    let of_operations = operations.filter(|goodput| *goodput > 0).map(|goodput| goodput * 8).min();
    of_sweep.or(of_operations).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::assemble::NodeReport;
    use super::super::fault_lines::FaultLines;
    use super::*;

    fn plan() -> Plan {
        Plan::parse("{name: r, shape: {ring: {nodes: 4}}}", "r").expect("a rack")
    }

    fn record(at_ns: u64, member: &str, kind: &str, fields: &[(&str, &str)]) -> EventRecord {
        let fields: BTreeMap<_, _> =
            fields.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        EventRecord { at_ns, member: member.into(), kind: kind.into(), text: String::new(), fields }
    }

    /// A report of a run in which n0--n1 was down from 100 on, noticed at 150, with paths changed until 170.
    fn after_a_cut(script: &FaultScript) -> Report {
        let mut report = crate::report::Report::assemble(crate::report::Context::default(), &[]);
        report.events = vec![
            EventRecord::of_fault(Instant(100), "n0", 0, &script.events[0], true),
            EventRecord::of_fault(Instant(101), "n1", 0, &script.events[0], true),
            record(120, "n2", "link-changed", &[("port", "port0"), ("to", "down")]),
            record(150, "n1", "link-changed", &[("port", "port1"), ("to", "down")]),
            record(160, "n0", "path-changed", &[]),
            record(170, "n1", "path-changed", &[]),
            EventRecord::of_fault(Instant(200), "n0", 0, &script.events[0], false),
            record(290, "n0", "link-changed", &[("port", "port0"), ("to", "up")]),
            record(300, "n0", "path-changed", &[]),
            record(310, "n1", "link-changed", &[("port", "port1"), ("to", "up")]),
            record(320, "n2", "link-changed", &[("port", "port0"), ("to", "up")]),
        ];
        report
    }

    fn script(more: &str) -> FaultScript {
        let text =
            format!("name: t\nevents: [{{what: down, where: n0--n1, for: 100ns}}]\nexpect: {{{more}}}");
        FaultScript::parse(&text, "t", &plan()).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn the_neighbours_notice_and_the_last_path_are_told() {
        let script = script("");
        let mut report = after_a_cut(&script);
        judge(&script, &plan(), &mut report);
        let fault = &report.faults[0];
        assert_eq!((fault.times, fault.at_ns, fault.unnoticed), (1, Some(100), 0));
        assert_eq!((fault.detected_after_ns, fault.switched_after_ns), (Some(50), Some(70)));
        assert_eq!(fault.recovered_after_ns, Some(110), "the last of both ends, and no other link's");
        let bound_ns = plan().timers.detection_ns() + plan().links[0].profile.latency_ns();
        assert_eq!(fault.detection_bound_ns, Some(bound_ns));
        assert_eq!(report.failures, Vec::<String>::new());
    }

    #[test]
    fn the_slack_of_a_host_is_that_of_members_which_the_script_lets_run() {
        let told = |events: &str| {
            let script = format!("name: t\nevents: [{{what: down, where: n0--n1, for: 100ns}}{events}]");
            let script = FaultScript::parse(&script, "t", &plan()).unwrap_or_else(|error| panic!("{error}"));
            let late = |(name, timer_late_max_ns): (&str, _)| NodeReport {
                name: name.into(),
                pid: None,
                state: MemberState::Finished,
                paths: None,
                memory: None,
                timer_late_max_ns,
            };
            let nodes = [("n0", Some(7)), ("n1", Some(9)), ("n2", None), ("n3", Some(900))];
            let mut report = after_a_cut(&script);
            report.nodes = nodes.into_iter().map(late).collect();
            judge(&script, &plan(), &mut report);
            report.faults.iter().map(|fault| fault.scheduling_slack_ns).collect::<Vec<_>>()
        };
        assert_eq!(told(""), [Some(900)]);
        let paused = ", {what: pause, where: n3, for: 1s}";
        assert_eq!(told(paused), [Some(9), None], "n3 was stopped, and a pause has no bound");
    }

    #[test]
    fn in_virtual_time_heartbeats_find_a_cut_neither_too_soon_nor_too_late() {
        let text = "{name: r, shape: {ring: {nodes: 4}}, link: {delay: 500ns}, \
                    timers: {heartbeat_interval: 10ms, heartbeat_miss_max: 5}}";
        let plan = Plan::parse(text, "r").expect("a rack");
        let script = FaultScript::parse("name: t\nevents: [{what: down, where: n0--n1}]", "t", &plan)
            .unwrap_or_else(|error| panic!("{error}"));
        // (4 T, 5 T + d]
        let (least_ns, most_ns) = (40_000_000, 50_000_500);
        let failures = |clock: &str, took_ns: u64, cause: &str| {
            let mut report = crate::report::Report::assemble(crate::report::Context::default(), &[]);
            let fields = [("port", "port0"), ("to", "down"), ("cause", cause)];
            report.events = vec![
                EventRecord::of_fault(Instant(100), "n0", 0, &script.events[0], true),
                record(100 + took_ns, "n0", "link-changed", &fields),
            ];
            report.clock = clock.to_owned();
            judge(&script, &plan, &mut report);
            assert_eq!(report.faults[0].detection_least_ns, Some(least_ns));
            report.failures.len()
        };
        assert_eq!(failures("virtual", least_ns, BY_HEARTBEATS), 1, "too soon");
        assert_eq!(failures("virtual", least_ns + 1, BY_HEARTBEATS), 0);
        assert_eq!(failures("virtual", most_ns, BY_HEARTBEATS), 0);
        assert_eq!(failures("virtual", most_ns + 1, BY_HEARTBEATS), 1, "too late");
        assert_eq!(failures("virtual", 5, "carrier"), 0, "something else has told");
        assert_eq!(failures("wall", most_ns + 1, BY_HEARTBEATS), 0, "who waits for a processor is later");
    }

    #[test]
    fn each_bound_can_be_missed() {
        for (more, told) in [
            ("detected_within: 49ns", "detected after 50 ns"),
            ("detected_within: 60ns, switched_within: 69ns", "switched after 70 ns"),
            ("recovered_within: 109ns", "recovered after 110 ns"),
            ("retransmitted_min: 1", "at least 1 retransmissions"),
            ("goodput_min: 1bit/s", "goodput of 1 bit/s"),
            ("ends: clean-error", "expected a clean error"),
        ] {
            let script = script(more);
            let mut report = after_a_cut(&script);
            judge(&script, &plan(), &mut report);
            assert_eq!(report.verdict, Verdict::Fail, "{more}");
            assert!(report.failures.iter().any(|line| line.contains(told)), "{more}: {:?}", report.failures);
        }
    }

    #[test]
    fn a_fault_that_did_not_happen_proves_nothing() {
        for (more, failures) in [("", 1), ("happen: any", 0)] {
            let script = script(more);
            let mut report = after_a_cut(&script);
            report.events.clear();
            judge(&script, &plan(), &mut report);
            assert_eq!(report.failures.len(), failures, "{:?}", report.failures);
        }
    }

    #[test]
    fn who_finds_no_memory_at_somebody_new_has_a_clean_error_and_at_anybody_else_has_not() {
        let text = |name: &str| format!("n0: broke off: fetch-add-8 to {name} ended with: no-such-region");
        let ended = |events: &str, line: String| {
            let script = format!("name: t\nevents: [{events}]\nexpect: {{ends: right-or-clean-error}}");
            let script = FaultScript::parse(&script, "t", &plan()).unwrap_or_else(|error| panic!("{error}"));
            let mut report = after_a_cut(&script);
            report.verdict = Verdict::Fail;
            (report.failures, report.refused, report.wrong) =
                (vec![line.clone()], vec![line.clone()], vec![line]);
            judge(&script, &plan(), &mut report);
            report.failures.iter().any(|failure| failure.contains("no-such-region"))
        };
        let restart = "{what: kill, where: n1, for: 20ms}";
        assert!(!ended(restart, text("n1")));
        assert!(ended(restart, text("n2")), "n2 has its memory");
        assert!(ended("{what: fail-memory, where: n1, rate: 1%}", text("n1")), "memory that fails is there");
    }

    #[test]
    fn beginnings_that_are_kept_as_a_number_count() {
        let script = script("ends: right");
        let mut lines = FaultLines::default();
        for number in 0..1_000 {
            lines.push(EventRecord::of_fault(Instant(number), "n0", 0, &script.events[0], number % 2 == 0));
        }
        let report = fault_report(&script, &plan(), &lines.into_records(), 0);
        assert_eq!((report.times, report.at_ns), (500, Some(0)));
    }

    #[test]
    fn a_clean_error_is_none_if_anything_was_wrong() {
        let script = script("ends: right-or-clean-error");
        let judged = |wrong: &[&str]| {
            let mut report = after_a_cut(&script);
            report.verdict = Verdict::Fail;
            report.failures = vec!["n1: lost nodes [n3]".into(), "n2: 1 mismatches".into()];
            report.wrong = wrong.iter().map(|line| (*line).to_owned()).collect();
            judge(&script, &plan(), &mut report);
            report.verdict
        };
        assert_eq!(judged(&[]), Verdict::Pass);
        assert_eq!(judged(&["n2: 1 mismatches"]), Verdict::Fail);
    }
}
