//! Traffic, losses and paths of a standing rack, as tables. A dash means that a value is not known.

use rackloom_control::links::{LinkStatus, PathStatus};
use rackloom_control::request::{MemberStatus, RackStatus};
use rackloom_jobs::report::PathReport;

use super::table::{Column, Table};
use super::units;

/// Maximum number of names in a cell. Further ones are counted.
const NAMES_MAX: usize = 8;

fn or_dash<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

/// Formats rates and losses, one row per direction of a link, below the interval of the rates.
pub(super) fn links(status: &RackStatus) -> Option<String> {
    let mut table = Table::new(&[
        Column::Left("link"),
        Column::Right("plane"),
        Column::Right("data frames/s"),
        Column::Right("data rate"),
        Column::Right("all frames/s"),
        Column::Right("wire rate"),
        Column::Right("retransmitted"),
        Column::Right("replayed"),
        Column::Right("missing"),
        Column::Left("dropped"),
    ]);
    status.links.iter().for_each(|link| table.row(row(link)));
    (!table.is_empty()).then(|| format!("{}\n\n{}", interval(&status.links), table.render()))
}

fn row(link: &LinkStatus) -> [String; 10] {
    let (rate, sent) = (link.rate.as_ref(), link.sent.as_ref());
    [
        link.name.clone(),
        link.plane.to_string(),
        or_dash(rate, |rate| units::count(rate.data_frames_per_s)),
        or_dash(rate, |rate| units::rate(rate.data_bytes_per_s)),
        or_dash(rate, |rate| units::count(rate.frames_per_s)),
        or_dash(rate, |rate| units::rate(rate.bytes_per_s)),
        or_dash(sent, |sent| units::count(sent.retransmitted)),
        or_dash(sent, |sent| units::count(sent.replayed)),
        or_dash(link.missing, units::count),
        dropped(link),
    ]
}

/// Formats lost frames by reason. An end that did not answer is named, because it may have lost more.
fn dropped(link: &LinkStatus) -> String {
    let Some(reasons) = &link.dropped else { return "-".to_owned() };
    let reasons = reasons.iter().map(|(reason, frames)| format!("{reason} {}", units::count(*frames)));
    let unanswered = link.unanswered.iter().map(|name| format!("- of {name}"));
    let parts: Vec<_> = reasons.chain(unanswered).collect();
    if parts.is_empty() { "0".to_owned() } else { parts.join(", ") }
}

/// Formats the line above the rates.
fn interval(links: &[LinkStatus]) -> String {
    let intervals = || links.iter().filter_map(|link| Some(link.rate?.interval_ns));
    let over = match (intervals().min(), intervals().max()) {
        (Some(least), Some(most)) => {
            let (least, most) = (units::time(least), units::time(most));
            let over = if least == most { most } else { format!("{least} to {most}") };
            format!("rates now, over {over}")
        }
        _ => "no rates: no member answered twice".to_owned(),
    };
    format!("{over}; `data` frames carry operations; losses since the start")
}

/// Formats live paths, one row per node and set of planes.
pub(super) fn paths(status: &RackStatus) -> Option<String> {
    let mut table = Table::new(&[
        Column::Left("paths of"),
        Column::Right("live"),
        Column::Left("planes"),
        Column::Left("first links"),
        Column::Left("to"),
    ]);
    for member in status.members.iter().filter(|member| member.memory_bytes > 0) {
        match &member.paths {
            Some(paths) => groups(paths).iter().for_each(|group| table.row(path_row(member, group))),
            None => table.row([member.name.as_str(), "-", "-", "-", "-"].map(str::to_owned)),
        }
    }
    (!table.is_empty()).then(|| table.render())
}

/// Groups destinations by number of live paths and set of planes.
fn groups(paths: &[PathStatus]) -> Vec<Vec<&PathStatus>> {
    let mut groups: Vec<Vec<&PathStatus>> = Vec::new();
    for path in paths {
        let is_alike = |group: &&mut Vec<&PathStatus>| {
            group.first().is_some_and(|first| (first.live, &first.planes) == (path.live, &path.planes))
        };
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.push(path),
            None => groups.push(vec![path]),
        }
    }
    groups
}

