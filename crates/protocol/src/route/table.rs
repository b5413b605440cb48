//! Forwarding table: the ports that lead to each member on shortest live paths.
//!
//! Every port on *some* shortest path is kept. Used are those of the lowest dimension, so that frames of a torus cross one
//! dimension after the other and close no cycle of waiting between dimensions (dimension order; Dally and Seitz 1987). A flow
//! picks one of these by the highest random weight over (entropy, link), so that when a link goes down only its flows move. A
//! link counts as live if both ends report it.
//!
//! A rack comes up link by link, and a member of a large one gets a thousand reports. So only links of members with
//! new reports are read. A new link only makes paths shorter or more numerous: its effect spreads from its ends and
//! stops where nothing changes. When a link goes down, the whole table is computed anew in the same manner, from the
//! member itself.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::graph::SharedGraph;
use super::hops::Hops;
use crate::ids::{NodeId, Plane, PortId};

const UNREACHED: u16 = u16::MAX;

/// Queue capacity that is kept, in members.
const CHANGED_CAPACITY_KEPT: usize = 64;

/// Next hops of one member.
#[derive(Debug)]
pub struct Table {
    graph: SharedGraph,
    /// Plane whose links are used; `None` for all links.
    plane: Option<Plane>,
    hops: Hops,
    /// Edge of each own port.
    edges_out: Vec<u16>,
    /// Dimension of each own port.
    dimensions: Vec<u8>,
    /// Number of hops to each member.
    distance: Vec<u16>,
    /// True, by edge, if the edge counted as live in the last computation.
    live: Vec<bool>,
    /// True, by edge, if no report about the edge exists and it has not been live yet.
    is_awaited: Vec<bool>,
    /// Members with changes that were not yet applied to their neighbours.
    changed: VecDeque<NodeId>,
    /// True, by member, if it is in `changed`.
    is_changed: Vec<bool>,
    /// Reused buffer, so that it is not allocated anew.
    learnt: Vec<PortId>,
    /// Members with new paths since the last call of [`Table::take_found`].
    found: Vec<NodeId>,
    /// True if paths may have been lost since then.
    is_new: bool,
}

/// Effect of table changes on paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// No path was lost, and these members have shorter or more paths.
    Only(Vec<NodeId>),
    /// Any path may have changed.
    Anew,
}

/// Port of the member for which a table is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnPort {
    /// Number of the port.
    pub port: PortId,
    /// Index of its link in the graph.
    pub edge: u16,
    /// Member at the other end.
    pub neighbour: NodeId,
    /// Dimension of its link; 0 outside of tori and hypercubes.
    pub dimension: u8,
}

impl Table {
    /// Returns a table without paths for a member of this graph.
    #[must_use]
    pub fn new(graph: SharedGraph) -> Self {
        Self::within(graph, None)
    }

    /// Returns a table without paths that uses only the links of a plane.
    #[must_use]
    pub fn within(graph: SharedGraph, plane: Option<Plane>) -> Self {
        let members = graph.members.len();
        let is_used: Vec<_> =
            graph.edges.iter().map(|edge| plane.is_none_or(|plane| edge.plane == plane)).collect();
        Self {
            graph,
            plane,
            hops: Hops::new(members),
            edges_out: Vec::new(),
            dimensions: Vec::new(),
            distance: vec![UNREACHED; members],
            live: vec![false; is_used.len()],
            is_awaited: is_used,
            changed: VecDeque::new(),
            is_changed: vec![false; members],
            learnt: Vec::new(),
            found: Vec::new(),
            is_new: true,
        }
    }

