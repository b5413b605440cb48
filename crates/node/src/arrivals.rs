//! What came in, and which of it was not used and why: for captures, and for whoever judges what a member takes.
//!
//! A member counts what it drops and names no frame. Its counts before and after one frame say whether it was that one.
//! Frames that a switch drops later, because their way has vanished meanwhile, are counted by it and not seen here.

use rackloom_protocol::{DropReason, Instant, LeaseId, Member, PortId};

/// Called for every frame that came in at a port, with the reason why it was not used, if it was not.
///
/// `Send`, not `Sync`: the thread that drives the member calls it.
pub type ArrivalWatch = Box<dyn FnMut(PortId, &[u8], Option<DropReason>) + Send>;

/// What comes to one member, watched.
#[derive(Default)]
pub(crate) struct Arrivals {
    watches: Vec<ArrivalWatch>,
}

impl Arrivals {
    pub(crate) fn add(&mut self, watch: ArrivalWatch) {
        self.watches.push(watch);
    }

    /// Give the member a frame, and say what became of it.
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
        let reason = member.port_counters(port).dropped_since(&before);
        self.watches.iter_mut().for_each(|watch| watch(port, bytes, reason));
    }
}

impl std::fmt::Debug for Arrivals {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Arrivals").finish_non_exhaustive()
    }
}
