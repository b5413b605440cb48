//! 16-bit floats eight at a time, where the processor has AVX2 and F16C.
//!
//! The whole loop is compiled for these instructions: a conversion is one of them, and nothing is called or stored between the
//! bytes that come in and those that go out. Loops that must run anywhere have a call and a store there. The bits are the
//! equal: a test goes through all 65536 values of both formats.
//!
//! Other processors are not handled here. Every function returns whether it has done the work, and otherwise the caller does it.
#![allow(unsafe_code, reason = "instructions that not every processor has can be called in no other way")]

use core::arch::x86_64::{
    __m128i, __m256, _CMP_LT_OQ, _CMP_UNORD_Q, _MM_FROUND_TO_NEAREST_INT, _mm_cvtsi128_si64,
    _mm_extract_epi64, _mm_set_epi64x, _mm256_add_epi32, _mm256_add_ps, _mm256_and_ps, _mm256_and_si256,
    _mm256_blendv_ps, _mm256_castps_si256, _mm256_castsi256_ps, _mm256_castsi256_si128, _mm256_cmp_ps,
    _mm256_cvtepu16_epi32, _mm256_cvtph_ps, _mm256_cvtps_ph, _mm256_extract_epi64, _mm256_mul_ps,
    _mm256_or_ps, _mm256_packus_epi32, _mm256_permute4x64_epi64, _mm256_set_epi64x, _mm256_set1_epi32,
    _mm256_slli_epi32, _mm256_srli_epi32,
};

use super::operation::ReduceOperation;

/// Eight values of 16 bits.
type Narrow = [u8; 16];
/// Eight values of f32.
type Wide = [u8; 32];

const QUIET_NAN: i32 = 0x7fc0_0000;

/// Returns true if this processor has the instructions of these loops.
pub(super) fn is_supported() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("f16c")
}

/// Computes `accumulator = accumulator op operand`; `HALF` selects f16, else bf16. Both sides have the same length, a
/// multiple of two. Returns whether it was done.
pub(super) fn reduce<const HALF: bool>(
    operation: ReduceOperation,
    accumulator: &mut [u8],
    operand: &[u8],
) -> bool {
    if is_supported() {
        // SAFETY: needed because the compiler does not know the processor. Sound because `is_supported` has just
        // checked the processor for both features that the function is compiled for; it takes plain slices.
        unsafe { reduce_all::<HALF>(operation, accumulator, operand) };
        return true;
    }
    false
}

/// Converts 16 bits to f32; `to` has twice as many bytes. Returns whether it was done.
pub(super) fn widen<const HALF: bool>(from: &[u8], to: &mut [u8]) -> bool {
    if is_supported() {
        // SAFETY: as in `reduce`.
        unsafe { widen_all::<HALF>(from, to) };
        return true;
    }
    false
}

/// Converts f32 to 16 bits, rounded; `to` has half as many bytes. Returns whether it was done.
pub(super) fn narrow<const HALF: bool>(from: &[u8], to: &mut [u8]) -> bool {
    if is_supported() {
        // SAFETY: as in `reduce`.
        unsafe { narrow_all::<HALF>(from, to) };
        return true;
    }
    false
}

#[target_feature(enable = "avx2,f16c")]
fn reduce_all<const HALF: bool>(operation: ReduceOperation, accumulator: &mut [u8], operand: &[u8]) {
    match operation {
        ReduceOperation::Sum => pairs::<HALF>(accumulator, operand, |left, right| {
            let sum = _mm256_add_ps(left, right);
            or_nan(sum, sum, sum)
        }),
        ReduceOperation::Product => pairs::<HALF>(accumulator, operand, |left, right| {
            let product = _mm256_mul_ps(left, right);
            or_nan(product, product, product)
        }),
        // Equal values have equal bits, except zeros: there one sign bit is enough for -0.0, or both are needed.
        ReduceOperation::Min => pairs::<HALF>(accumulator, operand, |left, right| {
            let (less, greater) = (is_less(left, right), is_less(right, left));
            let zeros_too = _mm256_blendv_ps(_mm256_or_ps(left, right), right, greater);
            or_nan(left, right, _mm256_blendv_ps(zeros_too, left, less))
        }),
        ReduceOperation::Max => pairs::<HALF>(accumulator, operand, |left, right| {
            let (less, greater) = (is_less(left, right), is_less(right, left));
            let zeros_too = _mm256_blendv_ps(_mm256_and_ps(left, right), right, less);
            or_nan(left, right, _mm256_blendv_ps(zeros_too, left, greater))
        }),
    }
}

#[target_feature(enable = "avx2,f16c")]
fn is_less(left: __m256, right: __m256) -> __m256 {
    _mm256_cmp_ps::<_CMP_LT_OQ>(left, right)
}

