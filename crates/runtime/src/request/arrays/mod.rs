//! The user's arrays: NumPy files in, NumPy files out.
//!
//! `input` (what the ranks give, all problems at once) · `place` (the directory of the results) · `output` (what the ranks get). What the bytes of a file mean, and
//! what is done with the values, is the jobs' business.

mod input;
mod output;
mod place;

pub use input::InputArrays;
pub use output::ArrayWriter;
pub use place::make_place;
