//! Trial runs: each algorithm that may be chosen is run and timed on the rack itself, before the sizes of the job.
//!
//! A measurement of one pair of ranks does not predict a collective: other ranks share links and processors, some peers
//! are reached through mapped memory and some in frames, and operands are reduced at the sizes and in the memory of the
//! schedule. A trial run contains all of that. The trials cover the job's own sizes, one in each factor of eight and
//! the largest, as far as a run moves no more than [`TRIAL_BYTES_MAX`] and is expected to take no longer than
//! [`TRIAL_NS_MAX`]. Runs that move more than [`SHORT_BYTES_MAX`] are repeated less often. Times of other sizes follow from [`Curve`].
//! If a size is left out, the largest size that is short is tried in its place: its time contains the rate of the rack,
//! which the time of a small size does not.
//!
//! Between two trial runs each rank overwrites its output and checks the result, as between the runs of the job. Both
//! change what the caches hold and when a rank begins, and so the time of a run. Runs that move more than
//! [`CACHED_BYTES_MAX`] do not fit into caches: they are neither overwritten nor checked.
//!
//! A rank's time of a trial is the median of its runs after one run of warm-up. The ranks agree on the time of the slowest one
//! ([`super::exchange`]), so all ranks choose by the same numbers.
//!
//! In virtual time the trials show what the closed forms leave out: packing, credits and the limits of memory.

use std::sync::Arc;

use super::check::Reference;
use super::exchange;
use super::prepared::Prepared;
use super::settings::CollectiveSettings;
use rackloom_collectives::choose::{Choice, Estimate, Fabric};
use rackloom_collectives::curve::Curve;
use rackloom_collectives::{Algorithm, Schedule};

/// Maximum number of bytes that all ranks together move in one trial run. The smallest size is tried in any case.
const TRIAL_BYTES_MAX: usize = 4 << 30;
/// Maximum time that the closed forms expect of a trial run that moves more than [`SHORT_BYTES_MAX`], in nanoseconds.
const TRIAL_NS_MAX: f64 = 500e6;
/// Maximum number of bytes that all ranks together move in a short run.
const SHORT_BYTES_MAX: usize = 128 << 20;
/// Maximum number of bytes that all ranks together move in a run of which caches hold a part that matters.
const CACHED_BYTES_MAX: usize = 16 << 20;
/// Maximum number of transfers of a schedule that is tried. Larger ones are not chosen either.
const TRANSFERS_MAX: usize = 16_384;
/// Smallest factor between two sizes that are tried, except for the last one.
const SPACING: usize = 8;
/// Number of warm-up runs per trial.
const WARM_UP: usize = 1;
/// Maximum number of bytes that all ranks together move in a run that takes microseconds.
const TINY_BYTES_MAX: usize = 1 << 20;
/// Number of measured runs per trial among few ranks, if the runs take microseconds. One absence of a rank from its
/// processor is longer than several such runs.
const TINY_RUNS: usize = 15;
/// Number of measured runs per trial among few ranks, if the runs are short.
const SHORT_RUNS: usize = 5;
/// Number of measured runs per trial among few ranks, if the runs are long.
const LONG_RUNS: usize = 3;
/// Number of measured runs per trial among many ranks.
const CROWDED_RUNS: usize = 1;
/// Largest number of ranks that counts as few.
const FEW_RANKS: usize = 16;
/// Times of the trials on which all ranks agree.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Tried {
    points: Vec<Point>,
    /// Number of trial runs. Signals of later runs have larger numbers.
    pub(crate) runs: u64,
}

/// Time of one algorithm at one size.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Point {
    algorithm: String,
    elements: usize,
    time_ns: u64,
}

impl Tried {
    /// Returns the choice for a size by the trials. Algorithms that were not tried are left out. `closed_form` returns
    /// the choice of the closed forms for a number of elements.
    pub(crate) fn choose(
        &self,
        elements: usize,
        closed_form: impl Fn(usize) -> Result<Choice, String>,
    ) -> Result<Choice, String> {
        let modelled = closed_form(elements)?;
        let mut estimates = Vec::new();
        for estimate in &modelled.estimates {
            let name = estimate.algorithm.name();
            let points = || self.points.iter().filter(|point| point.algorithm == name);
            let mut curve = Vec::new();
            for point in points() {
                curve.push((point.elements as f64, point.time_ns as f64));
            }
            let smallest = points().map(|point| point.elements).min().unwrap_or(elements);
            let at_smallest = time_of(&closed_form(smallest)?, name);
            let model = |at: f64| if at == elements as f64 { estimate.time_ns } else { at_smallest };
            if let Some(time_ns) = Curve::new(curve).time_ns(elements as f64, model) {
                estimates.push(Estimate { algorithm: estimate.algorithm, time_ns });
            }
        }
        estimates.sort_by(|left, right| left.time_ns.total_cmp(&right.time_ns));
        let first = estimates.first().map(|estimate| estimate.algorithm);
        Ok(first.map_or(modelled, |algorithm| Choice { algorithm, estimates }))
    }

