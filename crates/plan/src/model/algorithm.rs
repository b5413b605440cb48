//! Names of algorithms, and the list of those that a job measures.
//!
//! A list has a fixed size, because plans copy their jobs. It holds one name, or several different names. The crate of
//! the collectives decides which algorithm implements which collective.

use core::fmt;

use crate::model::objection::{Objection, Subject};
use crate::setting::word::words;

words! {
    /// Names of algorithms of collectives.
    pub enum AlgorithmName {
        /// Chosen by size, shape and links.
        #[default]
        Auto = "auto",
        /// Each rank sends to the next one only.
        Ring = "ring",
        /// Two rings in opposite directions.
        BidirectionalRing = "bidirectional-ring",
        /// Every rank sends its whole input to every other rank, and each reduces alone.
        OneShot = "one-shot",
        /// Direct reduce-scatter, then direct all-gather.
        TwoShot = "two-shot",
        /// Recursive halving, then recursive doubling.
        HalvingDoubling = "halving-doubling",
        /// All pairs concurrently.
        Direct = "direct",
        /// One partner after the other.
        Pairwise = "pairwise",
        /// Binomial tree.
        Binomial = "binomial",
        /// Along the ring, in pipelined segments.
        RingPipeline = "ring-pipeline",
        /// Signals at distances that double.
        Dissemination = "dissemination",
        /// First the ranks of one server, then one leader per server.
        TwoLevel = "two-level",
    }
}

/// Longest list: every name except `auto`, with one spare entry.
const NAMES_MAX: usize = AlgorithmName::ALL.len();

/// Algorithms of a job: `auto`, one name, or several names in the order in which they are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlgorithmList {
    names: [AlgorithmName; NAMES_MAX],
    /// Number of valid entries of `names`, at least one. The others hold the default.
    count: usize,
}

impl AlgorithmList {
    /// Returns the list of these names.
    ///
    /// # Errors
    /// Returns an objection if there is no name, if a name is repeated, or if `auto` is combined with other names.
    pub fn new(listed: &[AlgorithmName]) -> Result<Self, Objection> {
        let refused = |message: String, hint: &str| Objection {
            about: Subject::Algorithm,
            message,
            hint: hint.to_owned(),
        };
        if listed.is_empty() {
            return Err(refused("the list of algorithms is empty".to_owned(), "name one, or leave it out"));
        }
        for (index, name) in listed.iter().enumerate() {
            if listed[..index].contains(name) {
                return Err(refused(format!("algorithm {name} is listed twice"), "name each algorithm once"));
            }
        }
        if listed.len() > 1 && listed.contains(&AlgorithmName::Auto) {
            let hint = "name the algorithms to measure, or `auto` alone to have one chosen";
            return Err(refused("algorithm auto stands beside others".to_owned(), hint));
        }
        let mut names = [AlgorithmName::default(); NAMES_MAX];
        names[..listed.len()].copy_from_slice(listed);
        Ok(Self { names, count: listed.len() })
    }

    /// Returns the names in the order in which they are measured.
    #[must_use]
    pub fn names(&self) -> &[AlgorithmName] {
        &self.names[..self.count]
    }

    /// Returns the only name, or `None` if there are several.
    #[must_use]
    pub fn single(&self) -> Option<AlgorithmName> {
        (self.count == 1).then_some(self.names[0])
    }
}

impl Default for AlgorithmList {
    fn default() -> Self {
        AlgorithmName::default().into()
    }
}

impl From<AlgorithmName> for AlgorithmList {
    fn from(name: AlgorithmName) -> Self {
        let mut names = [AlgorithmName::default(); NAMES_MAX];
        names[0] = name;
        Self { names, count: 1 }
    }
}

impl fmt::Display for AlgorithmList {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.names().iter().map(|name| name.name()).collect();
        formatter.pad(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_its_order_and_refuses_invalid_combinations() {
        use AlgorithmName::{Auto, Ring, TwoShot};
        let list = AlgorithmList::new(&[TwoShot, Ring]).unwrap();
        assert_eq!((list.names(), list.single()), (&[TwoShot, Ring][..], None));
        assert_eq!(list.to_string(), "two-shot,ring");
        let message = |names: &[AlgorithmName]| AlgorithmList::new(names).unwrap_err().to_string();
        assert!(message(&[]).contains("is empty"));
        assert!(message(&[Ring, TwoShot, Ring]).contains("ring is listed twice; hint:"));
        assert!(message(&[Auto, Ring]).contains("auto stands beside others; hint:"));
        assert_eq!(
            AlgorithmList::new(AlgorithmName::ALL.split_at(1).1).unwrap().names().len(),
            NAMES_MAX - 1
        );
    }

    #[test]
    fn a_list_of_one_name_is_that_name() {
        let list = AlgorithmList::new(&[AlgorithmName::Ring]).unwrap();
        assert_eq!((list, list.single()), (AlgorithmName::Ring.into(), Some(AlgorithmName::Ring)));
        assert_eq!(list.to_string(), "ring");
        assert_eq!(AlgorithmName::from_name("ring"), Some(AlgorithmName::Ring));
        assert_eq!(AlgorithmList::default().single(), Some(AlgorithmName::Auto));
    }
}
