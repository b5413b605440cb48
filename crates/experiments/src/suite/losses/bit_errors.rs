//! Experiment 22: how many frames wrong bits cost, by the length of a frame.

use rackloom_protocol::{NodeId, PortId};

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Setup, Tolerance, Trial};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::buffer::loss_of_frame;
use crate::traffic::{Flow, Kind};

/// Our own headers of a frame with one put, check, preamble and gap.
const AROUND_BYTES: u64 = 130 + 24;
/// Expected losses of a run.
const EVENTS: f64 = 2_400.0;
const RARE: f64 = 1e-6;

/// Share of frames lost over their length.
pub(in crate::suite) static BIT_ERRORS: Experiment = Experiment {
    number: 22,
    name: "bit-errors",
    question: "How many frames do wrong bits cost?",
    formula: "share of the frames = 1 - (1 - rate)^(8 L)",
    theory: "A frame of L bytes on the wire is good only if each of its bits is; bits fail alone and alike.",
    perturbs: "bit error rate",
    knobs: &[
        Knob {
            name: "link.bit_error_rate",
            description: "probability that a bit is wrong",
            usual: &["1e-6", "1e-5"],
            reduced: &["1e-5"],
            kind: KnobKind::Share,
        },
        Knob {
            name: "bytes",
            description: "bytes of one put",
            usual: &["256", "512", "1024", "2048", "4096"],
            reduced: &["256", "4096"],
            kind: KnobKind::Bytes(1, 4_096),
        },
    ],
    axes: Axes {
        x: Axis { label: "size of a frame on the wire (B)", is_logarithmic: true },
        y: Axis { label: "share of the frames that is lost", is_logarithmic: true },
        names: None,
    },
    curve,
    answer: answer::none,
    trials,
};

fn series(rate: f64) -> String {
    format!("{rate:e} of the bits")
}

fn curve(series: &str, frame_wire_bytes: f64) -> Option<f64> {
    let rate = series.split_whitespace().next()?.parse().ok()?;
    Some(loss_of_frame(rate, frame_wire_bytes))
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let mut trials = Vec::new();
    for rate in setup.knobs.shares("link.bit_error_rate", setup.reduced) {
        for bytes in setup.knobs.counts("bytes", setup.reduced) {
            let expected = loss_of_frame(rate, (bytes + AROUND_BYTES) as f64);
            // Runs with rarer losses meet fewer of them, and say so in a note.
            let puts = (EVENTS / loss_of_frame(rate.max(RARE), (bytes + AROUND_BYTES) as f64)) as u64;
            let (seed, run_rate) = (setup.seed, setup.run_input(rate));
            trials.push(Trial {
                series: series(rate),
                setting: format!("{rate:e} of the bits, puts of {bytes} bytes"),
                is_drawn: true,
                x: (bytes + AROUND_BYTES) as f64,
                expected,
                tolerance: Tolerance::Chance { spread: expected, slack: 0.0 },
                run: Box::new(move || measure(seed, run_rate, bytes, puts)),
            });
        }
    }
    Ok(trials)
}

fn measure(seed: u64, rate: f64, bytes: u64, puts: u64) -> Result<Measured, String> {
    let text = format!(
        "{{name: bits, shape: {{ring: {{nodes: 2}}}}, packing: {{mode: off}}, \
         transport: {{ack_delay: 20us, timeout_initial: 200us, timeout_min: 100us}}, \
         link: {{rate: 400Gbit/s, delay: 200ns, bit_error_rate: {rate:e}}}}}"
    );
    let flow = Flow { open_max: 512, ..Flow::greedy(Kind::Put, 1, bytes, puts) };
    let mut stage = Stage::new(&text, seed, vec![vec![flow]])?;
    stage.run()?;
    // Every data frame has a number on the link, and the receiver counts missing numbers.
    let lost = stage.simulation.counters(NodeId(1), PortId(0)).missing;
    let sent = stage.forward("n0--n1")?.data_frames_sent;
    Ok(Measured { value: lost as f64 / sent as f64, events: Some(lost), ..Measured::default() })
}
