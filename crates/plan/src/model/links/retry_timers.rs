//! Timers of link-level retry that follow from the link.
//!
//! The replay timer depends on the control loop of the link. In virtual time the loop follows from rate, delay and frame
//! size. Between real processes it depends on scheduling, which the file does not describe. So each clock has its own
//! timer, unless the file states one.

use rackloom_protocol::RetryConfig;

use crate::model::links::headers::wire_bytes;
use crate::model::links::link::LinkProfile;
use crate::model::links::retry::RetryPlan;
use crate::model::times::clock::Clock;

/// Replay timer between real processes, in nanoseconds. It is well above the delay of a neighbour on a busy host and well below the
/// least timeout of the transport.
const REPLAY_TIMER_WALL_NS: u64 = 3_000_000;

/// Largest ratio of a replay timer to its first value between real processes (ours).
const REPLAY_BACK_OFF_MAX: u64 = 64;

impl RetryPlan {
    /// Returns the replay timer of a link, in nanoseconds.
    #[must_use]
    pub fn replay_timer_ns(&self, profile: &LinkProfile, frame_bytes_max: u16, clock: Clock) -> u64 {
        self.replay_timer_ns.unwrap_or_else(|| match clock {
            Clock::Wall => REPLAY_TIMER_WALL_NS.max(loop_ns(profile, frame_bytes_max).saturating_mul(3)),
            Clock::Virtual => {
                let loop_ns = loop_ns(profile, frame_bytes_max);
                // The preset has an upper bound. On a longer link it would send every frame twice.
                RetryConfig::timer_for_loop_ns(loop_ns).max(loop_ns.saturating_mul(2))
            }
        })
    }

    /// Returns the largest value of a replay timer, in nanoseconds. On a busy host a neighbour may not run for a long time, and
    /// repeated replays would take processor time from it. In virtual time, and if the file states the timer, it does not grow.
    fn replay_timer_max_ns(&self, replay_timer_ns: u64, clock: Clock) -> u64 {
        match (self.replay_timer_ns, clock) {
            (None, Clock::Wall) => replay_timer_ns.saturating_mul(REPLAY_BACK_OFF_MAX),
            _ => replay_timer_ns,
        }
    }

    /// Returns the configuration for the protocol core.
    #[must_use]
    pub fn config(&self, profile: &LinkProfile, frame_bytes_max: u16, clock: Clock) -> RetryConfig {
        let replay_timer_ns = self.replay_timer_ns(profile, frame_bytes_max, clock);
        RetryConfig {
            sequence_bits: self.sequence_bits,
            outstanding_frames: self.outstanding_frames,
            outstanding_bytes: self.outstanding_bytes,
            ack_spacing_bytes: self.ack_spacing_bytes,
            ack_delay_ns: self.ack_delay_ns.unwrap_or(replay_timer_ns / 4),
            replay_timer_ns,
            replay_timer_max_ns: self.replay_timer_max_ns(replay_timer_ns, clock),
            replay_count_max: self.replay_count_max,
            flush: self.flush,
        }
    }
}

/// Returns the time from the first bit of a largest frame to the end of an acknowledgement that waits for another largest frame.
pub(crate) fn loop_ns(profile: &LinkProfile, frame_bytes_max: u16) -> u64 {
    let bits = wire_bytes(frame_bytes_max.into()) as u64 * 8;
    let frame_ns = profile
        .rate_bits_per_s
        .map_or(0, |rate| (u128::from(bits) * 1_000_000_000).div_ceil(u128::from(rate.max(1))) as u64);
    (profile.latency_ns() + frame_ns).saturating_mul(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_follows_the_link_in_virtual_time_and_the_host_in_wall_time() {
        let plan = RetryPlan::default();
        let link = |delay_ns, rate| LinkProfile { delay_ns, rate_bits_per_s: rate, ..LinkProfile::default() };
        // 976 + 24 bytes last 80 ns at 100 Gbit/s; with 500 ns each way the loop is 1160 ns.
        let short = link(500, Some(100_000_000_000));
        assert_eq!(plan.replay_timer_ns(&short, 976, Clock::Virtual), 3 * 1160 + 500);
        assert_eq!(plan.replay_timer_ns(&link(0, None), 976, Clock::Virtual), 1_000);
        assert_eq!(plan.replay_timer_ns(&link(3_000, None), 976, Clock::Virtual), 15_500);
        assert_eq!(plan.replay_timer_ns(&link(50_000, None), 976, Clock::Virtual), 200_000);
        assert_eq!(plan.replay_timer_ns(&short, 976, Clock::Wall), 3_000_000);
        assert_eq!(plan.config(&short, 976, Clock::Wall).ack_delay_ns, 750_000);
        let stated = RetryPlan { replay_timer_ns: Some(7_000), ..plan };
        for clock in [Clock::Wall, Clock::Virtual] {
            assert_eq!(stated.replay_timer_ns(&short, 976, clock), 7_000);
        }
    }
}
