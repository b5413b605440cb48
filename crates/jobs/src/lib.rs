//! What a rack is asked to do, as state machines that either engine drives.
//!
//! A job sits on one endpoint: it issues commands, is told events, and finds local memory through
//! [`rackloom_protocol::Memory`]. It knows no clock but the `now` it is given, so the same job runs in real
//! processes and in virtual time.
//!
//! [`build`] makes one rank's job from a plan. Rooms: [`job`] (the surface towards an engine) · [`local`] (which operations need no frame) · [`litmus`] (is the fabric right?) · [`measure`] (how fast was it?) ·
//! [`pairs`] and [`traffic`] (how fast is it, alone and in a crowd?) · [`oracle`] (what must never happen) · [`rest`] (how members are when all is healed) · `survivors` (who goes on with those who are left) · [`report`] (what both engines hand in and hand out).

pub mod arrays;
mod build;
pub mod collective;
mod crew;
mod idle;
pub mod job;
pub mod litmus;
pub mod local;
pub mod measure;
pub mod oracle;
pub mod pairs;
pub mod report;
pub mod rest;
mod survivors;
pub mod trace;
pub mod traffic;

pub use build::{Seeds, build, build_from, build_on, objections, play_trace};
pub use crew::{Rank, data_regions};
pub use job::{Carried, Job, Output, Portion, Progress, Seat};
pub use measure::{Measurements, OperationKind, OperationPath};
pub use oracle::{Oracle, Verdicts};
pub use report::{JobResult, MemberReport, MemberState, PathCount, PathReport, Report, SweepRow};
