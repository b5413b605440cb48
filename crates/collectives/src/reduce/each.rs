//! The loop over the elements of two arrays.

/// Combines both sides, `BYTES` at a time.
pub(super) fn each<const BYTES: usize>(
    accumulator: &mut [u8],
    operand: &[u8],
    combine: impl Fn([u8; BYTES], [u8; BYTES]) -> [u8; BYTES],
) {
    let (accumulator, operand) = (accumulator.as_chunks_mut().0, operand.as_chunks().0);
    for (left, right) in accumulator.iter_mut().zip(operand) {
        *left = combine(*left, *right);
    }
}
