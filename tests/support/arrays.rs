//! Arrays of the user in `.npy` files, and results of plain arithmetic on them.
//!
//! The arithmetic is implemented again, independently of the product, so that a test does not compare the product with itself.

use std::path::{Path, PathBuf};

use super::scratch;

/// Returns the arrays of all ranks as numbers: of full width for integer types, else small.
pub(crate) fn values(element: &str, op: &str, ranks: usize, count: usize) -> Vec<Vec<i64>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ count as u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut value = || match (element, op) {
        ("u8", _) => next() as u8 as i64,
        ("i32", _) => i64::from(next() as i32),
        ("i64", _) => next() as i64,
        (_, "prod") => [-2, -1, 1, 2][(next() % 4) as usize],
        _ => (next() % 33) as i64 - 16,
    };
    (0..ranks).map(|_| (0..count).map(|_| value()).collect()).collect()
}

/// Returns the result of plain arithmetic, wrapping at the type's width.
pub(crate) fn reduced(element: &str, op: &str, arrays: &[Vec<i64>]) -> Vec<i64> {
    let wrap = |value: i64| match element {
        "u8" => i64::from(value as u8),
        "i32" => i64::from(value as i32),
        _ => value,
    };
    let combine = |a: i64, b: i64| match op {
        "sum" => wrap(a.wrapping_add(b)),
        "prod" => wrap(a.wrapping_mul(b)),
        "min" => a.min(b),
        _ => a.max(b),
    };
    let each = |index: usize| arrays.iter().map(|array| array[index]).reduce(combine).expect("a rank");
    (0..arrays[0].len()).map(each).collect()
}

/// Returns a small whole number as a binary16.
fn half(value: i64) -> u16 {
    let sign = if value < 0 { 0x8000 } else { 0 };
    let magnitude = value.unsigned_abs() as u16;
    if magnitude == 0 {
        return sign;
    }
    let exponent = 15 - magnitude.leading_zeros() as u16;
    sign | (exponent + 15) << 10 | ((magnitude << (10 - exponent)) & 0x3ff)
}

fn encoded(element: &str, value: i64) -> Vec<u8> {
    match element {
        "f32" => (value as f32).to_le_bytes().to_vec(),
        "f64" => (value as f64).to_le_bytes().to_vec(),
        "f16" => half(value).to_le_bytes().to_vec(),
        "bf16" => (((value as f32).to_bits() >> 16) as u16).to_le_bytes().to_vec(),
        "i32" => (value as i32).to_le_bytes().to_vec(),
        "i64" => value.to_le_bytes().to_vec(),
        _ => vec![value as u8],
    }
}

pub(crate) fn bytes_of(element: &str, values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| encoded(element, *value)).collect()
}

pub(crate) fn descr(element: &str) -> &'static str {
    match element {
        "f32" => "<f4",
        "f64" => "<f8",
        "f16" => "<f2",
        "bf16" => "|V2",
        "i32" => "<i4",
        "i64" => "<i8",
        _ => "|u1",
    }
}

pub(crate) fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{header}\n");
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data].concat()
}

pub(crate) fn header(descr: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}")
}

/// Makes a directory with an array per rank.
pub(crate) fn arrays(element: &str, values: &[Vec<i64>]) -> PathBuf {
    let directory = scratch("input");
    std::fs::create_dir(&directory).expect("the scratch folder can be written");
    for (rank, values) in values.iter().enumerate() {
        let shape = format!("({},)", values.len());
        let file = npy(&header(descr(element), &shape), &bytes_of(element, values));
        std::fs::write(directory.join(format!("rank{rank}.npy")), file).expect("it can be written");
    }
    directory
}

/// Returns shape and data of a rank's result.
pub(crate) fn result(directory: &Path, rank: usize) -> (String, Vec<u8>) {
    let bytes = std::fs::read(directory.join(format!("rank{rank}.npy"))).expect("a result");
    let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let text = String::from_utf8(bytes[10..10 + length].to_vec()).expect("a header");
    let shape =
        text.split("'shape': ").nth(1).expect("a shape").split(')').next().expect("its end").to_owned();
    (shape + ")", bytes[10 + length..].to_vec())
}
