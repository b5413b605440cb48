//! Picture of a rack from its topology, and the use and faults of its links from a report.

use std::collections::{BTreeMap, BTreeSet};

use rackloom_control::report::{LinkReport, MemberState, Report, Topology, TopologyLink, TopologyShape};
use rackloom_drawing::chart::Unit;
use rackloom_drawing::graph::{Graph, Link, LinkState, Node, NodeKind, Shape};

use crate::text;

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

/// Returns the picture of a rack. `names` are those of the members of the topology.
#[must_use]
pub fn graph(rack: &str, names: &[&str], topology: &Topology) -> Graph {
    let nodes: Vec<Node> = topology
        .members
        .iter()
        .zip(names)
        .map(|(member, name)| Node {
            name: (*name).to_owned(),
            kind: if member.is_switch { NodeKind::Switch } else { NodeKind::Node },
            group: member.server.clone(),
            is_failed: false,
        })
        .collect();
    let rates: BTreeSet<Option<u64>> = topology.links.iter().map(|link| link.rate_bits_per_s).collect();
    let link = |link: &TopologyLink| Link {
        ends: (usize::from(link.a), usize::from(link.b)),
        name: format!("{}, {}", link.name, bit_rate(link.rate_bits_per_s)),
        // One rate for all is in the note.
        label: if rates.len() > 1 { bit_rate(link.rate_bits_per_s) } else { String::new() },
        value: None,
        state: LinkState::Good,
    };
    let links: Vec<Link> = topology.links.iter().map(link).collect();
    let count = |count: usize, word: &str, plural: &str| match count {
        0 => None,
        1 => Some(format!("1 {word}")),
        count => Some(format!("{count} {plural}")),
    };
    let switches = nodes.iter().filter(|node| node.kind == NodeKind::Switch).count();
    let of_all = match rates.first() {
        Some(Some(only)) if rates.len() == 1 => format!(" of {}", bit_rate(Some(*only))),
        _ => String::new(),
    };
    let parts = [
        count(nodes.len() - switches, "GPU node", "GPU nodes"),
        count(switches, "switch", "switches"),
        count(links.len(), "link", "links").map(|links| links + &of_all),
    ];
    Graph {
        title: rack.to_owned(),
        note: parts.into_iter().flatten().collect::<Vec<_>>().join(", "),
        shape: shape(topology),
        nodes,
        links,
        meaning: String::new(),
        group_meaning: "GPU nodes of one server".to_owned(),
    }
}

fn bit_rate(bits_per_s: Option<u64>) -> String {
    bits_per_s.map_or_else(|| "no rate".to_owned(), |rate| Unit::named("bit/s").text(rate as f64))
}

fn shape(topology: &Topology) -> Shape {
    match topology.shape {
        TopologyShape::Star => Shape::Star,
        TopologyShape::Ring => Shape::Ring,
        TopologyShape::FullMesh => Shape::FullMesh,
        TopologyShape::LeafSpine => Shape::LeafSpine,
        TopologyShape::Torus => Shape::Torus(topology.sizes.iter().map(|size| *size as usize).collect()),
        TopologyShape::Hypercube => Shape::Hypercube,
        TopologyShape::Custom => Shape::Custom,
    }
}

/// Sets the use and the states of members and links of a picture of the same rack.
pub fn add_report(graph: &mut Graph, topology: &Topology, report: &Report) {
    let names: Vec<String> = graph.nodes.iter().map(|node| node.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let by_name: BTreeMap<&str, &LinkReport> =
        report.links.iter().map(|link| (link.name.as_str(), link)).collect();
    let both: Vec<Vec<&LinkReport>> = topology
        .directions(&names)
        .iter()
        .map(|names| names.iter().filter_map(|name| by_name.get(name.as_str()).copied()).collect())
        .collect();
    // The busier direction of each link.
    let bytes: Vec<f64> =
        both.iter().map(|both| both.iter().map(|link| link.load_bytes()).max().unwrap_or(0) as f64).collect();
    let possible: Option<Vec<f64>> = topology
        .links
        .iter()
        .map(|link| Some(link.rate_bits_per_s? as f64 / 8e9 * report.elapsed_ns as f64))
        .collect();
    let busiest = bytes.iter().copied().fold(0.0, f64::max);
    let is_down = down(&names, topology, report);
    for (index, link) in graph.links.iter_mut().enumerate() {
        let most = possible.as_ref().map_or(busiest, |possible| possible[index]);
        let value = if most > 0.0 { (bytes[index] / most).min(1.0) } else { 0.0 };
        link.value = Some(value);
        // A link that carried little is no idle one.
        let is_small = value > 0.0 && value < 0.005;
        link.label = if is_small { "<1 %".to_owned() } else { format!("{:.0} %", value * 100.0) };
        let had_faults = both[index].iter().any(|link| had_faults(link));
        link.state = match is_down.get(&index) {
            Some(true) => LinkState::Failed,
            Some(false) => LinkState::Faulted,
            None if had_faults => LinkState::Faulted,
            None => LinkState::Good,
        };
    }
    let states: BTreeMap<&str, MemberState> =
        report.nodes.iter().map(|node| (node.name.as_str(), node.state)).collect();
    for node in &mut graph.nodes {
        use MemberState::{Exited, Killed, Lost, Unstarted};
        let state = states.get(node.name.as_str());
        node.is_failed = state.is_some_and(|state| matches!(state, Exited | Killed | Lost | Unstarted));
    }
    graph.meaning = match possible {
        Some(_) => "use of the rate over the whole run, of the busier direction:".to_owned(),
        None => "bytes of the busier direction, of those of the busiest link:".to_owned(),
    };
    graph.note += &format!(
        ". Report: job {}, verdict {}, {} of {} time",
        report.job,
        report.verdict.name(),
        text::time(report.elapsed_ns as f64),
        report.clock
    );
    if let Some(count) = report.events_omitted.get(LINK_CHANGED) {
        graph.note += &format!(
            ". The report leaves out {count} changes of links, so that links may be in another state"
        );
    }
}

/// Returns true if the direction itself lost or changed frames. Losses that follow from others do not count.
#[must_use]
pub fn had_faults(link: &LinkReport) -> bool {
    !link.injected.is_empty() || link.dropped.keys().any(|reason| !CONSEQUENCES.contains(&reason.as_str()))
}

/// Returns the links that went down after they were up, by index, and if they were down at the end.
fn down(names: &[&str], topology: &Topology, report: &Report) -> BTreeMap<usize, bool> {
    let mut ports: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for (index, link) in topology.links.iter().enumerate() {
        for (member, port) in [(link.a, link.a_port), (link.b, link.b_port)] {
            let Some(name) = names.get(usize::from(member)) else { continue };
            // As the core writes ports.
            ports.insert((name, format!("port{port}")), index);
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
