//! Experiment 29: many senders to one node, with windows that follow marks, and with grants of the receiver.
//!
//! The run counts the packets that have left the senders and not the switch, again and again, the puts of each sender, and the times of single
//! puts of one more node.

use std::sync::{Arc, OnceLock};

use rackloom_plan::impair::Direction;
use rackloom_protocol::{Instant, NodeId, PortId};

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Setup, Tolerance, Trial};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::congestion::{fairness, granted_max, granted_standing, queue_max, queue_swing};
use crate::theory::wire::serialisation_ns;
use crate::traffic::{Flow, Kind};

const PUT_BYTES: u64 = 4_096;
/// A put of 4096 bytes with our own headers.
const FRAME_BYTES: u64 = 130 + PUT_BYTES;
/// Bytes that a frame of our own headers has beside them on the link.
const FRAME_CHECK_PREAMBLE_AND_GAP_BYTES: u64 = 24;
/// Packets of a queue above which packets are marked.
const LIMIT: u64 = 320;
/// Packets that the target grants in total: four times what a round trip without queues holds.
const POOL: u64 = 32;
/// Packets that a round trip without queues holds: four cables of 500 ns at 100 Gbit/s, and the packets that are being sent.
const IN_FLIGHT: f64 = 8.0;
/// Time from which on the windows have converged, and end of the run.
const CONVERGED_NS: u64 = 10_000_000;
const END_NS: u64 = 30_000_000;
const SAMPLE_NS: u64 = 1_000;
/// More puts than a sender can send in that time.
const PUTS: u64 = 100_000;
/// Interval of the single puts of one more node, and their number.
const SHORT_INTERVAL_NS: u64 = 100_000;
const SHORT_PUTS: u64 = (END_NS - CONVERGED_NS) / SHORT_INTERVAL_NS - 2;
const FAIR: f64 = 0.95;

/// Queue, fairness and losses of an incast.
pub(in crate::suite) static INCAST: Experiment = Experiment {
    number: 29,
    name: "incast",
    question: "Does congestion control keep the queue of an incast short, and its senders equal, without losses?",
    formula: "marks: longest queue <= K + N, it swings by sqrt(2 N (C R + K)) / 2 at most; grants: longest queue <= P + N, it \
              stands at max(P, N) - R; a short put waits for the queue; fairness >= 0.95; no loss; link full",
    theory: "Senders learn of a mark one round trip after the packet that met a queue of K, and add one packet each until then (DCTCP, \
             Alizadeh et al. 2010). C R are the packets that a round trip without queues holds. A receiver that grants P packets in total has \
             at most these on their way to it, and one packet of each sender that has no grant; R packets are missing in the queue while grants \
             return, three cables and a frame after a packet has left it. Fairness is Jain's index of the puts of all \
             senders (Jain, Chiu and Hawe 1984).",
    perturbs: "packets above which a queue marks, and packets that the target grants",
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

/// Rule by which the senders are limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Marks,
    Grants,
}

impl Rule {
    const ALL: [Self; 2] = [Self::Marks, Self::Grants];

    /// Returns the names of the series: queue, shortest queue, fairness, losses, load, short put.
    const fn series(self) -> [&'static str; 6] {
        match self {
            Self::Marks => ["longest queue", "shortest queue", "fairness", "losses", "load", "short put"],
            Self::Grants => [
                "longest queue, grants",
                "shortest queue, grants",
                "fairness, grants",
                "losses, grants",
                "load, grants",
                "short put, grants",
            ],
        }
    }

    /// Returns the longest queue for so many senders and the one that sends short puts.
    fn queue_max(self, senders: f64) -> f64 {
        match self {
            Self::Marks => queue_max(LIMIT as f64, senders + 1.0),
            Self::Grants => granted_max(POOL as f64, senders + 1.0),
        }
    }
}

fn curve(series: &str, senders: f64) -> Option<f64> {
    Rule::ALL.into_iter().find(|rule| rule.series()[0] == series).map(|rule| rule.queue_max(senders))
}

/// A measured property, with its expected value and the range that holds.
struct Property {
    series: &'static str,
    what: &'static str,
    expected: f64,
    tolerance: Tolerance,
    value: fn(&Outcome) -> f64,
}

