//! Groups of nodes and their collectives, one file for each topic.

pub mod collective;
pub mod derive;
pub mod membership;
pub mod options;
pub mod record;
