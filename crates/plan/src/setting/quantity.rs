//! Numbers with units, parsed exactly: `4MiB`, `1.5us`, `100Gbit/s`, `1%`.
//!
//! A number without a unit is refused if a unit is required. Fractions are accepted if the result is a whole
//! number of the base unit (bytes, nanoseconds, bits per second, millimetres). Ranges are checked elsewhere.

use crate::setting::complaint::{Complaint, quoted};

/// Family of units: names, and the size of each unit in the base unit.
pub(crate) struct Family {
    what: &'static str,
    example: &'static str,
    units: &'static [(&'static str, u64)],
}

pub(crate) const BYTES: Family = Family {
    what: "a size",
    example: "4MiB",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
};

pub(crate) const TIMES: Family = Family {
    what: "a time",
    example: "500ns",
    units: &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)],
};

pub(crate) const RATES: Family = Family {
    what: "a rate",
    example: "100Gbit/s",
    units: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
        ("Tbit/s", 1_000_000_000_000),
    ],
};

pub(crate) const COMPUTE_RATES: Family = Family {
    what: "a rate of computation",
    example: "500TFLOP/s",
    units: &[
        ("FLOP/s", 1),
        ("kFLOP/s", 1_000),
        ("MFLOP/s", 1_000_000),
        ("GFLOP/s", 1_000_000_000),
        ("TFLOP/s", 1_000_000_000_000),
        ("PFLOP/s", 1_000_000_000_000_000),
    ],
};

pub(crate) const LENGTHS: Family = Family {
    what: "a length",
    example: "3m",
    units: &[("mm", 1), ("cm", 10), ("m", 1_000), ("km", 1_000_000)],
};

/// Hint for a value that is no probability.
pub(crate) const PROBABILITY_HINT: &str = "a probability lies within 0 and 1, or 0% and 100%";

/// Reads a size in bytes.
pub(crate) fn bytes(text: &str) -> Result<u64, Complaint> {
    BYTES.read(text)
}

/// Reads a time in nanoseconds.
pub(crate) fn nanoseconds(text: &str) -> Result<u64, Complaint> {
    TIMES.read(text)
}

/// Reads a length in millimetres.
pub(crate) fn millimetres(text: &str) -> Result<u64, Complaint> {
    LENGTHS.read(text)
}

/// Reads a rate in bits per second. `None` is `unlimited`.
pub(crate) fn rate(text: &str) -> Result<Option<u64>, Complaint> {
    if text == "unlimited" { Ok(None) } else { RATES.read(text).map(Some) }
}

/// Reads a rate of computation in floating-point operations per second.
pub(crate) fn flops_per_s(text: &str) -> Result<u64, Complaint> {
    COMPUTE_RATES.read(text)
}

/// Reads a probability, written as a number or in per cent.
pub(crate) fn probability(text: &str) -> Result<f64, Complaint> {
    let (number, divisor) = text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 100.0));
    let value = number.parse::<f64>().map(|value| value / divisor).map_err(|_| {
        Complaint::about(format!("{} is not a probability", quoted(text)))
            .hint("write a number like `0.01` or `1%`")
    })?;
    match (0.0..=1.0).contains(&value) {
        true => Ok(value),
        false => Err(Complaint::about(format!("{value} is no probability")).hint(PROBABILITY_HINT)),
    }
}

/// Reads a whole number, decimal or with `0x`, that fits its type.
pub(crate) fn whole<T: TryFrom<u64>>(text: &str) -> Result<T, Complaint> {
    let digits = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    let value = match digits {
        ("", _) => None,
        (digits, radix) if digits.chars().all(|digit| digit.is_digit(radix)) => {
            Some(u64::from_str_radix(digits, radix).ok().and_then(|value| T::try_from(value).ok()))
        }
        _ => None,
    };
    match value {
        Some(Some(value)) => Ok(value),
        Some(None) => Err(Complaint::about(format!("{} is too large", quoted(text)))
            .hint("its range stands in docs/topology-file.md and in `rackloom schema`")
            .beyond_type()),
        None => Err(Complaint::about(format!("{} is not a whole number", quoted(text)))
            .hint("write digits without a unit, like `64`")),
    }
}

/// Reads a number with at most three decimal places, in thousandths.
pub(crate) fn thousandths<T: TryFrom<u64>>(text: &str) -> Result<T, Complaint> {
    let about = |what: &str| Complaint::about(format!("{} {what}", quoted(text)));
    let (ones, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = [ones, decimals]
        .iter()
        .all(|part| !part.is_empty() && part.chars().all(|digit| digit.is_ascii_digit()));
    if !is_number {
        return Err(about("is not a number").hint("write one like `2` or `0.5`"));
    }
    let decimals = decimals.trim_end_matches('0');
    if decimals.len() > 3 {
        return Err(about("has more than three decimal places").hint("write one like `2` or `0.5`"));
    }
    let value = format!("{ones}{decimals:0<3}").parse::<u64>().ok().and_then(|value| T::try_from(value).ok());
    value.ok_or_else(|| {
        let hint = "its range stands in docs/topology-file.md and in `rackloom schema`";
        about("is too large").hint(hint).beyond_type()
    })
}

/// Base unit of a value, for messages.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Bytes,
    Nanoseconds,
    BitsPerSecond,
    FlopsPerSecond,
    Millimetres,
    Thousandths,
    Count,
    Code,
}

