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
    CUSTOM, CUSTOM_LINK, CustomLinkKeys, FullMeshKeys, HOPS_MAX, HypercubeKeys, LINKS_MAX, LeafSpineKeys,
    MEMBERS_MAX, RingKeys, SHAPE, StarKeys, TorusKeys,
};

pub(crate) use crate::model::jobs::expect::EXPECT;
pub(crate) use crate::model::jobs::job::{BANDWIDTH, COLLECTIVE, LATENCY, LITMUS, SIZES, TRAFFIC};
pub(crate) use crate::model::links::channels::{CHANNELS, LANES};
pub(crate) use crate::model::links::credits::CREDITS;
pub(crate) use crate::model::links::link::LINK;
pub(crate) use crate::model::links::loss::{BURST, LOSS_BY_KIND};
pub(crate) use crate::model::links::of_link::{LINK_CHANNELS, LINK_CREDITS};
pub(crate) use crate::model::links::pause::PFC;
pub(crate) use crate::model::links::retry::LLR;
pub(crate) use crate::model::members::device::DEVICE;
pub(crate) use crate::model::members::hosts::HOST;
pub(crate) use crate::model::members::local::LOCAL;
pub(crate) use crate::model::members::member::{SECURITY, TENANT};
pub(crate) use crate::model::members::paths::PATHS;
pub(crate) use crate::model::rack_settings::{FRAME_BYTES_MIN, HEADER_BYTES};
pub(crate) use crate::model::times::timers::TIMERS;
pub(crate) use crate::model::times::timing::{BUFFER, FORWARDING};
pub(crate) use crate::model::transport::{PACKING, TRANSPORT};
use crate::setting::value::Value;

pub(crate) use crate::setting::table::{By, Choose, Key, Kind, REQUIRED, Table};

/// Declaration of one key of a rack file, for options of commands that replace its value.
#[derive(Clone, Copy, Debug)]
pub struct DeclaredKey {
    key: &'static Key,
}

/// Returns the declaration of the key at this path, such as `job.collective.op` or `transport.mode`, or `None` if there is none.
#[must_use]
pub fn declared_key(path: &str) -> Option<DeclaredKey> {
    let (tables, name) = path.rsplit_once('.').map_or((None, path), |(tables, name)| (Some(tables), name));
    let table = tables
        .into_iter()
        .flat_map(|tables| tables.split('.'))
        .try_fold(&RACK, |table, name| table.find(name).and_then(|key| key.kind.table()))?;
    table.find(name).map(|key| DeclaredKey { key })
}

impl DeclaredKey {
    /// Returns the meaning: one or more sentences.
    #[must_use]
    pub const fn meaning(&self) -> &'static str {
        self.key.meaning
    }

    /// Returns the first sentence of the meaning, without its full stop.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        let meaning = self.key.meaning;
        meaning.split_once(". ").map_or_else(|| meaning.trim_end_matches('.'), |(first, _)| first)
    }

    /// Reads a value of the key, such as `1MiB` for a size.
    ///
    /// # Errors
    /// Message and hint about a text that is no value of the key, or a number outside of its range, joined by `; hint: `.
    pub fn read<T: DeclaredValue>(&self, text: &str) -> Result<T, String> {
        let read = T::read(text, &self.key.kind).and_then(|value| {
            let beyond = value.number().and_then(|number| self.key.beyond_range(self.key.name, number));
            beyond.map_or(Ok(value), Err)
        });
        read.map_err(|complaint| {
            let (message, hint) = complaint.finish();
            format!("{message}; hint: {hint}")
        })
    }
}

/// Type of a value that [`DeclaredKey::read`] returns: numbers, named values and shares.
#[expect(private_bounds, reason = "only this crate has readers of values")]
pub trait DeclaredValue: Value {}

impl<T: Value> DeclaredValue for T {}