    /// Updates the table. `ports` are the member's own, equal in all calls. `live` returns
    /// true for edges that count. Since the last call only the member's own edges and those of members in `reported` may
    /// have changed.
    pub fn compute(
        &mut self,
        own: NodeId,
        ports: &[OwnPort],
        reported: &[NodeId],
        live: impl Fn(u16) -> bool,
    ) {
        if self.edges_out.is_empty() {
            self.edges_out = ports.iter().map(|port| port.edge).collect();
            self.dimensions = ports.iter().map(|port| port.dimension).collect();
        }
        let (mut begins, mut ends) = (Vec::new(), false);
        let graph = self.graph.clone();
        let of_others = reported.iter().flat_map(|member| graph.links(*member)).map(|(edge, _)| *edge);
        for edge in ports.iter().map(|port| port.edge).chain(of_others) {
            let plane = graph.edges[usize::from(edge)].plane;
            let is_live = self.plane.is_none_or(|used| used == plane) && live(edge);
            let was_live = core::mem::replace(&mut self.live[usize::from(edge)], is_live);
            if is_live && !was_live {
                begins.push(edge);
            }
            ends |= was_live && !is_live;
            self.is_awaited[usize::from(edge)] &= !is_live;
        }
        if ends || self.distance[own.index()] != 0 {
            self.is_new = true;
            self.hops.clear_all();
            self.distance.fill(UNREACHED);
            self.distance[own.index()] = 0;
            self.note(own);
        } else {
            for edge in begins {
                let ends = self.graph.edges[usize::from(edge)];
                self.extend(own, ports, ends.a, edge, ends.b);
                self.extend(own, ports, ends.b, edge, ends.a);
            }
        }
        self.spread(own, ports);
    }

    fn note(&mut self, member: NodeId) {
        if !core::mem::replace(&mut self.is_changed[member.index()], true) {
            self.changed.push_back(member);
        }
    }

    /// Applies changes to neighbours until no path changes.
    fn spread(&mut self, own: NodeId, ports: &[OwnPort]) {
        let graph = self.graph.clone();
        while let Some(member) = self.changed.pop_front() {
            self.is_changed[member.index()] = false;
            if member == own {
                for OwnPort { port, edge, neighbour, .. } in ports {
                    if self.live[usize::from(*edge)] {
                        self.learn(*neighbour, 1, &[*port]);
                    }
                }
                continue;
            }
            for (edge, neighbour) in graph.links(member) {
                if self.live[usize::from(*edge)] {
                    self.extend(own, ports, member, *edge, *neighbour);
                }
            }
        }
        self.changed.shrink_to(CHANGED_CAPACITY_KEPT);
    }

    /// Extends the paths to `from` over a live edge to `to`.
    fn extend(&mut self, own: NodeId, ports: &[OwnPort], from: NodeId, edge: u16, to: NodeId) {
        let distance = self.distance[from.index()];
        if distance == UNREACHED || distance >= self.distance[to.index()] {
            return;
        }
        if from == own {
            if let Some(own_port) = ports.iter().find(|candidate| candidate.edge == edge) {
                self.learn(to, 1, &[own_port.port]);
            }
            return;
        }
        let mut hops = core::mem::take(&mut self.learnt);
        hops.extend_from_slice(self.hops.towards(from));
        self.learn(to, distance + 1, &hops);
        hops.clear();
        self.learnt = hops;
    }

    /// Adds a path of this length to a member, over any of these hops.
    fn learn(&mut self, member: NodeId, distance: u16, hops: &[PortId]) {
        let known = &mut self.distance[member.index()];
        if distance > *known {
            return;
        }
        let mut is_new = distance < *known;
        if is_new {
            *known = distance;
            self.hops.clear(member);
        }
        for port in hops {
            is_new |= self.hops.insert(member, *port);
        }
        if is_new {
            self.found.push(member);
            self.note(member);
        }
    }

    /// Returns the changes of paths since the last call. Members are in order, without duplicates.
    pub fn take_found(&mut self) -> Found {
        let mut found = core::mem::take(&mut self.found);
        if core::mem::replace(&mut self.is_new, false) {
            return Found::Anew;
        }
        found.sort_unstable();
        found.dedup();
        Found::Only(found)
    }

    /// Returns true if a live path leads to the member.
    #[must_use]
    pub fn reaches(&self, destination: NodeId) -> bool {
        !self.hops.towards(destination).is_empty()
    }

    /// Stops waiting for links of this member that have not been up yet.
    pub fn stop_awaiting(&mut self, member: NodeId) {
        for (edge, _) in self.graph.links(member) {
            self.is_awaited[usize::from(*edge)] = false;
        }
    }

    /// Returns, by member, if a path would lead there if every link came up that has not been up yet.
    #[must_use]
    pub fn may_reach(&self, own: NodeId) -> Vec<bool> {
        self.graph
            .reachable(own, |edge, _| self.live[usize::from(edge)] || self.is_awaited[usize::from(edge)])
    }

