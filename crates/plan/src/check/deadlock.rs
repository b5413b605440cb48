//! Deadlock analysis of a rack: dependencies between channels, and cycles of them.
//!
//! A frame that has arrived on one channel occupies a buffer there until the next channel has a free buffer: the first channel
//! *depends* on the second. The dependencies follow from the routes (all shortest paths between GPU nodes, because a flow
//! may take any of them) and from the rule by which frames change channels. If the dependencies have no cycle, some channel
//! can always progress (Dally and Seitz 1987). If they have one, a bubble may still keep the cycle moving: one free buffer
//! that new frames must not take.
//!
//! On a link that is not divided, all channels share one buffer.
//!
//! Routes of a rack with broken links differ. They are not analysed.

use std::collections::BTreeSet;

use rackloom_protocol::{Channel, Class, MemberRole, NodeId, RequestDrain};

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
            "write `channels: {rise: dateline}` (a ring) or `channels: {rise: hop}`, or leave `pfc` off: paused links keep no \
             bubble; or `forwarding: {deadlock: allow}` to see it happen"
        } else if self.has_bubble {
            "write `channels: {rise: hop}`: a bubble keeps single rings moving and not this; or \
             `forwarding: {deadlock: allow}` to see it happen"
        } else {
            "leave `bubble` at `true`, or write `channels: {rise: dateline}` (a ring) or `channels: {rise: hop}`; or \
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
    let dependencies = Dependencies::of(plan);
    let Some(cycle) = dependencies.cycle() else {
        return if plan.channels.config.levels > 1 { Safety::Climbing } else { Safety::Acyclic };
    };
    // A bubble needs counted buffers, and a link that pauses does not count in advance.
    let pauses = plan.links.iter().any(|link| link.profile.pfc.is_some());
    let has_bubble = plan.forwarding.bubble && !pauses;
    if has_bubble && dependencies.are_rings() {
        return Safety::Bubble;
    }
    let count = plan.channels.config.count();
    let edge_of = |buffer: &Buffer| (buffer / count / 2) as u16;
    let is_undivided = |edge: &u16| !plan.links[usize::from(*edge)].profile.channels.are_divided;
    let mut undivided: Vec<u16> =
        cycle.iter().map(edge_of).filter(|edge| count > 1 && is_undivided(edge)).collect();
    undivided.dedup();
    let channels = cycle.into_iter().map(|buffer| name(plan, count, buffer)).collect();
    Safety::Cycle(Cycle {
        channels,
        has_bubble,
        pauses,
        until_answered: plan.forwarding.config().drain == RequestDrain::Answered,
        undivided,
    })
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

/// Index of a channel of one direction of a link: (edge * 2 + backward) * channels + channel.
type Buffer = usize;

fn name(plan: &Plan, count: usize, buffer: Buffer) -> String {
    let (direction, channel) = (buffer / count, buffer % count);
    let edge = plan.links[direction / 2].edge;
    let (from, to) = if direction.is_multiple_of(2) { (edge.a, edge.b) } else { (edge.b, edge.a) };
    let ends = format!("{}->{}", plan.members[from.index()].name, plan.members[to.index()].name);
    let is_divided = count > 1 && plan.links[direction / 2].profile.channels.are_divided;
    if is_divided { format!("{ends} channel {channel}") } else { ends }
}

/// Returns the buffer that a channel uses: that of the first channel, if the link is not divided.
fn shared(plan: &Plan, buffer: Buffer) -> Buffer {
    let count = plan.channels.config.count();
    let is_divided = plan.links[buffer / count / 2].profile.channels.are_divided;
    if is_divided { buffer } else { buffer / count * count }
}

/// Dependencies between buffers.
struct Dependencies {
    successors: Vec<BTreeSet<Buffer>>,
}

impl Dependencies {
    fn of(plan: &Plan) -> Self {
        let count = plan.channels.config.count();
        let mut dependencies = Self { successors: vec![BTreeSet::new(); plan.links.len() * 2 * count] };
        let neighbours = distances::neighbours(plan);
        // By member: outgoing directions and their destinations.
        let mut leaving = vec![Vec::new(); plan.members.len()];
        for (edge, link) in plan.links.iter().enumerate() {
            leaving[link.edge.a.index()].push((edge * 2, link.edge.b));
            leaving[link.edge.b.index()].push((edge * 2 + 1, link.edge.a));
        }
        for destination in (0..plan.endpoint_count() as u16).map(NodeId) {
            dependencies.toward(plan, destination, &distances::from(&neighbours, destination), &leaving);
        }
        dependencies
    }

    /// Adds the dependencies of all frames to one node, from the farthest members inwards.
    fn toward(
        &mut self,
        plan: &Plan,
        destination: NodeId,
        hops: &[Option<u64>],
        leaving: &[Vec<(usize, NodeId)>],
    ) {
        let config = &plan.channels.config;
        let count = config.count();
        let mut members: Vec<(u64, usize)> =
            hops.iter().enumerate().filter_map(|(member, hops)| Some(((*hops)?, member))).collect();
        members.sort_unstable_by(|one, other| other.cmp(one));
        let mut arriving: Vec<BTreeSet<Buffer>> = vec![BTreeSet::new(); hops.len()];
        for (distance, member) in members.into_iter().filter(|(distance, _)| *distance > 0) {
            let held = std::mem::take(&mut arriving[member]);
            let is_source = plan.members[member].role == MemberRole::Endpoint;
            for (direction, next) in &leaving[member] {
                if hops[next.index()] != Some(distance - 1) {
                    continue;
                }
                let over_dateline = plan.channels.is_dateline((direction / 2) as u16);
                let buffer = |channel: Channel| direction * count + channel.index();
                let mut taken = BTreeSet::new();
                if is_source {
                    taken.extend(Class::ALL.map(|class| buffer(config.first(class, over_dateline))));
                }
                for from in &held {
                    let to = buffer(config.next(Channel((from % count) as u8), over_dateline));
                    self.successors[shared(plan, *from)].insert(shared(plan, to));
                    taken.insert(to);
                }
                if *next != destination {
                    arriving[next.index()].extend(taken);
                } else if plan.forwarding.config().drain == RequestDrain::Answered {
                    self.answers(plan, taken, &leaving[destination.index()]);
                }
            }
        }
    }

    /// Adds dependencies of requests at their node on the answers that leave it, on any link.
    fn answers(&mut self, plan: &Plan, requests: BTreeSet<Buffer>, leaving: &[(usize, NodeId)]) {
        let config = &plan.channels.config;
        let count = config.count();
        for request in requests {
            let lane = config.lane(Channel((request % count) as u8));
            let uses_lane = |class: &Class| usize::from(config.lane_of[class.index()]) == lane;
            for class in [Class::Request, Class::Bulk].into_iter().filter(uses_lane) {
                for (direction, _) in leaving {
                    let over_dateline = plan.channels.is_dateline((direction / 2) as u16);
                    let answer = config.first(class.reply(), over_dateline);
                    let answer = shared(plan, direction * count + answer.index());
                    self.successors[shared(plan, request)].insert(answer);
                }
            }
        }
    }

    /// Returns a cycle, if there is one.
    fn cycle(&self) -> Option<Vec<Buffer>> {
        let mut is_done = vec![false; self.successors.len()];
        let mut is_on_path = vec![false; self.successors.len()];
        for start in 0..self.successors.len() {
            if is_done[start] {
                continue;
            }
            let mut path = vec![(start, self.successors[start].iter())];
            is_on_path[start] = true;
            while let Some((here, left)) = path.last_mut() {
                match left.next() {
                    Some(next) if is_on_path[*next] => {
                        let first = path.iter().position(|(buffer, _)| buffer == next).unwrap_or(0);
                        return Some(path[first..].iter().map(|(buffer, _)| *buffer).collect());
                    }
                    Some(next) if !is_done[*next] => {
                        is_on_path[*next] = true;
                        path.push((*next, self.successors[*next].iter()));
                    }
                    Some(_) => {}
                    None => {
                        (is_done[*here], is_on_path[*here]) = (true, false);
                        path.pop();
                    }
                }
            }
        }
        None
    }

    /// Returns true if all cycles are single rings that only a member's own frames enter. A bubble suffices for these.
    fn are_rings(&self) -> bool {
        let group = self.groups();
        let mut size = vec![0_usize; group.iter().max().map_or(0, |most| most + 1)];
        group.iter().for_each(|group| size[*group] += 1);
        self.successors.iter().enumerate().all(|(buffer, successors)| {
            let inside = successors.iter().filter(|next| group[**next] == group[buffer]).count();
            let enters =
                successors.iter().any(|next| group[*next] != group[buffer] && size[group[*next]] > 1);
            inside <= 1 && !enters
        })
    }

    /// Returns for each buffer its strongly connected component (Kosaraju).
    fn groups(&self) -> Vec<usize> {
        let count = self.successors.len();
        let mut waits_for_it = vec![Vec::new(); count];
        for (buffer, successors) in self.successors.iter().enumerate() {
            successors.iter().for_each(|next| waits_for_it[*next].push(buffer));
        }
        let mut order = Vec::with_capacity(count);
        let mut is_seen = vec![false; count];
        for start in 0..count {
            walk(
                start,
                &mut is_seen,
                |buffer| self.successors[buffer].iter().copied().collect(),
                |buffer| {
                    order.push(buffer);
                },
            );
        }
        let (mut group, mut number) = (vec![0; count], 0);
        let mut is_seen = vec![false; count];
        for start in order.into_iter().rev() {
            if !is_seen[start] {
                walk(
                    start,
                    &mut is_seen,
                    |buffer| waits_for_it[buffer].clone(),
                    |buffer| group[buffer] = number,
                );
                number += 1;
            }
        }
        group
    }
}

/// Visits all unseen buffers that can be reached from one, depth first, and calls `leave` after all successors.
fn walk(
    start: Buffer,
    is_seen: &mut [bool],
    successors: impl Fn(Buffer) -> Vec<Buffer>,
    mut leave: impl FnMut(Buffer),
) {
    if std::mem::replace(&mut is_seen[start], true) {
        return;
    }
    let mut path = vec![(start, successors(start).into_iter())];
    while let Some((here, left)) = path.last_mut() {
        match left.next() {
            Some(next) => {
                if !std::mem::replace(&mut is_seen[next], true) {
                    path.push((next, successors(next).into_iter()));
                }
            }
            None => {
                leave(*here);
                path.pop();
            }
        }
    }
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
    fn short_rings_meshes_stars_and_trees_close_no_circle() {
        assert_eq!(judged("shape: {ring: {nodes: 3}}"), Safety::NoTransit);
        assert_eq!(judged("shape: {full-mesh: {nodes: 5}}"), Safety::NoTransit);
        assert_eq!(judged("shape: {star: {nodes: 5, planes: 2}}"), Safety::UpDown);
        let tree = "shape: {custom: {nodes: [a, b, c, d], switches: [s, t], links: [{a: a, b: s}, {a: b, b: s}, \
                    {a: s, b: t}, {a: c, b: t}, {a: d, b: t}]}}";
        assert_eq!(judged(tree), Safety::Acyclic);
    }
}
