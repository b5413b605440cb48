//! Sweep on this machine: points that have no result yet, as processes, after an estimate of their time.
//!
//! A few points that lie far apart in the grid run first. If the others would take longer than the time limit, they are not run.

use std::time::{Duration, Instant};

use rackloom_experiments::parallel::processors;
use rackloom_runtime::machine::interruption::Interruption;

use super::collect;
use super::folder::Folder;
use super::grid::Point;
use super::workers::{Died, Workers};
use crate::arguments::{Share, SweepArguments};
use crate::exit::Exit;
use crate::failure::{Failure, print_to_stderr};
use crate::tally::Tally;
use crate::time_limit;

/// Least number of points that run before the estimate.
const PILOTS_MIN: usize = 3;

/// Runs all points without a result, and makes the results.
pub(super) fn run(folder: &Folder, arguments: &SweepArguments) -> Result<Exit, Failure> {
    let points = folder.points()?;
    let open = open(folder, &points, |_| true);
    let at_once = arguments.jobs.map_or_else(processors, usize::from);
    let interruption = listen()?;
    let skipped = points.len() - open.len();
    let skipped = if skipped == 0 { String::new() } else { format!(", {skipped} done before") };
    print_to_stderr(&format!("{} runs, {at_once} at once{skipped}", open.len()));
    let tally = Tally::begin("sweep", open.len() as u64, at_once);
    let begun = Instant::now();
    let (pilots, rest) = pilots(&open, at_once);
    let deadline = begun.checked_add(arguments.time_limit);
    let workers = Workers { folder, interruption: &interruption, at_once, deadline };
    let mut died = workers.run(&pilots, &tally);
    if !interruption.is_requested() {
        let measured = Measured {
            pilots: pilots.len(),
            ended: pilots.iter().filter(|index| has_ended(folder, &points, **index, &died)).count(),
            rest: rest.len(),
            at_once,
            elapsed: begun.elapsed(),
            limit: arguments.time_limit,
        };
        must_suffice(&workers, &points, &pilots, &measured)?;
        died.extend(Workers { deadline: None, ..workers }.run(&rest, &tally));
    }
    drop(tally);
    let exit = collect::results(folder, &points, &died, &arguments.page)?;
    if interruption.is_requested() {
        print_to_stderr("interrupted; the same command goes on with the other runs");
        return Ok(Exit::Interrupted);
    }
    Ok(exit)
}

/// Runs the points of a share, one after the other, without results.
pub(super) fn run_share(folder: &Folder, share: Share) -> Result<Exit, Failure> {
    let points = folder.points()?;
    let open = open(folder, &points, |point| point.index % share.parts == share.index);
    let interruption = listen()?;
    let workers = Workers { folder, interruption: &interruption, at_once: 1, deadline: None };
    let died: Died = workers.run(&open, &Tally::begin("share", open.len() as u64, 1));
    for (index, reason) in &died {
        print_to_stderr(&format!("point {index} died: {reason}"));
    }
    Ok(match (interruption.is_requested(), died.is_empty()) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::Pass,
        (false, false) => Exit::Fail,
    })
}

fn listen() -> Result<std::sync::Arc<Interruption>, Failure> {
    Interruption::listen().map_err(|error| Failure::could_not_start("cannot listen to signals", error))
}

/// Returns the numbers of the points without a result.
fn open(folder: &Folder, points: &[Point], is_meant: impl Fn(&Point) -> bool) -> Vec<u64> {
    let open = points.iter().filter(|point| is_meant(point) && folder.result(point).is_none());
    open.map(|point| point.index).collect()
}

/// Returns true if the point with this number has a result or died.
fn has_ended(folder: &Folder, points: &[Point], index: u64, died: &Died) -> bool {
    let point = usize::try_from(index).ok().and_then(|index| points.get(index));
    died.contains_key(&index) || point.is_some_and(|point| folder.result(point).is_some())
}

