//! Latency of a frame: the cable, the devices at its ends, and members that forward frames.
//!
//! The delay of a cable follows from its length and medium. Each side adds the latency of MAC, PHY and error correction.
//! Serialisation is not included: it follows from rate and frame. Cable delays are in picoseconds, because three metres of copper
//! take 13.8 ns.

use rackloom_protocol::{
    ForwardingConfig, ForwardingPriority, RequestDrain, SharedBufferConfig, TransitQueues,
};

use crate::model::bounds::{BUFFER_BYTES_MAX, MILLISECOND_NS};
use crate::setting::named_value::{NamedValue, named_values};
use crate::setting::section::{Field, Text, Visit, section, visit_below};
use crate::setting::table::{Key, Kind, REQUIRED};

named_values! {
    /// Material of a cable.
    pub enum Medium {
        /// Copper, with 4.6 ns per metre.
        #[default]
        Copper = "copper",
        /// Fibre, with 4.9 ns per metre: light in glass of refractive index 1.47 (ours).
        Fibre = "fibre",
    }
}

impl Medium {
    /// Returns the propagation delay per metre, in picoseconds.
    #[must_use]
    pub const fn picoseconds_per_metre(self) -> u64 {
        match self {
            Self::Copper => 4_600,
            Self::Fibre => 4_900,
        }
    }
}

named_values! {
    /// Condition under which a member begins to forward a frame.
    pub enum ForwardingMode {
        /// The frame has arrived completely.
        #[default]
        StoreAndForward = "store-and-forward",
        /// The frame has begun to arrive.
        CutThrough = "cut-through",
    }
}

named_values! {
    /// Treatment of a rack that can deadlock.
    pub enum DeadlockPolicy {
        /// The rack is refused.
        #[default]
        Refuse = "refuse",
        /// The rack is accepted, to demonstrate the deadlock.
        Allow = "allow",
    }
}

section! {
    /// Forwarding of frames by a switch, or by a node that relays for others.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ForwardingPlan: FORWARDING = "forwarding" {
        /// Time at which a frame is forwarded: when it has arrived completely, or when it begins to arrive.
        mode: ForwardingMode {
            form = Kind::Choice(ForwardingMode::NAMES);
            default = ForwardingMode::StoreAndForward;
        }
        /// Latency of forwarding a frame.
        latency_ns: u64 {
            key = "latency";
            form = Kind::Time(0, MILLISECOND_NS);
            default = 0;
        }
        /// True if a member's own frames leave only where one more largest frame would fit, so that a ring never deadlocks. `false`
        /// demonstrates the deadlock.
        bubble: bool {
            form = Kind::Flag;
            default = true;
        }
        /// Frames that leave first: frames in transit, or the member's own.
        priority: ForwardingPriority {
            form = Kind::Choice(ForwardingPriority::NAMES);
            default = ForwardingPriority::Transit;
        }
        /// Time at which a node frees the buffer of a request: when it has taken the request, or when all its answers have left.
        /// `answered` demonstrates why answers need a channel of their own.
        drain: RequestDrain {
            form = Kind::Choice(RequestDrain::NAMES);
            default = RequestDrain::AtOnce;
        }
        /// Frames that a frame waits for in a switch, or in a node that relays. `by-output`: those that leave by the same port (virtual
        /// output queues). `by-input`: also those that arrived before it over the same link and channel, for any port; it demonstrates
        /// head-of-line blocking. The channels of a link take turns.
        queues: TransitQueues {
            form = Kind::Choice(TransitQueues::NAMES);
            default = TransitQueues::ByOutput;
        }
        /// One buffer in each member for the frames of all links that pause, in place of their `xoff`.
        buffer: Option<SharedBufferConfig> {
            form = Kind::Table(&BUFFER);
            default = None;
            shown = "the `pfc` of each link";
        }
        /// Bytes that may wait for a channel of a port. A data frame that joins more is marked, the next acknowledgement of its receiver
        /// says so, and its sender counts that. With `transport.congestion: dctcp` it also becomes slower.
        mark_above_bytes: Option<u32> {
            key = "mark_above";
            form = Kind::Size(0, BUFFER_BYTES_MAX);
            default = None;
            shown = "nothing is marked";
        }
        /// Treatment of a rack whose channels can wait for each other in a cycle. `allow` accepts it, to demonstrate the deadlock.
        deadlock: DeadlockPolicy {
            form = Kind::Choice(DeadlockPolicy::NAMES);
            default = DeadlockPolicy::Refuse;
        }
    }
}

section! {
    /// Shared buffer for a file that states its size only.
    pub(crate) const BUFFER_DEFAULT: SharedBufferConfig, BUFFER = "forwarding.buffer" {
        /// Size of the buffer of each switch, and of each node that relays.
        bytes: u64 {
            form = Kind::Size(1, BUFFER_BYTES_MAX);
            default = 1;
            shown = REQUIRED;
        }
        /// Ratio of the bytes that a channel of a link may hold to the free bytes, before the neighbour is paused.
        alpha_thousandths: u32 {
            key = "alpha";
            form = Kind::Factor(1, 64_000);
            default = 1_000;
            ours = true;
        }
        /// Reserve of each channel of each link beside the shared buffer.
        private_bytes: u32 {
            key = "private";
            form = Kind::Size(0, BUFFER_BYTES_MAX);
            default = 0;
        }
    }
}

impl Field for Option<SharedBufferConfig> {
    fn visit(&self, key: &'static Key, _: &Self, visit: &mut dyn Visit) {
        match self {
            Some(buffer) => visit_below(buffer, key, visit),
            None => visit.value(key, &Text("none"), true),
        }
    }
}

impl ForwardingPlan {
    /// Returns the rules of the protocol core.
    #[must_use]
    pub fn config(&self) -> ForwardingConfig {
        ForwardingConfig {
            bubble: self.bubble,
            priority: self.priority,
            drain: self.drain,
            queues: self.queues,
            mark_above_bytes: self.mark_above_bytes,
            shared_buffer: self.buffer,
        }
    }
}
