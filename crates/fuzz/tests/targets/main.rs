//! Fuzz targets of the libraries, one test each. `scripts/fuzz.sh` runs one of them for longer.
//!
//! The targets for the control socket and for messages between supervisors are beside the code, because that is not public:
//! `cargo test --package rackloom-cli fuzz`.

mod arrays;
mod captures;
mod texts;
mod wire;
mod workloads;

use std::path::PathBuf;

/// Returns the path of a file or folder of the repository.
fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
