//! What `--vary` may change: an experiment's inputs by name, each with the values that are usual.
//!
//! Values are text as in a rack file, because that is where they go; what a formula needs of them is read here.

use std::collections::BTreeMap;
use std::fmt;

/// One input that can be varied.
#[derive(Clone, Copy, Debug)]
pub struct Knob {
    /// Its name, where there is one the key of the rack file: `link.loss`.
    pub name: &'static str,
    /// What it is.
    pub meaning: &'static str,
    /// The values that it usually takes.
    pub usual: &'static [&'static str],
    /// The values that it takes where time is short; all of the usual ones if empty.
    pub reduced: &'static [&'static str],
    /// What a value looks like.
    pub kind: KnobKind,
}

/// What a knob's values look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnobKind {
    /// A whole number.
    Count,
    /// A number from 0 to 1.
    Share,
    /// One of the usual values.
    Word,
}

/// A knob or value that is refused, and what would not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub hint: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}; hint: {}", self.what, self.hint)
    }
}

impl std::error::Error for Refused {}

/// The knobs of an experiment as the user set them.
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
        for (name, values) in values {
            let Some(knob) = known.iter().find(|knob| knob.name == name) else {
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
        Ok(Self { known, values: values.clone() })
    }

    /// The values of a knob.
    ///
    /// # Panics
    /// If the experiment has no such knob: its declaration and its trials have parted.
    pub(crate) fn words(&self, name: &str, reduced: bool) -> Vec<String> {
        if let Some(values) = self.values.get(name) {
            return values.clone();
        }
        let knob = self.known.iter().find(|knob| knob.name == name);
        let knob = knob.unwrap_or_else(|| unreachable!("`{name}` is no knob of this experiment"));
        let usual = if reduced && !knob.reduced.is_empty() { knob.reduced } else { knob.usual };
        usual.iter().map(|value| (*value).to_owned()).collect()
    }

    /// The values of a knob that counts.
    pub(crate) fn counts(&self, name: &str, reduced: bool) -> Vec<u64> {
        self.words(name, reduced).iter().filter_map(|value| value.parse().ok()).collect()
    }

    /// The values of a knob that is a share.
    pub(crate) fn shares(&self, name: &str, reduced: bool) -> Vec<f64> {
        self.words(name, reduced).iter().filter_map(|value| value.parse().ok()).collect()
    }
}

impl Knob {
    fn accept(&self, value: &str) -> Result<(), Refused> {
        let (is_fine, wanted) = match self.kind {
            KnobKind::Count => (value.parse::<u64>().is_ok_and(|count| count > 0), "a whole number above 0"),
            KnobKind::Share => (
                value.parse::<f64>().is_ok_and(|share| share > 0.0 && share < 1.0),
                "a number between 0 and 1",
            ),
            KnobKind::Word => (self.usual.contains(&value), "one of those it knows"),
        };
        if is_fine {
            return Ok(());
        }
        let what = format!("`{}` of `{value}` is not {wanted}", self.name);
        Err(Refused { what, hint: format!("write values like {}={}", self.name, self.usual.join(",")) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Knob] = &[
        Knob { name: "bytes", meaning: "", usual: &["64", "128"], reduced: &["64"], kind: KnobKind::Count },
        Knob { name: "link.loss", meaning: "", usual: &["0.01"], reduced: &[], kind: KnobKind::Share },
        Knob { name: "mode", meaning: "", usual: &["on", "off"], reduced: &[], kind: KnobKind::Word },
    ];

    fn knobs(name: &str, values: &[&str]) -> Result<Knobs, Refused> {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        Knobs::new("toy", KNOWN, &BTreeMap::from([(name.to_owned(), values)]))
    }

    #[test]
    fn what_is_not_varied_takes_its_usual_values() {
        let knobs = knobs("bytes", &["7"]).unwrap();
        assert_eq!(knobs.counts("bytes", false), [7]);
        assert_eq!(knobs.shares("link.loss", true), [0.01]);
        let usual = Knobs::new("toy", KNOWN, &BTreeMap::new()).unwrap();
        assert_eq!((usual.counts("bytes", false), usual.counts("bytes", true)), (vec![64, 128], vec![64]));
    }

    #[test]
    fn unknown_knobs_and_values_are_refused_with_what_there_is() {
        for (name, values, hint) in [
            ("byte", &["1"][..], "bytes, link.loss, mode"),
            ("bytes", &["0"], "bytes=64,128"),
            ("bytes", &[], "bytes=64,128"),
            ("link.loss", &["1.5"], "link.loss=0.01"),
            ("mode", &["maybe"], "mode=on,off"),
        ] {
            let refused = knobs(name, values).unwrap_err();
            assert!(refused.hint.contains(hint), "{refused}");
        }
    }
}
