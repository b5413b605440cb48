//! Integers: wrapping sums and products, plain minima and maxima.

use super::each::each;
use super::operation::ReduceOperation;

macro_rules! integer {
    ($name:ident, $type:ty) => {
        pub(super) fn $name(operation: ReduceOperation, accumulator: &mut [u8], operand: &[u8]) {
            let on = |combine: fn($type, $type) -> $type| {
                move |left, right| {
                    combine(<$type>::from_le_bytes(left), <$type>::from_le_bytes(right)).to_le_bytes()
                }
            };
            match operation {
                ReduceOperation::Sum => each(accumulator, operand, on(<$type>::wrapping_add)),
                ReduceOperation::Min => each(accumulator, operand, on(<$type as Ord>::min)),
                ReduceOperation::Max => each(accumulator, operand, on(<$type as Ord>::max)),
                ReduceOperation::Product => each(accumulator, operand, on(<$type>::wrapping_mul)),
            }
        }
    };
}

integer!(signed32, i32);
integer!(signed64, i64);
integer!(unsigned8, u8);
