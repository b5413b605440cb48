//! Reads the `shape` of a rack: one of the named shapes, or an explicit list of members and links.
//!
//! Sizes are checked here, before anything is built, so that `nodes: 4000000000` gives a message and allocates nothing.

use rackloom_protocol::{MemberRole, NodeId, Plane};

use crate::model::members::hub::SwitchKind;
use crate::model::members::shape::{LeafSpine, Shape};
use crate::read::document::{Content, Value};
use crate::read::fields::{Fields, Reader};
use crate::read::mistake::{Complaint, Position, nearest, quoted};
use crate::schema::{
    self, CustomLinkKeys, FullMeshKeys, HypercubeKeys, LINKS_MAX, LeafSpineKeys, MEMBERS_MAX, RingKeys,
    StarKeys, TorusKeys,
};
use crate::setting::name::Named;
use crate::setting::section::Section;

/// Path that is marked as broken if some members could not be read, so that their names are unknown.
const MEMBERS: &str = "members";

/// Reads the shape. Returns `None` if it could not be built, after a mistake was reported.
pub(crate) fn read(reader: &mut Reader<'_>, rack: &Fields<'_>, rack_position: Position) -> Option<Shape> {
    let Some(value) = rack.find("shape") else {
        let hint = "add a line like `shape: {ring: {nodes: 4}}`";
        reader.complain(rack_position, Complaint::about("the rack has no `shape`").hint(hint));
        return None;
    };
    reader.positions.note("shape".to_owned(), value.position);
    let fields = reader.open(Some(value), "shape".to_owned(), &schema::SHAPE);
    let several = "a rack has one shape, found several";
    if let Some(kind) = reader.chosen(value, &fields, several) {
        return build(reader, &fields, kind);
    }
    let fault = match &value.content {
        Content::Table(entries) if entries.is_empty() => "is empty",
        Content::Empty => "says nothing",
        _ => return None,
    };
    let hint = format!("name one of {}", schema::SHAPE.listed());
    reader.complain(value.position, Complaint::about(format!("`shape` {fault}")).hint(hint));
    None
}

fn build(reader: &mut Reader<'_>, shape: &Fields<'_>, kind: &'static str) -> Option<Shape> {
    match kind {
        "ring" => Some(Shape::ring(sized::<RingKeys>(reader, shape, kind)?.nodes)),
        "star" => {
            let keys = sized(reader, shape, kind)?;
            star(reader, keys)
        }
        "full-mesh" => Some(Shape::full_mesh(sized::<FullMeshKeys>(reader, shape, kind)?.nodes)),
        "leaf-spine" => {
            let keys = sized(reader, shape, kind)?;
            leaf_spine(reader, keys)
        }
        "torus" => {
            let keys = sized(reader, shape, kind)?;
            torus(reader, &keys)
        }
        "hypercube" => Some(Shape::hypercube(sized::<HypercubeKeys>(reader, shape, kind)?.dimensions)),
        _ => {
            let fields = reader.open_under(shape, kind, &schema::CUSTOM);
            custom(reader, &fields)
        }
    }
}

/// Reads the keys of a shape whose members are numbered. Returns `None` if the numbers of its members are unknown, after a mistake was
/// reported.
fn sized<T: Section + Default>(reader: &mut Reader<'_>, shape: &Fields<'_>, kind: &'static str) -> Option<T> {
    let fields = reader.open_under(shape, kind, T::TABLE);
    let keys = reader.section(&fields, T::default());
    let missing = T::TABLE.keys.iter().find(|key| key.is_required() && fields.find(key.name).is_none());
    if let Some(key) = missing {
        let position = shape.find(kind).map(|value| value.position).unwrap_or_default();
        let (what, example) = match kind {
            "leaf-spine" => (quoted(key.name), "{leaves: 4, nodes_per_leaf: 8, spines: 2}"),
            "torus" => (quoted(key.name), "{x: 4, y: 4}"),
            "hypercube" => (quoted(key.name), "{dimensions: 4}"),
            _ => ("the number of nodes".to_owned(), "{nodes: 4}"),
        };
        let message = format!("`shape.{kind}` does not state {what}");
        reader.complain(position, Complaint::about(message).hint(format!("write `{kind}: {example}`")));
        return None;
    }
    // All keys but the kind of the switches are numbers of members or links.
    let mut sizes = T::TABLE.keys.iter().filter(|key| key.name != "switch");
    sizes.all(|key| reader.positions.is_intact(&fields.path_of(key.name))).then_some(keys)
}

