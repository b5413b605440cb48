//! How long a frame is under way: the cable, the devices at its ends, and members that pass frames on.
//!
//! A cable's delay follows from its length and medium; each side adds what its MAC, its PHY and its error correction take.
//! Serialisation is not here: it follows from the rate and the frame. Times are kept in picoseconds where a cable makes
//! them, because three metres of copper are 13.8 ns.

use rackloom_protocol::ForwardingConfig;

use crate::plan::LinkProfile;

const PICOSECONDS_PER_NANOSECOND: u64 = 1_000;
const MILLIMETRES_PER_METRE: u64 = 1_000;

/// What a cable is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Medium {
    /// 4.6 ns per metre.
    #[default]
    Copper,
    /// 4.9 ns per metre: light in glass of refractive index 1.47 (ours).
    Fibre,
}

impl Medium {
    /// All media, the default first.
    pub const ALL: [Self; 2] = [Self::Copper, Self::Fibre];

    /// Name in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copper => "copper",
            Self::Fibre => "fibre",
        }
    }

    /// What a signal takes for a metre of it.
    #[must_use]
    pub const fn picoseconds_per_metre(self) -> u64 {
        match self {
            Self::Copper => 4_600,
            Self::Fibre => 4_900,
        }
    }
}

/// What each side of a link adds to a frame's way, in both directions alike.
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
    /// All of one side.
    #[must_use]
    pub const fn total_ns(self) -> u64 {
        self.mac_ns + self.phy_ns + self.fec_ns
    }
}

/// When a member that passes a frame on may begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardingMode {
    /// When it has all of it.
    #[default]
    StoreAndForward,
    /// As soon as it begins to come in.
    CutThrough,
}

impl ForwardingMode {
    /// All modes, the default first.
    pub const ALL: [Self; 2] = [Self::StoreAndForward, Self::CutThrough];

    /// Name in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StoreAndForward => "store-and-forward",
            Self::CutThrough => "cut-through",
        }
    }
}

/// What it takes a switch, or a node that relays for others, to pass a frame on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwardingPlan {
    /// When it may begin.
    pub mode: ForwardingMode,
    /// What it adds.
    pub latency_ns: u64,
    /// How it is done beside sending frames of one's own.
    pub rules: ForwardingConfig,
    /// A rack that can stand still for ever is accepted: somebody wants to see it.
    pub allows_deadlock: bool,
}

impl LinkProfile {
    /// From one end to the other without serialisation: the cable, or what the file says in its place, and both sides.
    #[must_use]
    pub const fn latency_ps(&self) -> u64 {
        let propagation_ps = match self.length_mm {
            // A length is at most some kilometres (checked), so nothing overflows.
            Some(length_mm) => {
                length_mm.saturating_mul(self.medium.picoseconds_per_metre()) / MILLIMETRES_PER_METRE
            }
            None => self.delay_ns.saturating_mul(PICOSECONDS_PER_NANOSECOND),
        };
        propagation_ps.saturating_add(
            self.sides.total_ns().saturating_mul(2).saturating_mul(PICOSECONDS_PER_NANOSECOND),
        )
    }

    /// The same in whole nanoseconds, rounded up.
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
