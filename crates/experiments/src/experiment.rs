//! What an experiment is, how it is run, and how its numbers are judged.
//!
//! An experiment names its trials; a trial is a point: where it lies in the figure, what the formula expects there, and a
//! run that measures. Trials know nothing of each other, so they run side by side and are reported in their order.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::chart::Axes;
use crate::knob::{Knob, Knobs, Refused};
use crate::parallel;

/// By how much an input is changed behind the formula's back.
const PERTURBATION: f64 = 1.2;
/// Losses that a statistical tolerance wants to rest on.
const EVENTS_MIN: u64 = 1_000;
/// Standard deviations that chance may take.
const SIGMAS: f64 = 3.0;

/// A question with its theory, its trials and its figure.
#[derive(Debug)]
pub struct Experiment {
    /// Number in `docs/experiments.md`.
    pub number: u8,
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it answers.
    pub question: &'static str,
    /// The closed form, in one line.
    pub formula: &'static str,
    /// Why it holds, in a sentence, and where it comes from.
    pub theory: &'static str,
    /// The input of the run that `--perturb` raises by a fifth.
    pub perturbs: &'static str,
    /// What may be varied, with what is usual.
    pub knobs: &'static [Knob],
    /// The figure's axes.
    pub axes: Axes,
    /// The closed form between the points, by series and place; `None` where points are joined by straight lines.
    pub(crate) curve: fn(&str, f64) -> Option<f64>,
    /// What the measured rows come to, in a few lines; not told what was expected.
    pub(crate) answer: fn(&[Row]) -> Vec<String>,
    /// The points to measure.
    pub(crate) trials: fn(&Setup) -> Result<Vec<Trial>, Refused>,
}

/// What the user asks of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Seed of everything random.
    pub seed: u64,
    /// Values in place of the usual ones, by knob.
    pub vary: BTreeMap<String, Vec<String>>,
    /// Change one input of the run by a fifth and tell the formula nothing.
    pub perturb: bool,
    /// Fewer points and shorter runs.
    pub reduced: bool,
}

/// What an experiment makes its trials of.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) seed: u64,
    pub(crate) knobs: Knobs,
    pub(crate) reduced: bool,
    perturb: bool,
}

impl Setup {
    /// The whole set of what is varied so, unperturbed.
    #[cfg(test)]
    pub(crate) const fn whole(knobs: Knobs) -> Self {
        Self { seed: 1, knobs, reduced: false, perturb: false }
    }

    /// An input as the run gets it: the formula's, unless the user wants to see the verdict flip.
    pub(crate) fn run_input(&self, stated: f64) -> f64 {
        if self.perturb { stated * PERTURBATION } else { stated }
    }

    /// The same for whole numbers, rounded up.
    pub(crate) fn run_count(&self, stated: u64) -> u64 {
        self.run_input(stated as f64).ceil() as u64
    }
}

/// One point.
pub(crate) struct Trial {
    /// Which line of the figure it belongs to.
    pub(crate) series: String,
    /// What is set, for people.
    pub(crate) setting: String,
    /// Whether the figure's axes are its own.
    pub(crate) is_drawn: bool,
    /// Where it lies on the horizontal axis.
    pub(crate) x: f64,
    /// What the closed form says.
    pub(crate) expected: f64,
    /// How far the measurement may be from it.
    pub(crate) tolerance: Tolerance,
    /// Run, and measure.
    pub(crate) run: Box<dyn Fn() -> Result<Measured, String> + Send + Sync>,
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) value: f64,
    /// Chance events (losses) that the value rests on, where chance plays a part.
    pub(crate) events: Option<u64>,
    /// Beside the number.
    pub(crate) note: Option<String>,
}

impl From<f64> for Measured {
    fn from(value: f64) -> Self {
        Self { value, ..Self::default() }
    }
}

/// How far a measurement may be from what is expected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tolerance {
    /// Not at all, but for the last bits of floating-point arithmetic.
    Exact,
    /// By this share of what is expected.
    Relative(f64),
    /// By this much.
    Absolute(f64),
    /// It must lie between these, both included.
    Between(f64, f64),
    /// By what chance explains: `spread` is how far all counted events together move the value, so that one of n moves it
    /// by an n-th; `slack` is what the formula leaves open.
    Chance { spread: f64, slack: f64 },
}

