//! The result for machines; `docs/cli.md` names the fields that others may rely on.

use rackloom_calibrate::{Machine, Sense, Series};
use serde::Serialize;

use super::obstacle::Obstacle;
use super::row::{Row, Unit};
use super::verdict::{self, Measured};

/// The whole.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) verdict: Overall,
    #[serde(flatten)]
    pub(super) circumstances: Circumstances,
    pub(super) machine: MachineReport,
    pub(super) facts: Vec<Fact>,
    pub(super) rows: Vec<RowReport>,
    manifest: ManifestReport,
}

/// How it was measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Circumstances {
    /// Only the machinery was tried.
    pub(super) quick: bool,
    /// Alternations of each row, at most.
    pub(super) rounds: u32,
    /// Ended before all rows had their turn.
    pub(super) interrupted: bool,
}

/// Whether the compiler did its best.
const IS_OPTIMISED: bool = !cfg!(debug_assertions);

impl Circumstances {
    /// Whether figures taken like this say anything.
    const fn counts(self) -> bool {
        IS_OPTIMISED && !self.quick
    }

    /// Why they do not.
    pub(super) fn reservation(self) -> &'static str {
        match (self.quick, IS_OPTIMISED) {
            (true, _) => "; --quick: figures of so short takes mean nothing",
            (false, false) => "; figures of a build without optimisation mean nothing",
            (false, true) => "",
        }
    }
}

/// What the rows come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Overall {
    /// Every row that could be had was judged and reached its floor.
    Pass,
    /// A row lies below its floor, or something broke.
    Fail,
    /// None of that, but a row could not be judged for noise, none could be had, or figures taken like this say nothing.
    NoVerdict,
}

/// Whereon.
#[derive(Debug, Serialize)]
pub(super) struct MachineReport {
    pub(super) processors: usize,
    pub(super) model: String,
    pub(super) kernel: String,
    pub(super) is_guest: bool,
    /// Load over a minute, before and after.
    pub(super) load: [Option<f64>; 2],
}

/// Which code.
#[derive(Debug, Serialize)]
struct ManifestReport {
    version: &'static str,
    commit: &'static str,
    is_optimised: bool,
}

/// A figure about the machine, without a verdict.
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
    /// What one may expect.
    pub(super) expected: Option<f64>,
}

impl Side {
    pub(super) fn new(what: &'static str, unit: Unit, series: &Series, expected: Option<f64>) -> Self {
        let (median, min, max) = (series.median(), series.min(), series.max());
        Self { what, unit: unit.name(), median, min, max, takes: series.takes().to_vec(), expected }
    }
}

/// Ours over the raw loop's.
#[derive(Debug, Serialize)]
pub(super) struct RatioReport {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

/// How far apart the two processors were in the takes that count.
#[derive(Debug, Serialize)]
pub(super) struct DistanceReport {
    /// A cache line there and back, an entry for each take.
    pub(super) line_ns: Vec<f64>,
    pub(super) line_ns_median: f64,
    /// Alternations that found another distance, or saw it change.
    pub(super) left_out: usize,
}

/// One row.
#[derive(Debug, Serialize)]
pub(super) struct RowReport {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) raw: Option<Side>,
    pub(super) ours: Option<Side>,
    pub(super) ratio: Option<RatioReport>,
    pub(super) distance: Option<DistanceReport>,
    /// `at-least` or `at-most`: of the ratio, or of ours where there is no raw loop.
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
            is_interrupted: matches!(measured, Err(Obstacle::Interrupted)),
        }
    }
}

impl Report {
    pub(super) fn new(
        machine: Machine,
        load_before: Option<f64>,
        circumstances: Circumstances,
        facts: Vec<Fact>,
        rows: Vec<RowReport>,
    ) -> Self {
        let Machine { processors, model, kernel, is_guest } = machine;
        let load = [load_before, rackloom_calibrate::machine::load()];
        Self {
            verdict: overall(&rows, circumstances.counts()),
            circumstances,
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
    fn failures_go_before_doubts_and_doubts_before_a_pass() {
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
        let absent = || RowReport::new(&rows[0], &Err(Obstacle::NotHere(String::new())));
        let broken = || RowReport::new(&rows[0], &Err(Obstacle::Failed(String::new())));
        let interrupted = || RowReport::new(&rows[0], &Err(Obstacle::Interrupted));
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
