//! Rows of the results: one per run, and one per size and pair of a run that measures several.
//!
//! Every value follows from the manifest and the reports, so a sweep that was interrupted has the rows of one that was not. Times are
//! nanoseconds of virtual time.

use std::collections::BTreeMap;

use rackloom_control::report::faults::CLEAN_ERROR;
use rackloom_control::report::{Report, SweepRow};

use super::folder::PointResult;
use super::grid::{Coordinate, Point};
use super::workers::Died;

/// Verdict of a point without a result that was started.
pub(super) const DIED: &str = "died";
/// Verdict of a point without a result that was not started, or whose end is not known.
pub(super) const MISSING: &str = "missing";
/// Verdict of a run that was refused.
pub(super) const REFUSED: &str = "refused";

/// One row of the results.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    /// Number of the point.
    pub(super) index: u64,
    /// Value of each axis.
    pub(super) coordinates: Vec<Coordinate>,
    /// `pass`, `fail`, `could-not-tell`, `starved`, [`REFUSED`], [`DIED`] or [`MISSING`].
    pub(super) verdict: String,
    /// Exit code of the run.
    pub(super) exit: Option<u8>,
    /// Seed of the run.
    pub(super) seed: Option<u64>,
    /// Name of the collective or operation, or of the job.
    pub(super) what: String,
    /// Pair of ranks of an operation.
    pub(super) pair: String,
    /// Algorithm that ran.
    pub(super) algorithm: String,
    /// Size of the array or message, in bytes.
    pub(super) size_bytes: Option<u64>,
    /// Mean time of a run of the collective, the completion time of traffic, or the time of an iteration of a workload.
    pub(super) time_ns: Option<f64>,
    pub(super) time_min_ns: Option<f64>,
    pub(super) time_p50_ns: Option<f64>,
    pub(super) time_p99_ns: Option<f64>,
    /// Algorithm bandwidth, in 10^9 bytes per second; goodput, of traffic.
    pub(super) algorithm_gbps: Option<f64>,
    /// Bus bandwidth, in 10^9 bytes per second.
    pub(super) bus_gbps: Option<f64>,
    /// Bus bandwidth over the rate of a link.
    pub(super) of_link: Option<f64>,
    /// Wrong elements.
    pub(super) wrong: Option<u64>,
    /// Duration of the whole simulated run.
    pub(super) elapsed_ns: Option<u64>,
    /// Packets that were sent again.
    pub(super) retransmitted: Option<u64>,
    /// Frames that were lost or dropped.
    pub(super) dropped: Option<u64>,
    /// Bytes on all links.
    pub(super) bytes_on_wire: Option<u64>,
    /// True if the run passed with an error that its fault script permits. What it has not measured has no time.
    pub(super) has_clean_error: bool,
    /// First reason of a verdict other than `pass`, or of an error that the fault script permits.
    pub(super) reason: String,
}

impl Row {
    /// Returns true if the run passed.
    pub(super) fn is_pass(&self) -> bool {
        self.verdict == "pass"
    }

    /// Returns the time of what the run measured, or else of the whole run; `None` if it broke off before.
    pub(super) fn time_or_elapsed_ns(&self) -> Option<f64> {
        let elapsed_ns = self.elapsed_ns.filter(|_| !self.has_clean_error);
        self.time_ns.or(elapsed_ns.map(|ns| ns as f64))
    }
}

/// Returns the rows of a point.
pub(super) fn of_point(point: &Point, result: Option<&PointResult>, died: &Died) -> Vec<Row> {
    let base = Row { index: point.index, coordinates: point.coordinates.clone(), ..Row::default() };
    let Some(result) = result else {
        let reason = died.get(&point.index).cloned();
        let verdict = if reason.is_some() { DIED } else { MISSING };
        return vec![Row { verdict: verdict.to_owned(), reason: reason.unwrap_or_default(), ..base }];
    };
    let base = Row { exit: Some(result.exit), ..base };
    match &result.report {
        Some(report) => of_report(&base, report),
        None => {
            let reason = first_line(result.refused.as_deref().unwrap_or_default());
            vec![Row { verdict: REFUSED.to_owned(), reason, ..base }]
        }
    }
}

fn of_report(base: &Row, report: &Report) -> Vec<Row> {
    let links = || report.links.iter();
    let clean_error = report.notes.iter().find(|note| note.starts_with(CLEAN_ERROR));
    let base = Row {
        verdict: report.verdict.name().to_owned(),
        seed: Some(report.seed),
        what: report.job.clone(),
        elapsed_ns: Some(report.elapsed_ns),
        retransmitted: Some(links().map(|link| link.retransmitted).sum()),
        dropped: Some(links().map(|link| total(&link.dropped)).sum()),
        bytes_on_wire: report.wire_bytes.map(|bytes| bytes.sent),
        has_clean_error: clean_error.is_some(),
        reason: report.failures.first().or(clean_error).map(|reason| first_line(reason)).unwrap_or_default(),
        ..base.clone()
    };
    if !report.sweep.is_empty() {
        return report.sweep.iter().map(|row| of_sweep_row(&base, row)).collect();
    }
    if let Some(traffic) = &report.traffic {
        return vec![Row {
            what: traffic.pattern.clone(),
            time_ns: Some(traffic.completion_ns as f64),
            algorithm_gbps: Some(traffic.goodput_gbps),
            ..base
        }];
    }
    let time_ns = report.workload.as_ref().map(|workload| workload.iteration_ns as f64);
    vec![Row { time_ns, ..base }]
}

fn of_sweep_row(base: &Row, row: &SweepRow) -> Row {
    let ns = |us: f64| us * 1000.0;
    Row {
        what: row.what.clone(),
        pair: row.pair.clone(),
        algorithm: row.algorithm.clone(),
        size_bytes: Some(row.size_bytes),
        time_ns: Some(ns(row.time_us)),
        time_min_ns: row.time_min_us.map(ns),
        time_p50_ns: row.time_p50_us.map(ns),
        time_p99_ns: row.time_p99_us.map(ns),
        algorithm_gbps: row.algorithm_gbps,
        bus_gbps: row.bus_gbps,
        of_link: row.of_link,
        wrong: Some(row.wrong),
        ..base.clone()
    }
}

fn total(by_name: &BTreeMap<String, u64>) -> u64 {
    by_name.values().sum()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_without_a_result_died_or_is_missing() {
        let point = Point { index: 4, coordinates: Vec::new(), arguments: Vec::new() };
        let died = Died::from([(4, "signal 9".to_owned())]);
        let rows = of_point(&point, None, &died);
        assert_eq!((rows[0].verdict.as_str(), rows[0].reason.as_str()), (DIED, "signal 9"));
        assert_eq!(of_point(&point, None, &Died::new())[0].verdict, MISSING);
    }
}
