//! Checks the settings of the job and the expectations.

use rackloom_collectives::{AlgorithmKind, CollectiveKind};

use crate::check::inspection::{Fit, Inspection};
use crate::model::jobs::job::{CollectivePlan, JobKind, JobPlan, Sizes};
use crate::model::links::wire::PayloadMode;
use crate::read::mistake::Complaint;
use crate::schema::{self, Table};
use crate::setting::quantity::{Unit, shown};

pub(super) fn check(check: &mut Inspection<'_>) {
    for job in check.jobs {
        settings(check, job);
        payload(check, job);
    }
    expectations(check);
}

fn settings(check: &mut Inspection<'_>, job: &JobPlan) {
    let path_of = |_: &Inspection<'_>, key: &str| format!("job.{}.{key}", job.kind.name());
    check.ranges_in(|visit| job.kind.visit(&job.litmus, visit), &path_of);
    match job.kind {
        JobKind::None | JobKind::Litmus | JobKind::Traffic(_) => {}
        JobKind::Latency(plan) => sizes(check, &schema::LATENCY, plan.sizes),
        JobKind::Bandwidth(plan) => sizes(check, &schema::BANDWIDTH, plan.sizes),
        JobKind::Collective(plan) => {
            sizes(check, &schema::COLLECTIVE, plan.sweep.sizes);
            elements(check, &plan);
            meaningless(check, plan.collective);
            segments(check, &plan);
        }
    }
}

/// Jobs that check data need the payload.
fn payload(check: &mut Inspection<'_>, job: &JobPlan) {
    let (mode, name) = (check.plan.settings.payload, job.kind.name());
    if !matches!(job.kind, JobKind::Litmus) {
        return;
    }
    let reason = "compares every byte, those that were not written too";
    if mode != PayloadMode::Full && check.fit == Fit::Judged && check.intact(&["payload", "job"]) {
        let message = format!("`payload` is {mode}, which moves no bytes, and job {name} {reason}");
        let hint = "write `payload: full`, or another job";
        check.complain(&["payload", "job"], Complaint::about(message).hint(hint));
    }
}

fn sizes(check: &mut Inspection<'_>, table: &'static Table, sizes: Sizes) {
    if sizes.from_bytes == sizes.to_bytes {
        let (one, several) = (table.path_of("bytes"), table.path_of("sizes"));
        let path =
            if check.positions.find(&format!("{several}.from")).is_some() { several + ".from" } else { one };
        if let Some(key) = table.find("bytes") {
            check.within(&path, key, sizes.from_bytes);
        }
        return;
    }
    check.ranges(&sizes, &|_, key| table.path_of(&format!("sizes.{key}")));
    let [from, to] = ["from", "to"].map(|key| table.path_of(&format!("sizes.{key}")));
    if check.intact(&[&from, &to]) && sizes.from_bytes > sizes.to_bytes {
        let (least, most) = (shown(sizes.from_bytes, Unit::Bytes), shown(sizes.to_bytes, Unit::Bytes));
        let complaint = Complaint::about(format!("`{from}` is {least}, more than `{to}`, which is {most}"));
        check.complain(&[&from, &to], complaint.hint("sizes ascend"));
    }
}

/// Sizes must be multiples of the element size.
fn elements(check: &mut Inspection<'_>, plan: &CollectivePlan) {
    let (element_bytes, first) = (plan.element.bytes() as u64, plan.sweep.sizes.from_bytes);
    let paths = ["job.collective.bytes", "job.collective.sizes.from", "job.collective.type"];
    if plan.collective.moves_data() && check.intact(&paths) && !first.is_multiple_of(element_bytes) {
        let path = check.positions.first_written(&paths).unwrap_or(paths[0]);
        let message = format!(
            "{} are no whole number of {} elements, which have {}",
            shown(first, Unit::Bytes),
            plan.element,
            shown(element_bytes, Unit::Bytes)
        );
        check.complain(&[path], Complaint::about(message).hint("write a multiple, or another `type`"));
    }
}

/// Reports keys that have no effect on this collective.
fn meaningless(check: &mut Inspection<'_>, collective: CollectiveKind) {
    if !check.intact(&["job.collective.collective"]) {
        return;
    }
    type Takes = fn(CollectiveKind) -> bool;
    let operator: Takes = CollectiveKind::reduces;
    let root: Takes = CollectiveKind::has_root;
    let data: Takes = CollectiveKind::moves_data;
    let keys =
        [("op", operator), ("root", root), ("type", data), ("bytes", data), ("sizes", data), ("adapt", data)];
    for (key, takes) in keys {
        let path = schema::COLLECTIVE.path_of(key);
        if check.positions.find(&path).is_some() && !takes(collective) {
            let message = format!("`{path}` means nothing to {collective}");
            let hint = format!("leave it out; it belongs to {}", CollectiveKind::listed(takes));
            check.complain(&[&path], Complaint::about(message).hint(hint));
        }
    }
}

/// Segments apply to one algorithm only. If `auto` selects that one, it selects the number too.
fn segments(check: &mut Inspection<'_>, plan: &CollectivePlan) {
    let path = schema::COLLECTIVE.path_of("segments");
    let is_written = check.positions.find(&path).is_some() && check.intact(&["job.collective.algorithm"]);
    if is_written && !plan.algorithm.kinds().contains(&AlgorithmKind::RingPipeline) {
        let message = format!("`{path}` means nothing to algorithm {}", plan.algorithm);
        let hint = format!("leave it out; it belongs to `algorithm: {}`", AlgorithmKind::RingPipeline);
        check.complain(&[&path], Complaint::about(message).hint(hint));
    }
}

fn expectations(check: &mut Inspection<'_>) {
    let expect = &check.plan.expect;
    let (least, most) = (expect.retransmitted_min, expect.retransmitted_max);
    check.ranges_of(expect);
    let paths = ["expect.retransmitted_min", "expect.retransmitted_max"];
    if let (Some(least), Some(most)) = (least, most)
        && least > most
        && check.intact(&paths)
    {
        let message = format!("`{}` is {least}, more than `{}`, which is {most}", paths[0], paths[1]);
        check.complain(&paths, Complaint::about(message).hint("no run could meet both"));
    }
}