/// Builds leaves and spines. There can be too many members, or too many links.
fn leaf_spine(reader: &mut Reader<'_>, keys: LeafSpineKeys) -> Option<Shape> {
    let LeafSpineKeys { leaves, nodes_per_leaf, spines, parallel, planes } = keys;
    let [nodes, of_leaves] = [nodes_per_leaf, spines].map(|count| u64::from(leaves) * u64::from(count));
    let switches = u64::from(planes) * (u64::from(leaves) + u64::from(spines));
    let links = u64::from(planes) * (nodes + of_leaves * u64::from(parallel));
    let complaint = if nodes + switches > MEMBERS_MAX {
        let message = format!("{nodes} nodes and {switches} switches are more than {MEMBERS_MAX} members");
        Complaint::about(message).hint("name fewer leaves, nodes per leaf, spines or planes")
    } else if links > LINKS_MAX {
        let message =
            format!("the nodes, leaves and spines have {links} links, of which {LINKS_MAX} are possible");
        Complaint::about(message).hint("name fewer spines, planes or parallel links")
    } else {
        return Some(Shape::leaf_spine(LeafSpine { leaves, nodes_per_leaf, spines, parallel, planes }));
    };
    let position = reader.positions.find("shape.leaf-spine.leaves").unwrap_or_default();
    reader.complain(position, complaint);
    None
}

/// Builds a torus. There can be too many nodes.
fn torus(reader: &mut Reader<'_>, keys: &TorusKeys) -> Option<Shape> {
    let sizes = [keys.x, keys.y, keys.z];
    let nodes: u64 = sizes.iter().map(|size| u64::from(*size)).product();
    if nodes <= MEMBERS_MAX {
        return Some(Shape::torus(&sizes));
    }
    let position = reader.positions.find("shape.torus.x").unwrap_or_default();
    let message = format!("a torus of these sizes has {nodes} nodes, of which {MEMBERS_MAX} are possible");
    reader.complain(position, Complaint::about(message).hint("make `x`, `y` or `z` smaller"));
    None
}

/// Builds a star. With a bridge, every two nodes have a link in every plane. There can be too many switches, or too many links.
fn star(reader: &mut Reader<'_>, keys: StarKeys) -> Option<Shape> {
    let StarKeys { nodes, planes, switch } = keys;
    let members = u64::from(nodes) + u64::from(planes);
    let links = u64::from(nodes) * u64::from(nodes - 1) / 2 * u64::from(planes);
    let complaint = match switch {
        // Each plane takes a switch. The range of the key accounts for the first one.
        _ if members > MEMBERS_MAX => {
            let most = MEMBERS_MAX - u64::from(planes);
            let message = format!("{nodes} nodes and {planes} switches are more than {MEMBERS_MAX} members");
            Complaint::about(message).hint(format!("name at most {most} nodes, or fewer planes"))
        }
        SwitchKind::Member => return Some(Shape::star(nodes, planes)),
        SwitchKind::Bridge if links <= LINKS_MAX => return Some(Shape::bridged_star(nodes, planes)),
        SwitchKind::Bridge => {
            let message = format!(
                "{nodes} nodes at {planes} bridges have {links} links, of which {LINKS_MAX} are possible"
            );
            let hint = "every two nodes have a link in every plane: name fewer nodes or planes, or take `switch: member`";
            Complaint::about(message).hint(hint)
        }
    };
    let position = reader.positions.find("shape.star.nodes").unwrap_or_default();
    reader.complain(position, complaint);
    None
}

