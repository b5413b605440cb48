//! Process seats: endpoints behind a GPU node, for processes of the program on its seat.
//!
//! Each has one link, to its GPU node, which forwards its frames. Such a link is at the edge of the graph: no path between other
//! members crosses it, and it adds no cycle of buffers. Processes have the last numbers, so ranks, switches and links keep theirs.

use rackloom_protocol::{Edge, MemberRole, NodeId, Plane, PortId};

use crate::model::bounds::{LINKS_MAX, MEMBERS_MAX, PROCESSES_MAX};
use crate::model::links::link::{LinkPlan, LinkProfile};
use crate::model::members::member::MemberPlan;
use crate::model::plan::Plan;
use crate::model::rack_settings::DevicePorts;

impl Plan {
    /// Number of process seats of a GPU node in a rack for programs whose file states none.
    pub const PROCESSES_DEFAULT: u16 = 4;
    /// Largest number of process seats of a GPU node.
    pub const PROCESSES_MAX: u16 = PROCESSES_MAX;

    /// Adds process seats to each GPU node: endpoints `n0.p0`, `n0.p1` and so on, in the server and of the tenant of `n0`, with memory of its
    /// size. Their links have no faults and no rate. With `ports: per-plane` and several planes each process has one such endpoint per plane, `n0.p0.0`,
    /// `n0.p0.1` and so on, whose paths use only the links of that plane. Adds fewer than `count` if the rack would exceed its largest number of members
    /// or links. Call [`Plan::check`] afterwards.
    ///
    /// # Panics
    /// If the plan has processes already.
    pub fn add_processes(&mut self, count: u16) {
        assert!(self.members.iter().all(|member| !member.role.is_process()), "processes are added once");
        let planes = self.planes_of_ports();
        let count = count.min(self.process_seats_max() / planes.max(1));
        self.change(|plan| {
            for node in (0..plan.endpoint_count() as u16).map(NodeId) {
                for number in 0..count {
                    match planes {
                        0 => plan.add_process(node, format!(".p{number}"), None),
                        _ => (0..planes).map(|plane| plane as u8).for_each(|plane| {
                            plan.add_process(node, format!(".p{number}.{plane}"), Some(Plane(plane)));
                        }),
                    }
                }
            }
        });
        self.settle_levels();
        self.settle();
    }

    /// Returns the number of planes that have a port of their own. 0 if the device has a single port.
    fn planes_of_ports(&self) -> u16 {
        let planes = self.links.iter().map(|link| u16::from(link.edge.plane.0) + 1).max().unwrap_or(0);
        let is_per_plane = self.settings.ports == DevicePorts::PerPlane;
        if is_per_plane && planes > 1 { planes } else { 0 }
    }

    /// Returns the number of process seats that each GPU node can have: the rack has a largest number of members and links, and names
    /// are unique.
    fn process_seats_max(&self) -> u16 {
        let nodes = self.endpoint_count().max(1) as u64;
        let members = MEMBERS_MAX.saturating_sub(self.members.len() as u64) / nodes;
        let links = LINKS_MAX.saturating_sub(self.links.len() as u64) / nodes;
        let is_taken = |member: &MemberPlan| {
            let node = member.name.rsplit_once(".p").filter(|(_, number)| is_process_number(number));
            node.is_some_and(|(node, _)| self.node_named(node).is_some())
        };
        if self.members.iter().any(is_taken) { 0 } else { members.min(links) as u16 }
    }

    fn add_process(&mut self, node: NodeId, suffix: String, plane: Option<Plane>) {
        let process = NodeId(self.members.len() as u16);
        let own = self.members[node.index()].clone();
        let name = own.name.clone() + &suffix;
        let edge = Edge {
            a: node,
            a_port: PortId(self.graph().ports(node).len() as u16),
            b: process,
            b_port: PortId(0),
            plane: plane.unwrap_or_default(),
        };
        // `settle` computes the credits.
        let credits = self.credit_choice.resolve(self.settings.wire, self.settings.ring_bytes);
        self.links.push(LinkPlan {
            name: format!("{}--{name}", own.name),
            edge,
            dimension: 0,
            profile: LinkProfile::default(),
            credits,
            updates: credits.usual_updates(),
        });
        let role = if plane.is_some() { MemberRole::PinnedProcess } else { MemberRole::Process };
        self.members.push(MemberPlan { name, role, ..own });
        for host in self.hosts.iter_mut().filter(|host| host.nodes.contains(&node)) {
            host.nodes.push(process);
        }
    }

