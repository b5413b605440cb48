//! The arithmetic of reductions: `accumulator = accumulator op operand`, element by element, on bytes.
//!
//! Bytes are little endian and need no alignment, so they may be any part of any buffer. Bits are fully defined, so that a
//! schedule gives the same result on every machine:
//! - *f32, f64*: one IEEE 754 operation, rounded to nearest, ties to even.
//! - *f16, bf16*: both operands become f32, one f32 operation, and the result is rounded back to 16 bits. f32 has at least
//!   twice the precision plus two bits, so this equals the correctly rounded 16-bit operation (Figueroa 1995). A chain of
//!   such reductions rounds once per step, as NumPy's `add` of two `float16` arrays does: so it is wherever partial results
//!   travel in the type of the array. Who holds all operands folds them with an [`Accumulator`], which stays in f32 and
//!   rounds once.
//! - *i32, i64, u8*: sums and products wrap.
//! - A result that is not a number is the quiet NaN with no sign and no payload, for any bits of the operands.
//! - *min, max*: a NaN on either side gives NaN (as NumPy's `minimum` and `maximum`); -0.0 is less than +0.0 (as IEEE
//!   754-2019 `minimum` and `maximum`; NumPy leaves this open).
//!
//! Min, max and the integer operations do not depend on the order of reduction at all; floating-point sums and products
//! do, and the schedule fixes it. Subnormals are kept. An element that no reduction touches (one rank, broadcast) is
//! copied bit by bit.
//!
//! Loops run over arrays of fixed size without a branch on the element, so that the compiler can use vector instructions.

mod accumulate;
mod bf16;
mod each;
mod f16;
mod float;
mod integer;
mod operation;
#[cfg(target_arch = "x86_64")]
mod wide;

use crate::array::ElementType;

pub use self::accumulate::Accumulator;
pub use self::operation::{ReduceError, ReduceOperation, UnknownReduceOperation};

/// Computes `accumulator = accumulator op operand`, element by element.
///
/// # Errors
/// If the lengths differ or are no multiple of the element size; nothing is changed then.
pub fn reduce(
    operation: ReduceOperation,
    element: ElementType,
    accumulator: &mut [u8],
    operand: &[u8],
) -> Result<(), ReduceError> {
    if accumulator.len() != operand.len() {
        return Err(ReduceError::Length { accumulator: accumulator.len(), operand: operand.len() });
    }
    if !operand.len().is_multiple_of(element.bytes()) {
        return Err(ReduceError::PartialElement { bytes: operand.len(), element });
    }
    match element {
        ElementType::F32 => float::single(operation, accumulator, operand),
        ElementType::F64 => float::double(operation, accumulator, operand),
        ElementType::F16 => f16::reduce(operation, accumulator, operand),
        ElementType::Bf16 => bf16::reduce(operation, accumulator, operand),
        ElementType::I32 => integer::signed32(operation, accumulator, operand),
        ElementType::I64 => integer::signed64(operation, accumulator, operand),
        ElementType::U8 => integer::unsigned8(operation, accumulator, operand),
    }
    Ok(())
}
