//! Axes: label, unit and kind of scale.

use crate::number;

/// Label, unit and scale of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Text beside the axis, without the unit.
    pub label: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Scale of the axis.
    pub kind: ScaleKind,
}

/// Relation between values and distances on an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScaleKind {
    /// Equal steps are equal distances.
    Linear,
    /// Equal steps are equal distances, and zero is on the axis.
    FromZero,
    /// Equal factors are equal distances. Values that are not positive have no position.
    Logarithmic,
    /// Linear around zero up to this value, and logarithmic beyond it in both directions.
    Symlog(f64),
}

/// Unit of values, and its prefixes.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    symbol: String,
    /// Value of one in the unit without a prefix.
    factor: f64,
    prefixes: Prefixes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prefixes {
    None,
    Decimal,
    Binary,
}

/// Units with prefixes that labels may end with: text, symbol without prefix, factor.
const KNOWN: [(&str, &str, f64, Prefixes); 18] = [
    ("ns", "s", 1e-9, Prefixes::Decimal),
    ("us", "s", 1e-6, Prefixes::Decimal),
    ("\u{b5}s", "s", 1e-6, Prefixes::Decimal),
    ("ms", "s", 1e-3, Prefixes::Decimal),
    ("s", "s", 1.0, Prefixes::Decimal),
    ("B", "B", 1.0, Prefixes::Binary),
    ("bytes", "B", 1.0, Prefixes::Binary),
    ("KiB", "B", 1024.0, Prefixes::Binary),
    ("MiB", "B", 1_048_576.0, Prefixes::Binary),
    ("B/s", "B/s", 1.0, Prefixes::Decimal),
    ("MB/s", "B/s", 1e6, Prefixes::Decimal),
    ("GB/s", "B/s", 1e9, Prefixes::Decimal),
    ("bit/s", "bit/s", 1.0, Prefixes::Decimal),
    ("Mbit/s", "bit/s", 1e6, Prefixes::Decimal),
    ("Gbit/s", "bit/s", 1e9, Prefixes::Decimal),
    ("mm", "m", 1e-3, Prefixes::Decimal),
    ("m", "m", 1.0, Prefixes::Decimal),
    ("frames/s", "frames/s", 1.0, Prefixes::Decimal),
];

impl Axis {
    /// Returns a linear axis. A unit in parentheses at the end of the label, such as `(us)`, is the unit of the values.
    #[must_use]
    pub fn linear(label: &str) -> Self {
        Self::new(label, ScaleKind::Linear)
    }

    /// Returns a linear axis that begins at zero. A unit in parentheses at the end of the label, such as `(us)`, is the unit of the values.
    #[must_use]
    pub fn from_zero(label: &str) -> Self {
        Self::new(label, ScaleKind::FromZero)
    }

    /// Returns a logarithmic axis. A unit in parentheses at the end of the label, such as `(us)`, is the unit of the values.
    #[must_use]
    pub fn logarithmic(label: &str) -> Self {
        Self::new(label, ScaleKind::Logarithmic)
    }

    /// Returns an axis with this scale. A unit in parentheses at the end of the label, such as `(us)`, is the unit of the values.
    #[must_use]
    pub fn new(label: &str, kind: ScaleKind) -> Self {
        let split = label.strip_suffix(')').and_then(|label| label.rsplit_once(" ("));
        let (label, unit) = match split {
            Some((label, unit)) if !unit.is_empty() && !unit.contains([' ', ';']) => {
                (label, Unit::named(unit))
            }
            _ => (label, Unit::none()),
        };
        Self { label: label.to_owned(), unit, kind }
    }

    /// Returns the label with a unit.
    pub(super) fn label_with(&self, unit: Option<&str>) -> String {
        match unit {
            Some(unit) if !unit.is_empty() => format!("{} ({unit})", self.label),
            _ => self.label.clone(),
        }
    }
}

impl Unit {
    /// Returns the unit of pure numbers.
    #[must_use]
    pub fn none() -> Self {
        Self::named("")
    }

    /// Returns a unit by its symbol. Times, bytes, rates and lengths have prefixes; other units have none.
    #[must_use]
    pub fn named(symbol: &str) -> Self {
        let known = KNOWN.iter().find(|(text, ..)| *text == symbol);
        let (symbol, factor, prefixes) = known
            .map_or((symbol, 1.0, Prefixes::None), |(_, symbol, factor, prefixes)| {
                (*symbol, *factor, *prefixes)
            });
        Self { symbol: symbol.to_owned(), factor, prefixes }
    }

