//! From options and files to a checked plan: options, their effect on the plan, arrays, snapshots.

pub mod arrays;
pub mod options;
pub mod overrides;
pub mod snapshots;
pub mod work;
