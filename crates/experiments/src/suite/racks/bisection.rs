//! Experiment 26: uniform traffic on named shapes, each held against its narrowest cut.
//!
//! All nodes put to all others at once. The run counts the time, and the frames on the busiest link.

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Setup, Tolerance, Trial, straight};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::{LinkDirection, Stage};
use crate::theory::bisection::{hypercube_load, leaf_spine_load, torus_load};
use crate::theory::wire::{SUE, serialisation_ns};
use crate::workload::Matrix;

const RATE_BITS_PER_S: f64 = 100e9;
const PUT_BYTES: u64 = 4_096;
/// Start and end of the traffic, in which links have pauses, count.
const TOLERANCE: Tolerance = Tolerance::Relative(0.05);
/// Names of the shapes, in their order.
const NAMES: [&str; 6] =
    ["leaf-spine-4x4", "leaf-spine-2x8", "torus-4x4", "torus-5x5", "torus-3x3x3", "hypercube-16"];

/// Throughput of uniform traffic by shape.
pub(in crate::suite) static BISECTION: Experiment = Experiment {
    number: 26,
    name: "bisection",
    question: "Does uniform traffic get the bisection of each shape?",
    formula: "throughput of a node = (N-1)/c b; messages c on the busiest link: torus N k/8 (k even) or N (k^2-1)/8k (k odd), \
              hypercube N/2, leaf of m nodes with u links up m (N-m)/u",
    theory: "N^2/4 messages cross the middle in each direction, over 2N/k links of a torus, or N/2 of a hypercube; a leaf sends m (N-m) \
             messages to others. No node is faster than the cut, and a shape that uses all its links equally is as fast as that (Dally \
             and Towles, Principles and practices of interconnection networks, 2004). b is the link's rate times the share of payload in \
             its frames.",
    perturbs: "rate of the links",
    knobs: &[Knob {
        name: "shape",
        description: "shape of the rack",
        usual: &NAMES,
        reduced: &["leaf-spine-4x4", "torus-4x4", "torus-3x3x3", "hypercube-16"],
        kind: KnobKind::Choice,
    }],
    axes: Axes {
        x: Axis { label: "shape of the rack", is_logarithmic: false },
        y: Axis { label: "payload of each node (Gbit/s)", is_logarithmic: false },
        names: Some(&NAMES),
    },
    curve: straight,
    answer: answer::none,
    trials,
};

/// A shape, with the keys of its rack and the messages on its busiest link.
#[derive(Clone, Copy, Debug)]
struct Variant {
    keys: &'static str,
    nodes: usize,
    load: f64,
    /// Beginning of the names of the links among which the busiest one is.
    busiest_among: &'static str,
}

fn variant(name: &str) -> Variant {
    let torus = |keys, sizes: &[u64]| Variant {
        keys,
        nodes: sizes.iter().product::<u64>() as usize,
        load: torus_load(sizes),
        busiest_among: "n",
    };
    let leaves = |keys, leaves: u64, nodes_per_leaf: u64, links_up: u64| Variant {
        keys,
        nodes: (leaves * nodes_per_leaf) as usize,
        load: leaf_spine_load(leaves, nodes_per_leaf, links_up),
        busiest_among: "leaf",
    };
    match name {
        "leaf-spine-4x4" => leaves(
            "shape: {leaf-spine: {leaves: 4, nodes_per_leaf: 4, spines: 2}}, paths: {policy: destination}",
            4,
            4,
            2,
        ),
        "leaf-spine-2x8" => leaves(
            "shape: {leaf-spine: {leaves: 2, nodes_per_leaf: 8, spines: 2, parallel: 2}}, paths: {policy: destination}",
            2,
            8,
            4,
        ),
        // Frames to the node opposite in a ring alternate between both directions.
        "torus-4x4" => torus(
            "shape: {torus: {x: 4, y: 4}}, channels: {rise: dateline, arbiter: round-robin}, \
             paths: {policy: round-robin, relays: policy}",
            &[4, 4],
        ),
        // Levels by hop here, and by dateline above.
        "torus-5x5" => {
            torus("shape: {torus: {x: 5, y: 5}}, channels: {rise: hop, arbiter: round-robin}", &[5, 5])
        }
        "torus-3x3x3" => torus("shape: {torus: {x: 3, y: 3, z: 3}}", &[3, 3, 3]),
        _ => Variant {
            keys: "shape: {hypercube: {dimensions: 4}}",
            nodes: 16,
            load: hypercube_load(4),
            busiest_among: "n",
        },
    }
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let (seed, puts) = (setup.seed, if setup.reduced { 100 } else { 400 });
    let put_ns = serialisation_ns(SUE.wire_bytes(1, PUT_BYTES), RATE_BITS_PER_S);
    let rate = setup.run_count(RATE_BITS_PER_S as u64);
    let mut trials = Vec::new();
    for name in setup.knobs.values("shape", setup.reduced) {
        let shape = variant(&name);
        let x = NAMES.iter().position(|known| *known == name).unwrap_or(0) as f64 + 1.0;
        let others = (shape.nodes - 1) as f64;
        trials.push(Trial {
            series: "payload of each node".to_owned(),
            setting: format!("all to all on {name}"),
            is_drawn: true,
            x,
            expected: others / shape.load * 8.0 * PUT_BYTES as f64 / put_ns,
            tolerance: TOLERANCE,
            run: Box::new(move || Ok(uniform(seed, shape, puts, rate)?.node_gbit_per_s.into())),
        });
        trials.push(Trial {
            series: "busiest link".to_owned(),
            setting: format!("frames on the busiest link of {name}, per put of each pair"),
            is_drawn: false,
            x,
            expected: shape.load,
            tolerance: TOLERANCE,
            run: Box::new(move || Ok(uniform(seed, shape, puts, rate)?.busiest_link_frames.into())),
        });
    }
    Ok(trials)
}

/// Result of a run of uniform traffic.
struct Uniform {
    /// Payload that each node has sent, in Gbit/s.
    node_gbit_per_s: f64,
    /// Frames on the busiest link direction, per put of each pair.
    busiest_link_frames: f64,
}

/// Runs `puts` puts from each node to each other.
fn uniform(seed: u64, shape: Variant, puts: u64, rate: u64) -> Result<Uniform, String> {
    let Variant { keys, nodes, busiest_among, .. } = shape;
    let text = format!(
        "{{name: uniform, {keys}, forwarding: {{mode: cut-through}}, ring_bytes: 64MiB, transport: {{window_packets: 1024}}, \
         link: {{rate: {rate}bit/s, delay: 500ns, headers: sue-like}}, job: none, payload: elided}}"
    );
    let mut stage = Stage::new(&text, seed, Matrix::all_to_all(nodes, puts).flows(PUT_BYTES))?;
    stage.run()?;
    let ledgers: Vec<_> = (0..nodes).map(|node| stage.ledger(node)).collect();
    let began = ledgers.iter().filter_map(|ledger| ledger.began).min();
    let ended = ledgers.iter().filter_map(|ledger| ledger.ended).max();
    let (Some(began), Some(ended)) = (began, ended) else { return Err("no node sent anything".into()) };
    let sent_bits = (puts * (nodes as u64 - 1) * PUT_BYTES * 8) as f64;
    let frames = |one: LinkDirection<'_>| one.statistics.data_frames_sent;
    let busiest = stage.directions().filter(|one| one.link.starts_with(busiest_among)).map(frames).max();
    Ok(Uniform {
        node_gbit_per_s: sent_bits / ended.since(began) as f64,
        busiest_link_frames: busiest.unwrap_or(0) as f64 / puts as f64,
    })
}
