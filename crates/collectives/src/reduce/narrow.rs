//! f16 and bf16: block by block to f32, one operation, and back.
//!
//! Blocks live on the stack and are long enough for the conversions of `half` to use vector instructions.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::ReduceOperation;
use super::float::on_f32;

/// Elements per block: two blocks of f32 and two of 16 bits stay well within the first-level cache.
const BLOCK: usize = 256;

/// A 16-bit float.
pub(super) trait Narrow: Copy + Default {
    fn from_le_bytes(bytes: [u8; 2]) -> Self;
    fn to_le_bytes(self) -> [u8; 2];
    fn widen(from: &[Self], to: &mut [f32]);
    fn narrow(from: &[f32], to: &mut [Self]);
}

macro_rules! narrow {
    ($type:ident) => {
        impl Narrow for $type {
            fn from_le_bytes(bytes: [u8; 2]) -> Self {
                Self::from_le_bytes(bytes)
            }

            fn to_le_bytes(self) -> [u8; 2] {
                self.to_le_bytes()
            }

            fn widen(from: &[Self], to: &mut [f32]) {
                from.convert_to_f32_slice(to);
            }

            fn narrow(from: &[f32], to: &mut [Self]) {
                to.convert_from_f32_slice(from);
            }
        }
    };
}

narrow!(f16);
narrow!(bf16);

/// Both sides have the same length, a multiple of two.
pub(super) fn reduce<T: Narrow>(operation: ReduceOperation, accumulator: &mut [u8], operand: &[u8]) {
    let combine = match operation {
        ReduceOperation::Sum => |left: &mut [f32], right: &[f32]| apply(left, right, on_f32::sum),
        ReduceOperation::Min => |left: &mut [f32], right: &[f32]| apply(left, right, on_f32::minimum),
        ReduceOperation::Max => |left: &mut [f32], right: &[f32]| apply(left, right, on_f32::maximum),
        ReduceOperation::Product => |left: &mut [f32], right: &[f32]| apply(left, right, on_f32::product),
    };
    let (accumulator, operand) = (accumulator.as_chunks_mut::<2>().0, operand.as_chunks::<2>().0);
    let (mut left, mut right) = ([0.0; BLOCK], [0.0; BLOCK]);
    let mut values = [T::default(); BLOCK];
    for (accumulator, operand) in accumulator.chunks_mut(BLOCK).zip(operand.chunks(BLOCK)) {
        let length = operand.len();
        widen(accumulator, &mut values[..length], &mut left[..length]);
        widen(operand, &mut values[..length], &mut right[..length]);
        combine(&mut left[..length], &right[..length]);
        T::narrow(&left[..length], &mut values[..length]);
        for (bytes, value) in accumulator.iter_mut().zip(&values[..length]) {
            *bytes = value.to_le_bytes();
        }
    }
}

fn widen<T: Narrow>(bytes: &[[u8; 2]], values: &mut [T], to: &mut [f32]) {
    for (value, bytes) in values.iter_mut().zip(bytes) {
        *value = T::from_le_bytes(*bytes);
    }
    T::widen(values, to);
}

#[inline(always)]
fn apply(left: &mut [f32], right: &[f32], combine: impl Fn(f32, f32) -> f32) {
    for (left, right) in left.iter_mut().zip(right) {
        *left = combine(*left, *right);
    }
}
