//! Every key that a rack file may contain, declared once.
//!
//! A [`Table`] lists its [`Key`]s; a key has a [`Kind`] with the range of its values, a default and a meaning. From this
//! one declaration follow the refusal of unknown keys (`read`), the ranges that are checked (`check`), the JSON schema
//! for editors ([`json`]) and, held by a test, every row of `docs/topology-file.md`.
//!
//! Nothing here reads a value.

mod channels;
mod faults;
mod hosts;
mod job;
pub(crate) mod json;
mod link;
mod members;
mod protocol;
mod rack;
mod security;
mod shape;
#[cfg(test)]
mod tests;

pub(crate) use channels::{CHANNELS, CHANNELS_FORMS, LANES};
pub(crate) use faults::{AFTER, EVENT, EVERY_NS_MIN, FAULTS, FAULTS_EXPECT, WHEN};
pub(crate) use hosts::HOST;
pub(crate) use job::{BANDWIDTH, COLLECTIVE, EXPECT, JOB, LATENCY, LITMUS, SIZES, TRAFFIC};
pub(crate) use link::{BURST, LINK, LINK_CHANNELS, LINK_CREDITS, LLR, LOSS_BY_KIND, PFC};
pub(crate) use members::{DEFAULTS, GROUP, LOCAL, MEMORY, NODE, SERVER, SWITCH, TENANT};
pub(crate) use protocol::{
    BUFFER, CREDITS, FORWARDING, PACKING, PATHS, TIMERS, TIMERS_FORMS, TRANSPORT, WINDOW_PACKETS_MAX,
};
pub(crate) use rack::{FRAME_BYTES_MIN, HEADER_BYTES, RACK};
pub(crate) use security::SECURITY;
pub(crate) use shape::{CUSTOM, CUSTOM_LINK, FULL_MESH, HOPS_MAX, LINKS_MAX, MEMBERS_MAX, RING, SHAPE, STAR};

use crate::quantity::{Unit, shown};

/// The keys of one table.
#[derive(Debug)]
pub(crate) struct Table {
    /// Heading of the table in the document.
    pub(crate) name: &'static str,
    /// Its keys, in the order of the document.
    pub(crate) keys: &'static [Key],
    /// How many of the keys a file may name.
    pub(crate) choose: Choose,
}

/// How many keys of a table a file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choose {
    /// Any of them.
    Any,
    /// One: the table is a choice.
    One,
}

/// One key.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// As the document shows it; [`REQUIRED`] if there is none.
    pub(crate) default: &'static str,
    pub(crate) meaning: &'static str,
}

/// What stands in place of a default where a file must name the value.
pub(crate) const REQUIRED: &str = "required";

