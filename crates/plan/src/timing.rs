//! Latency of a frame: the cable, the devices at its ends, and members that forward frames.
//!
//! The delay of a cable follows from its length and medium. Each side adds the latency of MAC, PHY and error correction.
//! Serialisation is not included: it follows from rate and frame. Cable delays are in picoseconds, because three metres of copper
//! take 13.8 ns.

use rackloom_protocol::ForwardingConfig;

use crate::plan::LinkProfile;

const PICOSECONDS_PER_NANOSECOND: u64 = 1_000;
const MILLIMETRES_PER_METRE: u64 = 1_000;

/// Material of a cable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Medium {
    /// Copper, with 4.6 ns per metre.
    #[default]
    Copper,
    /// Fibre, with 4.9 ns per metre: light in glass of refractive index 1.47 (ours).
    Fibre,
}

impl Medium {
    /// All media, the default first.
    pub const ALL: [Self; 2] = [Self::Copper, Self::Fibre];

    /// Returns the name in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copper => "copper",
            Self::Fibre => "fibre",
        }
    }

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

/// Condition under which a member begins to forward a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardingMode {
    /// The frame has arrived completely.
    #[default]
    StoreAndForward,
    /// The frame has begun to arrive.
    CutThrough,
}

impl ForwardingMode {
    /// All modes, the default first.
    pub const ALL: [Self; 2] = [Self::StoreAndForward, Self::CutThrough];

    /// Returns the name in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StoreAndForward => "store-and-forward",
            Self::CutThrough => "cut-through",
        }
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

impl LinkProfile {
    /// Returns the latency from one end to the other in picoseconds, without serialisation: the cable, or `delay_ns`, and both sides.
    #[must_use]
    pub const fn latency_ps(&self) -> u64 {
        let propagation_ps = match self.length_mm {
            // A length is at most some kilometres (checked), so this does not overflow.
            Some(length_mm) => {
                length_mm.saturating_mul(self.medium.picoseconds_per_metre()) / MILLIMETRES_PER_METRE
            }
            None => self.delay_ns.saturating_mul(PICOSECONDS_PER_NANOSECOND),
        };
        propagation_ps.saturating_add(
            self.sides.total_ns().saturating_mul(2).saturating_mul(PICOSECONDS_PER_NANOSECOND),
        )
    }

    /// Returns the latency from one end to the other in nanoseconds, rounded up, without serialisation.
    #[must_use]
    pub const fn latency_ns(&self) -> u64 {
        self.latency_ps().div_ceil(PICOSECONDS_PER_NANOSECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_metres_of_copper_take_13_8_ns_and_a_length_replaces_the_delay() {
        let cable = LinkProfile { length_mm: Some(3_000), delay_ns: 900, ..LinkProfile::default() };
        assert_eq!((cable.latency_ps(), cable.latency_ns()), (13_800, 14));
        let fibre = LinkProfile { medium: Medium::Fibre, ..cable };
        assert_eq!(fibre.latency_ps(), 14_700);
    }

    #[test]
    fn each_side_adds_its_own() {
        let sides = SideLatency { mac_ns: 10, phy_ns: 20, fec_ns: 70 };
        let profile = LinkProfile { delay_ns: 500, sides, ..LinkProfile::default() };
        assert_eq!(profile.latency_ns(), 700);
    }
}
