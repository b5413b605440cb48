//! Thresholds from which a worse value counts as a regression, and bounds of the result.

use std::collections::BTreeMap;

use crate::row::Section;

/// Relative differences from which a worse value counts, by section. Sections without one are not judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds {
    /// Threshold of sections that are not named; `None` if only named ones are judged.
    default: Option<f64>,
    sections: BTreeMap<Section, f64>,
}

/// Bounds of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Thresholds.
    pub thresholds: Thresholds,
    /// Rows of a section that are kept at most; 20 if absent. Rows that changed most remain. Configuration and verdict are always complete.
    pub rows_max: Option<usize>,
}

/// Mistake in the text of a threshold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdError {
    /// The share is no number from 0 on.
    #[error("`{0}` is no share: write `5%` or `0.05`")]
    Share(String),
    /// The section does not exist, or takes no threshold.
    #[error("`{0}` is no section with a threshold: {known}", known = known())]
    Section(String),
    /// A threshold is given twice.
    #[error("the threshold of `{0}` is given twice")]
    Twice(String),
}

impl Limits {
    /// Rows of a section that are kept if no number is given.
    pub const ROWS: usize = 20;
}

impl Default for Thresholds {
    /// Returns 5 % for all sections.
    fn default() -> Self {
        Self::of(Self::SHARE)
    }
}

impl Thresholds {
    /// Threshold of all sections if none is given.
    pub const SHARE: f64 = 0.05;

    /// Returns these thresholds with another one for one section.
    #[must_use]
    pub fn with(mut self, section: Section, share: f64) -> Self {
        self.sections.insert(section, share);
        self
    }

    /// Returns one threshold for all sections.
    #[must_use]
    pub const fn of(share: f64) -> Self {
        Self { default: Some(share), sections: BTreeMap::new() }
    }

    /// Returns the threshold of a section; `None` if the section is not judged.
    #[must_use]
    pub fn share(&self, section: Section) -> Option<f64> {
        self.sections.get(&section).copied().or(self.default)
    }

    /// Returns the sections that are judged if others are not.
    pub(crate) fn only(&self) -> Option<impl Iterator<Item = Section>> {
        self.default.is_none().then(|| self.sections.keys().copied())
    }

    /// Reads thresholds such as `5%`, `0.05`, `sweep=10%` and `5%,losses=0`. Each may be given once. Sections alone, as `losses=0`, are the
    /// only ones that are judged. A plain share, as `5%`, is for all others.
    ///
    /// # Errors
    /// A share that is no number from 0 on, an unknown section, or a section that occurs twice.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, ThresholdError> {
        let mut default = None;
        let mut sections = BTreeMap::new();
        for part in texts.into_iter().flat_map(|text| text.split(',')).map(str::trim) {
            let (section, share) = match part.split_once('=') {
                Some((section, share)) => (Some(section_of(section.trim())?), share_of(share.trim())?),
                None => (None, share_of(part)?),
            };
            let earlier = match section {
                Some(section) => sections.insert(section, share),
                None => default.replace(share),
            };
            if earlier.is_some() {
                let name = section.map_or("all sections", Section::name);
                return Err(ThresholdError::Twice(name.to_owned()));
            }
        }
        let default = default.or_else(|| sections.is_empty().then_some(Self::SHARE));
        Ok(Self { default, sections })
    }
}

fn section_of(name: &str) -> Result<Section, ThresholdError> {
    let found = Section::ALL.into_iter().find(|section| section.name() == name && !section.is_complete());
    found.ok_or_else(|| ThresholdError::Section(name.to_owned()))
}

fn share_of(text: &str) -> Result<f64, ThresholdError> {
    let (number, divisor) = text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 100.0));
    let share = number.parse::<f64>().ok().map(|number| number / divisor);
    share
        .filter(|share| share.is_finite() && *share >= 0.0)
        .ok_or_else(|| ThresholdError::Share(text.to_owned()))
}

fn known() -> String {
    let names = Section::ALL.into_iter().filter(|section| !section.is_complete()).map(Section::name);
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages_or_numbers_and_sections_have_their_own() {
        let thresholds = Thresholds::parse(["2.5%", "sweep=10 %, losses=0", "time=0.5"]).unwrap();
        let shares = [Section::Links, Section::Sweep, Section::Losses, Section::Time]
            .map(|section| thresholds.share(section));
        assert_eq!(shares, [0.025, 0.1, 0.0, 0.5].map(Some));
        assert_eq!(Thresholds::parse([]).unwrap(), Thresholds::default());
        assert_eq!(Thresholds::default().share(Section::Links), Some(0.05));
    }

    #[test]
    fn named_sections_are_the_only_ones_unless_a_plain_share_is_given() {
        let shares = |texts: &[&str]| {
            let thresholds = Thresholds::parse(texts.iter().copied()).unwrap();
            [Section::Losses, Section::Time].map(|section| thresholds.share(section))
        };
        assert_eq!(shares(&["losses=0"]), [Some(0.0), None]);
        assert_eq!(shares(&["losses=0", "10%"]), [Some(0.0), Some(0.1)]);
        assert_eq!(shares(&[]), [Some(0.05); 2]);
    }

    #[test]
    fn mistakes_are_named() {
        for text in ["", "x", "-1%", "inf", "NaN", "5%%", "sweep=", "5%,"] {
            assert!(matches!(Thresholds::parse([text]), Err(ThresholdError::Share(_))), "{text}");
        }
        for text in ["speed=5%", "verdict=5%", "configuration=1", "=5%"] {
            let error = Thresholds::parse([text]).unwrap_err();
            assert!(matches!(error, ThresholdError::Section(_)), "{text}");
            assert!(error.to_string().contains("time, operations, goodput"), "{error}");
        }
        let twice = |texts: &[&str]| Thresholds::parse(texts.iter().copied()).unwrap_err().to_string();
        assert_eq!(twice(&["5%", "6%"]), "the threshold of `all sections` is given twice");
        assert_eq!(twice(&["sweep=1%,sweep=2%"]), "the threshold of `sweep` is given twice");
    }
}
