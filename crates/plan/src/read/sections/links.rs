//! Reads `link` and `links`: the profile of each link.
//!
//! The profile under `link` applies to every link. An entry under `links`, by the link's name, replaces the keys that it states and
//! keeps the others.

use std::collections::BTreeSet;

use crate::model::links::link::{DropFrames, LinkProfile};
use crate::model::links::loss::{Burst, LossByKind};
use crate::model::links::of_link::OwnCredits;
use crate::model::members::shape::Shape;
use crate::read::document::{Content, Value};
use crate::read::fields::{Fields, Reader};
use crate::read::mistake::{Complaint, quoted};
use crate::read::sections::link_names::{is_no_link, no_such_link};
use crate::read::sections::{channels, pause, retry};
use crate::schema;
use crate::setting::quantity::{probability, whole};

/// Largest number of listed frames of one link direction.
const DROP_FRAMES_MAX: usize = 10_000;

/// Reads the profile of each link of the shape, in its order.
pub(crate) fn read(reader: &mut Reader<'_>, rack: &Fields<'_>, shape: Option<&Shape>) -> Vec<LinkProfile> {
    let fields = reader.open_under(rack, "link", &schema::LINK);
    let common = profile(reader, &fields, LinkProfile::default(), None);
    let mut profiles = vec![common.clone(); shape.map_or(0, |shape| shape.links.len())];
    let mut named = BTreeSet::new();
    for entry in reader.entries(rack.find("links"), "links") {
        let index = shape.and_then(|shape| shape.link_named(&entry.key));
        let name = match (shape, index) {
            (Some(shape), Some(index)) => shape.links[index].name.clone(),
            (Some(shape), None) => {
                if is_no_link(reader, shape, &entry.key) {
                    reader.complain(entry.key_position, no_such_link(shape, &entry.key));
                }
                entry.key.clone()
            }
            (None, _) => entry.key.clone(),
        };
        if index.is_some() && !named.insert(index) {
            let message = format!("{} names a link that has been named before", quoted(&entry.key));
            reader.complain(
                entry.key_position,
                Complaint::about(message).hint("write all its keys in one place"),
            );
        }
        let fields = reader.open(Some(&entry.value), format!("links.{name}"), &schema::LINK);
        let own = profile(reader, &fields, common.clone(), Some(&name));
        if let Some(index) = index {
            profiles[index] = own;
        }
    }
    profiles
}

/// Reads a profile over a base. `name` is the name of the link, `a--b`, for the entry of one link.
fn profile(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    base: LinkProfile,
    name: Option<&str>,
) -> LinkProfile {
    let (length, delay) = (fields.find("length"), fields.find("delay"));
    let mut profile = reader.section(fields, base.clone());
    match (length, delay) {
        (Some(value), Some(_)) => {
            let path = fields.path_of("length");
            let message =
                format!("`{path}` and `{}` both state the delay of a frame", fields.path_of("delay"));
            reader.complain(value.position, Complaint::about(message).hint("leave one of them out"));
        }
        // The entry of one link states its delay in place of the length of all.
        (None, Some(_)) => profile.length_mm = None,
        _ => {}
    }
    LinkProfile {
        burst: burst(reader, fields, base.burst),
        loss_by_kind: loss_by_kind(reader, fields, base.loss_by_kind),
        drop_frames: match fields.find("drop_frames") {
            Some(value) => drop_frames(reader, value, &fields.path_of("drop_frames"), name),
            None => base.drop_frames,
        },
        credits: credits(reader, fields, base.credits),
        channels: channels::of_link(reader, fields, base.channels),
        llr: retry::read(reader, fields, base.llr),
        pfc: pause::read(reader, fields, base.pfc),
        ..profile
    }
}

/// Reads a number of credits, or a table over the credits of the rack.
fn credits(reader: &mut Reader<'_>, fields: &Fields<'_>, base: OwnCredits) -> OwnCredits {
    if !fields.is_table("credits") {
        let limit = reader.declared(fields, "credits", base.limit);
        return OwnCredits { limit, ..base };
    }
    let own = reader.open_under(fields, "credits", &schema::LINK_CREDITS);
    reader.section(&own, base)
}

/// Reads bursts as a whole: a link's own entry does not inherit single keys.
fn burst(reader: &mut Reader<'_>, fields: &Fields<'_>, base: Option<Burst>) -> Option<Burst> {
    let Some(value) = fields.find("burst") else { return base };
    let position = value.position;
    let own = reader.open_under(fields, "burst", &schema::BURST);
    for key in ["enter", "leave"] {
        if own.find(key).is_none() {
            let message = format!("`{}` has no `{key}`", fields.path_of("burst"));
            reader.complain(
                position,
                Complaint::about(message).hint("write like `burst: {enter: 0.1%, leave: 10%}`"),
            );
        }
    }
    Some(reader.section(&own, Burst::default()))
}

fn loss_by_kind(reader: &mut Reader<'_>, fields: &Fields<'_>, mut base: LossByKind) -> LossByKind {
    let own = reader.open_under(fields, "loss_by_kind", &schema::LOSS_BY_KIND);
    for (kind, name) in LossByKind::kinds() {
        let said = reader.value(&own, name, base.of(kind), |text| probability(text).map(Some));
        base.set(kind, said);
    }
    base
}

/// Reads `[901]` for both directions, or `{n0->n1: [901]}` for the named one.
fn drop_frames(reader: &mut Reader<'_>, value: &Value, path: &str, name: Option<&str>) -> DropFrames {
    let Content::Table(entries) = &value.content else {
        let both = frame_numbers(reader, value, path);
        return DropFrames { forward: both.clone(), backward: both };
    };
    let mut drop_frames = DropFrames::default();
    // `n0--n1#1` has the directions of `n0--n1`.
    let ends = name.and_then(|name| name.split('#').next());
    let Some((a, b)) = ends.and_then(|ends| ends.split_once("--")) else {
        let message = format!("`{path}` of all links has no directions");
        let hint = "write a list, or name one link under `links`";
        reader.complain(value.position, Complaint::about(message).hint(hint));
        return drop_frames;
    };
    let (forward, backward) = (format!("{a}->{b}"), format!("{b}->{a}"));
    for entry in entries {
        let numbers = frame_numbers(reader, &entry.value, path);
        if entry.key == forward {
            drop_frames.forward = numbers;
        } else if entry.key == backward {
            drop_frames.backward = numbers;
        } else {
            let message = format!("{} is not a direction of this link", quoted(&entry.key));
            let hint = format!("its directions are `{forward}` and `{backward}`");
            reader.complain(entry.key_position, Complaint::about(message).hint(hint));
        }
    }
    drop_frames
}

fn frame_numbers(reader: &mut Reader<'_>, value: &Value, path: &str) -> Vec<u64> {
    let items = reader.items(Some(value), path);
    if items.len() > DROP_FRAMES_MAX {
        let message = format!("`{path}` lists {} frames, more than {DROP_FRAMES_MAX}", items.len());
        reader.complain(value.position, Complaint::about(message).hint("use `loss` for that many"));
        return Vec::new();
    }
    let mut numbers = BTreeSet::new();
    for item in items {
        let number = reader.scalar(item, path).and_then(|text| match whole(text) {
            Ok(0) => Err(Complaint::about(format!("`{path}` counts frames from 1, found 0"))
                .hint("the first data frame of a direction is number 1")),
            other => other.map_err(|complaint| complaint.at(path)),
        });
        match number {
            Ok(number) => {
                numbers.insert(number);
            }
            Err(complaint) => reader.complain(item.position, complaint),
        }
    }
    numbers.into_iter().collect()
}
