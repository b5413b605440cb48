//! Members: nodes, switches, hosts, and paths between them.

pub(crate) mod device;
pub(crate) mod hosts;
pub(crate) mod hub;
pub(crate) mod local;
pub(crate) mod member;
pub(crate) mod paths;
pub(crate) mod shape;
