//! What a rack is asked to do, as state machines that either engine drives.
//!
//! A job sits on one endpoint: it issues commands, is told events, and finds local memory through
//! [`rackloom_protocol::Memory`]. It knows no clock but the `now` it is given, so the same job runs in real
//! processes and in virtual time.

pub mod job;

pub use job::{Job, Progress};
