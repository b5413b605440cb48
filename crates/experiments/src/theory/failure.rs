//! Detection time of a death, and remaining throughput after it.

/// Returns the bounds of the time from a neighbour's death until its detection, in nanoseconds.
///
/// They are `(k - 1) T + d` and `k T + d`, depending on the phase of its heartbeat interval. `interval_ns` is T,
/// `misses` is k, and `delay_ns` is the delay d of a heartbeat.
#[must_use]
pub fn detection_ns(interval_ns: f64, misses: u64, delay_ns: f64) -> (f64, f64) {
    let misses = misses as f64;
    ((misses - 1.0) * interval_ns + delay_ns, misses * interval_ns + delay_ns)
}

/// Returns the mean over a death at any time: `(k - 1/2) T + d`.
#[must_use]
pub fn detection_mean_ns(interval_ns: f64, misses: u64, delay_ns: f64) -> f64 {
    (misses as f64 - 0.5) * interval_ns + delay_ns
}

/// Returns the remaining throughput when one of several planes is lost.
#[must_use]
pub fn after_plane_loss(planes: u64) -> f64 {
    (planes - 1) as f64 / planes as f64
}

/// Returns the remaining throughput of a ring collective when one link is cut: the traffic of a ring in one direction
/// detours over idle reverse links, that of two counter-rotating rings shares them.
#[must_use]
pub const fn after_ring_cut(rings: u64) -> f64 {
    if rings == 1 { 1.0 } else { 0.5 }
}

/// Load of the busiest link of a full mesh whose link between two members is cut, when their traffic takes one relay.
pub const MESH_CUT_ONE_RELAY: f64 = 2.0;

/// Load of the busiest link if that traffic is spread over all other members: each of N - 2 relays carries its share
/// beside a flow of its own.
#[must_use]
pub fn after_mesh_cut_spread(nodes: u64) -> f64 {
    (nodes - 1) as f64 / (nodes - 2) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_misses_of_100_us_are_detected_after_400_to_500_us() {
        assert_eq!(detection_ns(100_000.0, 5, 500.0), (400_500.0, 500_500.0));
        assert_eq!(detection_mean_ns(100_000.0, 5, 500.0), 450_500.0);
        assert_eq!((after_mesh_cut_spread(6), after_mesh_cut_spread(3)), (1.25, 2.0));
        assert_eq!((after_plane_loss(4), after_ring_cut(1), after_ring_cut(2)), (0.75, 1.0, 0.5));
    }
}
