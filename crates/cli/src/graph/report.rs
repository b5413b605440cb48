//! Use and faults of links, from the report of a run. Reports of other racks and of other versions are refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rackloom_drawing::graph::{Graph, LinkState};
use rackloom_jobs::report::{LinkReport, MemberState, Report};
use rackloom_plan::Plan;
use serde_json::Value;

use crate::failure::Failure;

/// Bytes of preamble and gap of a frame, which a link's counters leave out.
const BESIDE_FRAME_BYTES: u64 = 20;
/// Number of names in a message.
const NAMES_MAX: usize = 3;
/// Fields that only the report of a run has.
const FIELDS: [&str; 4] = ["verdict", "nodes", "links", "manifest"];

/// Reads a report.
pub(super) fn read(path: &Path) -> Result<Report, Failure> {
    let failure = |what: String, hint: &str| Failure::bad_input(what).at_path(path).hint(hint);
    let make = "make one with `rackloom sim FILE --json REPORT.json`";
    let text = std::fs::read_to_string(path)
        .map_err(|error| failure(format!("cannot read the report: {error}"), make))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| {
        let what = if error.is_eof() { "the report is truncated" } else { "the report is no JSON" };
        failure(format!("{what}: line {}, column {}: {error}", error.line(), error.column()), make)
    })?;
    let missing: Vec<&str> = FIELDS.into_iter().filter(|field| value.get(field).is_none()).collect();
    if !missing.is_empty() {
        let what = format!("this is no report of a run: it has no {}", missing.join(", "));
        return Err(failure(what, make));
    }
    let version = value["manifest"]["version"].as_str().unwrap_or_default();
    let own = env!("CARGO_PKG_VERSION");
    if series(version) != series(own) {
        let what = format!(
            "`manifest.version` is `{version}`: the report is of another version than this one, {own}"
        );
        return Err(failure(what, "run the rack again with this version"));
    }
    // From the text again: errors name line and column.
    serde_json::from_str(&text).map_err(|error| {
        failure(format!("the report has another form: {error}"), "run the rack again with this version")
    })
}

/// Returns the part of a version within which reports keep their form.
fn series(version: &str) -> Vec<&str> {
    version.split('.').take(2).collect()
}

