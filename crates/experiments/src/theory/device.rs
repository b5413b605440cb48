//! Times that a GPU adds to those of its links.

/// Returns the bytes per second of transfers of which `in_flight` are open at a time, through a link: each takes the device's
/// latency, the time of its bytes on the link, and the delay there and back (Little's law), and the link is the bound.
#[must_use]
pub fn bulk_throughput_bytes_per_s(
    in_flight: u64,
    transfer_bytes: u64,
    latency_ns: f64,
    delay_ns: f64,
    link_bytes_per_ns: f64,
) -> f64 {
    let one_ns = latency_ns + transfer_bytes as f64 / link_bytes_per_ns + 2.0 * delay_ns;
    ((in_flight * transfer_bytes) as f64 / one_ns).min(link_bytes_per_ns) * 1e9
}

/// Returns the nanoseconds in which a memory reads `operands` arrays and writes their reduction.
#[must_use]
pub fn fold_ns(operands: f64, array_bytes: f64, memory_bits_per_s: f64) -> f64 {
    (operands + 1.0) * array_bytes * 8.0 * 1e9 / memory_bits_per_s
}

/// Returns the nanoseconds of a computation: its launch, and the longer one of performing `flops` and of moving `bytes` (roofline;
/// Williams, Waterman, Patterson 2009).
#[must_use]
pub fn compute_ns(launch_ns: f64, flops: f64, flops_per_s: f64, bytes: f64, memory_bits_per_s: f64) -> f64 {
    launch_ns + (flops * 1e9 / flops_per_s).max(bytes * 8.0 * 1e9 / memory_bits_per_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_computation_is_bound_by_its_operations_or_by_its_bytes() {
        // 1e9 operations at 1 TFLOP/s take 1 ms; 1 MB at 8 Gbit/s takes 1 ms.
        assert_eq!(compute_ns(5.0, 1e9, 1e12, 5e5, 8e9), 1_000_005.0);
        assert_eq!(compute_ns(5.0, 1e9, 1e12, 2e6, 8e9), 2_000_005.0);
    }

    #[test]
    fn few_transfers_wait_for_their_round_trip_and_many_for_the_link() {
        // 100 bytes per ns: 65.5 KB take 655 ns, with 2 us before and 1 us there and back 3.655 us.
        let one = bulk_throughput_bytes_per_s(1, 65_536, 2_000.0, 500.0, 100.0);
        assert!((one / 1e9 - 17.93).abs() < 0.01, "{one}");
        assert_eq!(bulk_throughput_bytes_per_s(6, 65_536, 2_000.0, 500.0, 100.0), 100e9);
    }

    #[test]
    fn eight_arrays_of_a_megabyte_and_their_sum_take_9_us_at_8_terabits_per_second() {
        assert_eq!(fold_ns(8.0, 1e6, 8e12), 9_000.0);
    }
}