    /// Returns the port of a flow; ports for which `avoid` is true are second choice.
    #[must_use]
    pub fn pick(&self, destination: NodeId, entropy: u16, avoid: impl Fn(PortId) -> bool) -> Option<PortId> {
        match self.hops.towards(destination) {
            [] => None,
            [port] => Some(*port),
            _ => self
                .ports(destination)
                .max_by_key(|port| (!avoid(*port), weight(entropy, self.edges_out[port.index()]))),
        }
    }

    /// Returns the port of all flows to a member: consecutive numbers use all ports equally. Ports for which `avoid` is true are
    /// second choice.
    #[must_use]
    pub fn pick_by_number(
        &self,
        destination: NodeId,
        number: usize,
        avoid: impl Fn(PortId) -> bool,
    ) -> Option<PortId> {
        let sound = self.ports(destination).filter(|port| !avoid(*port)).count();
        let usable = || self.ports(destination).filter(|port| sound == 0 || !avoid(*port));
        let count = if sound > 0 { sound } else { usable().count() };
        usable().nth(number % count.max(1))
    }

    /// Iterates over the ports of the lowest dimension on shortest paths to the member.
    pub fn ports(&self, destination: NodeId) -> impl Iterator<Item = PortId> + '_ {
        let hops = self.hops.towards(destination);
        let lowest = hops.iter().map(|port| self.dimensions[port.index()]).min();
        hops.iter().copied().filter(move |port| Some(self.dimensions[port.index()]) == lowest)
    }
}

fn weight(entropy: u16, edge: u16) -> u32 {
    hash_word((u32::from(entropy) << 16 | u32::from(edge)).wrapping_add(STEP))
}

/// Step between consecutive values to hash: 2^32 divided by the golden ratio.
pub(crate) const STEP: u32 = 0x9e37_79b9;

