//! Adds the objections of a judge to the mistakes of the file.
//!
//! A judge receives the finished plan, in which every value that could not be read has a default. Its objections to such a
//! value are discarded, because the value has been reported. If a size or a number of the job has a mistake, the judge receives
//! a job with the smallest sizes, and only objections that do not depend on sizes are used: those to algorithm and tenants.
use rackloom_protocol::MemberRole;

use crate::check::inspection::Inspection;
use crate::model::jobs::job::{CollectivePlan, JobKind, Sizes, Sweep, TrafficPlan};
use crate::model::objection::{Objection, Subject};
use crate::model::plan::Plan;
use crate::read::mistake::Complaint;

/// Calls the judge, if there is a job and a complete shape.
pub(super) fn check(check: &mut Inspection<'_>, judge: &dyn Fn(&Plan) -> Vec<Objection>) {
    if !check.intact(&["shape", "job"]) || check.plan.endpoint_count() < 2 {
        return;
    }
    let is_whole = check.intact_below("job");
    let mut objections = if is_whole { judge(check.plan) } else { judge(&without_numbers(check.plan)) };
    objections.retain(|one| is_whole || matches!(one.about, Subject::Algorithm | Subject::Tenants));
    for Objection { about, message, hint } in objections {
        let paths = paths(check, about);
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let is_known = about == Subject::Memory && check.job_is_too_large;
        if !is_known && check.intact(&paths) {
            check.complain(&paths, Complaint::about(message).hint(hint));
        }
    }
}

/// Returns the plan with the smallest job of its kind.
fn without_numbers(plan: &Plan) -> Plan {
    let least = Sweep { sizes: Sizes::one(0), repetitions: 1, warm_up: 0 };
    let mut plan = plan.clone();
    plan.job.kind = match plan.job.kind {
        JobKind::Collective(job) => JobKind::Collective(CollectivePlan {
            collective: job.collective,
            algorithm: job.algorithm,
            sweep: least,
            ..CollectivePlan::default()
        }),
        JobKind::Latency(_) => JobKind::Latency(least),
        JobKind::Bandwidth(_) => JobKind::Bandwidth(least),
        JobKind::Traffic(plan) => JobKind::Traffic(TrafficPlan { bytes: 1, messages: 1, ..plan }),
        JobKind::Litmus | JobKind::None => JobKind::None,
    };
    plan
}

/// Returns the paths to point at, the best one first.
fn paths(check: &Inspection<'_>, about: Subject) -> Vec<String> {
    let mut paths = match about {
        Subject::Collective => vec!["job.collective.collective".to_owned()],
        Subject::Algorithm => {
            vec!["job.collective.algorithm".to_owned(), "job.collective.collective".to_owned()]
        }
        Subject::Memory => {
            let mut paths = vec![memory_of_the_smallest(check)];
            paths.extend(size_paths(check.plan.job.kind));
            paths
        }
        Subject::Tenants => tenants(check),
    };
    paths.extend(["job".to_owned(), "shape".to_owned()]);
    paths
}

/// Returns the paths of the keys that determine the job's memory.
pub(super) fn size_paths(job: JobKind) -> Vec<String> {
    match job {
        JobKind::Litmus => vec!["job.litmus.bytes_max".to_owned()],
        JobKind::Traffic(_) => vec!["job.traffic.bytes".to_owned()],
        job => ["bytes", "sizes.to", "sizes.from", "sizes.factor"]
            .map(|key| format!("job.{}.{key}", job.name()))
            .into(),
    }
}

fn memory_of_the_smallest(check: &Inspection<'_>) -> String {
    let endpoints = check.plan.members.iter().filter(|member| member.role == MemberRole::Endpoint);
    let smallest = endpoints.min_by_key(|member| member.memory_bytes);
    let origin =
        smallest.and_then(|member| check.positions.origin_of(&format!("nodes.{}.memory", member.name)));
    origin.unwrap_or("defaults.memory").to_owned()
}

/// Returns the paths that assign the first node to another tenant than the node before it, and the paths for that node.
fn tenants(check: &Inspection<'_>) -> Vec<String> {
    let endpoints = check.plan.members.iter().filter(|member| member.role == MemberRole::Endpoint);
    let endpoints: Vec<_> = endpoints.collect();
    let odd = endpoints.windows(2).find(|pair| pair[0].tenant != pair[1].tenant);
    let pair = odd.into_iter().flat_map(|pair| [pair[1], pair[0]]);
    pair.filter_map(|member| check.positions.origin_of(&format!("nodes.{}.tenant", member.name)))
        .map(str::to_owned)
        .collect()
}
