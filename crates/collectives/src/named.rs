//! Enumerations with a name for each variant in files, options and reports.
//!
//! A name stands once, beside its variant.

/// Declares an enumeration with `ALL`, `NAMES`, `name`, `from_name` and `Display`.
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub enum $type:ident { $($(#[$variant_meta:meta])* $variant:ident = $name:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $type { $($(#[$variant_meta])* $variant,)+ }

        impl $type {
            /// All variants, in the order in which help texts list them.
            pub const ALL: [Self; Self::NAMES.len()] = [$(Self::$variant),+];
            /// Names of all variants, in the order of `ALL`.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Returns the name in files, options and reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// Returns the variant with this name, or `None`.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.name() == name)
            }
        }

        impl core::fmt::Display for $type {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                formatter.pad(self.name())
            }
        }
    };
}

pub(crate) use named;
