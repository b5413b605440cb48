//! Comparison of a report with the rack file of a picture. Reports of other racks are refused.

use std::collections::BTreeSet;

use rackloom_jobs::report::{Report, Topology};
use rackloom_plan::Plan;

use crate::failure::Failure;

/// Number of names in a message.
const NAMES_MAX: usize = 3;

/// Checks that a report is of this rack: the name, the members and the links.
pub(super) fn check(plan: &Plan, topology: &Topology, report: &Report) -> Result<(), Failure> {
    let other = |what: String| {
        let hint = "name the file of the run, and the settings (--set) with which it was run";
        Err(Failure::bad_input(format!("the report is of another rack: {what}")).hint(hint))
    };
    if let Some(meta) = report.meta.as_ref().filter(|meta| meta.rack != plan.name) {
        return other(format!("`meta.rack` is `{}`, and the file describes `{}`", meta.rack, plan.name));
    }
    let of_plan: BTreeSet<&str> = plan.members.iter().map(|member| member.name.as_str()).collect();
    let of_report: BTreeSet<&str> = report.nodes.iter().map(|node| node.name.as_str()).collect();
    if let Some(what) = difference("nodes", &of_plan, &of_report) {
        return other(what);
    }
    let members: Vec<&str> = plan.members.iter().map(|member| member.name.as_str()).collect();
    let names = topology.directions(&members);
    let of_plan: BTreeSet<&str> = names.iter().flatten().map(String::as_str).collect();
    let of_report: BTreeSet<&str> = report.links.iter().map(|link| link.name.as_str()).collect();
    difference("links", &of_plan, &of_report).map_or(Ok(()), other)
}

/// Returns the first names that only one side has.
fn difference(field: &str, of_plan: &BTreeSet<&str>, of_report: &BTreeSet<&str>) -> Option<String> {
    let listed = |one: &BTreeSet<&str>, other: &BTreeSet<&str>| {
        let names: Vec<String> = one.difference(other).map(|name| format!("`{name}`")).collect();
        let more = names.len().saturating_sub(NAMES_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!names.is_empty()).then(|| format!("{}{more}", names[..names.len().min(NAMES_MAX)].join(", ")))
    };
    let missing = listed(of_plan, of_report).map(|names| format!("`{field}` lacks {names}"));
    let unknown =
        listed(of_report, of_plan).map(|names| format!("`{field}` has {names}, which the file lacks"));
    let parts: Vec<String> = [missing, unknown].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
