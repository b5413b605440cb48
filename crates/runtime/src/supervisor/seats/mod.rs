//! Seats of the members of this host: their processes, the sockets to them, and their logs.

pub(crate) mod logs;
pub(crate) mod page;
pub(crate) mod process;
pub(crate) mod service;
pub(crate) mod socket;
