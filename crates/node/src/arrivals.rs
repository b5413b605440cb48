//! Observers of received frames: each frame that a member receives, with the reason why the member dropped it, if it did. Captures and tests use
//! them.
//!
//! A member counts dropped frames by reason and does not report which frame it dropped. This module compares the counters before and after each
//! frame. A frame that a switch drops later, because its path has disappeared meanwhile, is counted by the switch and not reported here.

use rackloom_protocol::{DropReason, Inspect, Instant, LeaseId, PortId};

/// Callback for each frame received at a port. The last argument is the reason why the member dropped the frame, or `None` if it used it.
///
/// `Send`, not `Sync`: the thread that drives the member calls it.
pub type ArrivalWatch = Box<dyn FnMut(PortId, &[u8], Option<DropReason>) + Send>;

/// The observers of the frames that one member receives.
#[derive(Default)]
pub(crate) struct Arrivals {
    watches: Vec<ArrivalWatch>,
}

impl Arrivals {
    pub(crate) fn add(&mut self, watch: ArrivalWatch) {
        self.watches.push(watch);
    }

    /// Passes a frame to the member, then reports the frame and the drop reason, if any, to every observer.
    pub(crate) fn handle_frame(
        &mut self,
        member: &mut impl Inspect,
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
