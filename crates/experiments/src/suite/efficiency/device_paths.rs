//! Experiment 27: how many loads and how many transfers of copy engines fill a link.
//!
//! Loads of a GPU's processors are bounded by a round trip. Transfers of copy engines begin later and fill the link with few in
//! flight.

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Setup, Tolerance, Trial, straight};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::device::bulk_throughput_bytes_per_s;
use crate::theory::latency::load_throughput_bytes_per_s;
use crate::theory::wire::{SUE, serialisation_ns};
use crate::traffic::{Flow, Kind};

const DELAY_NS: u64 = 500;
const LOAD_BYTES: u64 = 256;
const LOAD_LATENCY_NS: u64 = 300;
const BULK_BYTES: u64 = 64 << 10;
const BULK_LATENCY_NS: u64 = 2_000;
const RATE_BITS_PER_S: f64 = 400e9;
/// Payload of a frame of a long transfer, in bytes.
const SEGMENT_BYTES: u64 = 4_096;

/// Throughput of both paths of a GPU over the operations in flight.
pub(in crate::suite) static DEVICE_PATHS: Experiment = Experiment {
    number: 27,
    name: "device-paths",
    question: "How many operations must a GPU have in flight to fill a link, with loads and with copy engines?",
    formula: "loads: in flight x size / (latency + RTT); bulk: min(b, in flight x size / (latency + size / b + RTT))",
    theory: "Little's law on both paths. A load of 256 B occupies a unit for the latency of the device and a round trip, on a link \
             without a rate. A transfer of 64 KiB also occupies its engine for the time of its bytes, and b, the rate of the link \
             times the share of payload in its frames, is the bound.",
    perturbs: "latency of the device",
    knobs: &[
        Knob {
            name: "device.load_store_units",
            description: "units that load, each with 8 loads in flight",
            usual: &["1", "4", "16", "64"],
            reduced: &["4"],
            kind: KnobKind::Count(1, 256),
        },
        Knob {
            name: "device.bulk_engines",
            description: "copy engines, each with one transfer in flight",
            usual: &["1", "2", "3", "4", "8"],
            reduced: &["1", "8"],
            kind: KnobKind::Count(1, 64),
        },
    ],
    axes: Axes {
        x: Axis { label: "operations in flight", is_logarithmic: true },
        y: Axis { label: "throughput (GB/s)", is_logarithmic: true },
        names: None,
    },
    curve: straight,
    answer: answer::none,
    trials,
};

const IN_FLIGHT_PER_UNIT: u64 = 8;

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let seed = setup.seed;
    let load_latency_ns = setup.run_count(LOAD_LATENCY_NS);
    let bulk_latency_ns = setup.run_count(BULK_LATENCY_NS);
    let frame_ns = serialisation_ns(SUE.wire_bytes(1, SEGMENT_BYTES), RATE_BITS_PER_S);
    let link_bytes_per_ns = SEGMENT_BYTES as f64 / frame_ns;
    let mut trials = Vec::new();
    for units in setup.knobs.counts("device.load_store_units", setup.reduced) {
        let in_flight = units * IN_FLIGHT_PER_UNIT;
        let one_ns = (2 * DELAY_NS + LOAD_LATENCY_NS) as f64;
        trials.push(Trial {
            series: "loads of 256 B".to_owned(),
            setting: format!("{units} units with {IN_FLIGHT_PER_UNIT} loads each"),
            is_drawn: true,
            x: in_flight as f64,
            expected: load_throughput_bytes_per_s(in_flight, LOAD_BYTES, one_ns) / 1e9,
            tolerance: Tolerance::Relative(0.02),
            run: Box::new(move || loads(seed, units, load_latency_ns)),
        });
    }
    for engines in setup.knobs.counts("device.bulk_engines", setup.reduced) {
        let throughput = bulk_throughput_bytes_per_s(
            engines,
            BULK_BYTES,
            BULK_LATENCY_NS as f64,
            DELAY_NS as f64,
            link_bytes_per_ns,
        );
        trials.push(Trial {
            series: "puts of 64 KiB".to_owned(),
            setting: format!("{engines} engines with one transfer each"),
            is_drawn: true,
            x: engines as f64,
            expected: throughput / 1e9,
            tolerance: Tolerance::Relative(0.02),
            run: Box::new(move || bulk(seed, engines, bulk_latency_ns)),
        });
    }
    Ok(trials)
}

fn loads(seed: u64, units: u64, latency_ns: u64) -> Result<Measured, String> {
    let text = format!(
        "{{name: pair, shape: {{ring: {{nodes: 2}}}}, link: {{delay: {DELAY_NS}ns}}, outstanding_loads_max: 1024, \
         device: {{load_store_units: {units}, load_store_in_flight: {IN_FLIGHT_PER_UNIT}, load_store_latency: {latency_ns}ns}}}}"
    );
    let count = units * IN_FLIGHT_PER_UNIT * 100;
    throughput(&text, seed, Flow::greedy(Kind::Load, 1, LOAD_BYTES, count), LOAD_BYTES)
}

fn bulk(seed: u64, engines: u64, latency_ns: u64) -> Result<Measured, String> {
    let text = format!(
        "{{name: pair, shape: {{ring: {{nodes: 2}}}}, link: {{delay: {DELAY_NS}ns, rate: 400Gbit/s, headers: sue-like}}, \
         device: {{bulk_engines: {engines}, bulk_in_flight: 1, bulk_latency: {latency_ns}ns}}}}"
    );
    throughput(&text, seed, Flow::greedy(Kind::Put, 1, BULK_BYTES, engines * 60), BULK_BYTES)
}

fn throughput(text: &str, seed: u64, flow: Flow, bytes: u64) -> Result<Measured, String> {
    let mut stage = Stage::new(text, seed, vec![vec![flow]])?;
    stage.run()?;
    Ok((stage.ledger(0).operations_per_s()? * bytes as f64 / 1e9).into())
}
