//! Congestion window of a stream: the packets that may be in flight while queues in the network are long (DCTCP).
//!
//! A forwarder marks packets that join a long queue, and acknowledgements report the marks. The sender estimates the share of its packets
//! that were marked. At most once per round trip it reduces its window by half of that share; a round trip without marks adds one packet
//! (Alizadeh et al., "Data center TCP", 2010; RFC 8257). So a queue grows beyond the limit of marks by at most one packet of each stream,
//! and streams that share a queue converge to equal windows.
//!
//! There is no slow start, because the round trip of a rack holds few packets, and no reaction to losses: links with credits or pauses
//! lose no frame because of congestion.

use super::distance;

/// One, in the fixed-point numbers of this file.
const ONE: u64 = 1 << 16;
/// Weight of the newest round trip in the estimate: one in so many (RFC 8257 recommends 16).
const ROUNDS_OF_ESTIMATE: u64 = 16;
/// Largest window, in packets. With it no product of this file overflows.
const PACKETS_MAX: u64 = 1 << 24;

/// Congestion window of one stream.
#[derive(Debug)]
pub struct CongestionWindow {
    packets_max: u64,
    /// Window, in packets.
    window: u64,
    /// Estimate of the share of packets that are marked.
    share: u64,
    /// Number of the packet with which the next round trip begins.
    round_end: u32,
    /// Number of the first packet that was not sent before the last reduction. `None` if the window may be reduced.
    reduced_until: Option<u32>,
    /// Packets that were acknowledged in this round trip, and those of them that were marked.
    taken: u64,
    marked: u64,
}

impl CongestionWindow {
    /// Returns a window of one packet that grows to at most `packets_max`.
    #[must_use]
    pub fn new(packets_max: u32) -> Self {
        let packets_max = u64::from(packets_max).clamp(1, PACKETS_MAX);
        Self { packets_max, window: ONE, share: ONE, round_end: 0, reduced_until: None, taken: 0, marked: 0 }
    }

    /// Returns the number of packets that may be in flight: one or more.
    #[must_use]
    #[inline]
    pub const fn packets(&self) -> usize {
        (self.window / ONE) as usize
    }

    /// Records an acknowledgement of `taken` packets, which reports a mark or not. `was_full` is true if as many packets were in flight as
    /// the window admits. `base` is the number of the first packet in flight now, and `next` that of the first packet that was never sent.
    /// All packets of an acknowledgement that reports a mark count as marked.
    pub fn acknowledge(&mut self, taken: u32, is_marked: bool, was_full: bool, base: u32, next: u32) {
        let taken = u64::from(taken).min(PACKETS_MAX);
        self.taken += taken;
        self.reduced_until = self.reduced_until.filter(|end| !has_reached(base, *end));
        if is_marked {
            self.marked += taken;
            self.reduce(next);
        } else if was_full {
            self.window += taken * ONE * ONE / self.window;
            self.window = self.window.min(self.packets_max * ONE);
        }
        if self.taken > 0 && has_reached(base, self.round_end) {
            self.estimate();
            self.round_end = next;
        }
    }

    fn reduce(&mut self, next: u32) {
        if self.reduced_until.is_none() {
            self.window = (self.window - self.window * self.share / (2 * ONE)).max(ONE);
            self.reduced_until = Some(next);
        }
    }

    fn estimate(&mut self) {
        let share = self.marked * ONE / self.taken;
        self.share = self.share - self.share / ROUNDS_OF_ESTIMATE + share / ROUNDS_OF_ESTIMATE;
        (self.taken, self.marked) = (0, 0);
    }
}