    /// Returns the sizes that were tried, in elements.
    pub(crate) fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<_> = self.points.iter().map(|point| point.elements).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

fn time_of(choice: &Choice, name: &str) -> f64 {
    let found = choice.estimates.iter().find(|estimate| estimate.algorithm.name() == name);
    found.map_or(0.0, |estimate| estimate.time_ns)
}

/// One algorithm at one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trial {
    algorithm: Algorithm,
    elements: usize,
    /// Number of measured runs.
    runs: usize,
    /// True if the ranks overwrite their outputs before each run, and check the results.
    is_checked: bool,
    /// `false` for runs that only touch the buffers of links for the first time.
    is_counted: bool,
}

impl Trial {
    /// Returns the trial of an algorithm among `ranks` ranks, which together move at most `bytes` bytes in a run.
    const fn new(algorithm: Algorithm, elements: usize, bytes: usize, ranks: usize) -> Self {
        let runs = match (ranks <= FEW_RANKS, bytes) {
            (false, _) => CROWDED_RUNS,
            (true, ..=TINY_BYTES_MAX) => TINY_RUNS,
            (true, ..=SHORT_BYTES_MAX) => SHORT_RUNS,
            (true, _) => LONG_RUNS,
        };
        Self { algorithm, elements, runs, is_checked: bytes <= CACHED_BYTES_MAX, is_counted: true }
    }
}

/// The trials of one rank, from the first run to the agreed times.
#[derive(Debug)]
pub(crate) struct Trials {
    list: Vec<Trial>,
    /// Number of completed runs.
    done: usize,
    current: Option<(Arc<Prepared>, Reference)>,
    /// Times of the current trial's runs.
    times_ns: Vec<u64>,
    /// Time of each completed trial on this rank.
    medians_ns: Vec<u64>,
}

impl Trials {
    /// Returns the trials for a job, or `None` if no trial is possible: no schedule is small enough, or there are too
    /// many ranks for the memory in which they agree.
    pub(crate) fn new(
        settings: &CollectiveSettings,
        ranks: usize,
        fitting: &[Algorithm],
        fabric: &Fabric,
    ) -> Result<Option<Self>, String> {
        let mut list = Vec::new();
        for algorithm in fitting {
            list.extend(trials_of(settings, ranks, *algorithm, fabric)?);
        }
        // Algorithms are compared at the same size, so these trials follow each other. Long runs let ranks sleep, and a
        // rank may wake on the processor of another one; short runs come first.
        list.sort_by_key(|trial| trial.elements);
        if let Some(longest) = list.iter().rfind(|trial| trial.is_checked).copied() {
            // Without checks, in which a rank would sleep until another one is ready.
            list.insert(0, Trial { is_counted: false, is_checked: false, ..longest });
        }
        if list.is_empty() || !exchange::fits(list.len(), ranks) {
            return Ok(None);
        }
        let mut trials = Self { list, done: 0, current: None, times_ns: Vec::new(), medians_ns: Vec::new() };
        trials.prepare(settings, ranks)?;
        Ok(Some(trials))
    }

    /// Returns the number of the next run, counted from 1.
    pub(crate) const fn number(&self) -> u64 {
        self.done as u64 + 1
    }

    /// Returns the schedule of the current trial.
    pub(crate) fn schedule(&self) -> Option<&Schedule> {
        self.prepared().map(|prepared| &prepared.schedule)
    }

    /// Returns the schedule of the current trial, with what its checks need.
    pub(crate) fn prepared(&self) -> Option<&Arc<Prepared>> {
        self.current.as_ref().map(|(prepared, _)| prepared)
    }

    /// Returns whether outputs are overwritten and checked in the current trial.
    pub(crate) fn is_checked(&self) -> bool {
        self.list.get(self.medians_ns.len()).is_some_and(|trial| trial.is_checked)
    }

