//! Shares of a shared buffer, and the number of frames that a long queue marks.

/// Returns the share of each of `channels` that all fill the buffer: alpha times what is then free (dynamic
/// thresholds, Choudhury and Hahne 1998).
#[must_use]
pub fn equal_share(bytes: f64, alpha: f64, channels: f64) -> f64 {
    alpha * bytes / (1.0 + channels * alpha)
}

/// Returns the frames that join a queue of at least `limit` frames when so many senders send `frames` each, side by
/// side, to a port as fast as one of them: in every slot one leaves and the others' stay, so the limit is reached
/// when `limit` slots' excess has come.
#[must_use]
pub fn marked_frames(senders: f64, frames: f64, limit: f64) -> f64 {
    let before = senders * limit / (senders - 1.0);
    (senders * frames - before).max(0.0)
}

/// Returns the probability that at least one bit of a frame is wrong.
#[must_use]
pub fn loss_of_frame(bit_error_rate: f64, frame_wire_bytes: f64) -> f64 {
    -f64::exp_m1(8.0 * frame_wire_bytes * f64::ln_1p(-bit_error_rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_what_is_free_make_up_the_whole() {
        for (alpha, channels) in [(0.125, 4.0), (1.0, 3.0), (8.0, 7.0)] {
            let share = equal_share(1_000.0, alpha, channels);
            assert!((share / alpha + channels * share - 1_000.0).abs() < 1e-9);
        }
    }

    #[test]
    fn two_senders_fill_the_queue_with_half_of_their_frames_up_to_the_limit() {
        assert_eq!(marked_frames(2.0, 100.0, 30.0), 140.0);
        assert_eq!(marked_frames(2.0, 100.0, 200.0), 0.0);
    }

    #[test]
    fn a_wrong_bit_in_a_million_costs_a_long_frame_three_per_cent() {
        assert!((loss_of_frame(1e-6, 4_250.0) - 0.03343).abs() < 1e-5);
    }
}
