//! Runs that rows measure, and the raw loops beside them.

pub(super) mod cable;
pub(super) mod core;
pub(super) mod direct;
pub(super) mod fabric;
pub(super) mod load;
pub(super) mod program;
pub(super) mod raw;
pub(super) mod raw_loop;
