//! Use of a GPU during a job: utilisation, memory, power, clock, and traffic of its links.
//!
//! The driver's management library (NVML) is opened at run time, as the driver is. A [`Sampler`] reads it on a thread of its own and
//! adds each [`Reading`] to running sums, so its memory does not grow with the job. The device is found by its unique name, because
//! indices of CUDA are not those of NVML: `CUDA_VISIBLE_DEVICES` changes the former only.
//!
//! All figures are those of the whole GPU, with the work of other processes. A quantity that the GPU does not report is absent.

mod nvml;
mod reading;
mod sampler;

pub use reading::{Rates, Reading, RunningSum, Source, Usage};
pub use sampler::{Sampler, Window};

use std::time::Duration;

use crate::driver::Driver;
use crate::error::GpuError;
use crate::probe;

/// Time between two readings.
pub const PERIOD: Duration = Duration::from_millis(100);

/// Starts a sampler of the device with an index of CUDA. It opens the management library on its own thread, and reads once
/// [`Sampler::begin`] is called.
///
/// # Errors
/// [`GpuError`]: no driver, no such device, no thread. A library that cannot be used is an error of [`Sampler::finish`].
pub fn sample(index: u32) -> Result<Sampler, GpuError> {
    let driver = Driver::open()?;
    let (uuid, name) = (probe::uuid_of(&driver, index)?, probe::name_of(&driver, index)?);
    Sampler::start(PERIOD, Usage::new(uuid.clone(), name), move |window| nvml::observe(&uuid, window))
}
