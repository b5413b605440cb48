//! Report and exit of a rack that has ended.

use std::collections::BTreeMap;

use rackloom_jobs::Oracle;
use rackloom_jobs::report::{Context, MemberReport, MemberState, Refusals, Report, Verdict};
use rackloom_plan::faults::FaultScript;
use rackloom_plan::{JobKind, Plan};
use rackloom_protocol::NodeId;

use super::hosts::Hosts;
use super::rack::{Ending, Rack, Seat};
use super::{Supervisor, starved};
use crate::capture::CaptureFiles;
use crate::machine::logging;
use crate::outcome::exit::Exit;
use crate::outcome::expectations;
use crate::outcome::failure::Failure;
use crate::outcome::findings::{self, Findings};
use crate::outcome::{meta, workload};
use crate::{capture, units};

/// Report and exit of a rack that has ended.
#[derive(Debug)]
pub struct Conclusion {
    /// The report.
    pub report: Report,
    /// Outcome of the run.
    pub exit: Exit,
    /// Failure to write captures. It decides the exit of a run that passed.
    pub capture_failure: Option<Failure>,
}

impl Supervisor {
    /// Returns the files in which the rack records frames, if it does.
    pub(crate) fn captures(&self) -> Option<CaptureFiles> {
        capture::files_of(&self.source.capture, self.clock.origin_ns())
    }

    /// Joins the reports of the members and judges the run.
    ///
    /// # Errors
    /// The rack did not come up.
    pub(crate) fn conclude(self) -> Result<Conclusion, Failure> {
        let mut at_rest = self.verdicts_at_rest();
        if self.finished_at_ns.is_some() {
            let is_over = matches!(self.rack.ending, Some(Ending::Complete | Ending::TakenDown));
            let silent = self.rack.seats.iter().filter(|seat| seat.report.is_some() && seat.rest.is_none());
            for seat in silent.filter(|_| is_over) {
                if self.fault_names.is_empty() {
                    // Without faults the machine may be busy.
                    at_rest.pass_over(Oracle::Progress);
                    continue;
                }
                let what = || format!("{} did not report its state after all faults had ended", seat.name);
                at_rest.find(Oracle::Progress, what);
            }
        }
        if self.finished_at_ns.is_none() && self.rack.ending == Some(Ending::TakenDown) {
            // During a job no member is at rest, and programs on taken seats do not report.
            at_rest.pass_over(Oracle::Progress);
            at_rest.pass_over(Oracle::Credits);
        }
        let Self {
            plan,
            rack,
            clock,
            source,
            hosts,
            faults,
            fault_lines,
            fault_names,
            finished_at_ns,
            stays,
            ..
        } = self;
        let elapsed_ns = finished_at_ns.unwrap_or(clock.now().0);
        let captures = capture::files_of(&source.capture, clock.origin_ns());
        let captured = captures.map_or(Ok(Vec::new()), |files| files.join(&plan));
        let ending = rack.ending.clone().unwrap_or(Ending::Complete);
        let refused = hosts.as_ref().and_then(Hosts::refused);
        let notes: Vec<_> = findings::unauthenticated(&plan).into_iter().chain(refused).collect();
        let (missed, awaited) = leave_hosts(hosts, &rack);
        if let Ending::CouldNotStart(what) = ending {
            return Err(Failure::of_line(Exit::CouldNotStart, &what));
        }
        let node_lost = has_unplanned_death(&plan, faults.as_ref(), &rack) || !missed.is_empty();
        let has_died = node_lost || rack.seats.iter().any(|seat| seat.death.is_some());
        let limit_ns =
            if ending == Ending::Stalled { plan.settings.watchdog_ns } else { plan.timers.detection_ns() }
                / 2;
        let facts = starved::Facts { has_died, has_faults: !fault_names.is_empty(), limit_ns };
        // A standing rack is taken down host by host.
        let mut failures = if ending == Ending::TakenDown { Vec::new() } else { missed };
        if let Ending::LostEarly(what) = &ending {
            failures.push(what.clone());
        }
        if ending == Ending::Interrupted {
            failures.push("interrupted".to_owned());
        }
        if ending == Ending::Stalled {
            failures.push(format!("no progress for {}", units::time(plan.settings.watchdog_ns)));
            failures.extend(awaited);
            let reports_it =
                |seat: &&Seat| seat.report.as_ref().is_some_and(|report| !report.waiting.is_empty());
            // The reports of the other members contain their lines.
            for seat in rack.seats.iter().filter(|seat| !reports_it(seat)) {
                let lines = seat.waiting.as_deref().unwrap_or(&[]);
                failures.extend(lines.iter().map(|line| format!("{} waits: {line}", seat.name)));
            }
        }
        let has_job = plan.job.kind != JobKind::None;
        if ending == Ending::TakenDown && !has_job {
            failures.extend(rack.seats.iter().filter(|seat| seat.is_hung).map(hung_failure));
        }
        let log_notes = log_notes(&rack.seats);
        let shown = shown_members(&rack.seats);
        let mut members: Vec<_> = rack.seats.into_iter().take(shown).map(member_report).collect();
        let findings = Findings {
            failures,
            elapsed_ns,
            wire: plan.settings.wire.name(),
            clock: "wall",
            trace_hash: None,
            events: fault_lines.into_records(),
        };
        let mut context = findings::context(&plan, findings);
        context.members.truncate(shown);
        context.links.retain(|(_, end)| usize::from(*end) < shown);
        if ending == Ending::TakenDown && !has_job {
            judge_no_job(&mut context, &mut members);
        }
        let mut report = Report::assemble(context, &members);
        report.notes.extend(notes);
        report.notes.extend(log_notes);
        let explained = report.failures.clone();
        if matches!(ending, Ending::Complete | Ending::TakenDown) {
            expectations::judge(&plan, faults.as_ref(), &mut report);
        }
        report.add_oracles(&at_rest);
        let has_programs =
            stays || fault_names.len() > faults.as_ref().map_or(0, |script| script.events.len());
        let refusals = if has_programs { Refusals::Unknown } else { expectations::refusals(faults.as_ref()) };
        report.judge_refusals(refusals);
        if ending != Ending::Interrupted {
            starved::judge(&mut report, &explained, facts);
        }
        let exit = match ending {
            Ending::Interrupted => Exit::Interrupted,
            _ if report.verdict == Verdict::Starved => Exit::Starved,
            Ending::Stalled => Exit::Stalled,
            // A loss that the script or the file expects does not decide the exit, in either engine.
            _ if node_lost && report.verdict == Verdict::Fail => Exit::NodeLost,
            _ => findings::exit_of(&report),
        };
        let (exit, capture_failure) = findings::note_captures(&mut report, captured, exit);
        report.meta = Some(meta::of(&plan, &source.command));
        workload::complete(&mut report, &plan, source.workload.as_ref());
        Ok(Conclusion { report, exit, capture_failure })
    }
}

