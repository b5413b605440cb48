//! Checks a script that could be read: faults without an effect on this rack, and expectations that the
//! script itself contradicts.

use rackloom_protocol::NodeId;

use crate::faults::{ExpectedEnd, Fault, FaultEvent, FaultScript, JobPosition, Trigger};
use crate::model::links::wire::{Checks, WireKind};
use crate::model::plan::Plan;
use crate::read::fields::Reader;
use crate::read::mistake::{Complaint, Position, quoted};
use crate::setting::quantity::{Unit, shown};

/// Reports contradictions in a script. `positions` are the positions of the events in the file, and `expect_at` is the position of
/// the expectations. `is_whole` is true if no event was left out because it could not be read.
pub(super) fn check(
    reader: &mut Reader<'_>,
    plan: &Plan,
    script: &FaultScript,
    positions: &[Position],
    expect_at: Position,
    is_whole: bool,
) {
    for (event, position) in script.events.iter().zip(positions) {
        check_event(reader, plan, event, *position);
    }
    check_times(reader, script, positions);
    check_bounds(reader, script, expect_at);
    // An event that is missed here may be one that could not be read.
    if is_whole {
        check_losses(reader, plan, script, positions, expect_at);
        check_detection(reader, script, expect_at);
    }
}

fn check_event(reader: &mut Reader<'_>, plan: &Plan, event: &FaultEvent, position: Position) {
    if event.fault.directions().is_empty() && event.fault.members().is_empty() {
        let message = format!("{} touches no link", quoted(&event.label));
        reader.complain(
            position,
            Complaint::about(message).hint("name members on one side, and leave some on the other"),
        );
    }
    if let Fault::Links { directions, conditions } = &event.fault {
        let unlimited =
            directions.iter().find(|direction| link(plan, direction.edge).profile.rate_bits_per_s.is_none());
        if let Some(direction) = unlimited.filter(|_| conditions.rate_share < 1.0) {
            let message = format!("{} has no rate of which a share could be left", direction.name(plan));
            reader.complain(
                position,
                Complaint::about(message).hint("give the link a `rate` in the rack file"),
            );
        }
        if conditions.corrupt > 0.0 && plan.settings.checks == Checks::Never {
            let complaint =
                Complaint::about("no check would detect a flipped bit: the rack has `checks: never`");
            reader.complain(position, complaint.hint("leave `checks` at `auto` in the rack file"));
        }
        if conditions.is_unplugged && plan.has_bridges() && plan.settings.wire == WireKind::Packet {
            let complaint =
                Complaint::about("links at a bridge share an interface, which cannot be unplugged for one");
            reader.complain(position, complaint.hint("say `what: down`"));
        }
    }
    if let (Fault::QueuePairs { .. }, Some(node)) = (&event.fault, event.fault.members().first())
        && plan.processes_of(*node).next().is_none()
    {
        let complaint = Complaint::about("the jobs of this rack have no queue pairs");
        let hint = "inject it into a rack for programs: `rackloom up FILE --seats programs`";
        reader.complain(position, complaint.hint(hint));
    }
    if let Trigger::Reached { position: awaited, .. } = event.trigger {
        check_progress(reader, plan, awaited, position);
    }
}

/// Reports a run or step that the job does not have.
fn check_progress(reader: &mut Reader<'_>, plan: &Plan, awaited: JobPosition, position: Position) {
    let JobPosition { run, step } = awaited;
    let job = plan.job.kind.name();
    if !plan.job.kind.has_steps() {
        let message = format!("job {job} has no runs and steps to wait for");
        let hint = "use `at` or `after`, or run a job (`--collective all-reduce`)";
        reader.complain(position, Complaint::about(message).hint(hint));
    }
    let Some(JobPosition { run: runs, step: steps }) = JobPosition::last(plan) else { return };
    if run > runs || step > steps {
        let message = format!("job {job} never comes to run {run}, step {step}");
        let hint = format!("its runs are 1 to {runs}, their steps 1 to {steps}");
        reader.complain(position, Complaint::about(message).hint(hint));
    }
}

