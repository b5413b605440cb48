//! Enums that are sent as numbers. One list gives the number of each variant, for both directions.

/// Defines an enum with its numbers, and `of`, which returns the variant of a number.
macro_rules! numbered {
    ($(#[$about:meta])* $name:ident: $repr:ident { $($(#[$what:meta])* $variant:ident = $number:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr($repr)]
        pub enum $name {
            $($(#[$what])* $variant = $number,)+
        }

        impl $name {
            pub(super) const fn of(number: $repr) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

pub(super) use numbered;
