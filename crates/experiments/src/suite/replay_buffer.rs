//! Experiment 7: how large a replay buffer must be, by the length of the cable.
//!
//! A sender may have so many bytes unacknowledged. On a short cable that never stops it; beyond the knee it waits for
//! acknowledgements, and throughput is what the buffer holds per loop.

use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Setup, Tolerance, Trial};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::retry::{ReplayLoop, replay_limited};
use crate::traffic::{Flow, Kind};

const RATE_BITS_PER_S: f64 = 400e9;
const PUT_BYTES: u64 = 4_096;
/// A put of 4096 bytes with our own headers: Ethernet 14, link 32, fabric 40, region and put 44.
const FRAME_BYTES: u64 = 14 + 32 + 40 + 44 + PUT_BYTES;
/// The same on the wire: check, preamble and gap.
const FRAME_WIRE_BYTES: u64 = FRAME_BYTES + 24;
/// A link acknowledgement is a smallest frame.
const ACK_WIRE_BYTES: u64 = 84;
const COPPER_NS_PER_M: f64 = 4.6;

/// Throughput over cable length, for several replay buffers.
pub(super) static REPLAY_BUFFER: Experiment = Experiment {
    number: 7,
    name: "replay-buffer",
    question: "How large must the replay buffer be, by the length of the cable?",
    formula: "throughput = min(1, floor(buffer / frame) L / (B loop)), loop = 2 length tau + L/B + ack/B",
    theory: "The buffer holds what is unacknowledged; a frame's place is free again one control loop after it began to \
             leave. Full throughput wants B (RTT + t_ack) + frames that are being written (UEC-like link-level retry).",
    perturbs: "bytes of the replay buffer",
    knobs: &[
        Knob {
            name: "link.llr.outstanding_bytes",
            meaning: "bytes of the replay buffer",
            usual: &["16384", "65536", "262144"],
            reduced: &["65536"],
            kind: KnobKind::Count,
        },
        Knob {
            name: "link.length",
            meaning: "metres of copper",
            usual: &["1", "3", "10", "30", "100", "300", "1000"],
            reduced: &["10", "300"],
            kind: KnobKind::Count,
        },
    ],
    axes: Axes {
        x: Axis { label: "length of the cable (m)", is_logarithmic: true },
        y: Axis { label: "throughput / link rate", is_logarithmic: false },
    },
    curve,
    trials,
};

fn expected(buffer_bytes: f64, length_m: f64) -> f64 {
    replay_limited(ReplayLoop {
        rate_bits_per_s: RATE_BITS_PER_S,
        frame_wire_bytes: FRAME_WIRE_BYTES as f64,
        frames_max: (buffer_bytes / FRAME_BYTES as f64).floor(),
        round_trip_ns: 2.0 * length_m * COPPER_NS_PER_M,
        ack_wire_bytes: ACK_WIRE_BYTES as f64,
    })
}

/// Throughput between the lengths.
fn curve(series: &str, length_m: f64) -> Option<f64> {
    let kibibytes: f64 = series.split(' ').next()?.parse().ok()?;
    Some(expected(kibibytes * 1024.0, length_m))
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let mut trials = Vec::new();
    for buffer in setup.knobs.counts("link.llr.outstanding_bytes", setup.reduced) {
        for length in setup.knobs.counts("link.length", setup.reduced) {
            let (seed, run_buffer) = (setup.seed, setup.run_count(buffer));
            trials.push(Trial {
                series: format!("{} KiB", buffer as f64 / 1024.0),
                setting: format!("buffer {buffer} B, cable {length} m"),
                is_drawn: true,
                x: length as f64,
                expected: expected(buffer as f64, length as f64),
                tolerance: Tolerance::Relative(0.05),
                run: Box::new(move || measure(seed, run_buffer, length)),
            });
        }
    }
    Ok(trials)
}

fn measure(seed: u64, buffer_bytes: u64, length_m: u64) -> Result<Measured, String> {
    let text = format!(
        "{{name: pair, shape: {{ring: {{nodes: 2}}}}, ring_bytes: 16MiB, \
         link: {{rate: 400Gbit/s, length: {length_m}m, \
         llr: {{outstanding_bytes: {buffer_bytes}B, outstanding_frames: 4096, replay_timer: 100us}}}}, \
         transport: {{window_packets: 4096}}}}"
    );
    let puts = 4_000;
    let mut stage = Stage::new(&text, seed, vec![vec![Flow::greedy(Kind::Put, 1, PUT_BYTES, puts)]])?;
    stage.run()?;
    let share = stage.ledger(0).operations_per_s()? * FRAME_WIRE_BYTES as f64 * 8.0 / RATE_BITS_PER_S;
    Ok(share.into())
}
