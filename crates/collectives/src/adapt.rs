//! Re-choice of an algorithm by the times of its runs, after the fabric has become slower or faster.
//!
//! Runs of one collective of one size form epochs. In an epoch all ranks use one algorithm. At its end each rank has a median, and the
//! ranks agree on one figure: an owner exchanges the medians, and every rank passes the same figure to [`Adaptation::agree`]. What
//! follows depends on agreed figures only, so all ranks use the same algorithm in the same run.
//!
//! | state | length of an epoch | next |
//! |---|---|---|
//! | first epoch | [`EPOCH_RUNS`] | its figure becomes the reference |
//! | steady | [`EPOCH_RUNS`] | a trial, if the figures of [`DEVIATIONS`] epochs in sequence deviate from the reference by [`DEVIATION`] |
//! | trial | [`TRIAL_RUNS`] per candidate, the current algorithm first | the fastest candidate, if it gains [`GAIN`]; otherwise the current algorithm |
//!
//! Three rules prevent oscillation. A candidate must be faster by [`GAIN`]. The figure of the winner becomes the reference, so a fabric that
//! stays as it is causes no further trial. Each trial doubles the number of epochs until the next one, up to [`REST_EPOCHS_MAX`]; it is one
//! again after [`CALM_EPOCHS`] epochs without a trial.
//!
//! A fault that has ended may leave the current algorithm as fast as it was in the trial. Therefore an algorithm that replaced the first
//! choice is tried against the others every [`REVIEW_EPOCHS`] epochs.

use core::fmt;

use crate::algorithm::Algorithm;
use crate::choose::{Choice, Estimate};

/// Number of runs in an epoch without a trial.
pub const EPOCH_RUNS: usize = 8;
/// Number of runs of each candidate in a trial.
pub const TRIAL_RUNS: usize = 3;
/// Number of epochs in sequence that must deviate before a trial.
pub const DEVIATIONS: u32 = 2;
/// Factor between a figure and the reference from which an epoch deviates.
pub const DEVIATION: f64 = 1.3;
/// Largest share of the current algorithm's time at which a candidate replaces it.
pub const GAIN: f64 = 0.9;
/// Largest number of epochs between two trials that deviations cause.
pub const REST_EPOCHS_MAX: u32 = 64;
/// Number of epochs without a trial after which the next trial counts as the first one.
pub const CALM_EPOCHS: u32 = 2 * REST_EPOCHS_MAX;
/// Number of epochs after which an algorithm that replaced the first choice is tried against the others.
pub const REVIEW_EPOCHS: u32 = 64;
/// Largest number of candidates.
pub const CANDIDATES_MAX: usize = 4;
/// Largest factor between the estimate of a candidate and the least one.
const ESTIMATE_FACTOR: f64 = 4.0;

/// One rank's state of the re-choice for one collective of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Adaptation {
    /// The first choice, then the others by their estimates.
    candidates: Vec<Algorithm>,
    current: usize,
    /// Agreed time of the current algorithm in nanoseconds, after its first epoch.
    reference_ns: Option<u64>,
    /// Figures of the current trial, by candidate. The current algorithm is the first.
    trial: Option<Trial>,
    /// Number of epochs in sequence that deviated.
    deviations: u32,
    /// Number of epochs until a deviation can cause a trial.
    rest: u32,
    /// Number of epochs of rest after the next trial.
    next_rest: u32,
    /// Number of epochs since the last trial.
    settled: u32,
    /// Number of runs of all epochs.
    runs: u64,
    /// Times of the current epoch on this rank.
    times_ns: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq)]
struct Trial {
    /// Indices of candidates in the order of their runs.
    order: Vec<usize>,
    figures_ns: Vec<u64>,
    cause: Cause,
}

/// Cause of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Epochs took this time and not the reference, both in nanoseconds.
    Deviated {
        /// Agreed time of a run when the algorithm was chosen.
        reference_ns: u64,
        /// Agreed time of a run in the last epoch before the trial.
        now_ns: u64,
    },
    /// An algorithm that replaced the first choice was due for a review.
    Review,
}