/// What became of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Within tolerance.
    Pass,
    /// Outside.
    Fail,
    /// The run did not come to a number.
    Broken,
}

impl Verdict {
    /// Lower-case word for tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "FAIL",
            Self::Broken => "BROKEN",
        }
    }
}

/// One line of an experiment's table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Which line of the figure.
    pub series: String,
    /// What was set.
    pub setting: String,
    /// Whether it has a place in the figure.
    #[serde(skip)]
    pub is_drawn: bool,
    /// Where it lies on the horizontal axis.
    pub x: f64,
    /// What the run came to; `None` if it came to nothing.
    pub measured: Option<f64>,
    /// What the closed form says.
    pub expected: f64,
    /// Measured over expected, less one; `None` where one of them is missing or nothing is expected.
    pub error: Option<f64>,
    /// The tolerance in words.
    pub tolerance: String,
    /// The comparison.
    pub verdict: Verdict,
    /// Losses that the value rests on, where chance plays a part.
    pub events: Option<u64>,
    /// What a reader should know beside the number.
    pub note: String,
}

/// All of an experiment's lines.
#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    /// Which experiment.
    pub name: &'static str,
    /// The question.
    pub question: &'static str,
    /// The closed form.
    pub formula: &'static str,
    /// Seed of the runs.
    pub seed: u64,
    /// Which input was changed behind the formula's back; none usually.
    pub perturbed: Option<&'static str>,
    /// The lines, in the experiment's order.
    pub rows: Vec<Row>,
    /// What they come to, made of what was measured.
    pub answer: Vec<String>,
}

impl Findings {
    /// Whether every line holds, and there is one.
    #[must_use]
    pub fn hold(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(|row| row.verdict == Verdict::Pass)
    }
}

impl Experiment {
    /// Measure every point, on all cores, and judge.
    ///
    /// # Errors
    /// A knob that the experiment does not have, or a value that it cannot take.
    pub fn run(&self, request: &Request) -> Result<Findings, Refused> {
        let setup = Setup {
            seed: request.seed,
            knobs: Knobs::new(self.name, self.knobs, &request.vary)?,
            reduced: request.reduced,
            perturb: request.perturb,
        };
        let trials = (self.trials)(&setup)?;
        let measured = parallel::map(&trials, |trial| (trial.run)());
        let rows: Vec<Row> =
            trials.iter().zip(measured).map(|(trial, measured)| trial.judge(measured)).collect();
        Ok(Findings {
            name: self.name,
            question: self.question,
            formula: self.formula,
            seed: request.seed,
            perturbed: request.perturb.then_some(self.perturbs),
            answer: (self.answer)(&rows),
            rows,
        })
    }
}

/// No closed form but at the points.
pub(crate) fn straight(_: &str, _: f64) -> Option<f64> {
    None
}

impl Trial {
    fn judge(&self, measured: Result<Measured, String>) -> Row {
        let (measured, trouble) = match measured {
            Ok(measured) => (Some(measured), None),
            Err(trouble) => (None, Some(trouble)),
        };
        let value = measured.as_ref().map(|measured| measured.value);
        let events = measured.as_ref().and_then(|measured| measured.events);
        let verdict = match value {
            None => Verdict::Broken,
            Some(value) if self.tolerance.admits(self.expected, value, events) => Verdict::Pass,
            Some(_) => Verdict::Fail,
        };
        let rests = events.filter(|_| self.tolerance.rests_on_chance()).map(|events| match events {
            0..EVENTS_MIN => format!("rests on {events} losses, fewer than {EVENTS_MIN}"),
            _ => format!("over {events} losses"),
        });
        let notes = [trouble, measured.and_then(|measured| measured.note), rests];
        Row {
            series: self.series.clone(),
            setting: self.setting.clone(),
            is_drawn: self.is_drawn,
            x: self.x,
            measured: value,
            expected: self.expected,
            error: value.filter(|_| self.expected != 0.0).map(|value| value / self.expected - 1.0),
            tolerance: self.tolerance.words(self.expected, events),
            verdict,
            events,
            note: notes.into_iter().flatten().collect::<Vec<_>>().join("; "),
        }
    }
}

