//! Durations of single operations, and how many fit into that time.

/// Returns the bytes per second of loads of which `outstanding` are open at a time: `outstanding * size / RTT` (Little's law).
#[must_use]
pub fn load_throughput_bytes_per_s(outstanding: u64, load_bytes: u64, round_trip_ns: f64) -> f64 {
    (outstanding * load_bytes) as f64 * 1e9 / round_trip_ns
}

/// Returns the duration of a request and its answer over one link: serialise, travel, serialise, travel.
#[must_use]
pub fn round_trip_ns(delay_ns: f64, request_ns: f64, answer_ns: f64) -> f64 {
    2.0 * delay_ns + request_ns + answer_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_four_loads_of_256_bytes_in_1_2_us_are_13_7_gigabytes_per_second() {
        assert!((load_throughput_bytes_per_s(64, 256, 1_200.0) / 1e9 - 13.65).abs() < 0.01);
        assert_eq!(round_trip_ns(500.0, 10.0, 7.0), 1_017.0);
    }
}
