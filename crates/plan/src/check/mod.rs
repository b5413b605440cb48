//! Checks if a plan can run: ranges of single values, and values that contradict each other.
//!
//! The checks apply to the plan of a file and to a plan that a command line has changed. They use the finished plan, and
//! [`Positions`] only for positions. A value that could not be read is not checked, because it has been reported.

mod channels;
pub mod deadlock;
mod dependencies;
mod forwarding;
mod hops;
mod hosts;
mod inspection;
mod job;
mod links;
pub(crate) mod load;
mod members;
mod objections;
mod own_channels;
mod own_credits;
mod paths;
mod pause;
mod retry;
mod settings;

use crate::model::jobs::job::JobPlan;
use crate::model::objection::Objection;
use crate::model::plan::Plan;
use crate::read::mistake::{Mistake, Source};
use crate::read::positions::Positions;
pub(crate) use inspection::Fit;
use inspection::Inspection;

/// Returns all mistakes of a plan. `judge` is called last, for the job of a plan without other mistakes.
pub(crate) fn mistakes(
    plan: &Plan,
    jobs: &[JobPlan],
    positions: &Positions,
    source: &Source<'_>,
    fit: Fit,
    judge: &dyn Fn(&Plan) -> Vec<Objection>,
) -> Vec<Mistake> {
    let mut check = Inspection::new(plan, jobs, positions, source, fit);
    check.settings();
    members::check(&mut check);
    links::check(&mut check);
    links::bridges(&mut check);
    hosts::check(&mut check);
    channels::cycles(&mut check);
    if fit == Fit::Judged {
        objections::check(&mut check, judge);
    }
    check.mistakes
}

/// Returns all mistakes of a plan whose shape could not be built.
pub(crate) fn mistakes_of_settings(
    plan: &Plan,
    jobs: &[JobPlan],
    positions: &Positions,
    source: &Source<'_>,
) -> Vec<Mistake> {
    let mut check = Inspection::new(plan, jobs, positions, source, Fit::Open);
    check.settings();
    check.mistakes
}
