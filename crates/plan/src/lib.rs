//! What the user asked for, as checked data.
//!
//! A rack file (`docs/topology-file.md`) becomes a [`Plan`]: text, then a tree in which every value knows its place
//! (`document`), then values with their units (`read`, `quantity`), the shape expanded to members and links (`shape`),
//! and at last the whole judged (`check`). All mistakes are reported at once, each with line, column, caret and hint.
//! The simulator and the running nodes are given the same plan; [`impair`] decides for both what a link does to a frame.
//!
//! This crate opens no socket, starts no process and knows no clock.
#![forbid(unsafe_code)]

mod canonical;
mod check;
mod defaults;
mod document;
pub mod impair;
mod mistake;
mod places;
mod plan;
mod quantity;
mod random;
mod read;
mod shape;

pub use mistake::{Mistake, PlanError};
pub use plan::{Checks, DropFrames, JobKind, JobPlan, LinkPlan, LinkProfile, MemberPlan, Plan, WireKind};
