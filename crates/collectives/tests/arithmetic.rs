//! `reduce` against a second implementation that shares nothing with it: values are computed one at a time in wider
//! arithmetic and rounded by search.

use rackloom_collectives::ElementType::{self, Bf16, F16, F32, F64, I32, I64, U8};
use rackloom_collectives::ReduceOperation::{self, Max, Min, Product, Sum};
use rackloom_collectives::reduce::{ReduceError, reduce};

/// Shape of a float: exponent and mantissa bits.
#[derive(Clone, Copy)]
struct Format {
    exponent: u32,
    mantissa: u32,
}

const HALF: Format = Format { exponent: 5, mantissa: 10 };
const BRAIN: Format = Format { exponent: 8, mantissa: 7 };

impl Format {
    /// The value of 16 bits, by the definition of IEEE 754.
    fn value(self, bits: u16) -> f64 {
        let bias = (1 << (self.exponent - 1)) - 1;
        let exponent = i32::from(bits >> self.mantissa) & ((1 << self.exponent) - 1);
        let mantissa = f64::from(bits & ((1 << self.mantissa) - 1)) / f64::from(1 << self.mantissa);
        let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
        sign * match exponent {
            0 => mantissa * 2.0_f64.powi(1 - bias),
            all_ones if all_ones == (1 << self.exponent) - 1 => {
                if mantissa == 0.0 {
                    f64::INFINITY
                } else {
                    f64::NAN
                }
            }
            exponent => (1.0 + mantissa) * 2.0_f64.powi(exponent - bias),
        }
    }

    fn infinity(self) -> u16 {
        ((1 << self.exponent) - 1) << self.mantissa
    }

    /// The nearest 16 bits, ties to even, found by halving the non-negative values (they grow with their bits).
    fn round(self, value: f64) -> u16 {
        if value.is_nan() {
            return self.infinity() | 1 << (self.mantissa - 1);
        }
        let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
        let value = value.abs();
        let (mut below, mut above) = (0, self.infinity());
        while above - below > 1 {
            let middle = below + (above - below) / 2;
            if self.value(middle) <= value { below = middle } else { above = middle }
        }
        // Past the largest value the next step up would have been as large as the last one down.
        let step = self.value(below) - self.value(below.saturating_sub(1));
        let upper = if above == self.infinity() { self.value(below) + step } else { self.value(above) };
        let (down, up) = (value - self.value(below), upper - value);
        let nearest = if down < up || (down == up && below % 2 == 0) { below } else { above };
        sign | if value.is_infinite() { self.infinity() } else { nearest }
    }
}

/// min and max by cases, zeros ordered by sign.
fn extreme(operation: ReduceOperation, left: f64, right: f64) -> f64 {
    if left.is_nan() || right.is_nan() {
        return f64::NAN;
    }
    let left_is_less = if left == right { left.is_sign_negative() } else { left < right };
    if left_is_less == (operation == Min) { left } else { right }
}

fn combine(operation: ReduceOperation, left: f64, right: f64) -> f64 {
    match operation {
        Sum => left + right,
        Product => left * right,
        Min | Max => extreme(operation, left, right),
        other => panic!("no reference for {}", other.name()),
    }
}

fn combine_integers(operation: ReduceOperation, left: i128, right: i128) -> i128 {
    match operation {
        Sum => left + right,
        Product => left * right,
        Min if left < right => left,
        Max if left > right => left,
        Min | Max => right,
        other => panic!("no reference for {}", other.name()),
    }
}