/// Result of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Number of runs of this collective and size before the next run.
    pub runs: u64,
    /// Algorithm before the trial.
    pub from: Algorithm,
    /// Algorithm of the following runs. Equal to `from` if no candidate gained enough.
    pub to: Algorithm,
    /// Cause of the trial.
    pub cause: Cause,
    /// Agreed time of each candidate, the fastest first.
    pub times: Vec<Estimate>,
}

impl Adaptation {
    /// Creates the state for a choice. Candidates are the algorithms of the choice that `fits` accepts and whose estimates are at most four
    /// times the least one; at most [`CANDIDATES_MAX`]. `None` if there are fewer than two.
    #[must_use]
    pub fn new(choice: &Choice, fits: impl Fn(Algorithm) -> bool) -> Option<Self> {
        let mut estimates = choice.estimates.iter().filter(|estimate| fits(estimate.algorithm)).peekable();
        let least_ns = estimates.peek()?.time_ns;
        let candidates: Vec<_> = estimates
            .filter(|estimate| estimate.time_ns <= ESTIMATE_FACTOR * least_ns)
            .map(|estimate| estimate.algorithm)
            .take(CANDIDATES_MAX)
            .collect();
        (candidates.len() > 1).then(|| Self {
            candidates,
            current: 0,
            reference_ns: None,
            trial: None,
            deviations: 0,
            rest: 0,
            next_rest: 1,
            settled: 0,
            runs: 0,
            times_ns: Vec::with_capacity(EPOCH_RUNS),
        })
    }

    /// Returns the algorithm of the next run.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        let index = self.trial.as_ref().map_or(self.current, |trial| trial.order[trial.figures_ns.len()]);
        self.candidates[index]
    }

    /// Records the time of a run on this rank in nanoseconds. Returns this rank's median at the end of an epoch: the ranks must agree on a figure
    /// before the next run.
    pub fn record(&mut self, time_ns: u64) -> Option<u64> {
        self.runs += 1;
        self.times_ns.push(time_ns);
        let length = if self.trial.is_some() { TRIAL_RUNS } else { EPOCH_RUNS };
        if self.times_ns.len() < length {
            return None;
        }
        self.times_ns.sort_unstable();
        let median = self.times_ns[self.times_ns.len() / 2];
        self.times_ns.clear();
        Some(median)
    }

    /// Ends an epoch with the agreed figure, the same number of nanoseconds on all ranks. Returns the result of a trial that has ended.
    pub fn agree(&mut self, figure_ns: u64) -> Option<Outcome> {
        let Some(mut trial) = self.trial.take() else {
            self.trial = self.end_epoch(figure_ns);
            return None;
        };
        trial.figures_ns.push(figure_ns);
        if trial.figures_ns.len() < trial.order.len() {
            self.trial = Some(trial);
            return None;
        }
        Some(self.end_trial(&trial))
    }

    /// Returns the trial that follows, if one is due.
    fn end_epoch(&mut self, figure_ns: u64) -> Option<Trial> {
        let reference_ns = *self.reference_ns.get_or_insert(figure_ns);
        self.settled = self.settled.saturating_add(1);
        self.rest = self.rest.saturating_sub(1);
        let ratio = figure_ns.max(1) as f64 / reference_ns.max(1) as f64;
        let is_deviating = !(1.0 / DEVIATION..=DEVIATION).contains(&ratio);
        self.deviations = if is_deviating { self.deviations + 1 } else { 0 };
        let cause = if self.deviations >= DEVIATIONS && self.rest == 0 {
            Cause::Deviated { reference_ns, now_ns: figure_ns }
        } else if self.current != 0 && self.settled >= REVIEW_EPOCHS {
            Cause::Review
        } else {
            return None;
        };
        let others = (0..self.candidates.len()).filter(|index| *index != self.current);
        let order = core::iter::once(self.current).chain(others).collect();
        Some(Trial { order, figures_ns: Vec::new(), cause })
    }

    fn end_trial(&mut self, trial: &Trial) -> Outcome {
        let mut times: Vec<_> = trial.order.iter().copied().zip(trial.figures_ns.iter().copied()).collect();
        let (before, before_ns) = times[0];
        times.sort_by_key(|(_, figure_ns)| *figure_ns);
        let (best, best_ns) = times[0];
        let is_changed = best_ns as f64 <= GAIN * before_ns as f64;
        let (current, reference_ns) = if is_changed { (best, best_ns) } else { (before, before_ns) };
        (self.current, self.reference_ns) = (current, Some(reference_ns));
        self.rest = if self.settled > CALM_EPOCHS { 1 } else { self.next_rest };
        self.next_rest = (2 * self.rest).min(REST_EPOCHS_MAX);
        (self.deviations, self.settled) = (0, 0);
        let estimate = |(index, figure_ns): (usize, u64)| Estimate {
            algorithm: self.candidates[index],
            time_ns: figure_ns as f64,
        };
        Outcome {
            runs: self.runs,
            from: self.candidates[before],
            to: self.candidates[current],
            cause: trial.cause,
            times: times.into_iter().map(estimate).collect(),
        }
    }
}

