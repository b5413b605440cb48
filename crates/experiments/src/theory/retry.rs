//! What lost frames cost.
//!
//! With one negative acknowledgement per gap, go-back-N sends again all that left between a loss and the news of it:
//! `D = RTT * B / L` frames and one or two more. If the first frame sent again is lost too, only the timer helps:
//! `Dt = timer * B / L + 1`. So goodput is `1 / (1 + p D + p^2 / (1 - p) Dt)`; selective loses the lost frames alone, `1 - p`.

/// A link with frames of one size on it.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// Bits per second.
    pub rate_bits_per_s: f64,
    /// Bytes of one frame on the wire.
    pub frame_wire_bytes: f64,
    /// From a frame's departure to the return of what its receiver says, in nanoseconds, without its own serialisation.
    pub round_trip_ns: f64,
    /// What the sender waits when it hears nothing, in nanoseconds.
    pub timer_ns: f64,
}

impl Stream {
    /// Frames that leave in so many nanoseconds.
    fn frames_in(&self, nanoseconds: f64) -> f64 {
        nanoseconds * self.rate_bits_per_s / 8e9 / self.frame_wire_bytes
    }

    /// Goodput under go-back-N, as a share of the link, for a frame loss probability; `behind` is how many frames beyond the
    /// round trip a loss costs: one until the receiver sees a later frame, and up to another until the sender turns.
    #[must_use]
    pub fn go_back_n(&self, loss: f64, behind: f64) -> f64 {
        let round_trip = self.frames_in(self.round_trip_ns) + behind;
        let timer = self.frames_in(self.timer_ns) + 1.0;
        1.0 / (1.0 + loss * round_trip + loss * loss / (1.0 - loss) * timer)
    }
}

/// Goodput under selective repeat.
#[must_use]
pub fn selective(loss: f64) -> f64 {
    1.0 - loss
}

/// A link whose sender keeps what is unacknowledged, and keeps no more than so many frames.
#[derive(Clone, Copy, Debug)]
pub struct ReplayLoop {
    /// Bits per second.
    pub rate_bits_per_s: f64,
    /// Bytes of one frame on the wire.
    pub frame_wire_bytes: f64,
    /// Whole frames that the replay buffer holds.
    pub frames_max: f64,
    /// There and back, without serialisation, in nanoseconds.
    pub round_trip_ns: f64,
    /// Bytes of a link acknowledgement on the wire.
    pub ack_wire_bytes: f64,
}

/// Throughput as a share of the link: what the buffer holds per loop, `min(1, n L / (B loop))`, where a frame's place is
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
