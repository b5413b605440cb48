//! Description of a rack and its job, read from a file and checked.
//!
//! A rack file (`docs/topology-file.md`) becomes a [`Plan`] in these steps: text, a tree in which every value has its position
//! (`document`), values with their units (`read`, `quantity`), members and links of the shape (`shape`),
//! and checks of the result (`check`). Every key is declared once with its range and meaning (`schema`). All mistakes are reported at
//! once, each with line, column, caret and hint. The simulator and the running nodes use the same plan. [`impair`] decides for both
//! which frames a link loses or changes, and [`faults`] which faults are active.
//!
//! This crate opens no socket, starts no process and reads no clock.
#![forbid(unsafe_code)]

mod algorithm;
mod bit_errors;
mod canonical;
mod channels;
mod check;
pub mod deadlock;
mod defaults;
mod document;
mod expect;
pub mod faults;
pub mod headers;
mod hosts;
mod hub;
pub mod impair;
mod job;
mod local;
mod loss;
mod mistake;
mod objection;
mod of_link;
mod pause;
mod pick;
mod plan;
mod positions;
mod quantity;
mod random;
mod read;
mod retry;
mod schema;
mod shape;
mod text;
mod timers;
mod timing;
pub mod trace;
pub mod units;
mod words;

pub use algorithm::{AlgorithmList, AlgorithmName};
pub use channels::ChannelPlan;
pub use document::settings::with_settings;
pub use expect::{Expectations, ExpectedVerdict};
pub use headers::HeaderProfile;
pub use hosts::HostPlan;
pub use hub::SwitchKind;
pub use job::{
    CollectiveName, CollectivePlan, ElementName, JobKind, JobPlan, OnLoss, OperatorName, PatternName, Sizes,
    Sweep, TrafficPlan,
};
pub use local::{LocalPath, LocalPlan};
pub use loss::{Burst, LossByKind};
pub use mistake::{Mistake, PlanError};
pub use objection::{Objection, Subject};
pub use of_link::{OwnChannels, OwnCredits};
pub use pause::PausePlan;
pub use plan::{
    Checks, DropFrames, LinkPlan, LinkProfile, MemberPlan, MemoryDevice, MemoryOptions, PayloadMode, Plan,
    SecurityPlan, ShareBy, TenantPlan, WireKind,
};
pub use random::random_share;
pub use retry::{Clock, RetryPlan};
pub use schema::json::{fault_schema, schema};
pub use text::{Unreadable, text_of};
pub use timing::{ForwardingMode, ForwardingPlan, Medium, SideLatency};
