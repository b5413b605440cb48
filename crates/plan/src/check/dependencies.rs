//! Dependencies between the buffers of a rack, and cycles of them.
//!
//! A frame that has arrived in one buffer occupies it until the next one on its path has free space: the first buffer depends on the
//! second. Paths are all shortest ones between GPU nodes over the lowest dimension (`rackloom_protocol::route::table`), and the
//! channel of the next link follows from the rule by which frames change channels. On a link that is not divided, all channels
//! share one buffer.
//!
//! Of GPU nodes with equal links to the same switches, only [`TWINS`] take part: exchanging two of them changes no path of others, so a
//! cycle through any of them is one through these. The buffers that follow each other in a cycle belong to different nodes, and three nodes
//! suffice to number them so that neighbours in the cycle differ. Racks with thousands of nodes are checked in the time of small ones.
//!
//! This file does not decide if a cycle can stand still.

use std::collections::{BTreeMap, BTreeSet};

use rackloom_protocol::{Channel, Class, MemberRole, NodeId, RequestDrain};

use crate::model::plan::{Plan, distances};

/// Index of a channel of one direction of a link: (edge * 2 + backward) * channels + channel.
pub(super) type Buffer = usize;

/// Channels of one direction of a link, one bit each: a link has at most 32.
type Channels = u32;

/// Number of equal nodes that take part.
const TWINS: usize = 3;

/// Dependencies between buffers.
pub(super) struct Dependencies {
    successors: Vec<BTreeSet<Buffer>>,
}

impl Dependencies {
    /// Returns the dependencies of a rack without the link `lost`, by edge.
    pub(super) fn without(plan: &Plan, lost: Option<usize>) -> Self {
        Self::of(plan, lost, TWINS)
    }

    /// Returns the dependencies of a rack in which at most `twins` equal nodes take part.
    fn of(plan: &Plan, lost: Option<usize>, twins: usize) -> Self {
        let mut transits = Transits::new(plan, lost, twins);
        let next = |links: &Vec<(usize, NodeId)>| links.iter().map(|(_, next)| *next).collect();
        let neighbours: Vec<Vec<NodeId>> = transits.leaving.iter().map(next).collect();
        let has_links = |node: &NodeId| !neighbours[node.index()].is_empty();
        for destination in (0..plan.endpoint_count() as u16).map(NodeId).filter(has_links) {
            transits.add(destination, &distances::from(&neighbours, destination));
        }
        let mut dependencies =
            Self { successors: vec![BTreeSet::new(); plan.links.len() * 2 * plan.channels.config.count()] };
        transits.each_onward(|from, to| {
            dependencies.successors[from].insert(to);
        });
        if plan.forwarding.config().drain == RequestDrain::Answered {
            transits.each_answer(|request, answer| {
                dependencies.successors[request].insert(answer);
            });
        }
        dependencies
    }

