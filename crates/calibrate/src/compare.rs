//! A figure of ours beside the raw loop's: ratio, doubts, verdict.
//!
//! The ratio is ours over the raw loop's, of medians; its least and greatest value are those of single alternations. Where
//! larger is better (operations per second) the ratio must not fall below the goal, where smaller is better (durations) it
//! must not rise above. Figures without a raw loop are judged by themselves.

use crate::distance::Distance;
use crate::expected::{EXPECTED_SHARE_MIN, Expected};
use crate::series::Series;

/// A raw loop whose takes lie farther apart than this share of their median is no measure.
pub const SPREAD_MAX: f64 = 0.25;

/// Fewer takes than this do not tell how far they lie apart.
pub const TAKES_MIN: usize = 3;

/// Which way a figure is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    /// Rates.
    HigherIsBetter,
    /// Durations, processor time, memory.
    LowerIsBetter,
}

/// What is asked of a ratio, or of a figure that stands alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Which way is good.
    pub sense: Sense,
    /// What must be reached.
    pub floor: f64,
    /// What should be reached.
    pub good: f64,
}

impl Goal {
    /// At least these.
    #[must_use]
    pub const fn at_least(floor: f64, good: f64) -> Self {
        Self { sense: Sense::HigherIsBetter, floor, good }
    }

    /// At most these.
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

/// Takes of a raw loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Raw {
    /// The takes.
    pub series: Series,
    /// What one may expect of the loop, if that is known.
    pub expected: Option<Expected>,
}

/// Ours over the raw loop's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Of the medians.
    pub median: f64,
    /// Smallest of a single alternation.
    pub min: f64,
    /// Largest of a single alternation.
    pub max: f64,
}

/// Why a figure is not judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doubt {
    /// The measure itself varied by this share of its median.
    Spread(f64),
    /// The raw loop reached only this share of what one may expect of it.
    Slow(f64),
    /// Ours varied by this share of its median, and single takes would be judged otherwise than the whole.
    Torn(f64),
    /// There were only so many takes.
    Few(usize),
    /// The processors came closer or went apart: only so many alternations agree on how far that is, and so many do not.
    Moved(usize, usize),
}

/// What a figure is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// As good as it should be.
    Good,
    /// As good as it must be.
    Floor,
    /// Worse than it must be.
    Below,
    /// Not judged: the machine was disturbed.
    Noisy,
}

impl Verdict {
    /// One word.
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

/// A figure of ours, with or without a raw loop beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The raw loop; `None` if the figure stands alone.
    pub raw: Option<Raw>,
    /// Ours.
    pub ours: Series,
    /// What is asked of the ratio, or of the figure that stands alone.
    pub goal: Goal,
    /// How far apart the two processors were, where only takes at one distance count.
    pub distance: Option<Distance>,
}

impl Comparison {
    /// Ours over the raw loop's.
    #[must_use]
    pub fn ratio(&self) -> Option<Ratio> {
        let raw = &self.raw.as_ref()?.series;
        let each = self.ours.takes().iter().zip(raw.takes()).filter(|(_, raw)| **raw > 0.0);
        let each = Series::new(each.map(|(ours, raw)| ours / raw).collect());
        let median = if raw.median() > 0.0 { self.ours.median() / raw.median() } else { 0.0 };
        Some(Ratio { median, min: each.min(), max: each.max() })
    }

    /// Why this is not judged, if it is not.
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

    /// Ours may vary as long as that makes no difference.
    fn torn(&self) -> Option<Doubt> {
        let spread = self.ours.spread();
        let ends = self.ratio().map_or([self.ours.min(), self.ours.max()], |ratio| [ratio.min, ratio.max]);
        let is_torn = spread > SPREAD_MAX && self.goal.grade(ends[0]) != self.goal.grade(ends[1]);
        is_torn.then_some(Doubt::Torn(spread))
    }

    /// The verdict.
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
    fn the_ratio_is_that_of_the_medians_and_its_ends_are_those_of_single_alternations() {
        let ratio = rates(&[100.0, 110.0, 90.0], &[50.0, 88.0, 63.0], None).ratio().unwrap();
        assert_eq!((ratio.median, ratio.min, ratio.max), (0.63, 0.5, 0.8));
    }

    #[test]
    fn rates_must_reach_the_goal_from_below_and_durations_from_above() {
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
    fn a_raw_loop_that_varies_is_no_measure_however_good_ours_looks() {
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
        assert_eq!(alone(&[0.1, 0.2, 0.4]).verdict(), Verdict::Good, "it varies, and is good whatever it is");
        assert_eq!(alone(&[0.7]).ratio(), None);
    }

    #[test]
    fn ours_may_vary_only_as_long_as_every_take_says_the_same() {
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
