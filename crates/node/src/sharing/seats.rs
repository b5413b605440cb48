//! The process of each seat: the only source of a requester's identity.
//!
//! The plan names the seats with their tenant and server. The supervisor, which starts the processes, sends the process number of each seat. An owner
//! looks up a requester by the process number that the *kernel* reports for its socket. The request names one of the seats of that process.
//!
//! A process number can be used again after its process has ended, by a process of the same user. So a seat must be vacated when its
//! process ends. In between, a new process of the same user could pass for the old one. Processes of one user can read each other's
//! memory anyway.

use rackloom_plan::Plan;
use rackloom_protocol::{NodeId, Tenant};

/// One seat of the rack.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Node of the seat.
    pub node: NodeId,
    /// Tenant of the node.
    pub tenant: Tenant,
    /// Server of the node. Members of one server may share memory.
    pub server: String,
    /// Process that holds the seat.
    pub process: Option<u32>,
}

/// Seats of a rack. Every process has its own copy, which the supervisor updates.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seats {
    /// Sorted by node.
    seats: Vec<Seat>,
}

impl Seats {
    /// Returns the seats of a plan, all vacant.
    #[must_use]
    pub fn of_plan(plan: &Plan) -> Self {
        let nodes = plan.members.iter().enumerate().filter(|(_, member)| member.role.is_endpoint());
        nodes
            .map(|(index, member)| Seat {
                node: NodeId(index as u16),
                tenant: member.tenant,
                server: member.server.clone(),
                process: None,
            })
            .collect()
    }

    /// Assigns a seat to a process. An earlier process loses the seat. A process may hold several seats. Returns `true` if the seat exists.
    pub fn occupy(&mut self, node: NodeId, process: u32) -> bool {
        self.set(node, Some(process))
    }

    /// Makes a seat vacant. Returns `true` if it exists.
    pub fn vacate(&mut self, node: NodeId) -> bool {
        self.set(node, None)
    }

    /// Returns the seat of a node.
    #[must_use]
    pub fn seat(&self, node: NodeId) -> Option<&Seat> {
        self.index(node).map(|index| &self.seats[index])
    }

    /// Returns `true` if the process holds a seat.
    #[must_use]
    pub fn is_seated(&self, process: u32) -> bool {
        self.seats.iter().any(|seat| seat.process == Some(process))
    }

    /// Returns `true` if two nodes are in one server and may share memory.
    #[must_use]
    pub fn share_a_server(&self, one: NodeId, other: NodeId) -> bool {
        match (self.seat(one), self.seat(other)) {
            (Some(one), Some(other)) => one.server == other.server,
            _ => false,
        }
    }

    fn set(&mut self, node: NodeId, process: Option<u32>) -> bool {
        let index = self.index(node);
        if let Some(index) = index {
            self.seats[index].process = process;
        }
        index.is_some()
    }

    fn index(&self, node: NodeId) -> Option<usize> {
        self.seats.binary_search_by_key(&node, |seat| seat.node).ok()
    }
}

impl FromIterator<Seat> for Seats {
    fn from_iter<I: IntoIterator<Item = Seat>>(seats: I) -> Self {
        let mut seats: Vec<Seat> = seats.into_iter().collect();
        seats.sort_by_key(|seat| seat.node);
        Self { seats }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_a_seat_for_every_node_and_distinct_servers_by_default() {
        let rack = "name: s\nshape: {star: {nodes: 3}}\n";
        let seats = Seats::of_plan(&Plan::parse(rack, "test").unwrap());
        assert!(seats.seat(NodeId(2)).is_some());
        assert_eq!(seats.seat(NodeId(3)), None, "a switch has no seat");
        assert!(!seats.share_a_server(NodeId(0), NodeId(1)));
        assert!(seats.share_a_server(NodeId(1), NodeId(1)));
    }

    #[test]
    fn a_seat_has_one_process_and_a_process_may_hold_several_seats() {
        let rack = "name: s\nshape: {ring: {nodes: 3}}\n";
        let mut seats = Seats::of_plan(&Plan::parse(rack, "test").unwrap());
        assert!(seats.occupy(NodeId(0), 100) && seats.occupy(NodeId(1), 101));
        assert!(!seats.occupy(NodeId(7), 102));
        assert!(!seats.is_seated(102));
        assert!(seats.occupy(NodeId(2), 100));
        assert_eq!([0, 2].map(|node| seats.seat(NodeId(node)).unwrap().process), [Some(100); 2]);
        assert!(seats.occupy(NodeId(1), 200));
        assert!(!seats.is_seated(101));
        assert!(seats.vacate(NodeId(1)));
        assert!(!seats.is_seated(200));
    }
}
