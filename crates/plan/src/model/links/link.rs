//! Links of a rack, and their profiles.
//!
//! A profile describes the effect of a link on frames: rate, latency, faults, credits, retry and pauses. This file holds data and the
//! latency of a link. It applies no fault.

use rackloom_protocol::{CreditConfig, CreditUpdates, Edge};

use crate::model::bounds::{DELAY_NS_MAX, RATE_MAX};
use crate::model::links::headers::HeaderProfile;
use crate::model::links::loss::{BURST, Burst, LOSS_BY_KIND, LossByKind};
use crate::model::links::of_link::{LINK_CHANNELS, LINK_CREDITS, OwnChannels, OwnCredits};
use crate::model::links::pause::{PFC, PausePlan};
use crate::model::links::retry::{LLR, RetryPlan};
use crate::model::times::timing::Medium;
use crate::setting::section::{Field, Visit, section};
use crate::setting::table::{Key, Kind, key};

const LENGTH_MM_MAX: u64 = 10_000_000;
/// Largest latency of one stage on one side.
const SIDE_NS_MAX: u64 = 1_000_000;

const PICOSECONDS_PER_NANOSECOND: u64 = 1_000;
const MILLIMETRES_PER_METRE: u64 = 1_000;

/// Describes one link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkPlan {
    /// `n0--n1`: the names of both ends, `edge.a` first.
    pub name: String,
    /// Ends, ports and plane.
    pub edge: Edge,
    /// Dimension of the link in a torus or hypercube. Paths use lower dimensions first. 0 in other shapes.
    pub dimension: u8,
    /// Properties of the link.
    pub profile: LinkProfile,
    /// Credits of each direction.
    pub credits: CreditConfig,
    /// Rules by which credits return.
    pub updates: CreditUpdates,
}

