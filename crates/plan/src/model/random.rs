//! Random numbers with random access.
//!
//! A counter-based generator: number *i* of a stream is a hash of the stream's key and *i*, so there is no state. A use of
//! one more number does not change any other number. The hash is the finaliser of SplitMix64 (Steele, Lea,
//! Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): add a multiple of the golden ratio, then two
//! rounds of xor-shift and multiply. It is suitable for decisions about frame loss, and unsuitable for secrets.

/// 2^64 divided by the golden ratio, made odd. Its multiples are spread evenly over 64 bits.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Stream of random numbers, identified by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stream {
    key: u64,
}

impl Stream {
    pub(crate) const fn new(key: u64) -> Self {
        Self { key: mix(key) }
    }

    /// Returns number `index` of the stream.
    pub(crate) const fn at(&self, index: u64) -> u64 {
        mix(self.key.wrapping_add(index.wrapping_mul(GOLDEN)))
    }
}

/// Mixes a value: each bit of the input changes about half of the bits of the output.
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(GOLDEN);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// Maps a random number onto `0..bound` without division (multiply and take the high half).
pub(crate) const fn below(random: u64, bound: u64) -> u64 {
    ((random as u128 * bound as u128) >> 64) as u64
}

/// Returns number `number` of the stream of a seed, from 0 to below 1. Used for random times and offsets.
#[must_use]
pub fn random_share(seed: u64, number: u64) -> f64 {
    // Adjacent seeds must not give the same numbers with a shift of one.
    const APART: u64 = 0x2545_F491_4F6C_DD1D;
    let state = seed.wrapping_mul(APART).wrapping_add(number.wrapping_mul(GOLDEN));
    (mix(state) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Probability as an integer, so that every machine decides alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chance {
    /// Numerator over 2^53: the finest step that every `f64` between 0 and 1 can be rounded to.
    threshold: u64,
}

impl Chance {
    /// Returns the chance of a probability. A value outside 0 to 1 is clamped, and NaN counts as 0.
    pub(crate) fn new(probability: f64) -> Self {
        Self { threshold: (probability.clamp(0.0, 1.0) * (1_u64 << 53) as f64) as u64 }
    }

    pub(crate) const fn hits(self, random: u64) -> bool {
        (random >> 11) < self.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_numbers_agree_with_the_published_generator() {
        // SplitMix64 seeded with 1234567 (reference values of the published generator, as used by several
        // independent test suites). Our `mix` of a state is its output for that state.
        let outputs: Vec<u64> =
            (0..5_u64).map(|step| mix(1_234_567_u64.wrapping_add(step.wrapping_mul(GOLDEN)))).collect();
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(outputs, published);
    }

    #[test]
    fn chances_hit_with_their_probability() {
        let stream = Stream::new(7);
        let hits = |probability: f64| {
            (0..100_000).filter(|index| Chance::new(probability).hits(stream.at(*index))).count()
        };
        assert_eq!(hits(0.0), 0);
        assert_eq!(hits(1.0), 100_000);
        // Five standard deviations of a binomial: sqrt(100000 * 0.05 * 0.95) = 69.
        assert!(hits(0.05).abs_diff(5_000) < 345, "{}", hits(0.05));
        assert!(hits(0.5).abs_diff(50_000) < 791, "{}", hits(0.5));
        assert_eq!(Chance::new(f64::NAN), Chance::new(0.0));
    }

    #[test]
    fn bounded_numbers_fill_their_range_and_stay_in_it() {
        let stream = Stream::new(1);
        let mut seen = [0_u32; 10];
        for index in 0..10_000 {
            seen[below(stream.at(index), 10) as usize] += 1;
        }
        assert!(seen.iter().all(|count| count.abs_diff(1_000) < 150), "{seen:?}");
        assert_eq!(below(u64::MAX, 10), 9);
    }

    #[test]
    fn streams_of_neighbouring_keys_share_nothing() {
        let (left, right) = (Stream::new(1), Stream::new(2));
        let same_bits: u32 = (0..1_000).map(|index| (!(left.at(index) ^ right.at(index))).count_ones()).sum();
        assert!(same_bits.abs_diff(32_000) < 700, "{same_bits}");
    }
}
