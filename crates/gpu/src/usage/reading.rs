//! Readings of a GPU, and their running sums.

/// State of a GPU at one time.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reading {
    /// Percentage of the driver's last sample period in which a kernel ran. The period is between 1/6 s and 1 s.
    pub busy_percent: Option<u64>,
    /// Percentage of that period in which the memory of the device was read or written, by kernels or copy engines.
    pub memory_busy_percent: Option<u64>,
    /// Allocated memory in bytes.
    pub memory_used_bytes: Option<u64>,
    /// Power in milliwatts.
    pub power_mw: Option<u64>,
    /// Clock of the multiprocessors in MHz.
    pub sm_clock_mhz: Option<u64>,
}

/// Mean traffic of a GPU's links over an interval, in bytes per second.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rates {
    /// From the GPU over PCIe.
    pub pcie_sent: Option<u64>,
    /// To the GPU over PCIe.
    pub pcie_received: Option<u64>,
    /// From the GPU over all of its NVLinks.
    pub nvlink_sent: Option<u64>,
    /// To the GPU over all of its NVLinks.
    pub nvlink_received: Option<u64>,
}

/// Supplier of readings. A query that the device does not support leaves its field empty.
pub trait Source {
    /// Reads the device.
    fn read(&mut self) -> Reading;
    /// Marks the begin of the interval of [`Self::rates`].
    fn begin_rates(&mut self);
    /// Returns the mean rates since [`Self::begin_rates`].
    fn rates(&mut self) -> Rates;
}

/// Count, sum and greatest of a quantity's values.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunningSum {
    /// Number of values.
    pub count: u64,
    /// Sum of the values.
    pub sum: u64,
    /// Greatest value.
    pub max: u64,
}

impl RunningSum {
    /// Adds a value, if there is one.
    pub fn add(&mut self, value: Option<u64>) {
        let Some(value) = value else { return };
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
    }
}

/// Use of a GPU over a window: sums of all readings. A quantity without a value was not reported by the GPU.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Unique name of the GPU, or of the part of it that is used (MIG).
    pub uuid: String,
    /// The vendor's name.
    pub name: String,
    /// Bytes of its memory; `None` if it does not report them.
    pub memory_bytes: Option<u64>,
    /// Number of readings.
    pub readings: u64,
    /// Percentages of sample periods in which a kernel ran.
    pub busy_percent: RunningSum,
    /// Percentages of sample periods in which the memory was read or written.
    pub memory_busy_percent: RunningSum,
    /// Allocated memory in bytes.
    pub memory_used_bytes: RunningSum,
    /// Power in milliwatts.
    pub power_mw: RunningSum,
    /// Clock of the multiprocessors in MHz.
    pub sm_clock_mhz: RunningSum,
    /// Mean rates over the window.
    pub rates: Rates,
}

impl Usage {
    /// Returns the use of a device before the first reading.
    #[must_use]
    pub fn new(uuid: String, name: String) -> Self {
        Self { uuid, name, ..Self::default() }
    }

    /// Adds a reading.
    pub fn add(&mut self, reading: Reading) {
        self.readings += 1;
        self.busy_percent.add(reading.busy_percent);
        self.memory_busy_percent.add(reading.memory_busy_percent);
        self.memory_used_bytes.add(reading.memory_used_bytes);
        self.power_mw.add(reading.power_mw);
        self.sm_clock_mhz.add(reading.sm_clock_mhz);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_summed_apart_and_absent_values_do_not_count() {
        let mut usage = Usage::new("GPU-1".to_owned(), "one".to_owned());
        let first =
            Reading { busy_percent: Some(40), memory_used_bytes: Some(1 << 30), ..Reading::default() };
        usage.add(first);
        usage.add(Reading { busy_percent: Some(10), power_mw: Some(90_000), ..Reading::default() });
        usage.add(Reading { power_mw: Some(70_000), ..Reading::default() });
        assert_eq!(usage.readings, 3);
        assert_eq!(usage.busy_percent, RunningSum { count: 2, sum: 50, max: 40 });
        assert_eq!(usage.memory_used_bytes, RunningSum { count: 1, sum: 1 << 30, max: 1 << 30 });
        assert_eq!(usage.power_mw, RunningSum { count: 2, sum: 160_000, max: 90_000 });
        assert_eq!(usage.sm_clock_mhz, RunningSum::default());
    }

    #[test]
    fn a_sum_that_would_overflow_stays_at_its_greatest_value() {
        let mut sum = RunningSum::default();
        sum.add(Some(u64::MAX));
        sum.add(Some(5));
        assert_eq!(sum, RunningSum { count: 2, sum: u64::MAX, max: u64::MAX });
    }
}
