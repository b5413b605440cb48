//! Experiment 17: patterns of traffic, each held against its busiest port.
//!
//! For any pattern, no fabric is faster than the port with the most traffic; a fabric that shares fairly and
//! wastes nothing is as fast as that.

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Setup, Tolerance, Trial, straight};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::wire::{SUE, serialisation_ns};
use crate::traffic::Flow;
use crate::workload::Matrix;

const NODES: usize = 8;
const RATE_BITS_PER_S: f64 = 100e9;
const DELAY_NS: f64 = 500.0;
const PUT_BYTES: u64 = 4_096;
/// Of one message from each node of a ring to each other, N^2/8 pass each direction of each link: mean hops N^2/(4(N-1)), times N - 1
/// others, over two links.
const RING_HOPS_PER_LINK: u64 = (NODES * NODES) as u64 / 8;
/// Names of the patterns, in their order.
const NAMES: [&str; 5] = ["permutation", "all-to-all", "incast", "experts", "kv-cache"];

/// Time of traffic patterns on a star and a mesh.
pub(in crate::suite) static PATTERNS: Experiment = Experiment {
    number: 17,
    name: "patterns",
    question: "Is a pattern of traffic as fast as its busiest port allows?",
    formula: "time = puts at the busiest port x L/B + 2 x the delay of one put's last byte and its acknowledgement",
    theory: "A port carries one frame at a time, so the port at which most of a traffic matrix meets bounds the whole; \
             on a star that is a node's link, on a mesh the link of a pair, on a ring every link alike (mean hops N^2/(4(N-1))) \
             if both paths to the node opposite are used.",
    perturbs: "puts of each flow",
    knobs: &[
        Knob {
            name: "pattern",
            description: "who sends to whom",
            usual: &NAMES,
            reduced: &["permutation", "experts"],
            kind: KnobKind::Choice,
        },
        Knob {
            name: "shape",
            description: "topology of 8 nodes; the ring with the all-to-all only",
            usual: &["star", "full-mesh", "ring"],
            reduced: &[],
            kind: KnobKind::Choice,
        },
    ],
    axes: Axes {
        x: Axis { label: "who sends to whom", is_logarithmic: false },
        y: Axis { label: "time (us)", is_logarithmic: true },
        names: Some(&NAMES),
    },
    curve: straight,
    answer: answer::none,
    trials,
};

fn matrix(pattern: &str, puts: u64, seed: u64) -> Matrix {
    match pattern {
        "permutation" => Matrix::permutation(NODES, puts, seed),
        "all-to-all" => Matrix::all_to_all(NODES, puts),
        "incast" => Matrix::incast(NODES, puts),
        "experts" => Matrix::experts(NODES, puts),
        _ => Matrix::kv_cache(NODES, puts),
    }
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let mut trials = Vec::new();
    let puts = if setup.reduced { 200 } else { 1_000 };
    for shape in setup.knobs.values("shape", setup.reduced) {
        for pattern in setup.knobs.values("pattern", setup.reduced) {
            // On a ring only all-to-all has a closed form.
            if shape == "ring" && pattern != "all-to-all" {
                continue;
            }
            let index = NAMES.iter().position(|known| *known == pattern).unwrap_or(0);
            let stated = matrix(&pattern, puts, setup.seed);
            let (links, busiest) = match shape.as_str() {
                "star" => (2.0, stated.busiest()),
                "ring" => (NODES as f64 / 2.0, puts * RING_HOPS_PER_LINK),
                _ => (1.0, stated.busiest_pair()),
            };
            let put_ns = serialisation_ns(SUE.wire_bytes(1, PUT_BYTES), RATE_BITS_PER_S);
            let expected_ns = busiest as f64 * put_ns + 2.0 * links * DELAY_NS;
            let seed = setup.seed;
            let flows = matrix(&pattern, setup.run_count(puts), seed).flows(PUT_BYTES);
            let run_shape = shape.clone();
            trials.push(Trial {
                series: shape.clone(),
                setting: format!("{pattern} on a {shape} of {NODES}"),
                is_drawn: true,
                x: index as f64 + 1.0,
                expected: expected_ns / 1e3,
                tolerance: Tolerance::Relative(0.01),
                run: Box::new(move || measure(&run_shape, seed, &flows)),
            });
        }
    }
    Ok(trials)
}

/// Returns the time from the first put that a node could issue to the last completion.
fn measure(shape: &str, seed: u64, flows: &[Vec<Flow>]) -> Result<Measured, String> {
    // Both paths to the opposite node are used alternately: only then are all links of a ring equally busy.
    let policy = if shape == "ring" { "round-robin" } else { "flow" };
    let text = format!(
        "{{name: pattern, paths: {{policy: {policy}}}, shape: {{{shape}: {{nodes: {NODES}}}}}, forwarding: {{mode: cut-through}}, \
         link: {{rate: 100Gbit/s, delay: {DELAY_NS}ns, headers: sue-like}}}}"
    );
    let mut stage = Stage::new(&text, seed, flows.to_vec())?;
    stage.run()?;
    let ledgers: Vec<_> = (0..NODES).map(|node| stage.ledger(node)).collect();
    let began = ledgers.iter().filter_map(|ledger| ledger.began).min();
    let ended = ledgers.iter().filter_map(|ledger| ledger.ended).max();
    let (Some(began), Some(ended)) = (began, ended) else { return Err("no node sent anything".into()) };
    Ok((ended.since(began) as f64 / 1e3).into())
}
