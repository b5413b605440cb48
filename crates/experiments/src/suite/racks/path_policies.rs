//! Experiment 18: effect of path selection per flow or per packet over several planes.
//!
//! One stream shows how many planes a policy can use at a time; many flows show how unevenly a hash deals them out. Both
//! from the wires of a star: the nodes' ledgers, and the frames of each plane.

use std::collections::BTreeMap;

use rackloom_plan::impair::Direction;

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Row, Setup, Tolerance, Trial, straight};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::{LinkDirection, Stage};
use crate::theory::balance::{fullest_over_mean, paths_in_use, random_paths_in_use_min};
use crate::theory::wire::{SUE, serialisation_ns};
use crate::traffic::{Flow, Kind};

const RATE_BITS_PER_S: f64 = 100e9;
const PUT_BYTES: u64 = 4_096;
/// Nodes of the star with many flows: each sends to all others.
const NODES: u64 = 33;
const PUTS_PER_FLOW: u64 = 8;
const MANY: &str = ", many flows";
/// Packets of one sprayed stream that may wait for their planes, by plane.
const SPRAYED_PER_PLANE: u64 = 8;

/// Planes in use, and how evenly.
pub(in crate::suite) static PATH_POLICIES: Experiment = Experiment {
    number: 18,
    name: "path-policies",
    question: "How many planes does a stream use, and how evenly do many flows?",
    formula: "one stream: P planes per packet, 1 per flow; busiest plane / mean: 1 in turn and by queue, E[max] P/n of n balls in P bins by hash and at random",
    theory: "A hash deals flows out as balls fall into bins, and a spray does so with packets, of which there are more. Where \
             every packet takes the next path or the emptiest, no plane waits for another.",
    perturbs: "planes of the star",
    knobs: &[
        Knob {
            name: "paths.policy",
            description: "which path a packet takes",
            usual: &["address", "flow", "round-robin", "spray", "least-queue"],
            reduced: &["flow", "spray", "least-queue"],
            kind: KnobKind::Choice,
        },
        Knob {
            name: "shape.star.planes",
            description: "planes",
            usual: &["2", "4", "8"],
            reduced: &["4"],
            kind: KnobKind::Count(2, 8),
        },
    ],
    axes: Axes {
        x: Axis { label: "planes of the star", is_logarithmic: false },
        y: Axis { label: "throughput of one stream / of one plane", is_logarithmic: false },
        names: None,
    },
    curve: straight,
    answer: in_words,
    trials,
};

/// Returns the use of the most planes by each policy, as text.
fn in_words(rows: &[Row]) -> Vec<String> {
    let line = |(policy, points): (&str, Vec<(f64, f64)>)| {
        let (planes, value) = *points.last()?;
        Some(match policy.strip_suffix(MANY) {
            None => format!("{policy}: one stream is as fast as {value:.2} of {planes} planes"),
            Some(policy) => {
                format!("{policy}: the busiest of {planes} planes carries {value:.2} times the mean")
            }
        })
    };
    answer::by_series(rows).into_iter().filter_map(line).collect()
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let mut trials = Vec::new();
    let (seed, puts) = (setup.seed, if setup.reduced { 2_000 } else { 6_000 });
    for policy in setup.knobs.values("paths.policy", setup.reduced) {
        for planes in setup.knobs.counts("shape.star.planes", setup.reduced) {
            let run_planes = setup.run_count(planes);
            let is_per_packet = !matches!(policy.as_str(), "address" | "flow");
            let expected = paths_in_use(is_per_packet, planes) as f64;
            let tolerance = if policy == "spray" {
                Tolerance::Between(random_paths_in_use_min(planes, planes * SPRAYED_PER_PLANE), expected)
            } else {
                Tolerance::Relative(0.03)
            };
            let run_policy = policy.clone();
            trials.push(Trial {
                series: policy.clone(),
                setting: format!("{policy}: one stream over {planes} planes"),
                is_drawn: true,
                x: planes as f64,
                expected,
                tolerance,
                run: Box::new(move || one_stream(seed, &run_policy, run_planes, puts)),
            });
            let (balls, tolerance) = match policy.as_str() {
                "address" | "flow" => (Some(NODES - 1), 0.1),
                "spray" => (Some((NODES - 1) * PUTS_PER_FLOW), 0.05),
                _ => (None, 0.02),
            };
            let run_policy = policy.clone();
            trials.push(Trial {
                series: format!("{policy}{MANY}"),
                setting: format!("{policy}: busiest of {planes} planes / mean, {} flows", NODES - 1),
                is_drawn: false,
                x: planes as f64,
                expected: balls.map_or(1.0, |balls| fullest_over_mean(balls as usize, planes as usize)),
                tolerance: Tolerance::Relative(tolerance),
                run: Box::new(move || many_flows(seed, &run_policy, run_planes)),
            });
        }
    }
    Ok(trials)
}

fn star(nodes: u64, planes: u64, policy: &str) -> String {
    format!(
        "{{name: star, shape: {{star: {{nodes: {nodes}, planes: {planes}}}}}, forwarding: {{mode: cut-through}}, \
         link: {{rate: 100Gbit/s, delay: 500ns, headers: sue-like}}, paths: {{policy: {policy}}}, \
         transport: {{window_packets: 1024, ack_delay: 5us}}}}"
    )
}

/// Returns the throughput of one node's puts to another, over the capacity of one plane.
fn one_stream(seed: u64, policy: &str, planes: u64, puts: u64) -> Result<Measured, String> {
    let flow = Flow::greedy(Kind::Put, 1, PUT_BYTES, puts);
    let mut stage = Stage::new(&star(2, planes, policy), seed, vec![vec![flow]])?;
    stage.run()?;
    let put_ns = serialisation_ns(SUE.wire_bytes(1, PUT_BYTES), RATE_BITS_PER_S);
    Ok((stage.ledger(0).operations_per_s()? * put_ns / 1e9).into())
}

/// Runs equal traffic between all nodes; returns each node's busiest plane over the mean of its planes, averaged over all nodes.
fn many_flows(seed: u64, policy: &str, planes: u64) -> Result<Measured, String> {
    let flows = |node: u64| {
        let others = (0..NODES).filter(move |other| *other != node);
        others.map(|other| Flow::greedy(Kind::Put, other as u16, PUT_BYTES, PUTS_PER_FLOW)).collect()
    };
    let mut stage = Stage::new(&star(NODES, planes, policy), seed, (0..NODES).map(flows).collect())?;
    stage.run()?;
    let mut by_node = BTreeMap::<&str, Vec<u64>>::new();
    for LinkDirection { link, direction, statistics: wire } in stage.directions() {
        if direction == Direction::Forward
            && let Some((node, _)) = link.split_once("--")
        {
            by_node.entry(node).or_default().push(wire.data_accounted_bytes);
        }
    }
    let imbalances = by_node.values().map(|carried| {
        let (most, all) = (carried.iter().max().copied().unwrap_or(0), carried.iter().sum::<u64>());
        most as f64 * carried.len() as f64 / all.max(1) as f64
    });
    Ok((imbalances.sum::<f64>() / by_node.len().max(1) as f64).into())
}
