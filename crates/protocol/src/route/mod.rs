//! The graph of the rack, what members report about their links, and the tables that follow.
//!
//! [`graph`] is what the plan says, [`reports`] what the members say, [`table`] what follows for one member,
//! [`channels`] on which virtual channel of a link a frame goes.

pub mod channels;
pub mod graph;
mod hops;
pub mod reports;
pub mod table;
