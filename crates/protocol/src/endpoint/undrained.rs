//! Buffers that a node keeps back, as an injected fault.
//!
//! A node drains all frames: the credits of a frame are free as soon as it is accepted. Real nodes may not. A
//! responder without free space for more answers leaves requests queued until answers have left, and a consumer may stop
//! completely. This file emulates such a node: frames are accepted as usual, and their credits are kept back. The
//! fault shows why answers need a channel of their own.
//!
//! It is off by default.

use alloc::vec::Vec;

use crate::config::RequestDrain;
use crate::forwarding::forwarder::Withheld;
use crate::ids::{Class, NodeId};

/// Credits of frames that were accepted and count as not drained.
#[derive(Debug, Default)]
pub(super) struct Undrained {
    pub(super) kept: Vec<Kept>,
    pub(super) is_stopped: [bool; Class::COUNT],
    /// True if any class is stopped, or requests wait for their answers to leave.
    pub(super) is_in_use: bool,
}

/// Accepted frame whose credits are kept back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub(super) source: NodeId,
    pub(super) class: Class,
    pub(super) withheld: Withheld,
}

impl Undrained {
    pub(super) fn new(drain: RequestDrain) -> Self {
        Self { is_in_use: drain == RequestDrain::Answered, ..Self::default() }
    }
}
