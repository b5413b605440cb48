//! f16: block by block to f32, one operation, and back.
//!
//! Blocks are on the stack and are long enough for the conversions of `half`, which use vector instructions if the
//! processor has them. Where it has the wider ones as well, the loops of `wide` do it all at once. The bits are the same.

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::float::on_f32;
use super::operation::ReduceOperation;

/// Elements per block: two blocks of f32 and one of 16 bits stay well within the first-level cache.
const BLOCK: usize = 256;
/// The one NaN, without sign and payload.
const QUIET_NAN: f32 = f32::from_bits(0x7fc0_0000);

/// Reduces both sides, which have the same length, a multiple of two.
pub(super) fn reduce(operation: ReduceOperation, accumulator: &mut [u8], operand: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    if super::wide::reduce::<true>(operation, accumulator, operand) {
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

fn with(accumulator: &mut [u8], operand: &[u8], combine: impl Fn(f32, f32) -> f32) {
    let (accumulator, operand) = (accumulator.as_chunks_mut::<2>().0, operand.as_chunks::<2>().0);
    let (mut left, mut right) = ([0.0; BLOCK], [0.0; BLOCK]);
    let mut values = [f16::ZERO; BLOCK];
    for (accumulator, operand) in accumulator.chunks_mut(BLOCK).zip(operand.chunks(BLOCK)) {
        let length = operand.len();
        let (left, right) = (&mut left[..length], &mut right[..length]);
        let values = &mut values[..length];
        widen(accumulator, values, left);
        widen(operand, values, right);
        for (left, right) in left.iter_mut().zip(right) {
            *left = combine(*left, *right);
        }
        narrow(left, values, accumulator);
    }
}

/// Converts f16 to f32; `to` has twice as many bytes.
pub(super) fn widen_all(from: &[u8], to: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if super::wide::widen::<true>(from, to) {
        return;
    }
    widen_anywhere(from, to);
}

/// Converts without instructions that not every processor has.
fn widen_anywhere(from: &[u8], to: &mut [u8]) {
    let (mut values, mut wide) = ([f16::ZERO; BLOCK], [0.0; BLOCK]);
    for (from, to) in from.as_chunks().0.chunks(BLOCK).zip(to.as_chunks_mut().0.chunks_mut(BLOCK)) {
        let wide = &mut wide[..from.len()];
        widen(from, &mut values[..from.len()], wide);
        for (to, value) in to.iter_mut().zip(wide) {
            *to = value.to_le_bytes();
        }
    }
}

/// Converts f32 to f16, rounded to nearest, ties to even; `to` has half as many bytes.
pub(super) fn narrow_all(from: &[u8], to: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if super::wide::narrow::<true>(from, to) {
        return;
    }
    narrow_anywhere(from, to);
}

/// Converts without instructions that not every processor has.
pub(super) fn narrow_anywhere(from: &[u8], to: &mut [u8]) {
    let (mut values, mut wide) = ([f16::ZERO; BLOCK], [0.0; BLOCK]);
    for (from, to) in from.as_chunks().0.chunks(BLOCK).zip(to.as_chunks_mut().0.chunks_mut(BLOCK)) {
        let (values, wide) = (&mut values[..from.len()], &mut wide[..from.len()]);
        for (wide, bytes) in wide.iter_mut().zip(from) {
            let value = f32::from_le_bytes(*bytes);
            *wide = if value.is_nan() { QUIET_NAN } else { value };
        }
        narrow(wide, values, to);
    }
}

fn narrow(wide: &[f32], values: &mut [f16], to: &mut [[u8; 2]]) {
    values.convert_from_f32_slice(wide);
    for (bytes, value) in to.iter_mut().zip(values) {
        *bytes = value.to_le_bytes();
    }
}

fn widen(bytes: &[[u8; 2]], values: &mut [f16], to: &mut [f32]) {
    for (value, bytes) in values.iter_mut().zip(bytes) {
        *value = f16::from_le_bytes(*bytes);
    }
    values.convert_to_f32_slice(to);
}
