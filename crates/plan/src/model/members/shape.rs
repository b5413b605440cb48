//! Shapes as members and links, with ports in a fixed order.
//!
//! Endpoints are `n0..`, the switches of a star `s0..`, one per plane. The name of a link consists of its two ends: `a--b`. Ports
//! are numbered from zero without gaps. In a ring, port 0 leads to the next node and port 1 to the previous one. In
//! a star, port *p* leads to plane *p*. In a full mesh, ports are in ascending order of neighbours. Further links of a pair have
//! a number: `a--b#1`. If a bridge is the hub of a star, ports are in order of planes, and within a plane in
//! ascending order of neighbours.
//!
//! Sizes are checked before a shape is built (`read/sections/topology.rs`), so building always ends.

use std::collections::BTreeMap;

use rackloom_protocol::{Edge, MemberRole, NodeId, Plane, PortId};

use crate::model::members::hub::SwitchKind;

/// Members and links of a shape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) members: Vec<(String, MemberRole)>,
    pub(crate) links: Vec<(String, Edge)>,
    /// Device that joins the nodes if no member does.
    pub(crate) switch: SwitchKind,
    /// True if the last link closes a ring.
    pub(crate) is_ring: bool,
    ports: Vec<u16>,
    member_index: BTreeMap<String, NodeId>,
    /// Links of each pair of members, the smaller number first.
    link_index: BTreeMap<(NodeId, NodeId), Vec<usize>>,
}

impl Shape {
    /// Builds a ring: each node is linked to the next, and the last to the first. Two nodes share one link.
    pub(crate) fn ring(nodes: u16) -> Self {
        let mut shape = Self::with_nodes(nodes);
        let count = if nodes == 2 { 1 } else { nodes };
        for node in 0..count {
            let next = (node + 1) % nodes;
            // The last link of the ring uses port 1 of node 0, because port 1 leads to the previous node. A ring of two
            // has only one link and therefore only port 0.
            let edge = Edge {
                a: NodeId(node),
                a_port: PortId(0),
                b: NodeId(next),
                b_port: PortId(u16::from(nodes > 2)),
                plane: Plane(0),
            };
            shape.add(edge);
        }
        shape.is_ring = nodes > 2;
        shape
    }

    /// Builds a star: each node is linked to the switch of each plane.
    pub(crate) fn star(nodes: u16, planes: u8) -> Self {
        let mut shape = Self::with_nodes(nodes);
        for plane in 0..planes {
            let switch = shape.add_member(format!("s{plane}"), MemberRole::Switch);
            for node in 0..nodes {
                shape.join(NodeId(node), switch, Plane(plane));
            }
        }
        shape
    }

    /// Builds a star with bridges: each node is linked to each other node through the bridge of each plane.
    pub(crate) fn bridged_star(nodes: u16, planes: u8) -> Self {
        let mut shape = Self { switch: SwitchKind::Bridge, ..Self::with_nodes(nodes) };
        (0..planes).for_each(|plane| shape.join_all(nodes, Plane(plane)));
        shape
    }

    /// Builds a full mesh: each node is linked to each other node.
    pub(crate) fn full_mesh(nodes: u16) -> Self {
        let mut shape = Self::with_nodes(nodes);
        shape.join_all(nodes, Plane(0));
        shape
    }

    /// Adds a member. Endpoints must be added before switches.
    pub(crate) fn add_member(&mut self, name: String, role: MemberRole) -> NodeId {
        let node = NodeId(self.members.len() as u16);
        self.member_index.insert(name.clone(), node);
        self.members.push((name, role));
        self.ports.push(0);
        node
    }

    /// Links two members at the next free port of each.
    pub(crate) fn join(&mut self, a: NodeId, b: NodeId, plane: Plane) {
        let (a_port, b_port) = (PortId(self.ports[a.index()]), PortId(self.ports[b.index()]));
        self.add(Edge { a, a_port, b, b_port, plane });
    }

    /// Returns the member with this name, or `None`.
    pub(crate) fn member_named(&self, name: &str) -> Option<NodeId> {
        self.member_index.get(name).copied()
    }

    /// Returns the link with this name, with its ends in either order, or `None`.
    pub(crate) fn link_named(&self, name: &str) -> Option<usize> {
        let (ends, number) = match name.split_once('#') {
            None => (name, 0),
            // The number has one spelling: no sign, no leading zero.
            Some((ends, digits)) => {
                let number: usize = digits.parse().ok()?;
                (ends, (number > 0 && number.to_string() == digits).then_some(number)?)
            }
        };
        let (left, right) = ends.split_once("--")?;
        self.links_between(self.member_named(left)?, self.member_named(right)?).get(number).copied()
    }

    /// Returns the links that join two members.
    pub(crate) fn links_between(&self, left: NodeId, right: NodeId) -> &[usize] {
        self.link_index.get(&(left.min(right), left.max(right))).map_or(&[], Vec::as_slice)
    }

    fn with_nodes(nodes: u16) -> Self {
        let mut shape = Self::default();
        for node in 0..nodes {
            shape.add_member(format!("n{node}"), MemberRole::Endpoint);
        }
        shape
    }

