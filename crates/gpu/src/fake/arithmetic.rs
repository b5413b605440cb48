//! Arithmetic of the kernels in Rust: atomics and reductions on little-endian bytes.
//!
//! It is written plainly and by other means than the kernels, so that a comparison of the two is meaningful.

use super::store::Store;
use crate::device::{AtomicKind, Element, Reduction};
use crate::error::GpuError;

/// Returns the new value of a word after an atomic.
pub(super) fn atomic(kind: u32, width: u32, old: u64, operand: u64, compare: u64) -> u64 {
    let cut = |value: u64| if width == 8 { value } else { value & 0xffff_ffff };
    let signed = |value: u64| if width == 8 { value as i64 } else { i64::from(value as u32 as i32) };
    match kind {
        kind if kind == AtomicKind::Add as u32 => cut(old.wrapping_add(operand)),
        kind if kind == AtomicKind::CompareSwap as u32 && old != cut(compare) => old,
        kind if kind == AtomicKind::And as u32 => old & cut(operand),
        kind if kind == AtomicKind::Or as u32 => old | cut(operand),
        kind if kind == AtomicKind::Xor as u32 => old ^ cut(operand),
        kind if kind == AtomicKind::Min as u32 => old.min(cut(operand)),
        kind if kind == AtomicKind::Max as u32 => old.max(cut(operand)),
        kind if kind == AtomicKind::MinSigned as u32 => cut(signed(old).min(signed(operand)) as u64),
        kind if kind == AtomicKind::MaxSigned as u32 => cut(signed(old).max(signed(operand)) as u64),
        _ => cut(operand),
    }
}

pub(super) fn reduce(
    store: &mut Store,
    (reduction, element): (Reduction, Element),
    target: u64,
    source: u64,
    count: u64,
) -> Result<(), GpuError> {
    let bytes = (count * element.bytes()) as usize;
    let (mut ours, mut theirs) = (vec![0; bytes], vec![0; bytes]);
    store.read(target, &mut ours)?;
    store.read(source, &mut theirs)?;
    let size = element.bytes() as usize;
    for (ours, theirs) in ours.chunks_exact_mut(size).zip(theirs.chunks_exact(size)) {
        combine(reduction, element, ours, theirs);
    }
    store.write(target, &ours)
}

/// Computes `target = left * right`. Products are added in the order of the inner index, each with one rounding.
pub(super) fn multiply(
    store: &mut Store,
    [left, right]: [u64; 2],
    target: u64,
    [rows, inner, columns]: [u32; 3],
) -> Result<(), GpuError> {
    let (rows, inner, columns) = (rows as usize, inner as usize, columns as usize);
    let values = |at: u64, count: usize| -> Result<Vec<f32>, GpuError> {
        let mut bytes = vec![0; count * 4];
        store.read(at, &mut bytes)?;
        let words = bytes.chunks_exact(4).map(|bytes| f32::from_bits(word(bytes) as u32));
        Ok(words.collect())
    };
    let (left, right) = (values(left, rows * inner)?, values(right, inner * columns)?);
    let mut result = Vec::with_capacity(rows * columns * 4);
    for row in 0..rows {
        for column in 0..columns {
            let products = (0..inner).map(|at| (left[row * inner + at], right[at * columns + column]));
            let sum = products.fold(0.0_f32, |sum, (left, right)| left.mul_add(right, sum));
            result.extend(sum.to_le_bytes());
        }
    }
    store.write(target, &result)
}

