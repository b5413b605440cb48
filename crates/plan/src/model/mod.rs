//! Checked data: racks, members, links, jobs and their settings.
//!
//! It imports neither readers nor checks.

pub(crate) mod algorithm;
pub(crate) mod bit_errors;
pub(crate) mod bounds;
pub(crate) mod canonical;
pub(crate) mod channels;
pub(crate) mod clock;
pub(crate) mod credits;
pub(crate) mod defaults;
pub(crate) mod expect;
pub mod headers;
pub(crate) mod hosts;
pub(crate) mod hub;
pub(crate) mod job;
pub(crate) mod link;
pub(crate) mod listing;
pub(crate) mod local;
pub(crate) mod loss;
pub(crate) mod member;
pub(crate) mod objection;
pub(crate) mod of_link;
pub(crate) mod paths;
pub(crate) mod pause;
pub(crate) mod pause_headroom;
pub(crate) mod pick;
pub(crate) mod plan;
pub(crate) mod rack_settings;
pub(crate) mod random;
pub(crate) mod retry;
pub(crate) mod retry_timers;
pub(crate) mod shape;
pub(crate) mod stated;
pub(crate) mod timers;
pub(crate) mod timing;
pub(crate) mod transport;
pub(crate) mod wire;
