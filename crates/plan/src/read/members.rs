//! `defaults` and `nodes`: what each seat has.
//!
//! A node's memory and tenant come from its own entry, else from `defaults`. Its server is its own unless the file says
//! otherwise, so traffic really crosses the links.

use rackloom_protocol::{MemberRole, Tenant};

use crate::defaults;
use crate::document::Entry;
use crate::mistake::{Complaint, quoted};
use crate::plan::MemberPlan;
use crate::quantity::{bytes, whole};
use crate::read::fields::{Fields, Reader};
use crate::read::schema;
use crate::read::topology::{member_name, no_such_member};
use crate::shape::Shape;

/// All members of the shape, in its order.
pub(crate) fn read(reader: &mut Reader<'_>, rack: &Fields<'_>, shape: Option<&Shape>) -> Vec<MemberPlan> {
    let common = reader.open_under(rack, "defaults", &schema::DEFAULTS);
    let memory_bytes = reader.value(&common, "memory", defaults::MEMORY_BYTES, bytes);
    let tenant = reader.value(&common, "tenant", Tenant(0), |text| whole(text).map(Tenant));
    let none = Shape::default();
    let mut members: Vec<MemberPlan> = shape
        .unwrap_or(&none)
        .members
        .iter()
        .map(|(name, role)| MemberPlan {
            name: name.clone(),
            role: *role,
            tenant,
            server: format!("server-{name}"),
            memory_bytes: if *role == MemberRole::Endpoint { memory_bytes } else { 0 },
        })
        .collect();
    for entry in reader.entries(rack.find("nodes"), "nodes") {
        let member =
            shape.and_then(|shape| shape.member_named(&entry.key)).map(|node| &mut members[node.index()]);
        if let (Some(shape), None) = (shape, &member) {
            reader.complain(entry.key_place, no_such_member(shape, &entry.key));
        }
        seat(reader, entry, member);
    }
    members
}

/// One entry of `nodes`. An entry for no member is read all the same, for its other mistakes.
fn seat(reader: &mut Reader<'_>, entry: &Entry, member: Option<&mut MemberPlan>) {
    let path = format!("nodes.{}", entry.key);
    let mut stray = MemberPlan {
        name: entry.key.clone(),
        role: MemberRole::Endpoint,
        tenant: Tenant(0),
        server: String::new(),
        memory_bytes: defaults::MEMORY_BYTES,
    };
    let member = member.unwrap_or(&mut stray);
    let is_endpoint = member.role == MemberRole::Endpoint;
    let fields =
        reader.open(Some(&entry.value), path, if is_endpoint { &schema::NODE } else { &schema::SWITCH });
    member.server = reader.value(&fields, "server", member.server.clone(), server_name);
    if is_endpoint {
        member.memory_bytes = reader.value(&fields, "memory", member.memory_bytes, bytes);
        member.tenant = reader.value(&fields, "tenant", member.tenant, |text| whole(text).map(Tenant));
    }
}

fn server_name(text: &str) -> Result<String, Complaint> {
    member_name(text).map_err(|complaint| Complaint {
        message: format!("{} is not a name of a server", quoted(text)),
        ..complaint
    })
}
