//! Loss by bit errors: a frame with a wrong bit is lost, so longer frames are lost more often.
//!
//! Bits fail independently with equal probability. A frame of L bytes on the wire is lost with the probability
//! `1 - (1 - rate)^8L`. Preamble and gap count as bytes, as they do for the rate of a link. Errors that remain after forward error
//! correction come in bursts, which `link.burst` models.

use crate::model::links::headers::wire_bytes;
use crate::model::random::{Chance, Stream};

/// Bit errors of one direction of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BitErrors {
    rate: f64,
    stream: Stream,
}

impl BitErrors {
    pub(crate) const fn new(rate: f64, stream: Stream) -> Self {
        Self { rate, stream }
    }

    /// Returns true if this frame is lost.
    pub(crate) fn lose(self, frame: u64, frame_bytes: usize) -> bool {
        let bits = wire_bytes(frame_bytes) as u64 * 8;
        Chance::new(any_of(self.rate, bits)).hits(self.stream.at(frame))
    }
}

/// Returns the probability that at least one of `count` independent events with probability `one` happens. It squares
/// probabilities that an event happens, and not that it does not happen: so small probabilities keep all their digits, and every machine
/// rounds alike.
fn any_of(one: f64, count: u64) -> f64 {
    let either = |left: f64, right: f64| left + right - left * right;
    let (mut all, mut power, mut left) = (0.0, one, count);
    while left > 0 {
        if left & 1 == 1 {
            all = either(all, power);
        }
        power = either(power, power);
        left >>= 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_small_probabilities_agree_with_logarithms() {
        for (rate, bits) in [(1e-12, 34_000), (1e-6, 8 * 84), (1e-3, 12_345), (0.5, 2), (1.0, 1)] {
            let expected = -f64::exp_m1(bits as f64 * f64::ln_1p(-rate));
            assert!((any_of(rate, bits) / expected - 1.0).abs() < 1e-9, "{rate} {bits}");
        }
    }

    #[test]
    fn frames_are_lost_by_their_length() {
        let errors = BitErrors::new(1e-5, Stream::new(3));
        let lost = |bytes| (0..100_000).filter(|frame| errors.lose(*frame, bytes)).count();
        // 1 - (1 - 1e-5)^(8 x 84) and ^(8 x 4120), five standard deviations of binomials.
        assert!(lost(10).abs_diff(670) < 130, "{}", lost(10));
        assert!(lost(4_096).abs_diff(28_080) < 711, "{}", lost(4_096));
    }
}
