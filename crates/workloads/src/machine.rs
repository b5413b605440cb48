//! Computations from flops and bytes: their durations by the roofline model, or the work itself.
//!
//! A computation takes the longer of two times: its floating-point operations at the machine's rate, and its bytes at the rate
//! of the memory. The launch latency is added. Source: Williams, Waterman, Patterson, "Roofline: an insightful visual
//! performance model", Communications of the ACM 52(4), 2009. Caches, clocks and efficiency are not part of it: state rates that
//! the machine attains, not those of its data sheet.

use crate::model::Work;

/// Machine of one rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Rates from which durations follow. `None` states computations by their work, and the device of a rack gives the durations.
    pub rates: Option<Rates>,
    /// Bytes of one element of activations, parameters and gradients.
    pub element_bytes: u64,
}

/// Rates of a machine that is known when a workload is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Floating-point operations per second, above 0.
    pub flops_per_s: f64,
    /// Bytes per second between memory and processor, above 0.
    pub memory_bytes_per_s: f64,
    /// Time in nanoseconds that each computation takes in addition.
    pub launch_ns: u64,
}

impl Default for Machine {
    /// Returns a machine with default rates and elements of 2 bytes.
    fn default() -> Self {
        Self { rates: Some(Rates::default()), element_bytes: 2 }
    }
}

impl Default for Rates {
    /// Returns round numbers of a GPU of 2024: 500 TFLOP/s attained, 3 TB/s, 5 us per launch.
    fn default() -> Self {
        Self { flops_per_s: 500e12, memory_bytes_per_s: 3e12, launch_ns: 5_000 }
    }
}

impl Rates {
    /// Returns the duration in nanoseconds, rounded up, of a computation that performs `flops` and moves `bytes`.
    /// A duration beyond 64 bits is [`u64::MAX`].
    #[must_use]
    pub fn duration_ns(&self, flops: f64, bytes: f64) -> u64 {
        // The product comes first, so that whole numbers of nanoseconds stay whole. The conversion saturates.
        let ns = (flops * 1e9 / self.flops_per_s).max(bytes * 1e9 / self.memory_bytes_per_s);
        (ns.ceil() as u64).saturating_add(self.launch_ns)
    }
}

impl Machine {
    /// Returns a computation that performs `flops` and moves `bytes`. Work beyond 64 bits is [`u64::MAX`].
    #[must_use]
    pub fn compute(&self, flops: u128, bytes: u128) -> Work {
        let whole = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
        match self.rates {
            Some(rates) => Work::Compute { duration_ns: rates.duration_ns(flops as f64, bytes as f64) },
            None => Work::Kernel { flops: whole(flops), bytes: whole(bytes) },
        }
    }

    /// Checks that the rates and the size of an element can be used.
    ///
    /// # Errors
    ///
    /// Returns the name of the first value that is not above 0.
    pub fn check(&self) -> Result<(), &'static str> {
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
        match self.rates {
            Some(rates) if !is_rate(rates.flops_per_s) => Err("flops_per_s"),
            Some(rates) if !is_rate(rates.memory_bytes_per_s) => Err("memory_bytes_per_s"),
            _ if self.element_bytes == 0 => Err("element_bytes"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates { flops_per_s: 1e12, memory_bytes_per_s: 1e11, launch_ns: 7 };

    #[test]
    fn the_longer_of_both_times_counts() {
        // 5e6 / 1e12 s = 5 us; 1e6 / 1e11 s = 10 us.
        assert_eq!(RATES.duration_ns(5e6, 1e5), 5_007);
        assert_eq!(RATES.duration_ns(5e6, 1e6), 10_007);
        assert_eq!(RATES.duration_ns(1.0, 0.0), 8);
        assert_eq!(RATES.duration_ns(f64::MAX, 0.0), u64::MAX);
    }

    #[test]
    fn a_machine_without_rates_leaves_computations_as_work() {
        let machine = |rates| Machine { rates, element_bytes: 2 };
        assert_eq!(machine(Some(RATES)).compute(5_000_000, 1_000_000), Work::Compute { duration_ns: 10_007 });
        assert_eq!(machine(None).compute(5_000_000, 1), Work::Kernel { flops: 5_000_000, bytes: 1 });
        assert_eq!(machine(None).compute(1 << 64, 0), Work::Kernel { flops: u64::MAX, bytes: 0 });
    }

    #[test]
    fn a_rate_of_zero_is_named() {
        let of = |rates| Machine { rates: Some(rates), element_bytes: 2 };
        assert_eq!((of(RATES).check(), Machine { rates: None, element_bytes: 2 }.check()), (Ok(()), Ok(())));
        assert_eq!(of(Rates { flops_per_s: 0.0, ..RATES }).check(), Err("flops_per_s"));
        assert_eq!(of(Rates { memory_bytes_per_s: f64::NAN, ..RATES }).check(), Err("memory_bytes_per_s"));
        assert_eq!(Machine { rates: None, element_bytes: 0 }.check(), Err("element_bytes"));
    }
}
