//! Report for programs. `docs/cli.md` lists the stable fields.

use rackloom_calibrate::{Machine, Sense, Series};
use serde::Serialize;

use super::measure_error::MeasureError;
use super::row::{Row, Unit};
use super::verdict::{self, Measured};

/// Report of a measurement.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) verdict: Overall,
    #[serde(flatten)]
    pub(super) conditions: RunConditions,
    pub(super) machine: MachineReport,
    pub(super) facts: Vec<Fact>,
    pub(super) rows: Vec<RowReport>,
    manifest: ManifestReport,
}

/// RunConditions of a measurement.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct RunConditions {
    /// True with `--quick`, which only tests that the command works.
    pub(super) quick: bool,
    /// Number of alternations of each row, at most.
    pub(super) rounds: u32,
    /// True if it was interrupted before all rows were measured.
    pub(super) interrupted: bool,
}

/// True in a release build.
const IS_OPTIMISED: bool = !cfg!(debug_assertions);

impl RunConditions {
    /// Returns true if the figures are valid: not quick, and from a release build.
    const fn counts(self) -> bool {
        IS_OPTIMISED && !self.quick
    }

    /// Returns the reason why the figures are not valid.
    pub(super) fn reservation(self) -> &'static str {
        match (self.quick, IS_OPTIMISED) {
            (true, _) => "; --quick: figures of so short takes mean nothing",
            (false, false) => "; figures of a build without optimisation mean nothing",
            (false, true) => "",
        }
    }
}

/// Verdict of all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Overall {
    /// Every row that could be measured was judged and reached its floor.
    Pass,
    /// A row is below its floor, or a part failed.
    Fail,
    /// No row is below its floor, but a row could not be judged because of noise, no row could be measured,
    /// or the figures are not valid.
    NoVerdict,
}

/// Machine of the measurement.
#[derive(Debug, Serialize)]
pub(super) struct MachineReport {
    pub(super) processors: usize,
    pub(super) model: String,
    pub(super) kernel: String,
    pub(super) is_guest: bool,
    /// Load average over a minute, before and after.
    pub(super) load: [Option<f64>; 2],
}

/// Version of the code.
#[derive(Debug, Serialize)]
struct ManifestReport {
    version: &'static str,
    commit: &'static str,
    is_optimised: bool,
}

/// Figure about the machine, without a verdict.
#[derive(Debug, Serialize)]
pub(super) struct Fact {
    pub(super) name: &'static str,
    #[serde(flatten)]
    pub(super) side: Side,
}

/// Takes of one figure.
#[derive(Debug, Serialize)]
pub(super) struct Side {
    pub(super) what: &'static str,
    pub(super) unit: &'static str,
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) takes: Vec<f64>,
    /// Expected figure.
    pub(super) expected: Option<f64>,
}

impl Side {
    pub(super) fn new(what: &'static str, unit: Unit, series: &Series, expected: Option<f64>) -> Self {
        let (median, min, max) = (series.median(), series.min(), series.max());
        Self { what, unit: unit.name(), median, min, max, takes: series.takes().to_vec(), expected }
    }
}

/// Ratio of the own run to the raw loop.
#[derive(Debug, Serialize)]
pub(super) struct RatioReport {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

/// Distance of the two processors in the takes that count.
#[derive(Debug, Serialize)]
pub(super) struct DistanceReport {
    /// Round trips of a cache line, an entry for each take.
    pub(super) line_ns: Vec<f64>,
    pub(super) line_ns_median: f64,
    /// Number of alternations with another distance, or with one that changed.
    pub(super) left_out: usize,
}

/// Report of one row.
#[derive(Debug, Serialize)]
pub(super) struct RowReport {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) raw: Option<Side>,
    pub(super) ours: Option<Side>,
    pub(super) ratio: Option<RatioReport>,
    pub(super) distance: Option<DistanceReport>,
    /// `at-least` or `at-most`: of the ratio, or of the own run if there is no raw loop.
    pub(super) goal: &'static str,
    pub(super) floor: f64,
    pub(super) good: f64,
    pub(super) verdict: &'static str,
    pub(super) reason: Option<String>,
    #[serde(skip)]
    is_broken: bool,
    #[serde(skip)]
    is_interrupted: bool,
}

