//! Frames that arrive after a receiver has requested a pause.
//!
//! The sender continues while the pause frame travels and until it takes effect, and the frames begun by then cross
//! the cable as well. Frames of one size follow each other, so their number is not random.

/// A link on which one sender never stops by itself, with frames of one size.
#[derive(Clone, Copy, Debug)]
pub struct PauseLoop {
    /// Bits per second.
    pub rate_bits_per_s: f64,
    /// Bytes of one frame on the wire.
    pub frame_wire_bytes: f64,
    /// Bytes of the pause frame on the wire.
    pub pause_wire_bytes: f64,
    /// Round trip without serialisation, in nanoseconds.
    pub round_trip_ns: f64,
    /// Time from the arrival of the pause frame to its effect, in nanoseconds.
    pub response_ns: f64,
}

impl PauseLoop {
    /// Returns the frames that arrive after the one that triggers the pause: `ceil((pause/B + RTT + response) / (L/B))`.
    ///
    /// The next frame begins when that one has left, one delay before it arrived; one more begins every L/B, until
    /// the pause frame has arrived, one delay after it was sent, and has taken effect. The return path of the pause
    /// frame is free.
    #[must_use]
    pub fn frames(&self) -> u64 {
        let nanoseconds = |bytes: f64| bytes * 8e9 / self.rate_bits_per_s;
        let blind_ns = nanoseconds(self.pause_wire_bytes) + self.round_trip_ns + self.response_ns;
        (blind_ns / nanoseconds(self.frame_wire_bytes)).ceil() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_frames_of_80_ns_begin_in_a_blind_time_of_800_ns_and_one_more_in_a_longer_one() {
        let pause = PauseLoop {
            rate_bits_per_s: 400e9,
            frame_wire_bytes: 4_000.0,
            pause_wire_bytes: 1_000.0,
            round_trip_ns: 500.0,
            response_ns: 280.0,
        };
        assert_eq!(pause.frames(), 10);
        assert_eq!(PauseLoop { response_ns: 281.0, ..pause }.frames(), 11);
    }
}
