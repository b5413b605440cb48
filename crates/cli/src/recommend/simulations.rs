//! Simulations of the best candidates, in parallel and within a time limit.
//!
//! The candidate with the fewest frames is simulated first. Its duration gives an estimate of the others, which is printed, and which becomes
//! better with each one that ends. A simulation that would take longer than the time that is left is not begun. One that does is ended.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rackloom_collectives::Algorithm;
use rackloom_experiments::parallel::{self, processors};
use rackloom_runtime::machine::interruption::Interruption;

use super::bounded;
use super::candidate::{Rack, Size};
use super::model::{self, Work};
use super::simulate::{self, Simulated};
use crate::arguments::RecommendArguments;
use crate::exit::Exit;
use crate::failure::{Failure, print_to_stderr};
use crate::tally::Tally;
use crate::time_limit;

/// Time in which a simulation ends itself at the time limit. Then it is abandoned.
const GRACE: Duration = Duration::from_millis(300);

/// Candidate that is to be simulated.
pub(super) struct Planned<'a> {
    pub(super) size: Size,
    pub(super) rack: &'a Rack,
    pub(super) algorithm: Algorithm,
    /// Time that the build of the rack took. A simulation builds it again, and cannot end before.
    pub(super) build_time: Duration,
}

/// End of a simulation.
pub(super) enum End {
    Done(Simulated),
    Failed(Failure),
    /// It was not begun, or it was ended, for this reason.
    NotSimulated(String),
}

/// Search whose candidates are simulated.
pub(super) struct Simulations<'a> {
    arguments: &'a RecommendArguments,
    work: Work,
    /// Moment at which the search ends; `None` if it is too far away to be a time.
    deadline: Option<Instant>,
    interruption: &'a Arc<Interruption>,
    pace: Mutex<Pace>,
}

/// Frames that were simulated, and the time that one thread took.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    seconds: f64,
    frames: f64,
}

impl Pace {
    /// Returns the time that one thread takes to simulate so many frames, or `None` before any is known.
    fn estimate(self, frames: f64) -> Option<Duration> {
        (self.frames > 0.0).then(|| Duration::from_secs_f64(self.seconds / self.frames * frames))
    }
}

impl<'a> Simulations<'a> {
    pub(super) fn new(
        arguments: &'a RecommendArguments,
        work: Work,
        begun: Instant,
        interruption: &'a Arc<Interruption>,
    ) -> Self {
        let deadline = begun.checked_add(arguments.time_limit);
        Self { arguments, work, deadline, interruption, pace: Mutex::default() }
    }

