//! Enums that travel as numbers: one list says which number means what, in both directions.

/// An enum with its numbers, and `of`: the one that a number means, if any.
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
