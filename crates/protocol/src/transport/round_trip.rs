//! Round-trip estimation and the retransmission timeout (the estimator of RFC 6298, with the plan's bounds).
//!
//! Repeated timeouts vary in length. With a constant length every retransmission could meet the same phase of a fault
//! that recurs at regular intervals, for example a link that is down for 300 us of each millisecond, and none would
//! ever arrive.

use crate::config::TransportConfig;

/// Repeated timeouts are shorter than the back-off by up to one part in this many (own choice).
const VARIED_PART: u64 = 4;
/// Steps of the fractional part of the golden ratio, in 2^32nds: the sequence is even over the unit interval and has no period.
const STEP: u32 = 0x9E37_79B9;

/// Smoothed round-trip time, its variation, and the back-off.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrip {
    smoothed_ns: u64,
    variation_ns: u64,
    measured: bool,
    back_off: u32,
}

impl RoundTrip {
    /// Records the time from the only transmission of a packet to its acknowledgement.
    pub fn measure(&mut self, sample_ns: u64) {
        if self.measured {
            let error = self.smoothed_ns.abs_diff(sample_ns);
            self.variation_ns = (3 * self.variation_ns + error) / 4;
            self.smoothed_ns = (7 * self.smoothed_ns + sample_ns) / 8;
        } else {
            self.smoothed_ns = sample_ns;
            self.variation_ns = sample_ns / 2;
            self.measured = true;
        }
    }

    /// Returns the present timeout with back-off, within the bounds of the configuration, in nanoseconds.
    #[must_use]
    pub fn timeout_ns(&self, config: &TransportConfig) -> u64 {
        let measured_ns = self.smoothed_ns + 4 * self.variation_ns;
        let base = if self.measured { measured_ns } else { config.timeout_initial_ns };
        let doubled = base.max(config.timeout_min_ns).saturating_mul(1 << self.back_off.min(20));
        let longest_ns = doubled.min(config.timeout_max_ns);
        let fraction = u64::from(self.back_off.wrapping_mul(STEP));
        let varied_ns = (u128::from(longest_ns / VARIED_PART) * u128::from(fraction)) >> 32;
        longest_ns - varied_ns as u64
    }

    /// Doubles the timeout after one passed without an acknowledgement.
    pub const fn back_off(&mut self) {
        self.back_off = self.back_off.saturating_add(1);
    }

    /// Resets the back-off, after an acknowledgement or a path change.
    pub const fn reset_back_off(&mut self) {
        self.back_off = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CongestionControl, RetransmissionMode};

    const CONFIG: TransportConfig = TransportConfig {
        timeout_initial_ns: 10_000_000,
        timeout_min_ns: 1_000_000,
        timeout_max_ns: 20_000_000,
        mode: RetransmissionMode::Selective,
        window_packets: 64,
        reorder_packets: 64,
        retry_count_max: 0,
        ack_every_packets: 1,
        ack_delay_ns: 0,
        congestion: CongestionControl::Off,
        grant_packets: None,
    };

    /// Returns true if a link that is down for 300 us of each millisecond is down at this time.
    fn is_down(at_ns: u64) -> bool {
        at_ns % 1_000_000 < 300_000
    }

    #[test]
    fn no_periodic_outage_meets_every_retransmission() {
        for begin_ns in (0..1_000_000).step_by(1_000) {
            let (mut round_trip, mut at_ns, mut met) = (RoundTrip::default(), begin_ns, 0);
            while is_down(at_ns) {
                at_ns += round_trip.timeout_ns(&CONFIG);
                round_trip.back_off();
                met += 1;
                assert!(met < 10, "ten retransmissions in a row met the outage, beginning at {begin_ns} ns");
            }
        }
    }

    #[test]
    fn the_first_timeout_is_the_estimate_and_later_ones_double_within_their_bounds() {
        let mut round_trip = RoundTrip::default();
        assert_eq!(round_trip.timeout_ns(&CONFIG), 10_000_000);
        round_trip.measure(600_000);
        assert_eq!(round_trip.timeout_ns(&CONFIG), 600_000 + 4 * 300_000);
        for back_off in 1..100_u32 {
            round_trip.back_off();
            let longest_ns = (1_800_000 << back_off.min(20)).min(20_000_000);
            let timeout_ns = round_trip.timeout_ns(&CONFIG);
            assert!((longest_ns * 3 / 4..=longest_ns).contains(&timeout_ns), "{back_off}: {timeout_ns}");
        }
        round_trip.reset_back_off();
        assert_eq!(round_trip.timeout_ns(&CONFIG), 1_800_000);
    }
}