/// Returns the value, or the one NaN if either side is a NaN.
#[target_feature(enable = "avx2,f16c")]
fn or_nan(left: __m256, right: __m256, value: __m256) -> __m256 {
    let quiet = _mm256_castsi256_ps(_mm256_set1_epi32(QUIET_NAN));
    _mm256_blendv_ps(value, quiet, _mm256_cmp_ps::<_CMP_UNORD_Q>(left, right))
}

#[target_feature(enable = "avx2,f16c")]
fn pairs<const HALF: bool>(
    accumulator: &mut [u8],
    operand: &[u8],
    combine: impl Fn(__m256, __m256) -> __m256,
) {
    let (left, left_rest) = accumulator.as_chunks_mut::<16>();
    let (right, right_rest) = operand.as_chunks::<16>();
    for (left, right) in left.iter_mut().zip(right) {
        *left = to_narrow::<HALF>(combine(to_wide::<HALF>(left), to_wide::<HALF>(right)));
    }
    let (mut left, right) = (padded::<16>(left_rest), padded::<16>(right_rest));
    left = to_narrow::<HALF>(combine(to_wide::<HALF>(&left), to_wide::<HALF>(&right)));
    left_rest.copy_from_slice(&left[..left_rest.len()]);
}

#[target_feature(enable = "avx2,f16c")]
fn widen_all<const HALF: bool>(from: &[u8], to: &mut [u8]) {
    let ((from, from_rest), (to, to_rest)) = (from.as_chunks(), to.as_chunks_mut());
    for (from, to) in from.iter().zip(to) {
        *to = store_wide(to_wide::<HALF>(from));
    }
    let last = store_wide(to_wide::<HALF>(&padded(from_rest)));
    to_rest.copy_from_slice(&last[..to_rest.len()]);
}

#[target_feature(enable = "avx2,f16c")]
fn narrow_all<const HALF: bool>(from: &[u8], to: &mut [u8]) {
    let ((from, from_rest), (to, to_rest)) = (from.as_chunks(), to.as_chunks_mut());
    let narrow = |from: &Wide| {
        let value = load_wide(from);
        to_narrow::<HALF>(or_nan(value, value, value))
    };
    for (from, to) in from.iter().zip(to) {
        *to = narrow(from);
    }
    let last = narrow(&padded(from_rest));
    to_rest.copy_from_slice(&last[..to_rest.len()]);
}

/// Returns the rest of a slice, followed by zeros.
fn padded<const BYTES: usize>(rest: &[u8]) -> [u8; BYTES] {
    let mut whole = [0; BYTES];
    whole[..rest.len()].copy_from_slice(rest);
    whole
}

#[target_feature(enable = "avx2,f16c")]
fn to_wide<const HALF: bool>(bytes: &Narrow) -> __m256 {
    let values = load(bytes);
    if HALF {
        _mm256_cvtph_ps(values)
    } else {
        _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(values)))
    }
}

/// Rounds to nearest, ties to even. A NaN has no payload, so that nothing is carried out of its mantissa.
#[target_feature(enable = "avx2,f16c")]
fn to_narrow<const HALF: bool>(value: __m256) -> Narrow {
    if HALF {
        return store(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(value));
    }
    let bits = _mm256_castps_si256(value);
    let tie = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
    let rounded = _mm256_add_epi32(bits, _mm256_add_epi32(tie, _mm256_set1_epi32(0x7fff)));
    let upper = _mm256_srli_epi32::<16>(rounded);
    // Both halves of the register are packed by themselves: elements 0 to 3 are in its first quarter, 4 to 7 in its third.
    let packed = _mm256_permute4x64_epi64::<0b10_00>(_mm256_packus_epi32(upper, upper));
    store(_mm256_castsi256_si128(packed))
}

// Bytes come and go as integers, which needs no pointer; the compiler makes one access of each.

#[target_feature(enable = "avx2,f16c")]
fn load(bytes: &Narrow) -> __m128i {
    let [low, high] = quarters(bytes);
    _mm_set_epi64x(high, low)
}

#[target_feature(enable = "avx2,f16c")]
fn store(values: __m128i) -> Narrow {
    joined([_mm_cvtsi128_si64(values), _mm_extract_epi64::<1>(values)])
}

#[target_feature(enable = "avx2,f16c")]
fn load_wide(bytes: &Wide) -> __m256 {
    let [first, second, third, fourth] = quarters(bytes);
    _mm256_castsi256_ps(_mm256_set_epi64x(fourth, third, second, first))
}

#[target_feature(enable = "avx2,f16c")]
fn store_wide(value: __m256) -> Wide {
    let bits = _mm256_castps_si256(value);
    joined([
        _mm256_extract_epi64::<0>(bits),
        _mm256_extract_epi64::<1>(bits),
        _mm256_extract_epi64::<2>(bits),
        _mm256_extract_epi64::<3>(bits),
    ])
}

