//! Shapes as members and links, with ports in a fixed order.
//!
//! Endpoints are `n0..`, the switches of a star `s0..`, one per plane; a rack of leaves and spines has `leaf0..` and `spine0..`, plane by
//! plane. The name of a link consists of its two ends: `a--b`. Ports are numbered from zero without gaps. In a ring, port 0 leads to
//! the next node and port 1 to the previous one. A torus has such a pair of ports for each dimension, and one port for a dimension of
//! two nodes. In a star, port *p* leads to plane *p*. In a full mesh, ports are in ascending order of neighbours. Further links of a
//! pair have a number: `a--b#1`. If a bridge is the hub of a star, ports are in order of planes, and within a plane in ascending order
//! of neighbours. A leaf has its nodes first and then its spines.
//!
//! Sizes are checked before a shape is built (`read/sections/topology.rs`), so building always ends.

use std::collections::BTreeMap;

use rackloom_protocol::{Edge, MemberRole, NodeId, Plane, PortId};

use crate::model::members::hub::SwitchKind;

/// Members and links of a shape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) members: Vec<(String, MemberRole)>,
    pub(crate) links: Vec<ShapeLink>,
    /// Device that joins the nodes if no member does.
    pub(crate) switch: SwitchKind,
    /// Links that close the ring, or a ring of a torus, by edge.
    pub(crate) closing: Vec<u16>,
    ports: Vec<u16>,
    member_index: BTreeMap<String, NodeId>,
    /// Links of each pair of members, the smaller number first.
    link_index: BTreeMap<(NodeId, NodeId), Vec<usize>>,
}

/// Link of a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShapeLink {
    /// `n0--n1`: the names of both ends.
    pub(crate) name: String,
    pub(crate) edge: Edge,
    /// Dimension of a torus or hypercube; 0 in other shapes.
    pub(crate) dimension: u8,
}

/// Sizes of a rack of leaf switches and spine switches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafSpine {
    /// Leaves of each plane.
    pub(crate) leaves: u16,
    pub(crate) nodes_per_leaf: u16,
    /// Spines of each plane.
    pub(crate) spines: u16,
    /// Links between a leaf and a spine.
    pub(crate) parallel: u16,
    pub(crate) planes: u8,
}

impl Shape {
    /// Builds a ring: each node is linked to the next, and the last to the first. Two nodes share one link.
    pub(crate) fn ring(nodes: u16) -> Self {
        Self::torus(&[nodes])
    }

    /// Builds a hypercube: two nodes are linked if their numbers differ in one bit. Bit *d* is dimension *d*.
    pub(crate) fn hypercube(dimensions: u8) -> Self {
        Self::torus(&vec![2; usize::from(dimensions)])
    }

    /// Builds a torus of these sizes: nodes that differ in one coordinate only form a ring. Two nodes share one link. The first coordinate
    /// grows fastest with the number of the node.
    pub(crate) fn torus(sizes: &[u16]) -> Self {
        let nodes = sizes.iter().product();
        let mut shape = Self::with_nodes(nodes);
        let (mut stride, mut port) = (1, 0);
        for (dimension, size) in (0..).zip(sizes.iter().copied()) {
            for node in 0..nodes {
                let is_last = node / stride % size == size - 1;
                if is_last && size <= 2 {
                    continue;
                }
                let next = if is_last { node - stride * (size - 1) } else { node + stride };
                if is_last {
                    shape.closing.push(shape.links.len() as u16);
                }
                // Port `port` leads to the next node, and the port behind it to the previous one. A ring of two has only one link.
                let edge = Edge {
                    a: NodeId(node),
                    a_port: PortId(port),
                    b: NodeId(next),
                    b_port: PortId(port + u16::from(size > 2)),
                    plane: Plane(0),
                };
                shape.add(edge, dimension);
            }
            stride *= size;
            port += size.min(3) - 1;
        }
        shape
    }

