//! Times, sizes and amounts of computation as text: a whole number and a unit.

/// Units of time in nanoseconds, the largest first.
const TIMES: &[(&str, u64)] = &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
/// Units of size in bytes that are written, the largest first.
const BINARY: &[(&str, u64)] = &[("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
/// Further units of size.
const DECIMAL: &[(&str, u64)] = &[("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000)];

/// Units of floating-point operations, the largest first.
const FLOPS: &[(&str, u64)] = &[
    ("PFLOP", 1_000_000_000_000_000),
    ("TFLOP", 1_000_000_000_000),
    ("GFLOP", 1_000_000_000),
    ("MFLOP", 1_000_000),
    ("kFLOP", 1_000),
    ("FLOP", 1),
];

/// Returns a time in the largest unit without a fraction.
pub(super) fn write_time(ns: u64) -> String {
    write(ns, TIMES)
}

/// Returns a size in the largest binary unit without a fraction.
pub(super) fn write_size(bytes: u64) -> String {
    write(bytes, BINARY)
}

/// Returns a number of floating-point operations in the largest unit without a fraction.
pub(super) fn write_flops(flops: u64) -> String {
    write(flops, FLOPS)
}

/// Reads a number of floating-point operations, or returns the reason.
pub(super) fn read_flops(text: &str) -> Result<u64, String> {
    read(text, FLOPS.iter())
}

/// Returns true if a text has a unit of floating-point operations, in any spelling.
pub(super) fn is_flops(text: &str) -> bool {
    text.to_ascii_lowercase().contains("flop")
}

/// Reads a time in nanoseconds, or returns the reason.
pub(super) fn read_time(text: &str) -> Result<u64, String> {
    read(text, TIMES.iter())
}

/// Reads a size in bytes, or returns the reason.
pub(super) fn read_size(text: &str) -> Result<u64, String> {
    read(text, BINARY.iter().chain(DECIMAL))
}

fn write(value: u64, units: &[(&str, u64)]) -> String {
    let fits = |size: u64| size == 1 || value != 0 && value.is_multiple_of(size);
    let unit = units.iter().find(|(_, size)| fits(*size));
    unit.map_or_else(|| value.to_string(), |(name, size)| format!("{}{name}", value / size))
}

fn read<'u>(text: &str, mut units: impl Iterator<Item = &'u (&'u str, u64)> + Clone) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|one: char| one.is_ascii_digit()).len();
    let (number, name) = text.split_at(digits);
    let all = units.clone();
    let Some((_, size)) = units.find(|(unit, _)| *unit == name).filter(|_| digits > 0) else {
        let names: Vec<_> = all.map(|(unit, _)| *unit).collect();
        return Err(format!("`{text}` is no whole number with one of the units {}", names.join(", ")));
    };
    let value = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*size));
    value.ok_or_else(|| format!("`{text}` does not fit in 64 bits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_unit_without_a_fraction_is_written() {
        let times = [0, 1, 1_500, 2_000, 3_000_000, 60_000_000_000].map(write_time);
        assert_eq!(times, ["0ns", "1ns", "1500ns", "2us", "3ms", "60s"]);
        let sizes = [0, 1_000, 1_024, 3 << 20, 5 << 40, u64::MAX].map(write_size);
        let flops = [0, 1_500, 2_000_000_000_000, u64::MAX].map(write_flops);
        assert_eq!(flops, ["0FLOP", "1500FLOP", "2TFLOP", "18446744073709551615FLOP"]);
        assert_eq!(sizes, ["0B", "1000B", "1KiB", "3MiB", "5120GiB", "18446744073709551615B"]);
    }

    #[test]
    fn each_unit_is_read() {
        assert_eq!(read_size("7kB"), Ok(7_000));
        assert_eq!(read_size("7KiB"), Ok(7_168));
        assert_eq!(read_size("2GB"), Ok(2_000_000_000));
        assert_eq!(read_time("9ms"), Ok(9_000_000));
        for (unit, size) in FLOPS {
            assert_eq!(read_flops(&format!("7{unit}")), Ok(7 * size));
        }
    }

    #[test]
    fn a_number_without_unit_and_one_that_is_too_large_are_refused() {
        assert_eq!(
            read_size("4096"),
            Err("`4096` is no whole number with one of the units GiB, MiB, KiB, B, kB, MB, GB".into())
        );
        assert_eq!(
            read_size("18446744073709551615GiB"),
            Err("`18446744073709551615GiB` does not fit in 64 bits".into())
        );
        assert_eq!(
            read_time("99999999999999999999ns"),
            Err("`99999999999999999999ns` does not fit in 64 bits".into())
        );
        for wrong in ["ns", "1.5us", "-1ns", "1 ns", "1KiB"] {
            assert!(read_time(wrong).is_err(), "{wrong}");
        }
    }
}
