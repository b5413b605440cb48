//! Reads `hosts`: the members of each machine, and the interfaces of links to other machines.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use rackloom_protocol::NodeId;

use crate::model::hosts::HostPlan;
use crate::model::shape::Shape;
use crate::read::fields::{Fields, Reader, prefixed};
use crate::read::link_names::{is_no_link, no_such_link};
use crate::read::mistake::{Complaint, quoted};
use crate::read::topology::{member_at, member_name};
use crate::schema;

/// Longest name of an interface in Linux, in bytes.
const INTERFACE_CHARACTERS_MAX: usize = 15;

/// Reads all hosts, in the order of the file.
pub(crate) fn read(reader: &mut Reader<'_>, rack: &Fields<'_>, shape: Option<&Shape>) -> Vec<HostPlan> {
    let mut hosts: Vec<HostPlan> = Vec::new();
    let written = rack.find("hosts");
    if let Some(value) = written {
        reader.positions.note("hosts".to_owned(), value.position);
    }
    for entry in reader.entries(written, "hosts") {
        if let Err(complaint) = member_name(&entry.key) {
            let message = format!("{} is not a name of a host", quoted(&entry.key));
            reader.complain(entry.key_position, complaint.reworded(message));
        }
        let path = format!("hosts.{}", entry.key);
        reader.positions.note(path.clone(), entry.key_position);
        let fields = reader.open(Some(&entry.value), path, &schema::HOST);
        let members = members(reader, &fields, shape, &hosts);
        if members.is_empty() && fields.find("nodes").is_none() {
            let complaint = Complaint::about(format!("the host {} has no nodes", quoted(&entry.key)));
            reader.complain(entry.key_position, complaint.hint("write `nodes: [n0, n1]`"));
        }
        let interface = reader.value(&fields, "interface", None, |text| interface_name(text).map(Some));
        let interfaces = by_link(reader, &fields, shape, "interfaces", interface_name);
        let address = reader.value(&fields, "address", None, |text| address_of(text).map(Some));
        let addresses = by_link(reader, &fields, shape, "addresses", |text| address_of(text).map(Some));
        let addresses = addresses.into_iter().filter_map(|(link, address)| Some((link, address?))).collect();
        let name = entry.key.clone();
        hosts.push(HostPlan { name, members, interface, interfaces, address, addresses });
    }
    hosts
}

fn members(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    shape: Option<&Shape>,
    others: &[HostPlan],
) -> Vec<NodeId> {
    let path = fields.path_of("nodes");
    let mut members: Vec<NodeId> = Vec::new();
    for item in reader.items(fields.find("nodes"), &path) {
        let Some((shape, member)) =
            shape.and_then(|shape| Some((shape, member_at(reader, shape, item, &path)?)))
        else {
            // It is unknown which member was meant, so no member is reported as one without a host.
            reader.positions.note_broken("hosts".to_owned());
            continue;
        };
        let name = quoted(&shape.members[member.index()].0);
        let message = match others.iter().find(|host| host.members.contains(&member)) {
            Some(other) => format!("{name} runs on host {} already", quoted(&other.name)),
            None if members.contains(&member) => format!("{name} is named twice"),
            None => {
                members.push(member);
                continue;
            }
        };
        reader.complain(item.position, Complaint::about(message).hint("a member runs on one host"));
    }
    members
}

/// Reads values of single links, by link number. A value that cannot be read becomes a default that is not checked.
fn by_link<T: Default>(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    shape: Option<&Shape>,
    key: &'static str,
    parse: impl Fn(&str) -> Result<T, Complaint>,
) -> BTreeMap<usize, T> {
    let path = fields.path_of(key);
    let mut values = BTreeMap::new();
    for entry in reader.entries(fields.find(key), &path) {
        let name = reader
            .scalar(&entry.value, &path)
            .and_then(|text| parse(text).map_err(|complaint| prefixed(&path, complaint)));
        let name = name.map_err(|complaint| reader.complain(entry.value.position, complaint)).ok();
        let Some(shape) = shape else { continue };
        match (shape.link_named(&entry.key), name) {
            (Some(link), name) => {
                reader.positions.note(format!("{path}.{}", shape.links[link].0), entry.key_position);
                let name = name.unwrap_or_default();
                if values.insert(link, name).is_some() {
                    let message = format!("{} names a link that has been named before", quoted(&entry.key));
                    let hint = "a link leaves at one place";
                    reader.complain(entry.key_position, Complaint::about(message).hint(hint));
                }
            }
            (None, _) if is_no_link(reader, shape, &entry.key) => {
                reader.complain(entry.key_position, no_such_link(shape, &entry.key));
            }
            (None, _) => {}
        }
    }
    values
}

/// Reads an address that datagrams can be sent to.
fn address_of(text: &str) -> Result<Ipv4Addr, Complaint> {
    let address: Option<Ipv4Addr> = text.parse().ok();
    let is_of_one =
        |address: &Ipv4Addr| !address.is_unspecified() && !address.is_multicast() && !address.is_broadcast();
    address.filter(is_of_one).ok_or_else(|| {
        let message = format!("{} is not an IPv4 address of a machine", quoted(text));
        Complaint::about(message).hint("write four numbers: 10.0.0.1")
    })
}

/// Reads a valid name of a Linux interface, restricted to the characters of names in rack files.
fn interface_name(text: &str) -> Result<String, Complaint> {
    let not_a_name = || format!("{} is not a name of an interface", quoted(text));
    let name = member_name(text).map_err(|complaint| complaint.reworded(not_a_name()))?;
    if name.len() <= INTERFACE_CHARACTERS_MAX {
        return Ok(name);
    }
    let hint = format!("names of interfaces have at most {INTERFACE_CHARACTERS_MAX} characters");
    Err(Complaint::about(not_a_name()).hint(hint))
}
