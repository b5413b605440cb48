//! Reads `channels`: lanes of the message classes, levels and arbiter.

use rackloom_protocol::{ChannelConfig, Rise};

use crate::model::links::channels::{ChannelKeys, ChannelPlan, Lanes};
use crate::model::links::of_link::OwnChannels;
use crate::model::members::shape::Shape;
use crate::read::fields::{Fields, Reader};
use crate::read::mistake::{Complaint, quoted};
use crate::read::sections::link_names::{is_no_link, no_such_link};
use crate::schema;
use crate::setting::quantity::whole;

/// Reads `off`, `by-class`, or a table.
pub(crate) fn read(reader: &mut Reader<'_>, rack: &Fields<'_>, shape: Option<&Shape>) -> ChannelPlan {
    if !rack.is_table("channels") {
        let is_by_class = reader.choice(rack, "channels", false, &[("off", false), ("by-class", true)]);
        let config = if is_by_class { ChannelConfig::by_class() } else { ChannelConfig::default() };
        return ChannelPlan { config, ..ChannelPlan::default() };
    }
    let fields = reader.open_under(rack, "channels", &schema::CHANNELS);
    let stated = reader.section(&fields, ChannelKeys::default());
    let lanes = reader.open_under(&fields, "lanes", &schema::LANES);
    let lanes = reader.section(&lanes, Lanes::default());
    let weights = counts(reader, &fields, "weights");
    let limits = counts(reader, &fields, "limits");
    let datelines = datelines(reader, &fields, stated.rise, shape);
    let levels_follow =
        fields.find("levels").is_none() || !reader.positions.is_intact(&fields.path_of("levels"));
    let config = ChannelKeys { lanes, weights, ..stated }.config();
    ChannelPlan { config, limits, datelines, levels_follow }
}

/// Reads the channels of one link: `on`, `off`, or a table.
pub(crate) fn of_link(reader: &mut Reader<'_>, fields: &Fields<'_>, base: OwnChannels) -> OwnChannels {
    if !fields.is_table("channels") {
        let are_divided =
            reader.choice(fields, "channels", base.are_divided, &[("on", true), ("off", false)]);
        return OwnChannels { are_divided, ..base };
    }
    let own = reader.open_under(fields, "channels", &schema::LINK_CHANNELS);
    let limits = match own.find("limits") {
        Some(_) => counts(reader, &own, "limits"),
        None => base.limits,
    };
    OwnChannels { are_divided: true, limits }
}

/// Reads a list of numbers from one on.
fn counts<T: TryFrom<u64>>(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &'static str) -> Vec<T> {
    let path = fields.path_of(key);
    let Some(value) = fields.find(key) else { return Vec::new() };
    reader.positions.note(path.clone(), value.position);
    let mut counts = Vec::new();
    for item in reader.items(Some(value), &path) {
        let count = reader.scalar(item, &path).and_then(|text| {
            let count = whole::<u64>(text).map_err(|complaint| complaint.at(&path))?;
            T::try_from(count).ok().filter(|_| count > 0).ok_or_else(|| {
                Complaint::about(format!("`{path}` has {count}, which is none of its numbers"))
                    .hint("write whole numbers from 1 on")
            })
        });
        match count {
            Ok(count) => counts.push(count),
            Err(complaint) => {
                reader.positions.note_broken(path.clone());
                reader.complain(item.position, complaint);
            }
        }
    }
    counts
}

/// Reads links by name. The default is the links that close a ring, or the rings of a torus.
fn datelines(reader: &mut Reader<'_>, fields: &Fields<'_>, rise: Rise, shape: Option<&Shape>) -> Vec<u16> {
    let path = fields.path_of("datelines");
    let Some(value) = fields.find("datelines") else {
        let closing = shape.filter(|_| rise == Rise::Dateline).map(|shape| shape.closing.clone());
        return closing.unwrap_or_default();
    };
    reader.positions.note(path.clone(), value.position);
    let mut edges = Vec::new();
    for item in reader.items(Some(value), &path) {
        let name = match reader.scalar(item, &path) {
            Ok(name) => name,
            Err(complaint) => {
                reader.complain(item.position, complaint);
                continue;
            }
        };
        let Some(shape) = shape else { continue };
        match shape.link_named(name) {
            Some(edge) if edges.contains(&(edge as u16)) => {
                let message = format!("`{path}` names {} twice", quoted(name));
                reader.complain(item.position, Complaint::about(message).hint("leave one of them out"));
            }
            Some(edge) => edges.push(edge as u16),
            None if is_no_link(reader, shape, name) => {
                reader.complain(item.position, no_such_link(shape, name));
                reader.positions.note_broken(path.clone());
            }
            None => reader.positions.note_broken(path.clone()),
        }
    }
    edges.sort_unstable();
    edges
}
