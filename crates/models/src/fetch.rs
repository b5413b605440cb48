//! Prefetching, which has no effect on what threads observe.

pub(crate) fn fetch(_address: *const u8) {}

pub(crate) fn fetch_to_write(_address: *const u8) {}
