//! The engine of a node: its core under a lock, the threads that drive it, and the operations in flight.

pub(super) mod activity;
pub(super) mod background;
pub(super) mod blocking;
pub(super) mod core;
pub(super) mod deaths;
pub(super) mod handled;
pub(super) mod held;
pub(super) mod member;
pub(super) mod node_engine;
pub(super) mod order;
pub(super) mod posted;
pub(super) mod table;
pub(super) mod uses;
