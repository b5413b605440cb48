//! Tables of a member: one over all links, and one per plane to which processes are restricted.
//!
//! A process with a plane (a port of its own at the GPU node) is reached over links of that plane only, and sends over them only: at its GPU
//! node each of the planes could lead to the destination, and behind the first link of a plane all links are of that plane. So the path follows from
//! the plane of the destination, or from that of the member itself. Two processes of different planes do not reach each other.

use alloc::vec::Vec;

use super::graph::SharedGraph;
use super::table::{Found, OwnPort, Table};
use crate::ids::{NodeId, Plane, PortId};

/// Next hops of one member over all links, and over those of single planes.
#[derive(Debug)]
pub struct Tables {
    all: Table,
    /// Empty if no process has a plane.
    planes: Vec<Table>,
    /// By member: position in `planes` of the table that leads there; `None` for the table over all links. Empty without planes.
    places: Vec<Option<u8>>,
}

impl Tables {
    /// Returns tables without paths for a member of this graph.
    #[must_use]
    pub fn new(graph: &SharedGraph, own: NodeId) -> Self {
        let pinned = graph.pinned_planes();
        let mut planes: Vec<_> = pinned.iter().flatten().copied().collect();
        planes.sort_unstable();
        planes.dedup();
        let own_plane = pinned.get(own.index()).copied().flatten();
        let place = |plane: Plane| planes.iter().position(|known| *known == plane).map(|place| place as u8);
        let places = pinned.iter().map(|plane| plane.or(own_plane).and_then(place)).collect();
        let table = |plane: &Plane| Table::within(graph.clone(), Some(*plane));
        Self { all: Table::new(graph.clone()), planes: planes.iter().map(table).collect(), places }
    }

    /// Returns the table that leads to a member.
    fn towards(&self, destination: NodeId) -> &Table {
        match self.places.get(destination.index()) {
            Some(Some(place)) => &self.planes[usize::from(*place)],
            _ => &self.all,
        }
    }

    /// Updates the tables, as [`Table::compute`] does.
    pub fn compute(
        &mut self,
        own: NodeId,
        ports: &[OwnPort],
        reported: &[NodeId],
        live: impl Fn(u16) -> bool,
    ) {
        self.all.compute(own, ports, reported, &live);
        for table in &mut self.planes {
            table.compute(own, ports, reported, &live);
        }
    }

    /// Returns the changes of paths since the last call. Members are in order, without duplicates.
    pub fn take_found(&mut self) -> Found {
        let mut found = self.all.take_found();
        for table in &mut self.planes {
            found = match (found, table.take_found()) {
                (Found::Only(mut members), Found::Only(more)) => {
                    members.extend(more);
                    members.sort_unstable();
                    members.dedup();
                    Found::Only(members)
                }
                _ => Found::Anew,
            };
        }
        found
    }

    /// Returns true if a live path leads to the member.
    #[must_use]
    pub fn reaches(&self, destination: NodeId) -> bool {
        self.towards(destination).reaches(destination)
    }

    /// Stops waiting for links of this member that have not been up yet.
    pub fn stop_awaiting(&mut self, member: NodeId) {
        self.all.stop_awaiting(member);
        self.planes.iter_mut().for_each(|table| table.stop_awaiting(member));
    }

    /// Returns, by member, if a path would lead there if every link came up that has not been up yet.
    #[must_use]
    pub fn may_reach(&self, own: NodeId) -> Vec<bool> {
        let mut reached = self.all.may_reach(own);
        let of_planes: Vec<_> = self.planes.iter().map(|table| table.may_reach(own)).collect();
        for (member, place) in self.places.iter().enumerate() {
            if let Some(place) = place {
                reached[member] = of_planes[usize::from(*place)][member];
            }
        }
        reached
    }

    /// Returns the port of a flow; ports for which `avoid` is true are second choice.
    #[must_use]
    pub fn pick(&self, destination: NodeId, entropy: u16, avoid: impl Fn(PortId) -> bool) -> Option<PortId> {
        self.towards(destination).pick(destination, entropy, avoid)
    }

