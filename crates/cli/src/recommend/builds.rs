//! Builds of the candidates: each rack with the estimate of its fastest algorithm, within the time limit of the search.
//!
//! Small racks are built first, so that the time of a large one can be estimated from those of its shape. A build that would take longer than
//! what is left is not begun. A build that runs when the limit or an interruption comes is abandoned. Builds take half of the limit at most, so that
//! there is time for simulations.

use std::time::{Duration, Instant};

use rackloom_collectives::choose::Estimate;
use rackloom_runtime::machine::interruption::Interruption;

use super::bounded;
use super::candidate::{self, Base, Rack, Size};
use super::model::{self, Work};
use crate::arguments::{RecommendArguments, ShapeName};
use crate::failure::Failure;
use crate::time_limit;

/// Share of the time limit that builds may take. The rest is for simulations.
const SHARE: f64 = 0.5;

/// Rack of a candidate that was built.
pub(super) struct Built {
    /// The rack, or the reason for which it cannot be built.
    pub(super) rack: Result<Rack, Failure>,
    /// Fastest algorithm.
    pub(super) estimate: Option<Estimate>,
    /// Duration of the build.
    pub(super) time: Duration,
}

/// End of a build.
pub(super) enum BuildEnd {
    Built(Built),
    /// It was not begun, or it was abandoned, for this reason.
    NotBuilt(String),
}

/// Search whose candidates are built.
pub(super) struct Builds<'a> {
    arguments: &'a RecommendArguments,
    work: Work,
    /// Moment at which builds end; `None` if it is too far away to be a time.
    deadline: Option<Instant>,
    interruption: &'a Interruption,
    paces: Vec<Pace>,
}

/// Time that a build has taken, with the shape and the cost of its rack.
#[derive(Clone, Copy, Debug)]
struct Pace {
    shape: ShapeName,
    cost: f64,
    time: Duration,
}

/// Returns the relative cost of a build: searches of routes are of the order of the square of the nodes, in each plane.
fn cost(size: Size) -> f64 {
    (size.nodes as f64).powi(2) * size.planes as f64
}

/// Returns the estimated time of a build from the costliest one of its shape, or `None` if there was none.
fn estimate(paces: &[Pace], size: Size) -> Option<Duration> {
    let of_shape = paces.iter().filter(|pace| pace.shape == size.shape);
    let last = of_shape.max_by(|one, other| one.cost.total_cmp(&other.cost))?;
    Some(last.time.mul_f64((cost(size) / last.cost).max(1.0)))
}

impl<'a> Builds<'a> {
    pub(super) fn new(
        arguments: &'a RecommendArguments,
        work: Work,
        begun: Instant,
        interruption: &'a Interruption,
    ) -> Self {
        let deadline = begun.checked_add(arguments.time_limit.mul_f64(SHARE));
        Self { arguments, work, deadline, interruption, paces: Vec::new() }
    }

    /// Builds all candidates, the cheapest first, and returns their ends in the order of `sizes`.
    pub(super) fn run(&mut self, sizes: &[Size]) -> Vec<BuildEnd> {
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by(|one, other| cost(sizes[*one]).total_cmp(&cost(sizes[*other])));
        let mut ends: Vec<_> = order.into_iter().map(|index| (index, self.one(sizes[index]))).collect();
        ends.sort_unstable_by_key(|(index, _)| *index);
        ends.into_iter().map(|(_, end)| end).collect()
    }

    fn one(&mut self, size: Size) -> BuildEnd {
        if let Some(reason) = self.reason_to_stop(size) {
            return BuildEnd::NotBuilt(reason);
        }
        let begun = Instant::now();
        let (base, work) = (Base::of(self.arguments), self.work);
        let algorithms = self.arguments.algorithm.clone();
        let build = move || {
            let rack = candidate::rack(&base, size);
            let estimate = rack.as_ref().ok().and_then(|rack| model::best(work, size, rack, &algorithms));
            Built { rack, estimate, time: begun.elapsed() }
        };
        match bounded::run(build, || self.end().is_some()) {
            Ok(Some(built)) => {
                self.paces.push(Pace { shape: size.shape, cost: cost(size), time: built.time });
                BuildEnd::Built(built)
            }
            Ok(None) => {
                let (cause, shown) = (self.end().unwrap_or_default(), time_limit::shown(begun.elapsed()));
                BuildEnd::NotBuilt(format!("{cause}, after {shown} of its build"))
            }
            Err(reason) => BuildEnd::NotBuilt(reason),
        }
    }

    /// Returns the reason for the end of all builds, if it has come.
    fn end(&self) -> Option<String> {
        if self.interruption.is_requested() {
            return Some("interrupted".to_owned());
        }
        let is_late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        is_late.then(|| {
            format!("half of the time limit of {} came", time_limit::shown(self.arguments.time_limit))
        })
    }

    /// Returns the reason not to begin a build, if there is one.
    fn reason_to_stop(&self, size: Size) -> Option<String> {
        if let Some(cause) = self.end() {
            return Some(format!("{cause} before its build"));
        }
        let left = self.deadline?.saturating_duration_since(Instant::now());
        let estimate = estimate(&self.paces, size).filter(|estimate| *estimate > left)?;
        let (estimate, left) = (time_limit::shown(estimate), time_limit::shown(left));
        Some(format!("its build would take about {estimate}, and {left} of half of the time limit are left"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recommend::form::Form;

    #[test]
    fn the_time_of_a_build_follows_from_the_largest_one_of_its_shape() {
        let size = |shape, form, nodes, planes| Size { shape, form, nodes, planes };
        let star = |nodes, planes| size(ShapeName::Star, Form::Star, nodes, planes);
        let pace = |size: Size, milliseconds| Pace {
            shape: size.shape,
            cost: cost(size),
            time: Duration::from_millis(milliseconds),
        };
        let paces = [pace(star(16, 1), 3), pace(star(64, 1), 100), pace(star(32, 1), 90)];
        assert_eq!(estimate(&paces, star(128, 3)), Some(Duration::from_millis(1_200)));
        // Never less than a smaller one took.
        assert_eq!(estimate(&paces, star(8, 1)), Some(Duration::from_millis(100)));
        assert_eq!(estimate(&paces, size(ShapeName::Ring, Form::Ring, 128, 1)), None);
    }
}