fn path_row(member: &MemberStatus, group: &[&PathStatus]) -> [String; 5] {
    let planes =
        group.first().map(|first| first.planes.iter().map(u8::to_string).collect()).unwrap_or_default();
    let live = group.first().map_or(0, |first| first.live);
    let mut links: Vec<_> = group.iter().flat_map(|path| path.links.clone()).collect();
    links.sort_unstable();
    links.dedup();
    let nodes = group.iter().map(|path| path.to.clone()).collect();
    [member.name.clone(), live.to_string(), listed(planes), listed(links), listed(nodes)]
}

/// Lists the first names, and the number of the others.
fn listed(names: Vec<String>) -> String {
    let beyond = names.len().saturating_sub(NAMES_MAX);
    let more = (beyond > 0).then(|| format!("and {beyond} more"));
    let parts: Vec<_> = names.into_iter().take(NAMES_MAX).chain(more).collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join(" ") }
}

/// Formats operations over shared memory and in frames, for nodes that can share memory.
pub(super) fn carried(status: &RackStatus) -> Option<String> {
    let mut table = Table::new(&[
        Column::Left("operations of"),
        Column::Right("direct"),
        Column::Right("direct bytes"),
        Column::Right("in frames"),
        Column::Right("bytes in frames"),
    ]);
    for (member, PathReport { direct, frames }) in
        status.members.iter().filter_map(|member| Some((member, member.carried?)))
    {
        table.row([
            member.name.clone(),
            units::count(direct.operations),
            units::bytes(direct.bytes),
            units::count(frames.operations),
            units::bytes(frames.bytes),
        ]);
    }
    (!table.is_empty()).then(|| table.render())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status() -> RackStatus {
        let member = |name: &str, paths: serde_json::Value| {
            json!({"name": name, "role": "gpu node", "pid": 1, "server": "s", "tenant": 0, "state": "up",
                "memory_used_bytes": 0, "memory_bytes": 1, "links_up": 2, "links_total": 2, "uptime_ns": 1, "paths": paths})
        };
        let path = |to: &str, planes: &[u8], links: &[&str]| json!({"to": to, "live": links.len(), "planes": planes, "links": links});
        let whole = json!([
            path("n1", &[0, 1], &["n0->s0", "n0->s1"]),
            path("n2", &[], &[]),
            path("n3", &[0, 1], &["n0->s0", "n0->s1"])
        ]);
        let sent = json!({"at_ns": 9, "frames": 9, "bytes": 900, "data_frames": 5, "data_bytes": 800, "retransmitted": 1234, "replayed": 0});
        let rate = json!({"interval_ns": 201_000_000, "frames_per_s": 12_345, "bytes_per_s": 52_000_000, "data_frames_per_s": 12_000,
            "data_bytes_per_s": 50_000_000});
        let links = json!([
            {"name": "n0->s0", "from": "n0", "to": "s0", "plane": 0, "sent": sent, "rate": rate, "missing": 3,
                "dropped": {"hop-check": 2, "injected": 1500}},
            {"name": "s0->n0", "from": "s0", "to": "n0", "plane": 0, "sent": null, "missing": 0, "dropped": {}, "unanswered": ["s0"]},
            {"name": "n1->s0", "from": "n1", "to": "s0", "plane": 0, "sent": null, "missing": null, "dropped": null,
                "unanswered": ["n1", "s0"]}
        ]);
        let status = json!({"protocol": 1, "name": "r", "pid": 1, "state": "up", "wire": "udp", "job": "none", "epoch": 1,
            "config_hash": "", "uptime_ns": 1, "links_up": 4, "links_total": 4, "links": links,
            "members": [member("n0", whole), member("n1", serde_json::Value::Null)]});
        serde_json::from_value(status).expect("a status")
    }

    #[test]
    fn links_are_aligned_and_unknown_values_are_dashes() {
        insta::assert_snapshot!(links(&status()).expect("links"), @r"
        rates now, over 201 ms; `data` frames carry operations; losses since the start

        link    plane  data frames/s  data rate  all frames/s  wire rate  retransmitted  replayed  missing  dropped
        n0->s0      0         12 000  50.0 MB/s        12 345  52.0 MB/s          1 234         0        3  hop-check 2, injected 1 500
        s0->n0      0              -          -             -          -              -         -        0  - of s0
        n1->s0      0              -          -             -          -              -         -        -  -
        ");
    }

    #[test]
    fn paths_are_listed_by_node_and_planes() {
        insta::assert_snapshot!(paths(&status()).expect("paths"), @r"
        paths of  live  planes  first links    to
        n0           2  0 1     n0->s0 n0->s1  n1 n3
        n0           0  -       -              n2
        n1           -  -       -              -
        ");
    }
}
