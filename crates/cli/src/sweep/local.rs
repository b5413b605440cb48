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
        must_suffice(&workers, &points, &pilots, rest.len(), begun.elapsed(), arguments.time_limit)?;
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

/// Checks that the rest of the grid ends within the limit.
fn must_suffice(
    workers: &Workers<'_>,
    points: &[Point],
    pilots: &[u64],
    rest: usize,
    elapsed: Duration,
    limit: Duration,
) -> Result<(), Failure> {
    if workers.is_over() {
        let message = format!(
            "the first {} runs of the grid take longer than the time limit of {}",
            pilots.len(),
            time_limit::shown(limit)
        );
        return Err(
            Failure::bad_input(message).hint("raise the limit with --time-limit, or leave out values")
        );
    }
    let results = pilots.iter().filter_map(|index| points.get(usize::try_from(*index).ok()?));
    let times: Vec<u64> =
        results.filter_map(|point| workers.folder.result(point)).map(|result| result.took_ms).collect();
    // Processes need a few milliseconds beside the run.
    let mean_ms = times.iter().sum::<u64>() as f64 / times.len().max(1) as f64 + 5.0;
    let rest_s = mean_ms / 1000.0 * rest as f64 / workers.at_once as f64;
    let what = format!("the grid of {} runs", points.len());
    let estimate = elapsed + Duration::from_secs_f64(rest_s);
    time_limit::must_suffice(&what, estimate, limit, "leave out values; runs that are done are not repeated")
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
    fn a_small_grid_is_all_pilots() {
        assert_eq!(pilots(&[3, 4], 8), (vec![3, 4], Vec::new()));
    }
}
