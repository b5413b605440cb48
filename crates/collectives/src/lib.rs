//! Collective operations as schedules: pure data that states which rank sends which elements when, and which rank reduces.
//!
//! A [`Schedule`] is built by an algorithm ([`build`]), proved by [`verify`](verify::verify), counted by [`traffic`],
//! printed by [`print`](print::table), chosen by [`choose`](choose::choose), and run by an owner of memory and fabric:
//! an engine with non-blocking puts and signals advances a [`Run`](execute::Run) per rank, and [`mod@reference`] does it on plain
//! arrays, so that the bits that a rack must produce can be stated beforehand. The arithmetic that both use is
//! [`reduce`](reduce::reduce), and for many operands at once [`Accumulator`](reduce::Accumulator).
//!
//! This crate moves nothing between ranks. It uses no clock, no socket, no thread and no file.
#![deny(unsafe_code)]

pub mod adapt;
pub mod algorithm;
pub mod array;
mod builder;
pub mod choose;
pub mod collective;
pub mod curve;
mod estimate;
pub mod execute;
mod fabric;
pub mod fingerprint;
mod named;
pub mod partition;
mod paths;
pub mod print;
mod reason;
pub mod reduce;
pub mod reference;
pub mod schedule;
pub mod traffic;
pub mod verify;

pub use algorithm::{Algorithm, AlgorithmKind, Refused, Request, build};
pub use array::ElementType;
pub use collective::{Collective, CollectiveKind};
pub use partition::Parts;
pub use reason::Reason;
pub use reduce::{ReduceError, ReduceOperation};
pub use schedule::{
    Action, Buffer, Cursor, Local, Operands, Program, Schedule, Span, Step, Transfer, TransferId,
};
