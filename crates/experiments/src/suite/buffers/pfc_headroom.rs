//! Experiment 19: how much headroom a link that pauses needs.
//!
//! A node puts through a switch to one that drains nothing, so the switch fills, requests a pause, and counts the
//! frames that still arrive. With headroom for exactly that nothing is lost; with headroom for one frame less, one frame
//! is.

use rackloom_protocol::{Class, DropReason, Instant, NodeId, PortId};

use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Row, Setup, Tolerance, Trial};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::pause::PauseLoop;
use crate::traffic::{Flow, Kind};

const RATE_BITS_PER_S: f64 = 100e9;
const PUT_BYTES: u64 = 4_096;
/// A put of 4096 bytes with our own headers: Ethernet 14, link 32, fabric 40, region and put 44.
const FRAME_BYTES: u64 = 14 + 32 + 40 + 44 + PUT_BYTES;
/// Length of that frame on the wire, with check, preamble and gap.
const FRAME_WIRE_BYTES: u64 = FRAME_BYTES + 24;
/// A pause is a smallest frame.
const PAUSE_WIRE_BYTES: u64 = 84;
const COPPER_NS_PER_M: f64 = 4.6;
const RESPONSE_NS: u64 = 900;
const XOFF_FRAMES: u64 = 8;
/// More than any headroom here.
const AMPLE_FRAMES: u64 = 100;
const PUTS: u64 = 400;
/// Time by which all senders have been paused for long.
const JAMMED_AT: Instant = Instant(1_000_000);
const SWITCH: NodeId = NodeId(2);

/// Frames that arrive after a pause was requested, over the length of the cable.
pub(in crate::suite) static PFC_HEADROOM: Experiment = Experiment {
    number: 19,
    name: "pfc-headroom",
    question: "How much headroom does a link that pauses need?",
    formula: "frames = 1 + ceil((pause/B + 2 length tau + response) / (L/B)); with headroom for them 0 are lost, with one frame less 1 is",
    theory: "The frame that passes xoff is held above it, and frames begin until the pause frame has crossed the cable and taken \
             effect; what has begun by then crosses the cable too (as in the delay budgets of priority flow control).",
    perturbs: "response delay",
    knobs: &[Knob {
        name: "link.length",
        description: "metres of copper",
        usual: &["1", "10", "30", "100", "300"],
        reduced: &["1", "100"],
        kind: KnobKind::Metres(1, 600),
    }],
    axes: Axes {
        x: Axis { label: "length of the cable (m)", is_logarithmic: true },
        y: Axis { label: "largest frames above xoff", is_logarithmic: false },
        names: None,
    },
    curve,
    answer: in_words,
    trials,
};

fn frames_above(length_m: f64) -> u64 {
    let pause = PauseLoop {
        rate_bits_per_s: RATE_BITS_PER_S,
        frame_wire_bytes: FRAME_WIRE_BYTES as f64,
        pause_wire_bytes: PAUSE_WIRE_BYTES as f64,
        round_trip_ns: 2.0 * length_m * COPPER_NS_PER_M,
        response_ns: RESPONSE_NS as f64,
    };
    1 + pause.frames()
}

fn curve(_series: &str, length_m: f64) -> Option<f64> {
    Some(frames_above(length_m) as f64)
}

/// Returns the headroom of each length, as text.
fn in_words(rows: &[Row]) -> Vec<String> {
    let above = rows.iter().filter(|row| row.is_drawn).filter_map(|row| Some((row.x, row.measured?)));
    above.map(|(length, frames)| format!("{length} m need headroom for {frames} largest frames")).collect()
}

/// Measured quantity.
#[derive(Clone, Copy)]
enum Quantity {
    FramesAbove,
    FramesLost,
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let mut trials = Vec::new();
    let (seed, response_ns) = (setup.seed, setup.run_count(RESPONSE_NS));
    for length in setup.knobs.counts("link.length", setup.reduced) {
        let above = frames_above(length as f64);
        let looks = [
            ("frames above xoff", AMPLE_FRAMES, Quantity::FramesAbove, above),
            ("lost with headroom for them", above, Quantity::FramesLost, 0),
            ("lost with headroom for one less", above - 1, Quantity::FramesLost, 1),
        ];
        for (what, headroom_frames, look, expected) in looks {
            trials.push(Trial {
                series: what.to_owned(),
                setting: format!("cable {length} m, headroom {headroom_frames} frames: {what}"),
                is_drawn: matches!(look, Quantity::FramesAbove),
                x: length as f64,
                expected: expected as f64,
                tolerance: Tolerance::Exact,
                run: Box::new(move || measure(seed, length, headroom_frames, response_ns, look)),
            });
        }
    }
    Ok(trials)
}

fn measure(
    seed: u64,
    length_m: u64,
    headroom_frames: u64,
    response_ns: u64,
    look: Quantity,
) -> Result<Measured, String> {
    let (xoff, headroom) = (XOFF_FRAMES * FRAME_BYTES, headroom_frames * FRAME_BYTES);
    let text = format!(
        "{{name: jam, shape: {{star: {{nodes: 2}}}}, ring_bytes: 16MiB, transport: {{window_packets: 1024}}, \
         link: {{rate: 100Gbit/s, length: {length_m}m, pfc: {{xoff: {xoff}B, headroom: {headroom}B, \
         short_headroom: allow, response_delay: {response_ns}ns, watchdog: 0ns}}}}}}"
    );
    let mut stage = Stage::new(&text, seed, vec![vec![Flow::greedy(Kind::Put, 1, PUT_BYTES, PUTS)]])?;
    stage.simulation.endpoint_mut(NodeId(1)).stop_draining(Class::Bulk, true);
    stage.simulation.step_until(JAMMED_AT).map_err(|stalled| stalled.to_string())?;
    let completed = stage.ledger(0).completed;
    if completed == PUTS {
        return Err("nothing was held back".into());
    }
    stage.simulation.endpoint_mut(NodeId(1)).stop_draining(Class::Bulk, false);
    stage.run()?;
    let port = stage.simulation.counters(SWITCH, PortId(0));
    let value = match look {
        Quantity::FramesLost => port.dropped_for(DropReason::BufferFull) as f64,
        Quantity::FramesAbove => (port.pause.held_bytes_max.saturating_sub(xoff)) as f64 / FRAME_BYTES as f64,
    };
    let note = format!("{} packets repeated by the transport", stage.retransmitted());
    Ok(Measured { value, note: Some(note), ..Measured::default() })
}
