//! Numbers as text: four digits at most, and a unit. Times and rates count in powers of 1000, bytes in powers of 1024.

use rackloom_drawing::chart::Unit;

use crate::model::Cell;

/// Formats a duration in nanoseconds.
#[must_use]
pub fn time(nanoseconds: f64) -> String {
    Unit::named("ns").text(nanoseconds)
}

/// Formats a number of bytes.
#[must_use]
pub fn bytes(count: u64) -> String {
    Unit::named("B").text(count as f64)
}

/// Formats a rate in bytes per second.
#[must_use]
pub fn rate(bytes_per_s: f64) -> String {
    Unit::named("B/s").text(bytes_per_s)
}

/// Formats a part of one as per cent with one decimal. A small part that would be rounded to zero is `<0.1 %`.
#[must_use]
pub fn share(part: f64) -> String {
    if part > 0.0 && part < 0.0005 {
        return "<0.1 %".to_owned();
    }
    format!("{:.1} %", part * 100.0)
}

/// Formats a count with a space between groups of three digits.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a number with three decimals.
#[must_use]
pub fn decimal(value: f64) -> String {
    if value.is_finite() { format!("{value:.3}") } else { "-".to_owned() }
}

/// Returns the cell of a duration in nanoseconds.
#[must_use]
pub fn time_cell(nanoseconds: u64) -> Cell {
    Cell::number(time(nanoseconds as f64), nanoseconds as f64)
}

/// Returns the cell of a duration in nanoseconds that may be absent.
#[must_use]
pub fn optional_time_cell(nanoseconds: Option<u64>) -> Cell {
    nanoseconds.map_or_else(Cell::absent, time_cell)
}

/// Returns the cell of a number of bytes.
#[must_use]
pub fn bytes_cell(count: u64) -> Cell {
    Cell::number(bytes(count), count as f64)
}

/// Returns the cell of a count.
#[must_use]
pub fn count_cell(number: u64) -> Cell {
    Cell::number(count(number), number as f64)
}

/// Returns the cell of a part of one.
#[must_use]
pub fn share_cell(part: f64) -> Cell {
    Cell::number(share(part), part)
}

/// Returns the cell of a number that may be absent, with three decimals.
#[must_use]
pub fn decimal_cell(value: Option<f64>) -> Cell {
    match value.filter(|value| value.is_finite()) {
        Some(value) => Cell::number(decimal(value), value),
        None => Cell::absent(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_unit_and_four_digits_at_most() {
        assert_eq!([0.0, 950.0, 12_345.0, 3e9].map(time), ["0 s", "950 ns", "12.35 \u{b5}s", "3 s"]);
        assert_eq!([bytes(1), bytes(1 << 20), rate(2.5e9)], ["1 B", "1 MiB", "2.5 GB/s"]);
        assert_eq!(
            [0.0, 0.5, 0.000_18, 0.001, 1.0].map(share),
            ["0.0 %", "50.0 %", "<0.1 %", "0.1 %", "100.0 %"]
        );
        assert_eq!([0, 999, 1_234_567].map(count), ["0", "999", "1\u{202f}234\u{202f}567"]);
    }

    #[test]
    fn a_value_that_is_no_number_is_absent() {
        assert_eq!(decimal_cell(Some(f64::NAN)), Cell::absent());
        assert_eq!(decimal_cell(Some(1.5)), Cell::number("1.500", 1.5));
    }
}
