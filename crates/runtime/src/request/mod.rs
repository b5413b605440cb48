//! Requests: options, their effect on the plan, arrays, snapshots, and the checked plan with the job's
//! inputs.

pub mod arrays;
pub mod options;
pub mod overrides;
pub mod snapshots;
pub mod work;
pub mod workload;
