//! Which ports lead to which member, by shortest live path.
//!
//! Every port on *some* shortest path is kept; a flow picks one by highest random weight over (entropy, link), so that
//! when a link goes only the flows on it move. A link counts as live if both ends say so.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::graph::Graph;
use crate::ids::{NodeId, PortId};

/// The next hops of one member.
#[derive(Debug, Default)]
pub struct Table {
    hops: Vec<Vec<(PortId, u16)>>,
    adjacency: Vec<Vec<(u16, NodeId)>>,
}

impl Table {
    /// A table without paths for a member of this graph.
    #[must_use]
    pub fn new(graph: &Graph) -> Self {
        let mut adjacency = vec![Vec::new(); graph.members.len()];
        for (index, edge) in graph.edges.iter().enumerate() {
            adjacency[edge.a.index()].push((index as u16, edge.b));
            adjacency[edge.b.index()].push((index as u16, edge.a));
        }
        Self { hops: vec![Vec::new(); graph.members.len()], adjacency }
    }

    /// Compute the table anew. `ports` are the member's own (port, edge, neighbour); `live` tells which edges count.
    pub fn compute(&mut self, own: NodeId, ports: &[(PortId, u16, NodeId)], live: impl Fn(u16) -> bool) {
        self.hops.iter_mut().for_each(Vec::clear);
        let mut distance = vec![u32::MAX; self.hops.len()];
        distance[own.index()] = 0;
        let mut frontier = VecDeque::new();
        for (port, edge, neighbour) in ports {
            if live(*edge) {
                self.hops[neighbour.index()].push((*port, *edge));
                if distance[neighbour.index()] == u32::MAX {
                    distance[neighbour.index()] = 1;
                    frontier.push_back(*neighbour);
                }
            }
        }
        while let Some(member) = frontier.pop_front() {
            let next_distance = distance[member.index()] + 1;
            for (edge, neighbour) in &self.adjacency[member.index()] {
                let known = distance[neighbour.index()];
                if known < next_distance || !live(*edge) {
                    continue;
                }
                if known == u32::MAX {
                    distance[neighbour.index()] = next_distance;
                    frontier.push_back(*neighbour);
                }
                let inherited = core::mem::take(&mut self.hops[member.index()]);
                let hops = &mut self.hops[neighbour.index()];
                for hop in &inherited {
                    if !hops.contains(hop) {
                        hops.push(*hop);
                    }
                }
                self.hops[member.index()] = inherited;
            }
        }
    }

    /// Whether a live path leads to the member.
    #[must_use]
    pub fn reaches(&self, destination: NodeId) -> bool {
        self.hops.get(destination.index()).is_some_and(|hops| !hops.is_empty())
    }

    /// The port for a flow; `avoid` tells which ports are second choice.
    #[must_use]
    pub fn pick(&self, destination: NodeId, entropy: u16, avoid: impl Fn(PortId) -> bool) -> Option<PortId> {
        let hops = self.hops.get(destination.index())?;
        match hops.as_slice() {
            [] => None,
            [(port, _)] => Some(*port),
            several => several
                .iter()
                .max_by_key(|(port, edge)| (!avoid(*port), weight(entropy, *edge)))
                .map(|(port, _)| *port),
        }
    }

    /// The ports of all shortest paths to the member.
    pub fn ports(&self, destination: NodeId) -> impl Iterator<Item = PortId> + '_ {
        self.hops.get(destination.index()).into_iter().flatten().map(|(port, _)| *port)
    }
}

fn weight(entropy: u16, edge: u16) -> u32 {
    let mut hash = (u32::from(entropy) << 16 | u32::from(edge)).wrapping_add(0x9e37_79b9);
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Plane;
    use crate::route::graph::{Edge, MemberRole};

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

    fn table_of_zero(graph: &Graph, dead: &[u16]) -> Table {
        let mut table = Table::new(graph);
        let last = graph.members.len() as u16 - 1;
        let ports = [(PortId(0), 0, NodeId(1)), (PortId(1), last, NodeId(last))];
        table.compute(NodeId(0), &ports, |edge| !dead.contains(&edge));
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
    fn flows_spread_over_equal_paths() {
        let table = table_of_zero(&ring(8), &[]);
        let first =
            (0..1000).filter(|entropy| table.pick(NodeId(4), *entropy, |_| false) == Some(PortId(0))).count();
        assert!((400..600).contains(&first), "{first} of 1000 flows on one side");
    }
}