    /// Returns the schedule of the current trial and the result that its runs must have.
    pub(crate) fn expected(&mut self) -> Option<(&Prepared, &mut Reference)> {
        self.current.as_mut().map(|(prepared, reference)| (&**prepared, reference))
    }

    /// Records the time of a completed run. Returns whether there is another one.
    pub(crate) fn record(
        &mut self,
        settings: &CollectiveSettings,
        ranks: usize,
        time_ns: u64,
    ) -> Result<bool, String> {
        self.done += 1;
        self.times_ns.push(time_ns);
        let runs = self.list.get(self.medians_ns.len()).map_or(1, |trial| trial.runs);
        if self.times_ns.len() == WARM_UP + runs {
            let mut counted = self.times_ns.split_off(WARM_UP);
            counted.sort_unstable();
            self.medians_ns.push(counted[counted.len() / 2]);
            self.times_ns.clear();
            self.prepare(settings, ranks)?;
        }
        Ok(self.current.is_some())
    }

    fn prepare(&mut self, settings: &CollectiveSettings, ranks: usize) -> Result<(), String> {
        self.current = None;
        if let Some(trial) = self.list.get(self.medians_ns.len()) {
            let prepared = settings.common().schedule(settings, ranks, trial.algorithm, trial.elements)?;
            self.current = Some((prepared, Reference::default()));
        }
        Ok(())
    }

    pub(crate) fn position(&self) -> String {
        match self.list.get(self.medians_ns.len()) {
            Some(trial) => format!("trying {} on {} elements", trial.algorithm, trial.elements),
            None => "agreeing on the times of the trials".to_owned(),
        }
    }

    /// Returns this rank's times after the last run.
    pub(crate) fn times(&self) -> &[u64] {
        &self.medians_ns
    }

    /// Returns the results by the times on which the ranks have agreed.
    pub(crate) fn agreed(&self, times_ns: &[u64]) -> Tried {
        let point = |(trial, time_ns): (&Trial, &u64)| Point {
            algorithm: trial.algorithm.name().to_owned(),
            elements: trial.elements,
            time_ns: *time_ns,
        };
        let counted = self.list.iter().zip(times_ns).filter(|(trial, _)| trial.is_counted);
        let points = counted.map(point).collect();
        Tried { points, runs: self.done as u64 }
    }
}

/// Returns the trials of an algorithm: the sizes at which it is tried.
fn trials_of(
    settings: &CollectiveSettings,
    ranks: usize,
    algorithm: Algorithm,
    fabric: &Fabric,
) -> Result<Vec<Trial>, String> {
    let mut sizes = settings.sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    let mut trials: Vec<Trial> = Vec::new();
    let mut last_skipped = None;
    for elements in sizes {
        let choice = settings.common().choice(settings, ranks, elements, fabric)?;
        // The choice determines the number of segments of a pipeline at this size.
        let named = choice.estimates.iter().find(|estimate| estimate.algorithm.name() == algorithm.name());
        let algorithm = named.map_or(algorithm, |one| one.algorithm);
        let amount = settings.common().amount(settings, ranks, algorithm, elements)?;
        let expected_ns = named.map_or(0.0, |one| one.time_ns);
        let bytes = amount.elements.saturating_mul(settings.element.bytes());
        let is_small_enough =
            bytes <= SHORT_BYTES_MAX || (bytes <= TRIAL_BYTES_MAX && expected_ns <= TRIAL_NS_MAX);
        if amount.transfers > TRANSFERS_MAX {
            break;
        }
        if !(is_small_enough || trials.is_empty()) {
            let short = elements / bytes.div_ceil(SHORT_BYTES_MAX);
            let largest = last_skipped.or_else(|| trials.last().copied());
            if largest.is_some_and(|largest| largest.elements < short) {
                last_skipped = Some(Trial::new(algorithm, short, SHORT_BYTES_MAX, ranks));
            }
            break;
        }
        let trial = Trial::new(algorithm, elements, bytes, ranks);
        let is_due = trials.last().is_none_or(|last| elements >= last.elements.saturating_mul(SPACING));
        last_skipped = if is_due { None } else { Some(trial) };
        trials.extend(is_due.then_some(trial));
    }
    trials.extend(last_skipped);
    Ok(trials)
}

#[cfg(test)]
mod tests {
    use rackloom_collectives::choose::{self, Spread, TopologyKind};

    use super::*;
    use crate::collective::memory_plan;

