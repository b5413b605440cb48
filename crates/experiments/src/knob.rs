//! Inputs of experiments that `--vary` changes: each with its name and usual values.
//!
//! Values are text as in a rack file, because they are inserted there; the numbers that a formula needs are parsed here.

use std::collections::BTreeMap;
use std::fmt;

use rackloom_plan::units;

/// One input that can be varied.
#[derive(Clone, Copy, Debug)]
pub struct Knob {
    /// Name; if the rack file has such a key, the key: `link.loss`.
    pub name: &'static str,
    /// Description.
    pub description: &'static str,
    /// Usual values.
    pub usual: &'static [&'static str],
    /// Values of the reduced set; empty for all of the usual ones.
    pub reduced: &'static [&'static str],
    /// Kind of the values.
    pub kind: KnobKind,
}

/// Kind of a knob's values. Bounds are inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnobKind {
    /// A whole number.
    Count(u64, u64),
    /// A whole number of bytes, or a size with its unit.
    Bytes(u64, u64),
    /// A whole number of microseconds, or a time with its unit.
    Microseconds(u64, u64),
    /// A whole number of metres, or a length with its unit.
    Metres(u64, u64),
    /// A number above 0 and below 1, or per cent.
    Share,
    /// A share as [`Self::Share`], up to this maximum, beyond which the formula does not hold.
    ShareUpTo {
        /// Largest value, in thousandths.
        thousandths: u16,
    },
    /// One of the usual values.
    Choice,
}

/// Error of a knob or value that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Description of the error.
    pub what: String,
    /// Hint for the user.
    pub hint: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}; hint: {}", self.what, self.hint)
    }
}

impl std::error::Error for Refused {}

/// Names of knobs in version 0.1, with those of today.
const OLD_NAMES: [(&str, &str); 1] = [("ways", "inputs")];

/// Knobs of an experiment with the user's values.
#[derive(Clone, Debug)]
pub(crate) struct Knobs {
    known: &'static [Knob],
    values: BTreeMap<String, Vec<String>>,
}

impl Knobs {
    pub(crate) fn new(
        experiment: &str,
        known: &'static [Knob],
        values: &BTreeMap<String, Vec<String>>,
    ) -> Result<Self, Refused> {
        let mut values = values.clone();
        for (old, new) in OLD_NAMES {
            let is_known = known.iter().any(|knob| knob.name == new);
            if is_known
                && !values.contains_key(new)
                && let Some(renamed) = values.remove(old)
            {
                values.insert(new.to_owned(), renamed);
            }
        }
        for (name, values) in &values {
            let Some(knob) = known.iter().find(|knob| knob.name == name.as_str()) else {
                let names: Vec<_> = known.iter().map(|knob| knob.name).collect();
                return Err(Refused {
                    what: format!("experiment {experiment} has nothing called `{name}` to vary"),
                    hint: format!("it has {}", names.join(", ")),
                });
            };
            values.iter().try_for_each(|value| knob.accept(value))?;
            if values.is_empty() {
                let what = format!("`{name}` is varied over no values");
                return Err(Refused { what, hint: format!("write {name}={}", knob.usual.join(",")) });
            }
        }
        Ok(Self { known, values })
    }

    /// Returns true if the user has set the values of this knob.
    pub(crate) fn is_varied(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Returns the values of a knob.
    ///
    /// # Panics
    /// If the experiment has no such knob: its declaration and its trials disagree.
    pub(crate) fn values(&self, name: &str, reduced: bool) -> Vec<String> {
        if let Some(values) = self.values.get(name) {
            return values.clone();
        }
        let knob = self.known.iter().find(|knob| knob.name == name);
        let knob = knob.unwrap_or_else(|| unreachable!("`{name}` is no knob of this experiment"));
        let usual = if reduced && !knob.reduced.is_empty() { knob.reduced } else { knob.usual };
        usual.iter().map(|value| (*value).to_owned()).collect()
    }

    /// Returns the values of a knob that is a count.
    pub(crate) fn counts(&self, name: &str, reduced: bool) -> Vec<u64> {
        let kind = self.known.iter().find(|knob| knob.name == name).map(|knob| knob.kind);
        self.values(name, reduced).iter().filter_map(|value| kind?.whole(value)).collect()
    }

    /// Returns the values of a knob that is a share.
    pub(crate) fn shares(&self, name: &str, reduced: bool) -> Vec<f64> {
        self.values(name, reduced).iter().filter_map(|value| units::probability(value)).collect()
    }
}

impl Knob {
    fn accept(&self, value: &str) -> Result<(), Refused> {
        let is_fine = match self.kind {
            KnobKind::Share => units::probability(value).is_some_and(|share| share > 0.0 && share < 1.0),
            KnobKind::ShareUpTo { thousandths } => {
                // Values are parsed from decimal text, so the bound itself may differ in the last bit.
                let most = f64::from(thousandths) / 1000.0 * (1.0 + 1e-12);
                units::probability(value).is_some_and(|share| share > 0.0 && share <= most)
            }
            KnobKind::Choice => self.usual.contains(&value),
            counted => counted.whole(value).is_some(),
        };
        if is_fine {
            return Ok(());
        }
        let what = format!("`{}` of `{value}` is not {}", self.name, self.kind.wanted());
        Err(Refused { what, hint: format!("write values like {}={}", self.name, self.usual.join(",")) })
    }
}

impl KnobKind {
    /// Parses a count, with or without its unit.
    fn whole(self, text: &str) -> Option<u64> {
        let whole = |value: u64, of: u64| value.is_multiple_of(of).then_some(value / of);
        let bare = text.parse::<u64>().ok();
        let (value, least, most) = match self {
            Self::Count(least, most) => (bare, least, most),
            Self::Bytes(least, most) => (bare.or_else(|| units::size_bytes(text)), least, most),
            Self::Microseconds(least, most) => {
                (bare.or_else(|| whole(units::time_ns(text)?, 1_000)), least, most)
            }
            Self::Metres(least, most) => {
                (bare.or_else(|| whole(units::length_mm(text)?, 1_000)), least, most)
            }
            Self::Share | Self::ShareUpTo { .. } | Self::Choice => return None,
        };
        value.filter(|value| (least..=most).contains(value))
    }

