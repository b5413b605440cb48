//! Queue of senders that follow marks (DCTCP) or that need grants, in packets.
//!
//! N senders share a link that marks packets which join a queue of more than K. The windows grow by one packet per round trip each. A mark
//! reaches its sender one round trip later, so each adds one more packet (Alizadeh et al., "Data center TCP", 2010, section 3.3).

/// Returns the longest queue: K + N.
#[must_use]
pub fn queue_max(limit: f64, senders: f64) -> f64 {
    limit + senders
}

/// Returns the most packets that are on their way to a receiver which grants `pool` packets in total: the pool, and one packet of each sender,
/// which it may send without a grant.
#[must_use]
pub fn granted_max(pool: f64, senders: f64) -> f64 {
    pool + senders
}

/// Returns the packets that stand before the last link while all senders have packets: all that may be on their way, less those whose permission
/// is on its way back. A sender without a grant has one packet, so there is at least one for each sender.
#[must_use]
pub fn granted_standing(pool: f64, senders: f64, returning: f64) -> f64 {
    pool.max(senders) - returning
}

/// Returns the depth to which the queue of synchronised senders falls below its maximum: half of the root of 2 N (C R + K), where C R are
/// the packets that a round trip without queues holds.
#[must_use]
pub fn queue_swing(limit: f64, senders: f64, in_flight: f64) -> f64 {
    (2.0 * senders * (in_flight + limit)).sqrt() / 2.0
}

/// Returns Jain's index of fairness of some shares: 1 if all are equal, one over their number if one has all (Jain, Chiu and Hawe 1984).
#[must_use]
pub fn fairness(shares: &[f64]) -> f64 {
    let (sum, squares) =
        shares.iter().fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    sum * sum / (shares.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_one_for_equal_shares_and_a_quarter_for_one_of_four() {
        assert_eq!((fairness(&[3.0; 7]), fairness(&[5.0, 0.0, 0.0, 0.0])), (1.0, 0.25));
        assert!((fairness(&[1.0, 2.0]) - 0.9).abs() < 1e-12);
    }

    #[test]
    fn a_pool_is_exceeded_by_one_packet_of_each_sender_and_stands_less_what_returns() {
        assert_eq!((granted_max(32.0, 4.0), granted_max(32.0, 64.0)), (36.0, 96.0));
        assert_eq!((granted_standing(32.0, 4.0, 5.0), granted_standing(32.0, 64.0, 5.0)), (27.0, 59.0));
    }

    #[test]
    fn a_long_queue_falls_by_a_small_part() {
        // The example of the paper: two senders, K of 40 packets of 1500 bytes, 10 Gbit/s and 100 us.
        let swing = queue_swing(40.0, 2.0, 83.3);
        assert!((swing - 11.1).abs() < 0.1, "{swing}");
        assert_eq!(queue_max(40.0, 2.0), 42.0);
    }
}
