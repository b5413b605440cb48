//! Words of atomics: 4 or 8 bytes, with or without a sign.

use rackloom_protocol::{AtomicKind, Width};

use super::element::Element;

mod sealed {
    pub trait Sealed {}
}

/// Word of an atomic. Sealed: the fabric has atomics of 4 and 8 bytes.
///
/// Words are `Send` and `Sync`.
pub trait Word: Element + sealed::Sealed {
    #[doc(hidden)]
    const WIDTH: Width;
    #[doc(hidden)]
    const IS_SIGNED: bool;
    #[doc(hidden)]
    fn to_bits(self) -> u64;
    #[doc(hidden)]
    fn of_bits(bits: u64) -> Self;
}

macro_rules! words {
    ($($word:ty: $unsigned:ty, $width:ident, $is_signed:literal),+) => { $(
        impl sealed::Sealed for $word {}
        impl Word for $word {
            const WIDTH: Width = Width::$width;
            const IS_SIGNED: bool = $is_signed;

            #[inline]
            fn to_bits(self) -> u64 {
                u64::from(self as $unsigned)
            }

            #[inline]
            fn of_bits(bits: u64) -> Self {
                bits as Self
            }
        }
    )+ };
}

words!(u32: u32, Four, false, i32: u32, Four, true, u64: u64, Eight, false, i64: u64, Eight, true);

/// Returns the kind of atomic that keeps the smaller one of two words of this type.
pub(in crate::fabric) const fn minimum<W: Word>() -> AtomicKind {
    if W::IS_SIGNED { AtomicKind::MinSigned } else { AtomicKind::Min }
}

/// Returns the kind of atomic that keeps the larger one of two words of this type.
pub(in crate::fabric) const fn maximum<W: Word>() -> AtomicKind {
    if W::IS_SIGNED { AtomicKind::MaxSigned } else { AtomicKind::Max }
}
