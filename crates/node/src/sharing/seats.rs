//! Who sits where: the only source of an asker's identity.
//!
//! The plan names the seats with their tenant and server; the supervisor, who starts the processes, knows which one
//! sits on which seat. A peer that asks for memory is looked up here by the process number that the *kernel* reports
//! for its socket. Whatever it says about itself is not asked for.
//!
//! A process number can be used again after its process has ended, by a process of the same user. So a seat must be
//! vacated when its process ends; between the two there is a moment in which a newcomer of the same user could pass
//! for the dead one. Processes of one user can read each other's memory anyway.

use rackloom_plan::Plan;
use rackloom_protocol::{MemberRole, NodeId, Tenant};

/// One seat of the rack.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Its node.
    pub node: NodeId,
    /// Its partition.
    pub tenant: Tenant,
    /// The server it is in. Members of one server may share memory.
    pub server: String,
    /// The process that sits on it.
    pub process: Option<u32>,
}

/// The seats of a rack. Every process holds its own copy and is told of changes by the supervisor.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seats {
    /// Sorted by node.
    seats: Vec<Seat>,
}

impl Seats {
    /// The seats of a plan, all vacant.
    #[must_use]
    pub fn of_plan(plan: &Plan) -> Self {
        let nodes = plan.members.iter().enumerate().filter(|(_, member)| member.role == MemberRole::Endpoint);
        nodes
            .map(|(place, member)| Seat {
                node: NodeId(place as u16),
                tenant: member.tenant,
                server: member.server.clone(),
                process: None,
            })
            .collect()
    }

    /// A process takes a seat. Whoever sat there does no longer, and the process sits nowhere else. Returns whether
    /// there is such a seat.
    pub fn occupy(&mut self, node: NodeId, process: u32) -> bool {
        for seat in &mut self.seats {
            if seat.process == Some(process) {
                seat.process = None;
            }
        }
        self.set(node, Some(process))
    }

    /// Nobody sits there any more. Returns whether there is such a seat.
    pub fn vacate(&mut self, node: NodeId) -> bool {
        self.set(node, None)
    }

    /// The seat of a node.
    #[must_use]
    pub fn seat(&self, node: NodeId) -> Option<&Seat> {
        self.place(node).map(|place| &self.seats[place])
    }

    /// The seat that a process sits on.
    #[must_use]
    pub fn of_process(&self, process: u32) -> Option<&Seat> {
        self.seats.iter().find(|seat| seat.process == Some(process))
    }

    /// Whether two nodes may share memory at all.
    #[must_use]
    pub fn share_a_server(&self, one: NodeId, other: NodeId) -> bool {
        match (self.seat(one), self.seat(other)) {
            (Some(one), Some(other)) => one.server == other.server,
            _ => false,
        }
    }

    fn set(&mut self, node: NodeId, process: Option<u32>) -> bool {
        let place = self.place(node);
        if let Some(place) = place {
            self.seats[place].process = process;
        }
        place.is_some()
    }

    fn place(&self, node: NodeId) -> Option<usize> {
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
    fn a_process_sits_on_one_seat_and_a_seat_holds_one_process() {
        let rack = "name: s\nshape: {ring: {nodes: 3}}\n";
        let mut seats = Seats::of_plan(&Plan::parse(rack, "test").unwrap());
        assert!(seats.occupy(NodeId(0), 100) && seats.occupy(NodeId(1), 101));
        assert!(!seats.occupy(NodeId(7), 102));
        assert_eq!(seats.of_process(102), None);
        assert!(seats.occupy(NodeId(2), 100));
        assert_eq!(seats.of_process(100).unwrap().node, NodeId(2));
        assert_eq!(seats.seat(NodeId(0)).unwrap().process, None);
        assert!(seats.occupy(NodeId(1), 200));
        assert_eq!(seats.of_process(101), None);
        assert!(seats.vacate(NodeId(1)));
        assert_eq!(seats.of_process(200), None);
    }
}
