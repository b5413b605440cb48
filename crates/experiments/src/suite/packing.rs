//! Experiment 2: what packing small operations into shared frames gains on a saturated link.
//!
//! A queue that never empties fills every frame to its limit, so the share of payload is exact where the limit is a count of
//! operations. Goodput is measured in time, by when operations end.

use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Setup, Tolerance, Trial, straight};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::wire::SUE;
use crate::traffic::{Flow, Kind};

const RATE_BITS_PER_S: f64 = 100e9;
/// Frames of one run: long enough that its beginning and end are a per mille of it.
const FRAMES: u64 = 2_000;

/// Payload efficiency and goodput over operations per frame.
pub(super) static PACKING: Experiment = Experiment {
    number: 2,
    name: "packing",
    question: "What does packing small stores into shared frames gain on a saturated link?",
    formula: "efficiency = n P / (max(64, H0 + n (c + P) + T) + 20)",
    theory: "n operations of P bytes share the headers of one frame and pay c bytes each (SUE describes such packing per \
             destination and class).",
    perturbs: "bytes of each store",
    knobs: &[
        Knob {
            name: "packing.operations_max",
            meaning: "operations of one frame",
            usual: &["1", "2", "4", "8", "15"],
            reduced: &["1", "8"],
            kind: KnobKind::Count,
        },
        Knob {
            name: "bytes",
            meaning: "bytes of one store",
            usual: &["64", "256"],
            reduced: &[],
            kind: KnobKind::Count,
        },
    ],
    axes: Axes {
        x: Axis { label: "operations per frame", is_logarithmic: true },
        y: Axis { label: "payload / link rate (%)", is_logarithmic: false },
    },
    curve: straight,
    trials,
};

/// What of a run is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Bytes,
    Time,
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let mut trials = Vec::new();
    for bytes in setup.knobs.counts("bytes", setup.reduced) {
        for operations in setup.knobs.counts("packing.operations_max", setup.reduced) {
            trials.push(trial(setup, bytes, operations, Look::Bytes));
        }
        for operations in setup.knobs.counts("packing.operations_max", setup.reduced) {
            trials.push(trial(setup, bytes, operations, Look::Time));
        }
    }
    Ok(trials)
}

fn trial(setup: &Setup, bytes: u64, operations: u64, look: Look) -> Trial {
    let (seed, sent_bytes) = (setup.seed, setup.run_count(bytes));
    let (what, tolerance) = match look {
        Look::Bytes => ("on the wire", Tolerance::Exact),
        Look::Time => ("in time", Tolerance::Relative(0.01)),
    };
    Trial {
        series: format!("{bytes} B, {what}"),
        setting: format!("{operations} x {bytes} B, {what}"),
        is_drawn: true,
        x: operations as f64,
        expected: SUE.efficiency(operations, bytes) * 100.0,
        tolerance,
        run: Box::new(move || measure(seed, sent_bytes, operations, look)),
    }
}

fn measure(seed: u64, bytes: u64, operations: u64, look: Look) -> Result<Measured, String> {
    let mode = if operations == 1 { "off" } else { "opportunistic" };
    let text = format!(
        "{{name: pair, shape: {{ring: {{nodes: 2}}}}, frame_bytes_max: 9014B, \
         packing: {{mode: {mode}, operations_max: {operations}}}, \
         link: {{rate: 100Gbit/s, delay: 500ns, headers: sue-like}}}}"
    );
    let stores = operations * FRAMES;
    let mut stage = Stage::new(&text, seed, vec![vec![Flow::greedy(Kind::Store, 1, bytes, stores)]])?;
    stage.run()?;
    let share = match look {
        Look::Bytes => (stores * bytes) as f64 / stage.forward("n0--n1")?.data_accounted_bytes as f64,
        Look::Time => stage.ledger(0).operations_per_s()? * bytes as f64 * 8.0 / RATE_BITS_PER_S,
    };
    Ok((share * 100.0).into())
}