/// Divides points into those from which the time is estimated, and the others.
fn pilots(open: &[u64], at_once: usize) -> (Vec<u64>, Vec<u64>) {
    let count = at_once.max(PILOTS_MIN);
    if open.len() <= count {
        return (open.to_vec(), Vec::new());
    }
    let is_pilot = |at: usize| (0..count).any(|pilot| pilot * (open.len() - 1) / (count - 1) == at);
    let (pilots, rest): (Vec<_>, Vec<_>) = open.iter().enumerate().partition(|(at, _)| is_pilot(*at));
    let numbers = |part: Vec<(usize, &u64)>| part.into_iter().map(|(_, index)| *index).collect();
    (numbers(pilots), numbers(rest))
}

/// Runs from which the time of a grid is estimated.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Number of runs that were to be measured.
    pilots: usize,
    /// Number of those that have ended, with a result or without one.
    ended: usize,
    /// Number of the other runs.
    rest: usize,
    /// Number of runs at the same time.
    at_once: usize,
    /// Time since the begin of the first run.
    elapsed: Duration,
    /// Longest time of the grid. Runs that have not ended then are ended.
    limit: Duration,
}

impl Measured {
    /// Returns the least time of the grid if it was ended before all of its first runs had: each run that was started has taken as long as
    /// those that have ended, on average, or longer. Returns `None` if all have ended.
    fn least(&self) -> Option<Duration> {
        let Self { pilots, ended, rest, at_once, limit, .. } = *self;
        let begun = pilots.min(ended + at_once);
        (ended < pilots).then(|| limit.mul_f64((pilots + rest) as f64 / begun.max(1) as f64))
    }
}

/// Checks that the rest of the grid ends within the limit.
fn must_suffice(
    workers: &Workers<'_>,
    points: &[Point],
    pilots: &[u64],
    measured: &Measured,
) -> Result<(), Failure> {
    let Measured { ended, rest, at_once, elapsed, limit, .. } = *measured;
    let what = format!("the grid of {} runs", points.len());
    let instead = "leave out values; runs that are done are not repeated";
    if let Some(least) = measured.least() {
        let (least, limit, count) = (time_limit::shown(least), time_limit::shown(limit), pilots.len());
        let message = format!(
            "{what} would take at least {least}, longer than the time limit of {limit}: {ended} of its first {count} runs ended within it"
        );
        return Err(
            Failure::bad_input(message).hint(format!("raise the limit with --time-limit, or {instead}"))
        );
    }
    if rest == 0 {
        return Ok(());
    }
    let results = pilots.iter().filter_map(|index| points.get(usize::try_from(*index).ok()?));
    let times: Vec<u64> =
        results.filter_map(|point| workers.folder.result(point)).map(|result| result.took_ms).collect();
    // Processes need a few milliseconds beside the run.
    let mean_ms = times.iter().sum::<u64>() as f64 / times.len().max(1) as f64 + 5.0;
    let rest_s = mean_ms / 1000.0 * rest as f64 / at_once as f64;
    time_limit::must_suffice(&what, elapsed + Duration::from_secs_f64(rest_s), limit, instead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pilots_lie_far_apart_and_no_point_is_lost() {
        let open: Vec<u64> = (10..21).collect();
        let (pilots, rest) = pilots(&open, 2);
        assert_eq!(pilots, [10, 15, 20]);
        let mut all = [pilots, rest].concat();
        all.sort_unstable();
        assert_eq!(all, open);
    }

    #[test]
    fn a_grid_that_is_ended_early_takes_at_least_the_time_of_its_first_runs() {
        let measured = Measured {
            pilots: 3,
            ended: 0,
            rest: 57,
            at_once: 2,
            elapsed: Duration::from_secs(4),
            limit: Duration::from_secs(3),
        };
        let least_s = |measured: Measured| measured.least().map(|least| least.as_secs_f64());
        // Two runs at once that take 3 s each or longer: thirty pairs.
        assert_eq!(least_s(measured), Some(90.0));
        assert_eq!(least_s(Measured { at_once: 1, ..measured }), Some(180.0));
        assert_eq!(least_s(Measured { at_once: 60, ..measured }), Some(60.0), "three runs at once are all");
        // One has ended and two others were begun in 3 s.
        assert_eq!(least_s(Measured { ended: 1, ..measured }), Some(60.0));
        assert_eq!(least_s(Measured { ended: 3, ..measured }), None);
    }

    #[test]
    fn a_small_grid_is_all_pilots() {
        assert_eq!(pilots(&[3, 4], 8), (vec![3, 4], Vec::new()));
    }
}
