//! Values that describe a frame that leaves: its length, the source of its bytes, and its protection.
//!
//! Links, endpoints and the interface to the engine share these values, so they are below all of them.

use crate::ids::RegionId;
use crate::memory::LeaseId;

/// Frame that a member sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Length of the frame in bytes.
    pub length: usize,
    /// Bytes that the engine must still put into the frame.
    pub body: Body,
    /// True if the end-to-end check must be computed once the body is in place.
    pub end_to_end_check: bool,
    /// True if a sleeping receiver must be woken, which usual heartbeats do not.
    pub doorbell: bool,
    /// Protection of the frame by link-level retry.
    pub passage: Passage,
}

/// Source of the rest of a frame's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// The frame is complete.
    Written,
    /// Bytes of the member's own memory.
    Memory {
        /// Region to read.
        region: RegionId,
        /// First byte in the region.
        offset: u64,
        /// First byte in the frame.
        at: usize,
        /// Number of bytes.
        length: usize,
        /// Bytes of the transfer that follow.
        following: Following,
    },
    /// Bytes of a received frame that is forwarded.
    Lease {
        /// The received frame.
        lease: LeaseId,
        /// First byte in both frames.
        at: usize,
        /// Number of bytes.
        length: usize,
    },
    /// The complete frame, from those that the device has kept ([`crate::KeptFrames::keep`]).
    Kept {
        /// Number of frames that were kept after this one.
        behind: usize,
    },
}

/// Rest of a long transfer after some bytes of memory. It does not change until it has left, or any of its values may
/// leave, so that slow memory may read it in advance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Following {
    /// Identifier of the transfer among those of this member; 0 means none.
    pub transfer: u32,
    /// Number of bytes that follow at least.
    pub bytes: u32,
}

/// Protection of a frame by link-level retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Passage {
    /// None: the link has no retry, or the frame is not protected by it.
    #[default]
    Plain,
    /// The member computes the checks of the whole frame, and keeps a copy if the link has retry.
    Kept,
    /// The frame is replayed.
    Repeated,
    /// The frame leaves without protection.
    Unprotected,
    /// The frame is discarded.
    Discarded,
}
