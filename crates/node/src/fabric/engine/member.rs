//! The endpoint of a node with its wires and memory.

use rackloom_protocol::Endpoint;

use crate::fabric::memory::bytes::RegionMemory;
use crate::runtime::Runtime;

/// Endpoint that runs over the regions of a node of the library.
pub(in crate::fabric) type Member = Runtime<Endpoint, RegionMemory>;