    /// Builds leaves and spines: in each plane, each node is linked to its leaf, and each leaf to each spine.
    pub(crate) fn leaf_spine(size: LeafSpine) -> Self {
        let LeafSpine { leaves, nodes_per_leaf, spines, parallel, planes } = size;
        let mut shape = Self::with_nodes(leaves * nodes_per_leaf);
        for plane in 0..planes {
            let mut switches = |count: u16, kind: &str| -> Vec<NodeId> {
                let first = count * u16::from(plane);
                let names = (first..first + count).map(|number| format!("{kind}{number}"));
                names.map(|name| shape.add_member(name, MemberRole::Switch)).collect()
            };
            let (leaves, spines) = (switches(leaves, "leaf"), switches(spines, "spine"));
            for node in 0..nodes_per_leaf * leaves.len() as u16 {
                shape.join(NodeId(node), leaves[usize::from(node / nodes_per_leaf)], Plane(plane));
            }
            for (leaf, spine) in leaves.iter().flat_map(|leaf| spines.iter().map(move |spine| (leaf, spine)))
            {
                // Parallel links have adjacent ports: destinations that a leaf deals to them are dealt to them by the spine too.
                (0..parallel).for_each(|_| shape.join(*leaf, *spine, Plane(plane)));
            }
        }
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
        self.add(Edge { a, a_port, b, b_port, plane }, 0);
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

    fn add(&mut self, edge: Edge, dimension: u8) {
        self.ports[edge.a.index()] += 1;
        self.ports[edge.b.index()] += 1;
        let mut name = format!("{}--{}", self.members[edge.a.index()].0, self.members[edge.b.index()].0);
        let of_pair = self.link_index.entry((edge.a.min(edge.b), edge.a.max(edge.b))).or_default();
        if !of_pair.is_empty() {
            name = format!("{name}#{}", of_pair.len());
        }
        of_pair.push(self.links.len());
        self.links.push(ShapeLink { name, edge, dimension });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackloom_protocol::Graph;

    fn neighbours(shape: &Shape) -> Vec<Vec<u16>> {
        let graph = Graph {
            members: shape.members.iter().map(|(_, role)| *role).collect(),
            edges: shape.links.iter().map(|link| link.edge).collect(),
        };
        (0..shape.members.len())
            .map(|member| graph.ports(NodeId(member as u16)).iter().map(|port| port.neighbour.0).collect())
            .collect()
    }

    fn names(shape: &Shape) -> Vec<&str> {
        shape.links.iter().map(|link| link.name.as_str()).collect()
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
    fn a_torus_has_a_pair_of_ports_for_each_dimension() {
        let torus = Shape::torus(&[3, 4]);
        // Node 4 is in column 1 of row 1.
        assert_eq!(neighbours(&torus)[4], [5, 3, 7, 1]);
        assert_eq!(neighbours(&torus)[0], [1, 2, 3, 9], "over the links that close the rings");
        assert_eq!(names(&torus)[..3], ["n0--n1", "n1--n2", "n2--n0"]);
        let closing: Vec<_> = torus.closing.iter().map(|edge| names(&torus)[usize::from(*edge)]).collect();
        assert_eq!(closing, ["n2--n0", "n5--n3", "n8--n6", "n11--n9", "n9--n0", "n10--n1", "n11--n2"]);
        let dimensions: Vec<_> = torus.links.iter().map(|link| link.dimension).collect();
        assert_eq!(dimensions, [[0; 12], [1; 12]].concat());
        // Two nodes share one link, and one node has none.
        assert_eq!(neighbours(&Shape::torus(&[2, 3, 1]))[3], [2, 5, 1]);
        assert_eq!(Shape::torus(&[2, 3, 1]).links.len(), 3 + 6);
    }

    #[test]
    fn in_a_hypercube_port_d_flips_bit_d() {
        let cube = Shape::hypercube(3);
        for (node, ports) in (0..).zip(neighbours(&cube)) {
            assert_eq!(ports, [node ^ 1, node ^ 2, node ^ 4]);
        }
        assert_eq!((cube.links.len(), cube.closing.len()), (12, 0));
    }

    #[test]
    fn each_leaf_has_its_nodes_and_then_each_spine() {
        let shape =
            Shape::leaf_spine(LeafSpine { leaves: 2, nodes_per_leaf: 2, spines: 2, parallel: 2, planes: 2 });
        let members: Vec<&str> = shape.members.iter().map(|(name, _)| name.as_str()).collect();
        let switches = ["leaf0", "leaf1", "spine0", "spine1", "leaf2", "leaf3", "spine2", "spine3"];
        assert_eq!(members[4..], switches);
        let neighbours = neighbours(&shape);
        assert_eq!((neighbours[0].as_slice(), neighbours[3].as_slice()), (&[4, 8][..], &[5, 9][..]));
        assert_eq!(neighbours[5], [2, 3, 6, 6, 7, 7]);
        assert_eq!(neighbours[10], [8, 8, 9, 9], "a spine of the second plane");
        assert_eq!(
            names(&shape)[4..8],
            ["leaf0--spine0", "leaf0--spine0#1", "leaf0--spine1", "leaf0--spine1#1"]
        );
        assert!(shape.links[..12].iter().all(|link| link.edge.plane == Plane(0)));
    }

    #[test]
    fn in_a_star_port_p_leads_to_plane_p() {
        let star = Shape::star(3, 2);
        assert_eq!(neighbours(&star), [vec![3, 4], vec![3, 4], vec![3, 4], vec![0, 1, 2], vec![0, 1, 2]]);
        assert!(star.links.iter().all(|link| link.edge.a_port.0 == u16::from(link.edge.plane.0)));
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
        let tori = [vec![4, 2], vec![3, 4, 1], vec![2, 5, 3], vec![2; 5]].map(|sizes| Shape::torus(&sizes));
        let leaves = LeafSpine { leaves: 3, nodes_per_leaf: 2, spines: 2, parallel: 2, planes: 2 };
        let others =
            [Shape::star(5, 3), Shape::full_mesh(6), Shape::bridged_star(4, 3), Shape::leaf_spine(leaves)];
        for shape in others.into_iter().chain(rings).chain(tori) {
            for member in 0..shape.members.len() {
                let mut ports: Vec<u16> = shape
                    .links
                    .iter()
                    .flat_map(|link| [(link.edge.a, link.edge.a_port), (link.edge.b, link.edge.b_port)])
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
