//! Durations of computations from flops and bytes, by the roofline model.
//!
//! A computation takes the longer of two times: its floating-point operations at the machine's rate, and its bytes at the rate
//! of the memory. The launch latency is added. Source: Williams, Waterman, Patterson, "Roofline: an insightful visual
//! performance model", Communications of the ACM 52(4), 2009. Caches, clocks and efficiency are not part of it: state rates that
//! the machine attains, not those of its data sheet.

/// Machine of one rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Floating-point operations per second, above 0.
    pub flops_per_s: f64,
    /// Bytes per second between memory and processor, above 0.
    pub memory_bytes_per_s: f64,
    /// Time in nanoseconds that each computation takes in addition.
    pub launch_ns: u64,
    /// Bytes of one element of activations, parameters and gradients.
    pub element_bytes: u64,
}

impl Default for Machine {
    /// Returns round numbers of a GPU of 2024: 500 TFLOP/s attained, 3 TB/s, 5 us per launch, elements of 2 bytes.
    fn default() -> Self {
        Self { flops_per_s: 500e12, memory_bytes_per_s: 3e12, launch_ns: 5_000, element_bytes: 2 }
    }
}

impl Machine {
    /// Returns the duration in nanoseconds, rounded up, of a computation that performs `flops` and moves `bytes`.
    /// A duration beyond 64 bits is [`u64::MAX`].
    #[must_use]
    pub fn duration_ns(&self, flops: f64, bytes: f64) -> u64 {
        // The product comes first, so that whole numbers of nanoseconds stay whole. The conversion saturates.
        let ns = (flops * 1e9 / self.flops_per_s).max(bytes * 1e9 / self.memory_bytes_per_s);
        (ns.ceil() as u64).saturating_add(self.launch_ns)
    }

    /// Checks that the rates and the size of an element can be used.
    ///
    /// # Errors
    ///
    /// Returns the name of the first value that is not above 0.
    pub fn check(&self) -> Result<(), &'static str> {
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
        match self {
            _ if !is_rate(self.flops_per_s) => Err("flops_per_s"),
            _ if !is_rate(self.memory_bytes_per_s) => Err("memory_bytes_per_s"),
            _ if self.element_bytes == 0 => Err("element_bytes"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: Machine =
        Machine { flops_per_s: 1e12, memory_bytes_per_s: 1e11, launch_ns: 7, element_bytes: 2 };

    #[test]
    fn the_longer_of_both_times_counts() {
        // 5e6 / 1e12 s = 5 us; 1e6 / 1e11 s = 10 us.
        assert_eq!(MACHINE.duration_ns(5e6, 1e5), 5_007);
        assert_eq!(MACHINE.duration_ns(5e6, 1e6), 10_007);
        assert_eq!(MACHINE.duration_ns(1.0, 0.0), 8);
        assert_eq!(MACHINE.duration_ns(f64::MAX, 0.0), u64::MAX);
    }

    #[test]
    fn a_rate_of_zero_is_named() {
        assert_eq!(MACHINE.check(), Ok(()));
        assert_eq!(Machine { flops_per_s: 0.0, ..MACHINE }.check(), Err("flops_per_s"));
        assert_eq!(Machine { memory_bytes_per_s: f64::NAN, ..MACHINE }.check(), Err("memory_bytes_per_s"));
        assert_eq!(Machine { element_bytes: 0, ..MACHINE }.check(), Err("element_bytes"));
    }
}
