//! Kinds of wires, one module for each value of the key `wire`.

pub mod packet;
pub mod shared_memory;
pub mod udp;
