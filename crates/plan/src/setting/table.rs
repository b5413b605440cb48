//! Types of declarations: tables, keys, and forms of values.
//!
//! This file declares no key.

use crate::setting::complaint::Complaint;
use crate::setting::name::Named;
use crate::setting::quantity::{Unit, shown};

/// Name of the table of a whole rack file.
pub(crate) const RACK_NAME: &str = "rack";
/// Name of the table of a whole fault script.
pub(crate) const SCRIPT_NAME: &str = "fault script";

/// Declaration of one table.
#[derive(Debug)]
pub(crate) struct Table {
    /// Heading of the table in the document.
    pub(crate) name: &'static str,
    /// Keys of the table, in the order of the document.
    pub(crate) keys: &'static [Key],
    /// Number of keys that a file may name.
    pub(crate) choose: Choose,
}

/// Number of keys of a table that a file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choose {
    /// Any number of keys.
    Any,
    /// Exactly one key: the table is a choice.
    One,
}

/// Declaration of one key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: DefaultText,
    pub(crate) meaning: &'static str,
    /// False if the canonical encoding does not contain the value.
    pub(crate) is_encoded: bool,
    /// Explains a number outside of the range, if there is more to say than the range.
    pub(crate) explain: Option<Explain>,
}

/// Returns message and hint for a number outside of the range, given the path of its key, or `None` if there is nothing to add.
pub(crate) type Explain = fn(&str, u64) -> Option<Complaint>;

/// Default of a key, for the document.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DefaultText {
    /// [`REQUIRED`], or a description of a default that follows from other values.
    Text(&'static str),
    /// A constant. `is_ours` marks numbers that public descriptions do not give.
    Constant { shown: fn() -> String, is_ours: bool },
}

/// Default of a key that a file must state.
pub(crate) const REQUIRED: &str = "required";

