//! Throughput under credits, and the cost of a lost credit.
//!
//! A frame costs `ceil((size + overhead) / unit)` credits, and a sender has a maximum number of credits that are not
//! free again. A credit is free again one loop later: round trip, the frame's own time, and the time that the
//! receiver collects before it sends an update. For frames of one size that time is not random, and the throughput is
//! exact.

/// A link under credit-based flow control, with frames of one size.
#[derive(Clone, Copy, Debug)]
pub struct CreditLoop {
    /// Bits per second.
    pub rate_bits_per_s: f64,
    /// Bytes of one frame on the wire.
    pub frame_wire_bytes: f64,
    /// Credits that one frame costs.
    pub frame_credits: u64,
    /// Credits of the link.
    pub limit: u64,
    /// Bytes of a credit.
    pub unit_bytes: u64,
    /// Credits that are freed before the receiver sends an update.
    pub spacing_credits: u64,
    /// Round trip without serialisation, in nanoseconds.
    pub round_trip_ns: f64,
    /// Bytes of a credit update on the wire.
    pub update_wire_bytes: f64,
}

/// Returns the number of credits of a frame.
#[must_use]
pub const fn cost(frame_bytes: u64, overhead_bytes: u64, unit_bytes: u64) -> u64 {
    (frame_bytes + overhead_bytes).div_ceil(unit_bytes)
}

impl CreditLoop {
    /// Returns the throughput as a share of the link: `q m L/B / (RTT + update/B + (m - r) L/B)`, at most 1.
    ///
    /// The credits hold n frames, and an update returns those of m: after every m-th frame. Let `n = q m + r`, r below m. Frame number
    /// u m brings update u about. That frame left on the credits of update u - q, of which it is number m - r: the r frames
    /// before were left over. So q updates, or q m frames, take m - r frames' time and the round trip.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        let frames = self.limit / self.frame_credits;
        let together = self.frames_per_update();
        let (whole, left_over) = (frames / together, frames % together);
        let frame_ns = self.nanoseconds(self.frame_wire_bytes);
        let path_ns = self.round_trip_ns + self.nanoseconds(self.update_wire_bytes);
        let cycle_ns = path_ns + (together - left_over) as f64 * frame_ns;
        ((whole * together) as f64 * frame_ns / cycle_ns).min(1.0)
    }

    /// Returns the bounds that hold for traffic of any kind: `min(1, n L/(B loop))` with `loop = RTT + L/B + update/B + s/B`, s the
    /// whole spacing or half of it, as freed credits wait for between nothing and all of it. They count on frames without
    /// number; where the credits hold few spacings, [`Self::throughput`] is lower.
    #[must_use]
    pub fn bounds(&self) -> (f64, f64) {
        let frame_ns = self.nanoseconds(self.frame_wire_bytes);
        let frames = (self.limit / self.frame_credits) as f64;
        let path_ns = self.round_trip_ns + frame_ns + self.nanoseconds(self.update_wire_bytes);
        let spacing_ns = self.nanoseconds((self.spacing_credits * self.unit_bytes) as f64);
        let share = |wait_ns: f64| (frames * frame_ns / (path_ns + wait_ns)).min(1.0);
        (share(spacing_ns), share(spacing_ns / 2.0))
    }

    /// Returns the number of frames whose credits one update returns.
    fn frames_per_update(&self) -> u64 {
        self.spacing_credits.div_ceil(self.frame_credits).max(1)
    }

    fn nanoseconds(&self, bytes: f64) -> f64 {
        bytes * 8e9 / self.rate_bits_per_s
    }
}

/// Returns the share of a busy link's wire of one of two lanes, each with frames of one size, if the arbiter divides frame bytes by
/// weight.
#[must_use]
pub fn weighted_share(weights: [f64; 2], frame_bytes: [f64; 2], beside_frame_bytes: f64) -> f64 {
    let on_wire = |lane: usize| weights[lane] * (frame_bytes[lane] + beside_frame_bytes) / frame_bytes[lane];
    on_wire(0) / (on_wire(0) + on_wire(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_does_not_fill_its_credits_wastes_them() {
        assert_eq!(
            (cost(64, 0, 128), cost(128, 0, 128), cost(129, 0, 128), cost(4226, 16, 128)),
            (1, 1, 2, 34)
        );
    }

    #[test]
    fn ten_frames_of_80_ns_in_a_loop_of_1600_ns_are_half_of_the_link() {
        let credits = CreditLoop {
            rate_bits_per_s: 400e9,
            frame_wire_bytes: 4_000.0,
            frame_credits: 32,
            limit: 330,
            unit_bytes: 125,
            spacing_credits: 0,
            round_trip_ns: 1_520.0,
            update_wire_bytes: 0.0,
        };
        assert_eq!((credits.throughput(), credits.bounds()), (0.5, (0.5, 0.5)));
        assert_eq!(CreditLoop { limit: 3_300, ..credits }.throughput(), 1.0);
        // 128 credits, or four frames, are 16,000 bytes and take 320 ns.
        let slow = CreditLoop { spacing_credits: 128, ..credits };
        let (least, most) = slow.bounds();
        assert!((least - 800.0 / 1_920.0).abs() < 1e-12 && (most - 800.0 / 1_760.0).abs() < 1e-12);
    }

    /// Returns the throughput frame by frame: each leaves when the one before has left and its credits are there.
    fn followed(frames: usize, together: usize, frame_ns: f64, path_ns: f64) -> f64 {
        let (many, mut left_ns) = (20_000_usize, Vec::<f64>::new());
        for number in 0..many {
            let after_last = left_ns.last().copied().unwrap_or(0.0);
            let credits_ns = match number.checked_sub(frames) {
                None => 0.0,
                // The update that returns this frame's credits leaves with the last frame that it counts.
                Some(before) => left_ns[(before / together + 1) * together - 1] + path_ns,
            };
            left_ns.push(after_last.max(credits_ns) + frame_ns);
        }
        let half = many / 2;
        half as f64 * frame_ns / (left_ns[many - 1] - left_ns[half - 1])
    }

    #[test]
    fn the_closed_form_equals_a_calculation_frame_by_frame() {
        for (frames, together) in
            [(1, 1), (5, 1), (8, 8), (12, 8), (16, 8), (23, 8), (30, 7), (49, 31), (200, 8)]
        {
            let link = CreditLoop {
                rate_bits_per_s: 400e9,
                frame_wire_bytes: 4_000.0,
                frame_credits: 10,
                limit: frames * 10 + 9,
                unit_bytes: 400,
                spacing_credits: together * 10 - 3,
                round_trip_ns: 1_990.0,
                update_wire_bytes: 500.0,
            };
            let followed = followed(frames as usize, together as usize, 80.0, 2_000.0);
            let (closed, (_, most)) = (link.throughput(), link.bounds());
            assert!((closed / followed - 1.0).abs() < 0.005, "{frames} by {together}: {closed}, {followed}");
            assert!(closed <= most * 1.05, "{frames} by {together}: {closed} above {most}");
        }
    }

    #[test]
    fn weights_are_shares_where_frames_cost_the_same_beside() {
        assert_eq!(weighted_share([3.0, 1.0], [1_000.0, 1_000.0], 24.0), 0.75);
        assert!(weighted_share([1.0, 1.0], [100.0, 4_000.0], 24.0) > 0.5);
    }
}
