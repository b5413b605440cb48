//! Description of a rack and its job, read from a file and checked.
//!
//! The crate has layers, and each imports only itself and lower ones (`tests/layers.rs`):
//! - `setting`: units, named values, and the form in which keys are declared.
//! - `model`: checked data, of which [`Plan`] is the whole.
//! - `read`: text to a tree in which every value has its position, then to values with their units, then to members and links.
//! - `check`: contradictions and values out of range, deadlock, and the methods of [`Plan`] that read and check a file.
//!
//! Every key of a rack file (`docs/topology-file.md`) is declared once with its range and meaning (`schema`). All mistakes are
//! reported at once, each with line, column, caret and hint. The simulator and the running nodes use the same plan. [`impair`] decides
//! for both which frames a link loses or changes, and [`faults`] which faults are active.
//!
//! This crate opens no socket, starts no process and reads no clock.
#![forbid(unsafe_code)]

mod check;
pub mod faults;
pub mod impair;
mod model;
mod read;
mod schema;
mod setting;

pub use check::deadlock;
pub use model::jobs::algorithm::{AlgorithmChoice, AlgorithmList};
pub use model::jobs::expect::{Expectations, ExpectedVerdict};
pub use model::jobs::job::{
    CollectivePlan, JobKind, JobName, JobPlan, LitmusPlan, OnLoss, PatternName, Sizes, Sweep, TrafficPlan,
};
pub use model::links::channels::ChannelPlan;
pub use model::links::headers;
pub use model::links::headers::HeaderProfile;
pub use model::links::link::{DropFrames, LinkPlan, LinkProfile};
pub use model::links::loss::{Burst, LossByKind};
pub use model::links::of_link::{OwnChannels, OwnCredits};
pub use model::links::pause::{PausePlan, ShortHeadroom};
pub use model::links::retry::RetryPlan;
pub use model::links::wire::{
    Checks, FrameBuffer, HostEnd, PayloadMode, Reception, WireKind, WireProperties,
};
pub use model::listing::Setting;
pub use model::members::device::DeviceModel;
pub use model::members::hosts::HostPlan;
pub use model::members::hub::SwitchKind;
pub use model::members::local::{LocalPath, LocalPlan};
pub use model::members::member::{
    MemberPlan, MemoryDevice, MemoryOptions, PoolReuse, SecurityPlan, ShareBy, TenantPlan,
};
pub use model::members::paths::{PathPlan, RelayPaths, spread};
pub use model::objection::{Objection, Subject};
pub use model::plan::Plan;
pub use model::plan::processes::is_process_number;
pub use model::rack_settings::{DevicePorts, RackSettings};
pub use model::random::random_share;
pub use model::times::clock::Clock;
pub use model::times::timing::{DeadlockPolicy, ForwardingMode, ForwardingPlan, Medium};
pub use rackloom_collectives::{AlgorithmKind, CollectiveKind, ElementType, ReduceOperation};
pub use read::full_key::full_setting;
pub use read::mistake::{Mistake, PlanError, WithoutHeading};
pub use read::setting_lines::with_settings;
pub use read::text::{TextFile, Unreadable, text_of};
pub use read::trace;
pub use read::units;
pub use schema::json::{fault_schema, schema};
pub use schema::{DeclaredKey, DeclaredValue, declared_key};
pub use setting::named_value::NamedValue;
pub use setting::printable::{printable, printable_lines};
