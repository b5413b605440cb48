//! Use of the GPU that holds a seat's memory, sampled while its job runs.
//!
//! `rackloom::gpu::usage` reads the driver's management library on a thread of its own. Without that library nothing is reported, and
//! the log says so. Fake devices have no use.

use std::time::Duration;

use rackloom::gpu::GpuError;
use rackloom::gpu::usage::{self, RunningSum, Sampler, Usage};
use rackloom::memory::DeviceChoice;
use rackloom_jobs::report::{GpuPart, GpuRates, Sampled};

/// Longest time for which a seat waits for the last sample. Heartbeats of the default timers bear it.
const LAST_SAMPLE_TIMEOUT: Duration = Duration::from_millis(50);

/// Sampling of one GPU.
#[derive(Debug)]
pub(super) struct GpuSampling {
    sampler: Sampler,
    has_begun: bool,
    has_ended: bool,
}

impl GpuSampling {
    /// Prepares to sample the device that holds a node's memory, if it is a real one.
    pub(super) fn of(device: Option<DeviceChoice>) -> Option<Self> {
        let Some(DeviceChoice::Cuda(index)) = device else { return None };
        match usage::sample(index) {
            Ok(sampler) => Some(Self::with(sampler)),
            Err(error) => {
                log_absence(&error);
                None
            }
        }
    }

    const fn with(sampler: Sampler) -> Self {
        Self { sampler, has_begun: false, has_ended: false }
    }

    /// Begins to sample. Later calls have no effect and cost a comparison.
    pub(super) fn begin(&mut self) {
        if !self.has_begun {
            self.has_begun = true;
            self.sampler.begin();
        }
    }

    /// Ends the samples with the job. Later calls have no effect.
    pub(super) fn end(&mut self) {
        if !self.has_ended {
            self.has_ended = true;
            self.sampler.end();
        }
    }

    /// Returns the samples; `None` if there are none.
    pub(super) fn finish(&mut self) -> Option<GpuPart> {
        match self.sampler.finish(LAST_SAMPLE_TIMEOUT) {
            Ok(usage) if usage.readings > 0 => Some(part(usage)),
            Ok(_) => {
                tracing::info!("the use of the GPU is not reported: there was no sample before the end");
                None
            }
            Err(error) => {
                log_absence(&error);
                None
            }
        }
    }
}

fn log_absence(error: &GpuError) {
    tracing::info!("the use of the GPU is not reported: {error}");
}

fn part(usage: Usage) -> GpuPart {
    let sampled = |sum: RunningSum| Sampled { count: sum.count, sum: sum.sum, max: sum.max };
    GpuPart {
        memory_bytes: usage.memory_bytes,
        samples: usage.readings,
        busy_percent: sampled(usage.busy_percent),
        memory_busy_percent: sampled(usage.memory_busy_percent),
        memory_used_bytes: sampled(usage.memory_used_bytes),
        power_mw: sampled(usage.power_mw),
        sm_clock_mhz: sampled(usage.sm_clock_mhz),
        rates: GpuRates {
            pcie_sent_bytes_per_s: usage.rates.pcie_sent,
            pcie_received_bytes_per_s: usage.rates.pcie_received,
            nvlink_sent_bytes_per_s: usage.rates.nvlink_sent,
            nvlink_received_bytes_per_s: usage.rates.nvlink_received,
        },
        uuid: usage.uuid,
        name: usage.name,
    }
}

#[cfg(test)]
mod tests {
    use rackloom::gpu::usage::{Rates, Reading, Source};

    use super::*;

    /// GPU with a different value for each quantity.
    struct Steady;

    impl Source for Steady {
        fn read(&mut self) -> Reading {
            let mut reading = Reading::default();
            (reading.busy_percent, reading.memory_busy_percent) = (Some(51), Some(7));
            (reading.memory_used_bytes, reading.power_mw) = (Some(1 << 30), Some(300_000));
            reading.sm_clock_mhz = Some(1980);
            reading
        }

        fn begin_rates(&mut self) {}

        fn rates(&mut self) -> Rates {
            let mut rates = Rates::default();
            (rates.pcie_sent, rates.pcie_received) = (Some(1), Some(2));
            (rates.nvlink_sent, rates.nvlink_received) = (Some(3), Some(4));
            rates
        }
    }

    fn of_source(period: Duration) -> GpuSampling {
        let usage = Usage::new("GPU-7".to_owned(), "seven".to_owned());
        let sampler = Sampler::start(period, usage, |window| {
            window.describe(|usage| usage.memory_bytes = Some(1 << 32));
            window.observe(&mut Steady);
            Ok(())
        });
        GpuSampling::with(sampler.expect("a thread"))
    }

    #[test]
    fn samples_of_a_job_arrive_under_their_names() {
        let mut sampling = of_source(Duration::from_millis(1));
        sampling.begin();
        // Rates need an interval of 100 ms.
        std::thread::sleep(Duration::from_millis(120));
        sampling.end();
        let part = sampling.finish().expect("samples");
        let samples = part.samples;
        assert!(samples > 1, "{part:?}");
        let steady = |value: u64| Sampled { count: samples, sum: samples * value, max: value };
        let rates = GpuRates {
            pcie_sent_bytes_per_s: Some(1),
            pcie_received_bytes_per_s: Some(2),
            nvlink_sent_bytes_per_s: Some(3),
            nvlink_received_bytes_per_s: Some(4),
        };
        let expected = GpuPart {
            uuid: "GPU-7".to_owned(),
            name: "seven".to_owned(),
            memory_bytes: Some(1 << 32),
            samples,
            busy_percent: steady(51),
            memory_busy_percent: steady(7),
            memory_used_bytes: steady(1 << 30),
            power_mw: steady(300_000),
            sm_clock_mhz: steady(1980),
            rates,
        };
        assert_eq!(part, expected);
    }

    #[test]
    fn a_job_that_never_began_and_a_gpu_without_management_have_no_part() {
        assert_eq!(of_source(Duration::from_millis(1)).finish(), None);
        let refused = Sampler::start(Duration::from_millis(1), Usage::default(), |_| {
            Err(GpuError::NoManagement { reason: "no library".to_owned() })
        });
        let mut sampling = GpuSampling::with(refused.expect("a thread"));
        sampling.begin();
        assert_eq!(sampling.finish(), None);
    }

    #[test]
    fn only_real_devices_are_sampled() {
        assert!(GpuSampling::of(None).is_none());
        assert!(GpuSampling::of(Some(DeviceChoice::Fake(3))).is_none());
        assert!(GpuSampling::of(Some(DeviceChoice::Cuda(9999))).is_none(), "no machine has so many");
    }
}
