//! Experiment 13: remaining throughput after the loss of a path.
//!
//! A star loses a plane, a ring is cut under an all-reduce in one or both directions, a full mesh loses a link and sends its
//! traffic over a relay. Each is compared with the same rack before the loss.

use rackloom_protocol::Instant;
use rackloom_simulator::Action;

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Row, Setup, Tolerance, Trial, straight};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::{Stage, all_reduce};
use crate::theory::failure::{MESH_CUT_ONE_RELAY, after_mesh_cut_spread, after_plane_loss, after_ring_cut};
use crate::traffic::{Flow, Kind};

const TOLERANCE: Tolerance = Tolerance::Relative(0.03);
/// Number of receivers of the star. It is large enough that each plane has flows for any hash of the paths.
const RECEIVERS: u64 = 32;
const RING_NODES: u64 = 8;
const MESH_NODES: u64 = 6;
const PUT_BYTES: u64 = 4_096;
const STAR: &str = "star, plane lost";
const RING: &str = "rings, link cut";
const MICROSECOND_NS: u64 = 1_000;

/// Throughput and load after a loss, divided by those before it.
pub(in crate::suite) static PATH_LOSS: Experiment = Experiment {
    number: 13,
    name: "path-loss",
    question: "What is left when a plane, a ring link or a mesh link is lost?",
    formula: "plane (P - 1)/P; ring link 1 of one ring, 1/2 of two; mesh link: load 2 with one relay, (N - 1)/(N - 2) spread",
    theory: "A lost plane takes its share. One ring's traffic detours over reverse links that are idle, two counter-rotating \
             rings meet there. A relay carries a second flow beside its own, each of N - 2 relays its share of one.",
    perturbs: "planes of the star",
    knobs: &[Knob {
        name: "shape.star.planes",
        description: "planes of which one is lost",
        usual: &["2", "3", "5"],
        reduced: &["5"],
        kind: KnobKind::Count(2, 12),
    }],
    axes: Axes {
        x: Axis { label: "", is_logarithmic: false },
        y: Axis {
            label: "throughput of star and ring, load of the mesh's busiest link: after the loss / before",
            is_logarithmic: false,
        },
        names: Some(&[]),
    },
    curve: straight,
    answer: in_words,
    trials,
};

/// Returns the remaining throughput by number of planes, and the load of a relay, as text.
fn in_words(rows: &[Row]) -> Vec<String> {
    let line = |(series, points): (&str, Vec<(f64, f64)>)| {
        let each = points.iter().map(|(count, value)| match series {
            STAR => format!("{count} planes keep {}", answer::per_cent(*value)),
            RING => format!("of {count} the all-reduce keeps {}", answer::per_cent(*value)),
            _ => format!("the busiest link bears {value:.2} times its load"),
        });
        format!("{series}: {}", each.collect::<Vec<_>>().join(", "))
    };
    answer::by_series(rows).into_iter().map(line).collect()
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let seed = setup.seed;
    let mut trials = Vec::new();
    for planes in setup.knobs.counts("shape.star.planes", setup.reduced) {
        let run_planes = setup.run_count(planes);
        trials.push(Trial {
            series: STAR.to_owned(),
            setting: format!("star of {planes} planes, one lost"),
            is_drawn: true,
            x: planes as f64,
            expected: after_plane_loss(planes),
            tolerance: TOLERANCE,
            run: Box::new(move || plane_lost(seed, run_planes)),
        });
    }
    for (rings, algorithm) in [(1, "ring"), (2, "bidirectional-ring")] {
        trials.push(Trial {
            series: RING.to_owned(),
            setting: format!("all-reduce by {algorithm} on {RING_NODES} nodes, one link cut"),
            is_drawn: true,
            x: rings as f64,
            expected: after_ring_cut(rings),
            tolerance: TOLERANCE,
            run: Box::new(move || ring_cut(seed, algorithm)),
        });
    }
    let spread = after_mesh_cut_spread(MESH_NODES);
    for (policy, route, expected) in
        [("flow", "one relay", MESH_CUT_ONE_RELAY), ("round-robin", "all relays", spread)]
    {
        trials.push(Trial {
            series: format!("mesh, link cut, {route}"),
            setting: format!("all-to-all on a mesh of {MESH_NODES}, one link cut, {route}"),
            is_drawn: true,
            x: MESH_NODES as f64,
            expected,
            tolerance: TOLERANCE,
            run: Box::new(move || mesh_cut(seed, policy)),
        });
    }
    Ok(trials)
}

