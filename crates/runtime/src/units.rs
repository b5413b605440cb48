//! Numbers for people: three significant digits and a unit.
//!
//! Bytes of memory count in powers of 1024 (KiB). Rates and times count in powers of 1000 (MB/s, us).

/// Scales a value to the largest unit in which it is at least one.
fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    // 999.5 would be printed as 1000.
    while value >= step * 0.9995 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let decimals = match value {
        _ if unit == 0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {}", units[unit])
}

/// Formats a duration.
pub fn time(nanoseconds: u64) -> String {
    scaled(nanoseconds as f64, 1000.0, &["ns", "us", "ms", "s"])
}

/// Formats a number of bytes in memory or on a wire.
pub fn bytes(count: u64) -> String {
    scaled(count as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// Formats a rate in bytes per second.
pub fn rate(bytes_per_s: u64) -> String {
    scaled(bytes_per_s as f64, 1000.0, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"])
}

/// Formats a rate in bits per second.
pub fn bit_rate(bits_per_s: u64) -> String {
    scaled(bits_per_s as f64, 1000.0, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

/// Formats a number of floating-point operations.
pub fn flops(count: u64) -> String {
    scaled(count as f64, 1000.0, &["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"])
}

/// Formats a count with a space between groups of three digits.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a probability as per cent, and zero as a dash.
pub fn share(probability: f64) -> String {
    if probability == 0.0 {
        return "-".to_owned();
    }
    let mut text = format!("{:.6}", probability * 100.0);
    text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    if text == "0" { format!("{probability:e}") } else { format!("{text}%") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_fitting_unit() {
        let shown = [0, 999, 1_000, 9_994, 12_345, 999_400, 999_999, 1_500_000_000, 90_000_000_000].map(time);
        assert_eq!(
            shown,
            ["0 ns", "999 ns", "1.00 us", "9.99 us", "12.3 us", "999 us", "1.00 ms", "1.50 s", "90.0 s"]
        );
    }

    #[test]
    fn memory_counts_in_1024_and_rates_in_1000() {
        assert_eq!([bytes(1023), bytes(1024), bytes(1 << 20)], ["1023 B", "1.00 KiB", "1.00 MiB"]);
        assert_eq!([rate(1024), rate(2_500_000_000)], ["1.02 kB/s", "2.50 GB/s"]);
        assert_eq!(bit_rate(400_000_000_000), "400 Gbit/s");
        assert_eq!([flops(999), flops(2_500_000_000)], ["999 FLOP", "2.50 GFLOP"]);
    }

    #[test]
    fn counts_have_groups_of_three_digits() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1 000", "1 234 567"]);
    }

    #[test]
    fn shares_are_per_cent_without_trailing_zeroes() {
        assert_eq!(
            [0.0, 0.01, 0.0001, 1.0, 0.125, 1e-12].map(share),
            ["-", "1%", "0.01%", "100%", "12.5%", "1e-12"]
        );
    }
}
