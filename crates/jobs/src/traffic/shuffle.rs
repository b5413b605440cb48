//! Random order of ranks of which any part is computed alone: position to rank and back, in constant time and without memory.
//!
//! A Feistel network permutes the smallest even power of two that holds all ranks. A result outside of the ranks is permuted again until it is one
//! (Black and Rogaway, Ciphers with Arbitrary Finite Domains, 2002). Less than four in the mean are needed. The order is not cryptographic.

use crate::ranks::pattern::mix;

const ROUNDS: u64 = 6;

/// Random order of `count` ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shuffle {
    count: u32,
    half_bits: u32,
    key: u64,
}

impl Shuffle {
    pub(super) const fn new(count: u16, key: u64) -> Self {
        let bits = u32::BITS - (count as u32).saturating_sub(1).leading_zeros();
        let half_bits = if bits < 2 { 1 } else { bits.div_ceil(2) };
        Self { count: count as u32, half_bits, key }
    }

    /// Returns the rank at a position.
    pub(super) fn rank_at(&self, position: u16) -> u16 {
        self.walk(position, |value| {
            (0..ROUNDS).fold(value, |(left, right), round| (right, left ^ self.round(round, right)))
        })
    }

    /// Returns the position of a rank.
    pub(super) fn position_of(&self, rank: u16) -> u16 {
        self.walk(rank, |value| {
            (0..ROUNDS).rev().fold(value, |(left, right), round| (right ^ self.round(round, left), left))
        })
    }

    fn walk(&self, from: u16, permuted: impl Fn((u32, u32)) -> (u32, u32)) -> u16 {
        let mut value = u32::from(from);
        loop {
            let (left, right) = permuted((value >> self.half_bits, value & self.mask()));
            value = left << self.half_bits | right;
            if value < self.count {
                return value as u16;
            }
        }
    }

    fn round(&self, round: u64, half: u32) -> u32 {
        mix(self.key ^ (round << 32 | u64::from(half))) as u32 & self.mask()
    }

    const fn mask(&self) -> u32 {
        (1 << self.half_bits) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_one_position() {
        for count in (1..=70).chain([255, 256, 257, 1024, u16::MAX]) {
            let shuffle = Shuffle::new(count, 7);
            let mut seen = vec![false; usize::from(count)];
            for position in 0..count {
                let rank = shuffle.rank_at(position);
                assert!(!std::mem::replace(&mut seen[usize::from(rank)], true), "{rank} of {count} twice");
                assert_eq!(shuffle.position_of(rank), position);
            }
        }
    }

    /// Each rank is at each position equally often. The bound on the sum of the squared deviations is that of 15 degrees of freedom at one in a million.
    #[test]
    fn orders_of_different_keys_are_spread_evenly() {
        const KEYS: u64 = 16_000;
        for position in 0..16 {
            let mut times = [0_i64; 16];
            (0..KEYS).for_each(|key| times[usize::from(Shuffle::new(16, mix(key)).rank_at(position))] += 1);
            let expected = (KEYS / 16) as i64;
            let squares: i64 = times.iter().map(|times| (times - expected).pow(2)).sum();
            assert!(squares as f64 / (expected as f64) < 56.5, "{times:?}");
        }
    }
}
