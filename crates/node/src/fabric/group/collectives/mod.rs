//! The collectives of a group, one file for each form of their arrays.

mod equal;
mod slices;