    /// Returns the port of all flows to a member, as [`Table::pick_by_number`] does.
    #[must_use]
    pub fn pick_by_number(
        &self,
        destination: NodeId,
        number: usize,
        avoid: impl Fn(PortId) -> bool,
    ) -> Option<PortId> {
        self.towards(destination).pick_by_number(destination, number, avoid)
    }

    /// Iterates over the ports of the lowest dimension on shortest paths to the member.
    pub fn ports(&self, destination: NodeId) -> impl Iterator<Item = PortId> + '_ {
        self.towards(destination).ports(destination)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::graph::{Edge, Graph, MemberRole};

    /// Star of two nodes (0, 1) and two switches (2, 3), with a process of each plane at each node (4 to 7). The edges of node 0 are 0 (plane 0)
    /// and 2 (plane 1).
    fn star() -> SharedGraph {
        use MemberRole::{Endpoint, PinnedProcess, Switch};
        let edge = |a: u16, a_port: u16, b: u16, b_port: u16, plane: u8| Edge {
            a: NodeId(a),
            a_port: PortId(a_port),
            b: NodeId(b),
            b_port: PortId(b_port),
            plane: Plane(plane),
        };
        let edges = alloc::vec![
            edge(0, 0, 2, 0, 0),
            edge(1, 0, 2, 1, 0),
            edge(0, 1, 3, 0, 1),
            edge(1, 1, 3, 1, 1),
            edge(0, 2, 4, 0, 0),
            edge(0, 3, 5, 0, 1),
            edge(1, 2, 6, 0, 0),
            edge(1, 3, 7, 0, 1),
        ];
        let processes = [PinnedProcess; 4];
        let members = [Endpoint, Endpoint, Switch, Switch].into_iter().chain(processes).collect();
        Graph { members, edges }.into()
    }

    fn tables(own: u16, dead: &[u16]) -> Tables {
        let graph = star();
        let ports: Vec<_> = graph
            .links(NodeId(own))
            .iter()
            .zip(0..)
            .map(|((edge, neighbour), port)| OwnPort {
                port: PortId(port),
                edge: *edge,
                neighbour: *neighbour,
                dimension: 0,
            })
            .collect();
        let all: Vec<_> = (0..8).map(NodeId).collect();
        let mut tables = Tables::new(&graph, NodeId(own));
        tables.compute(NodeId(own), &ports, &all, |edge| !dead.contains(&edge));
        tables
    }

    fn ports(tables: &Tables, destination: u16) -> Vec<u16> {
        tables.ports(NodeId(destination)).map(|port| port.0).collect()
    }

    #[test]
    fn a_path_to_a_process_uses_its_plane_only() {
        let node = tables(0, &[]);
        assert_eq!((ports(&node, 6), ports(&node, 7)), (alloc::vec![0], alloc::vec![1]));
        assert_eq!(ports(&node, 1), [0, 1], "paths to a GPU node use both");
        assert_eq!((ports(&node, 4), ports(&node, 5)), (alloc::vec![2], alloc::vec![3]));
        let node = tables(0, &[2]);
        assert!(!node.reaches(NodeId(7)) && node.reaches(NodeId(6)) && node.reaches(NodeId(1)));
        assert_eq!(node.may_reach(NodeId(0))[6..], [true, true], "the link has not been up yet");
    }

    #[test]
    fn a_process_reaches_processes_of_its_plane_only() {
        let process = tables(5, &[]);
        assert!(process.reaches(NodeId(7)) && process.reaches(NodeId(0)) && process.reaches(NodeId(3)));
        assert!(!process.reaches(NodeId(6)) && !process.reaches(NodeId(4)));
        assert!(!process.may_reach(NodeId(5))[6]);
        let process = tables(5, &[3]);
        assert!(!process.reaches(NodeId(7)) && !process.reaches(NodeId(1)), "no path of the other plane");
        assert!(process.reaches(NodeId(3)));
    }
}
