//! Deadlock analysis of a rack: dependencies between channels, and cycles of them.
//!
//! A frame that has arrived on one channel occupies a buffer there until the next channel has a free buffer: the first channel
//! *depends* on the second. The dependencies follow from the routes (all shortest paths between GPU nodes, because a flow
//! may take any of them) and from the rule by which frames change channels (`dependencies.rs`). If the dependencies have no cycle,
//! some channel can always progress (Dally and Seitz 1987). If they have one, a bubble may still keep the cycle moving: one free
//! buffer that new frames must not take.
//!
//! Routes of a rack with broken links differ. The loss of any single link is analysed for a report ([`risky_losses`]); several
//! concurrent losses are not.

use std::collections::BTreeSet;

use rackloom_protocol::{MemberRole, NodeId, RequestDrain};

use crate::check::dependencies::{Buffer, Dependencies};
use crate::model::plan::{Plan, distances};

/// Largest number of channels of a cycle that a message names.
const SHOWN_MAX: usize = 9;

/// Result of the deadlock analysis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Safety {
    /// No member forwards frames.
    NoTransit,
    /// Frames go up to a switch and down to a node.
    UpDown,
    /// Routes have no cycle.
    Acyclic,
    /// Routes have cycles, and frames change to another channel before they have passed a whole cycle.
    Climbing,
    /// Dependencies are rings, and each ring keeps a bubble.
    Bubble,
    /// Channels may wait for each other for ever.
    Cycle(Cycle),
}

/// Cycle of channels. Each waits for the next one, and the last waits for the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    channels: Vec<String>,
    has_bubble: bool,
    /// True if links pause in place of giving credits.
    pauses: bool,
    /// True if nodes drain a request only after they have answered it.
    until_answered: bool,
    /// Links of the cycle that are not divided into the rack's channels.
    undivided: Vec<u16>,
}

impl Cycle {
    /// Returns the cycle as text: `n0->n1, n1->n2, n2->n0, and again n0->n1`.
    #[must_use]
    pub fn description(&self) -> String {
        let mut channels = self.channels.clone();
        if channels.len() > SHOWN_MAX {
            let left_out = channels.len() - (SHOWN_MAX - 1);
            channels.splice(SHOWN_MAX - 2..channels.len() - 1, [format!("({left_out} more)")]);
        }
        let first = self.channels.first().map_or("", String::as_str);
        format!("{}, and again {first}", channels.join(", "))
    }

    /// Returns the links of the cycle that are not divided, by edge.
    pub(crate) fn undivided(&self) -> &[u16] {
        &self.undivided
    }

    /// Returns advice that removes the cycle.
    pub(crate) fn hint(&self) -> &'static str {
        if !self.undivided.is_empty() {
            "leave the link's `channels` at `on`: where it is not divided, frames of all channels wait for each other; or \
             `forwarding: {deadlock: allow}` to see it happen"
        } else if self.until_answered {
            "give answers a channel of their own: `channels: by-class`, with levels where routes close circles too; or \
             `forwarding: {deadlock: allow}` to see it happen"
        } else if self.pauses {
            "write `channels: {rise: dateline}` (a ring or a torus) or `channels: {rise: hop}`, or leave `pfc` off: paused links keep no \
             bubble; or `forwarding: {deadlock: allow}` to see it happen"
        } else if self.has_bubble {
            "write `channels: {rise: dateline}` (a torus) or `channels: {rise: hop}`: a bubble keeps single rings moving and not \
             this; or `forwarding: {deadlock: allow}` to see it happen"
        } else {
            "leave `bubble` at `true`, or write `channels: {rise: dateline}` (a ring or a torus) or `channels: {rise: hop}`; or \
             `forwarding: {deadlock: allow}` to see it happen"
        }
    }
}

impl Safety {
    /// Returns a description for the user.
    #[must_use]
    pub fn description(&self) -> String {
        match self {
            Self::NoTransit => "no frame is passed on".to_owned(),
            Self::UpDown => "frames go up to a switch and down again".to_owned(),
            Self::Acyclic => "routes have no cycle".to_owned(),
            Self::Climbing => "frames change channels before routes complete a cycle".to_owned(),
            Self::Bubble => "a bubble in every ring".to_owned(),
            Self::Cycle(cycle) => format!("NONE: {}", cycle.description()),
        }
    }
}

