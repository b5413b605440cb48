//! Wires between the members of this host: what each member is given when it starts, and when a successor takes its seat.

pub(crate) mod bridges;
pub(crate) mod joints;
pub(crate) mod names;
pub(crate) mod packet;
pub(crate) mod takeover;
pub(crate) mod udp;
pub(crate) mod wiring;
