//! Checks hosts: every member has a host, links between hosts have an interface at both ends, and their frames are distinguishable.

use std::collections::BTreeMap;

use crate::check::inspection::Inspection;
use crate::model::links::wire::HostEnd;
use crate::model::members::hosts::HostPlan;
use crate::read::listed;
use crate::read::mistake::{Complaint, quoted};

pub(super) fn check(check: &mut Inspection<'_>) {
    let plan = check.plan;
    if plan.hosts.is_empty() || !check.intact(&["shape", "hosts"]) {
        return;
    }
    every_member_has_a_host(check);
    servers_are_of_one_host(check);
    for host in &plan.hosts {
        match plan.settings.wire.properties().host_end {
            HostEnd::Address => addresses(check, host),
            HostEnd::Interface => interfaces(check, host),
        }
    }
    let highest = usize::from(plan.settings.udp_port) + plan.links.len();
    if plan.settings.wire.has_host_addresses()
        && highest > usize::from(u16::MAX)
        && check.intact(&["udp_port"])
    {
        let message = format!("link ports end at {highest}, beyond 65535");
        let hint = format!("write `udp_port` of at most {}", usize::from(u16::MAX) - plan.links.len());
        check.complain(&["udp_port", "hosts"], Complaint::about(message).hint(hint));
    }
}

/// On the udp wire every link that leaves the host needs an address, and its port identifies it. The host needs an address
/// for its supervisor as well.
fn addresses(check: &mut Inspection<'_>, host: &HostPlan) {
    let plan = check.plan;
    let path = format!("hosts.{}", host.name);
    let default = format!("{path}.address");
    for (index, link) in plan.links.iter().enumerate().filter(|(index, _)| host.addresses.contains_key(index))
    {
        let own = format!("{path}.addresses.{}", link.name);
        let is_here = host.nodes.contains(&link.edge.a) || host.nodes.contains(&link.edge.b);
        debug_assert!(host.address_of(index).is_some());
        if !is_here || !plan.joins_hosts(&link.edge) {
            let message = format!("{} does not leave host {}", quoted(&link.name), quoted(&host.name));
            let hint = "name addresses of links to members on other hosts only";
            check.complain(&[&own], Complaint::about(message).hint(hint));
        }
    }
    // A file for hosts on one segment has no addresses, and one machine can run all of it on any wire.
    let is_routed = plan.hosts.iter().any(|host| host.address.is_some()) || host.interface.is_none();
    if is_routed && host.address.is_none() && check.intact(&[&default]) {
        let message = format!(
            "host {} has no `address`, by which the others find it on the udp wire",
            quoted(&host.name)
        );
        let hint = "write `address: 10.0.0.1`, or take `wire: packet` for hosts on one segment";
        check.complain(&[&path], Complaint::about(message).hint(hint));
    }
}

fn every_member_has_a_host(check: &mut Inspection<'_>) {
    let plan = check.plan;
    let members = (0..).zip(&plan.members);
    let homeless = members.filter(|(number, _)| plan.host_of(rackloom_protocol::NodeId(*number)).is_none());
    let names: Vec<&str> = homeless.map(|(_, member)| member.name.as_str()).collect();
    if !names.is_empty() {
        let verb = if names.len() == 1 { "runs" } else { "run" };
        let message = format!("{} {verb} on no host", listed(names.into_iter()));
        let hint = "name every member, switches too, under `nodes` of one host";
        check.complain(&["hosts"], Complaint::about(message).hint(hint));
    }
}

/// Members of one server share memory, which is not possible between machines.
fn servers_are_of_one_host(check: &mut Inspection<'_>) {
    let plan = check.plan;
    for (server, members) in plan.servers() {
        let mut hosts: Vec<&str> = members
            .iter()
            .filter_map(|member| plan.host_of(*member))
            .map(|host| host.name.as_str())
            .collect();
        hosts.dedup();
        if let [first, second, ..] = hosts[..] {
            let message = format!("server {} has members on hosts {first} and {second}", quoted(server));
            let hint = "a server is a part of one machine: name one server per host";
            check.complain(&[&format!("hosts.{second}"), "hosts"], Complaint::about(message).hint(hint));
        }
    }
}

/// Every link that leaves the host needs an interface, and shares it only with links whose frames are distinguishable.
fn interfaces(check: &mut Inspection<'_>, host: &HostPlan) {
    let plan = check.plan;
    let path = format!("hosts.{}", host.name);
    let default = format!("{path}.interface");
    // A file for hosts with routers between them has no interfaces, and one machine can run all of it on any wire.
    let is_routed = host.address.is_some() && host.interface.is_none() && host.interfaces.is_empty();
    if is_routed {
        return;
    }
    let mut taken: BTreeMap<_, &str> = BTreeMap::new();
    for (index, link) in plan.links.iter().enumerate() {
        let edge = &link.edge;
        let is_here = host.nodes.contains(&edge.a) || host.nodes.contains(&edge.b);
        let own = format!("{path}.interfaces.{}", link.name);
        if !is_here || !plan.joins_hosts(edge) {
            if host.interfaces.contains_key(&index) {
                let message = format!("{} does not leave host {}", quoted(&link.name), quoted(&host.name));
                let hint = "name interfaces of links to members on other hosts only";
                check.complain(&[&own], Complaint::about(message).hint(hint));
            }
            continue;
        }
        let Some(interface) = host.interface_of(index) else {
            if check.intact(&[&default, &own]) {
                let (name, host) = (quoted(&link.name), quoted(&host.name));
                let message = format!("{name} leaves host {host}, which names no interface for it");
                let hint = "write `interface: eth1`, the name that the machine gives it";
                check.complain(&[&path], Complaint::about(message).hint(hint));
            }
            continue;
        };
        let ends = (edge.a.min(edge.b), edge.a.max(edge.b), edge.plane, interface);
        if let Some(other) = taken.insert(ends, &link.name) {
            let message = format!(
                "{} and {} join the same two members in one plane at {interface} of host {}",
                quoted(other),
                quoted(&link.name),
                quoted(&host.name)
            );
            let hint =
                "a receiver could not distinguish their frames: give each an interface or a plane of its own";
            check.complain(&[&own, &default, &path], Complaint::about(message).hint(hint));
        }
    }
}
