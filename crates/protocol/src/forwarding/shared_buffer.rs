//! Shared buffer for the frames in transit of all pausing links, and the threshold at which a channel's neighbour is
//! paused.
//!
//! A channel may hold its own reserve and *alpha* times the free rest (dynamic thresholds, Choudhury and Hahne 1998).
//! A single busy channel gets nearly all, many get equal shares, and a part always stays free for new ones: n
//! channels that need more than they get hold `alpha B / (1 + n alpha)` each. Headroom is outside this buffer, per
//! link.

use crate::config::{PauseConfig, SharedBufferConfig};

const THOUSANDTHS: u64 = 1_000;

/// Shared buffer of one member.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedBuffer {
    config: SharedBufferConfig,
    used_bytes: u64,
}

impl SharedBuffer {
    /// Returns an empty buffer.
    pub(super) const fn new(config: SharedBufferConfig) -> Self {
        Self { config, used_bytes: 0 }
    }

    const fn free_bytes(&self) -> u64 {
        self.config.bytes.saturating_sub(self.used_bytes)
    }

    fn alpha_of_what_is_free(&self) -> u64 {
        self.free_bytes().saturating_mul(self.config.alpha_thousandths.into()) / THOUSANDTHS
    }

    /// Returns the part of a channel's held bytes that is in the shared buffer.
    pub(super) fn share_of(&self, held_bytes: u64) -> u64 {
        held_bytes.saturating_sub(self.config.private_bytes.into())
    }

    // W-76
    /// Returns the number of bytes that a channel may hold which has this part of the shared buffer already.
    pub(super) fn xoff_bytes(&self, share_bytes: u64) -> u64 {
        let most = self.alpha_of_what_is_free().min(share_bytes + self.free_bytes());
        u64::from(self.config.private_bytes) + most
    }

    /// Returns the threshold at which a paused channel is resumed: below xoff by the difference of the link's own
    /// thresholds.
    pub(super) fn xon_bytes(&self, marks: &PauseConfig) -> u64 {
        let limit = u64::from(self.config.private_bytes) + self.alpha_of_what_is_free();
        let [xon, xoff] = [marks.xon_bytes, marks.xoff_bytes].map(u128::from);
        (u128::from(limit) * xon / xoff.max(1)) as u64
    }

    /// Changes the bytes that a channel holds.
    pub(super) fn change(&mut self, before_bytes: u64, after_bytes: u64) {
        let used = self.used_bytes + self.share_of(after_bytes);
        assert!(self.share_of(before_bytes) <= used, "a channel frees more of the buffer than is used");
        self.used_bytes = used - self.share_of(before_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: SharedBufferConfig =
        SharedBufferConfig { bytes: 1_000, alpha_thousandths: 500, private_bytes: 100 };

    #[test]
    fn the_limit_of_a_channel_shrinks_as_others_hold_more() {
        let mut buffer = SharedBuffer::new(CONFIG);
        assert_eq!(buffer.xoff_bytes(0), 600);
        buffer.change(0, 100);
        assert_eq!(buffer.xoff_bytes(0), 600, "a channel's own space is not shared");
        buffer.change(100, 500);
        assert_eq!(buffer.xoff_bytes(0), 400);
        buffer.change(500, 0);
        assert_eq!(buffer.xoff_bytes(0), 600);
    }

    #[test]
    fn a_large_alpha_gives_all_free_bytes_and_not_more() {
        let mut buffer = SharedBuffer::new(SharedBufferConfig { alpha_thousandths: 8_000, ..CONFIG });
        assert_eq!(buffer.xoff_bytes(0), 1_100);
        buffer.change(0, 1_000);
        assert_eq!((buffer.xoff_bytes(900), buffer.xoff_bytes(0)), (900, 200));
    }

    #[test]
    fn saturated_channels_reach_the_share_of_the_theory() {
        for (alpha_thousandths, channels) in [(500, 1), (500, 4), (1_000, 3), (125, 8)] {
            let config = SharedBufferConfig { bytes: 1 << 20, alpha_thousandths, private_bytes: 0 };
            let mut buffer = SharedBuffer::new(config);
            let mut held = [0_u64; 8];
            for _ in 0..1 << 20 {
                for held in held.iter_mut().take(channels) {
                    let fits = buffer.xoff_bytes(*held) > *held;
                    buffer.change(*held, *held + u64::from(fits));
                    *held += u64::from(fits);
                }
            }
            let alpha = f64::from(alpha_thousandths) / 1e3;
            let expected = alpha * f64::from(1 << 20) / (1.0 + channels as f64 * alpha);
            assert!(
                held[..channels].iter().all(|held| (*held as f64 - expected).abs() < 3.0),
                "{held:?} {expected}"
            );
        }
    }

    #[test]
    fn a_paused_channel_resumes_at_the_usual_share_of_its_limit() {
        let marks = PauseConfig {
            xoff_bytes: 400,
            xon_bytes: 100,
            headroom_bytes: 0,
            quanta: 1,
            quantum_ps: 1,
            response_delay_ns: 0,
            watchdog_ns: 0,
        };
        assert_eq!(SharedBuffer::new(CONFIG).xon_bytes(&marks), 150);
    }
}