section! {
    /// Properties of a link, equal in both directions.
    #[derive(Clone, Debug, PartialEq)]
    pub struct LinkProfile: LINK = "link" {
        /// Bits per second of the link. An unlimited link is as fast as the wire permits.
        rate_bits_per_s: Option<u64> {
            key = "rate";
            form = Kind::Rate(1_000, RATE_MAX);
            default = None;
        }
        /// Propagation delay from one end of the cable to the other, without serialisation.
        delay_ns: u64 {
            key = "delay";
            form = Kind::Time(0, DELAY_NS_MAX);
            default = LinkProfile::DELAY_DEFAULT_NS;
            ours = true;
            moot_if = |link| link.length_mm.is_some();
        }
        /// Length of the cable, in place of its `delay`: `3m` of copper are 13.8 ns.
        length_mm: Option<u64> {
            key = "length";
            form = Kind::Length(1, LENGTH_MM_MAX);
            default = None;
        }
        /// Material of a cable with a `length`: 4.6 ns per metre of copper, 4.9 of fibre (ours).
        medium: Medium {
            form = Kind::Choice(Medium::NAMES);
            default = Medium::Copper;
            shown = "copper, where there is a `length`";
            moot_if = |link| link.length_mm.is_none();
        }
        /// Latency of medium access at each of the two ends.
        mac_latency_ns: u64 {
            key = "mac_latency";
            form = Kind::Time(0, SIDE_NS_MAX);
            default = 0;
        }
        /// Latency of the physical layer at each end.
        phy_latency_ns: u64 {
            key = "phy_latency";
            form = Kind::Time(0, SIDE_NS_MAX);
            default = 0;
        }
        /// Latency of forward error correction at each end.
        fec_latency_ns: u64 {
            key = "fec_latency";
            form = Kind::Time(0, SIDE_NS_MAX);
            default = 0;
        }
        /// Headers that count against the `rate`, in virtual time: those on the wire, or those that a fabric of that kind would put around
        /// the same operations.
        headers: HeaderProfile {
            form = Kind::Choice(HeaderProfile::NAMES);
            default = HeaderProfile::Own;
        }
        /// Probability that a frame is lost.
        loss: f64 {
            form = Kind::Probability;
            default = 0.0;
        }
        /// Bursts of losses, in addition to `loss`.
        burst: Option<Burst> {
            form = Kind::Table(&BURST);
            default = None;
            shown = "none";
        }
        /// Probability that a frame of this kind is lost, in place of `loss`: `{ack: 10%, data: 0}`.
        loss_by_kind: LossByKind {
            form = Kind::Table(&LOSS_BY_KIND);
            default = LossByKind::default();
            shown = "";
        }
        /// Probability that a bit on the wire is wrong. A frame with a wrong bit is lost: of frames of L bytes, preamble and gap included, a
        /// share of 1 - (1 - rate)^8L, in addition to the losses of `loss`.
        bit_error_rate: f64 {
            form = Kind::Probability;
            default = 0.0;
        }
        /// Probability that one bit of a frame is flipped, headers included.
        corrupt: f64 {
            form = Kind::Probability;
            default = 0.0;
        }
        /// Probability that a frame is delivered twice.
        duplicate: f64 {
            form = Kind::Probability;
            default = 0.0;
        }
        /// Probability that one to three later frames overtake a frame.
        reorder: f64 {
            form = Kind::Probability;
            default = 0.0;
        }
        /// Seed of this link's faults, in place of the seed of the rack.
        seed: Option<u64> {
            form = Kind::Count(0, u64::MAX);
            default = None;
            shown = "the rack's";
        }
        /// Numbers of data frames that are lost, counted from 1 in each direction. Frames without operations are not counted. A list holds
        /// for both directions; `{n0->n1: [901]}`, under `links` only, for one.
        drop_frames: DropFrames {
            form = Kind::Either(&[Kind::Counts, Kind::CountsByDirection]);
            default = DropFrames::default();
            shown = "none";
        }
        /// Credits of each direction of the link, and their return, in place of those of all links: a number, or a table.
        credits: OwnCredits {
            form = Kind::Either(&[Kind::Count(1, u32::MAX as u64), Kind::Table(&LINK_CREDITS)]);
            default = OwnCredits::default();
            shown = "as `credits` says";
            encoded = false;
        }
        /// Division of the link into the rack's `channels`. Without it (`off`) all channels share the credits of the link and one queue;
        /// frames keep their channel for the links behind it.
        channels: OwnChannels {
            form = Kind::Either(&[Kind::Choice(&["on", "off"]), Kind::Table(&LINK_CHANNELS)]);
            default = OwnChannels::default();
            shown = "`on`";
        }
        /// Link-level retry: both ends number frames and repeat frames that the link loses.
        llr: Option<RetryPlan> {
            form = Kind::Either(&[Kind::Choice(&["on", "off"]), Kind::Table(&LLR)]);
            default = None;
            shown = "`off`";
        }
        /// Pauses in place of credits: a receiver without free space pauses its neighbour, for each channel.
        pfc: Option<PausePlan> {
            form = Kind::Either(&[Kind::Choice(&["on", "off"]), Kind::Table(&PFC)]);
            default = None;
            shown = "`off`";
        }
    }
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
    /// Returns the latency of all stages of one side, in nanoseconds.
    #[must_use]
    pub const fn side_ns(&self) -> u64 {
        self.mac_latency_ns.saturating_add(self.phy_latency_ns).saturating_add(self.fec_latency_ns)
    }

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
        propagation_ps
            .saturating_add(self.side_ns().saturating_mul(2).saturating_mul(PICOSECONDS_PER_NANOSECOND))
    }

    /// Returns the latency from one end to the other in nanoseconds, rounded up, without serialisation.
    #[must_use]
    pub const fn latency_ns(&self) -> u64 {
        self.latency_ps().div_ceil(PICOSECONDS_PER_NANOSECOND)
    }
}

static FORWARD: Key = key("drop_frames.forward", Kind::Counts, "none", "");
static BACKWARD: Key = key("drop_frames.backward", Kind::Counts, "none", "");

impl Field for DropFrames {
    fn visit(&self, _: &'static Key, default: &Self, visit: &mut dyn Visit) {
        self.forward.visit(&FORWARD, &default.forward, visit);
        self.backward.visit(&BACKWARD, &default.backward, visit);
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
        let profile = LinkProfile {
            delay_ns: 500,
            mac_latency_ns: 10,
            phy_latency_ns: 20,
            fec_latency_ns: 70,
            ..LinkProfile::default()
        };
        assert_eq!(profile.latency_ns(), 700);
    }
}