fn link(plan: &Plan, edge: u16) -> &crate::model::links::link::LinkPlan {
    &plan.links[usize::from(edge)]
}

/// Reports events that begin after the run must be over.
fn check_times(reader: &mut Reader<'_>, script: &FaultScript, positions: &[Position]) {
    let Some(most_ns) = script.expect.elapsed_max_ns else { return };
    for (event, position) in script.events.iter().zip(positions) {
        if let Trigger::At(at_ns) = event.trigger
            && at_ns >= most_ns
        {
            let most = shown(most_ns, Unit::Nanoseconds);
            let message =
                format!("{} begins after the job's end: `elapsed_max` is {most}", quoted(&event.label));
            reader.complain(*position, Complaint::about(message).hint("let it begin earlier"));
        }
    }
}

/// Compares killed members with members that are expected to be lost.
fn check_losses(
    reader: &mut Reader<'_>,
    plan: &Plan,
    script: &FaultScript,
    positions: &[Position],
    expect_at: Position,
) {
    let name = |node: &NodeId| plan.members[node.index()].name.clone();
    let kills = script.kills();
    let lost = &script.expect.lost;
    for node in lost.iter().filter(|node| !kills.contains(node)) {
        let message = format!("{} is expected to be lost, and no event kills it for good", name(node));
        reader.complain(
            expect_at,
            Complaint::about(message).hint("take it from `lost`, or add a `kill` without `for`"),
        );
    }
    for (event, position) in script.events.iter().zip(positions) {
        let Fault::Kill(members) = &event.fault else { continue };
        let is_for_good = event.timing.for_ns.is_none();
        for node in members.iter().filter(|node| is_for_good && !lost.contains(node)) {
            let message = format!("{} is killed for good and not expected to be lost", name(node));
            reader.complain(
                *position,
                Complaint::about(message).hint("add it to `lost`, or give the event a `for`"),
            );
        }
        let is_rank = |node: &NodeId| node.index() < plan.endpoint_count();
        if script.expect.ends == ExpectedEnd::Right
            && script.expect.happen == crate::faults::RequiredEvents::All
            && let Some(node) = members.iter().find(|node| is_rank(node))
        {
            let message = format!("the job cannot end right without {}, which has a part in it", name(node));
            reader.complain(
                *position,
                Complaint::about(message).hint("expect `ends: right-or-clean-error`, or kill a switch"),
            );
        }
    }
}

/// Reports bounds that contradict each other.
fn check_bounds(reader: &mut Reader<'_>, script: &FaultScript, expect_at: Position) {
    let expect = &script.expect;
    if let (Some(least), Some(most)) = (expect.retransmitted_min, expect.retransmitted_max)
        && least > most
    {
        let complaint =
            Complaint::about(format!("at least {least} and at most {most} packets cannot be sent again"));
        reader.complain(expect_at, complaint.hint("swap `retransmitted_min` and `retransmitted_max`"));
    }
    if let (Some(detected_ns), Some(switched_ns)) = (expect.detected_within_ns, expect.switched_within_ns)
        && switched_ns < detected_ns
    {
        let complaint = Complaint::about("no path changes before the fault is detected");
        reader
            .complain(expect_at, complaint.hint("make `switched_within` no shorter than `detected_within`"));
    }
}

/// Reports time bounds for faults that no neighbour can detect.
fn check_detection(reader: &mut Reader<'_>, script: &FaultScript, expect_at: Position) {
    let expect = &script.expect;
    let within = [expect.detected_within_ns, expect.switched_within_ns, expect.recovered_within_ns];
    let is_expected = within.iter().any(Option::is_some);
    if is_expected && !script.events.iter().any(|event| event.fault.blocks_traffic()) {
        let complaint = Complaint::about("there is nothing to be detected: no event takes anything away");
        reader.complain(
            expect_at,
            complaint.hint("leave `detected_within`, `switched_within` and `recovered_within` out, or add a `down`, `unplug`, `partition` or `kill`"),
        );
    }
}
