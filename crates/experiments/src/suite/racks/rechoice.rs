//! Experiment 24: time of an all-reduce after the loss of links, with the algorithm of before and with the algorithm that the ranks
//! choose again.
//!
//! Two leaf switches have four nodes each and four trunks between them. Three trunks are cut after some runs. In two shots half of all
//! data crosses the remaining trunk, and in a ring one neighbour's part of each step.

use rackloom_plan::Plan;
use rackloom_protocol::Instant;
use rackloom_simulator::Action;

use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Row, Setup, Tolerance, Trial};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::{Sweep, plan, sweep};
use crate::theory::collective::Leaves;
use crate::theory::wire::{SUE, serialisation_ns};

const RANKS: u64 = 8;
const TRUNKS: usize = 4;
const RATE_BITS_PER_S: f64 = 100e9;
const DELAY_NS: f64 = 500.0;
/// Payload of a frame of a long transfer, in bytes.
const SEGMENT_BYTES: u64 = 4_096;
/// Bytes of an element of the all-reduce: `f32`, the default of the job.
const ELEMENT_BYTES: u64 = 4;
/// Most runs of a job are after the loss and after the trial, so the median is one of these.
const RUNS: u32 = 160;
/// The trunks are cut after this time and this number of runs of the ring. The trial runs before the first size have then ended.
const CUT_AFTER_NS: f64 = 6e6;
const CUT_AFTER_RUNS: f64 = 40.0;
/// The ring over two leaves has steps of two and of three links.
const TOLERANCE: Tolerance = Tolerance::Relative(0.04);
const KEPT: &str = "algorithm of before the loss";
const RECHOSEN: &str = "algorithm chosen again";

/// Times of an all-reduce after the loss of trunks.
pub(in crate::suite) static RECHOICE: Experiment = Experiment {
    number: 24,
    name: "rechoice",
    question: "How much time does an all-reduce save if it chooses its algorithm again after the loss of links? Does the choice oscillate?",
    formula: "two shots N S/2b on one trunk; ring 2(N-1)(a + S/Nb); changes of the algorithm: 1 after a loss, 0 without one",
    theory: "In each of two shots every node of a leaf sends an N-th of the array to every node of the other leaf, over one trunk. In a \
             ring one node of each leaf sends over it. b is the link's rate times the share of payload in its frames.",
    perturbs: "bytes of the array",
    knobs: &[Knob {
        name: "bytes",
        description: "bytes of the array",
        usual: &["524288", "1048576"],
        reduced: &["524288"],
        kind: KnobKind::Bytes(512 << 10, 16 << 20),
    }],
    axes: Axes {
        x: Axis { label: "size of the array (B)", is_logarithmic: true },
        y: Axis { label: "median time of an all-reduce (us)", is_logarithmic: true },
        names: None,
    },
    curve,
    answer: in_words,
    trials,
};

fn leaves() -> Leaves {
    let frame_ns = serialisation_ns(SUE.wire_bytes(1, SEGMENT_BYTES), RATE_BITS_PER_S);
    Leaves { delay_ns: DELAY_NS, link_bytes_per_ns: SEGMENT_BYTES as f64 / frame_ns, ranks: RANKS as f64 }
}

fn curve(series: &str, bytes: f64) -> Option<f64> {
    match series {
        KEPT => Some(leaves().two_shot_one_trunk_ns(bytes) / 1e3),
        RECHOSEN => Some(leaves().ring_ns(bytes) / 1e3),
        _ => None,
    }
}

/// Returns the gain for each size, as text.
fn in_words(rows: &[Row]) -> Vec<String> {
    let time = |series: &str, bytes: f64| {
        rows.iter().find(|row| row.series == series && row.x == bytes).and_then(|row| row.measured)
    };
    let gain = |row: &Row| {
        let (kept, rechosen) = (time(KEPT, row.x)?, time(RECHOSEN, row.x)?);
        Some(format!(
            "{} B: {kept:.1} us before and {rechosen:.1} us after the choice, {:.2} times as fast",
            row.x,
            kept / rechosen
        ))
    };
    rows.iter().filter(|row| row.series == KEPT).filter_map(gain).collect()
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let seed = setup.seed;
    let mut trials = Vec::new();
    for bytes in setup.knobs.counts("bytes", setup.reduced) {
        // With more bytes, the array is still one of whole elements.
        let run_bytes = setup.run_count(bytes).next_multiple_of(ELEMENT_BYTES);
        for (series, adapts) in [(KEPT, false), (RECHOSEN, true)] {
            trials.push(Trial {
                series: series.to_owned(),
                setting: format!("{bytes} B, {series}"),
                is_drawn: true,
                x: bytes as f64,
                expected: curve(series, bytes as f64).unwrap_or(f64::NAN),
                tolerance: TOLERANCE,
                run: Box::new(move || {
                    let times = job(seed, run_bytes, adapts, true)?;
                    let measured = Measured::from(times.median_ns / 1e3);
                    let of = "shortest run and 99 % of all runs, those before the loss included";
                    Ok(measured.with_spread(times.least_ns / 1e3, times.p99_ns / 1e3, of))
                }),
            });
        }
        for (is_lost, expected) in [(true, 1.0), (false, 0.0)] {
            let what = if is_lost { "after the loss" } else { "without a loss" };
            trials.push(Trial {
                series: format!("changes {what}"),
                setting: format!("{bytes} B, changes of the algorithm {what}"),
                is_drawn: false,
                x: bytes as f64,
                expected,
                tolerance: Tolerance::Exact,
                run: Box::new(move || {
                    Ok(Measured::from(job(seed, run_bytes, true, is_lost)?.changes as f64))
                }),
            });
        }
    }
    Ok(trials)
}

/// Runs the job. Three trunks are cut in the course of its runs.
fn job(seed: u64, bytes: u64, adapts: bool, is_lost: bool) -> Result<Sweep, String> {
    let nodes: Vec<_> = (0..RANKS).map(|node| format!("n{node}")).collect();
    let links = (0..RANKS).map(|node| {
        let leaf = if node < RANKS / 2 { "left" } else { "right" };
        format!("{{a: n{node}, b: {leaf}}}")
    });
    let text = format!(
        "{{name: leaves, shape: {{custom: {{nodes: [{}], switches: [left, right], \
         links: [{}, {{a: left, b: right, parallel: {TRUNKS}}}]}}}}, defaults: {{memory: 64MiB}}, \
         link: {{rate: 100Gbit/s, delay: {DELAY_NS}ns, headers: sue-like}}, \
         forwarding: {{mode: cut-through}}, timers: {{heartbeat_interval: 20us, hello_interval: 1us}}, transport: {{window_packets: 1024}}, \
         job: {{collective: {{adapt: {adapts}, bytes: {bytes}B, repetitions: {RUNS}, warm_up: 0}}}}}}",
        nodes.join(", "),
        links.collect::<Vec<_>>().join(", ")
    );
    let plan = plan(&text)?;
    let at = Instant((CUT_AFTER_NS + CUT_AFTER_RUNS * leaves().ring_ns(bytes as f64)) as u64);
    let cuts: Vec<_> = if is_lost { cuts(&plan, at) } else { Vec::new() };
    sweep(&plan, seed, &cuts)?.into_iter().next().ok_or_else(|| "the all-reduce was not measured".to_owned())
}

fn cuts(plan: &Plan, at: Instant) -> Vec<(Instant, Action)> {
    let trunks = plan.links.iter().enumerate().filter(|(_, link)| link.name.starts_with("left--right#"));
    trunks.map(|(edge, _)| (at, Action::Cut { edge: edge as u16, direction: None })).collect()
}
