//! Reads `hosts`: the members of each machine, and the interfaces of links to other machines.

use std::collections::{BTreeMap, BTreeSet};

use rackloom_protocol::NodeId;

use crate::model::members::hosts::HostPlan;
use crate::model::members::shape::Shape;
use crate::read::fields::{Fields, Reader};
use crate::read::mistake::{Complaint, quoted};
use crate::read::sections::link_names::{is_no_link, no_such_link};
use crate::read::sections::topology::member_at;
use crate::schema;
use crate::setting::name::Named;
use crate::setting::table::Kind;
use crate::setting::value::Value as KeyValue;

/// Reads all hosts, in the order of the file.
pub(crate) fn read(reader: &mut Reader<'_>, rack: &Fields<'_>, shape: Option<&Shape>) -> Vec<HostPlan> {
    let mut hosts: Vec<HostPlan> = Vec::new();
    let written = rack.find("hosts");
    if let Some(value) = written {
        reader.positions.note("hosts".to_owned(), value.position);
    }
    for entry in reader.entries(written, "hosts") {
        if let Err(complaint) = Named::Host.read(&entry.key) {
            reader.complain(entry.key_position, complaint);
        }
        let path = format!("hosts.{}", entry.key);
        reader.positions.note(path.clone(), entry.key_position);
        let fields = reader.open(Some(&entry.value), path, &schema::HOST);
        let nodes = members(reader, &fields, shape, &hosts);
        if nodes.is_empty() && fields.find("nodes").is_none() {
            let complaint = Complaint::about(format!("the host {} has no nodes", quoted(&entry.key)));
            reader.complain(entry.key_position, complaint.hint("write `nodes: [n0, n1]`"));
        }
        let host = reader.section(&fields, HostPlan::named(entry.key.clone()));
        let interfaces = by_link(reader, &fields, shape, "interfaces");
        let addresses = by_link(reader, &fields, shape, "addresses");
        hosts.push(HostPlan { nodes, interfaces, addresses, ..host });
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
        let message = match others.iter().find(|host| host.nodes.contains(&member)) {
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

/// Reads values of single links, by link number. For a value that cannot be read, its link has none.
fn by_link<T: KeyValue>(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    shape: Option<&Shape>,
    key: &'static str,
) -> BTreeMap<usize, T> {
    let path = fields.path_of(key);
    let kind = match fields.table().find(key).map(|key| key.kind) {
        Some(Kind::ByLink(kind)) => kind,
        other => unreachable!("{path} is {other:?}"),
    };
    let (mut values, mut named) = (BTreeMap::new(), BTreeSet::new());
    for entry in reader.entries(fields.find(key), &path) {
        let value = reader
            .scalar(&entry.value, &path)
            .and_then(|text| T::read(text, kind).map_err(|complaint| complaint.at(&path)));
        let value = value.map_err(|complaint| reader.complain(entry.value.position, complaint)).ok();
        let Some(shape) = shape else { continue };
        match shape.link_named(&entry.key) {
            Some(link) => {
                let own = format!("{path}.{}", shape.links[link].name);
                reader.positions.note(own.clone(), entry.key_position);
                if value.is_none() {
                    reader.positions.note_broken(own);
                }
                if !named.insert(link) {
                    let message = format!("{} names a link that has been named before", quoted(&entry.key));
                    let hint = "a link leaves at one place";
                    reader.complain(entry.key_position, Complaint::about(message).hint(hint));
                }
                values.extend(value.map(|value| (link, value)));
            }
            None if is_no_link(reader, shape, &entry.key) => {
                reader.complain(entry.key_position, no_such_link(shape, &entry.key));
            }
            None => {}
        }
    }
    values
}
