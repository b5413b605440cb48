//! Dependencies between the buffers of a rack, and cycles of them.
//!
//! A frame that has arrived in one buffer occupies it until the next one on its path has free space: the first buffer depends on the
//! second. Paths are all shortest ones between GPU nodes over the lowest dimension (`rackloom_protocol::route::table`), and the
//! channel of the next link follows from the rule by which frames change channels. On a link that is not divided, all channels
//! share one buffer.
//!
//! This file does not decide if a cycle can stand still.

use std::collections::{BTreeMap, BTreeSet};

use rackloom_protocol::{Channel, Class, MemberRole, NodeId, RequestDrain};

use crate::model::plan::{Plan, distances};

/// Index of a channel of one direction of a link: (edge * 2 + backward) * channels + channel.
pub(super) type Buffer = usize;

/// Channels of one direction of a link, one bit each: a link has at most 32.
type Channels = u32;

/// Dependencies between buffers.
pub(super) struct Dependencies {
    successors: Vec<BTreeSet<Buffer>>,
}

impl Dependencies {
    /// Returns the dependencies of a rack without the link `lost`, by edge.
    pub(super) fn without(plan: &Plan, lost: Option<usize>) -> Self {
        let mut transits = Transits::new(plan, lost);
        let next = |links: &Vec<(usize, NodeId)>| links.iter().map(|(_, next)| *next).collect();
        let neighbours: Vec<Vec<NodeId>> = transits.leaving.iter().map(next).collect();
        for destination in (0..plan.endpoint_count() as u16).map(NodeId) {
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
    fn new(plan: &'p Plan, lost: Option<usize>) -> Self {
        let directions = plan.links.len() * 2;
        let mut leaving = vec![Vec::new(); plan.members.len()];
        for (edge, link) in plan.links.iter().enumerate().filter(|(edge, _)| Some(*edge) != lost) {
            leaving[link.edge.a.index()].push((edge * 2, link.edge.b));
            leaving[link.edge.b.index()].push((edge * 2 + 1, link.edge.a));
        }
        let mut is_dateline = vec![false; plan.links.len()];
        plan.channels.datelines.iter().for_each(|edge| is_dateline[usize::from(*edge)] = true);
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
