//! The user's arrays: NumPy files in, NumPy files out.
//!
//! `input` (what the ranks give, all problems at once) · `output` (what the ranks get). What the bytes of a file mean, and
//! what is done with the values, is the jobs' business.

mod input;
mod output;

pub(crate) use input::InputArrays;
pub(crate) use output::ArrayWriter;

use crate::arguments::ArrayOptions;
use crate::failure::Failure;

/// Make the directory of the results, before anything starts.
pub(crate) fn make_place(options: &ArrayOptions) -> Result<(), Failure> {
    let Some(directory) = &options.output else { return Ok(()) };
    std::fs::create_dir_all(directory).map_err(|error| {
        Failure::bad_input(format!("cannot make the directory of results: {error}")).at_path(directory)
    })
}
