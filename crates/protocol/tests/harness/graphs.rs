//! Graphs: ring, star and mesh.

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