    /// Returns a cycle, if there is one.
    pub(super) fn cycle(&self) -> Option<Vec<Buffer>> {
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
    pub(super) fn are_rings(&self) -> bool {
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

/// Directions and channels that follow each other on the paths of frames. The channel of the next link follows from the channel and from
/// the link, so a pair of directions needs the channels of the first one only.
struct Transits<'p> {
    plan: &'p Plan,
    count: usize,
    is_dateline: Vec<bool>,
    /// By member: outgoing directions and their destinations.
    leaving: Vec<Vec<(usize, NodeId)>>,
    /// By direction: the next directions, and the channels from which frames go on to them.
    onward: Vec<BTreeMap<usize, Channels>>,
    /// By direction: the channels on which frames reach their node.
    ending: Vec<Channels>,
}

impl<'p> Transits<'p> {
    fn new(plan: &'p Plan, lost: Option<usize>, twins: usize) -> Self {
        let directions = plan.links.len() * 2;
        let mut is_dateline = vec![false; plan.links.len()];
        plan.channels.datelines.iter().for_each(|edge| is_dateline[usize::from(*edge)] = true);
        let mut leaving = vec![Vec::new(); plan.members.len()];
        let takes_part = taking_part(plan, lost, &is_dateline, twins);
        let has_both = |edge: &usize| {
            let ends = plan.links[*edge].edge;
            takes_part[ends.a.index()] && takes_part[ends.b.index()]
        };
        for edge in (0..plan.links.len()).filter(|edge| Some(*edge) != lost).filter(has_both) {
            let link = &plan.links[edge];
            leaving[link.edge.a.index()].push((edge * 2, link.edge.b));
            leaving[link.edge.b.index()].push((edge * 2 + 1, link.edge.a));
        }
        let count = plan.channels.config.count();
        let (onward, ending) = (vec![BTreeMap::new(); directions], vec![0; directions]);
        Self { plan, count, is_dateline, leaving, onward, ending }
    }

    /// Adds all frames to one node, from the farthest members inwards.
    fn add(&mut self, destination: NodeId, hops: &[Option<u64>]) {
        let mut members: Vec<(u64, usize)> =
            hops.iter().enumerate().filter_map(|(member, hops)| Some(((*hops)?, member))).collect();
        members.sort_unstable_by(|one, other| other.cmp(one));
        let mut arriving: Vec<Vec<(usize, Channels)>> = vec![Vec::new(); hops.len()];
        for (distance, member) in members.into_iter().filter(|(distance, _)| *distance > 0) {
            let arrived = std::mem::take(&mut arriving[member]);
            let is_source = self.plan.members[member].role == MemberRole::Endpoint;
            for (direction, next) in self.used(member, hops, distance) {
                let mut taken = if is_source { self.first(direction) } else { 0 };
                for (from, channels) in &arrived {
                    *self.onward[*from].entry(direction).or_insert(0) |= channels;
                    taken |= channels_of(*channels)
                        .fold(0, |all, channel| all | 1 << self.next(channel, direction));
                }
                if next == destination {
                    self.ending[direction] |= taken;
                } else {
                    arriving[next.index()].push((direction, taken));
                }
            }
        }
    }

    /// Returns the links of a member on shortest paths, with their destinations: those of the lowest dimension.
    fn used(&self, member: usize, hops: &[Option<u64>], distance: u64) -> Vec<(usize, NodeId)> {
        let dimension = |direction: usize| self.plan.links[direction / 2].dimension;
        let is_closer = |(_, next): &(usize, NodeId)| hops[next.index()] == Some(distance - 1);
        let mut shortest: Vec<_> = self.leaving[member].iter().copied().filter(is_closer).collect();
        let lowest = shortest.iter().map(|(direction, _)| dimension(*direction)).min();
        shortest.retain(|(direction, _)| Some(dimension(*direction)) == lowest);
        shortest
    }

    /// Returns the channels on which frames leave their source.
    fn first(&self, direction: usize) -> Channels {
        let first = |class| self.plan.channels.config.first(class, self.is_dateline[direction / 2]);
        Class::ALL.into_iter().fold(0, |all, class| all | 1 << first(class).index())
    }

    /// Returns the channel on which a frame of a channel is forwarded.
    fn next(&self, channel: usize, direction: usize) -> usize {
        self.plan.channels.config.next(Channel(channel as u8), self.is_dateline[direction / 2]).index()
    }

    /// Returns the buffer of a channel: that of the first channel, if the link is not divided.
    fn buffer(&self, direction: usize, channel: usize) -> Buffer {
        let is_divided = self.plan.links[direction / 2].profile.channels.are_divided;
        direction * self.count + if is_divided { channel } else { 0 }
    }

    /// Calls `add` for each buffer and each next buffer of its frames.
    fn each_onward(&self, mut add: impl FnMut(Buffer, Buffer)) {
        for (from, onward) in self.onward.iter().enumerate() {
            for (to, channels) in onward {
                for channel in channels_of(*channels) {
                    add(self.buffer(from, channel), self.buffer(*to, self.next(channel, *to)));
                }
            }
        }
    }

    /// Calls `add` for each buffer from which requests reach their node, and each buffer of the answers that leave it, on any link.
    fn each_answer(&self, mut add: impl FnMut(Buffer, Buffer)) {
        let config = &self.plan.channels.config;
        for (direction, channels) in self.ending.iter().enumerate() {
            let edge = self.plan.links[direction / 2].edge;
            let node = if direction.is_multiple_of(2) { edge.b } else { edge.a };
            for channel in channels_of(*channels) {
                let lane = config.lane(Channel(channel as u8));
                let uses_lane = |class: &Class| usize::from(config.lane_of[class.index()]) == lane;
                for class in [Class::Request, Class::Bulk].into_iter().filter(uses_lane) {
                    for (leaving, _) in &self.leaving[node.index()] {
                        let answer = config.first(class.reply(), self.is_dateline[leaving / 2]);
                        add(self.buffer(direction, channel), self.buffer(*leaving, answer.index()));
                    }
                }
            }
        }
    }
}

/// Other end, dimension, dateline and division into channels of a link.
type Kind = (NodeId, u8, bool, bool);

/// Returns for each member true if it takes part: all but the nodes that equal `twins` others before them.
fn taking_part(plan: &Plan, lost: Option<usize>, is_dateline: &[bool], twins: usize) -> Vec<bool> {
    let is_switch = |member: NodeId| plan.members[member.index()].role.is_switch();
    let mut links_of: Vec<Vec<Kind>> = vec![Vec::new(); plan.members.len()];
    for (edge, link) in plan.links.iter().enumerate().filter(|(edge, _)| Some(*edge) != lost) {
        for (node, other) in [(link.edge.a, link.edge.b), (link.edge.b, link.edge.a)] {
            let kind = (other, link.dimension, is_dateline[edge], link.profile.channels.are_divided);
            links_of[node.index()].push(kind);
        }
    }
    let mut counts = BTreeMap::new();
    let takes_part = |(member, mut links): (usize, Vec<Kind>)| {
        if plan.members[member].role != MemberRole::Endpoint || !links.iter().all(|link| is_switch(link.0)) {
            return true;
        }
        links.sort_unstable();
        let count = counts.entry(links).or_insert(0);
        *count += 1;
        *count <= twins
    };
    links_of.into_iter().enumerate().map(takes_part).collect()
}

/// Returns the numbers of these channels.
fn channels_of(channels: Channels) -> impl Iterator<Item = usize> {
    (0..Channels::BITS).filter(move |channel| channels & (1 << channel) != 0).map(|channel| channel as usize)
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

    /// Compares the analysis of a rack with and without the nodes that equal others, whole and after the loss of each link. Returns the
    /// number of analyses with a cycle.
    fn compared(text: &str) -> usize {
        let plan = Plan::parse(text, "rack").unwrap_or_else(|error| panic!("{error}"));
        let lost = (0..plan.links.len()).map(Some).chain([None]);
        let analysed = |lost| {
            let [few, all] = [TWINS, usize::MAX].map(|twins| Dependencies::of(&plan, lost, twins));
            let (is_cyclic, is_ring) = (all.cycle().is_some(), all.are_rings());
            assert_eq!(
                (few.cycle().is_some(), few.are_rings()),
                (is_cyclic, is_ring),
                "{text}, without {lost:?}"
            );
            is_cyclic
        };
        lost.map(analysed).filter(|is_cyclic| *is_cyclic).count()
    }

    /// Returns a rack in which each of these switches has this many nodes. `links` are pairs of switches.
    fn custom(switches: usize, nodes_each: usize, links: &[(usize, usize)]) -> String {
        let nodes: Vec<String> = (0..switches * nodes_each).map(|node| format!("n{node}")).collect();
        let names: Vec<String> = (0..switches).map(|switch| format!("s{switch}")).collect();
        let to_switch = |node: usize| format!("{{a: n{node}, b: s{}}}", node / nodes_each);
        let between = links.iter().map(|(one, other)| format!("{{a: s{one}, b: s{other}}}"));
        let links: Vec<String> = (0..nodes.len()).map(to_switch).chain(between).collect();
        format!(
            "{{name: r, forwarding: {{deadlock: allow}}, shape: {{custom: {{nodes: [{}], switches: [{}], links: [{}]}}}}}}",
            nodes.join(", "),
            names.join(", "),
            links.join(", ")
        )
    }

    #[test]
    fn three_of_equal_nodes_find_the_cycles_that_all_find() {
        let ring = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)];
        let mut cyclic = 0;
        for text in [
            "{name: r, shape: {star: {nodes: 7, planes: 2}}}".to_owned(),
            "{name: r, forwarding: {deadlock: allow, drain: answered}, shape: {star: {nodes: 5}}}".to_owned(),
            "{name: r, shape: {leaf-spine: {leaves: 3, nodes_per_leaf: 5, spines: 2}}}".to_owned(),
            custom(5, 5, &ring),
            custom(5, 4, &ring[..4]),
            custom(6, 4, &[(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 2)]),
        ] {
            cyclic += compared(&text);
        }
        assert!(cyclic > 0, "no rack has a cycle");
    }
}
