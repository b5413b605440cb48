//! Operations of the caller and of remote nodes: commands, requests to memory, answers and completions.

pub(super) mod commands;
pub(super) mod completions;
pub(super) mod failed_operations;
pub(super) mod memory_queue;
pub(super) mod messages;
pub(super) mod serving;
pub(super) mod signals_without_data;
