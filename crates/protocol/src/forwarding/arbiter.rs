//! Arbiter of a port: chooses the virtual channel that sends next, among those that have frames and credits.
//!
//! The arbiter gives the order in which the port tries its channels. The first that can send does, and the port
//! reports it with [`Arbiter::grant`]. The arbiter has no queues.

use alloc::vec;
use alloc::vec::Vec;

use crate::ids::Channel;
use crate::route::channels::{ArbiterKind, ChannelConfig};

/// Arbiter of one port.
#[derive(Clone, Debug)]
pub struct Arbiter {
    kind: ArbiterKind,
    count: u8,
    at: u8,
    /// Bytes per round of each channel; used only by the weighted arbiter.
    quanta: Vec<i64>,
    /// Bytes that remain of each channel's round. A negative value is a debt for the next round.
    left: Vec<i64>,
}

/// Iterator over the channels of a port, in the order in which they are tried.
#[derive(Clone, Copy, Debug)]
pub struct ChannelOrder {
    next: u8,
    left: u8,
    count: u8,
}

impl Arbiter {
    /// Returns an arbiter for `count` channels. A weight of one is worth a frame of `frame_bytes_max`.
    #[must_use]
    pub fn new(channels: &ChannelConfig, count: usize, frame_bytes_max: u16) -> Self {
        // A single channel needs no arbitration.
        let kind = if count == 1 { ArbiterKind::Strict } else { channels.arbiter };
        let quantum =
            |channel| i64::from(channels.weight(Channel(channel as u8))) * i64::from(frame_bytes_max);
        let quanta: Vec<i64> =
            if kind == ArbiterKind::Weighted { (0..count).map(quantum).collect() } else { Vec::new() };
        Self { kind, count: count as u8, at: 0, left: vec![0; quanta.len()], quanta }
    }

    /// Returns the present order of the channels.
    #[inline]
    #[must_use]
    pub const fn channel_order(&self) -> ChannelOrder {
        ChannelOrder { next: self.at, left: self.count, count: self.count }
    }

    /// Records that a data frame of `bytes` leaves on this channel.
    #[inline]
    pub fn grant(&mut self, channel: Channel, bytes: usize) {
        match self.kind {
            ArbiterKind::Strict => {}
            ArbiterKind::RoundRobin => self.at = (channel.0 + 1) % self.count,
            ArbiterKind::Weighted => self.charge(channel, bytes),
        }
    }

    /// Deficit round robin (Shreedhar and Varghese 1995). Bytes beyond a channel's round are subtracted from the
    /// next.
    fn charge(&mut self, channel: Channel, bytes: usize) {
        let index = channel.index();
        if channel.0 != self.at {
            // The channels tried before had nothing to send, so the rest of their round is lost.
            let mut idle = self.at;
            while idle != channel.0 {
                self.left[usize::from(idle)] = self.left[usize::from(idle)].min(0);
                idle = (idle + 1) % self.count;
            }
            self.at = channel.0;
        }
        if self.left[index] <= 0 {
            self.left[index] += self.quanta[index];
        }
        self.left[index] -= bytes as i64;
        if self.left[index] <= 0 {
            self.at = (channel.0 + 1) % self.count;
        }
    }
}

impl Iterator for ChannelOrder {
    type Item = Channel;

    #[inline]
    fn next(&mut self) -> Option<Channel> {
        self.left = self.left.checked_sub(1)?;
        let channel = Channel(self.next);
        self.next = if self.next + 1 == self.count { 0 } else { self.next + 1 };
        Some(channel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arbiter(arbiter: ArbiterKind, weights: &[u16]) -> Arbiter {
        let channels = ChannelConfig { arbiter, weights: weights.to_vec(), ..ChannelConfig::by_class() };
        Arbiter::new(&channels, channels.count(), 1_000)
    }

    /// Returns the frames of this size that each busy channel sends.
    fn sent(arbiter: &mut Arbiter, busy: &[u8], bytes: usize, frames: usize) -> [usize; 4] {
        let mut sent = [0; 4];
        for _ in 0..frames {
            let channel =
                arbiter.channel_order().find(|channel| busy.contains(&channel.0)).expect("one is busy");
            arbiter.grant(channel, bytes);
            sent[channel.index()] += 1;
        }
        sent
    }

    #[test]
    fn strict_priority_takes_the_lowest_channel_that_is_not_empty() {
        let mut strict = arbiter(ArbiterKind::Strict, &[]);
        assert_eq!(sent(&mut strict, &[1, 3], 700, 100), [0, 100, 0, 0]);
        assert_eq!(sent(&mut strict, &[3], 700, 100), [0, 0, 0, 100]);
    }

    #[test]
    fn round_robin_takes_each_channel_equally_often() {
        let mut fair = arbiter(ArbiterKind::RoundRobin, &[]);
        assert_eq!(sent(&mut fair, &[0, 2, 3], 700, 300), [100, 0, 100, 100]);
    }

    #[test]
    fn weighted_divides_bytes_by_weight_and_skips_empty_queues() {
        let mut weighted = arbiter(ArbiterKind::Weighted, &[3, 1, 1, 5]);
        assert_eq!(sent(&mut weighted, &[0, 1], 700, 4_000), [3_000, 1_000, 0, 0]);
        let shares = sent(&mut weighted, &[0, 1, 3], 999, 9_000);
        for (share, expected) in shares.into_iter().zip([3_000, 1_000, 0, 5_000]) {
            assert!(share.abs_diff(expected) <= 10, "{shares:?}");
        }
    }

    #[test]
    fn every_channel_is_queried_once() {
        let mut fair = arbiter(ArbiterKind::RoundRobin, &[]);
        fair.grant(Channel(2), 10);
        assert_eq!(fair.channel_order().map(|channel| channel.0).collect::<Vec<_>>(), [3, 0, 1, 2]);
    }
}
