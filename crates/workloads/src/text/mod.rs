//! The text format of workloads: one line per operation, for people and for version control.
//!
//! ```text
//! # Two ranks exchange a message in each direction and reduce a result.
//! workload exchange
//! ranks 2
//! phase forward
//! phase gradients
//! group 0..1
//! rank 0
//! compute 1500ns
//! send 1 4KiB tag 7 after -1
//! receive 1 4KiB
//! in gradients
//! all-reduce group 0 1MiB after 1 2
//! rank 1
//! receive 0 4KiB tag 7
//! send 0 4KiB after -1
//! in gradients
//! all-reduce group 0 1MiB after -1
//! ```
//!
//! `docs/workloads.md` has the table of all lines. Ranks with equal operations share a block: `rank 0..7`. An operation names
//! earlier ones by their index in the block, from 0, or by their distance: `after -1` is the previous one. [`write()`] writes
//! distances, so that a change of one line leaves the others as they are.

mod quantity;
mod read;
mod write;

pub use read::{place_of, read, read_checked};
pub use write::write;

#[cfg(test)]
mod tests;
