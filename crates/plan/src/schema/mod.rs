//! Declarations of all keys of rack files and fault scripts.
//!
//! A [`Table`] lists its [`Key`]s. A key has a [`Kind`] with the range of its values, a default and a meaning. This
//! declaration determines the refusal of unknown keys (`read`), the ranges that are checked (`check`), the JSON schema
//! for editors ([`json`]) and, enforced by a test, every row of `docs/topology-file.md`.
//!
//! This module reads no values.

mod faults;
mod job;
pub(crate) mod json;
mod members;
mod rack;
mod shape;
#[cfg(test)]
mod tests;

pub(crate) use faults::{
    AFTER, AfterKeys, EVENT, EVERY_NS_MIN, EXPECTATIONS, EventKeys, FAULTS, FAULTS_EXPECT, ScriptKeys, WHEN,
    WhenKeys,
};
pub(crate) use job::JOB;
pub(crate) use members::{DEFAULTS, GROUP, MEMORY, MemorySize, NODE, SERVER, SWITCH, SeatKeys};
pub(crate) use rack::RACK;
pub(crate) use shape::{
    CUSTOM, CUSTOM_LINK, CustomLinkKeys, FullMeshKeys, HOPS_MAX, LINKS_MAX, MEMBERS_MAX, RingKeys, SHAPE,
    StarKeys,
};

pub(crate) use crate::model::channels::{CHANNELS, LANES};
pub(crate) use crate::model::credits::CREDITS;
pub(crate) use crate::model::expect::EXPECT;
pub(crate) use crate::model::hosts::HOST;
pub(crate) use crate::model::job::{BANDWIDTH, COLLECTIVE, LATENCY, LITMUS, SIZES, TRAFFIC};
pub(crate) use crate::model::link::LINK;
pub(crate) use crate::model::local::LOCAL;
pub(crate) use crate::model::loss::{BURST, LOSS_BY_KIND};
pub(crate) use crate::model::member::{SECURITY, TENANT};
pub(crate) use crate::model::of_link::{LINK_CHANNELS, LINK_CREDITS};
pub(crate) use crate::model::paths::PATHS;
pub(crate) use crate::model::pause::PFC;
pub(crate) use crate::model::rack_settings::{FRAME_BYTES_MIN, HEADER_BYTES};
pub(crate) use crate::model::retry::LLR;
pub(crate) use crate::model::timers::TIMERS;
pub(crate) use crate::model::timing::{BUFFER, FORWARDING};
pub(crate) use crate::model::transport::{PACKING, TRANSPORT};
pub(crate) use crate::setting::table::{By, Choose, Key, Kind, REQUIRED, Table};
