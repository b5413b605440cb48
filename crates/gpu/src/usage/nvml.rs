//! Readings of NVML, the driver's management library.
//!
//! Traffic of links comes from two samples of the GPU's counters (GPM, since Hopper), taken at both ends of the window.
//! `nvmlDeviceGetPcieThroughput` is not used: each call and direction takes 20 ms.

use nvml_wrapper::enum_wrappers::device::Clock;
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::{GpmSample, gpm_metrics_get};
use nvml_wrapper::{Device, Nvml};

use super::reading::{Rates, Reading, Source};
use super::sampler::Window;
use crate::error::GpuError;

/// Unit of the rates that NVML reports, in bytes per second.
const MEBIBYTE: f64 = 1_048_576.0;
/// Greatest rate that a device may report, in bytes per second. Values beyond it are those of counters that were set back.
const RATE_MAX: f64 = 1e15;

/// Opens NVML, and reads the device with this unique name during the window.
///
/// # Errors
/// [`GpuError::NoManagement`]: NVML cannot be used, or does not know the device.
pub(super) fn observe(uuid: &str, window: &mut Window) -> Result<(), GpuError> {
    let refused = |error: NvmlError| GpuError::NoManagement { reason: error.to_string() };
    let nvml = Nvml::init().map_err(refused)?;
    let device = find(&nvml, uuid).map_err(refused)?;
    let memory_bytes = device.memory_info().ok().map(|memory| memory.total);
    let own_uuid = device.uuid().ok();
    window.describe(|usage| {
        usage.memory_bytes = memory_bytes;
        if let Some(uuid) = own_uuid {
            usage.uuid = uuid;
        }
    });
    window.observe(&mut Managed { nvml: &nvml, device, first: None });
    Ok(())
}

/// Finds a device by the unique name that CUDA reports. CUDA does not say if it is that of a whole GPU or of a part of one (MIG).
fn find<'nvml>(nvml: &'nvml Nvml, uuid: &str) -> Result<Device<'nvml>, NvmlError> {
    nvml.device_by_uuid(uuid).or_else(|error| {
        let part = uuid.strip_prefix("GPU-").map(|rest| format!("MIG-{rest}"));
        part.map_or(Err(error), |part| nvml.device_by_uuid(part))
    })
}

/// A device that NVML manages.
struct Managed<'nvml> {
    nvml: &'nvml Nvml,
    device: Device<'nvml>,
    /// Counters at the begin of the interval of rates.
    first: Option<GpmSample<'nvml>>,
}

impl Source for Managed<'_> {
    fn read(&mut self) -> Reading {
        let utilization = self.device.utilization_rates().ok();
        Reading {
            busy_percent: utilization.as_ref().map(|percent| percent.gpu.into()),
            memory_busy_percent: utilization.as_ref().map(|percent| percent.memory.into()),
            memory_used_bytes: self.device.memory_info().ok().map(|memory| memory.used),
            power_mw: self.device.power_usage().ok().map(u64::from),
            sm_clock_mhz: self.device.clock_info(Clock::SM).ok().map(u64::from),
        }
    }

    fn begin_rates(&mut self) {
        let has_counters = self.device.gpm_support().unwrap_or(false);
        self.first = has_counters.then(|| self.device.gpm_sample().ok()).flatten();
    }

    fn rates(&mut self) -> Rates {
        use GpmMetricId as Metric;
        let Some((first, second)) = self.first.take().zip(self.device.gpm_sample().ok()) else {
            return Rates::default();
        };
        let rate = |metric: Metric| {
            let values = gpm_metrics_get(self.nvml, &first, &second, &[metric]).ok()?;
            bytes_per_s(values.into_iter().next()?.ok()?.value)
        };
        Rates {
            pcie_sent: rate(Metric::PcieTxPerSec),
            pcie_received: rate(Metric::PcieRxPerSec),
            nvlink_sent: rate(Metric::NvlinkTotalTxPerSec),
            nvlink_received: rate(Metric::NvlinkTotalRxPerSec),
        }
    }
}

/// Converts a rate of NVML to bytes per second; `None` if it is no rate.
fn bytes_per_s(mebibytes_per_s: f64) -> Option<u64> {
    let rate = mebibytes_per_s * MEBIBYTE;
    (0.0..RATE_MAX).contains(&rate).then_some(rate as u64)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::reading::Usage;
    use super::super::sampler::Sampler;
    use super::*;

    #[test]
    fn without_the_library_or_the_device_the_reason_is_returned() {
        let unknown = "GPU-00000000-0000-0000-0000-000000000000";
        let observed = move |window: &mut Window| observe(unknown, window);
        let sampler = Sampler::start(Duration::from_millis(1), Usage::default(), observed).expect("a thread");
        sampler.begin();
        match sampler.finish(Duration::from_secs(60)) {
            Err(GpuError::NoManagement { reason }) => assert!(!reason.is_empty()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn rates_are_in_bytes_and_values_that_are_no_rates_are_absent() {
        assert_eq!(bytes_per_s(1.5), Some(1_572_864));
        assert_eq!(bytes_per_s(0.0), Some(0));
        assert_eq!([f64::NAN, f64::INFINITY, -1.0, 1e12].map(bytes_per_s), [None; 4]);
    }
}
