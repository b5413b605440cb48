//! Experiment 2: what packing small operations into shared frames gains on a saturated link.
//!
//! A queue that never empties fills every frame to its limit, so the share of payload is exact where the limit is a count of
//! operations. Goodput is measured in time, by when operations end.

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Setup, Tolerance, Trial, straight};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::wire::SUE;
use crate::traffic::{Flow, Kind};

const RATE_BITS_PER_S: f64 = 100e9;
/// Frames of one run: long enough that its beginning and end are a per mille of it.
const FRAMES: u64 = 2_000;
const FRAME_BYTES_MAX: u64 = 9_014;
/// Our own headers, of a frame and of each store in it.
const FRAME_HEADER_BYTES: u64 = 14 + 32 + 40;
const STORE_HEADER_BYTES_MAX: u64 = 48;

/// Payload efficiency and goodput over operations per frame.
pub(in crate::suite) static PACKING: Experiment = Experiment {
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
            description: "operations of one frame",
            usual: &["1", "2", "4", "8", "15"],
            reduced: &["1", "8"],
            kind: KnobKind::Count(1, 250),
        },
        Knob {
            name: "bytes",
            description: "bytes of one store",
            usual: &["64", "256"],
            reduced: &[],
            kind: KnobKind::Bytes(1, 4096),
        },
    ],
    axes: Axes {
        x: Axis { label: "operations per frame", is_logarithmic: true },
        y: Axis { label: "payload / link rate (%)", is_logarithmic: false },
        names: None,
    },
    curve: straight,
    answer: answer::none,
    trials,
};

/// Measured quantity of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Bytes,
    Time,
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let mut trials = Vec::new();
    let most = |name: &str| setup.knobs.counts(name, setup.reduced).into_iter().max().unwrap_or(0);
    let (operations, bytes) = (most("packing.operations_max"), most("bytes"));
    if FRAME_HEADER_BYTES + operations * (bytes + STORE_HEADER_BYTES_MAX) > FRAME_BYTES_MAX {
        let what =
            format!("{operations} stores of {bytes} bytes do not fit into a frame of {FRAME_BYTES_MAX}");
        return Err(Refused { what, hint: "lower `packing.operations_max` or `bytes`".to_owned() });
    }
    for bytes in setup.knobs.counts("bytes", setup.reduced) {
        for operations in setup.knobs.counts("packing.operations_max", setup.reduced) {
            trials.push(trial(setup, bytes, operations, Quantity::Bytes));
        }
        for operations in setup.knobs.counts("packing.operations_max", setup.reduced) {
            trials.push(trial(setup, bytes, operations, Quantity::Time));
        }
    }
    Ok(trials)
}

fn trial(setup: &Setup, bytes: u64, operations: u64, look: Quantity) -> Trial {
    let (seed, sent_bytes) = (setup.seed, setup.run_count(bytes));
    let (what, tolerance) = match look {
        Quantity::Bytes => ("on the wire", Tolerance::Exact),
        Quantity::Time => ("in time", Tolerance::Relative(0.01)),
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

fn measure(seed: u64, bytes: u64, operations: u64, look: Quantity) -> Result<Measured, String> {
    let mode = if operations == 1 { "off" } else { "opportunistic" };
    let text = format!(
        "{{name: pair, shape: {{ring: {{nodes: 2}}}}, frame_bytes_max: {FRAME_BYTES_MAX}B, \
         packing: {{mode: {mode}, operations_max: {operations}}}, \
         link: {{rate: 100Gbit/s, delay: 500ns, headers: sue-like}}}}"
    );
    let stores = operations * FRAMES;
    let mut stage = Stage::new(&text, seed, vec![vec![Flow::greedy(Kind::Store, 1, bytes, stores)]])?;
    stage.run()?;
    let share = match look {
        Quantity::Bytes => (stores * bytes) as f64 / stage.forward("n0--n1")?.data_accounted_bytes as f64,
        Quantity::Time => stage.ledger(0).operations_per_s()? * bytes as f64 * 8.0 / RATE_BITS_PER_S,
    };
    Ok((share * 100.0).into())
}