    /// Returns true if one end of the link is a process of a GPU node.
    #[must_use]
    pub fn is_process_link(&self, edge: &Edge) -> bool {
        // A plan whose members could not be read has links without members.
        self.members.get(edge.b.index()).is_some_and(|member| member.role.is_process())
    }

    /// Returns the number of GPU nodes and switches.
    #[must_use]
    pub fn count_without_processes(&self) -> usize {
        self.members.iter().filter(|member| !member.role.is_process()).count()
    }

    /// Returns the links between GPU nodes and switches.
    pub(crate) fn fabric_links(&self) -> impl Iterator<Item = &LinkPlan> {
        self.links.iter().filter(|link| !self.is_process_link(&link.edge))
    }

    /// Returns the process seats of a GPU node, in the order of their names.
    pub fn processes_of(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        self.process_links_of(node).map(|edge| edge.b)
    }

    fn process_links_of(&self, node: NodeId) -> impl Iterator<Item = Edge> {
        let links = self.links.iter().map(|link| link.edge);
        links.filter(move |edge| edge.a == node && self.is_process_link(edge))
    }

    /// Returns the process seats of a GPU node, one list per process: its single seat, or its seats on all planes in the order of the planes.
    #[must_use]
    pub fn process_ports_of(&self, node: NodeId) -> Vec<Vec<NodeId>> {
        let mut processes: Vec<Vec<NodeId>> = Vec::new();
        for edge in self.process_links_of(node) {
            match processes.last_mut() {
                Some(process) if edge.plane != Plane(0) => process.push(edge.b),
                _ => processes.push(vec![edge.b]),
            }
        }
        processes
    }

    /// Returns the GPU node of a process seat, and `None` for a member that is none.
    #[must_use]
    pub fn node_of_process(&self, process: NodeId) -> Option<NodeId> {
        let mut links = self.links.iter().map(|link| link.edge);
        links.find(|edge| edge.b == process && self.is_process_link(edge)).map(|edge| edge.a)
    }
}