fn properties(rule: Rule, senders: f64) -> [Property; 6] {
    let [queue, shortest, fairness, losses, load, short] = rule.series();
    let most = rule.queue_max(senders);
    let base_us = (2_000.0 + frame_ns()) / 1e3;
    // Under marks, packets on cables are beside the queue. Grants count them.
    let (longest, shortest_expected, shortest_range, short_expected, short_range) = match rule {
        Rule::Marks => {
            let trough = most - 2.0 * queue_swing(LIMIT as f64, senders, IN_FLIGHT);
            let short_us = [trough, most + IN_FLIGHT].map(|queue| queue * frame_ns() / 1e3 + base_us);
            let short = Tolerance::Between(short_us[0], short_us[1]);
            let longest = Tolerance::Between(LIMIT as f64, most + IN_FLIGHT);
            (longest, most, Tolerance::Between(trough, most), short_us[1], short)
        }
        Rule::Grants => {
            let standing = granted_standing(POOL as f64, senders, returning());
            let short_us = standing * frame_ns() / 1e3 + base_us;
            let shortest = Tolerance::Between(standing - 1.5, standing + 1.5);
            (Tolerance::Between(standing, most), standing, shortest, short_us, Tolerance::Relative(0.05))
        }
    };
    let property =
        |series, what, expected, tolerance, value| Property { series, what, expected, tolerance, value };
    [
        property(queue, "packets", most, longest, |outcome| outcome.queue_max),
        property(shortest, "packets", shortest_expected, shortest_range, |outcome| outcome.queue_min),
        property(fairness, "Jain's index", 1.0, Tolerance::Between(FAIR, 1.0), |outcome| outcome.fairness),
        property(losses, "frames lost or sent again", 0.0, Tolerance::Exact, |outcome| outcome.lost),
        property(load, "share of the link that is used", 1.0, Tolerance::Relative(0.01), |outcome| {
            outcome.load
        }),
        property(short, "median time (us)", short_expected, short_range, |outcome| outcome.short_us),
    ]
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let (seed, limit, pool) = (setup.seed, setup.run_count(LIMIT), setup.run_count(POOL));
    let mut trials = Vec::new();
    let counts = setup.knobs.counts("senders", setup.reduced);
    for (senders, rule) in counts.into_iter().flat_map(|senders| Rule::ALL.map(|rule| (senders, rule))) {
        let transport = match rule {
            Rule::Marks => "ack_every_packets: 1, congestion: dctcp".to_owned(),
            Rule::Grants => format!("congestion: grants, grant_packets: {pool}"),
        };
        // One run has all properties.
        let outcome = Arc::new(OnceLock::new());
        for Property { series, what, expected, tolerance, value } in properties(rule, senders as f64) {
            let (outcome, transport) = (Arc::clone(&outcome), transport.clone());
            trials.push(Trial {
                series: series.to_owned(),
                setting: format!("{series}, {senders} senders: {what}"),
                is_drawn: series == rule.series()[0],
                x: senders as f64,
                expected,
                tolerance,
                run: Box::new(move || {
                    let outcome = outcome.get_or_init(|| incast(seed, senders, limit, &transport));
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
    /// Median time of a single put among the others.
    short_us: f64,
}

/// Lets all senders put to node 0 through one switch that marks above `limit` packets. One more node sends single puts after the windows have
/// converged.
fn incast(seed: u64, senders: u64, limit: u64, transport: &str) -> Result<Outcome, String> {
    let limit_bytes = limit * FRAME_BYTES;
    let text = format!(
        "{{name: incast, shape: {{star: {{nodes: {}}}}}, ring_bytes: 64MiB, packing: {{mode: off}}, payload: elided, \
         transport: {{window_packets: 4096, {transport}}}, \
         forwarding: {{mark_above: {limit_bytes}B, mode: cut-through}}, link: {{rate: 100Gbit/s, delay: 500ns}}, job: none}}",
        senders + 2
    );
    let mut flows = vec![Vec::new()];
    flows.extend((0..senders).map(|_| vec![Flow::greedy(Kind::Put, 0, PUT_BYTES, PUTS)]));
    let times_ns = (0..SHORT_PUTS).map(|put| CONVERGED_NS + put * SHORT_INTERVAL_NS).collect();
    flows.push(vec![Flow { times_ns, ..Flow::greedy(Kind::Put, 0, PUT_BYTES, SHORT_PUTS) }]);
    let mut stage = Stage::new(&text, seed, flows)?;
    let mut outcome = Outcome { queue_min: f64::INFINITY, ..Outcome::default() };
    let mut before = vec![0; senders as usize + 2];
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
    outcome.fairness = fairness(&shares[1..=senders as usize]);
    outcome.load = shares[0] * frame_ns() / (END_NS - CONVERGED_NS) as f64;
    outcome.lost = lost(&stage) as f64;
    let short = stage.ledger(senders as usize + 1);
    outcome.short_us = short.quantile_ns(0.5).ok_or("no short put has ended")? as f64 / 1e3;
    Ok(outcome)
}

/// Returns the data frames that the switch has sent to node 0, then those of each sender.
fn frames_sent(stage: &Stage, senders: u64) -> Result<Vec<u64>, String> {
    let to_target =
        stage.simulation.link_statistics(stage.edge("n0--s0")?, Direction::Backward).data_frames_sent;
    // The last one sends the short puts.
    let of_senders =
        (1..=senders + 1).map(|node| Ok(stage.forward(&format!("n{node}--s0"))?.data_frames_sent));
    std::iter::once(Ok(to_target)).chain(of_senders).collect()
}

/// Returns the frames that links or members have dropped, and packets that were retransmitted.
fn lost(stage: &Stage) -> u64 {
    let switch = NodeId(stage.plan().endpoint_count() as u16);
    let ports = (0..stage.plan().endpoint_count() as u16).map(PortId);
    let dropped = ports.map(|port| stage.simulation.counters(switch, port).dropped.iter().sum::<u64>());
    dropped.sum::<u64>() + stage.retransmitted()
}

/// Returns the packets that leave a full link while a packet crosses the last cable and its grant two more.
fn returning() -> f64 {
    (frame_ns() + 3.0 * 500.0) / frame_ns()
}

/// Returns the time of a frame on the link, with preamble and gap.
fn frame_ns() -> f64 {
    serialisation_ns(FRAME_BYTES + FRAME_CHECK_PREAMBLE_AND_GAP_BYTES, 100e9)
}
