//! The graph of the rack, what members report about their links, and the tables that follow.
//!
//! [`graph`] is what the plan says, [`reports`] what the members say, [`table`] what follows for one member.

pub mod graph;
pub mod reports;
pub mod table;