/// Returns a hash in which each bit depends on each bit of `word` (the finaliser of MurmurHash3).
pub(crate) const fn hash_word(word: u32) -> u32 {
    let word = (word ^ (word >> 16)).wrapping_mul(0x85eb_ca6b);
    let word = (word ^ (word >> 13)).wrapping_mul(0xc2b2_ae35);
    word ^ (word >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Plane;
    use crate::route::graph::{Edge, Graph, MemberRole};

    fn ring(nodes: u16) -> Graph {
        let edges = (0..nodes)
            .map(|node| Edge {
                a: NodeId(node),
                a_port: PortId(0),
                b: NodeId((node + 1) % nodes),
                b_port: PortId(1),
                plane: Plane(0),
            })
            .collect();
        Graph { members: vec![MemberRole::Endpoint; usize::from(nodes)], edges }
    }

    fn all_nodes(graph: &Graph) -> Vec<NodeId> {
        (0..graph.members.len() as u16).map(NodeId).collect()
    }

    fn own_port(port: u16, edge: u16, neighbour: u16) -> OwnPort {
        OwnPort { port: PortId(port), edge, neighbour: NodeId(neighbour), dimension: 0 }
    }

    fn table_of_zero(graph: &Graph, dead: &[u16]) -> Table {
        let mut table = Table::new(graph.clone().into());
        let last = graph.members.len() as u16 - 1;
        let ports = [own_port(0, 0, 1), own_port(1, last, last)];
        table.compute(NodeId(0), &ports, &all_nodes(graph), |edge| !dead.contains(&edge));
        table
    }

    fn ports(table: &Table, destination: u16) -> Vec<u16> {
        table.ports(NodeId(destination)).map(|port| port.0).collect()
    }

    #[test]
    fn a_ring_goes_the_short_way_and_splits_at_the_antipode() {
        let table = table_of_zero(&ring(8), &[]);
        assert_eq!(ports(&table, 3), [0]);
        assert_eq!(ports(&table, 5), [1]);
        assert_eq!(ports(&table, 4), [0, 1]);
    }

    #[test]
    fn a_cut_ring_goes_the_other_way_and_a_ring_cut_twice_loses_the_far_part() {
        let graph = ring(4);
        assert_eq!(ports(&table_of_zero(&graph, &[0]), 1), [1]);
        let twice = table_of_zero(&graph, &[0, 2]);
        assert!(!twice.reaches(NodeId(1)) && !twice.reaches(NodeId(2)) && twice.reaches(NodeId(3)));
    }

    #[test]
    fn only_links_that_have_not_been_up_may_still_reach_a_member() {
        let mut table = table_of_zero(&ring(4), &[0, 2]);
        assert_eq!(table.may_reach(NodeId(0)), [true; 4], "two links have never been up");
        let ports = [own_port(0, 0, 1), own_port(1, 3, 3)];
        let all = all_nodes(&ring(4));
        table.compute(NodeId(0), &ports, &all, |edge| edge != 3);
        assert_eq!(table.may_reach(NodeId(0)), [true; 4], "over the link that came");
        table.compute(NodeId(0), &ports, &all, |edge| edge != 0 && edge != 2);
        assert_eq!(table.may_reach(NodeId(0)), [true, false, false, true], "all have been up once");
        let mut leaver = table_of_zero(&ring(4), &[0, 1, 2]);
        leaver.stop_awaiting(NodeId(1));
        assert_eq!(leaver.may_reach(NodeId(0)), [true, false, true, true], "one between two leaves");
    }

    /// Computes all distances directly, over increasing sets of intermediate members.
    fn distances(graph: &Graph, live: &[bool]) -> Vec<Vec<u32>> {
        let members = graph.members.len();
        let mut far = vec![vec![1_000; members]; members];
        (0..members).for_each(|member| far[member][member] = 0);
        for (edge, _) in graph.edges.iter().zip(live).filter(|(_, live)| **live) {
            (far[edge.a.index()][edge.b.index()], far[edge.b.index()][edge.a.index()]) = (1, 1);
        }
        for by in 0..members {
            for from in 0..members {
                for to in 0..members {
                    far[from][to] = far[from][to].min(far[from][by] + far[by][to]);
                }
            }
        }
        far
    }

    /// Random racks whose links come and go: a port leads to a member if its neighbour is one hop closer.
    #[test]
    fn an_updated_table_equals_one_computed_from_the_definition() {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = |limit: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % limit
        };
        for _ in 0..60 {
            let members = 2 + random(9);
            let mut next_port = vec![0_u16; members];
            let mut take = |member: usize| {
                next_port[member] += 1;
                (NodeId(member as u16), PortId(next_port[member] - 1))
            };
            // Some pairs have two links.
            let edges: Vec<_> = (0..members * 2)
                .map(|_| {
                    let one = random(members);
                    let other = (one + 1 + random(members - 1)) % members;
                    let ((a, a_port), (b, b_port)) = (take(one), take(other));
                    Edge { a, a_port, b, b_port, plane: Plane(0) }
                })
                .collect();
            let ports: Vec<_> = edges
                .iter()
                .enumerate()
                .filter_map(|(index, edge)| match (edge.a == NodeId(0), edge.b == NodeId(0)) {
                    (true, _) => Some(own_port(edge.a_port.0, index as u16, edge.b.0)),
                    (_, true) => Some(own_port(edge.b_port.0, index as u16, edge.a.0)),
                    _ => None,
                })
                .collect();
            let graph = Graph { members: vec![MemberRole::Endpoint; members], edges };
            let mut grown = Table::new(graph.clone().into());
            let mut live = vec![false; graph.edges.len()];
            let mut routes = vec![Vec::new(); members];
            grown.compute(NodeId(0), &ports, &[], |_| false);
            assert_eq!(grown.take_found(), Found::Anew);
            for _ in 0..40 {
                let mut reported = Vec::new();
                for _ in 0..1 + random(3) {
                    let edge = random(live.len());
                    // More links come than go.
                    live[edge] = random(4) != 0;
                    // Of either end.
                    reported.push([graph.edges[edge].a, graph.edges[edge].b][random(2)]);
                }
                grown.compute(NodeId(0), &ports, &reported, |edge| live[usize::from(edge)]);
                let found = grown.take_found();
                for (member, before) in routes.iter_mut().enumerate() {
                    let now: Vec<_> = grown.ports(NodeId(member as u16)).collect();
                    let is_reported = match &found {
                        Found::Anew => true,
                        Found::Only(members) => members.contains(&NodeId(member as u16)),
                    };
                    assert!(is_reported || now == *before, "new paths to {member} were not reported");
                    *before = now;
                }
                let far = distances(&graph, &live);
                for (member, from_here) in far[0].iter().enumerate().skip(1) {
                    let leads = |own: &&OwnPort| {
                        live[usize::from(own.edge)] && far[own.neighbour.index()][member] + 1 == *from_here
                    };
                    let mut expected: Vec<_> = ports.iter().filter(leads).map(|own| own.port).collect();
                    expected.sort_unstable();
                    let found: Vec<_> = grown.ports(NodeId(member as u16)).collect();
                    assert_eq!(found, expected, "to {member} of {:?}, live {live:?}", graph.edges);
                }
            }
        }
    }

    /// Table of node 0 of a square: over dimension 0 to node 1 (port 0) and from there to 3, over dimension 1 to node 2 (port 1)
    /// and from there to 3.
    fn table_of_a_square(dead: &[u16]) -> Table {
        let edge = |a: u16, a_port: u16, b: u16, b_port: u16| Edge {
            a: NodeId(a),
            a_port: PortId(a_port),
            b: NodeId(b),
            b_port: PortId(b_port),
            plane: Plane(0),
        };
        let edges = vec![edge(0, 0, 1, 0), edge(2, 0, 3, 0), edge(0, 1, 2, 1), edge(1, 1, 3, 1)];
        let graph = Graph { members: vec![MemberRole::Endpoint; 4], edges };
        let mut table = Table::new(graph.clone().into());
        let ports = [own_port(0, 0, 1), OwnPort { dimension: 1, ..own_port(1, 2, 2) }];
        table.compute(NodeId(0), &ports, &all_nodes(&graph), |edge| !dead.contains(&edge));
        table
    }

    #[test]
    fn of_several_shortest_paths_those_of_the_lowest_dimension_are_used() {
        let table = table_of_a_square(&[]);
        assert_eq!((ports(&table, 1), ports(&table, 2), ports(&table, 3)), (vec![0], vec![1], vec![0]));
        for entropy in 0..100 {
            assert_eq!(table.pick(NodeId(3), entropy, |_| false), Some(PortId(0)));
        }
        assert_eq!(ports(&table_of_a_square(&[3]), 3), [1], "over the other dimension if a link is lost");
        assert_eq!(ports(&table_of_a_square(&[0]), 1), [1], "the long path");
    }

    #[test]
    fn consecutive_numbers_use_all_ports_equally() {
        // Edges 0 and 1 are parallel links to member 7, with six nodes behind it.
        let edge = |a: u16, a_port: u16, b: u16, b_port: u16| Edge {
            a: NodeId(a),
            a_port: PortId(a_port),
            b: NodeId(b),
            b_port: PortId(b_port),
            plane: Plane(0),
        };
        let up = (0..2).map(|port| edge(0, port, 7, port));
        let edges: Vec<_> = up.chain((1..7).map(|node| edge(node, 0, 7, 1 + node))).collect();
        let graph = Graph { members: vec![MemberRole::Endpoint; 8], edges };
        let table = |dead: &[u16]| {
            let mut table = Table::new(graph.clone().into());
            let own = [own_port(0, 0, 7), own_port(1, 1, 7)];
            table.compute(NodeId(0), &own, &all_nodes(&graph), |edge| !dead.contains(&edge));
            table
        };
        let picked = |table: &Table, avoided: u16| -> Vec<_> {
            let pick = |node: u16| table.pick_by_number(NodeId(node), node.into(), |port| port.0 == avoided);
            (1..7).map(|node| pick(node).map(|port| port.0)).collect()
        };
        let alternately = [Some(1), Some(0), Some(1), Some(0), Some(1), Some(0)];
        assert_eq!(picked(&table(&[]), 9), alternately);
        assert_eq!(picked(&table(&[]), 1), [Some(0); 6], "a port to avoid is second choice");
        assert_eq!(picked(&table(&[0]), 1), [Some(1); 6], "and is taken if there is no other");
        assert_eq!(picked(&table(&[0, 1]), 9), [None; 6]);
    }

    #[test]
    fn flows_spread_over_equal_paths() {
        let table = table_of_zero(&ring(8), &[]);
        let first =
            (0..1000).filter(|entropy| table.pick(NodeId(4), *entropy, |_| false) == Some(PortId(0))).count();
        assert!((400..600).contains(&first), "{first} of 1000 flows on one side");
    }
}
