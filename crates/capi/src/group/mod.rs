//! Groups of nodes and their collectives, one file for each topic.

mod arrays;
pub mod collective;
pub mod derive;
pub mod membership;
pub mod options;
pub mod persistent;
pub mod rechoice;
pub mod record;
pub mod reduction;
mod slices;