/// One element, slowly.
fn expected(operation: ReduceOperation, element: ElementType, left: &[u8], right: &[u8]) -> Vec<u8> {
    let short = |bytes: &[u8]| u16::from_le_bytes(bytes.try_into().unwrap());
    let narrow = |format: Format| {
        let (left, right) = (format.value(short(left)), format.value(short(right)));
        format.round(combine(operation, left, right)).to_le_bytes().to_vec()
    };
    let integer = |bytes: &[u8]| match element {
        I32 => i128::from(i32::from_le_bytes(bytes.try_into().unwrap())),
        I64 => i128::from(i64::from_le_bytes(bytes.try_into().unwrap())),
        _ => i128::from(bytes[0]),
    };
    match element {
        F16 => narrow(HALF),
        Bf16 => narrow(BRAIN),
        F32 => {
            let value = |bytes: &[u8]| f64::from(f32::from_le_bytes(bytes.try_into().unwrap()));
            let result = combine(operation, value(left), value(right)) as f32;
            if result.is_nan() { vec![0, 0, 0xc0, 0x7f] } else { result.to_le_bytes().to_vec() }
        }
        F64 => {
            let value = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().unwrap());
            let result = combine(operation, value(left), value(right));
            if result.is_nan() { vec![0, 0, 0, 0, 0, 0, 0xf8, 0x7f] } else { result.to_le_bytes().to_vec() }
        }
        I32 | I64 | U8 => {
            let result = combine_integers(operation, integer(left), integer(right));
            result.to_le_bytes()[..element.bytes()].to_vec()
        }
    }
}

fn random_bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..count).map(|_| next()).collect()
}

/// Bits at the edges: zeros, subnormals, one, largest, infinities, NaNs with payload and sign; small and extreme integers.
fn special(element: ElementType) -> Vec<Vec<u8>> {
    let floats = |mantissa: u32, width: u32| {
        let one_bits = ((1_u64 << (width - 2 - mantissa)) - 1) << mantissa;
        let infinity = ((1_u64 << (width - 1 - mantissa)) - 1) << mantissa;
        let positive = [
            0,
            1,
            1 << mantissa,
            one_bits,
            one_bits + 1,
            infinity - 1,
            infinity,
            infinity + 1,
            infinity | 1 << (mantissa - 1) | 5,
        ];
        let sign = 1_u64 << (width - 1);
        positive.into_iter().flat_map(|bits| [bits, bits | sign]).collect::<Vec<_>>()
    };
    let values = match element {
        F32 => floats(23, 32),
        F64 => floats(52, 64),
        F16 => floats(10, 16),
        Bf16 => floats(7, 16),
        I32 | I64 | U8 => {
            let top = 1_u64 << (8 * element.bytes() - 1);
            vec![0, 1, 2, 3, top - 1, top, top + 1, top.wrapping_mul(2).wrapping_sub(1)]
        }
    };
    values.into_iter().map(|bits: u64| bits.to_le_bytes()[..element.bytes()].to_vec()).collect()
}

fn check(operation: ReduceOperation, element: ElementType, left: &[u8], right: &[u8]) {
    let mut accumulator = left.to_vec();
    reduce(operation, element, &mut accumulator, right).unwrap();
    let size = element.bytes();
    for (index, found) in accumulator.chunks(size).enumerate() {
        let range = index * size..(index + 1) * size;
        let (left, right) = (&left[range.clone()], &right[range]);
        let expected = expected(operation, element, left, right);
        assert_eq!(found, expected, "{operation} of {element} {left:02x?} and {right:02x?}, element {index}");
    }
}

#[test]
fn random_bits_of_any_length_give_what_slow_arithmetic_gives() {
    for element in ElementType::ALL {
        for operation in ReduceOperation::ALL {
            // Around vector widths and block sizes, and odd ones.
            for count in [0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 63, 64, 65, 255, 256, 257, 511, 513, 1000] {
                let bytes = count * element.bytes();
                check(operation, element, &random_bytes(bytes, 7), &random_bytes(bytes, 11));
            }
        }
    }
}

#[test]
fn every_pair_of_edge_values_gives_what_slow_arithmetic_gives() {
    for element in ElementType::ALL {
        let values = special(element);
        for operation in ReduceOperation::ALL {
            for left in &values {
                let right = values.concat();
                check(operation, element, &left.repeat(values.len()), &right);
            }
        }
    }
}

