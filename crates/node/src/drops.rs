//! Which received frame was not used, and why: for captures.
//!
//! A member counts what it drops and names no frame. Its counts before and after one frame say whether it was that one.
//! Frames that a switch drops later, because their way has vanished meanwhile, are counted by it and not seen here.

use rackloom_protocol::{DropReason, Instant, LeaseId, Member, PortId};

/// Called for every frame that came in at a port and was not used.
///
/// `Send`, not `Sync`: the thread that drives the member calls it.
pub type DropWatch = Box<dyn FnMut(PortId, &[u8], DropReason) + Send>;

/// The counts of one member, watched.
pub(crate) struct Drops {
    watch: DropWatch,
}

impl Drops {
    pub(crate) fn new(watch: DropWatch) -> Self {
        Self { watch }
    }

    /// Give the member a frame, and say so if it does not use it.
    pub(crate) fn handle_frame(
        &mut self,
        member: &mut impl Member,
        now: Instant,
        port: PortId,
        lease: LeaseId,
        bytes: &[u8],
    ) {
        let before = member.port_counters(port).dropped;
        member.handle_frame(now, port, lease, bytes);
        if let Some(reason) = member.port_counters(port).dropped_since(&before) {
            (self.watch)(port, bytes, reason);
        }
    }
}

impl std::fmt::Debug for Drops {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Drops").finish_non_exhaustive()
    }
}