impl RowReport {
    pub(super) fn new(row: &Row, measured: &Measured) -> Self {
        let (verdict, reason) = verdict::verdict(measured);
        let comparison = measured.as_ref().ok();
        let raw = comparison.and_then(|comparison| comparison.raw.as_ref());
        let distance = comparison.and_then(|comparison| comparison.distance.as_ref());
        let ratio = comparison.and_then(rackloom_calibrate::Comparison::ratio);
        Self {
            name: row.name,
            what: row.ours,
            raw: raw.map(|raw| {
                Side::new(
                    row.raw,
                    row.unit,
                    &raw.series,
                    raw.expected.map(rackloom_calibrate::Expected::value),
                )
            }),
            ours: comparison.map(|comparison| Side::new(row.ours, row.unit, &comparison.ours, None)),
            ratio: ratio.map(|ratio| RatioReport { median: ratio.median, min: ratio.min, max: ratio.max }),
            distance: distance.map(|distance| DistanceReport {
                line_ns: distance.line_ns.takes().to_vec(),
                line_ns_median: distance.line_ns.median(),
                left_out: distance.left_out,
            }),
            goal: match row.goal.sense {
                Sense::HigherIsBetter => "at-least",
                Sense::LowerIsBetter => "at-most",
            },
            floor: row.goal.floor,
            good: row.goal.good,
            verdict,
            reason,
            is_broken: verdict::is_broken(measured),
            is_interrupted: matches!(measured, Err(MeasureError::Interrupted)),
        }
    }
}

impl Report {
    pub(super) fn new(
        machine: Machine,
        load_before: Option<f64>,
        conditions: RunConditions,
        facts: Vec<Fact>,
        rows: Vec<RowReport>,
    ) -> Self {
        let Machine { processors, model, kernel, is_guest } = machine;
        let load = [load_before, rackloom_calibrate::machine::load()];
        Self {
            verdict: overall(&rows, conditions.counts()),
            conditions,
            machine: MachineReport { processors, model, kernel, is_guest, load },
            facts,
            rows,
            manifest: ManifestReport {
                version: env!("CARGO_PKG_VERSION"),
                commit: rackloom_runtime::outcome::meta::COMMIT,
                is_optimised: IS_OPTIMISED,
            },
        }
    }
}

fn overall(rows: &[RowReport], counts: bool) -> Overall {
    let is_judged = |row: &RowReport| ["good", "floor", "below"].contains(&row.verdict);
    if rows.iter().any(|row| row.is_broken || (counts && row.verdict == "below")) {
        Overall::Fail
    } else if !counts
        || rows.iter().any(|row| row.verdict == "noisy" || row.is_interrupted)
        || !rows.iter().any(is_judged)
    {
        Overall::NoVerdict
    } else {
        Overall::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows;

    #[test]
    fn a_failure_outweighs_noise_and_noise_outweighs_a_pass() {
        use rackloom_calibrate::{Comparison, Goal};
        let rows = rows::all();
        let alone = |takes: &[f64]| Comparison {
            raw: None,
            ours: Series::new(takes.to_vec()),
            goal: Goal::at_least(10.0, 20.0),
            distance: None,
        };
        let good = || RowReport::new(&rows[0], &Ok(alone(&[30.0; 3])));
        let noisy = || RowReport::new(&rows[0], &Ok(alone(&[10.0, 30.0, 5.0])));
        let below = || RowReport::new(&rows[0], &Ok(alone(&[5.0; 3])));
        let absent = || RowReport::new(&rows[0], &Err(MeasureError::NotHere(String::new())));
        let broken = || RowReport::new(&rows[0], &Err(MeasureError::Failed(String::new())));
        let interrupted = || RowReport::new(&rows[0], &Err(MeasureError::Interrupted));
        let overall = |rows: &[RowReport]| super::overall(rows, true);
        assert_eq!(overall(&[good(), absent()]), Overall::Pass);
        assert_eq!(overall(&[good(), interrupted()]), Overall::NoVerdict);
        assert_eq!(overall(&[absent()]), Overall::NoVerdict);
        assert_eq!(overall(&[good(), noisy()]), Overall::NoVerdict);
        assert_eq!(overall(&[noisy(), below()]), Overall::Fail);
        assert_eq!(overall(&[good(), broken()]), Overall::Fail);
        assert_eq!(super::overall(&[good(), below()], false), Overall::NoVerdict);
        assert_eq!(super::overall(&[good(), broken()], false), Overall::Fail);
    }
}