/// All 65536 values combined with one and some others: 16-bit arithmetic is rounded correctly, subnormals and overflow included.
#[test]
fn every_half_is_added_and_multiplied_with_correct_rounding() {
    let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for element in [F16, Bf16] {
        for seed in 1..=4 {
            let others = random_bytes(all.len(), seed);
            for operation in [Sum, Product] {
                check(operation, element, &all, &others);
            }
        }
    }
}

#[test]
fn any_alignment_works_and_neighbours_are_unchanged() {
    for element in ElementType::ALL {
        let length = 37 * element.bytes();
        let (left, right) = (random_bytes(length, 3), random_bytes(length, 5));
        let mut aligned = left.clone();
        reduce(Sum, element, &mut aligned, &right).unwrap();
        for offset in 0..=8 {
            let mut accumulator = vec![0xaa; length + 32];
            let mut operand = vec![0x55; length + 32];
            accumulator[offset..offset + length].copy_from_slice(&left);
            operand[2 * offset..2 * offset + length].copy_from_slice(&right);
            let (into, from) = (offset..offset + length, 2 * offset..2 * offset + length);
            reduce(Sum, element, &mut accumulator[into.clone()], &operand[from]).unwrap();
            assert_eq!(accumulator[into.clone()], aligned);
            assert!(
                accumulator[..into.start].iter().chain(&accumulator[into.end..]).all(|&byte| byte == 0xaa)
            );
        }
    }
}

/// Stated in the documents, so stated here without a formula.
#[test]
fn zeros_nans_and_wrapping_are_as_documented() {
    let f32s = |operation, left: f32, right: f32| {
        let mut accumulator = left.to_le_bytes();
        reduce(operation, F32, &mut accumulator, &right.to_le_bytes()).unwrap();
        u32::from_le_bytes(accumulator)
    };
    let negative_zero = 0x8000_0000;
    let nan = 0x7fc0_0000;
    for (left, right) in [(0.0, -0.0), (-0.0, 0.0)] {
        assert_eq!(f32s(Min, left, right), negative_zero);
        assert_eq!(f32s(Max, left, right), 0);
        assert_eq!(f32s(Sum, left, right), 0);
    }
    assert_eq!(f32s(Sum, -0.0, -0.0), negative_zero);
    let odd_nan = f32::from_bits(0xffc1_2345);
    for (left, right) in [(odd_nan, 1.0), (1.0, odd_nan), (odd_nan, odd_nan)] {
        for operation in ReduceOperation::ALL {
            assert_eq!(f32s(operation, left, right), nan);
        }
    }
    assert_eq!(f32s(Sum, f32::INFINITY, f32::NEG_INFINITY), nan);
    assert_eq!(f32s(Product, f32::INFINITY, 0.0), nan);
    let mut wrapped = i32::MAX.to_le_bytes();
    reduce(Sum, I32, &mut wrapped, &1_i32.to_le_bytes()).unwrap();
    assert_eq!(i32::from_le_bytes(wrapped), i32::MIN);
    let mut byte = [200];
    reduce(Product, U8, &mut byte, &[2]).unwrap();
    assert_eq!(byte, [144]);
}

#[test]
fn lengths_that_do_not_fit_change_nothing() {
    let mut accumulator = [1, 2, 3, 4, 5, 6];
    let different = ReduceError::Length { accumulator: 6, operand: 4 };
    assert_eq!(reduce(Sum, U8, &mut accumulator, &[1; 4]), Err(different));
    let cut = ReduceError::PartialElement { bytes: 6, element: F32 };
    assert_eq!(reduce(Sum, F32, &mut accumulator, &[1; 6]), Err(cut));
    assert_eq!(accumulator, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn names_parse_to_their_operations() {
    for operation in ReduceOperation::ALL {
        assert_eq!(operation.name().parse(), Ok(operation));
    }
    assert!("avg".parse::<ReduceOperation>().unwrap_err().to_string().contains("sum, min, max, prod"));
}
