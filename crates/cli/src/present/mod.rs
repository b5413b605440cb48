//! Text that the command prints. These modules make text; `main` and the commands print it.

mod active_faults;
mod balance;
mod device;
mod faults;
mod gpu;
mod ip;
mod links;
mod oracles;
mod percent;
mod plan;
mod report;
mod status;
mod submitted;
mod sweep;
pub(crate) mod table;
mod traffic;
mod workload;

pub(crate) use active_faults::{FaultInEffect, active_faults};
pub(crate) use ip::missing as missing_ip;
pub(crate) use plan::{members, plan};
pub(crate) use rackloom_runtime::units;
pub(crate) use report::report;
pub(crate) use status::{members_status, rack_status};
pub(crate) use submitted::{job_line, job_list};
pub(crate) use sweep::schedules;
pub(crate) use workload::workload;