/// Analyses a plan whose members all reach each other.
#[must_use]
pub fn judge(plan: &Plan) -> Safety {
    // A node that drains requests only after it has answered them waits too, in every shape.
    if plan.forwarding.config().drain != RequestDrain::Answered
        && let Some(simple) = by_shape(plan)
    {
        return simple;
    }
    let dependencies = Dependencies::without(plan, None);
    let Some(cycle) = dependencies.cycle() else {
        return if plan.channels.config.levels > 1 { Safety::Climbing } else { Safety::Acyclic };
    };
    if has_bubble(plan) && dependencies.are_rings() {
        return Safety::Bubble;
    }
    Safety::Cycle(explained(plan, cycle))
}

/// Returns the links, by edge, after whose loss the remaining routes may close a cycle in which channels wait for each other for ever.
/// Each loss is analysed alone. Returns `None` if the rack is too large for that.
#[must_use]
pub fn risky_losses(plan: &Plan) -> Option<Vec<u16>> {
    const STEPS_MAX: usize = 2_000_000;
    let count = plan.links.len();
    if plan.endpoint_count().saturating_mul(count).saturating_mul(count) > STEPS_MAX {
        return None;
    }
    let is_risky = |edge: &u16| {
        let dependencies = Dependencies::without(plan, Some(usize::from(*edge)));
        dependencies.cycle().is_some() && !(has_bubble(plan) && dependencies.are_rings())
    };
    Some((0..count as u16).filter(is_risky).collect())
}

/// Returns true if a bubble keeps single rings moving. A bubble needs counted buffers, and a link that pauses does not count in
/// advance.
fn has_bubble(plan: &Plan) -> bool {
    plan.forwarding.bubble && !has_pauses(plan)
}

fn has_pauses(plan: &Plan) -> bool {
    plan.links.iter().any(|link| link.profile.pfc.is_some())
}

/// Returns the cycle with what a message says about it.
fn explained(plan: &Plan, cycle: Vec<Buffer>) -> Cycle {
    let count = plan.channels.config.count();
    let edge_of = |buffer: &Buffer| (buffer / count / 2) as u16;
    let is_undivided = |edge: &u16| !plan.links[usize::from(*edge)].profile.channels.are_divided;
    let mut undivided: Vec<u16> =
        cycle.iter().map(edge_of).filter(|edge| count > 1 && is_undivided(edge)).collect();
    undivided.dedup();
    Cycle {
        channels: cycle.into_iter().map(|buffer| name(plan, count, buffer)).collect(),
        has_bubble: has_bubble(plan),
        pauses: has_pauses(plan),
        until_answered: plan.forwarding.config().drain == RequestDrain::Answered,
        undivided,
    }
}

/// Returns the result if it follows from the shape without a search. Large racks are mostly stars and meshes.
fn by_shape(plan: &Plan) -> Option<Safety> {
    let neighbours = distances::neighbours(plan);
    let nodes = plan.endpoint_count();
    let is_node = |member: &NodeId| plan.members[member.index()].role == MemberRole::Endpoint;
    let others =
        |member: &Vec<NodeId>| member.iter().filter(|other| is_node(other)).collect::<BTreeSet<_>>().len();
    if neighbours[..nodes].iter().all(|node| others(node) == nodes - 1) {
        return Some(Safety::NoTransit);
    }
    let joins_nodes_to_switches = |link: &crate::LinkPlan| is_node(&link.edge.a) != is_node(&link.edge.b);
    // Then every two nodes are two links apart, and no shortest path has a third link.
    let has_hub = neighbours[nodes..].iter().any(|switch| others(switch) == nodes);
    (has_hub && plan.links.iter().all(joins_nodes_to_switches)).then_some(Safety::UpDown)
}

