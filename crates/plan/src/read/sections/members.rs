//! Reads `defaults`, `groups`, `nodes`, `servers` and `tenants`: the settings of each member.
//!
//! Values inherit node <- group <- defaults. The server of a member is stated by the member, by its group, or by the list of the
//! server. Contradictions are mistakes. By default each member has a server of its own, so that traffic
//! crosses the links.

use std::collections::{BTreeMap, BTreeSet};

use rackloom_protocol::{MemberRole, NodeId, Tenant};

use crate::model::defaults;
use crate::model::members::device::DeviceModel;
use crate::model::members::local::{LocalPath, LocalPlan};
use crate::model::members::member::{MemberPlan, TenantPlan};
use crate::model::members::shape::Shape;
use crate::read::document::{Content, Entry, Value};
use crate::read::fields::{Fields, Reader, with_range};
use crate::read::mistake::{Complaint, Position, quoted};
use crate::read::sections::seats::{SeatSettings, settings};
use crate::read::sections::topology::{is_surely_absent, member_at, no_such_member};
use crate::schema;
use crate::setting::name::Named;
use crate::setting::quantity::whole;

/// Settings of one member in the file, by source.
#[derive(Default)]
struct MemberEntries {
    own: SeatSettings,
    group: Option<(String, SeatSettings)>,
    listed_server: Option<(String, Position)>,
}

/// Reads all members of the shape, in its order.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    rack: &Fields<'_>,
    shape: Option<&Shape>,
    device: DeviceModel,
) -> Vec<MemberPlan> {
    let common = reader.open_under(rack, "defaults", &schema::DEFAULTS);
    let common = SeatSettings { device, ..settings(reader, &common) };
    let none = Shape::default();
    let members = &shape.unwrap_or(&none).members;
    let mut entries: Vec<MemberEntries> = members.iter().map(|_| MemberEntries::default()).collect();
    groups(reader, rack, shape, &mut entries);
    nodes(reader, rack, shape, &mut entries);
    servers(reader, rack, shape, &mut entries);
    let members = members.iter().zip(entries);
    members.map(|((name, role), entries)| seat(reader, name, *role, entries, &common)).collect()
}

fn groups(reader: &mut Reader<'_>, rack: &Fields<'_>, shape: Option<&Shape>, entries: &mut [MemberEntries]) {
    for entry in reader.entries(rack.find("groups"), "groups") {
        if let Err(complaint) = Named::Member.read(&entry.key) {
            reader.complain(entry.key_position, complaint.at("groups"));
        }
        let path = format!("groups.{}", entry.key);
        let fields = reader.open(Some(&entry.value), path, &schema::GROUP);
        let group = settings(reader, &fields);
        let path = fields.path_of("nodes");
        let items = reader.items(fields.find("nodes"), &path);
        if items.is_empty() {
            let complaint = Complaint::about(format!("the group {} has no nodes", quoted(&entry.key)));
            reader.complain(entry.key_position, complaint.hint("write `nodes: [n0, n1]`"));
        }
        for item in items {
            let Some(member) = shape.and_then(|shape| member_at(reader, shape, item, &path)) else {
                continue;
            };
            match &entries[member.index()].group {
                Some((other, _)) => {
                    let message = format!("{} is in group {} already", named(shape, member), quoted(other));
                    reader.complain(
                        item.position,
                        Complaint::about(message).hint("a member is in one group at most"),
                    );
                }
                None => entries[member.index()].group = Some((entry.key.clone(), group.clone())),
            }
        }
    }
}

fn nodes(reader: &mut Reader<'_>, rack: &Fields<'_>, shape: Option<&Shape>, entries: &mut [MemberEntries]) {
    for entry in reader.entries(rack.find("nodes"), "nodes") {
        let member = shape.and_then(|shape| shape.member_named(&entry.key));
        if let (Some(shape), None) = (shape, member)
            && is_surely_absent(reader, &entry.key)
        {
            reader.complain(entry.key_position, no_such_member(shape, &entry.key));
        }
        let role = member.zip(shape).map(|(member, shape)| shape.members[member.index()].1);
        let table = if role.is_some_and(MemberRole::is_switch) { &schema::SWITCH } else { &schema::NODE };
        // An entry of an unknown member is read too, for its other mistakes.
        let fields = reader.open(Some(&entry.value), format!("nodes.{}", entry.key), table);
        let own = settings(reader, &fields);
        if let Some(member) = member {
            entries[member.index()].own = own;
        }
    }
}

fn servers(reader: &mut Reader<'_>, rack: &Fields<'_>, shape: Option<&Shape>, entries: &mut [MemberEntries]) {
    for entry in reader.entries(rack.find("servers"), "servers") {
        // A wrong name is not part of the plan, which is made for the other mistakes.
        let name = Named::Server.read(&entry.key).unwrap_or_else(|complaint| {
            reader.complain(entry.key_position, complaint);
            String::new()
        });
        let path = format!("servers.{}", entry.key);
        let (value, path) = if matches!(entry.value.content, Content::Table(_)) {
            // Its `local` is read with that of the rack.
            let fields = reader.open(Some(&entry.value), path, &schema::SERVER);
            (fields.find("nodes"), fields.path_of("nodes"))
        } else {
            (Some(&entry.value), path)
        };
        if value.is_none() {
            let complaint = Complaint::about(format!("the server {} has no nodes", quoted(&entry.key)));
            reader.complain(entry.key_position, complaint.hint("write `nodes: [n0, n1]`"));
        }
        for item in reader.items(value, &path) {
            let Some(member) = shape.and_then(|shape| member_at(reader, shape, item, &path)) else {
                continue;
            };
            if let Some((other, _)) = &entries[member.index()].listed_server {
                let message = format!("{} sits in server {} already", named(shape, member), quoted(other));
                reader.complain(item.position, Complaint::about(message).hint("list each member once"));
            } else {
                entries[member.index()].listed_server = Some((name.clone(), item.position));
            }
        }
    }
}

