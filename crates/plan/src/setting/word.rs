//! Enumerations with a name for each variant in files.
//!
//! The name is written once, beside the variant. Readers, the JSON schema, the document and the canonical encoding take it from there.

use crate::setting::complaint::{Complaint, quoted};
use crate::setting::nearest::nearest;

/// Value that a file states as one of several words.
pub trait Word: Copy + PartialEq + Send + Sync + 'static {
    /// All values, in the order of the document.
    const VALUES: &'static [Self];
    /// Words of all values, in the same order.
    const WORDS: &'static [&'static str];
    /// Meanings of all values, in the same order. Empty if the words explain themselves.
    const MEANINGS: &'static [&'static str] = &[];

    /// Returns the word of the value.
    #[must_use]
    fn word(self) -> &'static str {
        let index = Self::VALUES.iter().position(|value| *value == self);
        index.map_or_else(|| unreachable!("a value without a word"), |index| Self::WORDS[index])
    }

    /// Returns the value with this word, or `None`.
    #[must_use]
    fn of(word: &str) -> Option<Self> {
        let index = Self::WORDS.iter().position(|one| *one == word)?;
        Self::VALUES.get(index).copied()
    }
}

/// Reads one of the words of a type.
pub(crate) fn read_word<T: Word>(text: &str) -> Result<T, Complaint> {
    let words: Vec<(&str, T)> = T::WORDS.iter().copied().zip(T::VALUES.iter().copied()).collect();
    word_of(text, &words)
}

/// Implements [`Word`] for the enumerations of the collectives.
macro_rules! named_words {
    ($($type:ty),+) => {$(
        impl Word for $type {
            const VALUES: &'static [Self] = &Self::ALL;
            const WORDS: &'static [&'static str] = Self::NAMES;
        }
    )+};
}

named_words!(
    rackloom_collectives::CollectiveKind,
    rackloom_collectives::ElementType,
    rackloom_collectives::ReduceOperation
);

/// Returns the value of one of several words.
pub(crate) fn word_of<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, Complaint> {
    words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning).ok_or_else(|| {
        let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let hint = match nearest(text, all.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("write one of {}", all.join(", ")),
        };
        Complaint::about(format!("{} is not a choice", quoted(text))).hint(hint)
    })
}

/// Declares an enumeration with a name for each variant: `ALL`, `NAMES`, `name`, `from_name`, `Display` and [`Word`].
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[doc = $meaning:literal])+ $(#[default $($default:tt)?])? $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[doc = $meaning])+ $(#[default $($default)?])? $variant,)+ }

        impl $name {
            /// All variants, in the order of the document.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// Names of all variants.
            pub const NAMES: &'static [&'static str] = &[$($word),+];

            /// Returns the meaning of the variant, as documents and help texts show it.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($meaning),+).trim_ascii_start()),+ }
            }

            /// Returns the name in files, options and reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Returns the variant with this name, or `None`.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.name() == name)
            }
        }

        impl $crate::setting::word::Word for $name {
            const VALUES: &'static [Self] = Self::ALL;
            const WORDS: &'static [&'static str] = Self::NAMES;
            const MEANINGS: &'static [&'static str] = &[$(Self::$variant.meaning()),+];
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                formatter.pad(self.name())
            }
        }
    };
}

pub(crate) use words;

/// Declares the words of an enumeration of the protocol core, which has no texts.
macro_rules! words_of {
    ($type:ty { $($variant:ident = $word:literal $(: $meaning:literal)?,)+ }) => {
        impl Word for $type {
            const VALUES: &'static [Self] = &[$(Self::$variant),+];
            const WORDS: &'static [&'static str] = &[$($word),+];
            const MEANINGS: &'static [&'static str] = &[$($($meaning,)?)+];

            // A match, so that a new variant does not compile without a word.
            fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}

words_of!(rackloom_protocol::RetransmissionMode {
    Selective = "selective": "Only missing packets are retransmitted.",
    GoBackN = "go-back-n":
        "The receiver accepts packets in order only; a gap retransmits every packet after it.",
});
words_of!(rackloom_protocol::PackingMode { Opportunistic = "opportunistic", Off = "off", });
words_of!(rackloom_protocol::PathPolicy {
    Address = "address",
    Flow = "flow",
    RoundRobin = "round-robin",
    Spray = "spray",
    LeastQueue = "least-queue",
});
words_of!(rackloom_protocol::OrderScope {
    Pair = "pair",
    Class = "class",
    Region = "region",
    Path = "path",
    None = "none",
});
words_of!(rackloom_protocol::Rise { Never = "never", Dateline = "dateline", Hop = "hop", });
words_of!(rackloom_protocol::ArbiterKind {
    Strict = "strict",
    RoundRobin = "round-robin",
    Weighted = "weighted",
});
words_of!(rackloom_protocol::FlushPolicy {
    Block = "block",
    Discard = "discard",
    BestEffort = "best-effort",
});

words_of!(rackloom_protocol::ForwardingPriority { Transit = "transit", Own = "own", });
words_of!(rackloom_protocol::RequestDrain { AtOnce = "at-once", Answered = "answered", });
words_of!(rackloom_protocol::TransitQueues { ByOutput = "by-output", ByInput = "by-input", });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_core_are_those_of_its_reports() {
        use rackloom_protocol::{OrderScope, PathPolicy};
        assert!(PathPolicy::VALUES.iter().all(|policy| policy.word() == policy.name()));
        assert!(OrderScope::VALUES.iter().all(|scope| scope.word() == scope.name()));
    }

    #[test]
    fn values_and_words_have_one_order() {
        use rackloom_protocol::FlushPolicy;
        let words: Vec<_> = FlushPolicy::VALUES.iter().map(|policy| policy.word()).collect();
        assert_eq!(words, FlushPolicy::WORDS);
    }
}
