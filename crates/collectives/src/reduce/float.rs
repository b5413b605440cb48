//! f32 and f64: one rounded operation, one NaN, ordered zeros.
//!
//! Results are handled as bits, because the bits of a computed NaN are otherwise the compiler's choice.

use super::each::each;
use super::operation::ReduceOperation;

macro_rules! float {
    ($name:ident, $values:ident, $type:ty, $bits:ty, $quiet_nan:literal) => {
        /// The operations on single values.
        pub(super) mod $values {
            const QUIET_NAN: $bits = $quiet_nan;

            #[inline(always)]
            fn canonical(value: $type) -> $type {
                let bits = if value.is_nan() { QUIET_NAN } else { value.to_bits() };
                <$type>::from_bits(bits)
            }

            #[inline(always)]
            pub(in super::super) fn sum(left: $type, right: $type) -> $type {
                canonical(left + right)
            }

            #[inline(always)]
            pub(in super::super) fn product(left: $type, right: $type) -> $type {
                canonical(left * right)
            }

            #[inline(always)]
            pub(in super::super) fn minimum(left: $type, right: $type) -> $type {
                // Equal values have equal bits, except zeros: there one sign bit is enough for -0.0.
                either(left, right, left < right, right < left, left.to_bits() | right.to_bits())
            }

            #[inline(always)]
            pub(in super::super) fn maximum(left: $type, right: $type) -> $type {
                either(left, right, left > right, right > left, left.to_bits() & right.to_bits())
            }

            /// Returns left, right, these bits if both are equal, or NaN.
            #[inline(always)]
            fn either(left: $type, right: $type, take_left: bool, take_right: bool, equal: $bits) -> $type {
                let right_or_equal = if take_right { right.to_bits() } else { equal };
                let taken = if take_left { left.to_bits() } else { right_or_equal };
                let unordered = left.is_nan() | right.is_nan();
                <$type>::from_bits(if unordered { QUIET_NAN } else { taken })
            }
        }

        pub(super) fn $name(operation: ReduceOperation, accumulator: &mut [u8], operand: &[u8]) {
            macro_rules! on {
                ($combine:path) => {
                    each(accumulator, operand, |left, right| {
                        $combine(<$type>::from_le_bytes(left), <$type>::from_le_bytes(right)).to_le_bytes()
                    })
                };
            }
            match operation {
                ReduceOperation::Sum => on!($values::sum),
                ReduceOperation::Min => on!($values::minimum),
                ReduceOperation::Max => on!($values::maximum),
                ReduceOperation::Product => on!($values::product),
            }
        }
    };
}

float!(single, on_f32, f32, u32, 0x7fc0_0000);
float!(double, on_f64, f64, u64, 0x7ff8_0000_0000_0000);