/// Returns true for the number of a process, as `3`, and for that of its port, as `3.0`: the end of the name of a process seat, after `.p`.
#[must_use]
pub fn is_process_number(text: &str) -> bool {
    let (process, plane) =
        text.split_once('.').map_or((text, None), |(process, plane)| (process, Some(plane)));
    process.parse::<u16>().is_ok() && plane.is_none_or(|plane| plane.parse::<u8>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::links::wire::WireKind;

    fn plan(text: &str) -> Plan {
        Plan::parse(text, "rack").unwrap_or_else(|error| panic!("{error}"))
    }

    fn with_processes(text: &str, count: u16) -> Plan {
        let mut plan = plan(text);
        plan.add_processes(count);
        plan.check().unwrap_or_else(|error| panic!("{error}"));
        plan
    }

    const STAR: &str = "name: r\nshape: {star: {nodes: 2}}\n";

    #[test]
    fn processes_have_the_last_numbers_and_one_link_each() {
        let text = format!(
            "{STAR}link: {{loss: 0.1, rate: 1Gbit/s}}\nnodes: {{n1: {{tenant: 3, memory: 8MiB, server: box}}}}\n"
        );
        let (plain, plan) = (plan(&text), with_processes(&text, 2));
        let names: Vec<_> = plan.members.iter().map(|member| member.name.as_str()).collect();
        assert_eq!(names, ["n0", "n1", "s0", "n0.p0", "n0.p1", "n1.p0", "n1.p1"]);
        assert_eq!((plan.endpoint_count(), plan.graph().endpoint_count()), (2, 2));
        assert_eq!(plan.graph().endpoints().map(|node| node.0).collect::<Vec<_>>(), [0, 1, 3, 4, 5, 6]);
        assert_eq!(
            plan.links[..2].iter().map(|link| link.edge).collect::<Vec<_>>(),
            [plain.links[0].edge, plain.links[1].edge]
        );
        let process = &plan.members[6];
        assert_eq!((process.tenant.0, process.memory_bytes, process.server.as_str()), (3, 8 << 20, "box"));
        let link = &plan.links[5];
        assert_eq!(
            (link.name.as_str(), link.edge.a, link.edge.a_port, link.edge.b_port),
            ("n1--n1.p1", NodeId(1), PortId(2), PortId(0))
        );
        assert_eq!((link.profile.loss, link.profile.rate_bits_per_s), (0.0, None));
        assert_eq!(plan.processes_of(NodeId(1)).collect::<Vec<_>>(), [NodeId(5), NodeId(6)]);
        assert_eq!(
            (plan.node_of_process(NodeId(4)), plan.node_of_process(NodeId(1))),
            (Some(NodeId(0)), None)
        );
        assert!(plan.config_hash != plain.config_hash && plan.epoch != plain.epoch);
    }

    #[test]
    fn the_key_alone_changes_nothing() {
        let (plain, stated) = (plan(STAR), plan(&format!("{STAR}processes: 3\n")));
        assert_eq!((plain.settings.processes, stated.settings.processes), (None, Some(3)));
        assert_eq!(plain.canonical_encoding(), stated.canonical_encoding());
        assert!(Plan::parse(&format!("{STAR}processes: 17\n"), "rack").is_err());
    }

    #[test]
    fn each_plane_has_its_port() {
        let text = "name: r\nshape: {star: {nodes: 2, planes: 2}}\nports: per-plane\n";
        let plan = with_processes(text, 2);
        let names: Vec<_> = plan.members[4..].iter().map(|member| member.name.as_str()).collect();
        let of = |node: &str| ["p0.0", "p0.1", "p1.0", "p1.1"].map(|port| format!("{node}.{port}"));
        assert_eq!(names, [of("n0"), of("n1")].concat());
        assert!(plan.members[4..].iter().all(|member| member.role == MemberRole::PinnedProcess));
        let planes: Vec<_> = plan.links[4..].iter().map(|link| link.edge.plane.0).collect();
        assert_eq!(planes, [0, 1, 0, 1, 0, 1, 0, 1]);
        let numbers = |first: u16| {
            vec![vec![NodeId(first), NodeId(first + 1)], vec![NodeId(first + 2), NodeId(first + 3)]]
        };
        assert_eq!(plan.process_ports_of(NodeId(1)), numbers(8));
        let one_plane = with_processes(&format!("{STAR}ports: per-plane\n"), 2);
        assert_eq!(one_plane.members[3].name, "n0.p0", "one plane has the only port");
        assert_eq!(one_plane.process_ports_of(NodeId(1)), [vec![NodeId(5)], vec![NodeId(6)]]);
    }

    #[test]
    fn links_to_processes_sleep_as_their_node_does() {
        for (wire, expected) in [
            (WireKind::SharedMemory, WireKind::SharedMemory),
            (WireKind::Udp, WireKind::Udp),
            (WireKind::Packet, WireKind::Udp),
        ] {
            let mut plan = with_processes(STAR, 1);
            plan.set_wire(wire);
            assert_eq!(
                (plan.wire_of(&plan.links[0].edge), plan.wire_of(&plan.links[2].edge)),
                (wire, expected)
            );
        }
    }

    #[test]
    fn a_rack_at_its_limits_has_fewer_processes() {
        let star = |nodes: u16| format!("name: r\nshape: {{star: {{nodes: {nodes}}}}}\nring_bytes: 64KiB\n");
        assert_eq!(with_processes(&star(1000), 16).processes_of(NodeId(0)).count(), 15);
        let named = "name: r\nshape: {custom: {nodes: [a, a.p0], links: [{a: a, b: a.p0}]}}\n";
        assert_eq!(Plan::parse(named, "rack").map(|plan| plan.process_seats_max()).ok(), Some(0));
    }

    #[test]
    fn paths_between_processes_have_a_level_for_each_link() {
        let text = "name: r\nshape: {ring: {nodes: 4}}\nchannels: {rise: hop}\n";
        assert_eq!(
            (plan(text).channels.config.levels, with_processes(text, 1).channels.config.levels),
            (2, 4)
        );
    }

    #[test]
    fn processes_run_on_the_host_of_their_node_and_share_no_bridge() {
        let text = "name: r\nshape: {star: {nodes: 3, switch: bridge}}\nwire: packet\n";
        let (plain, plan) = (plan(text), with_processes(text, 2));
        assert_eq!((plain.links_per_interface(), plan.links_per_interface()), (2, 2));
        let text = "name: r\nshape: {ring: {nodes: 2}}\nwire: packet\nhosts: {A: {nodes: [n0], interface: e0}, B: {nodes: [n1], interface: e1}}\n";
        let plan = with_processes(text, 1);
        assert_eq!(plan.hosts[1].nodes, [NodeId(1), NodeId(3)]);
        assert!(!plan.joins_hosts(&plan.links[2].edge));
    }
}
