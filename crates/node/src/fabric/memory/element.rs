//! Numbers that regions may contain: every bit pattern is a value, and there is no padding.
//!
//! The fabric transfers bytes and has no types. In a region, numbers have the byte order of this machine.

use rackloom_collectives::ElementType;

mod sealed {
    pub trait Sealed {}
}

/// Plain number, or a short array of numbers. Sealed: the fabric relies on every bit pattern being a value.
///
/// Elements are `Send` and `Sync`.
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

macro_rules! arrays {
    ($($length:literal),+) => { $(
        impl<T: Element> sealed::Sealed for [T; $length] {}
        impl<T: Element> Element for [T; $length] {}
    )+ };
}

arrays!(2, 3, 4, 5, 6, 7, 8, 16);

pub(in crate::fabric) fn bytes_of<T: Element>(values: &[T]) -> &[u8] {
    // SAFETY: needed because regions hold bytes. Every element is a plain number, or an array of them, without padding, so all its bytes are
    // initialised; the slice covers exactly the same memory for as long.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

pub(in crate::fabric) fn bytes_of_mut<T: Element>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: needed because regions hold bytes. Sound for the reason above, and because every bit pattern is a value, so any bytes may be written.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// Gives the elements in two byte strings of equal length to a function, which changes the left ones.
pub(in crate::fabric) fn with_values<T: Element>(
    left: &mut [u8],
    right: &[u8],
    function: impl Fn(&mut [T], &[T]),
) {
    // SAFETY: needed because the function takes elements. Every bit pattern is an element, and the middle parts are aligned for elements.
    let (middle, right_middle) = unsafe { (left.align_to_mut::<T>().1, right.align_to::<T>().1) };
    if size_of_val(middle) == right.len() && size_of_val(right_middle) == right.len() {
        return function(middle, right_middle);
    }
    // Bytes at odd addresses are copied.
    let mut values = vec![T::default(); right.len() / size_of::<T>()];
    let mut operands = values.clone();
    bytes_of_mut(&mut values).copy_from_slice(left);
    bytes_of_mut(&mut operands).copy_from_slice(right);
    function(&mut values, &operands);
    left.copy_from_slice(bytes_of(&values));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_at_any_address_reach_the_function() {
        let sum = |left: &mut [[u32; 3]], right: &[[u32; 3]]| {
            for (left, right) in left.iter_mut().zip(right) {
                *left = [left[0] + right[0], left[1] + right[1], left[2] + right[2]];
            }
        };
        let left: Vec<_> = (0..6_u32).flat_map(u32::to_ne_bytes).collect();
        let right: Vec<_> = (0..6_u32).map(|value| value * 100).flat_map(u32::to_ne_bytes).collect();
        let expected: Vec<_> = (0..6_u32).map(|value| value * 101).flat_map(u32::to_ne_bytes).collect();
        for (before_left, before_right) in [(0, 0), (1, 0), (0, 3), (2, 1)] {
            let mut padded_left = [vec![7; before_left], left.clone()].concat();
            let padded_right = [vec![7; before_right], right.clone()].concat();
            with_values(&mut padded_left[before_left..], &padded_right[before_right..], sum);
            assert_eq!(padded_left[before_left..], expected, "{before_left} {before_right}");
            assert!(padded_left[..before_left].iter().all(|byte| *byte == 7));
        }
    }
}
