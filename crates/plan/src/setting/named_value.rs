//! Enumerations with a name for each variant in files.
//!
//! The name is written once, beside the variant. Readers, the JSON schema, the document and the canonical encoding take it from there.

use crate::setting::complaint::{Complaint, quoted};
use crate::setting::nearest::nearest;

/// Value that a file states as one of several names.
pub trait NamedValue: Copy + PartialEq + Send + Sync + 'static {
    /// All values, in the order of the document.
    const VALUES: &'static [Self];
    /// Names of all values, in the same order.
    const NAMES: &'static [&'static str];
    /// Meanings of all values, in the same order. Empty if the names explain themselves.
    const MEANINGS: &'static [&'static str] = &[];

    /// Returns the name of the value in files, options and reports.
    #[must_use]
    fn name(self) -> &'static str {
        let index = Self::VALUES.iter().position(|value| *value == self);
        index.map_or_else(|| unreachable!("a value without a name"), |index| Self::NAMES[index])
    }

    /// Returns the value with this name, or `None`.
    #[must_use]
    fn from_name(name: &str) -> Option<Self> {
        let index = Self::NAMES.iter().position(|one| *one == name)?;
        Self::VALUES.get(index).copied()
    }
}

/// Reads one of the names of a type.
pub(crate) fn read_named<T: NamedValue>(text: &str) -> Result<T, Complaint> {
    let names: Vec<(&str, T)> = T::NAMES.iter().copied().zip(T::VALUES.iter().copied()).collect();
    value_named(text, &names)
}

/// Implements [`NamedValue`] for the enumerations of the collectives.
macro_rules! names_of_collectives {
    ($($type:ty),+) => {$(
        impl NamedValue for $type {
            const VALUES: &'static [Self] = &Self::ALL;
            const NAMES: &'static [&'static str] = Self::NAMES;
        }
    )+};
}

names_of_collectives!(
    rackloom_collectives::CollectiveKind,
    rackloom_collectives::ElementType,
    rackloom_collectives::ReduceOperation
);

/// Returns the value with the name `text`.
pub(crate) fn value_named<T: Copy>(text: &str, names: &[(&str, T)]) -> Result<T, Complaint> {
    names.iter().find(|(name, _)| *name == text).map(|(_, meaning)| *meaning).ok_or_else(|| {
        let all: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        let hint = match nearest(text, all.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("write one of {}", all.join(", ")),
        };
        Complaint::about(format!("{} is not a choice", quoted(text))).hint(hint)
    })
}

/// Declares an enumeration with a name for each variant: `ALL`, `NAMES`, `name`, `from_name`, `Display` and [`NamedValue`].
macro_rules! named_values {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[doc = $meaning:literal])+ $(#[default $($default:tt)?])? $variant:ident = $text:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[doc = $meaning])+ $(#[default $($default)?])? $variant,)+ }

        impl $name {
            /// All variants, in the order of the document.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// Names of all variants.
            pub const NAMES: &'static [&'static str] = &[$($text),+];

            /// Returns the meaning of the variant, as documents and help texts show it.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($meaning),+).trim_ascii_start()),+ }
            }

            /// Returns the name in files, options and reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// Returns the variant with this name, or `None`.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.name() == name)
            }
        }

        impl $crate::setting::named_value::NamedValue for $name {
            const VALUES: &'static [Self] = Self::ALL;
            const NAMES: &'static [&'static str] = Self::NAMES;
            const MEANINGS: &'static [&'static str] = &[$(Self::$variant.meaning()),+];
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                formatter.pad(self.name())
            }
        }
    };
}

pub(crate) use named_values;

/// Implements [`NamedValue`] for an enumeration of the protocol core, which has no texts.
macro_rules! named_value_of {
    ($type:ty { $($variant:ident = $text:literal $(: $meaning:literal)?,)+ }) => {
        impl NamedValue for $type {
            const VALUES: &'static [Self] = &[$(Self::$variant),+];
            const NAMES: &'static [&'static str] = &[$($text),+];
            const MEANINGS: &'static [&'static str] = &[$($($meaning,)?)+];

            // A match, so that a new variant does not compile without a name.
            fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
    };
}

named_value_of!(rackloom_protocol::RetransmissionMode {
    Selective = "selective": "Only missing packets are retransmitted.",
    GoBackN = "go-back-n":
        "The receiver accepts packets in order only; a gap retransmits every packet after it.",
});
named_value_of!(rackloom_protocol::CongestionControl { Off = "off", Dctcp = "dctcp", Grants = "grants", });
named_value_of!(rackloom_protocol::PackingMode { Opportunistic = "opportunistic", Off = "off", });
named_value_of!(rackloom_protocol::PathPolicy {
    Address = "address",
    Flow = "flow",
    Destination = "destination",
    RoundRobin = "round-robin",
    Spray = "spray",
    LeastQueue = "least-queue",
});
named_value_of!(rackloom_protocol::OrderScope {
    Pair = "pair",
    Class = "class",
    Region = "region",
    Path = "path",
    None = "none",
});
named_value_of!(rackloom_protocol::Rise { Never = "never", Dateline = "dateline", Hop = "hop", });
named_value_of!(rackloom_protocol::ArbiterKind {
    Strict = "strict",
    RoundRobin = "round-robin",
    Weighted = "weighted",
});
named_value_of!(rackloom_protocol::FlushPolicy {
    Block = "block",
    Discard = "discard",
    BestEffort = "best-effort",
});

named_value_of!(rackloom_protocol::ForwardingPriority { Transit = "transit", Own = "own", });
named_value_of!(rackloom_protocol::RequestDrain { AtOnce = "at-once", Answered = "answered", });
named_value_of!(rackloom_protocol::TransitQueues { ByOutput = "by-output", ByInput = "by-input", });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_core_are_those_of_its_reports() {
        use rackloom_protocol::{OrderScope, PathPolicy};
        assert!(PathPolicy::VALUES.iter().all(|policy| NamedValue::name(*policy) == policy.name()));
        assert!(OrderScope::VALUES.iter().all(|scope| NamedValue::name(*scope) == scope.name()));
    }

    #[test]
    fn values_and_names_have_one_order() {
        use rackloom_protocol::FlushPolicy;
        let names: Vec<_> = FlushPolicy::VALUES.iter().map(|policy| policy.name()).collect();
        assert_eq!(names, FlushPolicy::NAMES);
    }
}
