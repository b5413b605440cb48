//! Numbers that regions may contain: every bit pattern is a value, and there is no padding.
//!
//! The fabric transfers bytes and has no types. In a region, numbers have the byte order of this machine.

use rackloom_collectives::ElementType;

mod sealed {
    pub trait Sealed {}
}

/// Plain number. Sealed: the fabric relies on every bit pattern being a value.
///
/// Numbers are `Send` and `Sync`.
pub trait Element: Copy + Default + Send + Sync + sealed::Sealed + 'static {}

/// Number that collectives can reduce. Sealed: `rackloom-collectives` defines the set and its arithmetic.
///
/// Numbers are `Send` and `Sync`.
pub trait Number: Element {
    #[doc(hidden)]
    const TYPE: ElementType;
}

macro_rules! numbers {
    ($($number:ty: $kind:ident),+) => { $(
        impl Number for $number {
            const TYPE: ElementType = ElementType::$kind;
        }
    )+ };
}

numbers!(f32: F32, f64: F64, i32: I32, i64: I64, u8: U8);

macro_rules! elements {
    ($($number:ty),+) => { $(
        impl sealed::Sealed for $number {}
        impl Element for $number {}
    )+ };
}

elements!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

pub(in crate::fabric) fn bytes_of<T: Element>(values: &[T]) -> &[u8] {
    // SAFETY: needed because regions hold bytes. Every element is a plain number without padding, so all its bytes are
    // initialised; the slice covers exactly the same memory for as long.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

pub(in crate::fabric) fn bytes_of_mut<T: Element>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: needed because regions hold bytes. Sound for the reason above, and because every bit pattern is a value, so any bytes may be written.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}
