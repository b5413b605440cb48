//! Choice of algorithms, and the list of those that a job measures.
//!
//! A list has a fixed size, because plans copy their jobs. It holds several different algorithms, one, or none if one is to be chosen.
//! The crate of the collectives decides which algorithm implements which collective.

use core::fmt;

use rackloom_collectives::AlgorithmKind;

use crate::model::objection::{Objection, Subject};
use crate::setting::named_value::NamedValue;

/// Largest number of algorithms.
const KINDS: usize = AlgorithmKind::ALL.len();

/// One entry of a list of algorithms: an algorithm, or `auto` (`None`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlgorithmChoice(pub Option<AlgorithmKind>);

impl AlgorithmChoice {
    /// The choice by size, shape and links.
    pub const AUTO: Self = Self(None);
    /// `auto`, and all algorithms.
    pub const ALL: &'static [Self] = &{
        let mut all = [Self::AUTO; KINDS + 1];
        let mut index = 0;
        while index < KINDS {
            all[index + 1] = Self(Some(AlgorithmKind::ALL[index]));
            index += 1;
        }
        all
    };
    /// Names of all choices.
    pub const NAMES: &'static [&'static str] = &{
        let mut names = ["auto"; KINDS + 1];
        let mut index = 0;
        while index < KINDS {
            names[index + 1] = AlgorithmKind::NAMES[index];
            index += 1;
        }
        names
    };
}

impl NamedValue for AlgorithmChoice {
    const VALUES: &'static [Self] = Self::ALL;
    const NAMES: &'static [&'static str] = Self::NAMES;
}

/// Algorithms of a job, in the order in which they are measured. An empty list means that one is chosen by size, shape and links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlgorithmList {
    kinds: [AlgorithmKind; KINDS],
    /// Number of valid entries of `kinds`. The others hold the first algorithm.
    count: usize,
}

impl AlgorithmList {
    /// The empty list.
    pub const AUTO: Self = Self { kinds: [AlgorithmKind::ALL[0]; KINDS], count: 0 };

    /// Returns the list of these algorithms, or [`AlgorithmList::AUTO`] for `auto` alone.
    ///
    /// # Errors
    /// Returns an objection if there is no entry, if an algorithm is repeated, or if `auto` is combined with algorithms.
    pub fn new(listed: &[AlgorithmChoice]) -> Result<Self, Objection> {
        let refused = |message: String, hint: &str| Objection {
            about: Subject::Algorithm,
            message,
            hint: hint.to_owned(),
        };
        if listed.is_empty() {
            return Err(refused("the list of algorithms is empty".to_owned(), "name one, or leave it out"));
        }
        for (index, choice) in listed.iter().enumerate() {
            if listed[..index].contains(choice) {
                let message = format!("algorithm {} is listed twice", choice.name());
                return Err(refused(message, "name each algorithm once"));
            }
        }
        if listed.len() > 1 && listed.contains(&AlgorithmChoice::AUTO) {
            let hint = "name the algorithms to measure, or `auto` alone to have one chosen";
            return Err(refused("algorithm auto stands beside others".to_owned(), hint));
        }
        let mut list = Self::AUTO;
        for kind in listed.iter().filter_map(|choice| choice.0) {
            list.kinds[list.count] = kind;
            list.count += 1;
        }
        Ok(list)
    }

    /// Returns the algorithms in the order in which they are measured; none if one is chosen.
    #[must_use]
    pub fn kinds(&self) -> &[AlgorithmKind] {
        &self.kinds[..self.count]
    }

    /// Returns true if the algorithm is chosen by size, shape and links.
    #[must_use]
    pub const fn is_auto(&self) -> bool {
        self.count == 0
    }
}

impl Default for AlgorithmList {
    fn default() -> Self {
        Self::AUTO
    }
}

impl From<AlgorithmKind> for AlgorithmList {
    fn from(kind: AlgorithmKind) -> Self {
        let mut list = Self::AUTO;
        list.kinds[0] = kind;
        list.count = 1;
        list
    }
}

impl From<AlgorithmChoice> for AlgorithmList {
    fn from(AlgorithmChoice(kind): AlgorithmChoice) -> Self {
        kind.map_or(Self::AUTO, Self::from)
    }
}

/// Displays the names, separated by commas, or `auto`.
impl fmt::Display for AlgorithmList {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_auto() {
            return formatter.pad(AlgorithmChoice::AUTO.name());
        }
        let names: Vec<_> = self.kinds().iter().map(|kind| kind.name()).collect();
        formatter.pad(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(kinds: &[Option<AlgorithmKind>]) -> Vec<AlgorithmChoice> {
        kinds.iter().copied().map(AlgorithmChoice).collect()
    }

    #[test]
    fn a_list_keeps_its_order_and_refuses_invalid_combinations() {
        use AlgorithmKind::{Ring, TwoShot};
        let list = AlgorithmList::new(&choices(&[Some(TwoShot), Some(Ring)])).unwrap();
        assert_eq!((list.kinds(), list.is_auto()), (&[TwoShot, Ring][..], false));
        assert_eq!(list.to_string(), "two-shot,ring");
        let message = |kinds: &[_]| AlgorithmList::new(&choices(kinds)).unwrap_err().to_string();
        assert!(message(&[]).contains("is empty"));
        assert!(message(&[Some(Ring), Some(TwoShot), Some(Ring)]).contains("ring is listed twice; hint:"));
        assert!(message(&[None, Some(Ring)]).contains("auto stands beside others; hint:"));
        let all = AlgorithmList::new(&AlgorithmChoice::ALL[1..]).unwrap();
        assert_eq!(all.kinds(), AlgorithmKind::ALL);
    }

    #[test]
    fn a_list_of_one_algorithm_is_that_algorithm_and_auto_is_none() {
        let list = AlgorithmList::new(&choices(&[Some(AlgorithmKind::Ring)])).unwrap();
        assert_eq!(list, AlgorithmKind::Ring.into());
        assert_eq!(list.to_string(), "ring");
        let auto = AlgorithmList::new(&[AlgorithmChoice::AUTO]).unwrap();
        assert_eq!((auto, auto.to_string()), (AlgorithmList::default(), "auto".to_owned()));
        for (choice, name) in AlgorithmChoice::ALL.iter().zip(AlgorithmChoice::NAMES) {
            assert_eq!((choice.name(), AlgorithmList::from(*choice).to_string().as_str()), (*name, *name));
        }
    }
}
