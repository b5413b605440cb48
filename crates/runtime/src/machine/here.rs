//! Part of a rack that this machine runs: all members, or the members of one of several hosts.

use rackloom_plan::{HostPlan, Plan};
use rackloom_protocol::{Edge, NodeId};

use crate::outcome::failure::Failure;

/// Part of a rack that this machine runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Here {
    /// Index of this host in the plan; `None` if all members run here.
    pub(crate) host: Option<usize>,
}

impl Here {
    /// Returns the part of the host with this name.
    ///
    /// # Errors
    /// The plan has no such host, or its wire cannot reach other hosts.
    pub(crate) fn of(plan: &Plan, host: Option<&str>) -> Result<Self, Failure> {
        let Some(name) = host else { return Ok(Self::default()) };
        let host = plan.hosts.iter().position(|host| host.name == name);
        let names: Vec<_> = plan.hosts.iter().map(|host| host.name.as_str()).collect();
        let Some(host) = host else {
            let hint = match names.is_empty() {
                true => "the file has no hosts: add a line like \
                         `hosts: {A: {nodes: [n0, n1], interface: eth1}, B: {nodes: [n2, n3], interface: eth1}}`"
                    .to_owned(),
                false => format!("hosts are {}", names.join(", ")),
            };
            return Err(Failure::bad_input(format!("there is no host {name}")).at("--host").hint(hint));
        };
        if plan.settings.wire.has_rings() {
            let what = format!(
                "--host needs the packet or the udp wire; the rack has the {} wire",
                plan.settings.wire.name()
            );
            let hint = "write `wire: packet` in the file, or `wire: udp` for hosts with routers between them";
            return Err(Failure::bad_input(what).at("--host").hint(hint));
        }
        must_be_found(plan)?;
        Ok(Self { host: Some(host) })
    }

    /// Returns true if a member runs on this machine.
    pub(crate) fn runs(&self, plan: &Plan, member: NodeId) -> bool {
        self.host.is_none_or(|host| plan.hosts[host].nodes.contains(&member))
    }

    /// Returns the numbers of the members that run on other hosts.
    pub(crate) fn elsewhere(&self, plan: &Plan) -> Vec<usize> {
        let members = (0..plan.members.len()).filter(|member| !self.runs(plan, NodeId(*member as u16)));
        members.collect()
    }

    /// Returns the number of ends that a link has on this machine: 0, 1 or 2.
    pub(crate) fn ends(&self, plan: &Plan, edge: &Edge) -> u64 {
        u64::from(self.runs(plan, edge.a)) + u64::from(self.runs(plan, edge.b))
    }

    /// Returns true if a link of this member has its other end on another host.
    pub(crate) fn has_link_to_other_host(&self, plan: &Plan, node: NodeId) -> bool {
        let edges = plan.links.iter().map(|link| link.edge);
        let mut own = edges.filter(|edge| edge.a == node || edge.b == node);
        own.any(|edge| self.ends(plan, &edge) < 2)
    }

    /// Returns the number of links with an end on this machine.
    pub(crate) fn links(&self, plan: &Plan) -> usize {
        plan.links.iter().filter(|link| self.ends(plan, &link.edge) > 0).count()
    }
}

/// Checks that each host has the address or the interface that the wire needs. A rack on one machine needs
/// neither.
fn must_be_found(plan: &Plan) -> Result<(), Failure> {
    let has_addresses = plan.settings.wire.has_host_addresses();
    let is_found = |host: &&HostPlan| match has_addresses {
        true => host.address.is_some(),
        false => host.interface.is_some() || !host.interfaces.is_empty(),
    };
    let Some(host) = plan.hosts.iter().find(|host| !is_found(host)) else { return Ok(()) };
    let (what, hint) = match has_addresses {
        true => {
            ("address", "write `address: 10.0.0.1` under each of `hosts`, or use --wire packet on every host")
        }
        false => {
            ("interface", "write `interface: eth1` under each of `hosts`, or use --wire udp on every host")
        }
    };
    let what =
        format!("host {} has no {what}, which the {} wire needs", host.name, plan.settings.wire.name());
    Err(Failure::bad_input(what).at("--host").hint(hint))
}

#[cfg(test)]
mod tests {
    use rackloom_plan::WireKind;

    use super::*;

    #[test]
    fn a_host_without_the_address_that_its_wire_needs_is_named() {
        let hosts = |more: &str| {
            let text = format!(
                "name: r\nshape: {{ring: {{nodes: 2}}}}\nwire: packet\n\
                 hosts: {{A: {{nodes: [n0], {more}}}, B: {{nodes: [n1], {more}}}}}\n"
            );
            Plan::parse(&text, "rack").unwrap_or_else(|error| panic!("{error}"))
        };
        for (more, works, fails, lacks) in [
            ("interface: eth1", WireKind::Packet, WireKind::Udp, "no address"),
            ("address: 10.0.0.1", WireKind::Udp, WireKind::Packet, "no interface"),
        ] {
            let mut plan = hosts(more);
            for (wire, expected) in [(works, None), (fails, Some(lacks))] {
                plan.set_wire(wire);
                assert!(plan.check().is_ok(), "one machine runs all of it");
                let error = Here::of(&plan, Some("A")).err().map(|failure| failure.to_string());
                assert_eq!(error.is_some(), expected.is_some(), "{error:?}");
                assert!(expected.is_none_or(|part| error.unwrap_or_default().contains(part)));
            }
        }
    }
}