#[inline(always)]
fn quarters<const BYTES: usize, const WORDS: usize>(bytes: &[u8; BYTES]) -> [i64; WORDS] {
    let words = bytes.as_chunks().0;
    core::array::from_fn(|word| i64::from_le_bytes(words[word]))
}

#[inline(always)]
fn joined<const BYTES: usize, const WORDS: usize>(words: [i64; WORDS]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (to, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *to = word.to_le_bytes();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::{bf16, f16};
    use super::*;

    type Portable = fn(ReduceOperation, &mut [u8], &[u8]);

    /// Returns true if there are loops to compare; prints a note if not.
    fn is_compared() -> bool {
        if !is_supported() {
            let line = b"SKIPPED (1): this processor has no AVX2 or no F16C, so only the portable loops exist here\n";
            std::io::Write::write_all(&mut std::io::stderr(), line).unwrap();
        }
        is_supported()
    }

    fn every_value() -> Vec<u8> {
        (0..=u16::MAX).flat_map(u16::to_le_bytes).collect()
    }

    /// Returns every value with `distance` added, modulo 65536, and shortened so that the loop has a rest.
    fn partners(distance: u16) -> Vec<u8> {
        (0..=u16::MAX).flat_map(|bits| bits.wrapping_add(distance).to_le_bytes()).collect()
    }

    fn first_difference(ours: &[u8], theirs: &[u8], bytes: usize) -> Option<usize> {
        assert_eq!(ours.len(), theirs.len());
        ours.chunks(bytes).zip(theirs.chunks(bytes)).position(|(ours, theirs)| ours != theirs)
    }

    fn compare<const HALF: bool>(portable: Portable) {
        let left = every_value();
        // Zeros are paired with zeros of the other sign, NaNs with each other, and 80 pseudo-random distances cover other pairs.
        let random = (1..=80_u32).map(|step| (step.wrapping_mul(0x9e37_79b9) >> 16) as u16);
        for distance in [0, 1, 0x8000, 0x7fff].into_iter().chain(random) {
            let right = partners(distance);
            for operation in ReduceOperation::ALL {
                for rest in [0, 2, 14] {
                    let end = left.len() - rest;
                    let (mut wide, mut plain) = (left[..end].to_vec(), left[..end].to_vec());
                    assert!(reduce::<HALF>(operation, &mut wide, &right[..end]));
                    portable(operation, &mut plain, &right[..end]);
                    let wrong = first_difference(&wide, &plain, 2);
                    assert_eq!(wrong, None, "{operation} of a value and that plus {distance:#x}");
                }
            }
        }
    }

    #[test]
    fn every_value_of_both_formats_is_reduced_as_on_any_processor() {
        if is_compared() {
            compare::<true>(f16::reduce_anywhere);
            compare::<false>(bf16::reduce_anywhere);
        }
    }

    #[test]
    fn every_value_of_both_formats_is_widened_as_on_any_processor() {
        if !is_compared() {
            return;
        }
        for end in [65_536 * 2, 65_536 * 2 - 6] {
            let from = &every_value()[..end];
            let (mut wide, mut plain) = (vec![0; 2 * end], vec![0; 2 * end]);
            assert!(widen::<true>(from, &mut wide));
            let software = (0..=u16::MAX).map(|bits| half::f16::from_bits(bits).to_f32_const());
            plain
                .as_chunks_mut()
                .0
                .iter_mut()
                .zip(software)
                .for_each(|(to, value)| *to = value.to_le_bytes());
            assert_eq!(first_difference(&wide, &plain, 4), None, "f16");
            assert!(widen::<false>(from, &mut wide));
            bf16::widen_anywhere(from, &mut plain);
            assert_eq!(first_difference(&wide, &plain, 4), None, "bf16");
        }
    }

    /// All upper halves of an f32, each with lower halves on both sides of every rounding boundary.
    #[test]
    fn rounding_is_that_of_any_processor() {
        if !is_compared() {
            return;
        }
        for low in [0, 1, 0x0fff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff] {
            let values = (0..=u16::MAX).map(|high| u32::from(high) << 16 | low);
            let from: Vec<_> = values.flat_map(u32::to_le_bytes).collect();
            for end in [from.len(), from.len() - 12] {
                let (from, mut wide, mut plain) = (&from[..end], vec![0; end / 2], vec![0; end / 2]);
                assert!(narrow::<true>(from, &mut wide));
                f16::narrow_anywhere(from, &mut plain);
                assert_eq!(first_difference(&wide, &plain, 2), None, "f16, lower half {low:#x}");
                assert!(narrow::<false>(from, &mut wide));
                bf16::narrow_anywhere(from, &mut plain);
                assert_eq!(first_difference(&wide, &plain, 2), None, "bf16, lower half {low:#x}");
            }
        }
    }
}
