//! Experiment 25: number of stores that share a frame, over the offered load.
//!
//! Stores are issued at equal distances. While a frame is sent, the next stores wait and share the next frame. The batch therefore
//! grows with the load, between one store and `packing.operations_max`.

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Setup, Tolerance, Trial};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::wire::{SUE, serialisation_ns};
use crate::traffic::{Flow, Kind};

const RATE_BITS_PER_S: f64 = 8e9;
const STORE_BYTES: u64 = 64;
const STORES: u64 = 100_000;
/// The batch at the beginning and the last frame are not those of the steady state.
const TOLERANCE: Tolerance = Tolerance::Relative(0.02);

/// Stores per frame over the load.
pub(in crate::suite) static PACKING_LOAD: Experiment = Experiment {
    number: 25,
    name: "packing-load",
    question: "How many stores share a frame, by load?",
    formula: "n = l h / (1 - l c) at a rate of l stores per time, between 1 and packing.operations_max",
    theory: "A frame of n stores takes h + n c on the link, h for its headers and gap and c for each store with its header. In that \
             time l (h + n c) stores arrive and share the next frame.",
    perturbs: "bytes of each store",
    knobs: &[
        Knob {
            name: "load",
            description: "offered load, in hundredths of the stores that the link can send one per frame",
            usual: &["50", "90", "120", "140", "150", "160", "200"],
            reduced: &["50", "150", "200"],
            kind: KnobKind::Count(1, 1_000),
        },
        Knob {
            name: "packing.operations_max",
            description: "largest number of operations of one frame",
            usual: &["4", "64"],
            reduced: &["64"],
            kind: KnobKind::Count(1, 100),
        },
    ],
    axes: Axes {
        x: Axis { label: "offered load (% of stores that are alone in their frames)", is_logarithmic: false },
        y: Axis { label: "stores per frame", is_logarithmic: true },
        names: None,
    },
    curve,
    answer: answer::none,
    trials,
};

/// Returns the time between two stores, in nanoseconds.
fn gap_ns(load: f64) -> f64 {
    serialisation_ns(SUE.wire_bytes(1, STORE_BYTES), RATE_BITS_PER_S) * 100.0 / load
}

fn stores_per_frame(load: f64, operations_max: f64) -> f64 {
    let store_ns = serialisation_ns(SUE.per_operation + STORE_BYTES, RATE_BITS_PER_S);
    let header_ns = serialisation_ns(SUE.wire_bytes(1, STORE_BYTES), RATE_BITS_PER_S) - store_ns;
    let gap_ns = gap_ns(load);
    if store_ns >= gap_ns {
        return operations_max;
    }
    (header_ns / (gap_ns - store_ns)).clamp(1.0, operations_max)
}

fn series(operations_max: u64) -> String {
    format!("at most {operations_max}")
}

fn curve(series: &str, load: f64) -> Option<f64> {
    let operations_max: f64 = series.strip_prefix("at most ")?.parse().ok()?;
    Some(stores_per_frame(load, operations_max))
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let (seed, bytes) = (setup.seed, setup.run_count(STORE_BYTES));
    let mut trials = Vec::new();
    for operations_max in setup.knobs.counts("packing.operations_max", setup.reduced) {
        for load in setup.knobs.counts("load", setup.reduced) {
            trials.push(Trial {
                series: series(operations_max),
                setting: format!("{load} % load, at most {operations_max} per frame"),
                is_drawn: true,
                x: load as f64,
                expected: stores_per_frame(load as f64, operations_max as f64),
                tolerance: TOLERANCE,
                run: Box::new(move || measure(seed, bytes, load as f64, operations_max)),
            });
        }
    }
    Ok(trials)
}

fn measure(seed: u64, bytes: u64, load: f64, operations_max: u64) -> Result<Measured, String> {
    let text = format!(
        "{{name: pair, shape: {{ring: {{nodes: 2}}}}, frame_bytes_max: 9014B, packing: {{operations_max: {operations_max}}}, \
         link: {{rate: 8Gbit/s, delay: 500ns, headers: sue-like}}}}"
    );
    let times_ns = (0..STORES).map(|store| (store as f64 * gap_ns(load)) as u64).collect();
    let flow = Flow { times_ns, ..Flow::greedy(Kind::Store, 1, bytes, STORES) };
    let mut stage = Stage::new(&text, seed, vec![vec![flow]])?;
    stage.run()?;
    Ok((STORES as f64 / stage.forward("n0--n1")?.data_frames_sent as f64).into())
}