fn name(plan: &Plan, count: usize, buffer: Buffer) -> String {
    let (direction, channel) = (buffer / count, buffer % count);
    let edge = plan.links[direction / 2].edge;
    let (from, to) = if direction.is_multiple_of(2) { (edge.a, edge.b) } else { (edge.b, edge.a) };
    let ends = format!("{}->{}", plan.members[from.index()].name, plan.members[to.index()].name);
    let is_divided = count > 1 && plan.links[direction / 2].profile.channels.are_divided;
    if is_divided { format!("{ends} channel {channel}") } else { ends }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(lines: &str) -> Safety {
        let text = format!("name: r\nforwarding: {{deadlock: allow, bubble: false}}\n{lines}");
        judge(&Plan::parse(&text, "rack.yaml").unwrap_or_else(|error| panic!("{error}")))
    }

    fn with_bubble(lines: &str) -> Safety {
        judge(
            &Plan::parse(&format!("name: r\nforwarding: {{deadlock: allow}}\n{lines}"), "rack.yaml").unwrap(),
        )
    }

    const RING: &str = "shape: {ring: {nodes: 8}}\n";
    const TORUS: &str = "shape: {custom: {nodes: [a, b, c, d], links: [{a: a, b: b}, {a: b, b: c}, {a: c, b: d}, \
                         {a: d, b: a}, {a: a, b: b, plane: 1}, {a: b, b: c, plane: 1}, {a: c, b: d, plane: 1}, \
                         {a: d, b: a, plane: 1}]}}\n";

    #[test]
    fn a_ring_is_a_circle_and_a_bubble_a_dateline_or_hops_keep_it_moving() {
        let Safety::Cycle(cycle) = judged(RING) else { panic!("{:?}", judged(RING)) };
        assert_eq!(cycle.channels.len(), 8, "{cycle:?}");
        assert!(cycle.description().starts_with("n0->n1, n1->n2, "), "{}", cycle.description());
        assert_eq!(with_bubble(RING), Safety::Bubble);
        for rise in ["dateline", "hop"] {
            assert_eq!(judged(&format!("{RING}channels: {{rise: {rise}}}")), Safety::Climbing, "{rise}");
        }
        // Classes alone give one cycle per lane, and too few levels do not help.
        assert!(matches!(judged(&format!("{RING}channels: by-class")), Safety::Cycle(_)));
        let few = judged(&format!("{RING}channels: {{rise: hop, levels: 2}}"));
        assert!(matches!(&few, Safety::Cycle(cycle) if cycle.description().contains("channel 4")), "{few:?}");
    }

    #[test]
    fn a_dateline_on_one_ring_leaves_the_cycle_of_the_other() {
        let both = "channels: {rise: dateline, datelines: [d--a, d--a#1]}";
        assert_eq!(judged(&format!("{TORUS}{both}")), Safety::Climbing);
        let one = "channels: {rise: dateline, datelines: [d--a]}";
        assert!(matches!(judged(&format!("{TORUS}{one}")), Safety::Cycle(_)));
    }

    #[test]
    fn an_undivided_link_joins_lanes_and_levels() {
        let divided = "channels: {rise: dateline}\n";
        assert_eq!(judged(&format!("{RING}{divided}")), Safety::Climbing);
        // The dateline is n7--n0, and frames cross at most four links: two links on, both levels meet.
        let with_one =
            |undivided: &str| judged(&format!("{RING}{divided}links: {{{undivided}: {{channels: off}}}}"));
        let Safety::Cycle(cycle) = with_one("n1--n2") else { panic!("{:?}", with_one("n1--n2")) };
        assert!(cycle.channels.iter().any(|buffer| buffer == "n1->n2"), "{cycle:?}");
        assert!(cycle.hint().contains("at `on`") && cycle.undivided.len() == 1, "{cycle:?}");
        // No frame gets this far on the upper level, and no frame is on the lower level there.
        assert_eq!((with_one("n3--n4"), with_one("n7--n0")), (Safety::Climbing, Safety::Climbing));
        let star = "shape: {star: {nodes: 4}}\nchannels: by-class\nlinks: {n0--s0: {channels: off}}";
        assert_eq!(judged(star), Safety::UpDown);
    }

    #[test]
    fn a_bubble_does_not_suffice_if_rings_share_traffic() {
        assert!(matches!(with_bubble(TORUS), Safety::Cycle(cycle) if cycle.hint().contains("rise: hop")));
        assert_eq!(judged(&format!("{TORUS}channels: {{rise: hop}}")), Safety::Climbing);
    }

    #[test]
    fn nodes_that_drain_only_answered_requests_need_a_channel_for_answers() {
        let star = "name: s\nshape: {star: {nodes: 4}}\nforwarding: {drain: answered, deadlock: allow}\n";
        let judged = |channels: &str| judge(&Plan::parse(&format!("{star}{channels}"), "rack.yaml").unwrap());
        let Safety::Cycle(cycle) = judged("") else { panic!("one channel gives a cycle") };
        assert!(cycle.hint().contains("channels"), "{cycle:?}");
        assert_eq!(judged("channels: by-class"), Safety::Acyclic);
        assert!(matches!(
            judged("channels: {lanes: {request: 0, reply: 0, bulk: 0, bulk_reply: 0}}"),
            Safety::Cycle(_)
        ));
    }

    #[test]
    fn a_torus_needs_a_level_more_than_it_has_rings_and_a_hypercube_none() {
        let torus = |sizes: &str| format!("shape: {{torus: {sizes}}}\n");
        let square = torus("{x: 4, y: 4}");
        assert!(matches!(with_bubble(&square), Safety::Cycle(cycle) if cycle.hint().contains("(a torus)")));
        for shape in
            [&square, &torus("{x: 5, y: 4}"), &torus("{x: 4, y: 4, z: 4}"), &torus("{x: 2, y: 2, z: 5}")]
        {
            assert_eq!(judged(&format!("{shape}channels: {{rise: dateline}}")), Safety::Climbing, "{shape}");
            assert_eq!(judged(&format!("{shape}channels: {{rise: hop}}")), Safety::Climbing, "{shape}");
        }
        // With a level less, frames that have crossed the dateline of the row have none left for that of the column.
        let few = judged(&format!("{square}channels: {{rise: dateline, levels: 2}}"));
        assert!(matches!(few, Safety::Cycle(_)), "{few:?}");
        let one = judged(&format!("{square}channels: {{rise: dateline, datelines: [n3--n0]}}"));
        assert!(matches!(one, Safety::Cycle(_)), "only one row has a dateline: {one:?}");
        // No path of a ring of three has two links.
        assert_eq!(judged(&torus("{x: 3, y: 3, z: 3}")), Safety::Acyclic);
        assert_eq!(judged("shape: {hypercube: {dimensions: 4}}"), Safety::Acyclic);
        // The same links without dimensions: a square of four nodes is a ring.
        let mut links = String::new();
        for (one, other) in [("a", "b"), ("c", "d"), ("a", "c"), ("b", "d")] {
            links += &format!("{{a: {one}, b: {other}}}, ");
        }
        let custom = judged(&format!("shape: {{custom: {{nodes: [a, b, c, d], links: [{links}]}}}}"));
        assert!(matches!(custom, Safety::Cycle(_)), "{custom:?}");
    }

    #[test]
    fn leaves_and_spines_close_no_circle() {
        assert_eq!(judged("shape: {leaf-spine: {leaves: 3, nodes_per_leaf: 2, spines: 2}}"), Safety::Acyclic);
        let planes = "shape: {leaf-spine: {leaves: 2, nodes_per_leaf: 2, spines: 2, parallel: 2, planes: 2}}";
        assert_eq!(judged(planes), Safety::Acyclic);
    }

    #[test]
    fn losses_whose_detours_may_close_a_circle_are_listed() {
        let losses = |lines: &str| {
            let plan = Plan::parse(
                &format!("name: r\nforwarding: {{deadlock: allow, bubble: false}}\n{lines}"),
                "rack.yaml",
            );
            risky_losses(&plan.unwrap_or_else(|error| panic!("{error}")))
        };
        // A cut ring is a row.
        assert_eq!(losses(RING), Some(vec![]));
        assert_eq!(losses("shape: {leaf-spine: {leaves: 4, nodes_per_leaf: 2, spines: 2}}"), Some(vec![]));
        assert_eq!(losses("shape: {star: {nodes: 4, planes: 2}}"), Some(vec![]));
        let square = "shape: {torus: {x: 4, y: 4}}\n";
        // With a level for each hop of the longest path no cycle can close. Over datelines, 12 of the 32 detours turn from a column back
        // into a row (an independent count, by a script).
        assert_eq!(losses(&format!("{square}channels: {{rise: hop}}")), Some(vec![]));
        let over_datelines = losses(&format!("{square}channels: {{rise: dateline}}"));
        assert_eq!(over_datelines.map(|losses| losses.len()), Some(12));
        assert_eq!(losses("shape: {torus: {x: 3, y: 3}}"), Some(vec![]));
        assert_eq!(losses("shape: {hypercube: {dimensions: 4}}"), Some(vec![]));
        assert_eq!(losses("shape: {star: {nodes: 200, planes: 4}}"), None);
    }

    #[test]
    fn short_rings_meshes_stars_and_trees_close_no_circle() {
        assert_eq!(judged("shape: {ring: {nodes: 3}}"), Safety::NoTransit);
        assert_eq!(judged("shape: {full-mesh: {nodes: 5}}"), Safety::NoTransit);
        assert_eq!(judged("shape: {star: {nodes: 5, planes: 2}}"), Safety::UpDown);
        let tree = "shape: {custom: {nodes: [a, b, c, d], switches: [s, t], links: [{a: a, b: s}, {a: b, b: s}, \
                    {a: s, b: t}, {a: c, b: t}, {a: d, b: t}]}}";
        assert_eq!(judged(tree), Safety::Acyclic);
    }
}
