//! Experiment 29: many senders to one node, with windows that follow marks.
//!
//! The run counts the packets that have left the senders and not the switch, again and again, and the puts of each sender.

use std::sync::{Arc, OnceLock};

use rackloom_plan::impair::Direction;
use rackloom_protocol::{Instant, NodeId, PortId};

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Setup, Tolerance, Trial};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::congestion::{fairness, queue_max, queue_swing};
use crate::theory::wire::serialisation_ns;
use crate::traffic::{Flow, Kind};

const PUT_BYTES: u64 = 4_096;
/// A put of 4096 bytes with our own headers.
const FRAME_BYTES: u64 = 130 + PUT_BYTES;
/// Bytes that a frame of our own headers has beside them on the link.
const FRAME_CHECK_PREAMBLE_AND_GAP_BYTES: u64 = 24;
/// Packets of a queue above which packets are marked.
const LIMIT: u64 = 320;
/// Packets that a round trip without queues holds: four cables of 500 ns at 100 Gbit/s, and the packets that are being sent.
const IN_FLIGHT: f64 = 8.0;
/// Time from which on the windows have converged, and end of the run.
const CONVERGED_NS: u64 = 10_000_000;
const END_NS: u64 = 30_000_000;
const SAMPLE_NS: u64 = 1_000;
/// More puts than a sender can send in that time.
const PUTS: u64 = 100_000;
const FAIR: f64 = 0.95;

/// Queue, fairness and losses of an incast.
pub(in crate::suite) static INCAST: Experiment = Experiment {
    number: 29,
    name: "incast",
    question: "Does congestion control keep the queue of an incast short, and its senders equal, without losses?",
    formula: "longest queue <= K + N; it swings by sqrt(2 N (C R + K)) / 2 at most; fairness >= 0.95; no loss; link full",
    theory: "Senders learn of a mark one round trip after the packet that met a queue of K, and add one packet each until then (DCTCP, \
             Alizadeh et al. 2010). C R are the packets that a round trip without queues holds. Fairness is Jain's index of the puts of all \
             senders (Jain, Chiu and Hawe 1984).",
    perturbs: "packets above which a queue marks",
    knobs: &[Knob {
        name: "senders",
        description: "nodes that send to one",
        usual: &["4", "8", "16", "32"],
        reduced: &["32"],
        kind: KnobKind::Count(2, 64),
    }],
    axes: Axes {
        x: Axis { label: "nodes that send to one", is_logarithmic: false },
        y: Axis { label: "longest queue (packets)", is_logarithmic: false },
        names: None,
    },
    curve,
    answer: answer::none,
    trials,
};

fn curve(series: &str, senders: f64) -> Option<f64> {
    (series == QUEUE).then(|| queue_max(LIMIT as f64, senders))
}

const QUEUE: &str = "longest queue";

/// A measured property, with its expected value and the range that holds.
struct Property {
    series: &'static str,
    what: &'static str,
    expected: f64,
    tolerance: Tolerance,
    value: fn(&Outcome) -> f64,
}

fn properties(senders: f64) -> [Property; 5] {
    let limit = LIMIT as f64;
    let most = queue_max(limit, senders);
    let least = most - 2.0 * queue_swing(limit, senders, IN_FLIGHT);
    let property =
        |series, what, expected, tolerance, value| Property { series, what, expected, tolerance, value };
    [
        property(QUEUE, "packets", most, Tolerance::Between(limit, most + IN_FLIGHT), |outcome| {
            outcome.queue_max
        }),
        property("shortest queue", "packets", most, Tolerance::Between(least, most), |outcome| {
            outcome.queue_min
        }),
        property("fairness", "Jain's index", 1.0, Tolerance::Between(FAIR, 1.0), |outcome| outcome.fairness),
        property("losses", "frames lost or sent again", 0.0, Tolerance::Exact, |outcome| outcome.lost),
        property("load", "share of the link that is used", 1.0, Tolerance::Relative(0.01), |outcome| {
            outcome.load
        }),
    ]
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let (seed, limit) = (setup.seed, setup.run_count(LIMIT));
    let mut trials = Vec::new();
    for senders in setup.knobs.counts("senders", setup.reduced) {
        // One run has all properties.
        let outcome = Arc::new(OnceLock::new());
        for Property { series, what, expected, tolerance, value } in properties(senders as f64) {
            let outcome = Arc::clone(&outcome);
            trials.push(Trial {
                series: series.to_owned(),
                setting: format!("{series}, {senders} senders: {what}"),
                is_drawn: series == QUEUE,
                x: senders as f64,
                expected,
                tolerance,
                run: Box::new(move || {
                    let outcome = outcome.get_or_init(|| incast(seed, senders, limit));
                    outcome.as_ref().map(|outcome| value(outcome).into()).map_err(Clone::clone)
                }),
            });
        }
    }
    Ok(trials)
}

