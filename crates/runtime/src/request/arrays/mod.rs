//! Arrays of the user as NumPy files.
//!
//! `input` (arrays of the ranks) · `destination` (directory of the results) · `output` (results).
//! `rackloom_jobs::arrays` defines the format.

mod destination;
mod input;
mod output;

pub use destination::make_destination;
pub use input::InputArrays;
pub use output::ArrayWriter;
