//! Findings of an engine beside its members' reports, and the exit of a run from its report.

use rackloom_jobs::report::{Context, EventRecord, Manifest, MemberSeat, Report, Verdict};
use rackloom_plan::Plan;
use rackloom_protocol::MemberRole;

use super::exit::Exit;
use super::failure::Failure;

/// Findings of an engine beside its members' reports.
#[derive(Debug)]
pub struct Findings {
    /// Failures of the run as a whole.
    pub failures: Vec<String>,
    /// Duration of the run on its clock.
    pub elapsed_ns: u64,
    /// Name of the wire.
    pub wire: &'static str,
    /// Name of the clock.
    pub clock: &'static str,
    /// Hash of the trace, in virtual time.
    pub trace_hash: Option<String>,
    /// Events of the fault script.
    pub events: Vec<EventRecord>,
}

/// Returns the context of a report: the names of the plan and the findings of the engine.
#[must_use]
pub fn context(plan: &Plan, findings: Findings) -> Context {
    let seat = |member: &rackloom_plan::MemberPlan| MemberSeat {
        name: member.name.clone(),
        has_job: member.role == MemberRole::Endpoint,
    };
    Context {
        members: plan.members.iter().map(seat).collect(),
        links: plan.links.iter().map(|link| (link.edge.a.0, link.edge.b.0)).collect(),
        clock: findings.clock.to_owned(),
        seed: plan.settings.seed,
        trace_hash: findings.trace_hash,
        elapsed_ns: findings.elapsed_ns,
        manifest: Manifest {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: super::meta::COMMIT.to_owned(),
            config_hash: format!("{:016x}", plan.config_hash),
        },
        wire: findings.wire.to_owned(),
        job: plan.job.kind.name().to_owned(),
        failures: findings.failures,
        events: findings.events,
        topology: Some(super::topology::topology(plan)),
    }
}

/// Returns a note for the report of a rack of several hosts without a key.
#[must_use]
pub fn unauthenticated(plan: &Plan) -> Option<String> {
    let is_exposed = plan.hosts.len() > 1 && !plan.is_sealed();
    is_exposed.then(|| {
        "unauthenticated: any sender on the network between the hosts can change this run; \
         `security: {key_file: PATH}` prevents that"
            .to_owned()
    })
}

/// Adds the notes about captures to the report. Returns the exit, and the failure if the captures could not
/// be written. A failure changes the exit only of a run that passed.
pub fn note_captures(
    report: &mut Report,
    captured: Result<Vec<String>, Failure>,
    exit: Exit,
) -> (Exit, Option<Failure>) {
    match captured {
        Ok(notes) => {
            report.notes.extend(notes);
            (exit, None)
        }
        Err(failure) => (if exit == Exit::Pass { failure.exit } else { exit }, Some(failure)),
    }
}

/// Returns the exit of a run that ended in order.
#[must_use]
pub fn exit_of(report: &Report) -> Exit {
    match report.verdict {
        Verdict::Pass => Exit::Pass,
        Verdict::Fail => Exit::Fail,
        Verdict::CouldNotTell => Exit::NoVerdict,
        Verdict::Starved => Exit::Starved,
    }
}