/// Formats a value like a user would write it: in the largest unit in which it is a whole number.
pub(crate) fn shown(value: u64, unit: Unit) -> String {
    let family = match unit {
        Unit::Bytes => &BYTES,
        Unit::Nanoseconds => &TIMES,
        Unit::BitsPerSecond => &RATES,
        Unit::FlopsPerSecond => &COMPUTE_RATES,
        Unit::Millimetres => &LENGTHS,
        Unit::Thousandths => return format!("{}", value as f64 / 1e3),
        Unit::Count => return value.to_string(),
        Unit::Code => return format!("{value:#06X}").replace('X', "x"),
    };
    let fitting = family.units.iter().filter(|(_, factor)| value > 0 && value.is_multiple_of(*factor));
    let (name, factor) = fitting.max_by_key(|(_, factor)| *factor).copied().unwrap_or(family.units[0]);
    format!("{}{name}", value / factor)
}

impl Family {
    fn read(&self, text: &str) -> Result<u64, Complaint> {
        let end = text.find(|character: char| !(character.is_ascii_digit() || character == '.'));
        let (number, unit) = text.split_at(end.unwrap_or(text.len()));
        let unit = unit.trim_start();
        let Some((mantissa, decimals)) = decimal(number) else {
            return Err(
                Complaint::about(format!("{} is not {}", quoted(text), self.what)).hint(self.advice())
            );
        };
        let Some((_, factor)) = self.units.iter().find(|(name, _)| *name == unit) else {
            return Err(self.wrong_unit(text, number, unit));
        };
        let too_large = || {
            Complaint::about(format!("{} is too large", quoted(text))).hint("no number of 64 bits holds it")
        };
        let scaled = mantissa.checked_mul(u128::from(*factor)).ok_or_else(too_large)?;
        let divisor = 10_u128.checked_pow(decimals).ok_or_else(too_large)?;
        if !scaled.is_multiple_of(divisor) {
            let base = self.units[0].0;
            let hint = format!("write whole {base}, or a fraction that comes to whole {base}");
            let message = format!("{} is not a whole number of {base}", quoted(text));
            return Err(Complaint::about(message).hint(hint));
        }
        u64::try_from(scaled / divisor).map_err(|_| too_large())
    }

    fn wrong_unit(&self, text: &str, number: &str, unit: &str) -> Complaint {
        if unit.is_empty() {
            let guess = format!("write `{number}{}` or another unit ({})", self.units[0].0, self.names());
            return Complaint::about(format!("{} has no unit", quoted(text))).hint(guess);
        }
        let message = format!("{} is not a unit of {}", quoted(unit), self.what);
        let same_but_case = self.units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
        Complaint::about(message).hint(match same_but_case {
            Some((name, _)) => format!("write `{number}{name}`"),
            None => self.advice(),
        })
    }

    /// Returns a regular expression for quantities of the family.
    pub(crate) fn pattern(&self) -> String {
        let units: Vec<&str> = self.units.iter().map(|(name, _)| *name).collect();
        format!(r"[0-9]+(\.[0-9]+)? *({})", units.join("|"))
    }

    fn advice(&self) -> String {
        format!("write {} like `{}`; units are {}", self.what, self.example, self.names())
    }

    fn names(&self) -> String {
        self.units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }
}

/// Parses `12.50` as (1250, 2): the digits, and the number of decimal places.
fn decimal(text: &str) -> Option<(u128, u32)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() || text.ends_with('.') || fraction.contains('.') {
        return None;
    }
    let mantissa = format!("{whole}{fraction}").parse().ok()?;
    Some((mantissa, u32::try_from(fraction.len()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_scale_exactly() {
        assert_eq!(bytes("4MiB"), Ok(4_194_304));
        assert_eq!(bytes("4 MB"), Ok(4_000_000));
        assert_eq!(nanoseconds("1.5us"), Ok(1_500));
        assert_eq!(nanoseconds("0.2ms"), Ok(200_000));
        assert_eq!(rate("0.1Gbit/s"), Ok(Some(100_000_000)));
        assert_eq!(rate("unlimited"), Ok(None));
        assert_eq!(flops_per_s("0.5PFLOP/s"), Ok(500_000_000_000_000));
        assert_eq!(millimetres("2.5m"), Ok(2_500));
        assert_eq!(probability("1%"), Ok(0.01));
        assert_eq!(whole::<u16>("0x88B5"), Ok(0x88B5));
    }

    #[test]
    fn a_formatted_value_reads_back() {
        for value in [0, 1, 1_000, 4_224, 4_096, 1 << 20, 3_000_000_000] {
            assert_eq!(bytes(&shown(value, Unit::Bytes)), Ok(value));
            assert_eq!(nanoseconds(&shown(value, Unit::Nanoseconds)), Ok(value));
        }
        assert_eq!(shown(1 << 20, Unit::Bytes), "1MiB");
        assert_eq!(shown(2_500_000, Unit::Nanoseconds), "2500us");
    }

    #[test]
    fn inexact_values_and_other_texts_are_refused() {
        let refused =
            ["", "ns", ".5us", "5.us", "1.2.3us", "-5ns", "1e3ns", "0.5ns", "5", "5 fortnights", "5MS"];
        for text in refused {
            assert!(nanoseconds(text).is_err(), "{text}");
        }
        assert!(nanoseconds("99999999999s").is_err(), "more than 64 bits of nanoseconds");
        assert!(bytes(&format!("0.{}1GiB", "0".repeat(40))).is_err(), "more decimals than a number holds");
        for text in ["", "-1", "+1", "1.0", "0x", "0xg", "one", "99999999999999999999"] {
            assert!(whole::<u64>(text).is_err(), "{text}");
        }
        assert!(whole::<u16>("65536").is_err());
    }

    #[test]
    fn the_hint_names_the_unit_that_was_meant() {
        let hint = |result: Result<u64, Complaint>| result.unwrap_err().finish().1;
        assert!(hint(nanoseconds("500")).contains("`500ns`"));
        assert!(hint(bytes("4mib")).contains("`4MiB`"));
        assert!(hint(bytes("4ms")).contains("KiB"));
    }
}
