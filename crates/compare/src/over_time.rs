//! Rates of links over time: in which interval a link differs the most between two sides.
//!
//! Series of different runs begin at different times, and long runs have longer intervals. Times are therefore counted from the first
//! operation of each run, and intervals are joined to the longest one of all runs. Differences over time are shown and never judged.

use std::collections::{BTreeSet, HashMap};

use rackloom_control::report::{Report, Series};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::judge;

/// Largest difference of the rate of one direction of a link, and its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateDifference {
    /// Name of the direction, such as `n0->n1`.
    pub link: String,
    /// Begin of the interval in nanoseconds, from the first operation of each run.
    pub at_ns: u64,
    /// Rate before in this interval, in bytes per second; the median of the runs.
    pub before: f64,
    /// Rate after in this interval, in bytes per second; the median of the runs.
    pub after: f64,
}

/// Differences of rates over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverTime {
    /// Length of an interval in nanoseconds.
    pub interval_ns: u64,
    /// Directions that differ, the largest difference first.
    pub links: Vec<RateDifference>,
    /// Directions that differ and are left out.
    pub left_out: usize,
}

/// Returns the length of the intervals in which all runs can be compared. `None` if a run has no series, or if a length does not divide the
/// longest one.
pub(crate) fn interval_ns(before: &[&Report], after: &[&Report]) -> Option<u64> {
    let length = |report: &&Report| report.series.as_ref().map(|series| series.interval_ns);
    let lengths: Vec<u64> = before.iter().chain(after).map(length).collect::<Option<_>>()?;
    let longest = lengths.iter().copied().max()?;
    lengths.iter().all(|length| *length > 0 && longest.is_multiple_of(*length)).then_some(longest)
}

/// Returns the rate in each interval of this length, in bytes per second, from the bytes in each interval of the series.
pub(crate) fn rates(series: &Series, bytes: &[u64], interval_ns: u64) -> Vec<f64> {
    let joined = bytes.chunks((interval_ns / series.interval_ns).max(1) as usize);
    // The last interval may be shorter.
    let rate = |part: &[u64]| {
        part.iter().sum::<u64>() as f64 * 1e9 / (part.len() as f64 * series.interval_ns as f64)
    };
    joined.map(rate).collect()
}

/// Series of one run, with the bytes of each direction by its name.
struct Run<'r> {
    series: &'r Series,
    bytes: HashMap<&'r str, &'r [u64]>,
}

impl<'r> Run<'r> {
    fn of(series: &'r Series) -> Self {
        let bytes = series.links.iter().map(|link| (link.name.as_str(), link.bytes.as_slice()));
        Self { series, bytes: bytes.collect() }
    }

    /// Returns the rates of a direction. One that the series leaves out has sent nothing.
    fn rates(&self, link: &str, interval_ns: u64) -> Vec<f64> {
        match self.bytes.get(link) {
            Some(bytes) => rates(self.series, bytes, interval_ns),
            None => rates(self.series, &vec![0; self.series.intervals as usize], interval_ns),
        }
    }
}

/// Returns the differences of all directions that both sides have, `rows_max` at most.
pub(crate) fn differences(
    before: &[&Report],
    after: &[&Report],
    interval_ns: u64,
    has_link: impl Fn(&str) -> bool,
    rows_max: usize,
) -> OverTime {
    let [before, after] = [before, after].map(|side| {
        let series = side.iter().filter_map(|report| report.series.as_ref());
        series.map(Run::of).collect::<Vec<_>>()
    });
    let all = before.iter().chain(&after).flat_map(|run| run.bytes.keys().copied());
    let names: BTreeSet<&str> = all.filter(|link| has_link(link)).collect();
    let side = |runs: &[Run<'_>], link: &str| -> Vec<Vec<f64>> {
        runs.iter().map(|run| run.rates(link, interval_ns)).collect()
    };
    let mut links: Vec<_> = names
        .into_iter()
        .filter_map(|link| largest(link, &side(&before, link), &side(&after, link), interval_ns))
        .collect();
    let size = |difference: &RateDifference| (difference.after - difference.before).abs();
    links.sort_by(|one, other| size(other).total_cmp(&size(one)).then_with(|| one.link.cmp(&other.link)));
    let left_out = links.len().saturating_sub(rows_max);
    links.truncate(rows_max);
    OverTime { interval_ns, links, left_out }
}

/// Returns the largest difference in the intervals that both sides have; `None` if there is none. Of equal ones it is the first.
fn largest(link: &str, before: &[Vec<f64>], after: &[Vec<f64>], interval_ns: u64) -> Option<RateDifference> {
    let median = |side: &[Vec<f64>], index: usize| {
        let values: Vec<_> = side.iter().map(|rates| rates.get(index).copied()).collect();
        judge::spread(&values).map(|spread| spread.median)
    };
    let both = (0..).map_while(|index| Some((index, median(before, index)?, median(after, index)?)));
    let mut found: Option<RateDifference> = None;
    for (index, before, after) in both {
        let most = found.as_ref().map_or(0.0, |found| (found.after - found.before).abs());
        if (after - before).abs() > most {
            let at_ns = (index as u64).saturating_mul(interval_ns);
            found = Some(RateDifference { link: link.to_owned(), at_ns, before, after });
        }
    }
    found
}
