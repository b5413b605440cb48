//! Rows of a sweep over sizes, with the columns that nccl-tests made common.
//!
//! `time` is the mean over the measured runs of the rank with the longest mean. `algbw` is size over time. `busbw` is
//! the bandwidth that each link must have carried with any algorithm. Both are absent if nothing is carried. One GB is
//! 10^9 bytes. `of_link` is `busbw` over the rate that the plan states for a link in one direction. Ranks that send on
//! several links at once can exceed 1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Result of one size of a sweep, with one algorithm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepRow {
    /// Name of the collective or of the kind of operation.
    pub what: String,
    /// Pair of ranks, such as `n0->n1`; empty if all ranks took part.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pair: String,
    /// Name of the algorithm; empty if there is only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub algorithm: String,
    /// Bytes of the whole array, or of one message.
    pub size_bytes: u64,
    /// Elements of the whole array, or messages per run.
    pub count: u64,
    /// Type of one element.
    #[serde(rename = "type")]
    pub element: String,
    /// Reduction that combined the values; `none` if there was none.
    pub op: String,
    /// Measured runs.
    pub repetitions: u32,
    /// Microseconds per run (of a collective) or per message (of a pair).
    pub time_us: f64,
    /// Algorithm bandwidth; `None` (null) where nothing is moved, as by a barrier.
    #[serde(rename = "algbw_GBps")]
    pub algorithm_gbps: Option<f64>,
    /// Bus bandwidth; `None` (null) where nothing is moved.
    #[serde(rename = "busbw_GBps")]
    pub bus_gbps: Option<f64>,
    /// Bus bandwidth divided by the rate of the slowest link in one direction; above 1 if ranks send on several links at once. `None`
    /// (null) where nothing is moved, for pairs, and unless the plan states a rate for every link.
    #[serde(default)]
    pub of_link: Option<f64>,
    /// Shortest time of the measured runs, of the same rank as `time_us`; `None` where single runs were not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_min_us: Option<f64>,
    /// Median of the times of the measured runs, of the same rank as `time_us`; `None` where single runs were not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_p50_us: Option<f64>,
    /// The time that 99 % of the measured runs do not exceed, of the same rank as `time_us`; `None` where single runs were not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_p99_us: Option<f64>,
    /// Microseconds that the choice of the algorithm expected; `None` where the algorithm was not chosen by its expected time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate_us: Option<f64>,
    /// Number of wrong elements (or bytes of messages) over all runs.
    pub wrong: u64,
    /// Trials of other algorithms in the course of the runs, if the job re-chooses. `algorithm` is the last choice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rechoices: Vec<Rechoice>,
}

/// Trial of all possible algorithms in the course of the runs, and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rechoice {
    /// First run of the result, counted from 1, warm-up included.
    pub run: u64,
    /// Algorithm before the trial.
    pub from: String,
    /// Algorithm after the trial; equal to `from` if no algorithm was faster by a tenth.
    pub to: String,
    /// Cause of the trial.
    pub cause: RechoiceCause,
    /// Microseconds of a run when the algorithm was chosen; `None` without a deviation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_us: Option<f64>,
    /// Microseconds of a run before the trial; `None` without a deviation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now_us: Option<f64>,
    /// Time of each algorithm in the trial, the fastest first.
    pub tried: Vec<TriedAlgorithm>,
}

/// Cause of a trial of algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RechoiceCause {
    /// Runs became slower or faster.
    Deviated,
    /// An algorithm that replaced the first choice is compared with the others after some time.
    Review,
}

/// Time of an algorithm in a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriedAlgorithm {
    /// Name of the algorithm.
    pub algorithm: String,
    /// Microseconds of a run of the slowest rank.
    pub time_us: f64,
}

impl SweepRow {
    /// Returns the row with time and bandwidths for `time_ns` per run. `bus_factor` is the ratio of bus bandwidth to
    /// algorithm bandwidth; without it the row has no bandwidths.
    #[must_use]
    pub fn timed(mut self, time_ns: f64, bus_factor: Option<f64>) -> Self {
        self.time_us = time_ns / 1000.0;
        let gbps = if time_ns > 0.0 { self.size_bytes as f64 / time_ns } else { 0.0 };
        self.algorithm_gbps = bus_factor.map(|_| gbps);
        self.bus_gbps = bus_factor.map(|factor| gbps * factor);
        self
    }

