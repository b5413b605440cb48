//! Reproducible bytes that both sides of a transfer can derive on their own. Every data check uses them.
//!
//! A pattern is an endless byte string named by a few numbers (seed, round, writer, owner, slot). The writer fills
//! memory from it, and the owner compares memory against it. No information about the content travels beside the data.
//! Any byte can be computed without those before it, so a check may start anywhere.
//!
//! The generator is not cryptographic. It only has to make misplaced, stale, torn or flipped bytes visible.

/// Mixes 64 bits strongly (the finaliser of SplitMix64, Steele et al. 2014).
pub(crate) const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Combines several numbers into one. Their order matters.
pub(crate) fn fold(seed: u64, parts: &[u64]) -> u64 {
    parts.iter().fold(mix(seed), |sum, part| mix(sum ^ mix(*part)).rotate_left(17))
}

/// Endless byte string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    name: u64,
}

impl Pattern {
    /// Returns the string that these numbers name.
    pub(crate) fn new(seed: u64, parts: &[u64]) -> Self {
        Self { name: fold(seed, parts) }
    }

    const fn word(self, number: u64) -> [u8; 8] {
        mix(self.name ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93)).to_le_bytes()
    }

    /// Returns the byte at `index`.
    pub(crate) const fn byte(self, index: u64) -> u8 {
        self.word(index / 8)[(index % 8) as usize]
    }

    /// Writes the bytes from `index` on into `out`.
    pub(crate) fn fill(self, index: u64, out: &mut [u8]) {
        let head = out.len().min(((8 - index % 8) % 8) as usize);
        let (unaligned, aligned) = out.split_at_mut(head);
        for (at, byte) in unaligned.iter_mut().enumerate() {
            *byte = self.byte(index + at as u64);
        }
        let first_word = (index + head as u64) / 8;
        for (number, chunk) in aligned.chunks_mut(8).enumerate() {
            chunk.copy_from_slice(&self.word(first_word + number as u64)[..chunk.len()]);
        }
    }

    /// Returns `length` bytes from `index` on.
    pub(crate) fn bytes(self, index: u64, length: u64) -> Vec<u8> {
        let mut bytes = vec![0; length as usize];
        self.fill(index, &mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn filling_from_anywhere_agrees_with_single_bytes(name in any::<u64>(), index in 0_u64..10_000, length in 0_u64..70) {
            let pattern = Pattern::new(name, &[1, 2]);
            let filled = pattern.bytes(index, length);
            let single: Vec<u8> = (0..length).map(|at| pattern.byte(index + at)).collect();
            prop_assert_eq!(filled, single);
        }
    }

    #[test]
    fn each_number_of_the_name_and_their_order_count() {
        let bytes = |parts: &[u64]| Pattern::new(7, parts).bytes(0, 32);
        let original = bytes(&[0, 1, 2, 3]);
        for other in [[1, 1, 2, 3], [0, 2, 2, 3], [0, 1, 3, 3], [0, 1, 2, 4], [1, 0, 2, 3], [0, 1, 3, 2]] {
            assert_ne!(original, bytes(&other));
        }
        assert_ne!(original, Pattern::new(8, &[0, 1, 2, 3]).bytes(0, 32));
    }

    #[test]
    fn a_string_does_not_repeat_itself_soon() {
        let bytes = Pattern::new(1, &[1]).bytes(0, 1 << 16);
        let mut words: Vec<_> = bytes.chunks(8).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 1 << 13);
    }
}