impl Tolerance {
    const fn rests_on_chance(self) -> bool {
        matches!(self, Self::Chance { .. })
    }

    fn admits(self, expected: f64, measured: f64, events: Option<u64>) -> bool {
        let distance = (measured - expected).abs();
        match self {
            Self::Exact => distance <= expected.abs() * 1e-12,
            Self::Relative(share) => distance <= expected.abs() * share,
            Self::Absolute(most) => distance <= most,
            Self::Between(least, most) => (least..=most).contains(&measured),
            Self::Chance { .. } => distance <= self.chance(events),
        }
    }

    /// How far chance may move the value.
    fn chance(self, events: Option<u64>) -> f64 {
        let Self::Chance { spread, slack } = self else { return 0.0 };
        let events = events.unwrap_or(0).max(1) as f64;
        spread * SIGMAS / events.sqrt() + slack
    }

    fn words(self, expected: f64, events: Option<u64>) -> String {
        match self {
            Self::Exact => "exact".to_owned(),
            Self::Relative(share) => format!("{} %", rounded(share * 100.0)),
            Self::Absolute(most) => format!("± {}", rounded(most)),
            Self::Between(least, most) => format!("{} .. {}", rounded(least), rounded(most)),
            Self::Chance { .. } => {
                let share = self.chance(events) / expected.abs().max(f64::MIN_POSITIVE);
                format!("3 sigma: {} %", rounded(share * 100.0))
            }
        }
    }
}

/// A number with four significant digits at most.
fn rounded(value: f64) -> String {
    let digits = 3 - value.abs().max(1e-9).log10().floor() as i32;
    let text = format!("{value:.*}", digits.max(0) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

impl std::fmt::Debug for Trial {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = formatter.debug_struct("Trial");
        debug.field("setting", &self.setting).field("expected", &self.expected).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(tolerance: Tolerance, measured: Result<Measured, String>) -> Row {
        let run = Box::new(|| Ok(Measured::default()));
        let (series, setting) = (String::new(), String::new());
        Trial { series, setting, is_drawn: true, x: 0.0, expected: 100.0, tolerance, run }.judge(measured)
    }

    fn verdict(tolerance: Tolerance, value: f64) -> Verdict {
        judged(tolerance, Ok(value.into())).verdict
    }

    #[test]
    fn a_tolerance_admits_its_edge_and_nothing_beyond() {
        for (tolerance, inside, outside) in [
            (Tolerance::Exact, 100.0, 100.001),
            (Tolerance::Relative(0.05), 105.0, 105.1),
            (Tolerance::Absolute(3.0), 97.0, 96.9),
            (Tolerance::Between(90.0, 101.0), 101.0, 89.0),
        ] {
            assert_eq!(verdict(tolerance, inside), Verdict::Pass, "{tolerance:?}");
            assert_eq!(verdict(tolerance, outside), Verdict::Fail, "{tolerance:?}");
        }
    }

    #[test]
    fn chance_shrinks_with_the_root_of_what_was_counted_and_few_losses_are_marked() {
        let tolerance = Tolerance::Chance { spread: 50.0, slack: 0.0 };
        let counted = |events| Ok(Measured { value: 105.0, events: Some(events), note: None });
        // 3 * 50 / sqrt(n): 15 of 100 losses, 1.5 of 10,000.
        let (few, many) = (judged(tolerance, counted(100)), judged(tolerance, counted(10_000)));
        assert_eq!((few.verdict, many.verdict), (Verdict::Pass, Verdict::Fail));
        assert_eq!(few.note, "rests on 100 losses, fewer than 1000");
        assert_eq!(many.note, "over 10000 losses");
    }

    #[test]
    fn a_run_without_a_number_is_broken_and_says_why() {
        let row = judged(Tolerance::Exact, Err("it stalled".into()));
        assert_eq!((row.verdict, row.measured, row.note.as_str()), (Verdict::Broken, None, "it stalled"));
    }

    #[test]
    fn numbers_in_words_have_four_digits() {
        assert_eq!([0.05, 1234.56, 2.0, 0.000_123_46].map(rounded), ["0.05", "1235", "2", "0.0001235"]);
    }
}
