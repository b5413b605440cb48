//! Wires between the members of this host: what each member is given when it starts, and what a process gets that takes a seat later.
//!
//! Rings and datagram sockets are made before the first process and inherited. Interfaces are made after the last process, because each end is
//! created in the namespace of the process that uses it. The supervisor closes the ends of a seat as soon as its process has inherited them: a
//! neighbour detects a death because the socket of the dead process has no other owner.
//!
//! No ends are kept for later processes: a link to a vacant seat has no cable. A process that takes a seat gets new cables, and its neighbours get
//! the other ends.

mod bridges;
pub(crate) mod contract;
mod interfaces;
mod joints;
pub(crate) mod names;
mod packet;
mod shared_memory;
mod udp;
pub(crate) mod wiring;
