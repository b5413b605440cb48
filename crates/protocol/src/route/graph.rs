//! Every member and link of the rack, as the plan states them.

use alloc::vec::Vec;

use crate::ids::{NodeId, Plane, PortId};

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemberRole {
    /// A GPU node.
    Endpoint,
    /// A forwarder without memory.
    Switch,
}

/// One link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// One end.
    pub a: NodeId,
    /// Its port there.
    pub a_port: PortId,
    /// The other end.
    pub b: NodeId,
    /// Its port there.
    pub b_port: PortId,
    /// The plane the link belongs to.
    pub plane: Plane,
}

/// The rack: members by [`NodeId`], links by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Roles; the index is the [`NodeId`]. Endpoints come first.
    pub members: Vec<MemberRole>,
    /// Links.
    pub edges: Vec<Edge>,
}

impl Graph {
    /// Number of endpoints (ranks).
    #[must_use]
    pub fn endpoint_count(&self) -> usize {
        self.members.iter().filter(|role| **role == MemberRole::Endpoint).count()
    }

    /// The ports of a member in port order: (edge index, neighbour, plane).
    #[must_use]
    pub fn ports(&self, member: NodeId) -> Vec<(u16, NodeId, Plane)> {
        let mut ports: Vec<_> = self
            .edges
            .iter()
            .enumerate()
            .filter_map(|(index, edge)| {
                if edge.a == member {
                    Some((edge.a_port, (index as u16, edge.b, edge.plane)))
                } else if edge.b == member {
                    Some((edge.b_port, (index as u16, edge.a, edge.plane)))
                } else {
                    None
                }
            })
            .collect();
        ports.sort_unstable_by_key(|(port, _)| *port);
        ports.into_iter().map(|(_, rest)| rest).collect()
    }
}
