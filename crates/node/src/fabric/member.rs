//! The endpoint of a node with its wires and memory.

use rackloom_protocol::Endpoint;

use super::bytes::RegionMemory;
use crate::runtime::Runtime;

/// Endpoint that runs over the regions of a node of the library.
pub(super) type Member = Runtime<Endpoint, RegionMemory>;
