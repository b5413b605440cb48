//! Enumerations with a name for each variant in files.
//!
//! The name is written once, beside the variant. Readers, the JSON schema and the document take it from there.

/// Declares an enumeration with a name for each variant: `ALL`, `NAMES`, `name`, `from_name` and `Display`.
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_meta])* $variant,)+ }

        impl $name {
            /// All variants, in the order of the document.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// Names of all variants.
            pub const NAMES: &'static [&'static str] = &[$($word),+];

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

        impl core::fmt::Display for $name {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                formatter.pad(self.name())
            }
        }
    };
}

pub(crate) use words;