/// Result of a run.
#[derive(Debug, Default)]
struct Outcome {
    queue_max: f64,
    /// Shortest queue after the windows have converged.
    queue_min: f64,
    fairness: f64,
    lost: f64,
    load: f64,
}

/// Lets all senders put to node 0 through one switch that marks above `limit` packets.
fn incast(seed: u64, senders: u64, limit: u64) -> Result<Outcome, String> {
    let limit_bytes = limit * FRAME_BYTES;
    let text = format!(
        "{{name: incast, shape: {{star: {{nodes: {}}}}}, ring_bytes: 64MiB, packing: {{mode: off}}, payload: elided, \
         transport: {{window_packets: 4096, ack_every_packets: 1, congestion: dctcp}}, \
         forwarding: {{mark_above: {limit_bytes}B, mode: cut-through}}, link: {{rate: 100Gbit/s, delay: 500ns}}, job: none}}",
        senders + 1
    );
    let mut flows = vec![Vec::new()];
    flows.extend((0..senders).map(|_| vec![Flow::greedy(Kind::Put, 0, PUT_BYTES, PUTS)]));
    let mut stage = Stage::new(&text, seed, flows)?;
    let mut outcome = Outcome { queue_min: f64::INFINITY, ..Outcome::default() };
    let mut before = vec![0; senders as usize + 1];
    for at_ns in (0..=END_NS).step_by(SAMPLE_NS as usize) {
        stage.simulation.step_until(Instant(at_ns)).map_err(|stalled| stalled.to_string())?;
        let sent = frames_sent(&stage, senders)?;
        let queue = sent[1..].iter().sum::<u64>() - sent[0];
        outcome.queue_max = outcome.queue_max.max(queue as f64);
        if at_ns == CONVERGED_NS {
            before.clone_from(&sent);
        }
        if at_ns >= CONVERGED_NS {
            outcome.queue_min = outcome.queue_min.min(queue as f64);
        }
    }
    let after = frames_sent(&stage, senders)?;
    let shares: Vec<_> = before.iter().zip(&after).map(|(before, after)| (after - before) as f64).collect();
    outcome.fairness = fairness(&shares[1..]);
    outcome.load = shares[0] * frame_ns() / (END_NS - CONVERGED_NS) as f64;
    outcome.lost = lost(&stage) as f64;
    Ok(outcome)
}

/// Returns the data frames that the switch has sent to node 0, then those of each sender.
fn frames_sent(stage: &Stage, senders: u64) -> Result<Vec<u64>, String> {
    let to_target =
        stage.simulation.link_statistics(stage.edge("n0--s0")?, Direction::Backward).data_frames_sent;
    let of_senders = (1..=senders).map(|node| Ok(stage.forward(&format!("n{node}--s0"))?.data_frames_sent));
    std::iter::once(Ok(to_target)).chain(of_senders).collect()
}

/// Returns the frames that links or members have dropped, and packets that were retransmitted.
fn lost(stage: &Stage) -> u64 {
    let switch = NodeId(stage.plan().endpoint_count() as u16);
    let ports = (0..stage.plan().endpoint_count() as u16).map(PortId);
    let dropped = ports.map(|port| stage.simulation.counters(switch, port).dropped.iter().sum::<u64>());
    dropped.sum::<u64>() + stage.retransmitted()
}

/// Returns the time of a frame on the link, with preamble and gap.
fn frame_ns() -> f64 {
    serialisation_ns(FRAME_BYTES + FRAME_CHECK_PREAMBLE_AND_GAP_BYTES, 100e9)
}
