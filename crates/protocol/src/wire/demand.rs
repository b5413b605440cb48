//! Packets that wait at a sender behind a packet, in six bits of its header.
//!
//! Up to 31 packets are counted exactly. Above, the number is rounded down to a multiple of 32, up to 1024. A number that is too small does
//! no harm: the next packets say more.

use super::layout::TRAFFIC_DEMAND_SHIFT;

/// Numbers below this one are exact, and larger ones are multiples of it.
const EXACT: usize = 32;

/// Packets that wait behind a packet: a number of six bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand(u8);

impl Demand {
    /// No packet waits, or the rack has no grants.
    pub const NONE: Self = Self(0);
    /// Largest number of packets that can be expressed.
    pub const PACKETS_MAX: usize = 32 * EXACT;

    /// Returns the demand for this many packets, rounded down.
    #[must_use]
    pub const fn of_packets(packets: usize) -> Self {
        if packets < EXACT {
            return Self(packets as u8);
        }
        let bounded = if packets < Self::PACKETS_MAX { packets } else { Self::PACKETS_MAX };
        Self((EXACT - 1 + bounded / EXACT) as u8)
    }

    /// Returns the number of packets.
    #[must_use]
    pub const fn packets(self) -> usize {
        let code = self.0 as usize;
        if code < EXACT { code } else { (code - EXACT + 1) * EXACT }
    }

    /// Reads the demand in a traffic field.
    #[inline]
    pub(super) const fn of_traffic(traffic: u8) -> Self {
        Self(traffic >> TRAFFIC_DEMAND_SHIFT)
    }

    /// Returns the bits of the traffic field.
    #[inline]
    pub(super) const fn traffic(self) -> u8 {
        self.0 << TRAFFIC_DEMAND_SHIFT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demand_is_exact_when_small_and_never_too_large() {
        for packets in 0..3_000 {
            let read = Demand::of_traffic(Demand::of_packets(packets).traffic() | 3).packets();
            let expected = if packets < 32 { packets } else { (packets - packets % 32).min(1_024) };
            assert_eq!(read, expected, "{packets}");
        }
    }
}
