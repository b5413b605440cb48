//! The machine of a rack's processes: memory, signals, files, the run directory, and the program that
//! supervisors and seats run.

pub mod capacity;
pub mod child;
pub mod directory;
pub mod exclusive;
pub mod here;
pub mod interruption;
pub mod logging;
pub(crate) mod processors;
pub mod program;