    /// Returns the row with its share of the rate of a link, if there is a rate.
    #[must_use]
    pub fn compared_with(mut self, link_bits_per_s: Option<u64>) -> Self {
        const BITS_PER_GIGABYTE: f64 = 8e9;
        let share = |gbps: f64, bits_per_s: u64| gbps * BITS_PER_GIGABYTE / bits_per_s as f64;
        self.of_link = self.bus_gbps.zip(link_bits_per_s).map(|(gbps, bits_per_s)| share(gbps, bits_per_s));
        self
    }

    fn is_same(&self, other: &Self) -> bool {
        (&self.what, &self.pair, &self.algorithm, self.size_bytes, &self.element, &self.op)
            == (&other.what, &other.pair, &other.algorithm, other.size_bytes, &other.element, &other.op)
    }

    /// Merges another rank's view of the same row: the slower rank's times remain, and wrong elements add up.
    fn merge(&mut self, other: &Self) {
        let wrong = self.wrong + other.wrong;
        if other.time_us > self.time_us {
            *self = other.clone();
        }
        self.wrong = wrong;
    }
}

/// Merges the sweeps of all ranks into one, in the order in which rows first occur.
pub(crate) fn merge<'a>(ranks: impl IntoIterator<Item = &'a [SweepRow]>) -> Vec<SweepRow> {
    let mut merged: Vec<SweepRow> = Vec::new();
    for rows in ranks {
        // Ranks report the same rows in the same order, so the search begins where the last one ended.
        let mut next = 0;
        for row in rows {
            let found =
                (next..merged.len()).chain(0..next.min(merged.len())).find(|at| merged[*at].is_same(row));
            match found {
                Some(at) => {
                    merged[at].merge(row);
                    next = at + 1;
                }
                None => merged.push(row.clone()),
            }
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(size_bytes: u64, time_ns: f64, wrong: u64) -> SweepRow {
        let row = SweepRow { what: "all-reduce".into(), size_bytes, wrong, ..SweepRow::default() };
        row.timed(time_ns, Some(1.75))
    }

    #[test]
    fn the_slowest_rank_makes_the_time_and_all_ranks_make_the_errors() {
        let ranks = [vec![row(8, 100.0, 1), row(16, 50.0, 0)], vec![row(8, 70.0, 2), row(16, 80.0, 0)]];
        let merged = merge(ranks.iter().map(Vec::as_slice));
        assert_eq!(merged, [row(8, 100.0, 3), row(16, 80.0, 0)]);
    }

    #[test]
    fn a_rank_that_came_less_far_leaves_the_rows_of_the_others() {
        let ranks = [vec![row(8, 100.0, 0)], vec![row(8, 70.0, 0), row(16, 80.0, 0)]];
        assert_eq!(merge(ranks.iter().map(Vec::as_slice)).len(), 2);
    }

    #[test]
    fn bandwidths_are_in_gigabytes_per_second() {
        let row = row(1_000_000, 1_000_000.0, 0);
        assert_eq!((row.time_us, row.algorithm_gbps, row.bus_gbps), (1000.0, Some(1.0), Some(1.75)));
        assert_eq!(super::tests::row(5, 0.0, 0).algorithm_gbps, Some(0.0), "no time, no rate");
    }

    #[test]
    fn the_share_of_a_link_is_that_of_the_bus_bandwidth() {
        // 1.75 GB/s are 14 Gbit/s.
        let row = row(1_000_000, 1_000_000.0, 0);
        assert_eq!(row.clone().compared_with(Some(28_000_000_000)).of_link, Some(0.5));
        assert_eq!(row.compared_with(None).of_link, None);
        let barrier = SweepRow::default().timed(2000.0, None).compared_with(Some(1));
        assert!(serde_json::to_value(&barrier).unwrap()["of_link"].is_null());
    }

    #[test]
    fn what_moves_nothing_has_a_time_and_no_bandwidth() {
        let row = SweepRow { what: "barrier".into(), ..SweepRow::default() }.timed(2000.0, None);
        assert_eq!((row.time_us, row.algorithm_gbps, row.bus_gbps), (2.0, None, None));
        let written = serde_json::to_value(&row).unwrap();
        assert!(written["algbw_GBps"].is_null() && written["busbw_GBps"].is_null(), "{written}");
        assert_eq!(serde_json::from_value::<SweepRow>(written).unwrap(), row);
    }

    #[test]
    fn columns_have_the_names_that_people_know() {
        let written = serde_json::to_string(&row(8, 1.0, 0)).unwrap();
        for column in
            ["\"size_bytes\"", "\"type\"", "\"time_us\"", "\"algbw_GBps\"", "\"busbw_GBps\"", "\"wrong\""]
        {
            assert!(written.contains(column), "{written}");
        }
    }
}
