//! `rackloom schedule`: prints the schedule of a collective, without running it.
//!
//! For one algorithm it prints the schedule; for several, the cost of each. Without an algorithm it prints
//! the candidates, because the choice depends on measurements of the links.

use std::num::NonZeroUsize;

use rackloom_collectives::algorithm::candidates;
use rackloom_collectives::{Algorithm, AlgorithmKind, Request, Schedule, build, print};
use rackloom_plan::{CollectivePlan, JobKind, Plan};

use rackloom_runtime::request::work::{RackRequest, collective};

use crate::arguments::{Output, ScheduleArguments};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{present, reporting};

/// Prints the schedule of the rack's collective.
pub(crate) fn run(arguments: &ScheduleArguments) -> Result<Exit, Failure> {
    let plan = RackRequest::read(&arguments.file, &arguments.schedule.overrides())?.plan()?;
    let JobKind::Collective(job) = plan.job.kind else {
        let what = format!("job {} has no schedule", plan.job.kind.name());
        return Err(Failure::bad_input(what).hint("name a collective, such as --collective all-reduce"));
    };
    let text = match job.algorithm.kinds() {
        [] => choices(&plan, &job)?,
        [kind] => print::table(&schedule(&plan, &job, kind.with_segments(segments(&job)))?, arguments.rounds),
        kinds => several(&plan, &job, kinds)?,
    };
    reporting::print_text(&Output { json: None }, text.trim_end())?;
    Ok(Exit::Pass)
}

fn segments(job: &CollectivePlan) -> NonZeroUsize {
    NonZeroUsize::new(job.segments as usize).unwrap_or(NonZeroUsize::MIN)
}

/// Returns the schedule for the largest size.
fn schedule(plan: &Plan, job: &CollectivePlan, algorithm: Algorithm) -> Result<Schedule, Failure> {
    let largest_bytes = if job.collective.moves_data() { job.sweep.sizes.largest_bytes() } else { 0 };
    let elements = largest_bytes / job.element.bytes() as u64;
    let servers = plan.server_of_each_rank();
    let algorithm = plan.reducing_switches().map_or(algorithm, |switches| algorithm.over_switches(switches));
    let request = Request {
        collective: collective(job),
        ranks: plan.endpoint_count(),
        elements: usize::try_from(elements).unwrap_or(usize::MAX),
        servers: &servers,
        parts: &[],
    };
    build(&request, algorithm).map_err(|refused| Failure::bad_input(refused.to_string()))
}

/// Formats the cost of each named algorithm.
fn several(plan: &Plan, job: &CollectivePlan, kinds: &[AlgorithmKind]) -> Result<String, Failure> {
    let schedules: Result<Vec<_>, _> =
        kinds.iter().map(|kind| schedule(plan, job, kind.with_segments(segments(job)))).collect();
    let reason = "measured one after the other at each size";
    Ok(present::schedules(&schedules?, job.element.bytes() as u64, reason))
}

/// Formats the candidates of `auto`.
fn choices(plan: &Plan, job: &CollectivePlan) -> Result<String, Failure> {
    let mut schedules = Vec::new();
    for algorithm in candidates(collective(job), segments(job), &plan.server_of_each_rank()) {
        // An algorithm may not support this number of ranks.
        if let Ok(schedule) = schedule(plan, job, algorithm) {
            schedules.push(schedule);
        }
    }
    if schedules.is_empty() {
        return Err(Failure::bad_input(format!("no algorithm can do {}", job.collective)));
    }
    let reason = "chosen while the rack runs, by trial runs of each (in virtual time by closed forms)";
    Ok(present::schedules(&schedules, job.element.bytes() as u64, reason))
}