    fn wanted(self) -> String {
        match self {
            Self::Count(least, most) => format!("a whole number from {least} to {most}"),
            Self::Bytes(least, most) => format!("a size from {least} to {most} bytes"),
            Self::Microseconds(least, most) => format!("a time from {least} to {most} whole microseconds"),
            Self::Metres(least, most) => format!("a length from {least} to {most} whole metres"),
            Self::Share => "a number between 0 and 1".to_owned(),
            Self::ShareUpTo { thousandths } => {
                let most = f64::from(thousandths) / 1000.0;
                format!("above 0 and at most {most}, and beyond that the formula does not hold")
            }
            Self::Choice => "one of its values".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Knob] = &[
        Knob {
            name: "bytes",
            description: "",
            usual: &["64", "128"],
            reduced: &["64"],
            kind: KnobKind::Bytes(1, 4096),
        },
        Knob {
            name: "beat",
            description: "",
            usual: &["10"],
            reduced: &[],
            kind: KnobKind::Microseconds(1, 1000),
        },
        Knob { name: "cable", description: "", usual: &["3"], reduced: &[], kind: KnobKind::Metres(1, 2000) },
        Knob { name: "link.loss", description: "", usual: &["0.01"], reduced: &[], kind: KnobKind::Share },
        Knob { name: "mode", description: "", usual: &["on", "off"], reduced: &[], kind: KnobKind::Choice },
        Knob {
            name: "loss",
            description: "",
            usual: &["1e-3"],
            reduced: &[],
            kind: KnobKind::ShareUpTo { thousandths: 20 },
        },
    ];

    fn knobs(name: &str, values: &[&str]) -> Result<Knobs, Refused> {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        Knobs::new("toy", KNOWN, &BTreeMap::from([(name.to_owned(), values)]))
    }

    #[test]
    fn knobs_that_are_not_varied_take_their_usual_values() {
        let knobs = knobs("bytes", &["7"]).unwrap();
        assert_eq!(knobs.counts("bytes", false), [7]);
        assert_eq!(knobs.shares("link.loss", true), [0.01]);
        assert!(knobs.is_varied("bytes") && !knobs.is_varied("link.loss"));
        let usual = Knobs::new("toy", KNOWN, &BTreeMap::new()).unwrap();
        assert_eq!((usual.counts("bytes", false), usual.counts("bytes", true)), (vec![64, 128], vec![64]));
    }

    #[test]
    fn values_may_have_the_units_of_a_rack_file() {
        let counts = |name, values| knobs(name, values).unwrap().counts(name, false);
        assert_eq!(counts("bytes", &["64", "4KiB", "1kB"]), [64, 4_096, 1_000]);
        assert_eq!((counts("beat", &["7", "1ms"]), counts("cable", &["2km"])), (vec![7, 1_000], vec![2_000]));
        assert_eq!(knobs("loss", &["2%", "0.02"]).unwrap().shares("loss", false), [0.02, 0.02]);
        assert_eq!(knobs("link.loss", &["1%", "1e-3"]).unwrap().shares("link.loss", false), [0.01, 0.001]);
    }

    #[test]
    fn old_names_are_accepted() {
        let known: &[Knob] = &[Knob {
            name: "inputs",
            description: "",
            usual: &["1"],
            reduced: &[],
            kind: KnobKind::Count(1, 16),
        }];
        let values = BTreeMap::from([("ways".to_owned(), vec!["4".to_owned()])]);
        assert_eq!(Knobs::new("toy", known, &values).unwrap().counts("inputs", false), [4]);
        assert!(Knobs::new("toy", KNOWN, &values).is_err());
    }

    #[test]
    fn unknown_knobs_and_values_are_refused_with_alternatives() {
        for (name, values, hint) in [
            ("byte", &["1"][..], "bytes, beat, cable, link.loss, mode, loss"),
            ("bytes", &["0"], "bytes=64,128"),
            ("bytes", &["8KiB"], "bytes=64,128"),
            ("bytes", &["3us"], "bytes=64,128"),
            ("beat", &["1500ns"], "beat=10"),
            ("bytes", &[], "bytes=64,128"),
            ("link.loss", &["1.5"], "link.loss=0.01"),
            ("mode", &["maybe"], "mode=on,off"),
            ("loss", &["1e-3", "2.1%"], "loss=1e-3"),
        ] {
            let refused = knobs(name, values).unwrap_err();
            assert!(refused.hint.contains(hint), "{refused}");
        }
    }
}