    /// Simulates all candidates, and returns their ends in the same order.
    pub(super) fn run(&self, planned: &[Planned<'_>]) -> Vec<End> {
        let threads = processors().min(planned.len().max(1));
        let frames: Vec<f64> = planned.iter().map(|one| self.frames(one)).collect();
        let tally =
            Tally::weighted("simulations", planned.len() as u64, threads, frames.iter().sum::<f64>() as u64);
        let one = |index: &usize| {
            let end = self.one(&planned[*index], frames[*index]);
            (*index, end)
        };
        let count = |(index, end): &(usize, End)| {
            if !matches!(end, End::NotSimulated(_)) {
                tally.add_work(frames[*index] as u64);
            }
        };
        let mut order: Vec<usize> = (0..planned.len()).collect();
        let Some(pilot) = order.iter().copied().min_by(|one, other| frames[*one].total_cmp(&frames[*other]))
        else {
            return Vec::new();
        };
        order.remove(pilot);
        let first = one(&pilot);
        count(&first);
        let rest: f64 = order.iter().map(|index| frames[*index]).sum();
        if let Some(left) = self.pace().estimate(rest / threads as f64).filter(|_| !order.is_empty()) {
            tally.expect(left);
            tally.above(|| {
                let left = time_limit::shown(left);
                print_to_stderr(&format!("{} more simulations, about {left}", order.len()));
            });
        }
        let mut ends = vec![first];
        // Each simulation looks at the time and at the interruption, so all are begun.
        ends.extend(parallel::map_until(&order, threads, || false, one, count).into_iter().flatten());
        ends.sort_unstable_by_key(|(index, _)| *index);
        ends.into_iter().map(|(_, end)| end).collect()
    }

    /// Returns the frames of a simulated run: those of the array that is simulated.
    fn frames(&self, one: &Planned<'_>) -> f64 {
        let Planned { size, rack, algorithm, .. } = *one;
        let bytes = model::simulated_bytes(self.work, size, rack, algorithm, self.arguments.frames_max);
        model::frames(Work { bytes, ..self.work }, size, rack, algorithm)
    }

    fn one(&self, planned: &Planned<'_>, frames: f64) -> End {
        if let Some(reason) = self.reason_to_stop(frames, planned.build_time) {
            return End::NotSimulated(reason);
        }
        let begun = Instant::now();
        let (interruption, deadline) = (Arc::clone(self.interruption), self.deadline);
        let Planned { size, algorithm, .. } = *planned;
        let (file, frames_max) = (self.arguments.file.clone(), self.arguments.frames_max);
        let (work, rack) = (self.work, planned.rack.clone());
        let simulation = move || {
            let goes_on = || !interruption.is_requested() && !is_past(deadline);
            simulate::simulate(&file, frames_max, work, size, &rack, algorithm, &goes_on)
        };
        // A simulation ends itself once it runs. Its build does not.
        let is_over = || {
            self.interruption.is_requested() || is_past(self.deadline.and_then(|end| end.checked_add(GRACE)))
        };
        let ended = match bounded::run(simulation, is_over) {
            Ok(Some(ended)) => ended,
            Ok(None) => Err(Failure::new(Exit::Interrupted, "abandoned")),
            Err(reason) => Err(Failure::bad_input(format!("its simulation: {reason}"))),
        };
        match ended {
            Ok(simulated) => {
                let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
                pace.seconds += begun.elapsed().as_secs_f64();
                pace.frames += frames;
                End::Done(simulated)
            }
            Err(failure) if failure.exit == Exit::Interrupted => {
                let shown = time_limit::shown(begun.elapsed());
                let cause = if self.is_late() { self.limit_reached() } else { "interrupted".to_owned() };
                End::NotSimulated(format!("{cause}, after {shown} of its simulation"))
            }
            Err(failure) => End::Failed(failure),
        }
    }

    /// Returns the reason not to begin a simulation of so many frames behind a build, if there is one.
    fn reason_to_stop(&self, frames: f64, build_time: Duration) -> Option<String> {
        if self.interruption.is_requested() {
            return Some("interrupted before its simulation".to_owned());
        }
        let left = self.deadline?.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Some(format!("{} before its simulation", self.limit_reached()));
        }
        let estimate = build_time + self.pace().estimate(frames).unwrap_or_default();
        if estimate <= left {
            return None;
        }
        let (estimate, left) = (time_limit::shown(estimate), time_limit::shown(left));
        Some(format!("its simulation would take about {estimate}, and {left} of the time limit are left"))
    }

    fn limit_reached(&self) -> String {
        format!("the time limit of {} came", time_limit::shown(self.arguments.time_limit))
    }

    fn is_late(&self) -> bool {
        is_past(self.deadline)
    }

    fn pace(&self) -> Pace {
        *self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if this moment has come. `None` never comes.
fn is_past(moment: Option<Instant>) -> bool {
    moment.is_some_and(|moment| Instant::now() >= moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_follows_from_the_frames_that_were_simulated() {
        assert_eq!(Pace::default().estimate(1e6), None);
        let pace = Pace { seconds: 2.0, frames: 1e6 };
        assert_eq!(pace.estimate(5e6), Some(Duration::from_secs(10)));
    }
}
