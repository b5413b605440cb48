//! Latency of a frame: the cable, the devices at its ends, and members that forward frames.
//!
//! The delay of a cable follows from its length and medium. Each side adds the latency of MAC, PHY and error correction.
//! Serialisation is not included: it follows from rate and frame. Cable delays are in picoseconds, because three metres of copper
//! take 13.8 ns.

use rackloom_protocol::ForwardingConfig;

use crate::setting::word::words;

words! {
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

/// Latency of each side of a link, equal in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SideLatency {
    /// Medium access control.
    pub mac_ns: u64,
    /// Physical layer.
    pub phy_ns: u64,
    /// Forward error correction.
    pub fec_ns: u64,
}

impl SideLatency {
    /// Returns the sum of all stages, in nanoseconds.
    #[must_use]
    pub const fn total_ns(self) -> u64 {
        self.mac_ns + self.phy_ns + self.fec_ns
    }
}

words! {
    /// Condition under which a member begins to forward a frame.
    pub enum ForwardingMode {
        /// The frame has arrived completely.
        #[default]
        StoreAndForward = "store-and-forward",
        /// The frame has begun to arrive.
        CutThrough = "cut-through",
    }
}

/// Forwarding of frames by a switch, or by a node that relays for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwardingPlan {
    /// Condition under which forwarding begins.
    pub mode: ForwardingMode,
    /// Latency of forwarding, in nanoseconds.
    pub latency_ns: u64,
    /// Rules for forwarded frames and the member's own frames, for example bubble flow control.
    pub rules: ForwardingConfig,
    /// True if a rack that can deadlock is accepted, to demonstrate it.
    pub allows_deadlock: bool,
}
