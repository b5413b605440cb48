//! Quantities with units, in the notation of rack files: `4KiB`, `10us`, `3m`, `1%`.
//!
//! Other crates use it for their options. A text that is no quantity yields `None`, without a message.

use crate::setting::quantity;

/// Reads a size in bytes.
#[must_use]
pub fn size_bytes(text: &str) -> Option<u64> {
    quantity::bytes(text).ok()
}

/// Reads a time in nanoseconds.
#[must_use]
pub fn time_ns(text: &str) -> Option<u64> {
    quantity::nanoseconds(text).ok()
}

/// Reads a rate in bits per second. `unlimited` is no number, and yields `None` too.
#[must_use]
pub fn rate_bits_per_s(text: &str) -> Option<u64> {
    quantity::rate(text).ok().flatten()
}

/// Reads a length in millimetres.
#[must_use]
pub fn length_mm(text: &str) -> Option<u64> {
    quantity::millimetres(text).ok()
}

/// Reads a probability, written as a number or in per cent.
#[must_use]
pub fn probability(text: &str) -> Option<f64> {
    quantity::probability(text).ok()
}