    const FABRIC: Fabric = Fabric {
        kind: TopologyKind::Mesh,
        planes: 1,
        spread: Spread::EQUAL,
        alpha_ns: 1_000.0,
        link_ns_per_byte: 1.0,
        local_alpha_ns: 1_000.0,
        local_ns_per_byte: 1.0,
        reduce_ns_per_byte: 1.0,
        memory_ns_per_byte: 0.0,
        begin_ns: 0.0,
        transfer_limit: None,
    };

    fn settings(sizes: &[usize]) -> CollectiveSettings {
        CollectiveSettings { sizes: sizes.to_vec(), ..CollectiveSettings::default() }
    }

    fn sizes(sizes: &[usize], ranks: usize) -> Vec<usize> {
        let trials = trials_of(&settings(sizes), ranks, Algorithm::OneShot, &FABRIC).unwrap();
        trials.into_iter().map(|trial| trial.elements).collect()
    }

    #[test]
    fn one_size_in_each_factor_of_eight_is_tried_and_the_largest_that_is_small_enough() {
        assert_eq!(sizes(&[64, 2, 4, 8, 16, 32], 2), [2, 16, 64]);
        // Two ranks move 8 bytes per element: 512 Mi elements are 4 GiB.
        assert_eq!(sizes(&[2, 1 << 23, 1 << 25, 1 << 30], 2), [2, 1 << 23, 1 << 25]);
        assert_eq!(sizes(&[1 << 30], 2), [1 << 30], "the smallest in any case");
        assert_eq!(sizes(&[2], 200), [0; 0], "with 39800 transfers it is not tried");
    }

    #[test]
    fn large_sizes_are_tried_less_often_and_not_if_they_are_expected_to_take_long() {
        let trials = |sizes: &[usize], ranks, fabric: &Fabric| {
            let trials = trials_of(&settings(sizes), ranks, Algorithm::OneShot, fabric).unwrap();
            trials.into_iter().map(|trial| (trial.elements, trial.runs)).collect::<Vec<_>>()
        };
        // Two ranks move 8 bytes per element: 64 Mi elements are 512 MiB, and 256 MiB per rank.
        let (small, large) = (1 << 20, 1 << 26);
        let fast = Fabric { link_ns_per_byte: 0.1, reduce_ns_per_byte: 0.1, ..FABRIC };
        assert_eq!(trials(&[small, large], 2, &fast), [(small, SHORT_RUNS), (large, LONG_RUNS)]);
        assert_eq!(trials(&[2, small], 2, &fast), [(2, TINY_RUNS), (small, SHORT_RUNS)]);
        let slow = Fabric { link_ns_per_byte: 2.0, ..FABRIC };
        let short = SHORT_BYTES_MAX / 8;
        assert_eq!(
            trials(&[small, large], 2, &slow),
            [(small, SHORT_RUNS), (short, SHORT_RUNS)],
            "537 ms on the link alone"
        );
        assert_eq!(trials(&[short, large], 2, &slow), [(short, SHORT_RUNS)], "no larger size is short");
        assert_eq!(trials(&[small], FEW_RANKS + 1, &fast), [(small, CROWDED_RUNS)]);
    }

    #[test]
    fn what_was_tried_decides_and_the_rest_is_left_out() {
        let point =
            |algorithm: &str, elements, time_ns| Point { algorithm: algorithm.to_owned(), elements, time_ns };
        let points = vec![
            point("ring", 2, 100),
            point("ring", 1002, 1_100),
            point("one-shot", 2, 50),
            point("one-shot", 1002, 4_050),
        ];
        let tried = Tried { points, runs: 12 };
        let settings = settings(&[2, 202, 402]);
        let closed_form = |elements| {
            let request = memory_plan::request(&settings, 4, elements);
            choose::choose(&request, 4, &FABRIC).map_err(|refused| refused.to_string())
        };
        let at = |elements| tried.choose(elements, closed_form).unwrap();
        assert_eq!((at(2).algorithm, at(2).estimates[0].time_ns), (Algorithm::OneShot, 50.0));
        assert_eq!((at(202).algorithm, at(202).estimates[0].time_ns), (Algorithm::Ring, 300.0));
        assert_eq!(at(402).estimates.len(), 2, "two-shot was not tried");
        assert_eq!(tried.sizes(), [2, 1002]);
        let untried = Tried::default().choose(2, closed_form).unwrap();
        assert_eq!(untried, closed_form(2).unwrap(), "the closed forms where nothing was tried");
    }
}
