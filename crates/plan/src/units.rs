//! Quantities with their units as rack files write them, for those who take them from elsewhere: `4KiB`, `10us`, `3m`, `1%`.
//!
//! What is wrong with a value that is none is for the reader of files; here it is none.

use crate::quantity;

/// A size in bytes.
#[must_use]
pub fn size_bytes(text: &str) -> Option<u64> {
    quantity::bytes(text).ok()
}

/// A time in nanoseconds.
#[must_use]
pub fn time_ns(text: &str) -> Option<u64> {
    quantity::nanoseconds(text).ok()
}

/// A length in millimetres.
#[must_use]
pub fn length_mm(text: &str) -> Option<u64> {
    quantity::millimetres(text).ok()
}

/// A probability, as a number or in per cent.
#[must_use]
pub fn probability(text: &str) -> Option<f64> {
    quantity::probability(text).ok()
}
