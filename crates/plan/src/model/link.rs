//! Links of a rack, and their profiles.
//!
//! A profile describes the effect of a link on frames: rate, latency, faults, credits, retry and pauses. This file holds data and the
//! latency of a link. It applies no fault.

use rackloom_protocol::{CreditConfig, CreditUpdates, Edge};

use crate::model::headers::HeaderProfile;
use crate::model::loss::{Burst, LossByKind};
use crate::model::of_link::{OwnChannels, OwnCredits};
use crate::model::pause::PausePlan;
use crate::model::retry::RetryPlan;
use crate::model::timing::{Medium, SideLatency};

const PICOSECONDS_PER_NANOSECOND: u64 = 1_000;
const MILLIMETRES_PER_METRE: u64 = 1_000;

/// Describes one link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkPlan {
    /// `n0--n1`: the names of both ends, `edge.a` first.
    pub name: String,
    /// Ends, ports and plane.
    pub edge: Edge,
    /// Properties of the link.
    pub profile: LinkProfile,
    /// Credits of each direction.
    pub credits: CreditConfig,
    /// Rules by which credits return.
    pub updates: CreditUpdates,
}

/// Properties of a link, equal in both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkProfile {
    /// Rate in bits per second. `None` is as fast as the wire permits.
    pub rate_bits_per_s: Option<u64>,
    /// Propagation delay in nanoseconds, used if `length_mm` is `None`. See [`LinkProfile::DELAY_DEFAULT_NS`] and
    /// [`LinkProfile::latency_ns`].
    pub delay_ns: u64,
    /// Length of the cable in millimetres. Replaces `delay_ns`.
    pub length_mm: Option<u64>,
    /// Material of the cable.
    pub medium: Medium,
    /// Latency of the devices at both ends.
    pub sides: SideLatency,
    /// Headers that count against the rate, in virtual time.
    pub headers: HeaderProfile,
    /// Probability that a frame is lost.
    pub loss: f64,
    /// Parameters of burst losses, in addition to `loss`.
    pub burst: Option<Burst>,
    /// Probability of loss for frames of single kinds. Replaces `loss` for these kinds.
    pub loss_by_kind: LossByKind,
    /// Probability that a bit on the wire is wrong. A frame with a wrong bit is lost.
    pub bit_error_rate: f64,
    /// Probability that a bit of a frame is flipped.
    pub corrupt: f64,
    /// Probability that a frame is delivered twice.
    pub duplicate: f64,
    /// Probability that a frame is overtaken by later ones.
    pub reorder: f64,
    /// Seed of this link's faults. Replaces the plan's seed.
    pub seed: Option<u64>,
    /// Numbers of data frames that are lost.
    pub drop_frames: DropFrames,
    /// Credits of each direction. Replaces the credits of the rack.
    pub credits: OwnCredits,
    /// Use of the rack's channels by this link.
    pub channels: OwnChannels,
    /// Link-level retry. `None` is off.
    pub retry: Option<RetryPlan>,
    /// Pauses in place of credits. `None` is off.
    pub pause: Option<PausePlan>,
}

/// Numbers of data frames to lose, counted from one, per direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DropFrames {
    /// From `edge.a` to `edge.b`.
    pub forward: Vec<u64>,
    /// From `edge.b` to `edge.a`.
    pub backward: Vec<u64>,
}

impl LinkProfile {
    /// Delay of a link for which the file states none, in nanoseconds. It is small compared with any software path. A real wire
    /// need not add it if the profile sets nothing else.
    pub const DELAY_DEFAULT_NS: u64 = 500;

    /// Returns true if frames can be lost, corrupted, duplicated or reordered.
    #[must_use]
    pub fn has_faults(&self) -> bool {
        let rates = [self.loss, self.bit_error_rate, self.corrupt, self.duplicate, self.reorder];
        rates.iter().any(|rate| *rate > 0.0)
            || self.drop_frames != DropFrames::default()
            || self.burst.is_some()
            || self.loss_by_kind.loses()
    }
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

impl Default for LinkProfile {
    fn default() -> Self {
        Self {
            rate_bits_per_s: None,
            delay_ns: Self::DELAY_DEFAULT_NS,
            length_mm: None,
            medium: Medium::default(),
            sides: SideLatency::default(),
            headers: HeaderProfile::default(),
            loss: 0.0,
            burst: None,
            loss_by_kind: LossByKind::default(),
            bit_error_rate: 0.0,
            corrupt: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            seed: None,
            drop_frames: DropFrames::default(),
            credits: OwnCredits::default(),
            channels: OwnChannels::default(),
            retry: None,
            pause: None,
        }
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
