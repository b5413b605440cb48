//! bf16: the upper half of an f32, so widening is a shift and rounding is an addition.

use super::float::on_f32;
use super::{ReduceOperation, each};

/// Both sides have the same length, a multiple of two.
pub(super) fn reduce(operation: ReduceOperation, accumulator: &mut [u8], operand: &[u8]) {
    match operation {
        ReduceOperation::Sum => with(accumulator, operand, on_f32::sum),
        ReduceOperation::Min => with(accumulator, operand, on_f32::minimum),
        ReduceOperation::Max => with(accumulator, operand, on_f32::maximum),
        ReduceOperation::Product => with(accumulator, operand, on_f32::product),
    }
}

#[inline(always)]
fn with(accumulator: &mut [u8], operand: &[u8], combine: impl Fn(f32, f32) -> f32) {
    each(accumulator, operand, |left, right| narrow(combine(widen(left), widen(right))));
}

#[inline(always)]
fn widen(bytes: [u8; 2]) -> f32 {
    f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)
}

/// To nearest, ties to even. `value` is a result of `on_f32`: if it is a NaN it has no payload, so that the addition
/// carries nothing into its exponent or sign.
#[inline(always)]
fn narrow(value: f32) -> [u8; 2] {
    let bits = value.to_bits();
    let tie = (bits >> 16) & 1;
    ((bits.wrapping_add(0x7fff + tie) >> 16) as u16).to_le_bytes()
}
