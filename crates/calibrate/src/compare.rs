//! Comparison of a figure of ours with a raw loop: ratio, doubts, verdict.
//!
//! The ratio is ours over the raw loop's, of medians; its least and greatest value are those of single alternations. Where
//! larger is better (operations per second) the ratio must not fall below the goal, where smaller is better (durations) it
//! must not rise above. Figures without a raw loop are judged by themselves.

use crate::distance::Distance;
use crate::expected::{EXPECTED_SHARE_MIN, Expected};
use crate::sense::Sense;
use crate::series::Series;

/// Highest spread of a raw loop, as a share of its median. A raw loop with a higher one is no measure.
pub const SPREAD_MAX: f64 = 0.25;

/// Lowest number of takes. Fewer do not show the spread.
pub const TAKES_MIN: usize = 3;

/// Goal for a ratio, or for a figure without a raw loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Direction in which the figure is good.
    pub sense: Sense,
    /// Value that must be reached.
    pub floor: f64,
    /// Value that should be reached.
    pub good: f64,
}

impl Goal {
    /// Makes a goal for rates.
    #[must_use]
    pub const fn at_least(floor: f64, good: f64) -> Self {
        Self { sense: Sense::HigherIsBetter, floor, good }
    }

    /// Makes a goal for durations.
    #[must_use]
    pub const fn at_most(floor: f64, good: f64) -> Self {
        Self { sense: Sense::LowerIsBetter, floor, good }
    }

    fn grade(&self, value: f64) -> Verdict {
        let reaches = |goal: f64| match self.sense {
            Sense::HigherIsBetter => value >= goal,
            Sense::LowerIsBetter => value <= goal,
        };
        match (reaches(self.good), reaches(self.floor)) {
            (true, _) => Verdict::Good,
            (false, true) => Verdict::Floor,
            (false, false) => Verdict::Below,
        }
    }
}

/// Measurement of a raw loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Raw {
    /// Takes of the loop.
    pub series: Series,
    /// Expected value of the loop, if it is known.
    pub expected: Option<Expected>,
}

/// Our figure divided by the raw loop's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Ratio of the medians.
    pub median: f64,
    /// Smallest ratio of a single alternation.
    pub min: f64,
    /// Largest ratio of a single alternation.
    pub max: f64,
}

/// Reason why a figure is not judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doubt {
    /// The raw loop varied by this share of its median.
    Spread(f64),
    /// The raw loop reached only this share of its expected value.
    Slow(f64),
    /// Ours varied by this share of its median, and single takes have another verdict than the whole.
    Torn(f64),
    /// There were only this many takes.
    Few(usize),
    /// The distance of the processors changed: the first number of alternations agree on the distance, the second do not.
    Moved(usize, usize),
}

/// Judgement of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Reaches the value that it should reach.
    Good,
    /// Reaches the value that it must reach.
    Floor,
    /// Worse than it must be.
    Below,
    /// Not judged: the machine was disturbed.
    Noisy,
}

impl Verdict {
    /// Returns the name for tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Floor => "floor",
            Self::Below => "below",
            Self::Noisy => "noisy",
        }
    }
}

/// Figure of ours, with or without a raw loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Raw loop, or `None` if the figure stands alone.
    pub raw: Option<Raw>,
    /// Our takes.
    pub ours: Series,
    /// Goal for the ratio, or for the figure that stands alone.
    pub goal: Goal,
    /// Distance of the two processors, if only takes at one distance count.
    pub distance: Option<Distance>,
}

impl Comparison {
    /// Returns our figure divided by the raw loop's, or `None` without a raw loop.
    #[must_use]
    pub fn ratio(&self) -> Option<Ratio> {
        let raw = &self.raw.as_ref()?.series;
        let each = self.ours.takes().iter().zip(raw.takes()).filter(|(_, raw)| **raw > 0.0);
        let each = Series::new(each.map(|(ours, raw)| ours / raw).collect());
        let median = if raw.median() > 0.0 { self.ours.median() / raw.median() } else { 0.0 };
        Some(Ratio { median, min: each.min(), max: each.max() })
    }

    /// Returns the reason why this is not judged, if there is one.
    #[must_use]
    pub fn doubt(&self) -> Option<Doubt> {
        let takes = self.ours.takes().len();
        let left_out = self.distance.as_ref().map_or(0, |distance| distance.left_out);
        let few = || if left_out > 0 { Doubt::Moved(takes, left_out) } else { Doubt::Few(takes) };
        if takes < TAKES_MIN {
            return Some(few());
        }
        self.raw.as_ref().and_then(|raw| self.doubt_of(raw)).or_else(|| self.torn())
    }

    fn doubt_of(&self, raw: &Raw) -> Option<Doubt> {
        let share = raw.expected.map(|expected| expected.share(self.goal.sense, raw.series.median()));
        let slow = share.filter(|share| *share < EXPECTED_SHARE_MIN).map(Doubt::Slow);
        let spread = raw.series.spread();
        slow.or((spread > SPREAD_MAX).then_some(Doubt::Spread(spread)))
    }

