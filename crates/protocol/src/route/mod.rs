//! Routes: the graph of the rack, link reports of members, and the tables computed from them.
//!
//! [`graph`] comes from the plan, [`reports`] from the members, [`table`] and [`tables`] are computed for one member, [`channels`]
//! assigns frames to virtual channels.

pub mod channels;
pub mod graph;
mod hops;
mod report_queue;
pub mod reports;
pub mod table;
pub mod tables;
