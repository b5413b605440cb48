//! Experiment 16: how many loads must be open to fill a round trip.
//!
//! A node keeps as many loads open as it may; the link is fast enough that only the round trip counts.

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Setup, Tolerance, Trial, straight};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::latency::load_throughput_bytes_per_s;
use crate::traffic::{Flow, Kind};

const DELAY_NS: u64 = 600;
const LOAD_BYTES: u64 = 256;

/// Throughput of loads over how many may be open.
pub(in crate::suite) static OUTSTANDING_LOADS: Experiment = Experiment {
    number: 16,
    name: "outstanding-loads",
    question: "How fast can one GPU load from another, by how many loads it keeps open?",
    formula: "throughput = outstanding x size / RTT",
    theory: "Little's law: each load occupies one slot for a round trip. 64 x 256 B in 1.2 us are 13.7 GB/s.",
    perturbs: "delay of the link",
    knobs: &[Knob {
        name: "outstanding_loads_max",
        description: "loads open at a time",
        usual: &["1", "4", "16", "64", "256"],
        reduced: &["1", "64"],
        kind: KnobKind::Count(1, 1024),
    }],
    axes: Axes {
        x: Axis { label: "loads of 256 B open at a time", is_logarithmic: true },
        y: Axis { label: "throughput (GB/s)", is_logarithmic: true },
        names: None,
    },
    curve: straight,
    answer: answer::none,
    trials,
};

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let (seed, delay_ns) = (setup.seed, setup.run_count(DELAY_NS));
    let trial = |outstanding: u64| Trial {
        series: format!("RTT {} ns", 2 * DELAY_NS),
        setting: format!("{outstanding} loads of {LOAD_BYTES} B"),
        is_drawn: true,
        x: outstanding as f64,
        expected: load_throughput_bytes_per_s(outstanding, LOAD_BYTES, 2.0 * DELAY_NS as f64) / 1e9,
        tolerance: Tolerance::Relative(0.02),
        run: Box::new(move || measure(seed, outstanding, delay_ns)),
    };
    Ok(setup.knobs.counts("outstanding_loads_max", setup.reduced).into_iter().map(trial).collect())
}

fn measure(seed: u64, outstanding: u64, delay_ns: u64) -> Result<Measured, String> {
    let text = format!(
        "{{name: pair, shape: {{ring: {{nodes: 2}}}}, link: {{delay: {delay_ns}ns}}, \
         outstanding_loads_max: {outstanding}}}"
    );
    let loads = outstanding * 200;
    let mut stage = Stage::new(&text, seed, vec![vec![Flow::greedy(Kind::Load, 1, LOAD_BYTES, loads)]])?;
    stage.run()?;
    Ok((stage.ledger(0).operations_per_s()? * LOAD_BYTES as f64 / 1e9).into())
}