    /// Returns a doubt if ours varies so much that single takes have different verdicts.
    fn torn(&self) -> Option<Doubt> {
        let spread = self.ours.spread();
        let ends = self.ratio().map_or([self.ours.min(), self.ours.max()], |ratio| [ratio.min, ratio.max]);
        let is_torn = spread > SPREAD_MAX && self.goal.grade(ends[0]) != self.goal.grade(ends[1]);
        is_torn.then_some(Doubt::Torn(spread))
    }

    /// Returns the verdict.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if self.doubt().is_some() {
            return Verdict::Noisy;
        }
        self.goal.grade(self.ratio().map_or(self.ours.median(), |ratio| ratio.median))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(raw: &[f64], ours: &[f64], expected: Option<Expected>) -> Comparison {
        let raw = Raw { series: Series::new(raw.to_vec()), expected };
        let goal = Goal::at_least(0.5, 0.75);
        Comparison { raw: Some(raw), ours: Series::new(ours.to_vec()), goal, distance: None }
    }

    #[test]
    fn the_ratio_is_of_medians_and_its_range_of_single_alternations() {
        let ratio = rates(&[100.0, 110.0, 90.0], &[50.0, 88.0, 63.0], None).ratio().unwrap();
        assert_eq!((ratio.median, ratio.min, ratio.max), (0.63, 0.5, 0.8));
    }

    #[test]
    fn rates_and_durations_have_opposite_directions() {
        let verdict = |ours: f64| rates(&[100.0; 3], &[ours; 3], None).verdict();
        assert_eq!([75.0, 74.0, 50.0, 49.0].map(verdict), {
            use Verdict::{Below, Floor, Good};
            [Good, Floor, Floor, Below]
        });
        let durations = |ours: f64| {
            let goal = Goal::at_most(2.0, 1.5);
            Comparison { goal, ..rates(&[100.0; 3], &[ours; 3], None) }.verdict()
        };
        assert_eq!([150.0, 200.0, 201.0].map(durations), [Verdict::Good, Verdict::Floor, Verdict::Below]);
    }

    #[test]
    fn a_varying_raw_loop_is_no_measure() {
        let comparison = rates(&[100.0, 100.0, 74.0], &[100.0; 3], None);
        assert_eq!(comparison.verdict(), Verdict::Noisy);
        assert_eq!(comparison.doubt(), Some(Doubt::Spread(0.26)));
        assert_eq!(rates(&[100.0, 100.0, 75.0], &[100.0; 3], None).verdict(), Verdict::Good);
    }

    #[test]
    fn a_raw_loop_that_is_slower_than_expected_is_no_measure() {
        let expected = Some(Expected::new(1000.0));
        let comparison = rates(&[690.0; 3], &[690.0; 3], expected);
        assert_eq!((comparison.verdict(), comparison.doubt()), (Verdict::Noisy, Some(Doubt::Slow(0.69))));
        assert_eq!(rates(&[700.0; 3], &[690.0; 3], expected).verdict(), Verdict::Good);
        let slow =
            Comparison { goal: Goal::at_most(2.0, 1.5), ..rates(&[1500.0; 3], &[1500.0; 3], expected) };
        assert_eq!(slow.verdict(), Verdict::Noisy, "a duration above the expected one is slow");
    }

    #[test]
    fn a_figure_that_stands_alone_is_judged_by_itself_unless_it_varies() {
        let alone = |takes: &[f64]| Comparison {
            raw: None,
            ours: Series::new(takes.to_vec()),
            goal: Goal::at_most(1.0, 0.5),
            distance: None,
        };
        assert_eq!(alone(&[0.7, 0.7, 0.8]).verdict(), Verdict::Floor);
        assert_eq!(alone(&[0.7, 0.7, 1.8]).verdict(), Verdict::Noisy);
        assert_eq!(alone(&[0.1, 0.2, 0.4]).verdict(), Verdict::Good, "it varies, and every take is good");
        assert_eq!(alone(&[0.7]).ratio(), None);
    }

    #[test]
    fn ours_may_vary_only_if_every_take_has_one_verdict() {
        let torn = rates(&[100.0; 3], &[90.0, 8.0, 95.0], None);
        assert_eq!((torn.verdict(), torn.doubt()), (Verdict::Noisy, Some(Doubt::Torn(0.87 / 0.9))));
        assert_eq!(rates(&[100.0; 3], &[8.0, 20.0, 10.0], None).verdict(), Verdict::Below);
    }

    #[test]
    fn one_take_or_two_are_no_measure() {
        let comparison = rates(&[100.0; 2], &[100.0; 2], None);
        assert_eq!((comparison.verdict(), comparison.doubt()), (Verdict::Noisy, Some(Doubt::Few(2))));
        let distance = Some(Distance { left_out: 7, ..Distance::default() });
        let moved = Comparison { distance, ..comparison };
        assert_eq!((moved.verdict(), moved.doubt()), (Verdict::Noisy, Some(Doubt::Moved(2, 7))));
    }
}