/// Returns the number of members in the report: all but the process seats after the last one that a process holds. Members and links
/// of processes come last in the plan, so the numbers of the others stay right.
fn shown_members(seats: &[Seat]) -> usize {
    let is_shown = |seat: &Seat| seat.process_of.is_none() || !seat.is_vacant();
    seats.iter().rposition(is_shown).map_or(0, |last| last + 1)
}

fn hung_failure(seat: &Seat) -> String {
    format!("{}: {}", seat.name, seat.death.as_deref().unwrap_or("sent no report"))
}

/// Removes lost nodes from the judgement of a standing rack without a job. Programs take its seats and leave,
/// so a member that has left is no failure. The report names its state.
fn judge_no_job(context: &mut Context, members: &mut [MemberReport]) {
    context.members.iter_mut().for_each(|seat| seat.has_job = false);
    for job in members.iter_mut().filter_map(|member| member.job.as_mut()) {
        job.lost_nodes.clear();
    }
}

/// Returns true if a GPU node died and neither the fault script nor, without one, the rack file allows it.
fn has_unplanned_death(plan: &Plan, faults: Option<&FaultScript>, rack: &Rack) -> bool {
    let died = |seat: &Seat| seat.is_endpoint && (seat.death.is_some() || !seat.earlier_deaths.is_empty());
    let mut dead = (0..).map(NodeId).zip(&rack.seats).filter(|(_, seat)| died(seat));
    dead.any(|(node, _)| !expectations::may_lose(plan, faults, node))
}

/// Returns a note for each error of writing logs, with the names of the members.
fn log_notes(seats: &[Seat]) -> Vec<String> {
    let mut names = BTreeMap::<&str, Vec<&str>>::new();
    for seat in seats {
        if let Some(error) = &seat.log_error {
            names.entry(error).or_default().push(&seat.name);
        }
    }
    if let Some(error) = logging::first_error() {
        names.entry(error).or_default().push("the supervisor");
    }
    names
        .iter()
        .map(|(error, names)| format!("cannot write the log of {}: {error}", names.join(", ")))
        .collect()
}

/// Sends a departure to the other hosts. Returns the hosts that are missing, and the hosts that never came.
fn leave_hosts(hosts: Option<Hosts>, rack: &Rack) -> (Vec<String>, Vec<String>) {
    let Some(mut hosts) = hosts else { return Default::default() };
    hosts.leave(rack);
    (hosts.missed(), hosts.awaited())
}

/// Returns the report of a seat. A seat without a report gets an empty one. The counters of the ports are those of all its processes.
fn member_report(mut seat: Seat) -> MemberReport {
    let ports = seat.take_ports();
    let state = match &seat.death {
        _ if seat.is_elsewhere() => MemberState::Elsewhere,
        _ if seat.is_vacant() => MemberState::Unstarted,
        None => MemberState::Lost,
        Some(how) if how.starts_with("killed") => MemberState::Killed,
        Some(_) => MemberState::Exited,
    };
    let pid = (!seat.is_vacant()).then_some(seat.pid);
    let mut report = seat.report.unwrap_or_else(|| MemberReport::silent(seat.name, pid, state));
    report.pid = pid;
    report.ports = ports;
    report
}