    fn join_all(&mut self, nodes: u16, plane: Plane) {
        for left in 0..nodes {
            for right in left + 1..nodes {
                self.join(NodeId(left), NodeId(right), plane);
            }
        }
    }

    fn add(&mut self, edge: Edge) {
        self.ports[edge.a.index()] += 1;
        self.ports[edge.b.index()] += 1;
        let mut name = format!("{}--{}", self.members[edge.a.index()].0, self.members[edge.b.index()].0);
        let of_pair = self.link_index.entry((edge.a.min(edge.b), edge.a.max(edge.b))).or_default();
        if !of_pair.is_empty() {
            name = format!("{name}#{}", of_pair.len());
        }
        of_pair.push(self.links.len());
        self.links.push((name, edge));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackloom_protocol::Graph;

    fn neighbours(shape: &Shape) -> Vec<Vec<u16>> {
        let graph = Graph {
            members: shape.members.iter().map(|(_, role)| *role).collect(),
            edges: shape.links.iter().map(|(_, edge)| *edge).collect(),
        };
        (0..shape.members.len())
            .map(|member| graph.ports(NodeId(member as u16)).iter().map(|port| port.neighbour.0).collect())
            .collect()
    }

    fn names(shape: &Shape) -> Vec<&str> {
        shape.links.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn around_a_ring_port_0_leads_to_the_next_node_and_port_1_back() {
        let ring = Shape::ring(4);
        assert_eq!(names(&ring), ["n0--n1", "n1--n2", "n2--n3", "n3--n0"]);
        assert_eq!(neighbours(&ring), [[1, 3], [2, 0], [3, 1], [0, 2]]);
    }

    #[test]
    fn a_ring_of_two_has_one_link() {
        let ring = Shape::ring(2);
        assert_eq!(names(&ring), ["n0--n1"]);
        assert_eq!(neighbours(&ring), [[1], [0]]);
    }

    #[test]
    fn in_a_star_port_p_leads_to_plane_p() {
        let star = Shape::star(3, 2);
        assert_eq!(neighbours(&star), [vec![3, 4], vec![3, 4], vec![3, 4], vec![0, 1, 2], vec![0, 1, 2]]);
        assert!(star.links.iter().all(|(_, edge)| edge.a_port.0 == u16::from(edge.plane.0)));
        assert_eq!(star.members[4], ("s1".to_owned(), MemberRole::Switch));
    }

    #[test]
    fn in_a_full_mesh_ports_go_by_neighbour() {
        assert_eq!(neighbours(&Shape::full_mesh(4)), [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]);
    }

    #[test]
    fn through_a_bridge_ports_go_by_plane_and_neighbour() {
        let star = Shape::bridged_star(3, 2);
        assert_eq!(neighbours(&star), [[1, 2, 1, 2], [0, 2, 0, 2], [0, 1, 0, 1]]);
        assert_eq!(names(&star), ["n0--n1", "n0--n2", "n1--n2", "n0--n1#1", "n0--n2#1", "n1--n2#1"]);
        assert_eq!(star.members.len(), 3, "a bridge is no member");
    }

    #[test]
    fn ports_are_numbered_without_gaps() {
        let rings = [2, 3, 7].map(Shape::ring);
        for shape in
            [Shape::star(5, 3), Shape::full_mesh(6), Shape::bridged_star(4, 3)].into_iter().chain(rings)
        {
            for member in 0..shape.members.len() {
                let mut ports: Vec<u16> = shape
                    .links
                    .iter()
                    .flat_map(|(_, edge)| [(edge.a, edge.a_port), (edge.b, edge.b_port)])
                    .filter_map(|(node, port)| (node.index() == member).then_some(port.0))
                    .collect();
                ports.sort_unstable();
                assert_eq!(ports, (0..ports.len() as u16).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_link_is_found_by_both_orders_of_its_name() {
        let ring = Shape::ring(4);
        assert_eq!(ring.link_named("n0--n3"), Some(3));
        assert_eq!(ring.link_named("n3--n0"), Some(3));
        assert_eq!(ring.link_named("n0--n2"), None);
        assert_eq!(ring.link_named("n0-n1"), None);
    }

    #[test]
    fn parallel_links_are_distinguished_by_a_number() {
        let mut shape = Shape::with_nodes(2);
        shape.join(NodeId(0), NodeId(1), Plane(0));
        shape.join(NodeId(1), NodeId(0), Plane(1));
        assert_eq!(names(&shape), ["n0--n1", "n1--n0#1"]);
        for name in ["n1--n0#1", "n0--n1#1"] {
            assert_eq!(shape.link_named(name), Some(1));
        }
        for name in ["n0--n1#0", "n0--n1#01", "n0--n1#+1", "n0--n1#2", "n0--n1#", "n0#1--n1"] {
            assert_eq!(shape.link_named(name), None, "{name}");
        }
        assert_eq!(neighbours(&shape), [[1, 1], [0, 0]]);
    }
}
