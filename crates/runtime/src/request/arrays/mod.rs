//! Arrays of the user as NumPy files.
//!
//! `input` (arrays of the ranks) · `place` (directory of the results) · `output` (results). `rackloom_jobs::arrays` defines the format.

mod input;
mod output;
mod place;

pub use input::InputArrays;
pub use output::ArrayWriter;
pub use place::make_place;
