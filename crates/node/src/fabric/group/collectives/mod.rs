//! The collectives of a group, one file for each form of their arrays.

mod equal;
mod in_place;
mod persistent;
pub(super) mod reduction;
mod slices;
mod unequal;

pub use persistent::PersistentCollective;
pub use reduction::{Reducer, Reduction};
