//! Definition, run and verdict of an experiment.
//!
//! An experiment lists its trials. A trial is a point: its x value in the figure, the value that the formula expects there, and a
//! run that measures. Trials are independent of each other, so they run in parallel and are reported in their order.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::axes::Axes;
use crate::knob::{Knob, Knobs, Refused};
use crate::parallel;

/// Factor by which an input of the run is changed without a change of the formula's input.
const PERTURBATION: f64 = 1.2;
/// Losses that a statistical tolerance requires for its estimate.
const EVENTS_MIN: u64 = 1_000;
/// Standard deviations that count as chance.
const SIGMAS: f64 = 3.0;
/// Meaning of the spread of a value that rests on counted losses.
const CHANCE: &str = "3 standard deviations of the number of losses";

/// A question with its theory, its trials and its figure.
#[derive(Debug)]
pub struct Experiment {
    /// Number in `docs/experiments.md`.
    pub number: u8,
    /// Name on the command line.
    pub name: &'static str,
    /// The question that it answers.
    pub question: &'static str,
    /// The closed form, in one line.
    pub formula: &'static str,
    /// Derivation of the closed form, in a sentence, with its source.
    pub theory: &'static str,
    /// The input of the run that `--perturb` raises by a fifth.
    pub perturbs: &'static str,
    /// Inputs that can be varied, with their usual values.
    pub knobs: &'static [Knob],
    /// The figure's axes.
    pub axes: Axes<'static>,
    /// The closed form between the points, by series and x value; `None` if points are joined by straight lines.
    pub(crate) curve: fn(&str, f64) -> Option<f64>,
    /// Summarises the measured rows in a few lines, without the expected values.
    pub(crate) answer: fn(&[Row]) -> Vec<String>,
    /// The points to measure.
    pub(crate) trials: fn(&Setup) -> Result<Vec<Trial>, Refused>,
}

/// Options of a run of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Seed of all random choices.
    pub seed: u64,
    /// Values that replace the usual ones, by knob.
    pub vary: BTreeMap<String, Vec<String>>,
    /// True to change one input of the run by a fifth and not the formula's.
    pub perturb: bool,
    /// True for fewer points and shorter runs.
    pub reduced: bool,
}

/// Inputs from which an experiment makes its trials.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) seed: u64,
    pub(crate) knobs: Knobs,
    pub(crate) reduced: bool,
    perturb: bool,
}

impl Setup {
    /// Returns the setup of the whole set with these knobs, unperturbed.
    #[cfg(test)]
    pub(crate) const fn whole(knobs: Knobs) -> Self {
        Self { seed: 1, knobs, reduced: false, perturb: false }
    }

    /// Returns the run's input: equal to the formula's, unless the request perturbs it.
    pub(crate) fn run_input(&self, stated: f64) -> f64 {
        if self.perturb { stated * PERTURBATION } else { stated }
    }

    /// Returns the run's input for whole numbers, rounded up.
    pub(crate) fn run_count(&self, stated: u64) -> u64 {
        self.run_input(stated as f64).ceil() as u64
    }
}

/// One point.
pub(crate) struct Trial {
    /// Name of the line of the figure to which it belongs.
    pub(crate) series: String,
    /// Setting of the trial, as text for readers.
    pub(crate) setting: String,
    /// True if its values belong to the figure's axes.
    pub(crate) is_drawn: bool,
    /// Value on the horizontal axis.
    pub(crate) x: f64,
    /// Value of the closed form.
    pub(crate) expected: f64,
    /// Maximum difference between measurement and closed form.
    pub(crate) tolerance: Tolerance,
    /// Runs the trial and measures.
    pub(crate) run: Box<dyn Fn() -> Result<Measured, String> + Send + Sync>,
}

/// Result of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) value: f64,
    /// Number of chance events (losses) behind the value, if chance plays a part.
    pub(crate) events: Option<u64>,
    /// Note for readers beside the number.
    pub(crate) note: Option<String>,
    /// Spread of the runs or operations behind the value, if there are several.
    pub(crate) spread: Option<Spread>,
}

impl Measured {
    /// Adds the spread of the runs or operations behind the value.
    pub(crate) fn with_spread(self, low: f64, high: f64, of: &'static str) -> Self {
        Self { spread: Some(Spread { low, high, of }), ..self }
    }
}

/// Range around a measured value, as the measurements state it. The closed form plays no part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Meaning of both ends.
    pub of: &'static str,
}

impl From<f64> for Measured {
    fn from(value: f64) -> Self {
        Self { value, ..Self::default() }
    }
}

/// Maximum difference between a measurement and its expected value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tolerance {
    /// None, except for the last bits of floating-point arithmetic.
    Exact,
    /// This share of the expected value.
    Relative(f64),
    /// This difference.
    Absolute(f64),
    /// Between these values, both included.
    Between(f64, f64),
    /// Difference that chance explains: `spread` is the change of the value by all counted events together, so that
    /// one of n changes it by an n-th; `slack` is the inaccuracy of the formula.
    Chance { spread: f64, slack: f64 },
}

/// Result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Within tolerance.
    Pass,
    /// Outside.
    Fail,
    /// The run has no number.
    Broken,
}

impl Verdict {
    /// Returns the lower-case name for tables.
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
    /// Name of the line of the figure.
    pub series: String,
    /// Setting of the trial.
    pub setting: String,
    /// True if the figure shows it.
    #[serde(skip)]
    pub is_drawn: bool,
    /// Value on the horizontal axis.
    pub x: f64,
    /// Measured value; `None` if the run has none.
    pub measured: Option<f64>,
    /// Value of the closed form.
    pub expected: f64,
    /// Measured over expected, less one; `None` if one of them is missing or the expected value is zero.
    pub error: Option<f64>,
    /// Tolerance as text.
    pub tolerance: String,
    /// Result of the comparison.
    pub verdict: Verdict,
    /// Losses behind the value, if chance plays a part.
    pub events: Option<u64>,
    /// Note for readers beside the number.
    pub note: String,
    /// Spread of the runs or operations behind the measured value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
}

