//! Experiment 28: what a reduction in a GPU's own memory adds to an all-reduce, and how much of both a computation hides.
//!
//! With one shot every rank gets all arrays and then folds them, so the time of the fold adds to that of the links. A computation beside the
//! all-reduce hides it as far as it lasts.

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Setup, Tolerance, Trial, straight};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::{all_reduce, iteration_ns};
use crate::theory::collective::Fabric;
use crate::theory::device::{compute_ns, fold_ns};
use crate::theory::wire::{SUE, serialisation_ns};
use rackloom_plan::AlgorithmKind;

const RANKS: u64 = 8;
const RATE_BITS_PER_S: f64 = 400e9;
const DELAY_NS: f64 = 1_000.0;
const MEMORY_GBITS_PER_S: u64 = 2_000;
/// Work of the computation beside an all-reduce: the fastest processor waits for its bytes, and slower ones for their operations.
const MFLOPS: u64 = 5_000;
const MOVED_BYTES: u64 = 2_000_000;
const LAUNCH_NS: u64 = 1_000;
/// Payload of a frame of a long transfer, in bytes.
const SEGMENT_BYTES: u64 = 4_096;

/// Rates of the device of every node.
#[derive(Clone, Copy)]
struct Rates {
    memory_gbits_per_s: u64,
    gflops_per_s: u64,
}

/// Time of an all-reduce with a fold in memory, alone and beside a computation.
pub(in crate::suite) static REDUCTION_TIME: Experiment = Experiment {
    number: 28,
    name: "reduction-time",
    question: "What does a reduction in a GPU's memory add to an all-reduce in one shot, and how much does a computation hide?",
    formula: "a + S/b + max(a, (N + 1) S / m); beside a computation max(that, l + max(F/c, B/m))",
    theory: "Each rank gets the arrays of all others at once and folds N arrays into one: memory at m bits per second reads N arrays of \
             S bytes and writes one. The acknowledgements of its own array arrive meanwhile. A computation of F operations and B bytes is \
             launched for l, and then bound by the processor or by the memory (roofline, Williams et al. 2009). Both run at once, so the \
             longer one is the time, and the shorter one is hidden.",
    perturbs: "rates of the memory and of the processor",
    knobs: &[
        Knob {
            name: "bytes",
            description: "bytes of the array",
            usual: &["32768", "131072", "524288"],
            reduced: &["131072"],
            kind: KnobKind::Bytes(4 << 10, 4 << 20),
        },
        Knob {
            name: "device.compute_rate",
            description: "TFLOP/s of the processor beside the all-reduce",
            usual: &["250", "500", "1000"],
            reduced: &["500"],
            kind: KnobKind::Count(1, 100_000),
        },
    ],
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
    let (seed, memory_gbits_per_s) = (setup.seed, setup.run_count(MEMORY_GBITS_PER_S));
    let memory_bits_per_s = MEMORY_GBITS_PER_S as f64 * 1e9;
    let frame_ns = serialisation_ns(SUE.wire_bytes(1, SEGMENT_BYTES), RATE_BITS_PER_S);
    let fabric = Fabric {
        alpha_ns: DELAY_NS,
        finish_ns: DELAY_NS,
        link_bytes_per_ns: SEGMENT_BYTES as f64 / frame_ns,
        ranks: RANKS as f64,
    };
    let all_reduce_ns = |bytes: f64| {
        let fold = fold_ns(RANKS as f64, bytes, memory_bits_per_s);
        fabric.mesh_one_shot_ns(bytes) - fabric.finish_ns + fold.max(fabric.finish_ns)
    };
    let mut trials = Vec::new();
    for bytes in setup.knobs.counts("bytes", setup.reduced) {
        trials.push(Trial {
            series: "memory of 2 Tbit/s".to_owned(),
            setting: format!("{bytes} B with the fold in memory"),
            is_drawn: true,
            x: bytes as f64,
            expected: all_reduce_ns(bytes as f64) / 1e3,
            tolerance: Tolerance::Relative(0.03),
            run: Box::new(move || Ok((alone_ns(seed, bytes, memory_gbits_per_s)? / 1e3).into())),
        });
    }
    for tflops_per_s in setup.knobs.counts("device.compute_rate", setup.reduced) {
        let rates = Rates { memory_gbits_per_s, gflops_per_s: setup.run_count(tflops_per_s * 1_000) };
        let compute_ns = compute_ns(
            LAUNCH_NS as f64,
            MFLOPS as f64 * 1e6,
            tflops_per_s as f64 * 1e12,
            MOVED_BYTES as f64,
            memory_bits_per_s,
        );
        for bytes in setup.knobs.counts("bytes", setup.reduced) {
            trials.push(Trial {
                series: format!("beside {} GFLOP at {tflops_per_s} TFLOP/s", MFLOPS / 1_000),
                setting: format!("{bytes} B beside a computation at {tflops_per_s} TFLOP/s"),
                is_drawn: true,
                x: bytes as f64,
                expected: compute_ns.max(all_reduce_ns(bytes as f64)) / 1e3,
                tolerance: Tolerance::Relative(0.03),
                run: Box::new(move || Ok((beside_ns(seed, bytes, rates)? / 1e3).into())),
            });
        }
    }
    Ok(trials)
}

fn rack(device: &str, job: &str) -> String {
    format!(
        "{{name: fold, shape: {{full-mesh: {{nodes: {RANKS}}}}}, defaults: {{memory: 64MiB}}, forwarding: {{mode: cut-through}}, \
         link: {{rate: 400Gbit/s, delay: {DELAY_NS}ns, headers: sue-like}}, device: {{{device}}}, job: {job}}}"
    )
}

/// Returns the time of an all-reduce and a computation that begin together.
fn beside_ns(seed: u64, bytes: u64, rates: Rates) -> Result<f64, String> {
    let Rates { memory_gbits_per_s, gflops_per_s } = rates;
    let device = format!(
        "memory_rate: {memory_gbits_per_s}Gbit/s, compute_rate: {gflops_per_s}GFLOP/s, launch_latency: {LAUNCH_NS}ns"
    );
    let last = RANKS - 1;
    let workload = format!(
        "ranks {RANKS}\ngroup 0..{last}\nrank 0..{last}\ncompute {MFLOPS}MFLOP {MOVED_BYTES}B\nall-reduce group 0 {bytes}B\n"
    );
    iteration_ns(&rack(&device, "none"), seed, &workload, AlgorithmKind::OneShot)
}

fn alone_ns(seed: u64, bytes: u64, memory_gbits_per_s: u64) -> Result<f64, String> {
    let job = format!("{{collective: {{algorithm: one-shot, bytes: {bytes}B, repetitions: 1, warm_up: 1}}}}");
    let text = rack(&format!("memory_rate: {memory_gbits_per_s}Gbit/s"), &job);
    let times = all_reduce(&text, seed, &[])?;
    times.first().map(|(_, time_ns)| *time_ns).ok_or_else(|| "the all-reduce was not measured".to_owned())
}
