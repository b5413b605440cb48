//! Memory is I/O too: the core asks ([`MemoryRequest`]) and is told ([`MemoryDone`]).
//!
//! Host memory answers inside the same call; a GPU's asynchronous copy answers later. The core acknowledges an
//! operation only after the answer, so "acknowledge only after visible" is a transition one can read.
//! This room does not touch bytes: it checks who may touch which.

pub mod regions;
pub mod vector;

use crate::ids::{Key, RegionId, Tenant};
use crate::operation::Atomic;

/// A received frame that the core still refers to. The number is the device's; it is free again after release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub u32);

/// Names one memory request until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryToken(pub u32);

/// What the core wants done to the member's own memory. Requests are to be carried out in the order of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRequest<'a> {
    /// To be named in the answer.
    pub token: MemoryToken,
    /// The region; bounds and permission have been checked.
    pub region: RegionId,
    /// What to do.
    pub access: MemoryAccess<'a>,
}

/// Kinds of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryAccess<'a> {
    /// Copy these ranges of the leased frame into the region.
    Write {
        /// The frame that holds the bytes.
        lease: LeaseId,
        /// Which bytes go where, in order.
        ranges: &'a [FrameRange],
    },
    /// Read at most 256 bytes and hand them back as [`MemoryDone::Bytes`].
    Read {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        length: u32,
    },
    /// One atomic, answered with the old value as [`MemoryDone::Value`].
    Atomic {
        /// Address, a multiple of the width.
        offset: u64,
        /// What to do.
        atomic: Atomic,
    },
}

/// Bytes of a frame and their place in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRange {
    /// First byte in the frame.
    pub frame_offset: u32,
    /// Number of bytes.
    pub length: u32,
    /// First byte in the region.
    pub region_offset: u64,
}

/// The answer to a [`MemoryRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryDone<'a> {
    /// A write is visible.
    Written,
    /// What a read found.
    Bytes(&'a [u8]),
    /// What was there before an atomic.
    Value(u64),
    /// The memory did not do it.
    Failed(MemoryFault),
}

/// Why memory did not do what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryFault {
    /// The region is not mapped (any more).
    NotMapped,
    /// The device reported an error.
    Device,
}

/// What a remote caller may do to a region.
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
    /// Everything.
    pub const ALL: Self = Self { read: true, write: true, atomic: true };
    /// Loads and gets only.
    pub const READ: Self = Self { read: true, write: false, atomic: false };
}

/// A region as its owner announces it to the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionConfig {
    /// Name, unique at this owner.
    pub region: RegionId,
    /// Bytes.
    pub length: u64,
    /// What callers must present.
    pub key: Key,
    /// What callers may do.
    pub access: Access,
    /// Who may call: only members of this tenant.
    pub tenant: Tenant,
}
