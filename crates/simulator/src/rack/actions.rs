//! Actions of a test or a fault script on a running rack.
//!
//! Actions happen at their time, before anything else of that time, in the order in which they were scheduled. An
//! action that names a member or a link that does not exist has no effect.

use rackloom_plan::impair::Direction;
use rackloom_protocol::{NodeId, PortId};

/// Action on the rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A member stops for good: no frames, no timers; frames in flight to it are lost. Other members get no message.
    Kill {
        /// The member.
        member: NodeId,
    },
    /// A member pauses, as a stopped process does: frames to it wait in its device.
    Pause {
        /// The member.
        member: NodeId,
    },
    /// A paused member continues.
    Resume {
        /// The member.
        member: NodeId,
    },
    /// A dead member is followed by a new incarnation of its seat, without a job and with its own memory. Only in a rack that
    /// plays a fault script.
    Restart {
        /// The member.
        member: NodeId,
    },
    /// A cable is cut: frames in flight on it, and frames sent into it, are lost. Carriers stay up.
    Cut {
        /// Index of the link in the plan.
        edge: u16,
        /// One direction, or both.
        direction: Option<Direction>,
    },
    /// A cut cable, or one on which all frames are dropped, works again.
    Restore {
        /// Index of the link in the plan.
        edge: u16,
        /// One direction, or both.
        direction: Option<Direction>,
    },
    /// All frames sent from now on are lost; frames in flight still arrive.
    DropAll {
        /// Index of the link in the plan.
        edge: u16,
        /// One direction, or both.
        direction: Option<Direction>,
    },
    /// One data frame is lost.
    DropDataFrame {
        /// Index of the link in the plan.
        edge: u16,
        /// In this direction.
        direction: Direction,
        /// Number of the frame, counted from 1 for the first that is sent from now on.
        number: u64,
    },
    /// A member's device reports that its carrier has gone or returned. The cable itself does not change.
    Carrier {
        /// The member.
        member: NodeId,
        /// Its port.
        port: PortId,
        /// True if the carrier has returned.
        up: bool,
    },
}
