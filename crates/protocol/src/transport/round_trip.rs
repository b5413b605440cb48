//! Round-trip estimation and the retransmission timeout (the estimator of RFC 6298, with the plan's bounds).

use crate::config::TransportConfig;

/// Smoothed round trip, its variation, and the back-off.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrip {
    smoothed_ns: u64,
    variation_ns: u64,
    measured: bool,
    back_off: u32,
    initial_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl RoundTrip {
    /// Nothing measured yet.
    #[must_use]
    pub const fn new(config: &TransportConfig) -> Self {
        Self {
            smoothed_ns: 0,
            variation_ns: 0,
            measured: false,
            back_off: 0,
            initial_ns: config.timeout_initial_ns,
            min_ns: config.timeout_min_ns,
            max_ns: config.timeout_max_ns,
        }
    }

    /// A packet that was sent once came back acknowledged after this time.
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

    /// The timeout now, back-off included.
    #[must_use]
    pub fn timeout_ns(&self) -> u64 {
        let base = if self.measured { self.smoothed_ns + 4 * self.variation_ns } else { self.initial_ns };
        let doubled = base.max(self.min_ns).saturating_mul(1 << self.back_off.min(20));
        doubled.min(self.max_ns)
    }

    /// A timeout passed without an answer.
    pub const fn back_off(&mut self) {
        self.back_off = self.back_off.saturating_add(1);
    }

    /// An answer came, or the path changed.
    pub const fn reset_back_off(&mut self) {
        self.back_off = 0;
    }
}