    /// Returns true if round numbers are powers of two.
    pub(super) fn is_binary(&self) -> bool {
        self.prefixes == Prefixes::Binary
    }

    /// Returns true if the unit has no prefixes, such as that of counts.
    pub(super) fn has_no_prefixes(&self) -> bool {
        self.prefixes == Prefixes::None
    }

    /// Returns the value of one in the unit without a prefix.
    pub(super) const fn factor(&self) -> f64 {
        self.factor
    }

    /// Formats a value with its unit.
    #[must_use]
    pub fn text(&self, value: f64) -> String {
        let base = value * self.factor;
        let (prefix, size) = self.prefix_of(base);
        let number = self.number(base / size, 4);
        if self.symbol.is_empty() { number } else { format!("{number} {prefix}{}", self.symbol) }
    }

    /// Formats the marks of an axis. Returns the unit for the axis' label as well, if all marks share it.
    pub(super) fn marks(&self, values: &[f64]) -> (Vec<String>, Option<String>) {
        let base: Vec<f64> = values.iter().map(|value| value * self.factor).collect();
        let largest = base.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
        let (prefix, size) = self.prefix_of(largest);
        let texts: Vec<String> = base.iter().map(|value| self.number(value / size, 6)).collect();
        if self.prefixes == Prefixes::None
            || texts.iter().all(|text| text.chars().count() <= 5 && !text.starts_with("0.0"))
        {
            return (texts, Some(format!("{prefix}{}", self.symbol)));
        }
        (values.iter().map(|value| self.text(*value)).collect(), None)
    }

    fn number(&self, value: f64, digits: i32) -> String {
        if self.prefixes == Prefixes::None {
            number::short(value, digits)
        } else {
            number::plain(value, digits)
        }
    }

    /// Returns the prefix for a value in the unit without a prefix, and the value of one with the prefix.
    fn prefix_of(&self, base: f64) -> (&'static str, f64) {
        let of = |steps: &[(&'static str, f64)]| {
            // A value just below a step by rounding belongs to the step.
            let fits = steps.iter().rev().find(|(_, size)| base.abs() >= size * (1.0 - 1e-9));
            fits.or(steps.first()).copied().unwrap_or(("", 1.0))
        };
        match self.prefixes {
            _ if base == 0.0 => ("", 1.0),
            Prefixes::None => ("", 1.0),
            Prefixes::Decimal => of(&[
                ("n", 1e-9),
                ("\u{b5}", 1e-6),
                ("m", 1e-3),
                ("", 1.0),
                ("k", 1e3),
                ("M", 1e6),
                ("G", 1e9),
                ("T", 1e12),
            ]),
            Prefixes::Binary => of(&[
                ("", 1.0),
                ("Ki", 1024.0),
                ("Mi", 1_048_576.0),
                ("Gi", 1_073_741_824.0),
                ("Ti", 1_099_511_627_776.0),
            ]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_in_a_label_is_the_unit_of_the_values() {
        let axis = Axis::linear("time of an all-reduce (us)");
        assert_eq!(axis.label, "time of an all-reduce");
        assert_eq!(
            [0.5, 12.0, 3200.0, 2e6].map(|value| axis.unit.text(value)),
            ["500 ns", "12 \u{b5}s", "3.2 ms", "2 s"]
        );
        assert_eq!(Axis::linear("array (B)").unit.text(65_536.0), "64 KiB");
        assert_eq!(Axis::linear("longest queue (packets)").unit.text(3.0), "3 packets");
        // A remark is no unit.
        assert_eq!(Axis::linear("credits (128 B each)").label, "credits (128 B each)");
    }

    #[test]
    fn marks_share_a_unit_if_all_of_them_are_short_in_it() {
        let unit = Unit::named("us");
        assert_eq!(
            unit.marks(&[0.0, 100.0, 200.0]),
            (vec!["0".into(), "100".into(), "200".into()], Some("\u{b5}s".into()))
        );
        assert_eq!(
            unit.marks(&[0.1, 10.0, 1000.0]),
            (vec!["100 ns".into(), "10 \u{b5}s".into(), "1 ms".into()], None)
        );
        let (texts, unit) = Unit::none().marks(&[0.0001, 0.01, 1.0]);
        assert_eq!((texts[0].as_str(), unit), ("10\u{207b}\u{2074}", Some(String::new())));
    }
}
