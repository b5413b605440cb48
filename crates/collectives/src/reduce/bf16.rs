//! bf16: the upper half of an f32, so widening is a shift and rounding is an addition.
//!
//! Loops that run anywhere are here, those for a processor with wide registers in `wide`.

use super::each::each;
use super::float::on_f32;
use super::operation::ReduceOperation;

const QUIET_NAN: u32 = 0x7fc0_0000;

/// Reduces both sides, which have the same length, a multiple of two.
pub(super) fn reduce(operation: ReduceOperation, accumulator: &mut [u8], operand: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    if super::wide::reduce::<false>(operation, accumulator, operand) {
        return;
    }
    reduce_anywhere(operation, accumulator, operand);
}

/// Reduces without instructions that not every processor has.
pub(super) fn reduce_anywhere(operation: ReduceOperation, accumulator: &mut [u8], operand: &[u8]) {
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

/// Converts bf16 to f32; `to` has twice as many bytes.
pub(super) fn widen_all(from: &[u8], to: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if super::wide::widen::<false>(from, to) {
        return;
    }
    widen_anywhere(from, to);
}

/// Converts without instructions that not every processor has.
pub(super) fn widen_anywhere(from: &[u8], to: &mut [u8]) {
    for (from, to) in from.as_chunks().0.iter().zip(to.as_chunks_mut().0) {
        *to = widen(*from).to_le_bytes();
    }
}

/// Converts f32 to bf16, rounded; `to` has half as many bytes.
pub(super) fn narrow_all(from: &[u8], to: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if super::wide::narrow::<false>(from, to) {
        return;
    }
    narrow_anywhere(from, to);
}

/// Converts without instructions that not every processor has.
pub(super) fn narrow_anywhere(from: &[u8], to: &mut [u8]) {
    for (from, to) in from.as_chunks().0.iter().zip(to.as_chunks_mut().0) {
        *to = narrow(f32::from_le_bytes(*from));
    }
}

#[inline(always)]
fn widen(bytes: [u8; 2]) -> f32 {
    f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)
}

/// Rounds to nearest, ties to even. A NaN has no payload afterwards, so that the addition carries nothing into its exponent or
/// sign.
#[inline(always)]
fn narrow(value: f32) -> [u8; 2] {
    let bits = if value.is_nan() { QUIET_NAN } else { value.to_bits() };
    let tie = (bits >> 16) & 1;
    ((bits.wrapping_add(0x7fff + tie) >> 16) as u16).to_le_bytes()
}