/// Checks that a report is of this rack: the name, the members and the links.
pub(super) fn check(plan: &Plan, report: &Report) -> Result<(), Failure> {
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
    let names = directions(plan);
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

/// Returns the names of both directions of each link, as reports have them.
fn directions(plan: &Plan) -> Vec<[String; 2]> {
    let mut times: BTreeMap<(usize, usize), u32> = BTreeMap::new();
    let name = |member: usize| plan.members[member].name.as_str();
    let of = |link: &rackloom_plan::LinkPlan| {
        let (a, b) = (link.edge.a.index(), link.edge.b.index());
        let times = times.entry((a.min(b), a.max(b))).or_default();
        let suffix = if *times > 0 { format!("#{times}") } else { String::new() };
        *times += 1;
        [format!("{}->{}{suffix}", name(a), name(b)), format!("{}->{}{suffix}", name(b), name(a))]
    };
    plan.links.iter().map(of).collect()
}

/// Sets use and states of a picture of the same rack.
pub(super) fn apply(plan: &Plan, report: &Report, graph: &mut Graph) {
    let by_name: BTreeMap<&str, &LinkReport> =
        report.links.iter().map(|link| (link.name.as_str(), link)).collect();
    let both: Vec<Vec<&LinkReport>> = directions(plan)
        .iter()
        .map(|names| names.iter().filter_map(|name| by_name.get(name.as_str()).copied()).collect())
        .collect();
    // The busier direction of each link.
    let bytes: Vec<f64> =
        both.iter().map(|both| both.iter().map(|link| wire_bytes(link)).max().unwrap_or(0) as f64).collect();
    let possible: Option<Vec<f64>> = plan
        .links
        .iter()
        .map(|link| Some(link.profile.rate_bits_per_s? as f64 / 8e9 * report.elapsed_ns as f64))
        .collect();
    let busiest = bytes.iter().copied().fold(0.0, f64::max);
    let is_down = down(plan, report);
    for (index, link) in graph.links.iter_mut().enumerate() {
        let most = possible.as_ref().map_or(busiest, |possible| possible[index]);
        let value = if most > 0.0 { (bytes[index] / most).min(1.0) } else { 0.0 };
        link.value = Some(value);
        link.label = format!("{:.0} %", value * 100.0);
        let had_faults = both[index].iter().any(|link| had_faults(link));
        link.state = match is_down.get(&index) {
            Some(true) => LinkState::Failed,
            Some(false) => LinkState::Faulted,
            None if had_faults => LinkState::Faulted,
            None => LinkState::Good,
        };
    }
    for (node, of_report) in graph.nodes.iter_mut().zip(by_member(plan, report)) {
        use MemberState::{Exited, Killed, Lost, Unstarted};
        node.is_failed = of_report.is_some_and(|state| matches!(state, Exited | Killed | Lost | Unstarted));
    }
    graph.meaning = match possible {
        Some(_) => "use of the rate over the whole run, of the busier direction:".to_owned(),
        None => "bytes of the busier direction, of those of the busiest link:".to_owned(),
    };
    graph.note += &format!(
        ". Report: job {}, verdict {}, {} of {} time",
        report.job,
        report.verdict.name(),
        crate::present::units::time(report.elapsed_ns),
        report.clock
    );
    if let Some(count) = report.events_omitted.get(LINK_CHANGED) {
        graph.note += &format!(
            ". The report leaves out {count} changes of links, so that links may be in another state"
        );
    }
}

/// Kind of the event that a link has another state.
const LINK_CHANGED: &str = "link-changed";

/// Reasons of dropped frames that follow from losses elsewhere and from changes of paths.
const CONSEQUENCES: [&str; 9] = [
    "duplicate",
    "out-of-order",
    "beyond-window",
    "link-duplicate",
    "link-out-of-sequence",
    "link-down",
    "stale-link",
    "stale-incarnation",
    "no-route",
];

/// Returns true if the direction itself lost or changed frames.
fn had_faults(link: &LinkReport) -> bool {
    !link.injected.is_empty() || link.dropped.keys().any(|reason| !CONSEQUENCES.contains(&reason.as_str()))
}

fn wire_bytes(link: &LinkReport) -> u64 {
    link.bytes_on_wire + link.frames * BESIDE_FRAME_BYTES
}

fn by_member(plan: &Plan, report: &Report) -> Vec<Option<MemberState>> {
    let states: BTreeMap<&str, MemberState> =
        report.nodes.iter().map(|node| (node.name.as_str(), node.state)).collect();
    plan.members.iter().map(|member| states.get(member.name.as_str()).copied()).collect()
}

/// Returns the links that went down after they were up, by index, and if they were down at the end.
fn down(plan: &Plan, report: &Report) -> BTreeMap<usize, bool> {
    let mut ports: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for (index, link) in plan.links.iter().enumerate() {
        for (member, port) in [(link.edge.a, link.edge.a_port), (link.edge.b, link.edge.b_port)] {
            ports.insert((plan.members[member.index()].name.as_str(), port.to_string()), index);
        }
    }
    // Both ends see a link; it is up again when both do.
    let mut ends: BTreeMap<(usize, &str), bool> = BTreeMap::new();
    for event in report.events.iter().filter(|event| event.kind == LINK_CHANGED) {
        let (Some(port), Some(to)) = (event.fields.get("port"), event.fields.get("to")) else { continue };
        let Some(index) = ports.get(&(event.member.as_str(), port.clone())) else { continue };
        let key = (*index, event.member.as_str());
        let was_up = event.fields.get("from").is_some_and(|from| from == "up" || from == "suspect");
        match to.as_str() {
            "down" | "admin-down" if was_up => {
                ends.insert(key, true);
            }
            "up" => {
                ends.entry(key).and_modify(|is_down| *is_down = false);
            }
            _ => {}
        }
    }
    let mut links: BTreeMap<usize, bool> = BTreeMap::new();
    for ((index, _), is_down) in ends {
        *links.entry(index).or_default() |= is_down;
    }
    links
}
