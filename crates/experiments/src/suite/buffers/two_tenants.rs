//! Experiment 23: effect of one tenant's incast on another tenant that shares a link with it.
//!
//! Nodes of tenant 0 on one switch put to one node on another switch, over a fast link between the switches. A node of
//! tenant 1 on the first switch stores, or puts, to one on the second. The link of the incast's target is the bottleneck, and the
//! buffers before it fill. In another class, tenant 1 has a channel with credits of its own. In the class of the incast, the second
//! switch has space for a frame of tenant 1 as often as for one of each sender.

use rackloom_protocol::Instant;

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Row, Setup, Tolerance, Trial};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::traffic::{Flow, Kind};

const RATE_BITS_PER_S: f64 = 100e9;
const STORE_BYTES: u64 = 1_024;
const PUT_BYTES: u64 = 4_096;
/// Ethernet 14, link 32, fabric 40, region 16, store 12; check, preamble and gap 24.
const STORE_WIRE_BYTES: u64 = 14 + 32 + 40 + 16 + 12 + STORE_BYTES + 24;
/// Ethernet 14, link 32, fabric 40, region and put 44; check, preamble and gap 24.
const PUT_WIRE_BYTES: u64 = 14 + 32 + 40 + 44 + PUT_BYTES + 24;
/// Begin and end of the measured interval, long after all buffers have filled.
const MEASURED_FROM: Instant = Instant(2_000_000);
const MEASURED_TO: Instant = Instant(6_000_000);

/// Stores of tenant 1 beside puts of tenant 0.
const APART: &str = "another class than the incast";
/// Puts of both tenants.
const ONE_CLASS: &str = "the class of the incast";

/// Throughput of a tenant beside the incast of another one.
pub(in crate::suite) static TWO_TENANTS: Experiment = Experiment {
    number: 23,
    name: "two-tenants",
    question: "Does an incast of one tenant starve another tenant?",
    formula: "share of its link = 1 in another class, which has a channel of its own; 1 / senders in the class of the incast",
    theory: "The target of the incast takes one frame at a time, and in one channel each frame of the other tenant waits for space that the \
             target has freed. Inputs of a switch take turns, so the other tenant has one frame for each frame of a sender.",
    perturbs: "bytes of each operation of tenant 1",
    knobs: &[Knob {
        name: "senders",
        description: "nodes of the incast",
        usual: &["2", "3", "4", "6", "8"],
        reduced: &["2", "4"],
        kind: KnobKind::Count(2, 16),
    }],
    axes: Axes {
        x: Axis { label: "nodes of the incast", is_logarithmic: false },
        y: Axis { label: "share of its link that tenant 1 has", is_logarithmic: false },
        names: None,
    },
    curve,
    answer: in_words,
    trials,
};

fn curve(series: &str, senders: f64) -> Option<f64> {
    match series {
        APART => Some(1.0),
        ONE_CLASS => Some(1.0 / senders),
        _ => None,
    }
}

/// Returns the smallest share of each kind, as text.
fn in_words(rows: &[Row]) -> Vec<String> {
    let least = |(series, points): (&str, Vec<(f64, f64)>)| {
        let (senders, share) = points.into_iter().min_by(|one, other| one.1.total_cmp(&other.1))?;
        Some(format!(
            "{series}: tenant 1 has {} of its link beside an incast of {senders}",
            answer::per_cent(share)
        ))
    };
    answer::by_series(rows).into_iter().filter_map(least).collect()
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let mut trials = Vec::new();
    for (series, kind, bytes) in [(APART, Kind::Store, STORE_BYTES), (ONE_CLASS, Kind::Put, PUT_BYTES)] {
        let run_bytes = setup.run_count(bytes);
        for senders in setup.knobs.counts("senders", setup.reduced) {
            let seed = setup.seed;
            let expected = curve(series, senders as f64).unwrap_or_default();
            trials.push(Trial {
                series: series.to_owned(),
                setting: format!("{series}, {senders} senders"),
                is_drawn: true,
                x: senders as f64,
                expected,
                tolerance: Tolerance::Relative(0.02),
                run: Box::new(move || measure(kind, run_bytes, senders, seed)),
            });
        }
    }
    Ok(trials)
}

/// Returns the rack file. The nodes of tenant 0 are `in` and `n0`, `n1` and so on, those of tenant 1 are `from` and `to`.
fn rack(senders: u64) -> String {
    let names: Vec<_> = (0..senders).map(|sender| format!("n{sender}")).collect();
    let links: Vec<_> = names.iter().map(|name| format!("{{a: {name}, b: west}}")).collect();
    format!(
        "{{name: tenants, shape: {{custom: {{nodes: [{}, in, from, to], switches: [west, east], links: [{}, {{a: from, b: west}}, \
         {{a: west, b: east}}, {{a: east, b: in}}, {{a: east, b: to}}]}}}}, nodes: {{from: {{tenant: 1}}, to: {{tenant: 1}}}}, \
         packing: {{mode: off}}, channels: by-class, ring_bytes: 256KiB, transport: {{window_packets: 1024}}, \
         link: {{rate: 100Gbit/s, delay: 200ns}}, links: {{west--east: {{rate: 2000Gbit/s}}}}}}",
        names.join(", "),
        links.join(", ")
    )
}

fn measure(kind: Kind, bytes: u64, senders: u64, seed: u64) -> Result<Measured, String> {
    let target = senders as u16;
    let incast = || vec![Flow { open_max: 512, ..Flow::greedy(Kind::Put, target, PUT_BYTES, 1 << 30) }];
    let mut flows: Vec<_> = (0..senders).map(|_| incast()).collect();
    flows.push(Vec::new());
    flows.push(vec![Flow { open_max: 512, ..Flow::greedy(kind, target + 2, bytes, 1 << 30) }]);
    let mut stage = Stage::new(&rack(senders), seed, flows)?;
    let mut completed_by = |at| {
        stage.simulation.step_until(at).map_err(|stalled| stalled.to_string())?;
        Ok::<u64, String>(stage.ledger(usize::from(target) + 1).completed)
    };
    let before = completed_by(MEASURED_FROM)?;
    let count = completed_by(MEASURED_TO)? - before;
    let wire_bytes = if kind == Kind::Store { STORE_WIRE_BYTES } else { PUT_WIRE_BYTES };
    let took_ns = MEASURED_TO.since(MEASURED_FROM) as f64;
    Ok((count as f64 * wire_bytes as f64 * 8e9 / took_ns / RATE_BITS_PER_S).into())
}
