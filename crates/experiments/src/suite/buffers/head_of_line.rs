//! Experiment 20: cost of input queues of a switch, and that queues per output cost nothing.
//!
//! Half of a star's nodes send, one frame after the other, each to a node of the other half drawn at random. The
//! queues in the switch are never empty then; the frames that leave the switch are counted.

use rackloom_plan::impair::Direction;
use rackloom_plan::random_share;

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Row, Setup, Tolerance, Trial};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::blocking;
use crate::traffic::{Flow, Kind};

const PUT_BYTES: u64 = 1_024;
/// Duration of a frame with such a put on the links: 130 bytes of headers, 24 of check, preamble and gap.
const SLOT_NS: u64 = 100;
const RATE_MBIT_PER_S: u64 = (PUT_BYTES + 130 + 24) * 8 * 1_000 / SLOT_NS;
/// Slots until every queue has its typical length.
const WARM_SLOTS: u64 = 500;

/// Throughput of a switch by how frames wait in it.
pub(in crate::suite) static HEAD_OF_LINE: Experiment = Experiment {
    number: 20,
    name: "head-of-line",
    question: "What does a switch lose if frames wait in line behind ones that want another output?",
    formula: "one queue per input: 3/4 for 2 ports, falling to 2 - sqrt(2) = 0.586 for many; a queue per output: 1",
    theory: "The heads of full lines are a closed system: each output serves one of those that want it per slot, and the next frame of \
             that line wants any output (Karol, Hluchyj and Morgan 1987, whose table is computed here from the chain of states).",
    perturbs: "ports of the switch",
    knobs: &[
        Knob {
            name: "forwarding.queues",
            description: "what waits for what in the switch",
            usual: &["by-input", "by-output"],
            reduced: &[],
            kind: KnobKind::Choice,
        },
        Knob {
            name: "ports",
            description: "inputs, and as many outputs",
            usual: &["2", "3", "4", "6", "8"],
            reduced: &["2", "4"],
            kind: KnobKind::Count(1, 10),
        },
    ],
    axes: Axes {
        x: Axis { label: "inputs, and as many outputs", is_logarithmic: false },
        y: Axis { label: "share of the links that is used", is_logarithmic: false },
        names: None,
    },
    curve,
    answer: in_words,
    trials,
};

fn expected(queues: &str, ports: u64) -> f64 {
    if queues == "by-input" { blocking::throughput(ports as usize) } else { 1.0 }
}

fn curve(series: &str, ports: f64) -> Option<f64> {
    // Closed form only at whole numbers of ports.
    (series == "by-output").then(|| expected(series, ports as u64))
}

/// Returns the minimum of each kind, as text.
fn in_words(rows: &[Row]) -> Vec<String> {
    let least = |(queues, points): (&str, Vec<(f64, f64)>)| {
        let (ports, share) = points.into_iter().min_by(|one, other| one.1.total_cmp(&other.1))?;
        Some(format!("{queues} keeps {} of the links at least, with {ports} ports", answer::per_cent(share)))
    };
    answer::by_series(rows).into_iter().filter_map(least).collect()
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let mut trials = Vec::new();
    let slots = if setup.reduced { 6_000 } else { 12_000 };
    for queues in setup.knobs.values("forwarding.queues", setup.reduced) {
        for ports in setup.knobs.counts("ports", setup.reduced) {
            let (seed, run_ports, run_queues) = (setup.seed, setup.run_count(ports), queues.clone());
            // Chance is smaller than that for so many slots; with queues per output a queue is sometimes empty.
            let tolerance = if queues == "by-input" { 0.015 } else { 0.04 };
            trials.push(Trial {
                series: queues.clone(),
                setting: format!("{queues}, {ports} ports"),
                is_drawn: true,
                x: ports as f64,
                expected: expected(&queues, ports),
                tolerance: Tolerance::Relative(tolerance),
                run: Box::new(move || measure(&run_queues, run_ports, seed, slots)),
            });
        }
    }
    Ok(trials)
}

/// Returns one put per slot, to receivers drawn at random: a flow to each of them.
fn flows(sender: u64, ports: u64, seed: u64, slots: u64) -> Vec<Flow> {
    let mut flows: Vec<Flow> =
        (0..ports).map(|port| Flow::greedy(Kind::Put, (ports + port) as u16, PUT_BYTES, 0)).collect();
    for slot in 0..slots {
        let flow = &mut flows[(random_share(seed, sender << 32 | slot) * ports as f64) as usize];
        flow.times_ns.push(slot * SLOT_NS);
        flow.count += 1;
    }
    flows
}

fn measure(queues: &str, ports: u64, seed: u64, slots: u64) -> Result<Measured, String> {
    let text = format!(
        "{{name: lines, shape: {{star: {{nodes: {}}}}}, ring_bytes: 256MiB, packing: {{mode: off}}, \
         transport: {{window_packets: 4096}}, forwarding: {{queues: {queues}, mode: cut-through}}, \
         link: {{rate: {RATE_MBIT_PER_S}Mbit/s, delay: 100ns}}}}",
        2 * ports
    );
    let senders = (0..ports).map(|sender| flows(sender, ports, seed, slots)).collect();
    let mut stage = Stage::new(&text, seed, senders)?;
    let began = loop {
        let began = (0..ports).filter_map(|sender| stage.ledger(sender as usize).began).max();
        if let Some(began) = began {
            break began;
        }
        let next = stage.simulation.now() + SLOT_NS;
        stage.simulation.step_until(next).map_err(|stalled| stalled.to_string())?;
    };
    let mut passed_by = |slot: u64| {
        let until = began + slot * SLOT_NS;
        stage.simulation.step_until(until).map_err(|stalled| stalled.to_string())?;
        let receivers: Vec<String> = (ports..2 * ports).map(|node| format!("n{node}--s0")).collect();
        let to_receivers = stage.directions().filter(|one| {
            one.direction == Direction::Backward && receivers.iter().any(|receiver| receiver == one.link)
        });
        Ok::<u64, String>(to_receivers.map(|one| one.statistics.data_frames_sent).sum())
    };
    let before = passed_by(WARM_SLOTS)?;
    let frames = passed_by(slots)? - before;
    Ok((frames as f64 / ((slots - WARM_SLOTS) * ports) as f64).into())
}
