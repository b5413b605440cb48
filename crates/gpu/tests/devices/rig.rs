//! Devices for tests, and the report that there is none.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rackloom_gpu::device::Device;
use rackloom_gpu::fake::{Fake, FakePlan};
use rackloom_gpu::{Cuda, Driver};

/// Serialises tests of the real device, so that one does not disturb the figures of another.
static DEVICE_LOCK: Mutex<()> = Mutex::new(());

/// Returns the first GPU of this machine, or prints why there is none.
pub(crate) fn gpu(test: &str) -> Option<(Cuda, MutexGuard<'static, ()>)> {
    gpu_of(test, 0)
}

/// Returns the GPU with an index, or prints why there is none.
pub(crate) fn gpu_of(test: &str, index: u32) -> Option<(Cuda, MutexGuard<'static, ()>)> {
    let lock = DEVICE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    match Driver::open().and_then(|driver| Cuda::open(&driver, index)) {
        Ok(cuda) => Some((cuda, lock)),
        Err(error) => {
            print_line(&format!("SKIPPED (1): {test}: {error}"));
            None
        }
    }
}

/// Prints a line to standard error directly, because the harness captures the output of tests.
pub(crate) fn print_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Runs a check on fake devices of several seeds, and on a real one. The check may make several devices.
pub(crate) fn on_every_device(test: &str, check: impl Fn(&dyn Fn() -> Box<dyn Device>, u64)) {
    for seed in 0..20 {
        let plan = FakePlan { completions_per_query_max: 1 + seed as u32 % 7, ..FakePlan::new(seed) };
        check(&|| Box::new(Fake::new(plan)), seed);
    }
    if let Some((first, _lock)) = gpu(test) {
        drop(first);
        let driver = Driver::open().unwrap();
        check(&|| Box::new(Cuda::open(&driver, 0).unwrap()), 99);
    }
}

/// Small generator of numbers from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }
}
