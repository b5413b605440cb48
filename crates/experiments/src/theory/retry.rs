//! Cost of lost frames.
//!
//! With one negative acknowledgement per gap, go-back-N retransmits all frames that left between a loss and the
//! arrival of the refusal: `D = RTT * B / L` frames and one or two more. If the first retransmitted frame is lost
//! too, only the timer helps: `Dt = timer * B / L + 1`. So goodput is `1 / (1 + p D + p^2 / (1 - p) Dt)`; selective
//! loses the lost frames alone, `1 - p`.

/// A link with frames of one size on it.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// Bits per second.
    pub rate_bits_per_s: f64,
    /// Bytes of one frame on the wire.
    pub frame_wire_bytes: f64,
    /// Time from a frame's departure to the arrival of its receiver's answer, in nanoseconds, without its own serialisation.
    pub round_trip_ns: f64,
    /// Timeout of a sender without answer, in nanoseconds.
    pub timer_ns: f64,
}

impl Stream {
    /// Returns the number of frames that leave in this time.
    fn frames_in(&self, nanoseconds: f64) -> f64 {
        nanoseconds * self.rate_bits_per_s / 8e9 / self.frame_wire_bytes
    }

    /// Returns the goodput under go-back-N, as a share of the link, for a frame loss probability; `behind` is how
    /// many frames beyond the round trip a loss costs: one until the receiver sees a later frame, and up to another
    /// until the sender goes back.
    #[must_use]
    pub fn go_back_n(&self, loss: f64, behind: f64) -> f64 {
        let round_trip = self.frames_in(self.round_trip_ns) + behind;
        let timer = self.frames_in(self.timer_ns) + 1.0;
        1.0 / (1.0 + loss * round_trip + loss * loss / (1.0 - loss) * timer)
    }

    /// Returns the unevenness of the cost of losses under go-back-N: the root of the mean square of a loss's cost
    /// over its mean, 1 if all costs are equal. The sum of n losses, where n is random, deviates by this over the
    /// root of n.
    ///
    /// A loss costs D frames and Dt more for each time that the first frame sent again is lost too, which it is m times with
    /// probability `p^m (1 - p)`.
    #[must_use]
    pub fn unevenness(&self, loss: f64, behind: f64) -> f64 {
        let round_trip = self.frames_in(self.round_trip_ns) + behind;
        let timer = self.frames_in(self.timer_ns) + 1.0;
        let times = loss / (1.0 - loss);
        let times_squared = times + 2.0 * times * times;
        let mean = round_trip + times * timer;
        let mean_square =
            round_trip.powi(2) + 2.0 * round_trip * times * timer + times_squared * timer.powi(2);
        mean_square.sqrt() / mean
    }
}

/// Returns the goodput under selective repeat.
#[must_use]
pub fn selective(loss: f64) -> f64 {
    1.0 - loss
}

/// A link whose sender keeps unacknowledged frames, up to a maximum.
#[derive(Clone, Copy, Debug)]
pub struct ReplayLoop {
    /// Bits per second.
    pub rate_bits_per_s: f64,
    /// Bytes of one frame on the wire.
    pub frame_wire_bytes: f64,
    /// Whole frames that the replay buffer holds.
    pub frames_max: f64,
    /// Round trip without serialisation, in nanoseconds.
    pub round_trip_ns: f64,
    /// Bytes of a link acknowledgement on the wire.
    pub ack_wire_bytes: f64,
}

/// Returns the throughput as a share of the link: what the buffer holds per loop, `min(1, n L / (B loop))`, where a frame's space is
/// free again `L / B + RTT + ack / B` after it began to leave.
#[must_use]
pub fn replay_limited(link: ReplayLoop) -> f64 {
    let nanoseconds = |bytes: f64| bytes * 8e9 / link.rate_bits_per_s;
    let frame_ns = nanoseconds(link.frame_wire_bytes);
    let loop_ns = frame_ns + link.round_trip_ns + nanoseconds(link.ack_wire_bytes);
    (link.frames_max * frame_ns / loop_ns).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(value: f64) -> f64 {
        (value * 1000.0).round() / 1000.0
    }

    #[test]
    fn costs_are_uneven_where_a_rare_timer_is_expensive() {
        // 8 ns a frame: a loss costs ten frames and, half of the time, at least once a timer of ninety.
        let stream = Stream {
            rate_bits_per_s: 400e9,
            frame_wire_bytes: 400.0,
            round_trip_ns: 64.0,
            timer_ns: 8.0 * 89.0,
        };
        let counted: Vec<(f64, f64)> =
            (0..60).map(|times| (10.0 + 90.0 * f64::from(times), 0.5_f64.powi(times + 1))).collect();
        let mean: f64 = counted.iter().map(|(cost, share)| cost * share).sum();
        let mean_square: f64 = counted.iter().map(|(cost, share)| cost * cost * share).sum();
        let unevenness = stream.unevenness(0.5, 2.0);
        assert!((unevenness - mean_square.sqrt() / mean).abs() < 1e-9, "{unevenness}");
        assert!((stream.unevenness(1e-9, 2.0) - 1.0).abs() < 1e-6, "without timers all cost the same");
    }

    #[test]
    fn a_replay_buffer_is_full_throughput_up_to_its_knee_and_buffer_over_loop_beyond() {
        let link = |frames_max, round_trip_ns| ReplayLoop {
            rate_bits_per_s: 400e9,
            frame_wire_bytes: 4_000.0,
            frames_max,
            round_trip_ns,
            ack_wire_bytes: 0.0,
        };
        // 80 ns a frame: ten of them fill a loop of 800 ns.
        assert_eq!(replay_limited(link(10.0, 720.0)), 1.0);
        assert_eq!(replay_limited(link(10.0, 1_520.0)), 0.5);
        assert_eq!(replay_limited(link(20.0, 1_520.0)), 1.0);
    }

    #[test]
    fn the_published_goodputs_of_320_byte_frames_at_400_gbit_per_s() {
        let stream = |round_trip_ns| Stream {
            rate_bits_per_s: 400e9,
            frame_wire_bytes: 320.0,
            round_trip_ns,
            timer_ns: 0.0,
        };
        let (end_to_end, link) = (stream(2_000.0), stream(200.0));
        assert_eq!(rounded(end_to_end.go_back_n(1e-4, 1.5)), 0.97);
        assert_eq!(rounded(end_to_end.go_back_n(1e-3, 1.5)), 0.761);
        assert_eq!(rounded(link.go_back_n(1e-4, 1.0)), 0.997);
        assert_eq!(rounded(link.go_back_n(1e-3, 1.0)), 0.969);
        assert_eq!(rounded(selective(1e-3)), 0.999);
    }
}
