//! What the user asked for, as checked data.
//!
//! A rack file (`docs/topology-file.md`) becomes a [`Plan`]: text, then a tree in which every value knows its place
//! (`document`), then values with their units (`read`, `quantity`), the shape expanded to members and links (`shape`),
//! and at last the whole judged (`check`). Every key, its range and its meaning are declared once (`schema`). All mistakes are reported at once, each with line, column, caret and hint.
//! The simulator and the running nodes are given the same plan; [`impair`] decides for both what a link does to a frame, and
//! [`faults`] what happens to the rack meanwhile.
//!
//! This crate opens no socket, starts no process and knows no clock.
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
mod places;
mod plan;
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