/// Reads the explicit form. Parts that can be read are built, so that names in the rest of the file can be checked. The shape
/// is marked as broken, because members and links may be missing by mistake.
fn custom(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Shape> {
    let before = reader.mistakes.len();
    let mut shape = Shape::default();
    for (key, role) in [("nodes", MemberRole::Endpoint), ("switches", MemberRole::Switch)] {
        let path = fields.path_of(key);
        let known = reader.mistakes.len();
        let items = reader.items(fields.find(key), &path);
        if reader.mistakes.len() > known {
            reader.positions.note_broken(MEMBERS.to_owned());
        }
        for item in items {
            custom_member(reader, &mut shape, item, &path, role);
        }
    }
    let path = fields.path_of("links");
    for item in reader.items(fields.find("links"), &path) {
        custom_link(reader, &mut shape, item, &path);
    }
    if reader.mistakes.len() > before {
        reader.positions.note_broken("shape".to_owned());
        // Without any member, every name in the file would be reported.
        return (!shape.members.is_empty()).then_some(shape);
    }
    Some(shape)
}

/// Returns true if no member has this name and all members could be read.
pub(crate) fn is_surely_absent(reader: &Reader<'_>, name: &str) -> bool {
    reader.positions.is_intact(MEMBERS) && reader.positions.is_intact(&format!("member.{name}"))
}

fn custom_member(reader: &mut Reader<'_>, shape: &mut Shape, item: &Value, path: &str, role: MemberRole) {
    let text = reader.scalar(item, path);
    let unknown = text.as_ref().map_or_else(|_| MEMBERS.to_owned(), |text| format!("member.{text}"));
    let outcome = text.and_then(|text| Named::Member.read(text).map_err(|complaint| complaint.at(path)));
    match outcome {
        Err(complaint) => {
            reader.positions.note_broken(unknown);
            reader.complain(item.position, complaint);
        }
        Ok(name) if shape.member_named(&name).is_some() => {
            let complaint = Complaint::about(format!("{} is named twice", quoted(&name)));
            reader.complain(
                item.position,
                complaint.hint("every member has a name of its own; rename one of them"),
            );
        }
        Ok(_) if shape.members.len() as u64 >= MEMBERS_MAX => {
            reader.positions.note_broken(MEMBERS.to_owned());
            let complaint = Complaint::about(format!("a rack has at most {MEMBERS_MAX} members"));
            reader.complain(item.position, complaint.hint("leave out members, or describe several racks"));
        }
        Ok(name) => {
            reader.positions.note(format!("member.{name}"), item.position);
            shape.add_member(name, role);
        }
    }
}

fn custom_link(reader: &mut Reader<'_>, shape: &mut Shape, item: &Value, path: &str) {
    let fields = reader.open(Some(item), path.to_owned(), &schema::CUSTOM_LINK);
    let before = reader.mistakes.len();
    let CustomLinkKeys { plane, parallel, .. } = reader.section(&fields, CustomLinkKeys::default());
    let has_plane = reader.mistakes.len() == before;
    let plane = Plane(plane);
    let a = custom_end(reader, shape, item, &fields, "a");
    let b = custom_end(reader, shape, item, &fields, "b");
    let (Some(a), Some(b)) = (a, b) else { return mark_ends_of_link(reader, shape, &fields) };
    let (a_name, b_name) = (&shape.members[a.index()].0, &shape.members[b.index()].0);
    let mut others = shape.links_between(a, b).iter().map(|index| shape.links[*index].edge.plane);
    if a == b {
        let complaint = Complaint::about(format!("{} is linked to itself", quoted(a_name)));
        reader.complain(item.position, complaint.hint("a link joins two different members"));
    } else if has_plane && others.any(|other| other == plane) {
        let plane = plane.0;
        let message = format!("{} and {} are linked twice in plane {plane}", quoted(a_name), quoted(b_name));
        let hint = "write `parallel: 2` at the first entry, or another `plane`, if two links are meant";
        reader.complain(item.position, Complaint::about(message).hint(hint));
    } else if shape.links.len() as u64 + u64::from(parallel) > LINKS_MAX {
        let complaint = Complaint::about(format!("a rack has at most {LINKS_MAX} links"));
        reader.complain(item.position, complaint.hint("leave out links, or join nodes through switches"));
    } else {
        (0..parallel).for_each(|_| shape.join(a, b, plane));
    }
}

/// A link with an unknown end may have been meant for these members, so they are not reported as unconnected.
fn mark_ends_of_link(reader: &mut Reader<'_>, shape: &Shape, fields: &Fields<'_>) {
    let names = || shape.members.iter().map(|(name, _)| name.as_str());
    for key in ["a", "b"] {
        let Some(Content::Text(written)) = fields.find(key).map(|value| &value.content) else { continue };
        let meant = match shape.member_named(written) {
            Some(_) => Some(written.as_str()),
            None => nearest(written, names()),
        };
        if let Some(meant) = meant {
            reader.positions.note_broken(format!("member.{meant}.links"));
        }
    }
}

fn custom_end(
    reader: &mut Reader<'_>,
    shape: &Shape,
    item: &Value,
    fields: &Fields<'_>,
    key: &'static str,
) -> Option<NodeId> {
    let Some(value) = fields.find(key) else {
        let message = format!("the link has no end `{key}`");
        reader.complain(item.position, Complaint::about(message).hint("write `{a: n0, b: n1}`"));
        return None;
    };
    member_at(reader, shape, value, &fields.path_of(key))
}

/// Reads the name of a member.
pub(crate) fn member_at(reader: &mut Reader<'_>, shape: &Shape, value: &Value, path: &str) -> Option<NodeId> {
    match reader.scalar(value, path) {
        Err(complaint) => {
            reader.complain(value.position, complaint);
            None
        }
        Ok(name) => {
            let found = shape.member_named(name);
            if found.is_none() && is_surely_absent(reader, name) {
                reader.complain(value.position, no_such_member(shape, name));
            }
            found
        }
    }
}

/// Returns "there is no member `n9`", with the most similar name.
pub(crate) fn no_such_member(shape: &Shape, name: &str) -> Complaint {
    let complaint = Complaint::about(format!("there is no member {}", quoted(name)));
    match nearest(name, shape.members.iter().map(|(name, _)| name.as_str())) {
        Some(meant) => complaint.hint(format!("did you mean `{meant}`?")),
        None => complaint
            .hint(format!("members are {}", listed(shape.members.iter().map(|(name, _)| name.as_str())))),
    }
}

/// Returns the first few of many names.
pub(crate) fn listed<'name>(names: impl Iterator<Item = &'name str>) -> String {
    const SHOWN: usize = 8;
    let names: Vec<&str> = names.take(SHOWN + 1).collect();
    let more = if names.len() > SHOWN { ", ..." } else { "" };
    format!("{}{more}", names[..names.len().min(SHOWN)].join(", "))
}
