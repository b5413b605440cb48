//! Jobs of a rack, as state machines that either engine drives.
//!
//! A job runs on one endpoint. It issues commands, receives events, and accesses local memory through
//! [`rackloom_protocol::Memory`]. Its only clock is the `now` that it is given, so the same job runs in real processes
//! and in virtual time.
//!
//! [`build`] makes one rank's job from a plan. Modules:
//!
//! - [`job`]: interface between a job and its engine.
//! - [`local`]: operations that need no frame.
//! - [`litmus`]: correctness of the fabric.
//! - [`measure`]: latency and bandwidth of operations.
//! - [`pairs`] and [`traffic`]: speed of one pair, and of many at once.
//! - [`trace`] and [`workload`]: transfers at given times, and graphs of computations, messages and collectives.
//! - [`oracle`]: properties that must always hold.
//! - [`rest`]: state of the members after all faults are healed.
//! - `survivors`: agreement on the members that go on after a loss.
//! - [`recorder`]: time series of members.
//! - [`report`]: results of ranks and the report of a run.

pub mod arrays;
mod build;
pub mod collective;
mod elided;
mod idle;
pub mod job;
pub mod litmus;
pub mod local;
pub mod pairs;
mod quantile;
mod ranks;
mod survivors;
pub mod trace;
pub mod traffic;
pub mod workload;

pub use build::{
    Seeds, build, build_all, build_from, build_on, objections, perform_workload, play_trace,
    prepare_workload, wait_for,
};
pub use job::{Carried, Job, Output, Portion, Progress, Seat};
pub use rackloom_control::{measure, oracle, recorder, report, rest};
pub use ranks::{Rank, data_regions};

pub use measure::{Measurements, OperationKind, OperationPath};
pub use oracle::{Oracle, Verdicts};
pub use report::{JobResult, MemberReport, MemberState, PathCount, PathReport, Report, SweepRow};