/// Reads `local` of the rack and of single servers.
pub(crate) fn local(reader: &mut Reader<'_>, rack: &Fields<'_>) -> LocalPlan {
    let fields = reader.open_under(rack, "local", &schema::LOCAL);
    let of_rack = reader.section(&fields, LocalPath::default());
    let mut of_servers = BTreeMap::new();
    // Undeclared keys of a server are reported where its nodes are read.
    for entry in rack.find("servers").map(entries_of).unwrap_or_default() {
        if Named::Server.read(&entry.key).is_err() {
            continue;
        }
        let path = format!("servers.{}.local", entry.key);
        let Some(own) = entries_of(&entry.value).iter().find(|inner| inner.key == "local") else { continue };
        let fields = reader.open(Some(&own.value), path, &schema::LOCAL);
        of_servers.insert(entry.key.clone(), reader.section(&fields, of_rack));
    }
    LocalPlan { of_rack, of_servers }
}

/// Returns the entries of a table, or none for any other value.
fn entries_of(value: &Value) -> &[Entry] {
    if let Content::Table(entries) = &value.content { entries } else { &[] }
}

/// Builds one member from all its settings.
fn seat(
    reader: &mut Reader<'_>,
    name: &str,
    role: MemberRole,
    entries: MemberEntries,
    common: &SeatSettings,
) -> MemberPlan {
    let is_endpoint = role == MemberRole::Endpoint;
    let group = entries.group.map(|(_, settings)| settings).unwrap_or_default();
    let mut settings = entries.own.or(&group);
    if let Some((listed, position)) = entries.listed_server {
        if let Some(own) = settings.server.as_ref().filter(|own| **own != listed) {
            let (listed, own, name) = (quoted(&listed), quoted(own), quoted(name));
            let message = format!("{name} is listed in server {listed}, and its entry or group states {own}");
            reader.complain(position, Complaint::about(message).hint("name its server in one place"));
        }
        settings.server = Some(listed);
    }
    // A switch takes only the server from its groups, and only the tenant from `defaults`, which describe nodes.
    let settings = match is_endpoint {
        true => settings.or(common),
        false => {
            SeatSettings { server: settings.server, tenant: common.tenant.clone(), ..SeatSettings::default() }
        }
    };
    let (tenant, origin) = settings.tenant.unzip();
    if let Some(origin) = origin {
        reader.positions.note_origin(format!("nodes.{name}.tenant"), origin);
    }
    let (memory_bytes, origin) = settings.memory_bytes.unzip();
    if let Some(origin) = origin {
        reader.positions.note_origin(format!("nodes.{name}.memory"), origin);
    }
    MemberPlan {
        name: name.to_owned(),
        role,
        tenant: tenant.unwrap_or_default(),
        server: settings.server.unwrap_or_else(|| format!("server-{name}")),
        memory_bytes: if is_endpoint { memory_bytes.unwrap_or(defaults::MEMORY_BYTES) } else { 0 },
        memory: settings.memory,
        device: settings.device,
    }
}

/// Reads `tenants`: quotas by number.
pub(crate) fn tenants(reader: &mut Reader<'_>, rack: &Fields<'_>) -> Vec<TenantPlan> {
    let mut seen = BTreeSet::new();
    let mut tenants = Vec::new();
    for entry in reader.entries(rack.find("tenants"), "tenants") {
        let number = tenant_number(reader, entry);
        let path = format!("tenants.{}", number.unwrap_or_default());
        let fields = reader.open(Some(&entry.value), path, &schema::TENANT);
        let tenant = Tenant(number.unwrap_or_default());
        let plan = reader.section(&fields, TenantPlan { tenant, ..TenantPlan::default() });
        let Some(number) = number else { continue };
        if !seen.insert(number) {
            let complaint = Complaint::about(format!("tenant {number} has been named before"));
            reader.complain(entry.key_position, complaint.hint("write all its keys in one place"));
        }
        reader.positions.note(format!("tenants.{number}"), entry.key_position);
        tenants.push(plan);
    }
    tenants.sort_unstable_by_key(|plan| plan.tenant);
    tenants
}

fn tenant_number(reader: &mut Reader<'_>, entry: &Entry) -> Option<u16> {
    match whole(&entry.key) {
        Ok(number) => Some(number),
        Err(complaint) => {
            let complaint = match complaint.is_beyond_type() {
                true => with_range(&schema::DEFAULTS, "tenant", complaint),
                false => complaint.with_hint("tenants are numbers: `1: {memory_max: 16MiB}`"),
            };
            reader.complain(entry.key_position, complaint.at("tenants"));
            None
        }
    }
}

fn named(shape: Option<&Shape>, member: NodeId) -> String {
    quoted(shape.map_or("", |shape| &shape.members[member.index()].0))
}
