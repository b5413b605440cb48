//! Local paths between the nodes of a plan.

use rackloom_protocol::NodeId;

use crate::model::plan::Plan;

impl Plan {
    /// Returns the GPU nodes and processes whose memory `node` uses without a frame if `force_wire` is off. They are in the same server
    /// and tenant, and their memory is of the same kind: of the host, or of a device that can open the other device's memory.
    ///
    /// # Panics
    /// If the plan has no such member.
    #[must_use]
    pub fn memory_peers(&self, node: NodeId) -> Vec<NodeId> {
        let own = &self.members[node.index()];
        let kind = |node: NodeId| {
            self.members[node.index()].memory.device.map(|device| std::mem::discriminant(&device))
        };
        let others = (0..).map(NodeId).zip(&self.members).filter(|(other, member)| {
            *other != node && member.role.is_endpoint() && member.tenant == own.tenant
        });
        let others = others.map(|(other, _)| other).filter(|other| self.same_server(node, *other));
        others.filter(|other| kind(node) == kind(*other)).collect()
    }

    /// Returns true if some GPU nodes use each other's memory without a frame.
    #[must_use]
    pub fn has_local_paths(&self) -> bool {
        !self.settings.force_wire && self.has_memory_peers()
    }

    /// Returns true if some GPU nodes could use each other's memory without a frame with `force_wire` off.
    #[must_use]
    pub fn has_memory_peers(&self) -> bool {
        let is_endpoint = |node: &NodeId| self.members[node.index()].role.is_endpoint();
        self.servers().iter().any(|(_, members)| {
            let ranks: Vec<_> = members.iter().filter(|node| is_endpoint(node)).collect();
            ranks.len() > 1 && ranks.iter().any(|rank| !self.memory_peers(**rank).is_empty())
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::model::members::local::LocalPath;

    use super::*;

    fn plan(more: &str) -> Plan {
        let text = format!("name: r\nshape: {{star: {{nodes: 4}}}}\n{more}");
        Plan::parse(&text, "rack").unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn peers_share_server_tenant_and_kind_of_memory() {
        let peers = |more: &str| plan(more).memory_peers(NodeId(0));
        let box0 = "servers: {box0: [n0, n1, n2, s0]}\n";
        assert_eq!(peers(""), []);
        assert_eq!(peers(box0), [NodeId(1), NodeId(2)]);
        assert_eq!(peers(&format!("{box0}nodes: {{n1: {{tenant: 1}}}}")), [NodeId(2)]);
        let device = "nodes: {n2: {memory: {device: 'fake:1'}}}";
        assert_eq!(peers(&format!("{box0}{device}")), [NodeId(1)]);
    }

    #[test]
    fn force_wire_and_lone_nodes_leave_no_local_path() {
        assert!(!plan("").has_memory_peers());
        assert!(plan("servers: {box0: [n0, n1]}").has_local_paths());
        let forced = plan("servers: {box0: [n0, n1]}\nforce_wire: true");
        assert!(forced.has_memory_peers() && !forced.has_local_paths());
        assert!(!plan("servers: {box0: [n0, s0]}").has_memory_peers());
    }

    #[test]
    fn a_server_may_have_a_path_of_its_own() {
        let plan = plan(
            "servers: {box0: {nodes: [n0, n1], local: {latency: 1us}}, box1: [n2, n3]}\nlocal: {rate: 8Gbit/s}",
        );
        let rate_bits_per_s = Some(8_000_000_000);
        assert_eq!(plan.local.of("box0"), LocalPath { latency_ns: 1_000, rate_bits_per_s });
        assert_eq!(plan.local.of("box1"), LocalPath { rate_bits_per_s, ..LocalPath::default() });
        assert_eq!(plan.local.of("box1").transfer_ns(1_000), 1_000);
        assert_eq!(LocalPath { rate_bits_per_s: None, latency_ns: 1 }.transfer_ns(1 << 40), 0);
    }
}