/// What a value looks like. Ranges include both ends.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A name of a rack, member or server.
    Name,
    /// A list of names.
    Names,
    /// A whole number.
    Count(u64, u64),
    /// A list of whole numbers, counted from one.
    Counts,
    /// A size in bytes.
    Size(u64, u64),
    /// A time in nanoseconds.
    Time(u64, u64),
    /// Bits per second, or `unlimited`.
    Rate(u64, u64),
    /// A length in millimetres.
    Length(u64, u64),
    /// A number from 0 to 1, or per cent.
    Probability,
    /// A number with three decimal places at most, in thousandths.
    Factor(u64, u64),
    /// `true` or `false`.
    Flag,
    /// One of a few words.
    Word(&'static [&'static str]),
    /// A table.
    Table(&'static Table),
    /// A list of tables.
    List(&'static Table),
    /// Tables by the names of things.
    TableBy(By, &'static Table),
    /// By server: a list of names, or a table that holds one.
    Servers(&'static Table),
    /// A list of links by name.
    LinkNames,
    /// A name by link.
    NameByLink,
    /// Lists of counts, by direction of the link.
    CountsByDirection,
    /// One direction of a link.
    Way,
    /// Places in a rack: links, directions, members, planes; one or a list.
    Where,
    /// A list of a few words.
    WordList(&'static [&'static str]),
    /// A GPU, or a fake one.
    Device,
    /// A path of a file.
    Path,
    /// One of two forms.
    Either(&'static [Self; 2]),
}

/// What the keys of a table with free keys name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Member,
    Link,
    Group,
    Tenant,
    Host,
}

/// Declare a key.
const fn key(name: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Key {
    Key { name, kind, default, meaning }
}

/// Declare a table of which any keys may be named.
const fn table(name: &'static str, keys: &'static [Key]) -> Table {
    Table { name, keys, choose: Choose::Any }
}

impl Table {
    /// The key with this name.
    pub(crate) fn find(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// The names of the keys.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.keys.iter().map(|key| key.name)
    }

    /// The names of the keys as a list in a sentence.
    pub(crate) fn listed(&self) -> String {
        self.names().collect::<Vec<_>>().join(", ")
    }

    /// Where a key of this table stands in the file, if the table stands in one place: `timers.hold_down`.
    pub(crate) fn path_of(&self, key: &str) -> String {
        if self.name == RACK.name || self.name == FAULTS.name {
            key.to_owned()
        } else {
            format!("{}.{key}", self.name)
        }
    }

    /// The range of a key's values and their unit, if it has one.
    pub(crate) fn range_if_any(&self, key: &str) -> Option<(u64, u64, Unit)> {
        self.find(key).and_then(|key| key.kind.range())
    }

    /// The range of a key's values and their unit.
    ///
    /// # Panics
    /// If the table has no such key or the key no range: the declaration and the check have parted.
    pub(crate) fn range_of(&self, key: &str) -> (u64, u64, Unit) {
        self.range_if_any(key).unwrap_or_else(|| unreachable!("`{key}` of `{}` has no range", self.name))
    }
}

impl Kind {
    /// Least, most and unit of a number; of the first form that has them.
    fn range(&self) -> Option<(u64, u64, Unit)> {
        match self {
            Self::Count(least, most) => Some((*least, *most, Unit::Count)),
            Self::Size(least, most) => Some((*least, *most, Unit::Bytes)),
            Self::Time(least, most) => Some((*least, *most, Unit::Nanoseconds)),
            Self::Rate(least, most) => Some((*least, *most, Unit::BitsPerSecond)),
            Self::Length(least, most) => Some((*least, *most, Unit::Millimetres)),
            Self::Factor(least, most) => Some((*least, *most, Unit::Thousandths)),
            Self::Either(forms) => forms.iter().find_map(Self::range),
            _ => None,
        }
    }

    /// What a user writes here, for the document and the hints of editors.
    pub(crate) fn words(&self) -> String {
        let what = match self {
            Self::Count(..) => "count",
            Self::Size(..) => "size",
            Self::Time(..) => "time",
            Self::Rate(..) => "rate",
            Self::Length(..) => "length",
            Self::Factor(..) => "number",
            Self::Name => "name",
            Self::Path => "path",
            Self::Device => "`cuda:N` or `fake:SEED`",
            Self::Names => "list of names",
            Self::Counts => "list of counts",
            Self::Probability => "probability",
            Self::LinkNames => "list of links",
            Self::NameByLink => "name by link",
            Self::CountsByDirection => "lists of counts by direction",
            Self::Way => "direction of a link",
            Self::Where => "place, or list of places",
            Self::Flag => return "`true`, `false`".to_owned(),
            Self::Word(words) => {
                return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
            }
            Self::WordList(words) => {
                let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
                return format!("list of {}", words.join(", "));
            }
            Self::Table(table) => return format!("table, see {}", table.anchor()),
            Self::List(table) => return format!("list of tables, see {}", table.anchor()),
            Self::TableBy(by, table) => return format!("table by {}, see {}", by.word(), table.anchor()),
            Self::Servers(table) => {
                return format!("list of names, or table, by server, see {}", table.anchor());
            }
            Self::Either([Self::Word(one), Self::WordList(several)]) if one == several => {
                return format!("{}; or list of these", Self::Word(one).words());
            }
            Self::Either([first, second]) => return format!("{}; or {}", first.words(), second.words()),
        };
        let (least, most, unit) = self.range().unwrap_or((0, u64::MAX, Unit::Count));
        let range = match (least, most) {
            (0, u64::MAX) => String::new(),
            (least, u64::MAX) => format!(", at least {}", shown(least, unit)),
            (0, most) => format!(", up to {}", shown(most, unit)),
            (least, most) => format!(", {} to {}", shown(least, unit), shown(most, unit)),
        };
        let otherwise = if matches!(self, Self::Rate(..)) { ", or `unlimited`" } else { "" };
        format!("{what}{range}{otherwise}")
    }
}

impl Table {
    /// A link to the table's section of the document.
    fn anchor(&self) -> String {
        format!("[{}](#{})", self.name, self.name.replace('.', ""))
    }
}

impl By {
    const fn word(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Link => "link",
            Self::Group => "group",
            Self::Tenant => "tenant",
            Self::Host => "host",
        }
    }
}
