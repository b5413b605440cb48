//! Experiment 3: packing does not delay operations on a nearly idle link.
//!
//! Stores are issued at random times, at one per cent of the link's capacity. A sender that packs only operations
//! that are queued already adds nothing to the median.

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Setup, Tolerance, Trial, straight};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::latency::round_trip_ns;
use crate::theory::wire::{SUE, serialisation_ns};
use crate::traffic::{Flow, Kind, random_times_ns};

const RATE_BITS_PER_S: f64 = 100e9;
const DELAY_NS: f64 = 500.0;
const STORE_BYTES: u64 = 64;
const LOAD: f64 = 0.01;

/// Median latency of stores on a nearly idle link, with packing and without.
pub(in crate::suite) static PACKING_LATENCY: Experiment = Experiment {
    number: 3,
    name: "packing-latency",
    question: "Does packing add latency when the link is nearly idle?",
    formula: "median = 2 delay + L(store)/B + L(ack)/B, with packing as without",
    theory: "Opportunistic packing takes what is queued when the link grants and waits for nothing; at 1 % load nothing is \
             queued. The tolerance is the serialisation of one operation.",
    perturbs: "delay of the link",
    knobs: &[Knob {
        name: "packing.mode",
        description: "whether frames are shared",
        usual: &["off", "opportunistic"],
        reduced: &[],
        kind: KnobKind::Choice,
    }],
    axes: Axes {
        x: Axis { label: "packing", is_logarithmic: false },
        y: Axis { label: "median latency of a store (ns)", is_logarithmic: false },
        names: Some(&["off", "opportunistic"]),
    },
    curve: straight,
    answer: answer::none,
    trials,
};

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let stores = if setup.reduced { 500 } else { 5_000 };
    let store_ns = serialisation_ns(SUE.wire_bytes(1, STORE_BYTES), RATE_BITS_PER_S);
    // An acknowledgement is headers alone.
    let answer_ns = serialisation_ns(SUE.wire_bytes(0, 0), RATE_BITS_PER_S);
    let expected = round_trip_ns(DELAY_NS, store_ns, answer_ns);
    let one_operation_ns = serialisation_ns(SUE.per_operation + STORE_BYTES, RATE_BITS_PER_S);
    let modes = setup.knobs.values("packing.mode", setup.reduced).into_iter();
    let (seed, delay_ns) = (setup.seed, setup.run_count(DELAY_NS as u64));
    let trial = |mode: String| Trial {
        series: mode.clone(),
        setting: format!("packing {mode}, {} % load", LOAD * 100.0),
        is_drawn: true,
        x: if mode == "off" { 1.0 } else { 2.0 },
        expected,
        tolerance: Tolerance::Absolute(one_operation_ns),
        run: Box::new(move || measure(seed, &mode, delay_ns, stores, store_ns / LOAD)),
    };
    Ok(modes.map(trial).collect())
}

fn measure(seed: u64, mode: &str, delay_ns: u64, stores: u64, gap_ns: f64) -> Result<Measured, String> {
    let text = format!(
        "{{name: pair, shape: {{ring: {{nodes: 2}}}}, packing: {{mode: {mode}}}, \
         link: {{rate: 100Gbit/s, delay: {delay_ns}ns, headers: sue-like}}}}"
    );
    let times_ns = random_times_ns(seed, stores, gap_ns);
    let flow = Flow { times_ns, ..Flow::greedy(Kind::Store, 1, STORE_BYTES, stores) };
    let mut stage = Stage::new(&text, seed, vec![vec![flow]])?;
    stage.run()?;
    let ledger = stage.ledger(0);
    let quantile = |share: f64| ledger.quantile_ns(share).map(|ns| ns as f64).ok_or("no store ended");
    let (low, high) = (quantile(0.01)?, quantile(0.99)?);
    Ok(Measured::from(quantile(0.5)?).with_spread(low, high, "1 % and 99 % of all stores"))
}
