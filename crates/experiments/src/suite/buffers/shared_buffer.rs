//! Experiment 21: how links that pause divide a switch's memory, and how many frames a long queue marks.
//!
//! Half of a star's nodes put to partners that drain nothing, so each ingress of the switch takes what it may have.
//! For the marks some nodes send side by side to one that drains.

use rackloom_protocol::{Class, Instant, NodeId, PortId};

use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Row, Setup, Tolerance, Trial};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::buffer;
use crate::traffic::{Flow, Kind};

const PUT_BYTES: u64 = 4_096;
/// A put of 4096 bytes with our own headers.
const FRAME_BYTES: u64 = 130 + PUT_BYTES;
const BUFFER_BYTES: u64 = 512 * FRAME_BYTES;
/// Time by which every ingress is full.
const FULL_AT: Instant = Instant(2_000_000);
/// Puts of each node: more than fit anywhere.
const PUTS: u64 = 1_600;
const MARK_ABOVE_FRAMES: u64 = 40;
const MARKED_PUTS: u64 = 300;

/// Share of a shared buffer per ingress, over the number of ingresses that fill it.
pub(in crate::suite) static SHARED_BUFFER: Experiment = Experiment {
    number: 21,
    name: "shared-buffer",
    question: "How do links that pause divide a switch's memory, and how many frames does a long queue mark?",
    formula: "each of n inputs: alpha B / (1 + n alpha); m senders of k frames each, limit q: m k - m q / (m - 1) marks",
    theory: "An input may hold alpha times what is free, so n that want more leave B / (1 + n alpha) for the next (dynamic thresholds, \
             Choudhury and Hahne 1998). Where m senders meet at a port as fast as one of them, m - 1 frames stay of every m.",
    perturbs: "bytes of the buffer, and frames above which a queue marks",
    knobs: &[
        Knob {
            name: "forwarding.buffer.alpha",
            description: "how many times what is free an input may hold",
            usual: &["0.25", "1", "4"],
            reduced: &["1"],
            kind: KnobKind::Choice,
        },
        Knob {
            name: "inputs",
            description: "inputs that want more than they get; and senders whose queue marks",
            usual: &["1", "2", "4", "8"],
            reduced: &["1", "4"],
            kind: KnobKind::Count(1, 16),
        },
    ],
    axes: Axes {
        x: Axis { label: "inputs that want more than they get", is_logarithmic: false },
        y: Axis { label: "largest frames that each holds", is_logarithmic: false },
        names: None,
    },
    curve,
    answer: in_words,
    trials,
};

fn series(alpha: &str) -> String {
    format!("alpha {alpha}")
}

fn frames_of(alpha: f64, inputs: f64) -> f64 {
    buffer::equal_share((BUFFER_BYTES / FRAME_BYTES) as f64, alpha, inputs)
}

fn curve(series: &str, inputs: f64) -> Option<f64> {
    let alpha = series.strip_prefix("alpha ")?.parse().ok()?;
    (inputs >= 1.0).then(|| frames_of(alpha, inputs))
}

/// Returns the remaining space for the next ingress, as text.
fn in_words(rows: &[Row]) -> Vec<String> {
    let held = rows.iter().filter(|row| row.is_drawn).filter_map(|row| Some((row, row.measured?)));
    let left = held.map(|(row, frames)| {
        let share = 1.0 - frames * row.x * FRAME_BYTES as f64 / BUFFER_BYTES as f64;
        (format!("{}, {} inputs", row.series, row.x), share)
    });
    let least = left.min_by(|one, other| one.1.total_cmp(&other.1));
    least
        .map(|(setting, share)| format!("least is left with {setting}: {:.0} % of the memory", share * 100.0))
        .into_iter()
        .collect()
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let mut trials = Vec::new();
    let (seed, bytes) = (setup.seed, setup.run_count(BUFFER_BYTES));
    for alpha in setup.knobs.values("forwarding.buffer.alpha", setup.reduced) {
        for inputs in setup.knobs.counts("inputs", setup.reduced) {
            let expected = alpha.parse().map_or(f64::NAN, |alpha| frames_of(alpha, inputs as f64));
            let run_alpha = alpha.clone();
            trials.push(Trial {
                series: series(&alpha),
                setting: format!("alpha {alpha}, {inputs} inputs"),
                is_drawn: true,
                x: inputs as f64,
                expected,
                // A frame is either buffered completely or not.
                tolerance: Tolerance::Absolute(1.0),
                run: Box::new(move || held(seed, &run_alpha, inputs, bytes)),
            });
        }
    }
    let limit = setup.run_count(MARK_ABOVE_FRAMES);
    for senders in setup.knobs.counts("inputs", setup.reduced).into_iter().filter(|senders| *senders > 1) {
        let expected = buffer::marked_frames(senders as f64, MARKED_PUTS as f64, MARK_ABOVE_FRAMES as f64);
        trials.push(Trial {
            series: "marks".to_owned(),
            setting: format!(
                "marks of a queue above {MARK_ABOVE_FRAMES} frames, {senders} senders of {MARKED_PUTS}"
            ),
            is_drawn: false,
            x: senders as f64,
            expected,
            // Frames of one slot come one after the other, and the first of all has to cross the switch.
            tolerance: Tolerance::Absolute(2.0 * senders as f64),
            run: Box::new(move || marks(seed, senders, limit)),
        });
    }
    Ok(trials)
}

