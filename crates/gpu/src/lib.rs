//! GPU memory, and nothing about fabrics: this crate knows no frames, keys, nodes or regions.
//!
//! Reading order: [`error`] (what can go wrong) · [`driver`] (the library, opened at run time) · [`mod@probe`] (what the machine can
//! do) · [`device`] (what every device offers) · [`cuda`] (a real one) · [`fake`] (plain memory that completes late, in
//! odd order, or not at all, by seed) · [`landing`] (many small writes into device memory, told when they are visible) · [`rows`] (long
//! transfers out of it, read ahead) · [`tiers`] (from which size on which way is taken) · [`commands`] (what kernels ask of the host).
//!
//! It fences most of our `unsafe` code, and it is built without CUDA: a machine without a GPU gets a typed error.

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

pub use cuda::Cuda;
pub use driver::Driver;
pub use error::GpuError;
pub use pinned::Pinned;
pub use probe::{DeviceInfo, Machine, PeerInfo, probe};

/// Say that a test did not run, and why: on standard error, because the harness keeps the rest to itself.
#[cfg(test)]
fn skipped(what: &str, why: &str) {
    // A test that cannot say so has run all the same.
    let _ =
        std::io::Write::write_all(&mut std::io::stderr(), format!("SKIPPED (1): {what}: {why}\n").as_bytes());
}
