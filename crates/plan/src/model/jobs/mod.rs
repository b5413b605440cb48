//! Jobs and what is expected of them.

pub(crate) mod algorithm;
pub(crate) mod expect;
pub(crate) mod job;
