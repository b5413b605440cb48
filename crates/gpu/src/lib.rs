//! GPU memory. This crate has no fabric in it: no frames, keys, nodes or regions.
//!
//! Reading order: [`error`] (errors) · [`driver`] (the vendor's library, opened at run time) · [`mod@probe`] (capabilities of the
//! machine) · [`device`] (the trait of all devices) · [`cuda`] (a real device) · [`fake`] (plain memory that completes late, in
//! odd order, or not at all, by seed) · [`landing`] (many small writes into device memory, with notice when they are visible) ·
//! [`rows`] (long transfers out of it, read ahead) · [`tiers`] (sizes at which one method replaces another) · [`commands`] (requests of
//! kernels to the host) · [`usage`] (how much of a device a job used).
//!
//! The crate fences most of our `unsafe` code. It is built without CUDA: a machine without a GPU gets a typed error.

mod address;
pub mod commands;
pub mod cuda;
pub mod device;
pub mod driver;
pub mod error;
pub mod fake;
pub mod kernels;
pub mod landing;
pub mod pinned;
pub mod probe;
pub mod rows;
pub mod tiers;
pub mod usage;

pub use cuda::Cuda;
pub use driver::Driver;
pub use error::GpuError;
pub use pinned::Pinned;
pub use probe::{DeviceInfo, Machine, PeerInfo, probe};

/// Reports on standard error that a test did not run, and why. The harness captures standard output.
#[cfg(test)]
fn skipped(what: &str, reason: &str) {
    // A test that cannot write the line is skipped all the same.
    let _ = std::io::Write::write_all(
        &mut std::io::stderr(),
        format!("SKIPPED (1): {what}: {reason}\n").as_bytes(),
    );
}
