//! Graph of the rack: all members and links, as the plan states them.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Deref;

use crate::ids::{NodeId, Plane, PortId};

/// Role of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemberRole {
    /// A GPU node.
    Endpoint,
    /// Forwarder without memory.
    Switch,
    /// Switch with a reduction unit: a forwarder that is an endpoint as well. It is no rank.
    ReducingSwitch,
    /// Process of a GPU node: an endpoint with a single link, to its GPU node. It is no rank.
    Process,
    /// Process whose paths use only links of the plane of its own link.
    PinnedProcess,
}

impl MemberRole {
    /// Returns true if the member has memory, and begins and receives operations.
    #[must_use]
    pub const fn is_endpoint(self) -> bool {
        matches!(self, Self::Endpoint | Self::ReducingSwitch | Self::Process | Self::PinnedProcess)
    }

    /// Returns true for switches, with or without a reduction unit.
    #[must_use]
    pub const fn is_switch(self) -> bool {
        matches!(self, Self::Switch | Self::ReducingSwitch)
    }

    /// Returns true if the member has a part of the rack's job: GPU nodes, and switches with a reduction unit.
    #[must_use]
    pub const fn has_job(self) -> bool {
        matches!(self, Self::Endpoint | Self::ReducingSwitch)
    }

    /// Returns true for processes of a GPU node.
    #[must_use]
    pub const fn is_process(self) -> bool {
        matches!(self, Self::Process | Self::PinnedProcess)
    }
}

/// Link between two members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// Member at one end.
    pub a: NodeId,
    /// Port of `a`.
    pub a_port: PortId,
    /// Member at the other end.
    pub b: NodeId,
    /// Port of `b`.
    pub b_port: PortId,
    /// The plane the link belongs to.
    pub plane: Plane,
}

/// Members of the rack by [`NodeId`], and links by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Roles; the index is the [`NodeId`]. GPU nodes come first, and processes of GPU nodes last.
    pub members: Vec<MemberRole>,
    /// Links.
    pub edges: Vec<Edge>,
}

/// Port of a member of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphPort {
    /// Index of the link.
    pub edge: u16,
    /// Member at the other end.
    pub neighbour: NodeId,
    /// Plane of the link.
    pub plane: Plane,
}

impl Graph {
    /// Number of GPU nodes (ranks). Their processes do not count.
    #[must_use]
    pub fn endpoint_count(&self) -> usize {
        self.members.iter().filter(|role| **role == MemberRole::Endpoint).count()
    }

    /// Number of members with a part of the rack's job: GPU nodes, and behind them switches with a reduction unit.
    #[must_use]
    pub fn participant_count(&self) -> usize {
        self.members.iter().filter(|role| role.has_job()).count()
    }

    /// Returns all endpoints: GPU nodes, switches with a reduction unit, and processes of GPU nodes.
    pub fn endpoints(&self) -> impl Iterator<Item = NodeId> {
        let members = (0..).zip(&self.members).filter(|(_, role)| role.is_endpoint());
        members.map(|(number, _)| NodeId(number))
    }

    /// Returns, by member, the plane to which its paths are restricted. Empty if none are.
    #[must_use]
    pub fn pinned_planes(&self) -> Vec<Option<Plane>> {
        if !self.members.contains(&MemberRole::PinnedProcess) {
            return Vec::new();
        }
        let mut planes = vec![None; self.members.len()];
        for edge in &self.edges {
            for end in [edge.a, edge.b] {
                if self.members[end.index()] == MemberRole::PinnedProcess {
                    planes[end.index()] = Some(edge.plane);
                }
            }
        }
        planes
    }

    /// Returns the ports of a member in port order.
    #[must_use]
    pub fn ports(&self, member: NodeId) -> Vec<GraphPort> {
        let mut ports: Vec<_> = self
            .edges
            .iter()
            .enumerate()
            .filter_map(|(index, edge)| {
                let (port, neighbour) = if edge.a == member {
                    (edge.a_port, edge.b)
                } else if edge.b == member {
                    (edge.b_port, edge.a)
                } else {
                    return None;
                };
                Some((port, GraphPort { edge: index as u16, neighbour, plane: edge.plane }))
            })
            .collect();
        ports.sort_unstable_by_key(|(port, _)| *port);
        ports.into_iter().map(|(_, port)| port).collect()
    }
}