impl Outcome {
    /// Returns `true` if the algorithm has changed.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.from != self.to
    }
}

/// Displays one line for a report: `from run 23 on ring and no longer two-shot: a run took 1403.7 us and not 617.9 us; tried ring 635.5 us,
/// two-shot 1402.0 us`.
impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |ns: u64| ns as f64 / 1000.0;
        write!(formatter, "from run {} on {}", self.runs + 1, self.to)?;
        match self.is_changed() {
            true => write!(formatter, " and no longer {}: ", self.from)?,
            false => formatter.write_str(" as before: ")?,
        }
        match self.cause {
            Cause::Deviated { reference_ns, now_ns } => write!(
                formatter,
                "a run took {:.1} us and not {:.1} us as at the choice",
                us(now_ns),
                us(reference_ns)
            )?,
            Cause::Review => write!(formatter, "review after {REVIEW_EPOCHS} epochs")?,
        }
        for (index, Estimate { algorithm, time_ns }) in self.times.iter().enumerate() {
            let before = if index == 0 { "; tried" } else { "," };
            write!(formatter, "{before} {algorithm} {:.1} us", time_ns / 1000.0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOICE: [(Algorithm, f64); 4] = [
        (Algorithm::TwoShot, 600.0),
        (Algorithm::Ring, 700.0),
        (Algorithm::HalvingDoubling, 800.0),
        (Algorithm::OneShot, 9_000.0),
    ];

    fn choice() -> Choice {
        let estimates =
            CHOICE.map(|(algorithm, time_ns)| Estimate { algorithm, time_ns }).into_iter().collect();
        Choice { algorithm: Algorithm::TwoShot, estimates }
    }

    fn adaptation() -> Adaptation {
        Adaptation::new(&choice(), |_| true).unwrap()
    }

    /// Performs runs whose times `time_ns` returns, and returns the outcomes. All ranks have the same times.
    fn perform(
        adaptation: &mut Adaptation,
        runs: usize,
        mut time_ns: impl FnMut(Algorithm) -> u64,
    ) -> Vec<Outcome> {
        let run = |_| {
            let figure = adaptation.record(time_ns(adaptation.algorithm()));
            figure.and_then(|figure| adaptation.agree(figure))
        };
        (0..runs).filter_map(run).collect()
    }

    fn healthy(algorithm: Algorithm) -> u64 {
        match algorithm {
            Algorithm::TwoShot => 600,
            Algorithm::Ring => 640,
            _ => 800,
        }
    }

    fn degraded(algorithm: Algorithm) -> u64 {
        match algorithm {
            Algorithm::TwoShot => 1_400,
            Algorithm::Ring => 640,
            _ => 1_100,
        }
    }

    #[test]
    fn an_algorithm_of_a_poor_estimate_or_that_does_not_fit_is_no_candidate() {
        let candidates = adaptation().candidates;
        assert_eq!(candidates, [Algorithm::TwoShot, Algorithm::Ring, Algorithm::HalvingDoubling]);
        let ordered = Adaptation::new(&choice(), |algorithm| algorithm != Algorithm::TwoShot).unwrap();
        assert_eq!(ordered.algorithm(), Algorithm::Ring);
        assert_eq!(Adaptation::new(&choice(), |algorithm| algorithm == Algorithm::Ring), None);
    }

    #[test]
    fn a_fabric_that_stays_as_it_is_causes_no_trial() {
        let mut adaptation = adaptation();
        assert_eq!(perform(&mut adaptation, 10_000, healthy), []);
        assert_eq!(adaptation.algorithm(), Algorithm::TwoShot);
    }

    #[test]
    fn a_slower_fabric_changes_the_algorithm_once_and_a_repaired_one_changes_it_back() {
        let mut adaptation = adaptation();
        perform(&mut adaptation, 2 * EPOCH_RUNS, healthy);
        let outcomes = perform(&mut adaptation, 60 * EPOCH_RUNS, degraded);
        let [outcome] = &outcomes[..] else { panic!("{outcomes:?}") };
        assert_eq!((outcome.from, outcome.to), (Algorithm::TwoShot, Algorithm::Ring));
        assert_eq!(outcome.cause, Cause::Deviated { reference_ns: 600, now_ns: 1_400 });
        assert_eq!(outcome.runs, (4 * EPOCH_RUNS + 3 * TRIAL_RUNS) as u64);
        assert_eq!(
            outcome.to_string(),
            "from run 42 on ring and no longer two-shot: a run took 1.4 us and not 0.6 us as at the choice; tried ring 0.6 us, \
             halving-doubling 1.1 us, two-shot 1.4 us"
        );
        // The ring is as fast on the repaired fabric, and two-shot gains less than a tenth.
        let outcomes = perform(&mut adaptation, 400 * EPOCH_RUNS, healthy);
        assert!(!outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.cause == Cause::Review));
        assert!(outcomes.iter().all(|outcome| !outcome.is_changed()));
        let faster = |algorithm| if algorithm == Algorithm::TwoShot { 300 } else { healthy(algorithm) };
        let outcomes = perform(&mut adaptation, 400 * EPOCH_RUNS, faster);
        assert_eq!(outcomes.iter().map(|outcome| outcome.to).collect::<Vec<_>>(), [Algorithm::TwoShot]);
    }

    #[test]
    fn one_slow_epoch_causes_no_trial() {
        let mut adaptation = adaptation();
        perform(&mut adaptation, 2 * EPOCH_RUNS, healthy);
        assert_eq!(perform(&mut adaptation, EPOCH_RUNS, degraded), []);
        assert_eq!(perform(&mut adaptation, 50 * EPOCH_RUNS, healthy), []);
    }

    #[test]
    fn a_fabric_that_swings_causes_ever_fewer_trials() {
        const RUNS: usize = 100_000;
        for period in [8, 20, 40, 100, 1000] {
            let (mut adaptation, mut run) = (adaptation(), 0);
            let swinging = |algorithm| {
                run += 1;
                if run / period % 2 == 0 { healthy(algorithm) } else { degraded(algorithm) }
            };
            let outcomes = perform(&mut adaptation, RUNS, swinging);
            // The rests grow from one epoch to the largest number in seven trials.
            let most = RUNS / (EPOCH_RUNS * REST_EPOCHS_MAX as usize) + 7;
            assert!(outcomes.len() <= most, "period {period}: {} of at most {most}", outcomes.len());
        }
    }

    #[test]
    fn noise_below_the_deviation_changes_nothing() {
        let mut adaptation = adaptation();
        let mut state = 1_u64;
        let noisy = |algorithm| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            healthy(algorithm) * (90 + (state >> 33) % 40) / 100
        };
        assert_eq!(perform(&mut adaptation, 50_000, noisy), []);
    }
}
