//! `rackloom calibrate`: a quick check of this machine, and the sizes at which data takes another path on a GPU.
//!
//! The comparison of rackloom with raw loops is a tool of its own, `crates/bench`.

mod gpu;
mod machine;

use crate::arguments::CalibrateArguments;
use crate::exit::Exit;
use crate::failure::Failure;

/// Checks the machine, or measures on the device that `--gpu` names.
pub(crate) fn run(arguments: &CalibrateArguments) -> Result<Exit, Failure> {
    match &arguments.gpu {
        Some(device) => gpu::run(device, arguments.json),
        None => machine::run(arguments.json),
    }
}
