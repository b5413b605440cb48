//! Graphs: ring, star, mesh, leaves and spines, torus.

use rackloom_protocol::*;

pub fn ring(nodes: u16) -> Graph {
    let edges = (0..if nodes == 2 { 1 } else { nodes })
        .map(|node| Edge {
            a: NodeId(node),
            a_port: PortId(0),
            b: NodeId((node + 1) % nodes),
            b_port: PortId(if nodes == 2 { 0 } else { 1 }),
            plane: Plane(0),
        })
        .collect();
    Graph { members: vec![MemberRole::Endpoint; usize::from(nodes)], edges }
}

pub fn star(nodes: u16, planes: u8) -> Graph {
    let mut members = vec![MemberRole::Endpoint; usize::from(nodes)];
    let mut edges = Vec::new();
    for plane in 0..planes {
        let hub = NodeId(nodes + u16::from(plane));
        members.push(MemberRole::Switch);
        for node in 0..nodes {
            let (a_port, b_port) = (PortId(u16::from(plane)), PortId(node));
            edges.push(Edge { a: NodeId(node), a_port, b: hub, b_port, plane: Plane(plane) });
        }
    }
    Graph { members, edges }
}

pub fn mesh(nodes: u16) -> Graph {
    let mut edges = Vec::new();
    for a in 0..nodes {
        for b in a + 1..nodes {
            edges.push(Edge {
                a: NodeId(a),
                a_port: PortId(b - 1),
                b: NodeId(b),
                b_port: PortId(a),
                plane: Plane(0),
            });
        }
    }
    Graph { members: vec![MemberRole::Endpoint; usize::from(nodes)], edges }
}

/// Returns leaves of two nodes each, with spines above them, in each plane. Members: nodes, then the leaves and spines of each plane.
pub fn leaf_spine(leaves: u16, spines: u16, planes: u8) -> Graph {
    let nodes = leaves * 2;
    let mut members = vec![MemberRole::Endpoint; usize::from(nodes)];
    let mut edges = Vec::new();
    let mut join = |a: (u16, u16), b: (u16, u16), plane: u8| {
        let (a_port, b_port) = (PortId(a.1), PortId(b.1));
        edges.push(Edge { a: NodeId(a.0), a_port, b: NodeId(b.0), b_port, plane: Plane(plane) });
    };
    for plane in 0..planes {
        let leaf_0 = nodes + u16::from(plane) * (leaves + spines);
        members.extend(vec![MemberRole::Switch; usize::from(leaves + spines)]);
        for node in 0..nodes {
            join((node, u16::from(plane)), (leaf_0 + node / 2, node % 2), plane);
        }
        for leaf in 0..leaves {
            (0..spines)
                .for_each(|spine| join((leaf_0 + leaf, 2 + spine), (leaf_0 + leaves + spine, leaf), plane));
        }
    }
    Graph { members, edges }
}

/// Returns a square torus, and the dimensions of its links. Port 0 leads to the next node of the row, 1 to the previous one, 2 and 3
/// to those of the column. The links of dimension 0 come first; in each dimension, link number *n* leaves node *n*.
pub fn torus(side: u16) -> (Graph, Vec<u8>) {
    let nodes = side * side;
    let mut edges = Vec::new();
    for (stride, port) in [(1, 0), (side, 2)] {
        for node in 0..nodes {
            let is_last = node / stride % side == side - 1;
            let next = if is_last { node - stride * (side - 1) } else { node + stride };
            let (a_port, b_port) = (PortId(port), PortId(port + 1));
            edges.push(Edge { a: NodeId(node), a_port, b: NodeId(next), b_port, plane: Plane(0) });
        }
    }
    let dimensions = [0, 1].map(|dimension| vec![dimension; usize::from(nodes)]).concat();
    (Graph { members: vec![MemberRole::Endpoint; usize::from(nodes)], edges }, dimensions)
}