/// Form of a value. Ranges include both ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Name of a thing.
    Name(Named),
    /// List of names.
    Names,
    /// Whole number.
    Count(u64, u64),
    /// Whole number that is shown in hexadecimal notation.
    Code(u64, u64),
    /// List of whole numbers, counted from one.
    Counts,
    /// Size in bytes.
    Size(u64, u64),
    /// Time in nanoseconds.
    Time(u64, u64),
    /// Bits per second, or `unlimited`.
    Rate(u64, u64),
    /// Floating-point operations per second.
    ComputeRate(u64, u64),
    /// Length in millimetres.
    Length(u64, u64),
    /// Number from 0 to 1, or per cent.
    Probability,
    /// Number with at most three decimal places, in thousandths.
    Factor(u64, u64),
    /// `true` or `false`.
    Flag,
    /// One of several names.
    Choice(&'static [&'static str]),
    /// Table.
    Table(&'static Table),
    /// List of tables.
    List(&'static Table),
    /// Tables by names.
    TableBy(By, &'static Table),
    /// By server: a list of names, or a table that holds one.
    Servers(&'static Table),
    /// List of links by name.
    LinkNames,
    /// IPv4 address.
    Address,
    /// Value by link.
    ByLink(&'static Self),
    /// Lists of counts, by direction of the link.
    CountsByDirection,
    /// One direction of a link.
    Direction,
    /// Places in a rack: links, directions, members, planes; one or a list.
    Where,
    /// List of several names.
    ChoiceList(&'static [&'static str]),
    /// GPU, or a fake device.
    Device,
    /// Path of a file.
    Path,
    /// One of two forms.
    Either(&'static [Self; 2]),
}

/// Meaning of the free keys of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Member,
    Link,
    Group,
    Tenant,
    Host,
}

/// Declares a key.
pub(crate) const fn key(name: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Key {
    Key { name, kind, default: DefaultText::Text(default), meaning, is_encoded: true, explain: None }
}

/// Declares a table that permits any number of keys.
pub(crate) const fn table(name: &'static str, keys: &'static [Key]) -> Table {
    Table { name, keys, choose: Choose::Any }
}

/// Returns the keys of several lists as one.
///
/// # Panics
/// If the lists do not have `N` keys together.
pub(crate) const fn joined<const N: usize>(lists: &[&[Key]]) -> [Key; N] {
    let mut keys = [key("", Kind::Flag, "", ""); N];
    let (mut list, mut count) = (0, 0);
    while list < lists.len() {
        let mut index = 0;
        while index < lists[list].len() {
            keys[count] = lists[list][index];
            index += 1;
            count += 1;
        }
        list += 1;
    }
    assert!(count == N, "the lists have another number of keys");
    keys
}

/// Returns keys with other defaults. They are declared once, and several tables inherit from one another.
///
/// # Panics
/// If there are not `N` keys.
pub(crate) const fn with_defaults<const N: usize>(list: &[Key], defaults: [DefaultText; N]) -> [Key; N] {
    let mut keys: [Key; N] = joined(&[list]);
    let mut index = 0;
    while index < N {
        keys[index].default = defaults[index];
        index += 1;
    }
    keys
}

impl Table {
    /// Returns the key with this name.
    pub(crate) fn find(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// Returns the names of the keys.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.keys.iter().map(|key| key.name)
    }

    /// Returns the names of the keys as a list in a sentence.
    pub(crate) fn listed(&self) -> String {
        self.names().collect::<Vec<_>>().join(", ")
    }

    /// Returns the path of a key in the file, for a table with one position: `timers.hold_down`.
    pub(crate) fn path_of(&self, key: &str) -> String {
        if self.name == RACK_NAME || self.name == SCRIPT_NAME {
            key.to_owned()
        } else {
            format!("{}.{key}", self.name)
        }
    }

    /// Returns the range of a key's values, or `None` if it has no range.
    pub(crate) fn range_if_any(&self, key: &str) -> Option<NumberRange> {
        self.find(key).and_then(|key| key.kind.range())
    }
}

/// Range of a number.
#[derive(Clone, Copy)]
pub(crate) struct NumberRange {
    /// Smallest value.
    pub(crate) least: u64,
    /// Largest value.
    pub(crate) most: u64,
    /// Unit in which both are shown.
    pub(crate) unit: Unit,
}

impl Key {
    /// Returns true if a file must state the key.
    pub(crate) fn is_required(&self) -> bool {
        matches!(self.default, DefaultText::Text(REQUIRED))
    }

    /// Returns the default as the document shows it.
    pub(crate) fn default_shown(&self) -> String {
        let (value, is_ours) = match self.default {
            DefaultText::Text(text) => return text.to_owned(),
            DefaultText::Constant { shown, is_ours } => (shown(), is_ours),
        };
        // Numbers without a unit stand without marks.
        let is_plain = matches!(self.kind, Kind::Count(..) | Kind::Factor(..) | Kind::Probability);
        let value = if is_plain || value == "none" { value } else { format!("`{value}`") };
        if is_ours { format!("{value} (ours)") } else { value }
    }

    /// Returns true if the number is in the range of the key, or if the key has no range.
    pub(crate) fn has_in_range(&self, number: u64) -> bool {
        self.kind.range().is_none_or(|range| (range.least..=range.most).contains(&number))
    }

    /// Returns a complaint about a number outside of the range of the key, or `None` if it is inside.
    pub(crate) fn beyond_range(&self, path: &str, number: u64) -> Option<Complaint> {
        if self.has_in_range(number) {
            return None;
        }
        let NumberRange { least, most, unit } = self.kind.range()?;
        let explained = self.explain.and_then(|explain| explain(path, number));
        Some(explained.unwrap_or_else(|| {
            let range = match most {
                u64::MAX => format!("below {}", shown(least, unit)),
                most => format!("outside {} to {}", shown(least, unit), shown(most, unit)),
            };
            let hint = match most {
                u64::MAX => format!("write at least {}", shown(least, unit)),
                most => format!("write {} to {}", shown(least, unit), shown(most, unit)),
            };
            Complaint::about(format!("`{path}` is {}, {range}", shown(number, unit))).hint(hint)
        }))
    }
}

impl Kind {
    /// Returns the form of a single value.
    pub(crate) fn scalar(&self) -> &Self {
        match self {
            Self::Either([first, second]) => {
                if matches!(first, Self::Table(_)) {
                    second
                } else {
                    first
                }
            }
            other => other,
        }
    }

    /// Returns the table of values that are tables, or have a table as one of two forms.
    pub(crate) fn table(&self) -> Option<&'static Table> {
        match self {
            Self::Table(table) => Some(table),
            Self::Either(forms) => forms.iter().find_map(Self::table),
            _ => None,
        }
    }

    /// Returns a number as a rack file states it.
    pub(crate) fn number_shown(&self, number: u64) -> String {
        self.range().map_or_else(|| number.to_string(), |range| shown(number, range.unit))
    }

    /// Returns the text for an absent value.
    pub(crate) const fn absent(&self) -> &'static str {
        if matches!(self, Self::Rate(..)) { "unlimited" } else { "none" }
    }

    /// Returns the range of a number, or of the first form that has one.
    fn range(&self) -> Option<NumberRange> {
        let range = |least, most, unit| Some(NumberRange { least, most, unit });
        match self {
            Self::Count(least, most) => range(*least, *most, Unit::Count),
            Self::Code(least, most) => range(*least, *most, Unit::Code),
            Self::Size(least, most) => range(*least, *most, Unit::Bytes),
            Self::Time(least, most) => range(*least, *most, Unit::Nanoseconds),
            Self::Rate(least, most) => range(*least, *most, Unit::BitsPerSecond),
            Self::ComputeRate(least, most) => range(*least, *most, Unit::FlopsPerSecond),
            Self::Length(least, most) => range(*least, *most, Unit::Millimetres),
            Self::Factor(least, most) => range(*least, *most, Unit::Thousandths),
            Self::Either(forms) => forms.iter().find_map(Self::range),
            _ => None,
        }
    }

    /// Returns a description of the form, for the document and the hints of editors.
    pub(crate) fn description(&self) -> String {
        let what = match self {
            Self::Count(..) | Self::Code(..) => "count",
            Self::Size(..) => "size",
            Self::Time(..) => "time",
            Self::Rate(..) => "rate",
            Self::ComputeRate(..) => "rate of computation",
            Self::Length(..) => "length",
            Self::Factor(..) => "number",
            Self::Name(_) => "name",
            Self::Path => "path",
            Self::Device => "`cuda:N` or `fake:SEED`",
            Self::Address => "IPv4 address",
            Self::Names => "list of names",
            Self::Counts => "list of counts",
            Self::Probability => "probability",
            Self::LinkNames => "list of links",
            Self::CountsByDirection => "lists of counts by direction",
            Self::Direction => "direction of a link",
            Self::Where => "place, or list of places",
            Self::Flag => return "`true`, `false`".to_owned(),
            Self::Choice(names) => {
                return names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            }
            Self::ChoiceList(names) => {
                let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
                return format!("list of {}", names.join(", "));
            }
            Self::Table(table) => return format!("table, see {}", table.anchor()),
            Self::List(table) => return format!("list of tables, see {}", table.anchor()),
            Self::TableBy(by, table) => return format!("table by {}, see {}", by.name(), table.anchor()),
            Self::Servers(table) => {
                return format!("list of names, or table, by server, see {}", table.anchor());
            }
            Self::ByLink(value) => return format!("{} by link", value.description()),
            Self::Either([Self::Choice(one), Self::ChoiceList(several)]) if one == several => {
                return format!("{}; or list of these", Self::Choice(one).description());
            }
            Self::Either([first, second]) => {
                return format!("{}; or {}", first.description(), second.description());
            }
        };
        let any = NumberRange { least: 0, most: u64::MAX, unit: Unit::Count };
        let NumberRange { least, most, unit } = self.range().unwrap_or(any);
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
    /// Returns a link to the table's section of the document.
    fn anchor(&self) -> String {
        format!("[{}](#{})", self.name, self.name.replace('.', ""))
    }
}

impl By {
    const fn name(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Link => "link",
            Self::Group => "group",
            Self::Tenant => "tenant",
            Self::Host => "host",
        }
    }
}
