//! Readers of the tables of a rack file, one per table or group of tables.

pub(in crate::read) mod channels;
pub(in crate::read) mod expect;
pub(in crate::read) mod hosts;
pub(in crate::read) mod job;
mod link_names;
pub(in crate::read) mod links;
pub(in crate::read) mod members;
mod pause;
mod retry;
mod seats;
pub(in crate::read) mod security;
pub(in crate::read) mod settings;
pub(in crate::read) mod topology;
