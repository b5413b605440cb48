//! What still comes after a receiver has asked for a pause.
//!
//! The sender is blind while the word is on its way, while it takes effect, and what it began by then crosses the cable as well.
//! Frames of one size come one after the other, so how many they are is no matter of chance.

/// A link on which one sender never stops by itself, with frames of one size.
#[derive(Clone, Copy, Debug)]
pub struct PauseLoop {
    /// Bits per second.
    pub rate_bits_per_s: f64,
    /// Bytes of one frame on the wire.
    pub frame_wire_bytes: f64,
    /// Bytes of the word on the wire.
    pub word_wire_bytes: f64,
    /// There and back, without serialisation, in nanoseconds.
    pub round_trip_ns: f64,
    /// Between the word and no more frames, in nanoseconds.
    pub response_ns: f64,
}

impl PauseLoop {
    /// Frames that arrive after the one that made the receiver speak: `ceil((word/B + RTT + response) / (L/B))`.
    ///
    /// The next frame begins when that one has left, one way before it arrived; one more begins every L/B, until the word has
    /// come, one way after it was said, and has taken effect. The way back of the word is free.
    #[must_use]
    pub fn frames(&self) -> u64 {
        let nanoseconds = |bytes: f64| bytes * 8e9 / self.rate_bits_per_s;
        let blind_ns = nanoseconds(self.word_wire_bytes) + self.round_trip_ns + self.response_ns;
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
            word_wire_bytes: 1_000.0,
            round_trip_ns: 500.0,
            response_ns: 280.0,
        };
        assert_eq!(pause.frames(), 10);
        assert_eq!(PauseLoop { response_ns: 281.0, ..pause }.frames(), 11);
    }
}
