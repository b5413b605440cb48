//! Parts of the report of a workload that come from the plan and the request: its name, its options, and the use of links.

use rackloom_control::source::WorkloadFile;
use rackloom_jobs::report::{LinkUse, Report};
use rackloom_plan::Plan;

/// Name of the job in reports.
pub const JOB: &str = "workload";

/// Completes the report of a workload. Call it when the report has its `meta` object.
pub fn complete(report: &mut Report, plan: &Plan, workload: Option<&WorkloadFile>) {
    let Some(file) = workload else { return };
    JOB.clone_into(&mut report.job);
    let is_virtual = report.clock == "virtual";
    if let Some(meta) = &mut report.meta {
        meta.options.insert("job".to_owned(), JOB.to_owned());
        meta.options.insert(JOB.to_owned(), file.name.clone());
        let compute = if is_virtual { "virtual" } else { file.compute.name() };
        meta.options.insert("compute".to_owned(), compute.to_owned());
    }
    let Report { workload, links, .. } = report;
    if let Some(workload) = workload {
        let links = links.iter().map(|link| {
            let of_link = LinkUse { name: link.name.clone(), bytes: link.bytes_on_wire, share: None };
            (of_link, link.load_bytes())
        });
        let rate = |index: usize| plan.links.get(index).and_then(|link| link.profile.rate_bits_per_s);
        workload.add_links(links, rate);
    }
}
