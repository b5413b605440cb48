//! Report for programs. `docs/cli.md` lists the stable fields.

use rackloom_calibrate::{Machine, Sense, Series};
use serde::Serialize;

use crate::measure_error::MeasureError;
use crate::row::{Row, Unit};
use crate::verdict::{self, Measured};

/// Report of a measurement.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) verdict: Overall,
    #[serde(flatten)]
    pub(crate) conditions: RunConditions,
    pub(crate) machine: MachineReport,
    pub(crate) facts: Vec<Fact>,
    pub(crate) rows: Vec<RowReport>,
    pub(crate) manifest: ManifestReport,
}

/// RunConditions of a measurement.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct RunConditions {
    /// True with `--quick`, which only tests that the command works.
    pub(crate) quick: bool,
    /// Number of alternations of each row, at most.
    pub(crate) rounds: u32,
    /// True if it was interrupted before all rows were measured.
    pub(crate) interrupted: bool,
}

/// True in a release build.
const IS_OPTIMISED: bool = !cfg!(debug_assertions);

impl RunConditions {
    /// Returns true if the figures are valid: not quick, and from a release build.
    const fn counts(self) -> bool {
        IS_OPTIMISED && !self.quick
    }

    /// Returns the reason why the figures are not valid.
    pub(crate) fn reservation(self) -> &'static str {
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
pub(crate) enum Overall {
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
pub(crate) struct MachineReport {
    pub(crate) processors: usize,
    pub(crate) model: String,
    pub(crate) kernel: String,
    pub(crate) is_guest: bool,
    /// Load average over a minute, before and after.
    pub(crate) load: [Option<f64>; 2],
}

/// Version of the code.
#[derive(Debug, Serialize)]
pub(crate) struct ManifestReport {
    pub(super) version: &'static str,
    pub(super) commit: &'static str,
    is_optimised: bool,
}

/// Figure about the machine, without a verdict.
#[derive(Debug, Serialize)]
pub(crate) struct Fact {
    pub(crate) name: &'static str,
    #[serde(flatten)]
    pub(crate) side: Side,
}

/// Takes of one figure.
#[derive(Debug, Serialize)]
pub(crate) struct Side {
    pub(crate) what: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) takes: Vec<f64>,
    /// Expected figure.
    pub(crate) expected: Option<f64>,
}

impl Side {
    pub(crate) fn new(what: &'static str, unit: Unit, series: &Series, expected: Option<f64>) -> Self {
        let (median, min, max) = (series.median(), series.min(), series.max());
        Self { what, unit: unit.name(), median, min, max, takes: series.takes().to_vec(), expected }
    }
}

/// Ratio of the own run to the raw loop.
#[derive(Debug, Serialize)]
pub(crate) struct RatioReport {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// Distance of the two processors in the takes that count.
#[derive(Debug, Serialize)]
pub(crate) struct DistanceReport {
    /// Round trips of a cache line, an entry for each take.
    pub(crate) line_ns: Vec<f64>,
    pub(crate) line_ns_median: f64,
    /// Number of alternations with another distance, or with one that changed.
    pub(crate) left_out: usize,
}

/// Report of one row.
#[derive(Debug, Serialize)]
pub(crate) struct RowReport {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) raw: Option<Side>,
    pub(crate) ours: Option<Side>,
    pub(crate) ratio: Option<RatioReport>,
    pub(crate) distance: Option<DistanceReport>,
    /// `at-least` or `at-most`: of the ratio, or of the own run if there is no raw loop.
    pub(crate) goal: &'static str,
    pub(crate) floor: f64,
    pub(crate) good: f64,
    pub(crate) verdict: &'static str,
    pub(crate) reason: Option<String>,
    #[serde(skip)]
    is_broken: bool,
    #[serde(skip)]
    is_interrupted: bool,
}

impl RowReport {
    pub(crate) fn new(row: &Row, measured: &Measured) -> Self {
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
    pub(crate) fn new(
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