/// Returns true if all packets before the number `end` are acknowledged, where `base` is the first that is not.
const fn has_reached(base: u32, end: u32) -> bool {
    distance(end, base) < 1 << 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Stream whose window is always full. Each packet is acknowledged alone, and a new one is sent at once.
    struct Stream {
        window: CongestionWindow,
        base: u32,
        sent: u32,
    }

    impl Stream {
        fn new(packets: u64, share: f64) -> Self {
            let mut window = CongestionWindow::new(4_096);
            window.window = packets * ONE;
            window.share = (share * ONE as f64) as u64;
            Self { window, base: 0, sent: packets as u32 }
        }

        /// Acknowledges the packets in flight one by one. The first `marked` of them report marks.
        fn round(&mut self, marked: u32) {
            let end = self.sent;
            let first = self.base;
            while self.base != end {
                self.base += 1;
                self.window.acknowledge(1, self.base - first <= marked, true, self.base, self.sent);
                self.sent = self.sent.max(self.base + self.window.packets() as u32);
            }
        }

        fn packets(&self) -> f64 {
            self.window.window as f64 / ONE as f64
        }

        fn share(&self) -> f64 {
            self.window.share as f64 / ONE as f64
        }
    }

    fn near(found: f64, expected: f64, difference: f64) {
        assert!((found - expected).abs() <= difference, "{found}, expected {expected}");
    }

    #[test]
    fn a_window_begins_with_one_packet_and_a_round_trip_without_marks_adds_one_up_to_the_largest() {
        let mut stream = Stream { window: CongestionWindow::new(20), base: 0, sent: 1 };
        assert_eq!(stream.window.packets(), 1);
        let sizes: Vec<_> = (0..40)
            .map(|_| {
                stream.round(0);
                stream.window.packets()
            })
            .collect();
        assert!(sizes.windows(2).all(|pair| pair[1] - pair[0] <= 1), "{sizes:?}");
        assert!((9..=11).contains(&sizes[9]) && sizes[39] == 20, "{sizes:?}");
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut window = CongestionWindow::new(20);
        (1..50).for_each(|packet| window.acknowledge(1, false, false, packet, packet));
        assert_eq!(window.packets(), 1);
    }

    /// alpha = (1 - 1/16) alpha + F / 16, by hand: from 1 without marks 15/16, then 225/256; then all are marked: 3631/4096.
    #[test]
    fn the_estimate_moves_by_a_sixteenth_towards_the_share_of_each_round_trip() {
        let mut stream = Stream::new(100, 1.0);
        // The first acknowledgement ends a round trip, because none has begun before it.
        stream.window.acknowledge(1, false, true, 1, 100);
        stream.base = 1;
        near(stream.share(), 0.9375, 1e-4);
        stream.round(0);
        near(stream.share(), 0.878_906, 1e-4);
        stream.round(u32::MAX);
        near(stream.share(), 0.886_475, 1e-4);
    }

    /// 64 (1 - alpha / 2) for an alpha of 1, of 1/2 and of 1/8.
    #[test]
    fn a_mark_reduces_the_window_by_half_of_the_estimate() {
        for (share, expected) in [(1.0, 32.0), (0.5, 48.0), (0.125, 60.0)] {
            let mut stream = Stream::new(64, share);
            stream.window.acknowledge(1, true, true, 1, 64);
            near(stream.packets(), expected, 1e-3);
        }
    }

    #[test]
    fn marks_of_packets_that_left_before_a_reduction_do_not_reduce_again() {
        let mut stream = Stream::new(64, 1.0);
        for base in 1..64 {
            stream.window.acknowledge(1, true, true, base, 64);
            near(stream.packets(), 32.0, 1e-3);
        }
        stream.window.acknowledge(1, true, true, 64, 96);
        near(stream.packets(), 16.0, 1e-3);
    }

    #[test]
    fn if_all_packets_are_marked_the_window_falls_to_one_packet_and_no_further() {
        let mut stream = Stream::new(64, 1.0);
        (0..10).for_each(|_| stream.round(u32::MAX));
        near(stream.packets(), 1.0, 0.0);
    }

    /// A tenth of 100 packets is marked in each round trip. Without a change of the window the estimate becomes a tenth, so the
    /// window falls by 5 packets and grows by 90 parts of about 97.
    #[test]
    fn a_small_share_of_marks_reduces_the_window_a_little() {
        let mut stream = Stream::new(100, 1.0);
        for _ in 0..200 {
            stream.window.window = 100 * ONE;
            stream.sent = stream.base + 100;
            stream.round(10);
        }
        near(stream.share(), 0.1, 1e-2);
        near(stream.packets(), 100.0 - 5.0 + 90.0 / 97.0, 0.3);
    }

    #[test]
    fn numbers_of_packets_may_wrap() {
        let mut window = CongestionWindow::new(20);
        window.window = 8 * ONE;
        window.round_end = u32::MAX - 3;
        window.acknowledge(4, true, true, u32::MAX, 4);
        assert_eq!((window.packets(), window.round_end), (4, 4));
        // Packet 3 left before the reduction, packet 4 after it.
        window.acknowledge(4, true, true, 3, 8);
        assert_eq!(window.packets(), 4);
        window.acknowledge(1, true, true, 4, 8);
        assert_eq!(window.packets(), 2);
    }
}
