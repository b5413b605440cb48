//! Experiment 9: effect of a blocked class of messages on another class.
//!
//! In a star, node 2 stops draining bulk data. Node 0 puts to it and stores to node 1. With a channel for each class the puts
//! stop and the stores have the link; with one channel for all everything stops. Also measured: how an arbiter divides a link
//! between two saturating classes.

use rackloom_protocol::{Class, Instant, NodeId};

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Setup, Tolerance, Trial, straight};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::credits::weighted_share;
use crate::traffic::{Flow, Kind};

const RATE_BITS_PER_S: f64 = 100e9;
const STORE_BYTES: u64 = 1_024;
const PUT_BYTES: u64 = 4_096;
/// Ethernet 14, link 32, fabric 40, region 16, store 12.
const STORE_FRAME_BYTES: u64 = 14 + 32 + 40 + 16 + 12 + STORE_BYTES;
/// Ethernet 14, link 32, fabric 40, region and put 44.
const PUT_FRAME_BYTES: u64 = 14 + 32 + 40 + 44 + PUT_BYTES;
/// Check, preamble and gap.
const BESIDE_FRAME_BYTES: u64 = 24;
/// Begin and end of the measured interval, long after everything that blocks has blocked.
const MEASURED_FROM: Instant = Instant(1_000_000);
const MEASURED_TO: Instant = Instant(3_000_000);

/// Throughput of a class beside a blocked one.
pub(in crate::suite) static BLOCKED_CLASS: Experiment = Experiment {
    number: 9,
    name: "blocked-class",
    question: "What does a blocked class of messages do to another?",
    formula: "share of the stores = 1 with a channel for each class, 0 with one channel; weights w: w0 / (w0 + w1) of the frame bytes",
    theory: "Each channel has its own queue and its own credits, so a full one takes nothing from the others (CBFC-like; \
             virtual channels, Dally 1992). Weighted turns are a deficit round-robin (Shreedhar and Varghese 1995).",
    perturbs: "bytes of each store",
    knobs: &[Knob {
        name: "channels.arbiter",
        description: "how the channels share the link",
        usual: &["strict", "round-robin", "weighted"],
        reduced: &[],
        kind: KnobKind::Choice,
    }],
    axes: Axes {
        x: Axis { label: "what is set", is_logarithmic: false },
        y: Axis { label: "share of the link that the stores have", is_logarithmic: false },
        names: Some(&[]),
    },
    curve: straight,
    answer: answer::none,
    trials,
};

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let (seed, store_bytes) = (setup.seed, setup.run_count(STORE_BYTES));
    let mut trials = Vec::new();
    let mut add = |what: String, expected: f64, tolerance, channels: String, is_blocked| {
        trials.push(Trial {
            series: what.clone(),
            setting: what,
            is_drawn: true,
            x: trials.len() as f64 + 1.0,
            expected,
            tolerance,
            run: Box::new(move || measure(seed, store_bytes, &channels, is_blocked)),
        });
    };
    for arbiter in setup.knobs.values("channels.arbiter", setup.reduced) {
        let weights = if arbiter == "weighted" { ", weights: [1, 1, 1, 1]" } else { "" };
        let channels = format!("channels: {{arbiter: {arbiter}{weights}}}");
        let what = format!("bulk blocked, a channel for each class, {arbiter}");
        add(what, 1.0, Tolerance::Relative(0.01), channels, true);
    }
    // Credits too few for a put may still be enough for a store: one or two in the measured time.
    let hardly_any = Tolerance::Absolute(1e-4);
    add("bulk blocked, one channel".into(), 0.0, hardly_any, "channels: off".into(), true);
    let frames = [STORE_FRAME_BYTES as f64, PUT_FRAME_BYTES as f64];
    for [stores, puts] in [[1_u32, 1], [3, 1]] {
        let weights = [stores, puts].map(f64::from);
        let expected = weighted_share(weights, frames, BESIDE_FRAME_BYTES as f64);
        let channels = format!("channels: {{arbiter: weighted, weights: [{stores}, 1, {puts}, 1]}}");
        let what = format!("both busy, weights {stores} to {puts}");
        add(what, expected, Tolerance::Relative(0.01), channels, false);
    }
    Ok(trials)
}

fn measure(seed: u64, store_bytes: u64, channels: &str, is_blocked: bool) -> Result<Measured, String> {
    let text = format!(
        "{{name: star, shape: {{star: {{nodes: 3}}}}, packing: {{mode: off}}, {channels}, \
         link: {{rate: 100Gbit/s, delay: 200ns}}, ring_bytes: 4MiB, transport: {{window_packets: 1024}}}}"
    );
    let flows = vec![
        Flow { open_max: 512, ..Flow::greedy(Kind::Store, 1, store_bytes, 1 << 30) },
        Flow { open_max: 512, ..Flow::greedy(Kind::Put, 2, PUT_BYTES, 1 << 30) },
    ];
    let mut stage = Stage::new(&text, seed, vec![flows])?;
    if is_blocked {
        stage.simulation.endpoint_mut(NodeId(2)).stop_draining(Class::Bulk, true);
    }
    let mut stores_by = |at| {
        stage.simulation.step_until(at).map_err(|stalled| stalled.to_string())?;
        stage.ledger(0).completed_of.first().copied().ok_or_else(|| "nothing was sent".to_owned())
    };
    let count = -(stores_by(MEASURED_FROM)? as f64) + stores_by(MEASURED_TO)? as f64;
    let took_ns = MEASURED_TO.since(MEASURED_FROM) as f64;
    let wire_bytes = (STORE_FRAME_BYTES + BESIDE_FRAME_BYTES) as f64;
    Ok((count * wire_bytes * 8e9 / took_ns / RATE_BITS_PER_S).into())
}