/// Returns the largest number of frames that an ingress holds, averaged over all.
fn held(seed: u64, alpha: &str, inputs: u64, bytes: u64) -> Result<Measured, String> {
    // No headroom: an ingress holds exactly what it may hold, and frames beyond are lost and retransmitted.
    let text = format!(
        "{{name: crowd, shape: {{star: {{nodes: {}}}}}, ring_bytes: 64MiB, transport: {{window_packets: 4096}}, \
         forwarding: {{buffer: {{bytes: {bytes}B, alpha: {alpha}}}}}, \
         link: {{rate: 100Gbit/s, delay: 100ns, pfc: {{headroom: 0B, short_headroom: allow, watchdog: 0ns}}}}}}",
        2 * inputs
    );
    let flows =
        (0..inputs).map(|node| vec![Flow::greedy(Kind::Put, (inputs + node) as u16, PUT_BYTES, PUTS)]);
    let mut stage = Stage::new(&text, seed, flows.collect())?;
    for node in inputs..2 * inputs {
        stage.simulation.endpoint_mut(NodeId(node as u16)).stop_draining(Class::Bulk, true);
    }
    stage.simulation.step_until(FULL_AT).map_err(|stalled| stalled.to_string())?;
    let switch = NodeId(2 * inputs as u16);
    let held =
        (0..inputs).map(|input| stage.simulation.counters(switch, PortId(input as u16)).pause.held_bytes_max);
    Ok((held.sum::<u64>() as f64 / (inputs * FRAME_BYTES) as f64).into())
}

/// Returns the number of data frames that the switch marks. All marked frames must arrive and be reported.
fn marks(seed: u64, senders: u64, limit_frames: u64) -> Result<Measured, String> {
    // The limit is between two frames: a queue of so many is not above it, one more is.
    let limit = limit_frames * FRAME_BYTES - FRAME_BYTES / 2;
    let text = format!(
        "{{name: marks, shape: {{star: {{nodes: {}}}}}, ring_bytes: 64MiB, packing: {{mode: off}}, \
         transport: {{window_packets: 4096, ack_every_packets: 1}}, \
         forwarding: {{mark_above: {limit}B, mode: cut-through}}, link: {{rate: 100Gbit/s, delay: 100ns}}}}",
        senders + 1
    );
    let mut flows = vec![Vec::new()];
    flows.extend((0..senders).map(|_| vec![Flow::greedy(Kind::Put, 0, PUT_BYTES, MARKED_PUTS)]));
    let mut stage = Stage::new(&text, seed, flows)?;
    stage.run()?;
    let switch = NodeId(senders as u16 + 1);
    let marked = stage.simulation.counters(switch, PortId(0)).marks.marked;
    let arrived = stage.simulation.counters(NodeId(0), PortId(0)).marks.rx_marked;
    if arrived != marked {
        return Err(format!("{marked} frames were marked, and {arrived} arrived so"));
    }
    let reports =
        (1..=senders).map(|node| stage.simulation.counters(NodeId(node as u16), PortId(0)).marks.rx_echo);
    let note = Some(format!("{} acknowledgements reports of them", reports.sum::<u64>()));
    Ok(Measured { value: marked as f64, note, ..Measured::default() })
}