/// Runs one node that sends to many; a plane's link to it is cut in between.
fn plane_lost(seed: u64, planes: u64) -> Result<Measured, String> {
    let nodes = RECEIVERS + 1;
    let text = format!(
        "{{name: star, shape: {{star: {{nodes: {nodes}, planes: {planes}}}}}, \
         link: {{rate: 10Gbit/s, delay: 500ns, headers: sue-like}}, \
         timers: {{heartbeat_interval: 20us, heartbeat_miss_max: 3, hello_interval: 1us}}, \
         transport: {{timeout_initial: 2ms, timeout_min: 1ms, ack_delay: 5us}}}}"
    );
    // More than can be sent in the measured time.
    let flows = (1..nodes).map(|node| Flow::greedy(Kind::Put, node as u16, PUT_BYTES, 100_000)).collect();
    let mut stage = Stage::new(&text, seed, vec![flows])?;
    let cut = Instant(3_000 * MICROSECOND_NS);
    stage.simulation.schedule(cut, Action::Cut { edge: stage.edge("n0--s0")?, direction: None });
    let before = completed_within(&mut stage, 1_000, 3_000)?;
    let after = completed_within(&mut stage, 5_000, 7_000)?;
    Ok((after / before).into())
}

/// Returns the operations of the first node that end between two times, in microseconds.
fn completed_within(stage: &mut Stage, from_us: u64, to_us: u64) -> Result<f64, String> {
    let mut counts = [0; 2];
    for (count, at_us) in counts.iter_mut().zip([from_us, to_us]) {
        let until = Instant(at_us * MICROSECOND_NS);
        stage.simulation.step_until(until).map_err(|stalled| stalled.to_string())?;
        *count = stage.ledger(0).completed;
    }
    Ok((counts[1] - counts[0]) as f64)
}

fn ring_cut(seed: u64, algorithm: &str) -> Result<Measured, String> {
    let text = format!(
        "{{name: ring, shape: {{ring: {{nodes: {RING_NODES}}}}}, defaults: {{memory: 64MiB}}, \
         link: {{rate: 100Gbit/s, delay: 500ns, headers: sue-like}}, \
         timers: {{heartbeat_interval: 20us, hello_interval: 1us}}, \
         transport: {{window_packets: 1024}}, \
         job: {{collective: {{algorithm: {algorithm}, bytes: 16MiB, repetitions: 1, warm_up: 1}}}}}}"
    );
    let whole = all_reduce(&text, seed, &[])?;
    let cut = [(Instant::ZERO, Action::Cut { edge: 0, direction: None })];
    let broken = all_reduce(&text, seed, &cut)?;
    let (Some((_, whole_ns)), Some((_, broken_ns))) = (whole.first(), broken.first()) else {
        return Err("the all-reduce was not measured".into());
    };
    Ok((whole_ns / broken_ns).into())
}

/// Runs equal traffic between all nodes; returns the load of the busiest direction of a link relative to one flow.
fn mesh_cut(seed: u64, policy: &str) -> Result<Measured, String> {
    const PUTS: u64 = 500;
    let text = format!(
        "{{name: mesh, shape: {{full-mesh: {{nodes: {MESH_NODES}}}}}, \
         link: {{rate: 100Gbit/s, delay: 500ns, headers: sue-like}}, paths: {{policy: {policy}}}, \
         timers: {{heartbeat_interval: 20us, hello_interval: 1us}}}}"
    );
    let flows = |node: u64| {
        let others = (0..MESH_NODES).filter(move |other| *other != node);
        others.map(|other| Flow::greedy(Kind::Put, other as u16, PUT_BYTES, PUTS)).collect()
    };
    let busiest = |is_cut: bool| -> Result<u64, String> {
        let mut stage = Stage::new(&text, seed, (0..MESH_NODES).map(flows).collect())?;
        if is_cut {
            stage.simulation.schedule(Instant::ZERO, Action::Cut { edge: 0, direction: None });
        }
        stage.run()?;
        Ok(stage.directions().map(|one| one.statistics.data_accounted_bytes).max().unwrap_or(0))
    };
    Ok((busiest(true)? as f64 / busiest(false)? as f64).into())
}
