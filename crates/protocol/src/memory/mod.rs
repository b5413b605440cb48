//! Memory is I/O: the core issues requests ([`MemoryRequest`]) and gets answers ([`MemoryDone`]).
//!
//! Host memory answers in the same call; an asynchronous copy of a GPU answers later. The core acknowledges an
//! operation only after the answer, so "acknowledge only after visible" is an explicit transition. This folder
//! touches no bytes; it checks the permission of accesses.

pub mod regions;
pub mod vector;

use crate::ids::{Key, RegionId, Tenant};
use crate::operation::Atomic;

/// Received frame that the core still refers to. The device chooses the number; it is free again after release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub u32);

/// Identifier of a memory request until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryToken(pub u32);

/// Request of the core to the member's own memory. Requests must be executed in the order of issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRequest<'a> {
    /// Identifier to repeat in the answer.
    pub token: MemoryToken,
    /// Region to access; bounds and permission have been checked.
    pub region: RegionId,
    /// Access to perform.
    pub access: MemoryAccess<'a>,
}

/// Kinds of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryAccess<'a> {
    /// Copies these ranges of the leased frame into the region.
    Write {
        /// Lease of the frame that holds the bytes.
        lease: LeaseId,
        /// Ranges to copy, in order.
        ranges: &'a [FrameRange],
    },
    /// Reads at most 256 bytes and returns them as [`MemoryDone::Bytes`].
    Read {
        /// First byte in the region.
        offset: u64,
        /// Number of bytes.
        length: u32,
    },
    /// Performs one atomic, answered with the old value as [`MemoryDone::Value`].
    Atomic {
        /// Offset in the region, a multiple of the width.
        offset: u64,
        /// Operation to perform.
        atomic: Atomic,
    },
}

/// Range of a frame, and its destination in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRange {
    /// First byte in the frame.
    pub frame_offset: u32,
    /// Number of bytes.
    pub length: u32,
    /// First byte in the region.
    pub region_offset: u64,
}

/// Answer to a [`MemoryRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryDone<'a> {
    /// A write is visible.
    Written,
    /// Bytes that were read.
    Bytes(&'a [u8]),
    /// Value before an atomic.
    Value(u64),
    /// The request failed.
    Failed(MemoryFault),
}

/// Reason for which a memory request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryFault {
    /// The region is not mapped (any more).
    NotMapped,
    /// The device reported an error.
    Device,
}

/// Permitted accesses of remote callers to a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access {
    /// Loads and gets.
    pub read: bool,
    /// Stores, puts and signals.
    pub write: bool,
    /// Fetch-add, compare-swap, swap.
    pub atomic: bool,
}

impl Access {
    /// All accesses.
    pub const ALL: Self = Self { read: true, write: true, atomic: true };
    /// No access.
    pub const NONE: Self = Self { read: false, write: false, atomic: false };
    /// Loads and gets only.
    pub const READ: Self = Self { read: true, write: false, atomic: false };
}

/// Region as its owner registers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionConfig {
    /// Number of the region, unique at this owner.
    pub region: RegionId,
    /// Length in bytes.
    pub length: u64,
    /// Key that callers must present.
    pub key: Key,
    /// Permitted accesses.
    pub access: Access,
    /// Tenant whose members may access the region.
    pub tenant: Tenant,
}