/// All rows of an experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    /// Name of the experiment.
    pub name: &'static str,
    /// The question.
    pub question: &'static str,
    /// The closed form.
    pub formula: &'static str,
    /// Seed of the runs.
    pub seed: u64,
    /// Input that was changed without a change of the formula's; usually none.
    pub perturbed: Option<&'static str>,
    /// Rows in the experiment's order.
    pub rows: Vec<Row>,
    /// Summary of the measured rows.
    pub answer: Vec<String>,
}

impl Findings {
    /// Returns true if there are rows and all of them pass.
    #[must_use]
    pub fn hold(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(|row| row.verdict == Verdict::Pass)
    }
}

impl Experiment {
    /// Measures every point, on all cores, and compares it with the closed form.
    ///
    /// # Errors
    /// A knob that the experiment does not have, or a value that it cannot take.
    pub fn run(&self, request: &Request) -> Result<Findings, Refused> {
        self.run_with(request, &|| {})
    }

    /// Returns the number of its points.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn points(&self, request: &Request) -> Result<usize, Refused> {
        self.trials_of(request).map(|trials| trials.len())
    }

    fn trials_of(&self, request: &Request) -> Result<Vec<Trial>, Refused> {
        (self.trials)(&Setup {
            seed: request.seed,
            knobs: Knobs::new(self.name, self.knobs, &request.vary)?,
            reduced: request.reduced,
            perturb: request.perturb,
        })
    }

    /// As [`Self::run`]. `ended` is called after each point, by several threads.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_with(&self, request: &Request, ended: &(dyn Fn() + Sync)) -> Result<Findings, Refused> {
        let trials = self.trials_of(request)?;
        let measured = parallel::map(&trials, |trial| {
            let result = (trial.run)();
            ended();
            result
        });
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

/// Returns `None`: the closed form is known only at the points.
pub(crate) fn straight(_: &str, _: f64) -> Option<f64> {
    None
}

impl Trial {
    fn judge(&self, measured: Result<Measured, String>) -> Row {
        let (measured, error) = match measured {
            Ok(measured) => (Some(measured), None),
            Err(error) => (None, Some(error)),
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
        // Without an own spread, that of counted losses is the chance of their number.
        let chance = value.filter(|_| events.is_some()).zip(self.tolerance.chance_alone(events));
        let chance = chance.map(|(value, most)| Spread { low: value - most, high: value + most, of: CHANCE });
        let spread = measured.as_ref().and_then(|measured| measured.spread).or(chance);
        let notes = [error, measured.and_then(|measured| measured.note), rests];
        Row {
            series: self.series.clone(),
            setting: self.setting.clone(),
            is_drawn: self.is_drawn,
            x: self.x,
            measured: value,
            expected: self.expected,
            error: value.filter(|_| self.expected != 0.0).map(|value| value / self.expected - 1.0),
            tolerance: self.tolerance.text(self.expected, events),
            verdict,
            events,
            note: notes.into_iter().flatten().collect::<Vec<_>>().join("; "),
            spread,
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

    /// Returns the change of the value that chance explains.
    fn chance(self, events: Option<u64>) -> f64 {
        let Self::Chance { spread, slack } = self else { return 0.0 };
        let events = events.unwrap_or(0).max(1) as f64;
        spread * SIGMAS / events.sqrt() + slack
    }

    /// Returns the part of that change without the inaccuracy of the formula; `None` if chance plays no part.
    fn chance_alone(self, events: Option<u64>) -> Option<f64> {
        match self {
            Self::Chance { spread, .. } => Some(Self::Chance { spread, slack: 0.0 }.chance(events)),
            _ => None,
        }
    }

    fn text(self, expected: f64, events: Option<u64>) -> String {
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

/// Formats a number with four significant digits at most.
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
    fn chance_shrinks_with_the_root_of_the_count_and_few_losses_are_marked() {
        let tolerance = Tolerance::Chance { spread: 50.0, slack: 0.0 };
        let counted = |events| Ok(Measured { value: 105.0, events: Some(events), ..Measured::default() });
        // 3 * 50 / sqrt(n): 15 of 100 losses, 1.5 of 10,000.
        let (few, many) = (judged(tolerance, counted(100)), judged(tolerance, counted(10_000)));
        assert_eq!((few.verdict, many.verdict), (Verdict::Pass, Verdict::Fail));
        assert_eq!(few.note, "rests on 100 losses, fewer than 1000");
        assert_eq!(many.note, "over 10000 losses");
        let spread = few.spread.expect("a spread");
        assert_eq!(
            (spread.low, spread.high),
            (90.0, 120.0),
            "around the measured value, not the expected one"
        );
        assert_eq!(judged(tolerance, Ok(105.0.into())).spread, None, "no count, no spread");
    }

    #[test]
    fn a_run_without_a_number_is_broken_and_has_a_reason() {
        let row = judged(Tolerance::Exact, Err("it stalled".into()));
        assert_eq!((row.verdict, row.measured, row.note.as_str()), (Verdict::Broken, None, "it stalled"));
    }

    #[test]
    fn numbers_in_texts_have_four_digits() {
        assert_eq!([0.05, 1234.56, 2.0, 0.000_123_46].map(rounded), ["0.05", "1235", "2", "0.0001235"]);
    }
}
