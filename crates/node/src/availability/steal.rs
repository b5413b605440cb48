//! Processor time that the hypervisor took away from this virtual machine: field `steal` of `/proc/stat`.

use std::fs;

/// Length of a tick of `/proc/stat` in nanoseconds: a hundredth of a second (`USER_HZ`, which is 100 on every Linux that user programs run on).
const TICK_NS: u64 = 10_000_000;
/// Index of the steal value among the numbers of a `cpuN` line, from 0.
const STEAL_FIELD: usize = 7;

/// Returns the time stolen since boot from the processor that lost the most, in nanoseconds. Returns zero where the kernel does not report it.
#[must_use]
pub(super) fn stolen_max_ns() -> u64 {
    fs::read_to_string("/proc/stat").map_or(0, |text| parse(&text))
}

fn parse(text: &str) -> u64 {
    let processors = text.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "));
    let stolen = |line: &str| line.split_ascii_whitespace().nth(STEAL_FIELD + 1)?.parse::<u64>().ok();
    processors.filter_map(stolen).max().unwrap_or(0).saturating_mul(TICK_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_that_lost_most_counts_and_the_sum_does_not() {
        let text =
            "cpu  9 9 9 9 9 9 9 300 0 0\ncpu0 1 1 1 1 1 1 1 120 0 0\ncpu1 1 1 1 1 1 1 1 180 0 0\nintr 5\n";
        assert_eq!(parse(text), 1_800_000_000);
        assert_eq!(parse("cpu0 1 2\n"), 0);
        assert_eq!(parse(""), 0);
    }
}
