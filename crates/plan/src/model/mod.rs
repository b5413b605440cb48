//! Checked data: racks, members, links, jobs and their settings.
//!
//! It imports neither readers nor checks.

pub(crate) mod bounds;
pub(crate) mod canonical;
pub(crate) mod defaults;
pub(crate) mod jobs;
pub(crate) mod links;
pub(crate) mod listing;
pub(crate) mod members;
pub(crate) mod objection;
pub(crate) mod plan;
pub(crate) mod rack_settings;
pub(crate) mod random;
pub(crate) mod times;
pub(crate) mod transport;