fn combine(reduction: Reduction, element: Element, ours: &mut [u8], theirs: &[u8]) {
    match element {
        Element::F32 => {
            let value = float(
                reduction,
                f64::from(f32::from_bits(word(ours) as u32)),
                f64::from(f32::from_bits(word(theirs) as u32)),
            );
            let value = if value.is_nan() { 0x7fc0_0000 } else { (value as f32).to_bits() };
            ours.copy_from_slice(&value.to_le_bytes());
        }
        Element::F64 => {
            let value = float(reduction, f64::from_bits(word(ours)), f64::from_bits(word(theirs)));
            let value = if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() };
            ours.copy_from_slice(&value.to_le_bytes());
        }
        // Sum and product of two such numbers are exact in 32 bits. They are rounded there once, and then once more.
        Element::F16 => small(reduction, ours, theirs, widen_f16, narrow_f16),
        Element::Bf16 => {
            small(reduction, ours, theirs, |bits| f32::from_bits(u32::from(bits) << 16), narrow_bf16)
        }
        Element::I32 => {
            let value = integer(reduction, i64::from(word(ours) as i32), i64::from(word(theirs) as i32));
            ours.copy_from_slice(&(value as i32).to_le_bytes());
        }
        Element::I64 => {
            let value = integer(reduction, word(ours) as i64, word(theirs) as i64);
            ours.copy_from_slice(&value.to_le_bytes());
        }
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Returns a double that rounds to the float's own result: a double holds the sum and the product of two floats precisely enough.
fn float(reduction: Reduction, a: f64, b: f64) -> f64 {
    match reduction {
        Reduction::Sum => a + b,
        Reduction::Product => a * b,
        Reduction::Min | Reduction::Max if a.is_nan() || b.is_nan() => f64::NAN,
        // The total order puts -0 before +0.
        Reduction::Min => {
            if a.total_cmp(&b).is_lt() {
                a
            } else {
                b
            }
        }
        Reduction::Max => {
            if a.total_cmp(&b).is_gt() {
                a
            } else {
                b
            }
        }
    }
}

fn integer(reduction: Reduction, a: i64, b: i64) -> i64 {
    match reduction {
        Reduction::Sum => a.wrapping_add(b),
        Reduction::Product => a.wrapping_mul(b),
        Reduction::Min => a.min(b),
        Reduction::Max => a.max(b),
    }
}

fn small(
    reduction: Reduction,
    ours: &mut [u8],
    theirs: &[u8],
    widen: impl Fn(u16) -> f32,
    narrow: impl Fn(f32) -> u16,
) {
    let (a, b) = (widen(word(ours) as u16), widen(word(theirs) as u16));
    let value = float(reduction, f64::from(a), f64::from(b)) as f32;
    ours.copy_from_slice(&narrow(value).to_le_bytes());
}

fn widen_f16(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, mantissa) = (i32::from(bits >> 10 & 31), f32::from(bits & 0x3ff));
    sign * match exponent {
        0 => mantissa * 2_f32.powi(-24),
        31 if mantissa == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + mantissa) * 2_f32.powi(exponent - 25),
    }
}

/// Returns the nearest 16-bit float, ties to even, found by its distance.
fn narrow_f16(value: f32) -> u16 {
    if value.is_nan() {
        return 0x7e00;
    }
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let size = f64::from(value.abs());
    if size >= 65520.0 {
        return sign | 0x7c00;
    }
    // The lowest bit of its mantissa: powers of two down to the smallest subnormal.
    let exponent = if size < 2_f64.powi(-14) { -14 } else { size.log2().floor() as i32 };
    let steps = size / 2_f64.powi(exponent - 10);
    // A normal number's mantissa begins at 1024, which counts as the first step of its exponent.
    sign | ((exponent + 14) as u16 * 1024 + steps.round_ties_even() as u16)
}

fn narrow_bf16(value: f32) -> u16 {
    if value.is_nan() {
        return 0x7fc0;
    }
    let (upper, lower) = ((value.to_bits() >> 16) as u16, value.to_bits() & 0xffff);
    let rounds_up = lower > 0x8000 || (lower == 0x8000 && upper & 1 == 1);
    upper + u16::from(rounds_up)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_small_float_survives_a_round_trip() {
        for bits in 0..=u16::MAX {
            let value = widen_f16(bits);
            if !value.is_nan() {
                assert_eq!(narrow_f16(value), bits, "{value}");
            }
        }
        assert_eq!(narrow_f16(65519.0), 0x7bff);
        assert_eq!(narrow_f16(65520.0), 0x7c00);
        assert_eq!(narrow_f16(2049.0), narrow_f16(2048.0), "ties to even");
    }

    #[test]
    fn atomics_have_the_expected_results() {
        let (add, swap, exchange) =
            (AtomicKind::Add as u32, AtomicKind::CompareSwap as u32, AtomicKind::Swap as u32);
        assert_eq!(atomic(add, 4, 0xffff_ffff, 2, 0), 1);
        assert_eq!(atomic(add, 8, u64::MAX, 2, 0), 1);
        assert_eq!(atomic(swap, 8, 5, 9, 5), 9);
        assert_eq!(atomic(swap, 8, 5, 9, 6), 5);
        assert_eq!(atomic(exchange, 4, 5, 0x1_0000_0007, 0), 7);
        let bits = [AtomicKind::And, AtomicKind::Or, AtomicKind::Xor].map(|kind| kind as u32);
        assert_eq!(bits.map(|kind| atomic(kind, 4, 0b1100, 0xff_0000_000a, 0)), [0b1000, 0b1110, 0b0110]);
        let order = [AtomicKind::Min, AtomicKind::Max, AtomicKind::MinSigned, AtomicKind::MaxSigned];
        let order = order.map(|kind| kind as u32);
        assert_eq!(order.map(|kind| atomic(kind, 4, 3, 0xffff_fffe, 0)), [3, 0xffff_fffe, 0xffff_fffe, 3]);
        assert_eq!(order.map(|kind| atomic(kind, 8, 3, 2, 0)), [2, 3, 2, 3]);
        assert_eq!(order.map(|kind| atomic(kind, 8, u64::MAX, 2, 0)), [2, u64::MAX, u64::MAX, 2]);
    }
}
