//! Headroom and duration of pauses (PFC-like) that follow from the link.
//!
//! Headroom stores frames that are in flight when a receiver sends a pause. If the rate of the link is stated, it is the time until the
//! pause arrives and takes effect, plus one delay of the cable for frames sent before that. Between real processes this time is not
//! known, and the transport retransmits frames that are lost there.

use rackloom_protocol::PauseConfig;
use rackloom_protocol::wire::layout::OPERATIONS;

use crate::model::links::headers::{HeaderProfile, wire_bytes};
use crate::model::links::link::LinkProfile;
use crate::model::links::pause::PausePlan;
use crate::model::times::clock::Clock;

/// Rate that stands for an unlimited rate in the duration of quanta, in bits per second (ours).
const RATE_OF_UNLIMITED: u64 = 100_000_000_000;
/// Shortest pause between real processes, because they do not run all the time (ours).
const PAUSE_WALL_NS: u64 = 20_000_000;
const PICOSECONDS_PER_SECOND: u64 = 1_000_000_000_000;
const PICOSECONDS_PER_NANOSECOND: u64 = 1_000;
/// Ethernet header, link header and number of quanta.
const PAUSE_FRAME_BYTES: usize = 48;

impl PausePlan {
    /// Returns the buffer above xoff on a link, in bytes, if each channel may have `capacity_bytes` in all.
    #[must_use]
    pub fn headroom_bytes(&self, profile: &LinkProfile, frame_bytes_max: u16, capacity_bytes: u64) -> u32 {
        self.headroom_bytes.unwrap_or_else(|| {
            let rest = capacity_bytes.saturating_sub(self.xoff_bytes.into());
            let in_flight = self.in_flight_bytes(profile, frame_bytes_max).unwrap_or(rest);
            u32::try_from(in_flight).unwrap_or(u32::MAX)
        })
    }

    /// Returns the number of bytes that can arrive after a frame has caused a pause, including that frame. The pause waits until a
    /// largest frame has left, and the sender may just have begun another one. Returns `None` if the rate is unlimited.
    #[must_use]
    pub fn in_flight_bytes(&self, profile: &LinkProfile, frame_bytes_max: u16) -> Option<u64> {
        let rate = profile.rate_bits_per_s?.max(1);
        let takes_ps =
            |bytes: u64| u128::from(bytes * 8) * u128::from(PICOSECONDS_PER_SECOND) / u128::from(rate);
        // With headers of another profile a frame may take as few bytes as its payload.
        let accounted = match profile.headers {
            HeaderProfile::Own => wire_bytes(frame_bytes_max.into()),
            _ => usize::from(frame_bytes_max).saturating_sub(OPERATIONS),
        };
        let frame_ps = takes_ps(accounted as u64).max(1);
        let word_ps = takes_ps(wire_bytes(PAUSE_FRAME_BYTES) as u64);
        let response_ps = u128::from(self.response_delay_ns) * u128::from(PICOSECONDS_PER_NANOSECOND);
        let blind_ps = frame_ps + word_ps + 2 * u128::from(profile.latency_ps()) + response_ps;
        let frames = blind_ps.div_ceil(frame_ps) + 1;
        Some(u64::try_from(frames).unwrap_or(u64::MAX).saturating_mul(frame_bytes_max.into()))
    }

    /// Returns the configuration for the protocol core.
    #[must_use]
    pub fn config(
        &self,
        profile: &LinkProfile,
        frame_bytes_max: u16,
        capacity_bytes: u64,
        clock: Clock,
    ) -> PauseConfig {
        let rate = profile.rate_bits_per_s.unwrap_or(RATE_OF_UNLIMITED).max(1);
        let quantum_ps = PauseConfig::QUANTUM_BITS.saturating_mul(PICOSECONDS_PER_SECOND) / rate;
        let least_ps = match clock {
            Clock::Virtual => 1,
            Clock::Wall => PAUSE_WALL_NS * PICOSECONDS_PER_NANOSECOND / u64::from(self.quanta.max(1)),
        };
        PauseConfig {
            xoff_bytes: self.xoff_bytes,
            xon_bytes: self.xon_bytes(),
            headroom_bytes: self.headroom_bytes(profile, frame_bytes_max, capacity_bytes),
            quanta: self.quanta,
            quantum_ps: quantum_ps.max(least_ps),
            response_delay_ns: self.response_delay_ns,
            watchdog_ns: self.watchdog_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY_BYTES: u64 = 100 << 10;

    // 976 + 24 bytes last 80 ns at 100 Gbit/s, a pause of 84 bytes 6.72 ns; 500 ns in each direction.
    #[test]
    fn headroom_follows_rate_cable_frame_and_response() {
        let link = |delay_ns| LinkProfile {
            delay_ns,
            rate_bits_per_s: Some(100_000_000_000),
            ..LinkProfile::default()
        };
        let plan = PausePlan::default();
        // 80 + 6.72 + 1000 = 1086.72 ns: 14 frames begin in this time, and one frame caused the pause.
        assert_eq!(plan.headroom_bytes(&link(500), 976, CAPACITY_BYTES), 15 * 976);
        let slow = PausePlan { response_delay_ns: 800, ..plan };
        assert_eq!(slow.headroom_bytes(&link(500), 976, CAPACITY_BYTES), 25 * 976);
        assert_eq!(plan.headroom_bytes(&link(0), 976, CAPACITY_BYTES), 3 * 976);
        assert_eq!(plan.headroom_bytes(&LinkProfile::default(), 976, CAPACITY_BYTES), 36 << 10);
    }

    #[test]
    fn a_quantum_is_512_bits_and_a_pause_between_processes_has_a_minimum() {
        let plan = PausePlan::default();
        let link = LinkProfile { rate_bits_per_s: Some(400_000_000_000), ..LinkProfile::default() };
        assert_eq!(plan.config(&link, 976, CAPACITY_BYTES, Clock::Virtual).pause_ns(1_000), 1_280);
        assert_eq!(
            plan.config(&LinkProfile::default(), 976, CAPACITY_BYTES, Clock::Virtual).pause_ns(1_000),
            5_120
        );
        for quanta in [100, u16::MAX] {
            let pause_ns =
                PausePlan { quanta, ..plan }.config(&link, 976, CAPACITY_BYTES, Clock::Wall).pause_ns(quanta);
            assert!((19_900_000..=20_000_000).contains(&pause_ns), "{pause_ns}");
        }
    }
}
