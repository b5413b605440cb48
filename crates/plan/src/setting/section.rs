//! Sections: structures whose fields are keys of one table of a rack file.
//!
//! [`section`] declares a section. A field is declared once, with name, type, unit, range, default and documentation. The
//! declaration yields the structure with its default, the [`Table`] (from which the JSON schema and the document come), the reader,
//! the canonical encoding, and the rows of `rackloom check`. `docs/decisions/settings.md` says why.

use std::collections::BTreeMap;

use crate::setting::table::{Key, Table};
use crate::setting::value::{Shown, Value};

/// Structure whose fields are keys of one table.
pub(crate) trait Section {
    /// Declaration of the keys, in the order of the fields.
    const TABLE: &'static Table;

    /// Reads the keys that a file states over the current values. Fields of composite values keep their values: the reader of
    /// the table reads them afterwards.
    fn read_over<S: Source>(&mut self, source: &mut S);

    /// Takes the values of `from` for all keys that are not stated.
    fn inherit(&mut self, from: &Self, is_stated: impl Fn(&'static str) -> bool);

    /// Visits all keys with their values, in the order of their declaration.
    fn visit(&self, visit: &mut dyn Visit);

    /// Visits all keys with their values. The values of `base` are the defaults.
    fn visit_against(&self, base: &Self, visit: &mut dyn Visit);
}

/// Table of a file.
pub(crate) trait Source {
    /// Reads the value of a key, or returns `otherwise` if the file does not state the key or states it wrongly.
    fn value<T: Value>(&mut self, key: &'static Key, otherwise: T) -> T;
}

/// Receiver of all keys and values of a plan.
pub(crate) trait Visit {
    /// A single value. `is_default` is true if the value equals its default.
    fn value(&mut self, key: &'static Key, value: &dyn Shown, is_default: bool);
    /// The value of a key for a single link, by edge index.
    fn of_link(&mut self, key: &'static Key, edge: usize, value: &dyn Shown);
    /// The values until [`Visit::close`] are below this key.
    fn open(&mut self, key: &'static Key);
    /// Ends the last key that was opened.
    fn close(&mut self);
}

/// Type of a field of a section.
pub(crate) trait Field: Clone {
    /// Reads the field over `self`. Composite values are not read here.
    #[must_use]
    fn read_from<S: Source>(&self, _key: &'static Key, _source: &mut S) -> Self {
        self.clone()
    }

    /// Visits the field.
    fn visit(&self, key: &'static Key, default: &Self, visit: &mut dyn Visit);
}

impl<T: Value> Field for T {
    fn read_from<S: Source>(&self, key: &'static Key, source: &mut S) -> Self {
        source.value(key, self.clone())
    }

    fn visit(&self, key: &'static Key, default: &Self, visit: &mut dyn Visit) {
        visit.value(key, self, self == default && !key.is_required());
    }
}

/// Field that names members or links. The reader of the table looks them up and keeps what it finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reference;

impl Field for Reference {
    fn visit(&self, _: &'static Key, _: &Self, _: &mut dyn Visit) {}
}

/// Text that stands for a composite value.
pub(crate) struct Text<'t>(pub(crate) &'t str);

impl Shown for Text<'_> {
    fn encode(&self, _: &crate::setting::table::Kind, text: &mut String) {
        debug_assert!(!self.0.contains(['\n', '=']), "{:?} is not a canonical value", self.0);
        text.push_str(self.0);
    }

    fn shown(&self, _: &crate::setting::table::Kind) -> String {
        self.0.to_owned()
    }
}

/// List of numbers.
impl<T: Shown + Clone + PartialEq> Field for Vec<T> {
    fn visit(&self, key: &'static Key, default: &Self, visit: &mut dyn Visit) {
        let mut text = String::new();
        for (index, item) in self.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            item.encode(&key.kind, &mut text);
        }
        visit.value(key, &Text(&text), self == default);
    }
}

/// Values of single links, by edge index. The reader of the table looks the links up.
impl<T: Shown + Clone + PartialEq> Field for BTreeMap<usize, T> {
    fn visit(&self, key: &'static Key, _: &Self, visit: &mut dyn Visit) {
        self.iter().for_each(|(edge, value)| visit.of_link(key, *edge, value));
    }
}

/// Visits a table that a file turns on and off as a whole, `off` by default.
pub(crate) fn visit_switched(section: Option<&impl Section>, key: &'static Key, visit: &mut dyn Visit) {
    visit.value(key, &Text(if section.is_some() { "on" } else { "off" }), section.is_none());
    if let Some(section) = section {
        visit_below(section, key, visit);
    }
}

/// Visits the keys of a table.
pub(crate) fn visit_below(section: &impl Section, key: &'static Key, visit: &mut dyn Visit) {
    visit.open(key);
    section.visit(visit);
    visit.close();
}

/// Visits the keys of a table whose values equal their defaults together, or not at all.
pub(crate) fn visit_all_below(
    section: &impl Section,
    key: &'static Key,
    is_default: bool,
    visit: &mut dyn Visit,
) {
    visit.open(key);
    section.visit(&mut Together { visit, is_default });
    visit.close();
}

/// Passes values on, all of them as defaults, or none.
struct Together<'v> {
    visit: &'v mut dyn Visit,
    is_default: bool,
}

impl Visit for Together<'_> {
    fn value(&mut self, key: &'static Key, value: &dyn Shown, _: bool) {
        self.visit.value(key, value, self.is_default);
    }

    fn of_link(&mut self, key: &'static Key, edge: usize, value: &dyn Shown) {
        self.visit.of_link(key, edge, value);
    }

    fn open(&mut self, key: &'static Key) {
        self.visit.open(key);
    }

    fn close(&mut self) {
        self.visit.close();
    }
}

/// Returns true if a field bears the name of its key, with the unit last. `type` and `where` are keywords of Rust: their fields are named
/// `element` and `targets`.
pub(crate) const fn bears_name(field: &str, key: &str) -> bool {
    let (field, key) = (field.as_bytes(), key.as_bytes());
    if is_equal(key, b"type") {
        return is_equal(field, b"element");
    }
    if is_equal(key, b"where") {
        return is_equal(field, b"targets");
    }
    if field.len() < key.len() {
        return false;
    }
    let (name, unit) = field.split_at(key.len());
    is_equal(name, key)
        && (unit.is_empty()
            || is_equal(unit, b"_ns")
            || is_equal(unit, b"_bytes")
            || is_equal(unit, b"_mm")
            || is_equal(unit, b"_bits_per_s")
            || is_equal(unit, b"_flops_per_s")
            || is_equal(unit, b"_thousandths"))
}

const fn is_equal(left: &[u8], right: &[u8]) -> bool {
    let mut index = 0;
    while index < left.len() && index < right.len() && left[index] == right[index] {
        index += 1;
    }
    index == left.len() && index == right.len()
}

/// Returns the text of a documentation comment without the blank at its beginning.
pub(crate) const fn meaning(comment: &'static str) -> &'static str {
    comment.trim_ascii_start()
}

/// Returns the value that follows from other fields of a section.
pub(crate) fn following<S, T>(section: &S, follows: fn(&S) -> T) -> T {
    follows(section)
}

/// Declares a section: a structure of the plan, or the keys of a structure of the protocol core.
///
/// ```text
/// section! {
///     /// Documentation of the structure.
///     pub struct PausePlan: PFC = "link.pfc" {
///         /// Documentation of the field and the key.
///         xon_bytes: Option<u32> {
///             key = "xon";                            // if it is not the name of the field
///             form = Kind::Size(0, 1 << 30);          // kind of value, unit and range
///             default = None;
///             shown = "half of `xoff` (ours)";        // if the default follows from other values
///         }
///     }
/// }
/// ```
///
/// Further attributes, in this order: `ours = true` marks a default that public descriptions do not give. `follows = |section| ...`
/// computes a default from fields above. `moot_if = |section| ...` says when the value has no meaning and is not encoded.
/// `encoded = false` leaves the key out of the canonical encoding. `explain = function` explains numbers outside of the range.
///
/// Fields that are no keys of the table, such as the name under which a table stands, follow the keys with their defaults. The reader of
/// the table sets them: `section! { pub struct ... { ... } with { /// Documentation. name: String = String::new(); } }`.
macro_rules! section {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident: $table:ident = $title:tt {
            $($(#[doc = $meaning:literal])+ $field:ident: $type:ty { $($attribute:tt)* })+
        }
        $(with {
            $($(#[doc = $note:literal])+ $other:ident: $other_type:ty = $other_default:expr;)+
        })?
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($($(#[doc = $note])+ $vis $other: $other_type,)+)?
            $($(#[doc = $meaning])+ $vis $field: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($($other: $other_default,)+)?
                    $($field: $crate::setting::section::section!(@default $($attribute)*),)+
                }
            }
        }

        $crate::setting::section::section! {
            @keys $name, $table, $title;
            $([$($meaning)+] $field: $type { $($attribute)* })+
        }
    };
    (
        $(#[$meta:meta])*
        pub(crate) const $defaults:ident: $name:ident, $table:ident = $title:tt {
            $($(#[doc = $meaning:literal])+ $field:ident: $type:ty { $($attribute:tt)* })+
        }
    ) => {
        $(#[$meta])*
        pub(crate) const $defaults: $name = $name {
            $($field: $crate::setting::section::section!(@default $($attribute)*),)+
        };

        $crate::setting::section::section! {
            @keys $name, $table, $title;
            $([$($meaning)+] $field: $type { $($attribute)* })+
        }
    };
    (@keys $name:ident, $table:ident, $title:tt;
        $([$($meaning:literal)+] $field:ident: $type:ty { $($attribute:tt)* })+
    ) => {
        pub(crate) static $table: $crate::setting::table::Table = $crate::setting::table::table($title, &[$(
            $crate::setting::table::Key {
                name: $crate::setting::section::section!(@key $field; $($attribute)*),
                kind: $crate::setting::section::section!(@form $($attribute)*),
                default: $crate::setting::section::section!(@shown $type; $($attribute)*),
                meaning: $crate::setting::section::meaning(concat!($($meaning),+)),
                is_encoded: $crate::setting::section::section!(@encoded $($attribute)*),
                explain: $crate::setting::section::section!(@explain $($attribute)*),
            },
        )+]);

        $(const _: () = assert!(
            $crate::setting::section::bears_name(
                stringify!($field),
                $crate::setting::section::section!(@key $field; $($attribute)*),
            ),
            "a field bears the name of its key, with the unit last",
        );)+

        impl $crate::setting::section::Section for $name {
            const TABLE: &'static $crate::setting::table::Table = &$table;

            fn read_over<S: $crate::setting::section::Source>(&mut self, source: &mut S) {
                let mut keys = $table.keys.iter();
                $(
                    if let Some(key) = keys.next() {
                        let base: &$type = $crate::setting::section::section!(@base self $field; $($attribute)*);
                        self.$field = $crate::setting::section::Field::read_from(base, key, source);
                    }
                )+
            }

            fn inherit(&mut self, from: &Self, is_stated: impl Fn(&'static str) -> bool) {
                $(
                    if !is_stated($crate::setting::section::section!(@key $field; $($attribute)*)) {
                        self.$field.clone_from(&from.$field);
                    }
                )+
            }

            fn visit(&self, visit: &mut dyn $crate::setting::section::Visit) {
                let mut keys = $table.keys.iter();
                $(
                    if let Some(key) = keys.next()
                        && !$crate::setting::section::section!(@moot self; $($attribute)*)
                    {
                        let default: $type = $crate::setting::section::section!(@usual self; $($attribute)*);
                        $crate::setting::section::Field::visit(&self.$field, key, &default, visit);
                    }
                )+
            }

            fn visit_against(&self, base: &Self, visit: &mut dyn $crate::setting::section::Visit) {
                let mut keys = $table.keys.iter();
                $(
                    if let Some(key) = keys.next()
                        && !$crate::setting::section::section!(@moot self; $($attribute)*)
                    {
                        $crate::setting::section::Field::visit(&self.$field, key, &base.$field, visit);
                    }
                )+
            }
        }
    };

    (@key $field:ident; key = $key:literal; $($rest:tt)*) => { $key };
    (@key $field:ident; $($rest:tt)*) => { stringify!($field) };

    (@form $(key = $key:literal;)? form = $form:expr; $($rest:tt)*) => { $form };

    (@default $(key = $key:literal;)? form = $form:expr; default = $default:expr; $($rest:tt)*) => { $default };

    (@shown $type:ty; $(key = $key:literal;)? form = $form:expr; default = $default:expr; shown = $shown:expr; $($rest:tt)*) => {
        $crate::setting::table::DefaultText::Text($shown)
    };
    (@shown $type:ty; $(key = $key:literal;)? form = $form:expr; default = $default:expr; ours = $ours:literal; $($rest:tt)*) => {
        $crate::setting::section::section!(@constant $type, $form, $default, $ours)
    };
    (@shown $type:ty; $(key = $key:literal;)? form = $form:expr; default = $default:expr; $($rest:tt)*) => {
        $crate::setting::section::section!(@constant $type, $form, $default, false)
    };
    (@constant $type:ty, $form:expr, $default:expr, $ours:expr) => {
        $crate::setting::table::DefaultText::Constant {
            shown: || {
                let value: $type = $default;
                $crate::setting::value::Shown::shown(&value, &$form)
            },
            is_ours: $ours,
        }
    };

    (@rest $then:ident ($($given:tt)*) $(key = $key:literal;)? form = $form:expr; default = $default:expr; $(shown = $shown:expr;)? $(ours = $ours:literal;)?
        $(follows = $follows:expr;)? $(moot_if = $moot:expr;)? $(encoded = $encoded:literal;)? $(explain = $explain:expr;)?
    ) => {
        $crate::setting::section::section!(
            @$then ($($given)*) [$default] [$($follows)?] [$($moot)?] [$($encoded)?] [$($explain)?]
        )
    };

    (@base $section:tt $field:ident; $($attribute:tt)*) => {
        $crate::setting::section::section!(@rest base_is ($section $field) $($attribute)*)
    };
    (@base_is ($section:tt $field:ident) [$default:expr] [] $($rest:tt)*) => { &$section.$field };
    (@base_is ($section:tt $field:ident) [$default:expr] [$follows:expr] $($rest:tt)*) => {
        &$crate::setting::section::following($section, $follows)
    };

    (@usual $section:tt; $($attribute:tt)*) => {
        $crate::setting::section::section!(@rest usual_is ($section) $($attribute)*)
    };
    (@usual_is ($section:tt) [$default:expr] [] $($rest:tt)*) => { $default };
    (@usual_is ($section:tt) [$default:expr] [$follows:expr] $($rest:tt)*) => {
        $crate::setting::section::following($section, $follows)
    };

    (@moot $section:tt; $($attribute:tt)*) => {
        $crate::setting::section::section!(@rest moot_is ($section) $($attribute)*)
    };
    (@moot_is ($section:tt) [$default:expr] [$($follows:expr)?] [] $($rest:tt)*) => { false };
    (@moot_is ($section:tt) [$default:expr] [$($follows:expr)?] [$moot:expr] $($rest:tt)*) => {
        $crate::setting::section::following($section, $moot)
    };

    (@encoded $($attribute:tt)*) => { $crate::setting::section::section!(@rest encoded_is () $($attribute)*) };
    (@encoded_is () [$default:expr] [$($follows:expr)?] [$($moot:expr)?] [] $($rest:tt)*) => { true };
    (@encoded_is () [$default:expr] [$($follows:expr)?] [$($moot:expr)?] [$encoded:literal] $($rest:tt)*) => { $encoded };

    (@explain $($attribute:tt)*) => { $crate::setting::section::section!(@rest explain_is () $($attribute)*) };
    (@explain_is () [$default:expr] [$($follows:expr)?] [$($moot:expr)?] [$($encoded:literal)?] []) => { None };
    (@explain_is () [$default:expr] [$($follows:expr)?] [$($moot:expr)?] [$($encoded:literal)?] [$explain:expr]) => { Some($explain) };
}

pub(crate) use section;
