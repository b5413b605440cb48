//! Names of links that do not exist.

use crate::model::members::shape::Shape;
use crate::read::fields::Reader;
use crate::read::mistake::{Complaint, nearest, quoted};
use crate::read::sections::topology::{is_surely_absent, listed};

/// Returns true if no link has this name. If links of the file could not be read, only an unknown member is certain.
pub(crate) fn is_no_link(reader: &Reader<'_>, shape: &Shape, name: &str) -> bool {
    if reader.positions.is_intact("shape") {
        return true;
    }
    let ends = name.split_once('#').map_or(name, |(ends, _)| ends).split_once("--");
    let is_absent = |end| shape.member_named(end).is_none() && is_surely_absent(reader, end);
    ends.is_none_or(|(a, b)| is_absent(a) || is_absent(b))
}

pub(crate) fn no_such_link(shape: &Shape, name: &str) -> Complaint {
    let complaint = Complaint::about(format!("there is no link {}", quoted(name)));
    let names = || shape.links.iter().map(|link| link.name.as_str());
    match nearest(name, names()) {
        Some(meant) => complaint.hint(format!("did you mean `{meant}`?")),
        None => complaint.hint(format!("links are {}", listed(names()))),
    }
}
