//! Experiment 28: what a reduction in a GPU's own memory adds to an all-reduce.
//!
//! With one shot every rank gets all arrays and then folds them, so the time of the fold adds to that of the links.

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Setup, Tolerance, Trial, straight};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::all_reduce;
use crate::theory::collective::Fabric;
use crate::theory::device::fold_ns;
use crate::theory::wire::{SUE, serialisation_ns};

const RANKS: u64 = 8;
const RATE_BITS_PER_S: f64 = 400e9;
const DELAY_NS: f64 = 1_000.0;
const MEMORY_GBITS_PER_S: u64 = 2_000;
/// Payload of a frame of a long transfer, in bytes.
const SEGMENT_BYTES: u64 = 4_096;

/// Time of an all-reduce with and without the rate of memory.
pub(in crate::suite) static REDUCTION_TIME: Experiment = Experiment {
    number: 28,
    name: "reduction-time",
    question: "What does a reduction in a GPU's memory add to an all-reduce in one shot?",
    formula: "a + S/b + max(a, (N + 1) S / m)",
    theory: "Each rank gets the arrays of all others at once and folds N arrays into one: memory at m bits per second reads N arrays of \
             S bytes and writes one. The acknowledgements of its own array arrive meanwhile.",
    perturbs: "rate of the memory",
    knobs: &[Knob {
        name: "bytes",
        description: "bytes of the array",
        usual: &["32768", "131072", "524288"],
        reduced: &["131072"],
        kind: KnobKind::Bytes(4 << 10, 4 << 20),
    }],
    axes: Axes {
        x: Axis { label: "size of the array (B)", is_logarithmic: true },
        y: Axis { label: "time of an all-reduce (us)", is_logarithmic: true },
        names: None,
    },
    curve: straight,
    answer: answer::none,
    trials,
};

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let (seed, rate) = (setup.seed, setup.run_count(MEMORY_GBITS_PER_S));
    let frame_ns = serialisation_ns(SUE.wire_bytes(1, SEGMENT_BYTES), RATE_BITS_PER_S);
    let fabric = Fabric {
        alpha_ns: DELAY_NS,
        finish_ns: DELAY_NS,
        link_bytes_per_ns: SEGMENT_BYTES as f64 / frame_ns,
        ranks: RANKS as f64,
    };
    let mut trials = Vec::new();
    for bytes in setup.knobs.counts("bytes", setup.reduced) {
        let fold = fold_ns(RANKS as f64, bytes as f64, MEMORY_GBITS_PER_S as f64 * 1e9);
        trials.push(Trial {
            series: "memory of 2 Tbit/s".to_owned(),
            setting: format!("{bytes} B with the fold in memory"),
            is_drawn: true,
            x: bytes as f64,
            expected: (fabric.mesh_one_shot_ns(bytes as f64) - fabric.finish_ns + fold.max(fabric.finish_ns))
                / 1e3,
            tolerance: Tolerance::Relative(0.03),
            run: Box::new(move || Ok((time_ns(seed, bytes, rate)? / 1e3).into())),
        });
    }
    Ok(trials)
}

fn time_ns(seed: u64, bytes: u64, memory_gbits_per_s: u64) -> Result<f64, String> {
    let text = format!(
        "{{name: fold, shape: {{full-mesh: {{nodes: {RANKS}}}}}, defaults: {{memory: 64MiB}}, forwarding: {{mode: cut-through}}, \
         link: {{rate: 400Gbit/s, delay: {DELAY_NS}ns, headers: sue-like}}, device: {{memory_rate: {memory_gbits_per_s}Gbit/s}}, \
         job: {{collective: {{algorithm: one-shot, bytes: {bytes}B, repetitions: 1, warm_up: 1}}}}}}"
    );
    let times = all_reduce(&text, seed, &[])?;
    times.first().map(|(_, time_ns)| *time_ns).ok_or_else(|| "the all-reduce was not measured".to_owned())
}
