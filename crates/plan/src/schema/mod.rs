//! Declarations of all keys of rack files and fault scripts.
//!
//! A [`Table`] lists its [`Key`]s. A key has a [`Kind`] with the range of its values, a default and a meaning. This
//! declaration determines the refusal of unknown keys (`read`), the ranges that are checked (`check`), the JSON schema
//! for editors ([`json`]) and, enforced by a test, every row of `docs/topology-file.md`.
//!
//! This module reads no values.

mod channels;
mod faults;
mod hosts;
mod job;
pub(crate) mod json;
mod link;
mod members;
mod protocol;
mod rack;
mod security;
mod shape;
#[cfg(test)]
mod tests;

pub(crate) use crate::setting::table::{By, Choose, Key, Kind, REQUIRED, Table, key, table};
pub(crate) use channels::{CHANNELS, CHANNELS_FORMS, LANES};
pub(crate) use faults::{AFTER, EVENT, EVERY_NS_MIN, FAULTS, FAULTS_EXPECT, WHEN};
pub(crate) use hosts::HOST;
pub(crate) use job::{BANDWIDTH, COLLECTIVE, EXPECT, JOB, LATENCY, LITMUS, SIZES, TRAFFIC};
pub(crate) use link::{BURST, LINK, LINK_CHANNELS, LINK_CREDITS, LLR, LOSS_BY_KIND, PFC};
pub(crate) use members::{DEFAULTS, GROUP, LOCAL, MEMORY, NODE, SERVER, SWITCH, TENANT};
pub(crate) use protocol::{
    BUFFER, CREDITS, FORWARDING, PACKING, PATHS, TIMERS, TIMERS_FORMS, TRANSPORT, WINDOW_PACKETS_MAX,
};
pub(crate) use rack::{FRAME_BYTES_MIN, HEADER_BYTES, RACK};
pub(crate) use security::SECURITY;
pub(crate) use shape::{CUSTOM, CUSTOM_LINK, FULL_MESH, HOPS_MAX, LINKS_MAX, MEMBERS_MAX, RING, SHAPE, STAR};
