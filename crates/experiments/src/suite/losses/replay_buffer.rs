//! Experiment 7: how large a replay buffer must be, by the length of the cable.
//!
//! A sender may have so many bytes unacknowledged. On a short cable that never stops it; beyond the knee it waits for
//! acknowledgements, and throughput is what the buffer holds per loop. A window of packets end to end is such a buffer too.

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Row, Setup, Tolerance, Trial};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::retry::{ReplayLoop, replay_limited};
use crate::traffic::{Flow, Kind};

const RATE_BITS_PER_S: f64 = 400e9;
const PUT_BYTES: u64 = 4_096;
/// A put of 4096 bytes with our own headers: Ethernet 14, link 32, fabric 40, region and put 44.
const FRAME_BYTES: u64 = 14 + 32 + 40 + 44 + PUT_BYTES;
/// Bytes on the wire beside a frame: check, preamble and gap.
const BESIDE_FRAME_BYTES: u64 = 24;
const FRAME_WIRE_BYTES: u64 = FRAME_BYTES + BESIDE_FRAME_BYTES;
/// A link acknowledgement is a smallest frame.
const ACK_WIRE_BYTES: u64 = 84;
const COPPER_NS_PER_M: f64 = 4.6;
const WINDOW: &str = "window";
const TOLERANCE: Tolerance = Tolerance::Relative(0.01);
/// The cable over which windows of packets are compared.
const WINDOW_CABLE_M: u64 = 1_000;
/// An acknowledgement of packets: headers, and the acknowledged numbers.
const PACKET_ACK_WIRE_BYTES: u64 = 14 + 32 + 40 + 16 + BESIDE_FRAME_BYTES;

/// Throughput over cable length, for several replay buffers.
pub(in crate::suite) static REPLAY_BUFFER: Experiment = Experiment {
    number: 7,
    name: "replay-buffer",
    question: "How large must the replay buffer be, by the length of the cable?",
    formula: "throughput = min(1, n L / (B loop)), loop = 2 length tau + L/B + ack/B, n = floor(buffer / frame), or the window of packets",
    theory: "The buffer holds what is unacknowledged; the space of a frame is free again one control loop after it began to \
             leave. Full throughput needs B (RTT + t_ack) + frames that are being written (UEC-like link-level retry).",
    perturbs: "bytes of the replay buffer",
    knobs: &[
        Knob {
            name: "link.llr.outstanding_bytes",
            description: "bytes of the replay buffer",
            usual: &["16384", "65536", "262144"],
            reduced: &["65536"],
            kind: KnobKind::Bytes(4240, 64 << 20),
        },
        Knob {
            name: "link.length",
            description: "metres of copper",
            usual: &["1", "3", "10", "30", "100", "300", "1000"],
            reduced: &["10", "300"],
            kind: KnobKind::Metres(1, 10_000),
        },
        Knob {
            name: "transport.window_packets",
            description: "packets in flight, over a kilometre without link-level retry",
            usual: &["16", "64", "256"],
            reduced: &["64"],
            kind: KnobKind::Count(1, 4096),
        },
    ],
    axes: Axes {
        x: Axis { label: "length of the cable (m)", is_logarithmic: true },
        y: Axis { label: "throughput / link rate", is_logarithmic: false },
        names: None,
    },
    curve,
    answer: in_words,
    trials,
};

fn expected(buffer_bytes: f64, length_m: f64) -> f64 {
    limited((buffer_bytes / FRAME_BYTES as f64).floor(), length_m, ACK_WIRE_BYTES)
}

fn limited(frames_max: f64, length_m: f64, ack_wire_bytes: u64) -> f64 {
    replay_limited(ReplayLoop {
        rate_bits_per_s: RATE_BITS_PER_S,
        frame_wire_bytes: FRAME_WIRE_BYTES as f64,
        frames_max,
        round_trip_ns: 2.0 * length_m * COPPER_NS_PER_M,
        ack_wire_bytes: ack_wire_bytes as f64,
    })
}

/// Returns the throughput between the lengths.
fn curve(series: &str, length_m: f64) -> Option<f64> {
    let kibibytes: f64 = series.split(' ').next()?.parse().ok()?;
    Some(expected(kibibytes * 1024.0, length_m))
}

/// Returns the length of cable that each buffer fills, as text.
fn in_words(rows: &[Row]) -> Vec<String> {
    let windows = |points: &[(f64, f64)]| {
        let each = points.iter().map(|(window, share)| format!("{} with {window}", answer::per_cent(*share)));
        format!("a window of packets fills of {WINDOW_CABLE_M} m: {}", each.collect::<Vec<_>>().join(", "))
    };
    let line = |(buffer, points): (&str, Vec<(f64, f64)>)| match answer::holds_up_to(&points, answer::FULL) {
        _ if buffer == WINDOW => windows(&points),
        Some(length) => format!("a buffer of {buffer} fills 400 Gbit/s up to {length} m of copper"),
        None => format!("a buffer of {buffer} fills 400 Gbit/s over none of these cables"),
    };
    answer::by_series(rows).into_iter().map(line).collect()
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
                tolerance: TOLERANCE,
                run: Box::new(move || {
                    let retry = format!(
                        "{{outstanding_bytes: {run_buffer}B, outstanding_frames: 4096, replay_timer: 100us}}"
                    );
                    measure(seed, length, &retry, "window_packets: 4096")
                }),
            });
        }
    }
    for window in setup.knobs.counts("transport.window_packets", setup.reduced) {
        let (seed, run_window) = (setup.seed, setup.run_count(window));
        trials.push(Trial {
            series: WINDOW.to_owned(),
            setting: format!("window {window} packets, cable {WINDOW_CABLE_M} m, no retry on the link"),
            is_drawn: false,
            x: window as f64,
            expected: limited(window as f64, WINDOW_CABLE_M as f64, PACKET_ACK_WIRE_BYTES),
            tolerance: TOLERANCE,
            run: Box::new(move || {
                let transport = format!("window_packets: {run_window}, ack_every_packets: 1");
                measure(seed, WINDOW_CABLE_M, "off", &transport)
            }),
        });
    }
    Ok(trials)
}

fn measure(seed: u64, length_m: u64, retry: &str, transport: &str) -> Result<Measured, String> {
    let text = format!(
        "{{name: pair, shape: {{ring: {{nodes: 2}}}}, ring_bytes: 16MiB, \
         link: {{rate: 400Gbit/s, length: {length_m}m, \
         llr: {retry}}}, transport: {{{transport}}}}}"
    );
    let puts = 4_000;
    let mut stage = Stage::new(&text, seed, vec![vec![Flow::greedy(Kind::Put, 1, PUT_BYTES, puts)]])?;
    stage.run()?;
    let share = stage.ledger(0).operations_per_s()? * FRAME_WIRE_BYTES as f64 * 8.0 / RATE_BITS_PER_S;
    Ok(share.into())
}