/// Graph of a rack that never changes, with its links sorted by member. All members share one copy.
#[derive(Clone, Debug)]
pub struct SharedGraph(Arc<Sorted>);

#[derive(Debug)]
struct Sorted {
    graph: Graph,
    /// Index of the first link of each member, and the end of the last.
    begins: Vec<u32>,
    /// Edge and neighbour, member by member, port by port.
    links: Vec<(u16, NodeId)>,
}

impl From<Graph> for SharedGraph {
    fn from(graph: Graph) -> Self {
        let edges = graph.edges.iter().enumerate();
        let mut ends: Vec<_> = edges
            .flat_map(|(index, edge)| {
                let index = index as u16;
                [(edge.a, edge.a_port, index, edge.b), (edge.b, edge.b_port, index, edge.a)]
            })
            .collect();
        ends.sort_unstable_by_key(|(member, port, ..)| (*member, *port));
        let mut begins = vec![0; graph.members.len() + 1];
        for (member, ..) in &ends {
            begins[member.index() + 1] += 1;
        }
        for index in 1..begins.len() {
            begins[index] += begins[index - 1];
        }
        let links = ends.into_iter().map(|(_, _, edge, neighbour)| (edge, neighbour)).collect();
        Self(Arc::new(Sorted { graph, begins, links }))
    }
}

impl Deref for SharedGraph {
    type Target = Graph;

    fn deref(&self) -> &Graph {
        &self.0.graph
    }
}

impl SharedGraph {
    /// Returns the links of a member in port order: (edge index, neighbour).
    #[must_use]
    pub fn links(&self, member: NodeId) -> &[(u16, NodeId)] {
        let begins = &self.0.begins;
        &self.0.links[begins[member.index()] as usize..begins[member.index() + 1] as usize]
    }

    /// Returns, by member, if a path leads there from `own`, itself included, over links that satisfy `passes(edge,
    /// neighbour)`.
    #[must_use]
    pub fn reachable(&self, own: NodeId, passes: impl Fn(u16, NodeId) -> bool) -> Vec<bool> {
        let mut reached = vec![false; self.members.len()];
        reached[own.index()] = true;
        let mut members = vec![own];
        while let Some(member) = members.pop() {
            for (edge, neighbour) in self.links(member) {
                if passes(*edge, *neighbour) && !core::mem::replace(&mut reached[neighbour.index()], true) {
                    members.push(*neighbour);
                }
            }
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_by_member_are_its_ports_in_order() {
        let edge = |a: u16, a_port: u16, b: u16, b_port: u16| Edge {
            a: NodeId(a),
            a_port: PortId(a_port),
            b: NodeId(b),
            b_port: PortId(b_port),
            plane: Plane(0),
        };
        let edges = vec![edge(1, 1, 0, 0), edge(2, 0, 1, 0), edge(0, 1, 2, 1), edge(1, 2, 2, 2)];
        let graph = Graph { members: vec![MemberRole::Endpoint; 4], edges };
        let shared = SharedGraph::from(graph.clone());
        for member in (0..4).map(NodeId) {
            let ports: Vec<_> = graph.ports(member).iter().map(|port| (port.edge, port.neighbour)).collect();
            assert_eq!(shared.links(member), ports, "{member}");
        }
        assert_eq!(shared.links(NodeId(1)), [(1, NodeId(2)), (0, NodeId(0)), (3, NodeId(2))]);
        assert_eq!(shared.edges, graph.edges);
    }

    #[test]
    fn a_path_uses_only_links_that_pass() {
        let edge = |a: u16, b: u16| {
            let port = PortId(0);
            Edge { a: NodeId(a), a_port: port, b: NodeId(b), b_port: port, plane: Plane(0) }
        };
        let edges = vec![edge(0, 1), edge(1, 2), edge(2, 3), edge(3, 0)];
        let ring = SharedGraph::from(Graph { members: vec![MemberRole::Endpoint; 4], edges });
        let from = |own: u16, passes: &dyn Fn(u16, NodeId) -> bool| ring.reachable(NodeId(own), passes);
        assert_eq!(from(0, &|_, _| true), [true; 4]);
        assert_eq!(from(0, &|_, _| false), [true, false, false, false], "itself");
        assert_eq!(from(0, &|edge, _| edge == 1 || edge == 3), [true, false, false, true]);
        assert_eq!(
            from(2, &|_, member| member != NodeId(1)),
            [true, false, true, true],
            "the other way round"
        );
    }
}
