//! The graph of the rack, what members report about their links, and the tables that follow.

pub mod graph;
